"""Configurations between two ends, and what is compared among them to get the effect of each factor.

A configuration is a number whose bits are the factors that are as in B, the others as in A: 0 is A, all bits are B. An
effect is a log ratio, so effects add up. Each round launches every configuration once, and gives one log ratio for each
contrast; over the rounds these are pairs, as the gate judges them.

The share of a factor is the mean of what it makes when it is put into A and when it is taken out of B. Where factors
interact in pairs at most, that is its Shapley value, and all shares add up to the whole difference (L. S. Shapley, in
Contributions to the Theory of Games II, Princeton 1953). It is also the main effect of a two-level design of resolution
IV, in which every launch counts for every factor (Box, Hunter, Technometrics 3 (1961) 311; Plackett, Burman, Biometrika
33 (1946) 305).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plumbline.statistics import special
from plumbline.statistics.paired import CAP, FAIL_SPENDING, LOOKS, PASS_SPENDING, PairedRule

#: first row of the design of Plackett and Burman for 11 factors; the others are its cyclic shifts, and one of minus
_TWELVE = "++-+++---+-"
#: factors of a two-level design, at most
MOST_CROSSED = 12

#: weights of configurations; the weights of each side of a contrast add up to 1
Weights = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Contrast:
    """Two weighted geometric means of configurations; their log ratio, times ``scale``, is the effect."""

    low: Weights
    high: Weights
    scale: float = 1.0

    @property
    def configurations(self) -> set[int]:
        """All that it needs."""
        return {configuration for configuration, _ in (*self.low, *self.high)}

    def rule(self, rule: PairedRule) -> PairedRule:
        """The margins of its log ratio where ``rule`` has those of the effect."""
        tolerance, detected = (
            math.expm1(math.log1p(margin) / self.scale) for margin in (rule.tolerance, rule.must_detect)
        )
        return PairedRule(tolerance, detected, gain=True)


def _mean(configurations: Iterable[int]) -> Weights:
    listed = tuple(configurations)
    return tuple((configuration, 1 / len(listed)) for configuration in listed)


def against(low: Iterable[int], high: Iterable[int], scale: float = 1.0) -> Contrast:
    """The contrast of two geometric means."""
    return Contrast(_mean(low), _mean(high), scale)


def bits(members: Iterable[int]) -> int:
    """The configuration in which these factors are as in B."""
    return sum(1 << member for member in members)


@dataclass(frozen=True)
class Effect:
    """How the effect of ``members``, one factor or several together, is measured.

    ``put_in``: the members alone put into A; ``taken_out``: B against B without them; ``share``: the mean of both;
    ``disagreement``: how much more they make in A than in B.
    """

    members: tuple[int, ...]
    put_in: Contrast
    taken_out: Contrast
    share: Contrast
    disagreement: Contrast


def effect_of(members: tuple[int, ...], factors: int) -> Effect:
    """The effect of ``members`` among ``factors`` factors."""
    a, b, a_with = 0, (1 << factors) - 1, bits(members)
    b_without = b ^ a_with
    return Effect(
        members,
        put_in=against([a], [a_with]),
        taken_out=against([b_without], [b]),
        share=against([a, b_without], [a_with, b]),
        disagreement=against([a, b], [a_with, b_without], scale=2.0),
    )


def whole(factors: int) -> Contrast:
    """B against A."""
    return against([0], [(1 << factors) - 1])


def excess(members: Sequence[int]) -> Contrast:
    """The joint effect of the members in A, beyond the sum of their single effects there."""
    number = len(members)
    high = ((bits(members), 1 / number), (0, 1 - 1 / number))
    return Contrast(_mean(1 << member for member in members), high, scale=float(number))


def crossed(factors: int) -> tuple[list[int], list[Contrast]]:
    """A two-level design of resolution IV: its configurations, A and B among them, and a contrast for each factor."""
    size = next(size for size in (4, 8, 12) if size >= factors)
    rows = _plackett_burman() if size == 12 else _hadamard(size)
    configurations = [bits(np.flatnonzero(row)) for row in (np.concatenate([rows, -rows])[:, :factors] > 0)]
    by_level = (
        [[each for each in configurations if each >> factor & 1 == level] for level in (0, 1)]
        for factor in range(factors)
    )
    return configurations, [against(low, high) for low, high in by_level]


def _hadamard(size: int) -> npt.NDArray[np.int64]:
    """Sylvester's matrix; ``size`` is a power of two."""
    return np.array([[1]]) if size == 1 else np.kron([[1, 1], [1, -1]], _hadamard(size // 2))


def _plackett_burman() -> npt.NDArray[np.int64]:
    """The 12 by 12 matrix, its first row and first column of ones."""
    first = np.array([1 if sign == "+" else -1 for sign in _TWELVE])
    shifted = [np.roll(first, number) for number in range(len(first))]
    minus = np.ones((12, 12), dtype=np.int64)
    minus[1:, 1:] = -np.array(shifted)
    return minus


def rounds_needed(spread: float, rule: PairedRule) -> int:
    """About how many rounds decide a contrast whose rounds scatter by ``spread`` (a log ratio): one of the looks."""
    distance = math.log1p(rule.must_detect) - math.log1p(rule.tolerance)
    quantiles = -float(special.ndtri(FAIL_SPENDING.error / 4) + special.ndtri(PASS_SPENDING.error * 5))
    number = (spread * quantiles / distance) ** 2
    return next((look for look in LOOKS if look >= number), CAP)


def launches_alone(factors: int, noise: float, rule: PairedRule) -> int:
    """About how many launches it takes with each factor alone; ``noise`` is that of one launch (a log ratio)."""
    return rounds_needed(noise, rule) * len(alone_configurations(factors))


def launches_crossed(factors: int, noise: float, rule: PairedRule) -> int:
    """About how many launches a two-level design takes, before the named factors are put in and taken out alone."""
    configurations = len(crossed(factors)[0])
    return rounds_needed(2 * noise / math.sqrt(configurations), rule) * configurations


def alone_configurations(factors: int) -> set[int]:
    """The configurations of a search with each factor alone."""
    every = (effect_of((factor,), factors).share.configurations for factor in range(factors))
    return set(itertools.chain.from_iterable(every))
