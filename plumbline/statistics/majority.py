"""Whether more than half of some rounds lie beyond a limit: error rates without a form of the distribution.

A check takes a fixed, odd number of rounds and asks whether most of them are worse than a limit. If each round of a
healthy node is, with probability p, the answer is yes with probability P(Binomial(rounds, p) > rounds / 2). This falls
so fast with p that a limit which 5 % of single rounds exceed is enough for an error of 1e-6 at 13 rounds, and such a
limit needs some hundred values, not a million, and no assumption of a normal tail.
"""

from __future__ import annotations

import math

import numpy as np

from plumbline.statistics import Floats, Ints, special


def share(rounds: float, chance: float) -> float:
    """The probability of a single round with which most of ``rounds`` independent ones occur with ``chance``.

    ``rounds`` need not be whole: the binomial sum is continued by the incomplete beta function.

    >>> round(share(1, 0.25), 3), round(share(3, 0.5), 3), round(share(13, 1e-6), 4)
    (0.25, 0.5, 0.0498)
    """
    most = (rounds + 1) / 2
    return float(special.betaincinv(most, rounds + 1 - most, chance))


def bound(values: Floats, exceeding: float, confidence: float) -> float | None:
    """The least of ``values`` that a new one exceeds with a probability of at most ``exceeding``; None if none is.

    With ``confidence`` over the samples, whatever the distribution: Wilks' tolerance limit, an order statistic (Ann.
    Math. Stat. 12 (1941) 91). The share beyond the r-th largest of n values has the distribution Beta(r, n - r + 1).
    """
    n = values.size
    orders = np.arange(1, n + 1)
    good = special.betainc(orders, n - orders + 1.0, exceeding) >= confidence
    most = int(np.sum(np.logical_and.accumulate(good)))
    return float(np.sort(values)[n - most]) if most else None


def needed(exceeding: float, confidence: float) -> int:
    """How many values :func:`bound` needs at least.

    >>> needed(0.05, 0.95), needed(0.048, 0.99)
    (59, 94)
    """
    return math.ceil(math.log1p(-confidence) / math.log1p(-exceeding))


def alike(values: Floats, groups: Ints, confidence: float) -> float:
    """An upper bound of how alike the values of a group are: their intraclass correlation, from 0 to 1.

    By one-way analysis of variance on the ranks' normal scores, so that single values matter little; the bound is that
    of the ratio of variances (Searle, Linear Models (1971), 9.9). 1 where nothing can be said: fewer than two groups.
    """
    _, of, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    n, count = values.size, sizes.size
    if count < 2 or n - count < count:
        return 1.0
    scores = special.ndtri((np.argsort(np.argsort(values, kind="stable"), kind="stable") + 0.5) / n)
    means = np.bincount(of, scores) / sizes
    between = float(np.sum(sizes * (means - scores.mean()) ** 2)) / (count - 1)
    within = float(np.sum((scores - means[of]) ** 2)) / (n - count)
    usual = (n - float(np.sum(sizes**2)) / n) / (count - 1)
    if within == 0:
        return 1.0
    ratio = between / within / float(special.fdtri(count - 1, n - count, 1 - confidence))
    return min(1.0, max(0.0, (ratio - 1) / (ratio + usual - 1)))


def independent(rounds: int, alike: float) -> float:
    """As how many independent rounds ``rounds`` count whose values are ``alike`` (0 to 1).

    >>> independent(13, 0.0), round(independent(13, 0.1), 2), independent(13, 1.0)
    (13.0, 5.91, 1.0)
    """
    return rounds / (1 + (rounds - 1) * alike)
