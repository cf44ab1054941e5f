"""Whether the beginning and the end of a series of pairs contradict what was decided of all of it.

A verdict is about one slowdown, the same in all pairs. PASS says that it is below must-detect, FAIL that it is above
the tolerance, GAIN that it is a speed-up above the tolerance. Where the first or the last pairs alone say for certain
that it is not, something changed meanwhile, and no verdict holds for all.
"""

from __future__ import annotations

import numpy as np

from plumbline.statistics.arrays import Ints
from plumbline.statistics.sequential import (
    FAIL,
    FAIL_SPENDING,
    GAIN,
    LOOKS,
    PASS,
    Rule,
    certainly_above,
    certainly_below,
)


def contradicting(logs: Ints, state: Ints, rule: Rule, blur: Ints) -> Ints:
    """Per row of ``logs`` the shortest part that contradicts its ``state``: n for its first n pairs, -n for its last n.

    0 where none does. Parts are as long as the looks, and shorter than the row. All parts of a row together find a
    contradiction by chance with at most the error of FAIL, 0.1 %.
    """
    found = np.zeros(len(logs), dtype=np.int64)
    for n in (n for n in LOOKS if n < logs.shape[1]):
        error = FAIL_SPENDING.at(n) / 2
        for part, place in ((logs[:, :n], n), (logs[:, -n:], -n)):
            above = (state == PASS) & certainly_above(part, rule.detected + blur, error)
            above |= (state == GAIN) & certainly_above(part, blur - rule.tolerated, error)
            below = (state == FAIL) & certainly_below(part, rule.tolerated - blur, error)
            found[(found == 0) & (above | below)] = place
    return found
