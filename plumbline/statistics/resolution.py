"""The step of a timer or of a printout: what values of finite resolution can hide."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

#: a series that takes more different values than this is not limited by its step
FEW = 24


def step_of(texts: Iterable[str]) -> float:
    """The finest decimal place of numbers as written: 0.01 for ``1.2`` and ``1.25``; 0 if one is no number."""
    try:
        exponents = [int(Decimal(text.strip()).as_tuple().exponent) for text in texts]
    except (ArithmeticError, ValueError):
        return 0.0
    return 10.0 ** min(exponents) if exponents and -300 < min(exponents) < 300 else 0.0


def limiting_step(texts: Iterable[str]) -> float:
    """:func:`step_of` these numbers where they take at most :data:`FEW` different values, else 0."""
    different = set(texts)
    return step_of(different) if len(different) <= FEW else 0.0
