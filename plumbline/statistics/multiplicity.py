"""Error probability over many tests."""

from __future__ import annotations

import numpy as np

from plumbline.statistics.arrays import Flags, Floats


def holm(p: Floats, tests: int, error: float) -> Flags:
    """Which of ``p`` Holm's procedure rejects at the family-wise ``error``.

    ``p`` has one element per hypothesis that may be rejected, of ``tests`` in all: the others count as p = 1. Source:
    Holm, Scand. J. Stat. 6 (1979) 65.
    """
    keep = np.zeros(p.size, dtype=bool)
    for position, row in enumerate(np.argsort(p, kind="stable")):
        if p[row] * (tests - position) > error:
            break
        keep[row] = True
    return keep
