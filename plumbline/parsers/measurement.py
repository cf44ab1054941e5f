"""One figure of merit of one launch, and the exception for output that holds none."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, get_args

from plumbline.base.errors import PlumbError
from plumbline.base.units import MB_S, MSG_S, PERCENT, UNITS, US, Better

__all__ = ["MB_S", "MSG_S", "PERCENT", "UNITS", "US", "Better", "Measurement", "ParseError", "Unit"]

#: One of :data:`plumbline.base.units.UNITS`. MB/s is 10^6 bytes a second, as STREAM, IMB and OSU count, never 2^20.
Unit = str


class ParseError(PlumbError):
    """The text is not the complete, sound output of the benchmark asked for."""


@dataclass(frozen=True)
class Measurement:
    """A value with what is needed to judge it. ``params`` differ between the values of a launch.

    ``model`` is what the benchmark's own model of it gives for this launch, in the same unit; None without one.
    """

    metric: str
    value: float
    unit: Unit
    better: Better
    params: dict[str, int | str] = field(default_factory=dict)
    iterations: int | None = None
    model: float | None = None

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ParseError(f"metric {self.metric}: unknown unit '{self.unit}'")
        if self.better not in get_args(Better):
            raise ParseError(f"metric {self.metric}: better must be higher or lower, not '{self.better}'")
        if not math.isfinite(self.value) or self.value < 0:
            raise ParseError(f"metric {self.metric}: {self.value} is not a finite, non-negative number")

    def to_dict(self) -> dict[str, Any]:
        """Return it as a record stores it."""
        model = {} if self.model is None else {"model": self.model}
        return {
            "metric": self.metric,
            "value": self.value,
            "unit": self.unit,
            "better": self.better,
            "params": dict(self.params),
            "iterations": self.iterations,
            **model,
        }
