"""Change points of one series, every point judged with only the points up to it.

The method is E-divisive (Matteson and James, arXiv:1306.4933) on the logarithms, with the significance of a split
from a t-test, as Hunter does it (Fleming et al., arXiv:2301.03034), hardened where streaming use raises false alarms:

- a single-point spike is clipped towards its neighbours before means and variances are taken;
- the variance is inflated by the autocorrelation of the series, so that a slow wave is not a step;
- the change must be as large as ``min_effect`` in medians, and in means with what the digits of the values hide
  (:mod:`plumbline.statistics.basic`), and must have lasted: at least ``persist`` points lie
  beyond half the change, and of the newest ``persist`` points at most one in five does not.

After an alarm the series begins at the change. All arithmetic is on logarithms: scaling a series or reversing its
direction changes nothing.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plumbline.base.errors import PlumbError
from plumbline.statistics import Floats, basic, special

#: a spike may exceed its four neighbours by the smallest effect and this many standard deviations; the rest is clipped
SPIKE = 3.0
#: how much smaller than the smallest effect a change may be estimated and still count, as a fraction of it
ALLOWANCE = 0.2
#: standard error of a median over that of a mean
OF_MEDIAN = 1.2533
#: how much too low the autocorrelation comes out, as a multiple of what it would be with known means: one part of it
#: is for each of the two means that are fitted, one for the place, chosen where it explains most. Tried against series
#: of slow waves (tests/rates/changes.py)
BIAS = 3
#: normal quantile of the 99 % probability that ``smallest_visible`` promises
CERTAIN = 2.3263


@dataclass(frozen=True)
class Settings:
    """The settings of a change. ``min_effect`` is relative (0.05: slower or faster by a factor of 1.05).

    Raises :class:`PlumbError` for a ``min_effect`` that is not above 0 and below 10, or a ``persist`` not from 1 to 20.
    """

    min_effect: float = 0.05
    #: points that a change must have lasted
    persist: int = 5
    #: two-sided significance of the split
    p_value: float = 1e-6
    #: points before the change at least
    baseline: int = 10
    #: newest points that are looked at
    window: int = 60

    def __post_init__(self) -> None:
        if not 0 < self.min_effect < 10:
            raise PlumbError(f"minimum effect {self.min_effect:g} is not a fraction", "history", "such as 0.05")
        if not 1 <= self.persist <= 20:
            raise PlumbError(f"a change cannot be asked to persist {self.persist} points", "history", "1 to 20")

    @property
    def effect(self) -> float:
        """The smallest change, as a difference of logarithms."""
        return math.log1p(self.min_effect)


@dataclass(frozen=True)
class Change:
    """A change: positions are counted from 0. ``ratio`` is the median after over the median before."""

    index: int
    seen_at: int
    ratio: float


@dataclass(frozen=True)
class Course:
    """The course of a series: its changes, and how small a change could have been seen at its end.

    ``smallest_visible`` is the slowdown (0.06: takes 1.06 times as long) that would raise an alarm within
    2 x ``persist`` points with 99 % probability, None while the points since the last change are too few to say.
    """

    changes: tuple[Change, ...]
    smallest_visible: float | None


def follow(values: Sequence[float] | NDArray[Any], settings: Settings | None = None, step: float = 0.0) -> Course:
    """Judge the positive, finite ``values``, known in steps of ``step``, one after the other, each with those up to it.

    Raises :class:`PlumbError` for other values.
    """
    settings = settings or Settings()
    raw = np.asarray(values, dtype=np.float64)
    if raw.ndim != 1 or not np.all(np.isfinite(raw)) or not np.all(raw > 0):
        raise PlumbError("a series must consist of positive, finite numbers", "history", "leave out what is not")
    logs = np.log(raw)
    changes: list[Change] = []
    begin, after = 0, -1
    while (change := _first_change(logs, begin, after, settings, step)) is not None:
        changes.append(change)
        begin, after = change.index, change.seen_at
    return Course(tuple(changes), _smallest_visible(logs[begin:][-settings.window :], settings, step))


def _first_change(logs: Floats, begin: int, after: int, settings: Settings, step: float) -> Change | None:
    """The first alarm of a look later than ``after`` at the series from ``begin`` on."""
    for look in _screen(logs, begin, settings):
        if look <= after:
            continue
        start = max(begin, look + 1 - settings.window)
        seen = logs[start : look + 1]
        at = split(seen, settings, step)
        if at is not None:
            shift = float(np.median(seen[at:]) - np.median(seen[:at]))
            return Change(int(start) + at, int(look), math.exp(shift))
    return None


def _screen(logs: Floats, begin: int, settings: Settings) -> NDArray[np.intp]:
    """The looks that need the full test: the newest points' median is half an effect or more off that of those before.

    This is part of the method, and what makes it fast: it is worked out for all looks at once.
    """
    persist = settings.persist
    series = logs[begin:]
    looks = np.arange(settings.baseline + persist - 1, len(series))
    if len(looks) == 0:
        return looks
    width = settings.window - persist
    padded = np.concatenate([np.full(width, np.inf), series])
    # row k: the points before the newest `persist` ones of look k, infinities where the series had not begun
    before = np.sort(np.lib.stride_tricks.sliding_window_view(padded, width)[looks - persist + 1], axis=1)
    count = np.minimum(looks - persist + 1, width)
    rows = np.arange(len(looks))
    middle = (before[rows, (count - 1) // 2] + before[rows, count // 2]) / 2
    newest = np.median(np.lib.stride_tricks.sliding_window_view(series, persist)[looks - persist + 1], axis=1)
    return begin + looks[np.abs(newest - middle) >= settings.effect / 2]


def split(logs: Floats, settings: Settings, step: float = 0.0) -> int | None:
    """Where ``logs`` divides into a before and an after that lasts until its end; None if it does not.

    The strongest split decides whether there is any. If it is too small or over again, what came after
    it is looked at alone.
    """
    first, last = settings.baseline, len(logs) - settings.persist
    if last < first:
        return None
    clean = despike(logs, settings)
    statistic = energy(clean)
    at = first + int(np.argmax(statistic[first : last + 1]))
    if at == last and statistic[last + 1 :].max(initial=-np.inf) > statistic[last]:
        return None  # it began later than that: it has not lasted yet
    before, after = clean[:at], clean[at:]
    noise = _noise(np.concatenate([before - before.mean(), after - after.mean()]), 2)
    shift = abs(float(after.mean() - before.mean()))
    if shift <= _critical(noise.freedom, settings.p_value) * noise.error(at, len(after)):
        return None
    # the digits of the values may have made a change of their medians; their means show more of it
    if _lasting(logs, at, noise, settings) and (
        step <= 0
        or shift - basic.hidden(np.exp(before), np.exp(after), (step, step)) >= (1 - ALLOWANCE) * settings.effect
    ):
        return at
    deeper = split(logs[at:], settings, step)
    return None if deeper is None else at + deeper


def energy(logs: Floats) -> Floats:
    """E-divisive's statistic of every split of ``logs``; element t is for a right side that begins at t.

    n m / (n + m) x (2 x mean distance between the sides - mean distance within the left - within the right); sides of
    one point have no distance within. Element 0 (no left side) is minus infinity.
    """
    size = len(logs)
    distance = np.triu(np.abs(logs[:, None] - logs[None, :]), 1)
    left = np.concatenate([[0.0], np.cumsum(distance.sum(axis=0))[:-1]])  # pairs within the points before t
    right = np.cumsum(distance.sum(axis=1)[::-1])[::-1]  # pairs within the points from t on
    between = left[-1] + distance[:, -1].sum() - left - right
    n = np.arange(size, dtype=np.float64)
    m = size - n
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_left = left / np.maximum(n * (n - 1) / 2, 1)
        mean_right = right / np.maximum(m * (m - 1) / 2, 1)
        statistic = n * m / size * (2 * between / (n * m) - mean_left - mean_right)
    statistic[0] = -np.inf
    return np.asarray(statistic, dtype=np.float64)


def despike(logs: Floats, settings: Settings) -> Floats:
    """``logs`` with every single-point spike clipped to its neighbours (two on each side) and a margin.

    The margin is one effect and :data:`SPIKE` standard deviations: points that now and then are off by as much as an
    effect are the series' own noise and count as such, larger ones count as that much. The last two points have no
    two neighbours after them and stay as they are, as do the first two. The first point of a step stays too: its
    later neighbours are as high.
    """
    if len(logs) < 5:
        return logs
    noise = basic.spread_of_differences(logs)
    neighbours = np.stack([logs[:-4], logs[1:-3], logs[3:-1], logs[4:]])
    margin = settings.effect + SPIKE * noise
    clean = logs.copy()
    clean[2:-2] = np.clip(logs[2:-2], neighbours.min(axis=0) - margin, neighbours.max(axis=0) + margin)
    return clean


@dataclass(frozen=True)
class _Noise:
    """Variance of the points about their means, its degrees of freedom, and the factor for autocorrelation."""

    variance: float
    freedom: int
    inflation: float

    def error(self, left: int, right: int) -> float:
        """Standard error of the difference of two means of this many points."""
        return math.sqrt(self.variance * self.inflation * (1 / left + 1 / right))


def _noise(residuals: Floats, fitted: int) -> _Noise:
    """The noise of ``residuals`` after ``fitted`` means."""
    size = len(residuals)
    squares = float(residuals @ residuals)
    if squares <= 0:
        return _Noise(0.0, size - fitted, 1.0)
    lag = float(residuals[:-1] @ residuals[1:]) / squares
    lag = min(max(lag + BIAS * (1 + 3 * lag) / size, 0.0), 0.95)
    return _Noise(squares / (size - fitted), size - fitted, (1 + lag) / (1 - lag))


@functools.cache
def _critical(freedom: int, p_value: float) -> float:
    """The quantile of Student's t that a two-sided test at ``p_value`` needs."""
    return float(-special.stdtrit(freedom, p_value / 2))


def _lasting(logs: Floats, at: int, noise: _Noise, settings: Settings) -> bool:
    """Whether the change is large enough in medians, and the newest points still show it.

    Large enough means not smaller than ``min_effect`` by more than the error of the estimate: without that allowance
    every second change of exactly ``min_effect`` would be missed. It is :data:`ALLOWANCE` of the effect at most, and
    shrinks with the autocorrelation, because waves make estimates that are too large.
    """
    before = float(np.median(logs[:at]))
    shift = float(np.median(logs[at:])) - before
    error = OF_MEDIAN * noise.error(at, len(logs) - at)
    if abs(shift) < settings.effect - min(error, ALLOWANCE * settings.effect) / noise.inflation:
        return False
    changed = (logs[at:] - before) / shift >= 0.5
    enough = int(np.count_nonzero(changed)) >= settings.persist
    return enough and int(np.count_nonzero(~changed[-settings.persist :])) <= settings.persist // 5


def _smallest_visible(logs: Floats, settings: Settings, step: float) -> float | None:
    """The smallest slowdown that :class:`Course` reports as visible; ``logs`` are the points since the last change.

    The larger of what the t-test needs and of what the threshold on the medians needs, each with room for the error of
    the estimate at 99 %, for 2 x ``persist`` points after the change.
    """
    if len(logs) < settings.baseline:
        return None
    clean = despike(logs, settings)
    after = 2 * settings.persist
    before = min(len(logs), settings.window - after)
    error = _noise(clean - clean.mean(), 1).error(before, after)
    tested = (_critical(before + after - 2, settings.p_value) + CERTAIN) * error
    large = settings.effect + CERTAIN * OF_MEDIAN * error + basic.hidden(np.exp(clean), np.exp(clean), (step, step))
    return math.expm1(max(tested, large))
