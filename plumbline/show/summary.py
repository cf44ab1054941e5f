"""One line per variant of a campaign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from plumbline.base import units
from plumbline.base.table import table
from plumbline.records import naming, sources
from plumbline.records.figure import Ceiling, Figure
from plumbline.records.model import AnyRecord
from plumbline.records.variant import Variant

HEADER = (
    "id",
    "test",
    "stack",
    "placement",
    "figure",
    "value",
    "unit",
    "% limit",
    "also",
    "disturbed",
    "state",
    "verified",
    "verdict",
)
#: columns that a narrow terminal leaves out, in this order; plumb show has all of them
SPARE = ("also", "state", "disturbed", "% limit", "verified", "figure")


#: a figure, its ceiling and its record
Held = tuple[Figure, Ceiling, AnyRecord]
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
    return table(HEADER, [_cells(row, call) for row in rows], right=("value", "% limit"), spare=SPARE)


def closing(records: Sequence[AnyRecord]) -> str:
    """The important line: how many records, verified, disturbed, invalid."""
    verdicts = Counter(record.final_verdict for record in records)
    parts = [
        units.counted(len(records), "variant"),
        f"{sum(record.is_verified for record in records)} verified",
        *([f"{imported} imported"] if (imported := sum(record.is_imported for record in records)) else []),
        units.counted(sum(record.launch_count for record in records), "launch")
        + f" ({sum(record.disturbed_count for record in records)} disturbed)",
        *(f"{count} {name}" for name, count in sorted(verdicts.items())),
    ]
    return ", ".join(parts)


def listing(records: Sequence[AnyRecord], ranked: bool = False) -> str:
    """The records of ``plumb list`` with the closing line, or a hint where there is none."""
    if not records:
        return str(sources.none_yet())
    return "\n".join([lines(records, ranked), *legend(records), "", closing(records)])


def legend(records: Sequence[AnyRecord]) -> list[str]:
    """The lines below :func:`lines`: letters behind percentages, ceilings raised or suspect."""
    marks = {record.figures[0].ceiling.mark for record in records if record.figures and record.figures[0].ceiling}
    entries = [text for mark, text in MARKS.items() if mark in marks]
    held = [
        (figure, figure.ceiling, record)
        for record in records
        for figure in record.figures
        if figure.ceiling is not None
    ]
    for (figure, ceiling, record), more in _first([item for item in held if item[1].raising]):
        entries.append(f"{ceiling.raising}: {figure.name} of {record.id}{more} reached more than at set-up")
    for (figure, _, record), more in _first([item for item in held if item[1].suspect]):
        entries.append(f"suspect: {figure.reached}, {figure.name} of {record.id}{more}: plumb site measure")
    return entries


def _first(items: list[Held]) -> list[tuple[Held, str]]:
    """The first of ``items``, if there is one, and how many more there are."""
    return [(items[0], f" and {len(items) - 1} more" if len(items) > 1 else "")] if items else []


def _rank(record: AnyRecord) -> tuple[Any, ...]:
    start = (record.variant.test, record.stack.name)
    if not record.figures or record.faults:
        return (*start, True)
    figure = record.figures[0]
    return (*start, False, figure.name, -figure.value if figure.better == "higher" else figure.value)


def _cells(record: AnyRecord, call: Callable[[Variant], str]) -> tuple[str, ...]:
    start = (record.id, call(record.variant), record.stack.name, naming.placement(record.placement))
    verified = "yes" if record.is_verified else record.provenance if record.is_imported else "NO"
    disturbed = f"{record.disturbed_count} of {record.launch_count}" if record.disturbed_count else ""
    if not record.figures or record.faults:
        verdict = f"{record.final_verdict}: {naming.shorten((record.faults or ['no figure'])[0], 90)}"
        return (*start, "–", "–", "–", "–", "", disturbed, record.state, verified, verdict)
    first, *others = record.figures
    value, unit = first.shown
    shown = others if len(others) == 1 or record.variant.application else []
    also = ", ".join(f"{figure.name} {' '.join(figure.shown)}" for figure in shown[:2])
    more = f", {len(shown) - 2} more" if len(shown) > 2 else ""
    return (
        *(*start, first.name, value, unit, percent(first)),
        *(f"{also}{more}", disturbed, record.state, verified, record.verdict),
    )


def percent(figure: Figure) -> str:
    """Percent of the physical limit; else of the measured ceiling or of the model, with its letter; else a dash."""
    return f"{figure.reached.percent:.1f}{figure.reached.mark}" if figure.reached else "–"


def span(figure: Figure) -> str:
    """The least and the largest of its launches: ``20.1 GB/s … 20.5 GB/s``."""
    return " … ".join(" ".join(units.human(end(figure.samples), figure.unit, figure.resolution)) for end in (min, max))
