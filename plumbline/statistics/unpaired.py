"""Two sides whose measurements were not taken in pairs: the session is the unit.

Launches of one session share the conditions of that session, so that many launches of one session are still one
observation. Welch's t-test (Biometrika 34 (1947) 28) compares the sessions' medians (logarithms). Its degrees of
freedom are for normal noise: with tails and sides of unequal size they are too many, so that they are no more than two
sides of the smaller one's size have. One or two sessions say too little about how sessions differ, and are compared by
:func:`of_launches`, which is weaker and says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from plumbline.statistics import rank_sum
from plumbline.statistics.arrays import Floats

#: error of an interval (0.05: it is a 95 % interval), and family-wise error of what is claimed
ERROR = 0.05
#: no two sessions are taken to agree better than this (standard deviation of logarithms)
FLOOR = 0.003
#: sessions on each side that the t-test needs, and launches on each side without which nothing is claimed
ENOUGH = 3
#: where the sessions are too few to show it: how much they are taken to differ (standard deviation of logarithms)
SESSIONS = 0.05
#: ... and a ratio that two single sessions do not reach without a cause: 3.2 standard deviations of their difference
ALLOWANCE = 0.25
#: variance of a median over that of a mean
OF_MEDIAN = math.pi / 2


@dataclass(frozen=True)
class Difference:
    """``ratio`` is the second side over the first, with an interval; ``p`` that of a test for no difference.

    ``basis`` says what the interval is of: ``sessions`` (95 %), or ``launches`` (from the worst to the best pair of
    launches; None with fewer than :data:`ENOUGH` on a side). ``visible`` is the smallest ratio above 1 that would have
    been claimed with a probability of one half; None where none would.
    """

    ratio: float
    low: float | None
    high: float | None
    p: float
    basis: Literal["sessions", "launches"]
    visible: float | None


def compare(
    first: Sequence[Sequence[float]], second: Sequence[Sequence[float]], step: float = 0.0, tests: int = 1
) -> Difference:
    """The difference between two sides, each with the figures of its launches by session; all figures above 0.

    ``step`` is the last decimal place that the figures were given in (0: unknown). A figure may be off by half of it,
    and all of a side alike: so much is no difference. ``tests`` is how many comparisons are judged together.
    """
    sides = [np.log([float(np.median(session)) for session in side]) for side in (first, second)]
    shift = float(sides[1].mean() - sides[0].mean())
    halves = [step / 2 / math.exp(float(side.mean())) for side in sides]
    if min(len(side) for side in sides) < ENOUGH:
        return of_launches(shift, first, second, sum(halves), tests)
    floors = [max(FLOOR, half) for half in halves]
    errors = [max(float(side.var(ddof=1)), floor**2) / len(side) for side, floor in zip(sides, floors, strict=True)]
    error = math.sqrt(sum(errors))
    freedom = sum(errors) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(errors, sides, strict=True))
    freedom = min(freedom, 2 * min(len(side) - 1 for side in sides))
    reach, seen = (float(-special.stdtrit(freedom, ERROR / 2 / many)) * error + sum(halves) for many in (1, tests))
    p = 2 * float(special.stdtr(freedom, -max(abs(shift) - sum(halves), 0.0) / error))
    ratio, low, high = (math.exp(value) for value in (shift, shift - reach, shift + reach))
    return Difference(ratio, low, high, p, "sessions", math.exp(min(seen, 50.0)))


def exceeds_sessions(ratio: float) -> bool:
    """Whether ``ratio`` is farther from 1 than sessions may differ without a cause (:data:`ALLOWANCE`)."""
    return abs(math.log(ratio)) > math.log1p(ALLOWANCE)


def of_launches(
    shift: float, first: Sequence[Sequence[float]], second: Sequence[Sequence[float]], rounding: float, tests: int
) -> Difference:
    """A difference (``shift``: of logarithms) where the sessions are too few; its p is the larger one of two tests.

    One asks the launches alone (rank sum, exact). The other takes sessions to differ by :data:`SESSIONS`, beside what
    their launches differ by: it is an assumption, because one session cannot show how sessions differ.
    """
    one, other = (
        np.concatenate([np.asarray(session, dtype=np.float64) for session in side]) for side in (first, second)
    )
    ratio, least = math.exp(shift), min(one.size, other.size)
    if least < ENOUGH:
        return Difference(ratio, None, None, 1.0, "launches", None)
    low, high = rank_sum.ratios(list(other), list(one), 0)
    ranked = 2 * min(rank_sum.p_not_larger(one, other), rank_sum.p_not_larger(other, one))
    error = math.sqrt(_error(first) + _error(second))
    apart = 2 * float(special.ndtr(-max(abs(shift) - rounding, 0.0) / error))
    visible = None
    place = rank_sum.critical(one.size, other.size, ERROR / 2 / tests)
    if place >= 0:
        lower, upper = rank_sum.ratios(list(other), list(one), place)
        seen = math.exp(float(-special.ndtri(ERROR / 2 / tests)) * error + rounding)
        visible = max(seen, upper / ratio, ratio / lower)
    return Difference(ratio, low, high, min(1.0, max(ranked, apart)), "launches", visible)


def _error(side: Sequence[Sequence[float]]) -> float:
    """Variance of the mean of a side's session medians (logarithms), where sessions differ by :data:`SESSIONS`.

    How sessions of three and more differ is measured too, and the larger one counts.
    """
    logs = [np.log(session) for session in side]
    medians = np.array([float(np.median(session)) for session in logs])
    count, launches = len(logs), sum(map(len, logs))
    if count >= ENOUGH:
        return max(float(medians.var(ddof=1)), SESSIONS**2) / count
    within: Floats = np.concatenate([session - middle for session, middle in zip(logs, medians, strict=True)])
    return SESSIONS**2 / count + OF_MEDIAN * float(within @ within) / (launches - count) / launches
