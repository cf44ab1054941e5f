"""Samples that were not taken in pairs: the rank-sum test, two sides of sessions, and the best of each side.

The rank-sum test is one-sided and exact for small samples (Mann and Whitney, Ann. Math. Stat. 18 (1947) 50);
scipy.stats.mannwhitneyu has no critical values, and no exact p with ties.

Of two sides the session is the unit (:func:`compare`). Launches of one session share the conditions of that session, so
that many launches of one session are still one observation. Welch's t-test (Biometrika 34 (1947) 28) compares the
sessions' medians (logarithms). Its degrees of freedom are for normal noise: with tails and sides of unequal size they
are too many, so that they are no more than two sides of the smaller one's size have. One or two sessions say too little
about how sessions differ, and are compared by :func:`of_launches`, which is weaker and says so. Launches of both sides
that were measured in turn in one session are pairs, and :func:`of_pairs` takes them as such.

The best of some things is chosen partly by chance, and :func:`best_ratio` allows for the choice. Of groups with centres
a_1 … a_m and b_1 … b_n the ratio of the largest ones is max_i min_j a_i / b_j. Bounds of each a_i / b_j, from the
rank-sum test inverted, give max_i min_j of the lower ones, which is too high only if one of the m bounds against the
best b is, and max_i min_j of the upper ones, which is too low only if one of the n bounds of the best a is. So the
errors of one side are shared by m, those of the other by n bounds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from plumbline.statistics import Floats, basic, special

#: the distribution is exact where the smaller side has no more values than this
EXACT = 20


def p_not_larger(sample: Floats, pool: Floats) -> float:
    """One-sided p of "``sample`` is not larger than ``pool``"; ties count against the rejection."""
    return tail(sample.size, pool.size, int((pool.size - np.searchsorted(np.sort(pool), sample, side="left")).sum()))


def tail(m: int, n: int, u: int) -> float:
    """``P(U <= u)`` of the Mann-Whitney statistic of ``m`` and ``n`` values without ties.

    Exact where the smaller side has at most :data:`EXACT` values: the counts are coefficients of the Gaussian binomial
    (m+n over m), built one factor at a time. Beyond, the normal approximation, whose tails are the heavier ones. Above
    the middle, where nothing is significant, 1 is returned.
    """
    if u >= m * n // 2:
        return 1.0
    if min(m, n) > EXACT:
        return float(special.ndtr((u + 0.5 - m * n / 2) / math.sqrt(m * n * (m + n + 1) / 12)))
    return min(1.0, float(_shares(m, n)[u])) if u >= 0 else 0.0


@functools.lru_cache(maxsize=256)
def critical(m: int, n: int, error: float) -> int:
    """The largest u with ``P(U <= u) <= error``; -1 if even the clearest order of the values is not evidence."""
    if m < 1 or n < 1:
        return -1
    if min(m, n) > EXACT:
        deviate = float(special.ndtri(error)) * math.sqrt(m * n * (m + n + 1) / 12)
        return max(math.floor(m * n / 2 + deviate - 0.5), -1)
    return int(np.searchsorted(_shares(m, n), error, side="right")) - 1


def ratios(
    numerator: Sequence[float] | Floats, denominator: Sequence[float] | Floats, place: int
) -> tuple[float, float]:
    """The ``place``-th smallest and largest of all ratios of values, ``numerator`` to ``denominator``; counted from 0.

    With ``place`` from :func:`critical` they bound the ratio of the centres, each wrong with that error (Hodges and
    Lehmann, Ann. Math. Stat. 34 (1963) 598). Place 0 is from the worst to the best pair.
    """
    ordered = np.sort(np.divide.outer(np.asarray(numerator, dtype=np.float64), np.asarray(denominator)), axis=None)
    return float(ordered[place]), float(ordered[-1 - place])


@functools.lru_cache(maxsize=64)
def _shares(m: int, n: int) -> Floats:
    """``P(U <= u)`` for u below the middle."""
    m, n = min(m, n), max(m, n)
    size = max(m * n // 2, 1)
    counts = np.zeros(size)
    counts[0] = 1.0
    for factor in range(1, m + 1):
        if n + factor < size:
            shifted = counts.copy()
            shifted[n + factor :] -= counts[: size - n - factor]
            counts = shifted
        padded = np.zeros(-(-size // factor) * factor)
        padded[:size] = counts
        counts = np.cumsum(padded.reshape(-1, factor), axis=0).ravel()[:size]
    return np.asarray(np.cumsum(np.maximum(counts, 0.0)) / math.comb(m + n, m), dtype=np.float64)


#: error of an interval (0.05: it is a 95 % interval), and family-wise error of what is claimed
ERROR = 0.05
#: no two sessions are taken to agree better than this (standard deviation of logarithms)
FLOOR = 0.003
#: sessions on each side that the t-test needs, and launches on each side without which nothing is claimed
ENOUGH = 3
#: where the sessions are too few to show it: how much they are taken to differ (standard deviation of logarithms), if
#: nothing is known of their machine
SESSIONS = 0.15
#: the same of sessions of one campaign, where the claim is a remark
OF_A_CAMPAIGN = 0.05
#: ... and what two single sessions do not differ by without a cause, in standard deviations of their difference
APART = 3.2
#: the ratio above 1 that single sessions of a campaign do not reach without a cause
ALLOWED = math.exp(APART * math.sqrt(2) * OF_A_CAMPAIGN)
#: so many series, each of so many sessions, tell how much sessions of a machine differ
LEARNT_FROM, LEARNT_SESSIONS = 5, 5
#: of these series, the share that differ by less than what is learnt
LEARNT_SHARE = 0.9
#: variance of a median over that of a mean
OF_MEDIAN = math.pi / 2


@dataclass(frozen=True)
class Difference:
    """``ratio`` is the second side over the first, with an interval; ``p`` that of a test for no difference.

    ``basis`` says what the interval is of: ``sessions`` (95 %), ``pairs`` measured in turn (95 %), or ``launches``
    (from the worst to the best pair of launches; None with fewer than :data:`ENOUGH` on a side). ``visible`` is the
    smallest ratio above 1 that would have been claimed with a probability of one half; None where none would.
    """

    ratio: float
    low: float | None
    high: float | None
    p: float
    basis: Literal["sessions", "launches", "pairs"]
    visible: float | None


def session_spread(series: Iterable[Sequence[float]]) -> float:
    """How much two sessions of a machine differ without a cause: a standard deviation of logarithms.

    ``series`` have the value of each session, all above 0, of one figure each. It is what nine in ten of them with
    :data:`LEARNT_SESSIONS` sessions and more do not exceed; :data:`SESSIONS` where these are too few.
    """
    known = [float(np.std(np.log(values), ddof=1)) for values in series if len(values) >= LEARNT_SESSIONS]
    return SESSIONS if len(known) < LEARNT_FROM else max(FLOOR, float(np.quantile(known, LEARNT_SHARE)))


def compare(
    first: Sequence[Sequence[float]],
    second: Sequence[Sequence[float]],
    steps: tuple[float, float] = (0.0, 0.0),
    tests: int = 1,
    spread: float = SESSIONS,
    pairs: Sequence[float] = (),
) -> Difference:
    """The difference between two sides, each with the figures of its launches by session; all figures above 0.

    ``steps`` say how finely the figures of each side are known (0: unknown). A figure may be off by half a step of its
    side, and all of a side alike: this is not a difference. ``tests`` is how many comparisons are judged together,
    ``spread`` how much sessions of the machine differ (:func:`session_spread`). ``pairs`` are the ratios (logarithms)
    of launches that were measured in turn; with few sessions the clearer one of two tests counts, twice its p.
    """
    sides = [np.log([float(np.median(session)) for session in side]) for side in (first, second)]
    shift = float(sides[1].mean() - sides[0].mean())
    halves = [basic.half(math.exp(float(side.mean())), step) for side, step in zip(sides, steps, strict=True)]
    if min(len(side) for side in sides) < ENOUGH:
        by_launch = of_launches(shift, first, second, sum(halves), tests, spread)
        if len(pairs) < ENOUGH:
            return by_launch
        clearer = min(of_pairs(pairs, sum(halves), tests), by_launch, key=lambda difference: difference.p)
        return replace(clearer, p=min(1.0, 2 * clearer.p))
    floors = [max(FLOOR, half) for half in halves]
    errors = [max(float(side.var(ddof=1)), floor**2) / len(side) for side, floor in zip(sides, floors, strict=True)]
    error = math.sqrt(sum(errors))
    freedom = sum(errors) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(errors, sides, strict=True))
    freedom = min(freedom, 2 * min(len(side) - 1 for side in sides))
    return _by_t("sessions", shift, error, freedom, sum(halves), tests)


def _by_t(
    basis: Literal["sessions", "pairs"], shift: float, error: float, freedom: float, rounding: float, tests: int
) -> Difference:
    """A difference (``shift``: of logarithms) with its standard ``error``, by Student's t-test."""
    reach, seen = (float(-special.stdtrit(freedom, ERROR / 2 / many)) * error + rounding for many in (1, tests))
    p = 2 * float(special.stdtr(freedom, -max(abs(shift) - rounding, 0.0) / error))
    ratio, low, high = (math.exp(value) for value in (shift, shift - reach, shift + reach))
    return Difference(ratio, low, high, p, basis, math.exp(min(seen, 50.0)))


def exceeds_sessions(ratio: float) -> bool:
    """Whether ``ratio`` is farther from 1 than sessions of a campaign may differ without a cause."""
    return abs(math.log(ratio)) > math.log(ALLOWED)


def of_pairs(pairs: Sequence[float], rounding: float, tests: int) -> Difference:
    """A difference by launches that were measured in turn: Student's t-test of their ratios (logarithms).

    Beside the scatter of these, the sides are taken to differ as sessions do that agree best.
    """
    logs = np.asarray(pairs)
    error = math.sqrt(float(logs.var(ddof=1)) / logs.size + 2 * FLOOR**2)
    return _by_t("pairs", float(logs.mean()), error, logs.size - 1, rounding, tests)


def of_launches(
    shift: float,
    first: Sequence[Sequence[float]],
    second: Sequence[Sequence[float]],
    rounding: float,
    tests: int,
    spread: float,
) -> Difference:
    """A difference (``shift``: of logarithms) where the sessions are too few: one cannot show how sessions differ.

    They are taken to differ by ``spread``, beside what their launches differ by. The launches must differ, too (rank
    sum, exact); so few that they cannot show it count if even the nearest two are as far apart as sessions are not.
    """
    first_values, second_values = (
        np.concatenate([np.asarray(session, dtype=np.float64) for session in side]) for side in (first, second)
    )
    ratio, least = math.exp(shift), min(first_values.size, second_values.size)
    if least < ENOUGH:
        return Difference(ratio, None, None, 1.0, "launches", None)
    low, high = (
        value * math.exp(sign * rounding)
        for value, sign in zip(ratios(second_values, first_values, 0), (-1, 1), strict=True)
    )
    ranked = 2 * min(p_not_larger(first_values, second_values), p_not_larger(second_values, first_values))
    variance = _error(first, spread) + _error(second, spread)
    # three launches show little of how launches differ: what they show of it counts twice for the nearest two
    error, of_nearest = math.sqrt(variance), math.sqrt(2 * variance - spread**2 * (1 / len(first) + 1 / len(second)))
    gap = math.log(low) if shift > 0 else -math.log(high)
    apart, clear = (
        2 * float(special.ndtr(-max(size, 0.0) / deviation))
        for size, deviation in ((abs(shift) - rounding, error), (gap, of_nearest))
    )
    quantile = float(-special.ndtri(ERROR / 2 / tests))
    seen, visible = math.exp(quantile * error), math.exp(quantile * of_nearest) * max(high / ratio, ratio / low)
    place = critical(first_values.size, second_values.size, ERROR / 2 / tests)
    if place >= 0:
        lower, upper = ratios(second_values, first_values, place)
        visible = min(visible, math.exp(rounding) * max(seen, upper / ratio, ratio / lower))
    return Difference(ratio, low, high, min(1.0, max(ranked, apart), clear), "launches", visible)


def _error(side: Sequence[Sequence[float]], spread: float) -> float:
    """Variance of the mean of a side's session medians (logarithms), where sessions differ by ``spread``.

    How sessions of three and more differ is measured too, and the larger one counts.
    """
    logs = [np.log(session) for session in side]
    medians = np.array([float(np.median(session)) for session in logs])
    count, launches = len(logs), sum(map(len, logs))
    if count >= ENOUGH:
        return max(float(medians.var(ddof=1)), spread**2) / count
    within: Floats = np.concatenate([session - middle for session, middle in zip(logs, medians, strict=True)])
    return spread**2 / count + OF_MEDIAN * float(within @ within) / (launches - count) / launches


#: the largest number of values of each that is asked for
_MOST = 100


def best_ratio(
    first: Sequence[Sequence[float]], second: Sequence[Sequence[float]], error: float = ERROR
) -> tuple[float, float]:
    """Interval of (largest centre of ``first``) / (largest of ``second``), wrong with probability ``error`` at most.

    Each element has the positive values of one thing; larger values are better. The bounds are 0 and infinity where
    there are too few values for one.
    """
    below, above = error / 2 / len(first), error / 2 / len(second)
    return (
        max(min(_ratio_bounds(mine, rival, below)[0] for rival in second) for mine in first),
        max(min(_ratio_bounds(mine, rival, above)[1] for rival in second) for mine in first),
    )


def values_needed(first: int, second: int, error: float = ERROR) -> int:
    """How many values of each thing :func:`best_ratio` needs for both bounds; :data:`_MOST` if fewer do not suffice."""
    least = error / 2 / max(first, second)
    return next((count for count in range(2, _MOST) if critical(count, count, least) >= 0), _MOST)


def _ratio_bounds(numerator: Sequence[float], denominator: Sequence[float], error: float) -> tuple[float, float]:
    """Of the ratio of two centres, each bound wrong with probability ``error``."""
    place = critical(len(numerator), len(denominator), error)
    return ratios(numerator, denominator, place) if place >= 0 else (0.0, math.inf)
