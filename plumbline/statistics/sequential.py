"""The sequential paired rule, on arrays: many series are judged at once.

A pair gives one number, the log ratio of candidate to baseline, signed so that positive is slower (or a lower rate).
At 13, 19, 27, 38, 50, 65 and 90 pairs the one-sided signed-rank test is asked twice: is "slowdown <= tolerance"
rejected (FAIL), and is "slowdown >= must-detect" rejected (PASS)? The looks spend shares of each error probability, the
early ones more of FAIL's. Where a gain is asked for, "speed-up <= tolerance" is tested as FAIL is, the other way round
(GAIN).

Log ratios are whole numbers of 1e-9, so that ties and zeros are exact and a change of units changes nothing.
"""

from __future__ import annotations

import bisect
import functools
import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from plumbline.base.errors import PlumbError
from plumbline.base.units import percent
from plumbline.statistics import scale, signed_rank
from plumbline.statistics.arrays import Flags, Floats, Ints

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
#: log ratios are counted in units of 1e-9
SCALE = 1e9

GO_ON, PASS, FAIL, GAIN = 0, 1, 2, 3


@dataclass(frozen=True)
class Errors:
    """Error probabilities of one look: of FAIL at a slowdown equal to the tolerance, of PASS at must-detect."""

    failing: float
    passing: float


def errors_at(n: int) -> Errors:
    """The error probabilities of the look at ``n`` pairs."""
    return Errors(FAIL_SPENDING.at(n), PASS_SPENDING.at(n))


@dataclass(frozen=True)
class Rule:
    """Margins as fractions: 0.01 is 1 % more time, or a rate divided by 1.01. ``gain``: whether a GAIN is asked for.

    Raises :class:`PlumbError` for margins that are not from 0 to 10, or a must-detect not above the tolerance.
    """

    tolerance: float = 0.01
    must_detect: float = 0.05
    gain: bool = False

    def __post_init__(self) -> None:
        for name, value in (("tolerance", self.tolerance), ("must-detect", self.must_detect)):
            if not math.isfinite(value) or not 0 <= value <= 10:
                raise PlumbError(f"{name} is {value:g}", "plumb gate", "give a fraction, such as 0.05 for 5 %")
        if self.must_detect - self.tolerance < 1e-6:
            cure = "must-detect has to be the larger one"
            raise PlumbError(f"tolerance {self.tolerance:g}, must-detect {self.must_detect:g}", "plumb gate", cure)

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


@functools.cache
def critical(n: int, error: float) -> int:
    """The largest rank sum of ``n`` pairs that is rejected with ``error``; -1 if there is none."""
    return signed_rank.critical(n, error)


def decisions(logs: Ints, counts: Ints, rule: Rule, blur: Ints | None = None) -> Decisions:
    """Apply ``rule`` to the rows of ``logs`` (columns: pairs in the order measured), of which ``counts`` are filled.

    ``blur`` is what rounding alone may have shifted a series by (log ratio in 1e-9): it counts against PASS and against
    FAIL. FAIL goes before PASS: a slowdown between the margins that is certain is a slowdown.
    """
    series = logs.shape[0]
    blur = np.zeros(series, dtype=np.int64) if blur is None else blur
    state = np.full(series, GO_ON, dtype=np.int64)
    pairs = np.minimum(counts, CAP)
    for n in LOOKS:
        rows = np.flatnonzero((state == GO_ON) & (counts >= n))
        if not rows.size:
            continue
        state[rows] = look(logs[rows, :n], rule, blur[rows], errors_at(n))
        pairs[rows[state[rows] != GO_ON]] = n
    return Decisions(state, pairs)


def look(logs: Ints, rule: Rule, blur: Ints, errors: Errors) -> Ints:
    """FAIL, GAIN, PASS or GO_ON of each row of ``logs``, all of them filled, in one look that may err by ``errors``."""
    slower = certainly_above(logs, rule.tolerated + blur, errors.failing)
    faster = certainly_below(logs, -rule.tolerated - blur, errors.failing) & rule.gain
    fine = ~slower & certainly_below(logs, rule.detected - blur, errors.passing)
    chosen = np.flatnonzero(fine)
    if chosen.size:  # a PASS states what it would have seen, and that is at most must-detect
        fine[chosen] = detectable(estimate(logs[chosen], errors), blur[chosen]) <= rule.detected
    return np.where(slower, FAIL, np.where(faster, GAIN, np.where(fine, PASS, GO_ON))).astype(np.int64)


def certainly_above(logs: Ints, bounds: Ints, error: float) -> Flags:
    """Whether each row of ``logs`` is slower than its bound (log ratio in 1e-9), wrong with at most ``error``."""
    sums = signed_rank.rank_sum(bounds[:, None] - logs)
    return np.asarray(sums <= critical(logs.shape[1], error), dtype=np.bool_)


def certainly_below(logs: Ints, bounds: Ints, error: float) -> Flags:
    """Whether each row of ``logs`` is less slow than its bound (log ratio in 1e-9), wrong with at most ``error``."""
    return certainly_above(-logs, -bounds, error)


def evidence(logs: Ints, rule: Rule, blur: Ints | None = None) -> Floats:
    """p of "slowdown <= tolerance" per row, all of them filled: the smallest p / share of the looks that it reaches.

    Of ``-logs`` it is the p of "speed-up <= tolerance".
    """
    blur = np.zeros(logs.shape[0], dtype=np.int64) if blur is None else blur
    p = np.ones(logs.shape[0])
    for n in (n for n in LOOKS if n <= logs.shape[1]):
        sums = signed_rank.rank_sum(rule.tolerated + blur[:, None] - logs[:, :n])
        p = np.minimum(p, signed_rank.cumulative(n, sums) / FAIL_SPENDING.share(n))
    return p


def least_pairs(series: int, error: float) -> int:
    """The first look whose FAIL or GAIN can survive Holm's procedure over ``series`` series; ``CAP`` if none can."""
    possible = (n for n in LOOKS if 0.5**n / FAIL_SPENDING.share(n) <= error / series)
    return next(possible, CAP)


def estimate(logs: Ints, errors: Errors | None = None) -> Estimates:
    """Hodges-Lehmann estimate and bounds of the rows of ``logs``, all of them filled (at least one column).

    ``errors`` are those of the look, by default of the sequential one at so many pairs.
    """
    n = logs.shape[1]
    errors = errors or errors_at(n)
    last = n * (n + 1) // 2 - 1
    outer, certain = max(critical(n, errors.passing), 0), max(critical(n, errors.failing), 0)
    places = (last // 2, (last + 1) // 2, outer, last - outer, certain)
    below, above, low, high, certain_low = signed_rank.walsh_averages(logs, places)
    return Estimates((below + above) / 2, low, high, certain_low)


def detectable(found: Estimates, blur: Ints | float = 0) -> Floats:
    """The smallest slowdown (log ratio in 1e-9) that these pairs rule out with 99 %, given their noise and number.

    It is the distance from the estimate to the upper bound, or the upper bound itself where that is more, plus what
    rounding hides. Were the true slowdown this large, pairs that look as good would come up in at most 1 % of series.
    """
    return np.maximum(found.high, found.high - found.centre) + blur


def visible(found: Estimates, rule: Rule, errors: Errors, blur: Ints | float = 0) -> Floats:
    """The slowdown (log ratio in 1e-9) that would FAIL with about 99 % at these pairs' noise and number.

    Tolerance, plus the distance down to the bound that FAIL needs, plus 99 % of the estimate's own scatter (2.33
    standard errors; one is taken from the distance up to the bound of PASS).
    """
    normal = NormalDist().inv_cdf
    scatter = normal(0.99) / normal(1 - errors.passing) * (found.high - found.centre)
    return rule.tolerated + (found.centre - found.certain_low) + scatter + blur


def noise(logs: Ints) -> Floats:
    """Robust standard deviation of the pairs of each row (log ratio in 1e-9).

    Where more than half of the pairs are equal, the ordinary standard deviation.
    """
    robust = scale.of_deviations(logs)
    return np.where(robust > 0, robust, np.std(logs, axis=1))


def fraction(logs: Floats | float) -> Floats:
    """A log ratio in 1e-9 as a fraction: 0.05 for 5 % slower."""
    return np.expm1(np.asarray(logs) / SCALE)
