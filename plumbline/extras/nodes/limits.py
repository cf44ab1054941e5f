"""Limits of one figure, from the rounds of healthy nodes: the threshold of a check, and the slowdown it finds.

A value here is a logarithm, larger where slower. A round of a healthy node is modelled as the level of its node plus
noise that has the same distribution, of whatever form, on all nodes of a class. The rounds of a check count as fewer
independent ones, by an upper bound of how alike they are within a check (:func:`plumbline.statistics.majority.alike`):
their values, or how far these scatter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from plumbline.statistics import Floats, Ints, majority, special

#: with which probability, over the samples that classes are made of, a limit keeps its rate
CONFIDENCE = 0.99
#: ... and with which the bound of how alike rounds are holds
ALIKE_CONFIDENCE = 0.9
#: share of the checks of a healthy node that may end in doubt, over all figures together
DOUBT = 1e-3
#: the probability with which a slowdown that is said to be found is found
FOUND = 0.9
#: fewer nodes say nothing about others
FEWEST_NODES = 5
#: fewer rounds of a node do not give its level
FEWEST_ROUNDS = 15


@dataclass(frozen=True)
class Sample:
    """Values of one figure: a logarithm of each round, its node and its check, numbered over all nodes."""

    logs: Floats
    nodes: Ints
    checks: Ints

    def levels(self) -> Floats:
        """The median of each node, in the order of the nodes' numbers."""
        return np.array([float(np.median(self.logs[self.nodes == node])) for node in np.unique(self.nodes)])

    def noise(self) -> Floats:
        """Each value less the level of its node, widened because the level is estimated from it."""
        _, of, sizes = np.unique(self.nodes, return_inverse=True, return_counts=True)
        wide = np.sqrt(sizes / np.maximum(sizes - 1, 1))
        return np.asarray((self.logs - self.levels()[of]) * wide[of], dtype=np.float64)

    def scatter(self) -> Floats:
        """How far each value is from the median of its check: checks may be rougher than others, not only slower."""
        numbers, of = np.unique(self.checks, return_inverse=True)
        medians = np.array([np.median(self.logs[self.checks == number]) for number in numbers])
        return np.asarray(np.abs(self.logs - medians[of]), dtype=np.float64)


@dataclass(frozen=True)
class Limit:
    """Limits of the median of a check's rounds, as logarithms; None: the sample cannot promise it.

    ``member``: on a node of the class; ``non_member``: on a node that the class was not made of; ``doubt``: beyond it a
    longer check is needed. ``detectable``: the slowdown of a usual node that nine checks in ten find, as a fraction.
    ``missing``: rounds that ``member`` lacks. ``rounds``: as how many independent ones the check's count.
    """

    member: float | None
    non_member: float | None
    doubt: float
    detectable: float | None
    missing: int
    rounds: float


def limit(sample: Sample, rounds: int, error: float, doubt: float, tolerance: float) -> Limit:
    """The limits of a check of ``rounds`` rounds.

    ``error`` and ``doubt`` are the probabilities with which a healthy node may exceed them; slowdowns up to
    ``tolerance`` (a fraction) are never beyond one.
    """
    levels, noise = sample.levels(), sample.noise()
    usual, slowest = float(np.median(levels)), float(levels.max())
    alike = max(majority.alike(values, sample.checks, ALIKE_CONFIDENCE) for values in (noise, sample.scatter()))
    counted = majority.independent(rounds, alike)
    least = usual + math.log1p(tolerance)

    def beyond(chance: float) -> float | None:
        return majority.bound(noise, majority.share(counted, chance), CONFIDENCE)

    margin, half = beyond(error), beyond(error / 2)
    member = None if margin is None else max(least, slowest + margin)
    n = levels.size
    spread: float | None = None
    if n >= FEWEST_NODES:  # how far above the usual level that of the next node may lie, if levels are normal
        spread = float(special.stdtrit(n - 1, 1 - error / 2) * np.std(levels, ddof=1) * math.sqrt(1 + 1 / n))
    non_member = None if half is None or spread is None or member is None else max(member, usual + spread + half)
    unsure = beyond(doubt)
    at_most = slowest + (float(noise.max()) if unsure is None else unsure)
    unsure = max(least, at_most) if member is None else min(member, max(least, at_most))
    missing = 0
    if margin is None:
        missing = max(0, majority.needed(majority.share(counted, error), CONFIDENCE) - noise.size)
    detectable = None
    if member is not None:
        # so many of the rounds of a slow node are beyond the limit that most of a check's are, nine times in ten
        quantile = float(np.quantile(noise, 1 - majority.share(counted, FOUND)))
        detectable = math.expm1(member - usual - quantile)
    return Limit(member, non_member, unsure, detectable, missing, counted)
