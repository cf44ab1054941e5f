"""One figure of merit of one launch, the work behind it, and the exception for output that holds none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Protocol, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from plumbline.base import digits
from plumbline.base.errors import PlumbError
from plumbline.base.units import UNITS, Better

#: One of :data:`plumbline.base.units.UNITS`. MB/s is 10^6 bytes a second, as STREAM, IMB and OSU count, never 2^20.
Unit = str

#: a whole number stays one: how many digits a program printed says how finely it measured
Number: TypeAlias = int | float
#: one that is not negative
Amount: TypeAlias = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)]


class ParseError(PlumbError):
    """The text is not the complete, sound output of the benchmark asked for."""


class Measurement(Struct, frozen=True, gc=False):
    """One figure of merit of one launch. ``params`` tell the values of a launch apart.

    ``model`` is the value that the benchmark's own model predicts for this launch, in the same unit. ``step`` is how
    finely the value is known, in the same unit, where its digits do not tell: of a sum or a rate of printed numbers.
    """

    metric: str
    value: Number
    unit: Unit
    better: Better
    params: dict[str, Any]
    iterations: int | None = None
    model: Number | UnsetType = UNSET
    step: Number | UnsetType = UNSET


class _Known(Protocol):
    """A value, and how finely it is known where its digits do not tell."""

    @property
    def value(self) -> Number:
        """The value."""

    @property
    def step(self) -> Number | UnsetType:
        """Its declared step."""


def declared_step(items: Iterable[_Known]) -> Number | None:
    """The largest ``step`` of these values of one unit; None if none has one."""
    return max((item.step for item in items if item.step is not UNSET), default=None)


def step_of(items: Sequence[_Known]) -> float:
    """How finely these values of one unit are known."""
    return digits.resolution((item.value for item in items), declared_step(items))


class Counted(Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """Counts of the processors in what was timed; ``line_bytes``: what a miss moves from memory, 0 if not known."""

    instructions: Amount
    cycles: Amount
    cache_misses: Amount
    line_bytes: Annotated[int, Meta(ge=0)]


class Work(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Floating-point operations and bytes of all that the program timed: by its model (0: it has none), as ``counted``.

    ``missing`` says why nothing was counted.
    """

    flop: Amount
    bytes: Amount
    counted: Counted | None = None
    missing: str | None = None


def measured(
    metric: str, value: float, unit: Unit, better: Better, params: dict[str, Any], iterations: int | None = None,
    model: float | None = None,
) -> Measurement:  # fmt: skip
    """A measurement as a benchmark printed it; raises :class:`ParseError` for one that is no figure of merit."""
    if unit not in UNITS:
        raise ParseError(f"metric {metric}: unknown unit '{unit}'")
    if not math.isfinite(value) or value < 0:
        raise ParseError(f"metric {metric}: {value} is not a finite, non-negative number")
    return Measurement(metric, value, unit, better, params, iterations, UNSET if model is None else model)
