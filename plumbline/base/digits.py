"""The digits of values: the step of a timer or of a printout, and values that repeat digit by digit."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal

#: a series that takes more different values than this is not limited by its step
FEW = 24
#: the least that a time or a rate varies from launch to launch, as a fraction: less than any variation we have seen
STEADIEST = 1e-4
#: fewer values than this repeat by chance
FEWEST = 3
#: decimal digits that must have repeated: one chance in a million
DIGITS = 6.0


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
