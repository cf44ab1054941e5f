"""One line per variant of a campaign, and per note of what happened to a site."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from plumbline.base import units
from plumbline.records import naming, sources
from plumbline.records.figure import Figure
from plumbline.records.model import AnyRecord
from plumbline.records.notes import Note
from plumbline.show.columns import Column, Table
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Piece, link

#: verdicts, worst first: the order of the overview
SEVERITY = ("invalid", "below", "above", "unreferenced", "within")
#: letter after a percentage -> its meaning
MARKS = {
    "c": "c: percent of what this machine reached when its ceilings were measured; no limit is declared",
    "m": "m: percent of what the benchmark's own model gives, with what the same launches measured",
}


def ordered(records: Sequence[AnyRecord], ranked: bool) -> list[AnyRecord]:
    """By variant and stack; ``ranked``: by test and stack, the best figure first, records without a valid one last."""
    return sorted(records, key=_rank if ranked else lambda row: (row.variant.name, row.stack.name, row.time))


def lines(records: Sequence[AnyRecord], ranked: bool = False) -> str:
    """A line per record: its first figure, a second one if there are two, or why it has none."""
    rows = ordered(records, ranked)
    call = naming.naming(row.variant for row in rows)
    return VARIANTS.text([Line(row, next(iter(shown(row))), call(row.variant)) for row in rows])


def closing(records: Sequence[AnyRecord]) -> str:
    """The important line: how many records, verified, disturbed, invalid."""
    verdicts = Counter(record.final_verdict for record in records)
    parts = [
        units.counted(len(records), "variant"),
        f"{sum(record.is_verified for record in records)} verified",
        *([f"{imported} imported"] if (imported := sum(record.is_imported for record in records)) else []),
        units.counted(sum(record.launch_count for record in records), "launch")
        + f" ({sum(record.disturbed_count for record in records)} disturbed)",
        *(f"{count} {name}" for name, count in sorted(verdicts.items()) if name != "unreferenced"),
    ]
    return ", ".join(parts)


def listing(records: Sequence[AnyRecord], ranked: bool = False) -> str:
    """The records of ``plumb list`` with the closing line, or a hint where there is none."""
    if not records:
        return str(sources.none_yet())
    return "\n".join([lines(records, ranked), *legend(records), "", closing(records)])


def legend(records: Sequence[AnyRecord]) -> list[str]:
    """The lines below :func:`lines`: letters behind percentages, the first ceiling that is suspect."""
    marks = {record.figures[0].ceiling.mark for record in records if record.figures and record.figures[0].ceiling}
    entries = [text for mark, text in MARKS.items() if mark in marks]
    suspect = [
        f"{figure.reached}, {figure.name} of {record.id}"
        for record in records
        for figure in record.figures
        if figure.ceiling is not None and figure.ceiling.suspect
    ]
    if suspect:
        more = f" and {len(suspect) - 1} more" if len(suspect) > 1 else ""
        entries.append(f"suspect: {suspect[0]}{more}: plumb site measure")
    return entries


def _rank(record: AnyRecord) -> tuple[Any, ...]:
    start = (record.variant.test, record.stack.name)
    if not record.figures or record.faults:
        return (*start, True)
    figure = record.figures[0]
    return (*start, False, figure.name, -figure.value if figure.better == "higher" else figure.value)


def percent(figure: Figure) -> str:
    """Percent of the physical limit; else of the measured ceiling or of the model, with its letter; else a dash."""
    return f"{figure.reached.percent:.1f}{figure.reached.mark}" if figure.reached else "–"


def span(figure: Figure) -> str:
    """The least and the largest of its launches: ``20.1 GB/s … 20.5 GB/s``."""
    return " … ".join(" ".join(units.human(end(figure.samples), figure.unit, figure.resolution)) for end in (min, max))


@dataclass(frozen=True)
class Line:
    """A figure of a record, or None for one without; ``name`` is its variant's, ``entry`` its number on a page."""

    record: AnyRecord
    figure: Figure | None
    name: str
    entry: int | None = None

    @cached_property
    def value(self) -> tuple[str, str] | tuple[None, None]:
        """The value of the figure and its unit, for people."""
        return self.figure.shown if self.figure else (None, None)


def shown(record: AnyRecord) -> Sequence[Figure | None]:
    """The figures of a record in a table; a single None where it has none that counts."""
    return [None] if record.faults or not record.figures else record.figures


def spread(figure: Figure) -> float | None:
    """Widest distance of two launches as a fraction of the median; None where that says nothing."""
    values = [value for value in figure.samples if math.isfinite(value)]
    return (max(values) - min(values)) / figure.value if len(values) > 1 and figure.value > 0 else None


def bound(figure: Figure) -> str:
    """How much of its limit a figure reached, or else of its ceiling, and what is known of the bound."""
    known, ceiling = figure.limit or figure.ceiling, None if figure.limit else figure.ceiling
    if known is None or figure.reached is None:
        return "no limit known"
    value = f" ({' '.join(units.human(known.value, known.unit))})"
    if ceiling is None:
        return f"{figure.reached}{value}"
    when = f", measured {ceiling.measured[:10]}" if ceiling.measured else ", for the same launches"
    return f"{figure.reached}{when}{value}" + ("; suspect: plumb site measure" if ceiling.suspect else "")


def _of(get: Callable[[Figure], Piece], otherwise: Piece = None) -> Callable[[Line], Piece]:
    """A piece of the line's figure; ``otherwise`` without one."""
    return lambda line: otherwise if line.figure is None else get(line.figure)


def _bar(figure: Figure) -> Piece:
    if not figure.reached:
        return None
    return blocks.block("bar", percent(figure), share=min(100.0, max(0.0, figure.reached.percent)), hint=bound(figure))


def _change(figure: Figure) -> float | None:
    return figure.value / figure.reference.value - 1 if figure.reference else None


def _also(line: Line) -> str:
    """The other figures, where there is one more, or any number of a program's."""
    _, *others = shown(line.record)
    if len(others) != 1 and not line.record.variant.application:
        return ""
    more = f", {len(others) - 2} more" if len(others) > 2 else ""
    return ", ".join(f"{figure.name} {' '.join(figure.shown)}" for figure in others[:2] if figure) + more


def _badge(verdict: str) -> Piece:
    return blocks.block("badge", "" if verdict == "unreferenced" else verdict, verdict=verdict)


def _reason(line: Line) -> str:
    return "" if line.figure else (line.record.faults or ["no figure"])[0]


#: stands first on a page, where it is a colour, and after the figures in a text
VERDICT = Column[Line](
    "verdict",
    lambda line: line.record.final_verdict.replace("unreferenced", "no reference"),
    "verdict",
    page=lambda line: _badge(line.record.final_verdict),
    key=lambda line: SEVERITY.index(line.record.final_verdict),
)
#: the table of a campaign: of ``plumb list``, of its end, and of its report
VARIANTS = Table[Line](
    "Variants, worst first",
    [
        replace(VERDICT, forms="page"),
        Column("id", lambda line: line.record.id, forms="text"),
        Column("test", lambda line: line.name, "test", page=lambda line: link(line.name, entry=line.entry), head=True),
        Column("stack", lambda line: line.record.stack.name, "stack"),
        Column("placement", lambda line: naming.placement(line.record.placement), "placement"),
        Column("figure", _of(lambda figure: figure.name), "figure", spare=6),
        Column(
            "median",
            lambda line: line.value[0],
            "number median",
            page=lambda line: blocks.cell(line.value[0], value=line.figure.value) if line.figure else None,
            key=_of(lambda figure: figure.value, -1),
        ),
        Column("unit", lambda line: line.value[1], "unit"),
        Column(
            "spread",
            _of(lambda figure: None if (known := spread(figure)) is None else f"{100 * known:.1f}"),
            "number spread",
            "%",
            "page",
            key=_of(lambda figure: spread(figure) or 0, -1),
        ),
        Column(
            "of limit",
            _of(lambda figure: percent(figure) if figure.reached else None),
            "number limit",
            "%",
            page=_of(_bar),
            key=_of(lambda figure: figure.reached.percent if figure.reached else -1, -1),
            spare=4,
        ),
        Column(
            "to reference",
            _of(lambda of: None if (change := _change(of)) is None else units.signed(change).removesuffix(" %")),
            "number reference",
            "%",
            "page",
            key=_of(lambda of: _change(of) or 0, 0),
        ),
        Column("also", _also, forms="text", spare=1),
        Column(
            "disturbed",
            lambda line: f"{count} of {line.record.launch_count}" if (count := line.record.disturbed_count) else "",
            "number disturbed",
            key=lambda line: line.record.disturbed_count / max(1, line.record.launch_count),
            spare=3,
        ),
        Column("state", lambda line: line.record.state, forms="text", spare=2),
        Column(
            "verified",
            lambda line: (
                "yes" if line.record.is_verified else line.record.provenance if line.record.is_imported else "NO"
            ),
            forms="text",
            spare=5,
        ),
        replace(VERDICT, forms="text"),
        Column("reason", lambda line: naming.shorten(_reason(line), 90), "why", page=_reason),
    ],
)
#: the notes of sites
NOTES = Table[Note](
    "Notes",
    [
        Column("note", lambda note: note.id),
        Column("time (UTC)", lambda note: units.minute(note.time)),
        Column("site", lambda note: note.site),
        Column("what happened", lambda note: note.text),
    ],
)


def noted(note: Note) -> str:
    """A note on one line."""
    return f"{units.minute(note.time)} {note.site}: {note.text} ({note.id})"
