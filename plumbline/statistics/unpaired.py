"""Two sides whose measurements were not taken in pairs: the session is the unit.

Launches of one session share the conditions of that session, so that many launches of one session are still one
observation. Welch's t-test (Biometrika 34 (1947) 28) compares the sessions' medians (logarithms); one or two sessions
say too little about how sessions differ, and are compared by :func:`of_launches`, which is weaker and says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from plumbline.statistics import rank_sum

#: error of an interval (0.05: it is a 95 % interval), and family-wise error of what is claimed
ERROR = 0.05
#: no two sessions are taken to agree better than this (standard deviation of logarithms)
FLOOR = 0.003
#: sessions on each side that the t-test needs: with two it detects almost nothing among many figures
ENOUGH = 3
#: where the sessions are too few for a test: how much medians must differ at least, since sessions differ too
ALLOWANCE = 0.25


@dataclass(frozen=True)
class Difference:
    """``ratio`` is the second side over the first, with an interval; ``p`` that of a test for no difference.

    ``basis`` says what the interval is of: ``sessions`` (95 %), or ``launches`` (from the worst to the best pair of
    launches; ``p`` is 0 where a difference is claimed, else 1). ``visible`` is the smallest ratio above 1 that would
    have been claimed, with a probability of one half.
    """

    ratio: float
    low: float
    high: float
    p: float
    basis: Literal["sessions", "launches"]
    visible: float


def compare(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> Difference:
    """The difference between two sides, each with the figures of its launches by session; all figures above 0."""
    sides = [np.log([float(np.median(session)) for session in side]) for side in (first, second)]
    shift = float(sides[1].mean() - sides[0].mean())
    if min(len(side) for side in sides) < ENOUGH:
        return of_launches(math.exp(shift), first, second)
    errors = [max(float(side.var(ddof=1)), FLOOR**2) / len(side) for side in sides]
    error = math.sqrt(sum(errors))
    freedom = sum(errors) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(errors, sides, strict=True))
    reach = float(-special.stdtrit(freedom, ERROR / 2)) * error
    p = 2 * float(special.stdtr(freedom, -abs(shift) / error))
    ratio, low, high = (math.exp(value) for value in (shift, shift - reach, shift + reach))
    return Difference(ratio, low, high, p, "sessions", math.exp(reach))


def exceeds_sessions(ratio: float) -> bool:
    """Whether ``ratio`` is farther from 1 than sessions may differ without a cause (:data:`ALLOWANCE`)."""
    return abs(math.log(ratio)) > math.log1p(ALLOWANCE)


def of_launches(ratio: float, first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> Difference:
    """A difference by launches alone: claimed if no launches overlap and the medians differ by :data:`ALLOWANCE`."""
    one, other = ([figure for session in side for figure in session] for side in (first, second))
    low, high = rank_sum.ratios(other, one, 0)
    apart = (low > 1 or high < 1) and exceeds_sessions(ratio)
    visible = max(1 + ALLOWANCE, high / ratio, ratio / low)
    return Difference(ratio, low, high, 0.0 if apart else 1.0, "launches", visible)
