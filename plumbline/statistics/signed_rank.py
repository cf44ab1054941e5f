"""The one-sided signed-rank test and its inversion to bounds, for many series at once, exact with ties.

Values are whole numbers, so that ties and zeros are exact. Ties are broken against the rejection: of equal distances
the ones that speak for the hypothesis get the higher ranks, and a zero speaks for it too. The statistic is then never
nearer to rejection than with ties broken at random, and that has the exact distribution without ties; so the test keeps
its level whatever the rounding. (Midranks give the same statistic wherever tied distances lie on one side, but need a
null distribution per pattern of ties; scipy.stats.wilcoxon has no such guarantee, and tests one sample at a time.)

Source of the test and its inversion: Hodges and Lehmann, Ann. Math. Stat. 34 (1963) 598; Hollander, Wolfe, Chicken,
Nonparametric Statistical Methods, 3.1-3.3.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from plumbline.statistics.arrays import Floats, Ints

#: Walsh averages held at once
_BLOCK = 4_000_000
#: up to so many values the distribution is exact; the normal one beyond it is never on the side of rejection
EXACT = 500
#: beyond so many values each Walsh average is searched for instead of listing all
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
    found = np.empty((len(places), rows))
    block = max(1, _BLOCK // first.size)
    for start in range(0, rows, block):
        part = values[start : start + block]
        averages = np.partition(part[:, first] + part[:, second], wanted, axis=1) / 2
        found[:, start : start + block] = averages[:, list(places)].T
    return found


def _walsh_sum(ordered: Ints, place: int) -> int:
    """The sum of two of the ``ordered`` values (one may be taken twice) that has ``place`` smaller ones."""
    low, high = 2 * int(ordered[0]), 2 * int(ordered[-1])
    while low < high:
        middle = (low + high) // 2
        both_orders = int(np.searchsorted(ordered, middle - ordered, side="right").sum())
        twice = int(np.searchsorted(ordered, middle // 2, side="right"))
        low, high = (middle + 1, high) if (both_orders + twice) // 2 <= place else (low, middle)
    return low
