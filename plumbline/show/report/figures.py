"""Launches, spread and bound of a figure, as several parts of a page show them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plumbline.base import units
from plumbline.records.figure import Figure
from plumbline.records.launch import Launch
from plumbline.records.model import Record
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block


def launches(record: Record, figure: Figure) -> list[tuple[Launch, float | None]]:
    """Every launch of the record with its value of the figure, None where it does not count."""
    values = iter(figure.samples)
    return [(launch, None if launch.superseded else next(values, None)) for launch in record.launches]


def spread(figure: Figure) -> float | None:
    """Widest distance of two launches as a fraction of the median; None where that says nothing."""
    values = [value for value in figure.samples if math.isfinite(value)]
    return (max(values) - min(values)) / figure.value if len(values) > 1 and figure.value > 0 else None


@dataclass(frozen=True)
class Dot:
    """A launch with its value of a figure, at its ``place`` in the record, and how far it is from the median, in %."""

    launch: Launch
    place: int
    value: float
    far: float
    seen: str

    @property
    def causes(self) -> str:
        """The causes that disturbed the launch."""
        return "; ".join(self.launch.disturbance.causes)


def dots(record: Record, figure: Figure) -> list[Dot]:
    """The launches of the record that can be drawn."""
    return [
        Dot(launch, place, value, far, " ".join(units.human(value, figure.unit, figure.resolution)))
        for place, (launch, value) in enumerate(launches(record, figure))
        if value is not None and math.isfinite(far := 100 * (value / figure.value - 1) if figure.value else math.nan)
    ]


def series(name: str, colour: str, drawn: Sequence[tuple[Dot, Sequence[object]]]) -> Block:
    """Dots with their points: those of disturbed launches are open."""
    hollow = [place for place, (dot, _) in enumerate(drawn) if dot.launch.disturbed]
    return blocks.series(name, colour, [point for _, point in drawn], hollow=hollow)


def bound(figure: Figure) -> str:
    """The percentage of its limit, or else of its ceiling, that a figure reached, and where the bound comes from."""
    known = figure.limit or figure.ceiling
    if known is None or figure.reached is None:
        return "no limit known"
    text = f"{figure.reached.percent:.1f} % of {' '.join(units.human(known.value, known.unit))} ({known.method})"
    ceiling = None if figure.limit else figure.ceiling
    if ceiling is None:
        return text
    when = f", a ceiling measured {ceiling.measured[:10]}" if ceiling.measured else ""
    raised = f"; {ceiling.raising} by this record" if ceiling.raising else ""
    return text + when + raised + ("; the ceiling is suspect: plumb site measure" if ceiling.suspect else "")
