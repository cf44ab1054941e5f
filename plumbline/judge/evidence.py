"""The two tests that must both find a difference before a member of a class is reported.

1. *The members' spread*: generalised extreme Studentized deviates on one summary per member. It takes into account how
   much healthy members differ, and up to a quarter may be odd without hiding one another.
2. *The launches' spread*: exact rank-sum test of the member's own launches against those of the others. It holds for
   noise of any shape.

Test 1 alone would take a second mode of the launches for odd members; test 2 alone would take members that differ a
little, as healthy ones do, for odd ones. All values are logarithms, positive is worse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbline.statistics import Flags, Floats, Ints, basic, unpaired
from plumbline.statistics.basic import extremes

#: launches farther from their member's median than this many standard deviations are clipped (Huber)
CLIP = 1.5
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


def summarise(values: Floats, noise: float) -> Floats:
    """Huber's one-step mean of each row's launches (Ann. Math. Stat. 35 (1964) 73).

    It is nearly as precise as the mean, and one bad launch moves it little.
    """
    centre = np.nanmedian(values, axis=1, keepdims=True)
    return np.asarray(
        centre[:, 0] + np.nanmean(np.clip(values - centre, -CLIP * noise, CLIP * noise), axis=1), dtype=np.float64
    )


def spread(summary: Floats) -> float:
    """Standard deviation of members, robust; 0 for none."""
    return float(basic.spread_of_deviations(summary)) if summary.size else 0.0


def of_launches(labels: list[str], values: Floats, floor: float) -> Family:
    """The family of members measured by themselves; ``values`` has a row per member and a column per launch."""
    noise = basic.spread_of_differences(values)
    summary = summarise(values, noise)
    there = np.isfinite(values)
    owners = np.repeat(np.arange(len(labels)), there.sum(axis=1))[:, None]
    effect = summary - np.median(summary)
    return Family(labels, summary, effect, values[there], owners.astype(np.int64), floor, noise)


def suspects(summary: Floats, error: float) -> tuple[Flags, Floats]:
    """The members that test 1 calls odd within this family at ``error``, and every member's p (1 for the others)."""
    removed, p = extremes(summary)
    odd = np.zeros(summary.size, dtype=bool)
    every = np.ones(summary.size)
    every[removed] = p
    hits = np.flatnonzero(p * (summary.size - np.arange(p.size)) <= error)
    if hits.size:
        odd[removed[: hits[-1] + 1]] = True
    return odd, every


def ranks(family: Family, member: int, odd: Flags) -> tuple[Floats, Floats]:
    """The observations of ``member`` and those of the pool, both without what belongs to other ``odd`` members."""
    mine = (family.owners == member).any(axis=1)
    others_odd = odd.copy()
    others_odd[member] = False
    clean = ~others_odd[family.owners].any(axis=1)
    return family.observations[mine & clean], family.observations[~mine & clean]


def p_values(family: Family, error: float) -> Floats:
    """Per member the larger p of both tests, one-sided; 1 for those that test 1 at ``error`` leaves alone.

    Step down: test 2 leaves out those members that stood out more than the one it asks about, not those that follow.
    """
    odd, one_sided = suspects(family.summary, error)
    p = np.ones(family.summary.size)
    middle = float(np.median(family.summary))
    before = np.zeros(family.summary.size, dtype=bool)
    removed, _ = extremes(family.summary)
    for member in removed[: int(odd.sum())]:
        mine, pool = ranks(family, int(member), before)
        if mine.size and pool.size:
            sign = 1.0 if family.summary[member] >= middle else -1.0
            p[member] = max(
                float(one_sided[member]), unpaired.p_not_larger(sign * mine - ALLOWED * family.floor, sign * pool)
            )
        before[member] = True
    return p
