"""Values that repeat digit by digit: no clock gives such values, a program that prints a fixed text does."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence

from plumbline.statistics.resolution import step_of

#: the least that a time or a rate varies from launch to launch, as a fraction: less than any variation we have seen
STEADIEST = 1e-4
#: fewer values than this repeat by chance
FEWEST = 3
#: decimal digits that must have repeated: one chance in a million
DIGITS = 6.0


def repeats(series: Iterable[Sequence[float]]) -> bool:
    """Whether the values of each of ``series`` are equal although they have digits enough to differ.

    A value that was printed with few digits is little evidence by being equal: a latency of 0.21 us in steps of
    0.01 us is no evidence at all, a rate of 20123.4 MB/s is a digit of evidence for each value after the first. The
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
