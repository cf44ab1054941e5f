"""The digits of values: the step of a timer or of a printout, and values that repeat digit by digit."""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal

#: a series that takes more different values than this is not limited by its step
FEW = 24
#: the least that a time or a rate varies from launch to launch, as a fraction: less than any variation we have seen
STEADIEST = 1e-4
#: fewer values than this repeat by chance
FEWEST = 3
#: decimal digits that must have repeated: one chance in a million
DIGITS = 6.0
#: significant digits that every double keeps: further ones are of arithmetic, not of a measurement
KEPT = 15
#: so many printed numbers may be in a computed one, whose step is theirs together
ADDENDS = 10


def step_of(texts: Iterable[str]) -> float:
    """The finest decimal place of numbers as written: 0.01 for ``1.2`` and ``1.25``; 0 if one is not a number.

    Numbers of more than :data:`KEPT` digits were computed, and those of which they were made had fewer places:

    >>> step_of(["0.15000000000000002", "0.17"])
    0.1
    """
    try:
        places = list(map(_last_place, texts))
    except (ArithmeticError, ValueError):
        return 0.0
    exponent = min((place for place, _ in places), default=300)
    if abs(exponent) >= 300:
        return 0.0
    return 10.0**exponent * (ADDENDS if any(computed for _, computed in places) else 1)


@functools.lru_cache(maxsize=1 << 16)
def _last_place(text: str) -> tuple[int, bool]:
    """The power of ten of the last digit of a number, and whether it was computed."""
    number = Decimal(text.strip())
    is_computed = len(number.as_tuple().digits) > KEPT and number % 1 != 0
    shown = Context(KEPT).plus(number).normalize() if is_computed else number
    return int(shown.as_tuple().exponent), is_computed


def resolution(values: Iterable[float], declared: float | None) -> float:
    """How finely ``values`` are known: the step that is ``declared``, or else that of their digits; 0: nobody can say.

    >>> resolution([1.5, 1.25], None), resolution([1.5, 1.25], 0.1)
    (0.01, 0.1)
    """
    return step_of(map(repr, values)) if declared is None else float(declared)


def limiting_step(texts: Iterable[str]) -> float:
    """:func:`step_of` these numbers where they take at most :data:`FEW` different values, else 0."""
    different = set(texts)
    return step_of(different) if len(different) <= FEW else 0.0


def repeated(series: Sequence[tuple[Sequence[float], float]]) -> list[int]:
    """The places of those of ``series`` that were not measured: they repeat in more digits than a measurement can.

    A series is its values, one of each launch, and the step in which they are known (0: their digits tell it). Equal
    are at least three of them, all, or all but one of five and more: a program that prints what it kept. Each equal
    value after the first is as much evidence as a measurement has digits finer than :data:`STEADIEST`: a latency of
    0.21 us in steps of 0.01 us is none, a rate of 20123.4 MB/s a digit. Six digits of one series are enough, and one
    more for each tenfold number of series; six digits of all together, where all are equal throughout.

    >>> repeated([([0.21] * 50, 0)]), repeated([([1.4] * 5, 0)]), repeated([([1234.56789] * 5, 0)])
    ([], [], [0])
    >>> repeated([([20123.4, 20123.4, 20123.4], 0), ([31021.5, 31021.5, 31021.5], 0), ([8123.25, 8123.25, 8123.25], 0)])
    [0, 1, 2]
    >>> repeated([([20123.4, 20123.4, 20123.5], 0)])
    []
    """
    evidence = [_evidence(values, step) for values, step in series]
    if all(len(set(values)) == 1 for values, _ in series) and sum(evidence) >= DIGITS:
        return list(range(len(series)))
    return [place for place, shown in enumerate(evidence) if shown >= DIGITS + math.log10(len(evidence))]


def _evidence(values: Sequence[float], step: float) -> float:
    """How unlikely a measurement repeats as ``values`` do, in decimal digits."""
    ((value, equal),) = Counter(values).most_common(1) or [(0.0, 0)]
    different = len(values) - equal
    if equal < FEWEST or different > (len(values) >= FEWEST + 2):
        return 0.0
    step = max(step, step_of([json.dumps(value).removesuffix(".0")]))
    steps = STEADIEST * abs(value) / step if step else 0.0
    shown = (equal - 1) * math.log10(max(1.0, steps))
    return shown - math.log10(len(values)) if different else shown
