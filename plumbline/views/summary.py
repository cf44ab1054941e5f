"""One line per variant: what the campaign found."""

from __future__ import annotations

from collections import Counter
from typing import Any

from plumbline import units
from plumbline.views.table import table

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


def lines(records: list[dict[str, Any]]) -> str:
    """A line per record, by test and stack: its first figure, a second one if there are two, or why it has none."""
    ordered = sorted(records, key=lambda record: (record["variant"]["name"], record["stack"]["name"], record["time"]))
    rows = [_row(record) for record in ordered]
    return table(HEADER, rows, right=("value", "% limit"))


def closing(records: list[dict[str, Any]]) -> str:
    """The important line: how many records, verified, disturbed, invalid."""
    verdicts = Counter(record["verdict"] for record in records)
    launches = [launch for record in records for launch in record["launches"]]
    disturbed = sum(launch["disturbed"] for launch in launches)
    parts = [
        f"{len(records)} variants",
        f"{sum(record['verified'] for record in records)} verified",
        f"{len(launches)} launches ({disturbed} disturbed)",
        *(f"{count} {name}" for name, count in sorted(verdicts.items())),
    ]
    return ", ".join(parts)


def listing(records: list[dict[str, Any]]) -> str:
    """The records of ``plumb list`` with the closing line, or what to do when there is none."""
    return f"{lines(records)}\n\n{closing(records)}" if records else "no records yet: make campaign"


def _row(record: dict[str, Any]) -> tuple[str, ...]:
    start = (record["id"], short_name(record), record["stack"]["name"], placement(record))
    verified = "yes" if record["verified"] else "NO"
    flagged = sum(launch["disturbed"] for launch in record["launches"])
    disturbed = f"{flagged} of {len(record['launches'])}" if flagged else ""
    if not record["figures"] or record["reasons"]:
        why = record["reasons"][0] if record["reasons"] else "no figure"
        return (*start, "–", "–", "–", "–", "", disturbed, verified, f"{record['verdict']}: {shorten(why, 90)}")
    first, *others = record["figures"]
    value, unit = units.human(first["value"], first["unit"])
    also = (
        f"{others[0]['name']} {' '.join(units.human(others[0]['value'], others[0]['unit']))}"
        if len(others) == 1
        else ""
    )
    return (*start, first["name"], value, unit, percent(first), also, disturbed, verified, record["verdict"])


def short_name(record: dict[str, Any]) -> str:
    """The test and those of its parameters that the placement column does not show already."""
    variant = record["variant"]
    shown = {"placement", "memory", "threads", "cpu_node", "memory_node"}
    rest = [str(value) for key, value in variant["params"].items() if key not in shown]
    return " ".join([variant["test"], *rest])


def placement(record: dict[str, Any]) -> str:
    """Placement, ranks x threads, memory: ``numa 2x8 local``."""
    placed = record["placement"]
    nodes = f"{placed['nodes']} nodes " if placed["nodes"] > 1 else ""
    return f"{placed['name']} {nodes}{placed['ranks_per_node']}x{placed['threads']} {placed['memory']}"


def percent(figure: dict[str, Any]) -> str:
    """Percent of the physical limit, or a dash where the site's facts give none."""
    return f"{figure['limit']['percent']:.1f}" if figure["limit"] else "–"


def shorten(text: str, width: int) -> str:
    """At most ``width`` characters."""
    return text if len(text) <= width else text[: width - 1] + "…"
