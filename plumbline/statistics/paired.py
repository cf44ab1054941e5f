"""The paired rule, on arrays: many series are judged at once.

A pair gives one number, the log ratio of candidate to baseline, signed so that positive is slower (or a lower rate). At
13, 19, 27, 38, 50, 65 and 90 pairs the one-sided signed-rank test is asked twice: is "slowdown <= tolerance" rejected
(FAIL), and is "slowdown >= must-detect" rejected (PASS)? The looks spend shares of each error probability, the early
ones more of FAIL's. Where a gain is asked for, "speed-up <= tolerance" is tested as FAIL is, the other way round
(GAIN). Where the number of pairs was fixed before measuring, and so does not depend on their values, one look at all of
them has all of the error (:data:`FIXED`).

Log ratios are whole numbers of 1e-9, so that ties and zeros are exact and a change of units changes nothing. Ties are
broken against the rejection: of equal distances the ones that speak for the hypothesis get the higher ranks, and a zero
speaks for it too. The statistic is then never nearer to rejection than with ties broken at random, and that has the
exact distribution without ties; so the test keeps its level whatever the rounding. (Midranks give the same statistic
wherever tied distances lie on one side, but need a null distribution per pattern of ties; scipy.stats.wilcoxon has no
such guarantee, and tests one sample at a time.)

Source of the test and its inversion: Hodges and Lehmann, Ann. Math. Stat. 34 (1963) 598; Hollander, Wolfe, Chicken,
Nonparametric Statistical Methods, 3.1-3.3.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from plumbline.base.errors import PlumbError
from plumbline.base.units import percent
from plumbline.statistics import Flags, Floats, Ints, basic

#: Walsh averages held at once
_BLOCK = 4_000_000
#: up to this number of values the distribution is exact; the normal one beyond it is never on the side of rejection
EXACT = 500
#: beyond this number of values each Walsh average is searched for instead of listing all
_LISTED = 1000


@functools.cache
def null_cumulative(n: int) -> Floats:
    """``P(W <= w)`` for w = 0 … n(n+1)/2 of the signed-rank sum of ``n`` values without ties, exact up to rounding."""
    mass = np.zeros(n * (n + 1) // 2 + 1)
    mass[0] = 1.0
    for rank in range(1, n + 1):
        shifted = np.zeros_like(mass)
        shifted[rank:] = mass[:-rank]
        mass = (mass + shifted) / 2
    return np.minimum(np.cumsum(mass), 1.0)


def cumulative(n: int, sums: Ints) -> Floats:
    """``P(W <= w)`` for each of ``sums``, by the normal distribution beyond :data:`EXACT` values."""
    if n <= EXACT:
        return np.asarray(null_cumulative(n)[sums])
    null = _normal(n)
    return np.array([null.cdf(float(w) + 0.5) for w in sums])


def critical(n: int, error: float) -> int:
    """The largest w with ``P(W <= w) <= error`` for ``n`` values; -1 if there is none."""
    if n > EXACT:
        return math.floor(_normal(n).inv_cdf(error) - 0.5)
    return int(np.searchsorted(null_cumulative(n), error, side="right")) - 1


def _normal(n: int) -> NormalDist:
    """Mean and variance are those of W; the tails of W are lighter."""
    return NormalDist(n * (n + 1) / 4, math.sqrt(n * (n + 1) * (2 * n + 1) / 24))


def rank_sum(values: Ints) -> Ints:
    """Per row, the rank sum of those >= 0, with ties and zeros counted in their favour (so never too small).

    Equals the number of pairs i <= j whose sum is >= 0, which is why the test can be inverted with Walsh averages.
    """
    ordered = np.sort(values, axis=1)  # of equal distances the negative comes first, so has the lower rank
    ranks = np.argsort(np.abs(ordered), axis=1, kind="stable")
    favourable = np.take_along_axis(ordered, ranks, axis=1) >= 0
    return np.asarray(favourable @ np.arange(1, values.shape[1] + 1), dtype=np.int64)


def walsh_averages(values: Ints, places: Sequence[int]) -> Floats:
    """Of each row's n(n+1)/2 ordered Walsh averages those at ``places`` (from 0): shape (places, rows).

    The middle ones are the Hodges-Lehmann estimate. The one at :func:`critical` ``(n, error)`` is the lower bound that
    the row's centre exceeds with probability 1 - ``error``, the one as far from the other end the upper bound.
    """
    rows, n = values.shape
    if n > _LISTED:
        ordered = np.sort(values, axis=1)
        return np.array([[_walsh_sum(row, place) / 2 for row in ordered] for place in places])
    first, second = np.triu_indices(n)
    wanted = sorted(set(places))
    selected = np.empty((len(places), rows))
    block = max(1, _BLOCK // first.size)
    for start in range(0, rows, block):
        part = values[start : start + block]
        averages = np.partition(part[:, first] + part[:, second], wanted, axis=1) / 2
        selected[:, start : start + block] = averages[:, list(places)].T
    return selected


def _walsh_sum(ordered: Ints, place: int) -> int:
    """The sum of two of the ``ordered`` values (one may be taken twice) that has ``place`` smaller ones."""
    low = 2 * int(ordered[0])

    def no_larger(total: int) -> int:
        both_orders = int(np.searchsorted(ordered, total - ordered, side="right").sum())
        return (both_orders + int(np.searchsorted(ordered, total // 2, side="right"))) // 2

    return low + bisect.bisect_right(range(low, 2 * int(ordered[-1])), place, key=no_larger)


#: numbers of pairs at which a series is looked at
LOOKS = (13, 19, 27, 38, 50, 65, 90)
CAP = LOOKS[-1]


@dataclass(frozen=True)
class Spending:
    """An error probability over all looks, and the percent of it that each look may spend (they add up to 100).

    Errors of the looks add up to ``error`` at most, whatever their dependence (Bonferroni).
    """

    error: float
    percents: tuple[int, ...]

    def share(self, n: int) -> float:
        """The share of the look at ``n`` pairs; for ``n`` between two looks, that of the later one."""
        return self.percents[bisect.bisect_left(LOOKS, n)] / 100

    def at(self, n: int) -> float:
        """The error probability of a look at ``n`` pairs."""
        return self.error * self.share(n)


#: probability of FAIL at a slowdown equal to the tolerance, and of PASS at one equal to must-detect. The shares were
#: chosen for few pairs at 2 % noise (tests/rates/simulate.py measures them); late looks of PASS are for noisy series
FAIL_SPENDING = Spending(0.001, (25, 17, 23, 10, 5, 5, 15))
PASS_SPENDING = Spending(0.01, (18, 12, 24, 8, 4, 4, 30))
#: as many series that go on like an undecided one are drawn: 3 in 300 are the least that 95 % do not rule out
CONTINUATIONS, _FIRST = 300, 10
#: log ratios are counted in units of 1e-9
SCALE = 1e9

GO_ON, PASS, FAIL, GAIN = 0, 1, 2, 3


@dataclass(frozen=True)
class Errors:
    """Error probabilities of one look: of FAIL at a slowdown equal to the tolerance, of PASS at must-detect."""

    failing: float
    passing: float


#: of the one look at all pairs, where their number was fixed before measuring
FIXED = Errors(FAIL_SPENDING.error, PASS_SPENDING.error)


def errors_at(n: int) -> Errors:
    """The error probabilities of the look at ``n`` pairs."""
    return Errors(FAIL_SPENDING.at(n), PASS_SPENDING.at(n))


@dataclass(frozen=True)
class PairedRule:
    """Margins as fractions: 0.01 is 1 % more time, or a rate divided by 1.01. ``gain``: whether a GAIN is asked for.

    Raises :class:`PlumbError` for a must-detect that is not above the tolerance.
    """

    tolerance: float = 0.01
    must_detect: float = 0.05
    gain: bool = False

    def __post_init__(self) -> None:
        if self.must_detect - self.tolerance < 1e-6:
            raise PlumbError(
                f"tolerance {self.tolerance:g}, must-detect {self.must_detect:g}",
                "plumb gate",
                "must-detect has to be the larger one",
            )

    def __str__(self) -> str:
        return f"{percent(self.tolerance)} tolerated, {percent(self.must_detect)} must be seen"

    @property
    def tolerated(self) -> int:
        """The tolerance as a log ratio in 1e-9."""
        return round(math.log1p(self.tolerance) * SCALE)

    @property
    def detected(self) -> int:
        """Must-detect as a log ratio in 1e-9."""
        return round(math.log1p(self.must_detect) * SCALE)


@dataclass(frozen=True)
class Decisions:
    """One element per series: what was decided, and with how many pairs (all there were, up to 90, if undecided)."""

    state: Ints
    pairs: Ints


@dataclass(frozen=True)
class Estimates:
    """Estimates for a group of series with equally many pairs; log ratios in 1e-9, positive is slower.

    ``low`` and ``high`` are one-sided bounds. Each is wrong with a probability of at most 1 %, whichever look ended the
    series; at a fixed number of pairs, with the error of its one look. ``certain_low`` is a lower bound with the 0.1 %
    of FAIL.
    """

    centre: Floats
    low: Floats
    high: Floats
    certain_low: Floats


def decisions(logs: Ints, counts: Ints, rule: PairedRule, blur: Ints | int = 0) -> Decisions:
    """Apply ``rule`` to the rows of ``logs`` (columns: pairs in the order measured), of which ``counts`` are filled.

    ``blur`` is what rounding alone may have shifted a series by (log ratio in 1e-9): it counts against PASS and against
    FAIL. FAIL goes before PASS: a slowdown between the margins that is certain is a slowdown.
    """
    series = logs.shape[0]
    state = np.full(series, GO_ON, dtype=np.int64)
    pairs = np.minimum(counts, CAP)
    for n in LOOKS:
        rows = np.flatnonzero((state == GO_ON) & (counts >= n))
        if not rows.size:
            continue
        state[rows] = look(logs[rows, :n], rule, np.broadcast_to(blur, series)[rows], errors_at(n))
        pairs[rows[state[rows] != GO_ON]] = n
    return Decisions(state, pairs)


def look(logs: Ints, rule: PairedRule, blur: Ints, errors: Errors) -> Ints:
    """FAIL, GAIN, PASS or GO_ON of each row of ``logs``, all of them filled, in one look that may err by ``errors``."""
    slower = certainly_above(logs, rule.tolerated + blur, errors.failing)
    faster = certainly_below(logs, -rule.tolerated - blur, errors.failing) & rule.gain
    fine = ~slower & certainly_below(logs, rule.detected - blur, errors.passing)
    chosen = np.flatnonzero(fine)
    if chosen.size:  # a PASS states what it would have seen, and that is at most must-detect
        fine[chosen] = detectable(estimate(logs[chosen], errors), blur[chosen]) <= rule.detected
    return np.where(slower, FAIL, np.where(faster, GAIN, np.where(fine, PASS, GO_ON))).astype(np.int64)


@functools.lru_cache(maxsize=10_000)
def is_hopeless(logs: bytes, rule: PairedRule, blur: int) -> bool:
    """Whether fewer than 1 in 100 series that go on like ``logs`` (int64, undecided so far) are decided by :data:`CAP`.

    None of :data:`CONTINUATIONS` is, which says so with 95 %. Each has the pairs so far, and further ones drawn from
    them, shifted together by as much as the mean of the former may be off.
    """
    known = np.frombuffer(logs, dtype=np.int64)
    draw = np.random.default_rng(0)
    further = draw.choice(known, (CONTINUATIONS, CAP - known.size))
    off = draw.normal(0, known.std() / math.sqrt(known.size - 1), (CONTINUATIONS, 1))
    series = np.hstack([np.tile(known, (CONTINUATIONS, 1)), np.rint(further + off).astype(np.int64)])
    parts = (series[:_FIRST], series[_FIRST:])  # of most series the first are enough
    return all((decisions(part, np.full(len(part), CAP), rule, blur).state == GO_ON).all() for part in parts)


def certainly_above(logs: Ints, bounds: Ints, error: float) -> Flags:
    """Whether each row of ``logs`` is slower than its bound (log ratio in 1e-9), wrong with at most ``error``."""
    return np.asarray(rank_sum(bounds[:, None] - logs) <= critical(logs.shape[1], error), dtype=np.bool_)


def certainly_below(logs: Ints, bounds: Ints, error: float) -> Flags:
    """Whether each row of ``logs`` is less slow than its bound (log ratio in 1e-9), wrong with at most ``error``."""
    return certainly_above(-logs, -bounds, error)


def evidence(logs: Ints, rule: PairedRule, blur: Ints | int = 0, fixed: bool = False) -> Floats:
    """p of "slowdown <= tolerance" per row, all of them filled: the smallest p / share of the looks that it reaches.

    Of ``-logs`` it is the p of "speed-up <= tolerance". ``fixed``: there is one look, at all pairs.
    """
    p = np.ones(logs.shape[0])
    size = logs.shape[1]
    for n, share in [(size, 1.0)] if fixed else [(n, FAIL_SPENDING.share(n)) for n in LOOKS if n <= size]:
        p = np.minimum(p, cumulative(n, rank_sum(rule.tolerated + np.reshape(blur, (-1, 1)) - logs[:, :n])) / share)
    return p


def least_pairs(series: int, error: float) -> int:
    """The first look whose FAIL or GAIN can survive Holm's procedure over ``series`` series; ``CAP`` if none can."""
    return next((n for n in LOOKS if 0.5**n / FAIL_SPENDING.share(n) <= error / series), CAP)


def estimate(logs: Ints, errors: Errors | None = None) -> Estimates:
    """Hodges-Lehmann estimate and bounds of the rows of ``logs``, all of them filled (at least one column).

    ``errors`` are those of the look, by default of the sequential one at this number of pairs.
    """
    n = logs.shape[1]
    errors = errors or errors_at(n)
    last = n * (n + 1) // 2 - 1
    outer, certain = max(critical(n, errors.passing), 0), max(critical(n, errors.failing), 0)
    places = (last // 2, (last + 1) // 2, outer, last - outer, certain)
    below, above, low, high, certain_low = walsh_averages(logs, places)
    return Estimates((below + above) / 2, low, high, certain_low)


def detectable(estimates: Estimates, blur: Ints | float = 0) -> Floats:
    """The smallest slowdown (log ratio in 1e-9) that these pairs rule out with 99 %, given their noise and number.

    It is the distance from the estimate to the upper bound, or the upper bound itself where that is more, plus what
    rounding hides. Were the true slowdown this large, pairs that look as good would come up in at most 1 % of series.
    """
    return np.maximum(estimates.high, estimates.high - estimates.centre) + blur


def visible(estimates: Estimates, rule: PairedRule, errors: Errors, blur: Ints | float = 0) -> Floats:
    """The slowdown (log ratio in 1e-9) that would FAIL with about 99 % at these pairs' noise and number.

    Tolerance, plus the distance down to the bound that FAIL needs, plus 99 % of the estimate's own scatter (2.33
    standard errors; one is taken from the distance up to the bound of PASS).
    """
    normal = NormalDist().inv_cdf
    scatter = normal(0.99) / normal(1 - errors.passing) * (estimates.high - estimates.centre)
    return rule.tolerated + (estimates.centre - estimates.certain_low) + scatter + blur


def noise(logs: Ints) -> Floats:
    """Robust standard deviation of the pairs of each row (log ratio in 1e-9).

    Where more than half of the pairs are equal, the ordinary standard deviation.
    """
    robust = basic.spread_of_deviations(logs)
    return np.where(robust > 0, robust, np.std(logs, axis=1))


def fraction(logs: Floats | float) -> Floats:
    """A log ratio in 1e-9 as a fraction: 0.05 for 5 % slower."""
    return np.expm1(np.asarray(logs) / SCALE)


def contradicting(logs: Ints, state: Ints, rule: PairedRule, blur: Ints) -> Ints:
    """Per row of ``logs`` the shortest part that contradicts its ``state``: n for its first n pairs, -n for its last n.

    A verdict is about one slowdown, the same in all pairs. PASS says that it is below must-detect, FAIL that it is
    above the tolerance, GAIN that it is a speed-up above the tolerance. Where the first or the last pairs alone say for
    certain that it is not, something changed meanwhile, and no verdict holds for all. 0 where none does. Parts are as
    long as the looks, and shorter than the row. All parts of a row together find a contradiction by chance with at most
    the error of FAIL, 0.1 %.
    """
    shortest = np.zeros(len(logs), dtype=np.int64)
    for n in (n for n in LOOKS if n < logs.shape[1]):
        error = FAIL_SPENDING.at(n) / 2
        for part, place in ((logs[:, :n], n), (logs[:, -n:], -n)):
            above = (state == PASS) & certainly_above(part, rule.detected + blur, error)
            above |= (state == GAIN) & certainly_above(part, blur - rule.tolerated, error)
            below = (state == FAIL) & certainly_below(part, rule.tolerated - blur, error)
            shortest[(shortest == 0) & (above | below)] = place
    return shortest
