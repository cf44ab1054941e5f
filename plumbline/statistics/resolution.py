"""The digits of values: what the step of a timer or of a printout can hide, and values that repeat digit by digit."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal

import numpy as np

from plumbline.statistics import Floats

#: a series that takes more different values than this is not limited by its step
FEW = 24
#: part of a step by which the median of Walsh averages of rounded differences may lie off, however many there are.
#: At worst a difference is rounded down with probability p = 1/sqrt(2), else up: half of the sums of two are down, and
#: the mean is 1 - p = 0.293 above (values spread evenly over many steps: 0.25)
LATTICE = 0.3
#: of a value that may be rounding: a bound that keeps its logarithm finite
NEARLY_ALL = 1 - 1e-9


def step_of(texts: Iterable[str]) -> float:
    """The finest decimal place of numbers as written: 0.01 for ``1.2`` and ``1.25``; 0 if one is not a number."""
    try:
        exponents = [int(Decimal(text.strip()).as_tuple().exponent) for text in texts]
    except (ArithmeticError, ValueError):
        return 0.0
    return 10.0 ** min(exponents) if exponents and -300 < min(exponents) < 300 else 0.0


def limiting_step(texts: Iterable[str]) -> float:
    """:func:`step_of` these numbers where they take at most :data:`FEW` different values, else 0."""
    different = set(texts)
    return step_of(different) if len(different) <= FEW else 0.0


def hidden(baseline: Floats, candidate: Floats, steps: tuple[float, float]) -> float:
    """The largest log ratio of the sides that rounding to ``steps`` may hide, or make up; 0 for steps of 0.

    A side that hardly leaves one value may lie anywhere within half a step of it. Where its values spread over
    neighbouring steps, its rounding errors cancel: of half a step remains the share of its most frequent value among
    that value and its two neighbours, beyond a half (so a few far values change nothing, nor does a second mode).
    What lies off even then is :data:`LATTICE`.
    """
    sides = tuple(zip((baseline, candidate), steps, strict=True))
    halves = [-math.log1p(-min(step / 2 / float(np.median(values)), NEARLY_ALL)) for values, step in sides]
    if any(values.std() < step / 2 for values, step in sides):
        return sum(halves)
    kept = sum(_not_spread(values, step) * half for (values, step), half in zip(sides, halves, strict=True))
    return min(sum(halves), 2 * LATTICE * min(halves) + kept)


def _not_spread(values: Floats, step: float) -> float:
    """0 where the most frequent value is at most half of it and its neighbours, up to 1 where it is all of them."""
    different, counts = np.unique(values, return_counts=True)
    often = counts.argmax()
    near = np.abs(different - different[often]) < 1.5 * step
    return max(0.0, 2 * float(counts[often] / counts[near].sum()) - 1)


#: the least that a time or a rate varies from launch to launch, as a fraction: less than any variation we have seen
STEADIEST = 1e-4
#: fewer values than this repeat by chance
FEWEST = 3
#: decimal digits that must have repeated: one chance in a million
DIGITS = 6.0


def repeats(series: Iterable[Sequence[float]]) -> bool:
    """Whether the values of each of ``series`` are equal although they have digits enough to differ.

    No clock gives such values, a program that prints a fixed text does.

    A value that was printed with few digits is little evidence by being equal: a latency of 0.21 us in steps of
    0.01 us is not evidence at all, a rate of 20123.4 MB/s is a digit of evidence for each value after the first. The
    evidence of all series is added up.

    >>> repeats([[0.21] * 50])
    False
    >>> repeats([[20123.4, 20123.4, 20123.4], [31021.5, 31021.5, 31021.5], [8123.25, 8123.25, 8123.25]])
    True
    >>> repeats([[20123.4, 20123.4, 20123.5]])
    False
    """
    evidence = 0.0
    for values in series:
        if len(values) < FEWEST or len(set(values)) > 1:
            return False
        step = step_of([json.dumps(values[0])])
        steps = STEADIEST * abs(values[0]) / step if step else 0.0
        evidence += (len(values) - 1) * math.log10(max(1.0, steps))
    return evidence >= DIGITS
