"""The one-sided rank-sum test of two samples, exact for small ones (Mann and Whitney, Ann. Math. Stat. 18 (1947) 50).

scipy.stats.mannwhitneyu has no critical values, and no exact p with ties.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from plumbline.statistics.arrays import Floats

#: the distribution is exact where the smaller side has no more values than this
EXACT = 20


def p_not_larger(own: Floats, pool: Floats) -> float:
    """One-sided p of "``own`` is not larger than ``pool``"; ties count against the rejection."""
    ordered = np.sort(pool)
    above = int((pool.size - np.searchsorted(ordered, own, side="left")).sum())
    return tail(own.size, pool.size, above)


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
    """The largest u with ``P(U <= u) <= error``; -1 if even the clearest order of the values is no evidence."""
    if m < 1 or n < 1:
        return -1
    if min(m, n) > EXACT:
        deviate = float(special.ndtri(error)) * math.sqrt(m * n * (m + n + 1) / 12)
        return max(math.floor(m * n / 2 + deviate - 0.5), -1)
    return int(np.searchsorted(_shares(m, n), error, side="right")) - 1


def ratios(one: Sequence[float], other: Sequence[float], place: int) -> tuple[float, float]:
    """The ``place``-th smallest and largest of all ratios of a value of ``one`` to one of ``other``, counted from 0.

    With ``place`` from :func:`critical` they bound the ratio of the centres, each wrong with that error (Hodges and
    Lehmann, Ann. Math. Stat. 34 (1963) 598). Place 0 is from the worst to the best pair.
    """
    found = np.sort(np.divide.outer(np.asarray(one, dtype=np.float64), np.asarray(other)), axis=None)
    return float(found[place]), float(found[-1 - place])


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
