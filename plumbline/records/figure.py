"""A figure of merit of a record, and what it is compared with: a limit, a ceiling, a reference."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple, TypeAlias

from msgspec import Meta, Struct

from plumbline.base import digits
from plumbline.base.digits import FEWEST
from plumbline.base.units import Better, human
from plumbline.host.limits import Limit
from plumbline.parsers.measurement import Measurement, Number, declared_step
from plumbline.records.launch import Launch

#: UTC, ISO 8601; the month is in the names of compacted files
Time: TypeAlias = Annotated[str, Meta(pattern="^[0-9]{4}-(0[1-9]|1[0-2])-[0-9]{2}T[0-9:.]+Z$")]
#: a ceiling is suspect if a figure exceeds it by more than this, or than the spread of its launches if that is larger
CEILING_MARGIN_PERCENT = 5


class Ceiling(Struct, frozen=True, gc=False, kw_only=True):
    """The value of the machine when it was measured, at the time ``measured``, by ``method``; it is not a limit.

    Without a time it is what the benchmark's own model gives for the launches of the figure. ``spread_percent`` is the
    spread of the launches that gave it, ``percent`` the percentage of it that the figure reached. ``raised_from`` is
    of earlier versions, in which a record raised the ceilings that it exceeded.
    """

    value: Number
    unit: str
    method: str
    spread_percent: Number
    percent: Number
    measured: Time | None
    raised_from: Number | None = None

    @property
    def name(self) -> str:
        """Its name in "percent of NAME"."""
        return self.method if self.measured is None else f"ceiling {self.method}"

    @property
    def mark(self) -> str:
        """The letter behind its percentage in tables."""
        return "m" if self.measured is None else "c"

    @property
    def suspect(self) -> bool:
        """Whether the figure exceeds it so clearly that the ceiling must be wrong; always false for a model."""
        return self.measured is not None and self.percent > 100 + max(self.spread_percent, CEILING_MARGIN_PERCENT)


class Reference(Struct, frozen=True, gc=False, kw_only=True):
    """The reference of a figure; ``lower`` and ``upper`` are bounds as fractions of ``value``, None for no bound."""

    value: Number
    unit: str
    method: str
    lower: Number | None = None
    upper: Number | None = None
    file: str


class Reached(NamedTuple):
    """How many ``percent`` of ``bound`` a figure reached; ``mark`` is the letter behind it in tables, or empty."""

    percent: float
    bound: str
    mark: str

    def __str__(self) -> str:
        return f"{self.percent:.1f} % of {self.bound}"


class Figure(Struct, gc=False, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A figure of merit of a record: the median of ``samples``, one for each launch that counts, in their order.

    ``limit`` is None where the site's facts give none; ``ceiling`` is None where there is a limit, or neither a
    measurement nor a model; ``reference`` is None where the site has none. ``step`` is how finely the samples are
    known where their digits do not tell (:class:`plumbline.parsers.measurement.Measurement`).
    """

    name: str
    value: Number
    unit: str
    better: Better
    launches: int
    samples: Annotated[list[Number], Meta(min_length=1)]
    limit: Limit | None
    reference: Reference | None
    ceiling: Ceiling | None = None
    step: Number | None = None

    @property
    def resolution(self) -> float:
        """How finely the samples are known, in their unit; 0 if nobody can say."""
        return digits.resolution(self.samples, self.step)

    @property
    def shown(self) -> tuple[str, str]:
        """Its value and unit as people read them, without digits that nobody measured."""
        return human(self.value, self.unit, self.resolution)

    def undisturbed(self, counting: Sequence[Launch]) -> list[float]:
        """The samples of the ``counting`` launches that nothing disturbed; all of them if that is fewer than two."""
        quiet = [sample for sample, launch in zip(self.samples, counting, strict=True) if not launch.disturbed]
        return quiet if len(quiet) > 1 else list(self.samples)

    @property
    def reached(self) -> Reached | None:
        """The percentage that all views show: of the limit, or else of the ceiling; None with neither."""
        if self.limit is not None:
            percent = 100 * self.value / self.limit.value if self.limit.percent is None else self.limit.percent
            return Reached(percent, self.limit.method, "")
        return Reached(self.ceiling.percent, self.ceiling.name, self.ceiling.mark) if self.ceiling else None

    @classmethod
    def of(cls, name: str, chosen: list[Measurement]) -> Figure:
        """The figure ``name`` that the ``chosen`` measurements give, one of each launch that counts."""
        samples = [item.value for item in chosen]
        return cls(
            name=name,
            value=statistics.median(samples),
            unit=chosen[0].unit,
            better=chosen[0].better,
            launches=len(samples),
            samples=samples,
            limit=None,
            reference=None,
            step=declared_step(chosen),
        )


def step_of(figures: Iterable[tuple[Figure, float]]) -> float:
    """How finely figures of one thing are known, each times a factor: the coarsest step of one of them.

    One of a few launches may seem coarser than it was printed, because all its last digits happened to be 0: it is
    asked only if there is no other.
    """
    steps = [
        (figure.resolution * factor, figure.step is None and figure.launches < FEWEST) for figure, factor in figures
    ]
    telling = [step for step, is_guess in steps if not is_guess]
    return max(telling) if telling else min((step for step, _ in steps), default=0.0)
