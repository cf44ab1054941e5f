"""One line per variant: what the campaign found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from plumbline import units
from plumbline.records.rows import Figure, Row, as_row
from plumbline.views.table import table

#: what is listed: rows of a query, or whole records
Listed = Row | dict[str, Any]

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
    "verified",
    "verdict",
)


def lines(records: Sequence[Listed]) -> str:
    """A line per record, by test and stack: its first figure, a second one if there are two, or why it has none."""
    rows = sorted(map(as_row, records), key=lambda row: (row.variant, row.stack.name, row.time))
    return table(HEADER, [_cells(row) for row in rows], right=("value", "% limit"))


def closing(records: Sequence[Listed]) -> str:
    """The important line: how many records, verified, disturbed, invalid."""
    rows = [as_row(item) for item in records]
    verdicts = Counter(row.verdict for row in rows)
    parts = [
        units.counted(len(rows), "variant"),
        f"{sum(row.verified for row in rows)} verified",
        units.counted(sum(row.launches for row in rows), "launch")
        + f" ({sum(row.disturbed for row in rows)} disturbed)",
        *(f"{count} {name}" for name, count in sorted(verdicts.items())),
    ]
    return ", ".join(parts)


def listing(records: Sequence[Listed]) -> str:
    """The records of ``plumb list`` with the closing line, or what to do when there is none."""
    return f"{lines(records)}\n\n{closing(records)}" if records else "no records yet: make campaign"


def _cells(row: Row) -> tuple[str, ...]:
    start = (row.id, name(row.test, row.params), row.stack.name, describe(row.placement))
    verified = "yes" if row.verified else "NO"
    disturbed = f"{row.disturbed} of {row.launches}" if row.disturbed else ""
    if not row.figures or row.reasons:
        why = row.reasons[0] if row.reasons else "no figure"
        return (*start, "–", "–", "–", "–", "", disturbed, verified, f"{row.verdict}: {shorten(why, 90)}")
    first, *others = row.figures
    value, unit = units.human(first.value, first.unit)
    also = f"{others[0].name} {' '.join(units.human(others[0].value, others[0].unit))}" if len(others) == 1 else ""
    return (*start, first.name, value, unit, percent(first), also, disturbed, verified, row.verdict)


def short_name(record: dict[str, Any]) -> str:
    """The test of a whole record and those of its parameters that the placement column does not show already."""
    return name(record["variant"]["test"], record["variant"]["params"])


def name(test: str, params: dict[str, Any]) -> str:
    """The same, of its test and parameters."""
    shown = {"placement", "memory", "threads", "cpu_node", "memory_node"}
    return " ".join([test, *(str(value) for key, value in params.items() if key not in shown)])


def placement(record: dict[str, Any]) -> str:
    """Placement, ranks x threads, memory of a whole record: ``numa 2x8 local``."""
    return describe(record["placement"])


def describe(placed: dict[str, Any]) -> str:
    """The same, of its placement."""
    nodes = f"{placed['nodes']} nodes " if placed["nodes"] > 1 else ""
    return f"{placed['name']} {nodes}{placed['ranks_per_node']}x{placed['threads']} {placed['memory']}"


def percent(figure: Figure) -> str:
    """Percent of the physical limit, or a dash where the site's facts give none."""
    return f"{figure.limit['percent']:.1f}" if figure.limit else "–"


def shorten(text: str, width: int) -> str:
    """At most ``width`` characters."""
    return text if len(text) <= width else text[: width - 1] + "…"
