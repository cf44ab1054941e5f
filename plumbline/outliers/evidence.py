"""The two tests that a member of a class has to fail before anyone says that it differs from the others.

1. *The members' spread*: generalised extreme Studentized deviates (Rosner, Technometrics 25 (1983) 165) on one summary
   per member. It knows how much healthy members differ, and up to a quarter may be odd without hiding one another.
2. *The launches' spread*: exact rank-sum test of the member's own launches against those of the others (Mann and
   Whitney, Ann. Math. Stat. 18 (1947) 50). It holds for noise of any shape.

Test 1 alone would take a second mode of the launches for odd members; test 2 alone would take members that differ a
little, as healthy ones do, for odd ones. All values are logarithms, positive is worse.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

#: standard deviation of a normal distribution over its median absolute difference of two values
FROM_DIFFERENCE = 1 / (0.6744897501960817 * math.sqrt(2))
#: launches farther from their member's median than so many standard deviations are clipped (Huber)
CLIP = 1.5
#: members that may be odd at once, as a share
ODD = 4
#: the rank sum's distribution is exact where the smaller side has no more values than this
EXACT = 20
#: healthy members differ a little, so that test 2 asks for a difference above this share of the smallest effect
ALLOWED = 0.5


@dataclass(frozen=True)
class Family:
    """Members that are compared with one another.

    ``summary`` and ``effect`` are one number per member: what test 1 compares, and what is reported (centred).
    ``observations`` are what test 2 ranks, ``owners`` (a row per observation) the members each belongs to: one, or the
    two ends of a link. ``floor`` is the smallest effect that counts, ``noise`` the launches' standard deviation.
    """

    labels: list[str]
    summary: Floats
    effect: Floats
    observations: Floats
    owners: Ints
    floor: float
    noise: float


def launch_noise(values: Floats) -> float:
    """Standard deviation of launches about their member, robust; rows are members, NaN where there was no launch."""
    with np.errstate(invalid="ignore"):
        steps = np.abs(np.diff(values, axis=1))
    steps = steps[np.isfinite(steps)]
    return FROM_DIFFERENCE * float(np.median(steps)) if steps.size else 0.0


def summarise(values: Floats, noise: float) -> Floats:
    """Huber's one-step mean of each row's launches: as sharp as the mean, and one bad launch moves it little."""
    centre = np.nanmedian(values, axis=1, keepdims=True)
    return np.asarray(
        centre[:, 0] + np.nanmean(np.clip(values - centre, -CLIP * noise, CLIP * noise), axis=1), dtype=np.float64
    )


def spread(summary: Floats) -> float:
    """Standard deviation of members, robust; 0 for none."""
    return 1.4826 * float(np.median(np.abs(summary - np.median(summary)))) if summary.size else 0.0


def of_launches(labels: list[str], values: Floats, floor: float) -> Family:
    """The family of members measured by themselves; ``values`` has a row per member and a column per launch."""
    noise = launch_noise(values)
    summary = summarise(values, noise)
    there = np.isfinite(values)
    owners = np.repeat(np.arange(len(labels)), there.sum(axis=1))[:, None]
    effect = summary - np.median(summary)
    return Family(labels, summary, effect, values[there], owners.astype(np.int64), floor, noise)


def extremes(summary: Floats) -> tuple[Ints, Floats]:
    """Members in the order in which test 1 takes them out, and for each its one-sided p among those that were left.

    The p of a member is the smallest of its own step and all later ones: what hides behind another is found with it.
    """
    n = summary.size
    order = np.argsort(summary, kind="stable")
    ranked = summary[order] - np.median(summary)
    total, squares = np.cumsum(np.r_[0.0, ranked]), np.cumsum(np.r_[0.0, ranked**2])
    low, high = 0, n
    taken, p = [], []
    for _ in range(min(max(1, n // ODD), n - 2)):
        left = high - low
        mean = (total[high] - total[low]) / left
        below, above = mean - ranked[low], ranked[high - 1] - mean
        spread = max(squares[high] - squares[low] - left * mean**2, 0.0)
        reach = max(below, above)
        taken.append(order[high - 1] if above >= below else order[low])
        p.append(_deviate(reach, spread, left))
        low, high = (low, high - 1) if above >= below else (low + 1, high)
    later = np.minimum.accumulate(np.array(p)[::-1])[::-1]
    return np.array(taken, dtype=np.int64), np.asarray(later, dtype=np.float64)


def _deviate(reach: float, squares: float, n: int) -> float:
    """One-sided p of the farthest of ``n`` values at ``reach`` from their mean, ``squares`` their sum of squares."""
    if reach <= 1e-12:
        return 1.0
    rest = squares - reach**2 * n / (n - 1)  # sum of squares of the others about their own mean
    if rest <= 1e-12 * squares:
        return 0.0
    t = reach * n / (n - 1) / math.sqrt(rest / (n - 2) * n / (n - 1))
    return float(special.stdtr(n - 2, -t))


def suspects(summary: Floats, error: float) -> tuple[Flags, Floats]:
    """The members that test 1 calls odd within this family at ``error``, and every member's p (1 for the others)."""
    taken, p = extremes(summary)
    odd = np.zeros(summary.size, dtype=bool)
    every = np.ones(summary.size)
    every[taken] = p
    hits = np.flatnonzero(p * (summary.size - np.arange(p.size)) <= error)
    if hits.size:
        odd[taken[: hits[-1] + 1]] = True
    return odd, every


def ranks(family: Family, member: int, odd: Flags) -> tuple[Floats, Floats]:
    """The observations of ``member`` and those of the pool, both without what belongs to other ``odd`` members."""
    mine = (family.owners == member).any(axis=1)
    other = odd.copy()
    other[member] = False
    clean = ~other[family.owners].any(axis=1)
    return family.observations[mine & clean], family.observations[~mine & clean]


def rank_p(own: Floats, pool: Floats) -> float:
    """One-sided p of "``own`` is not larger than ``pool``"; ties count against the rejection."""
    ordered = np.sort(pool)
    above = int((pool.size - np.searchsorted(ordered, own, side="left")).sum())
    return rank_sum_tail(own.size, pool.size, above)


def rank_sum_tail(m: int, n: int, u: int) -> float:
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
def rank_limit(m: int, n: int, error: float) -> int:
    """The largest u with ``P(U <= u) <= error``; -1 if even the clearest order of the values is no evidence."""
    if m < 1 or n < 1:
        return -1
    if min(m, n) > EXACT:
        deviate = float(special.ndtri(error)) * math.sqrt(m * n * (m + n + 1) / 12)
        return max(math.floor(m * n / 2 + deviate - 0.5), -1)
    return int(np.searchsorted(_shares(m, n), error, side="right")) - 1


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


def p_values(family: Family, error: float) -> Floats:
    """Per member the larger p of both tests, one-sided; 1 for those that test 1 at ``error`` leaves alone.

    Step down: test 2 leaves out those members that stood out more than the one it asks about, not those that follow.
    """
    odd, spread = suspects(family.summary, error)
    p = np.ones(family.summary.size)
    middle = float(np.median(family.summary))
    before = np.zeros(family.summary.size, dtype=bool)
    taken, _ = extremes(family.summary)
    for member in taken[: int(odd.sum())]:
        own, pool = ranks(family, int(member), before)
        if own.size and pool.size:
            sign = 1.0 if family.summary[member] >= middle else -1.0
            p[member] = max(float(spread[member]), rank_p(sign * own - ALLOWED * family.floor, sign * pool))
        before[member] = True
    return p
