"""Where series come from: a CSV file, or the records."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline import csv_input
from plumbline.errors import PlumbError
from plumbline.host import provenance
from plumbline.records.model import AnyRecord
from plumbline.records.notes import Note, between

if TYPE_CHECKING:
    from plumbline.statistics.changes import Course, Settings

COLUMNS = ("series", "index", "value")
#: parts of a series' key that are part of its name where they differ between series
LABELS = ("site", "partition", "nodes", "environment", "provenance")
#: ... and those that are part of it where two series would have one name
UNLIKE = ("arguments", "unit", "better")

Index = int | float


@dataclass
class Series:
    """Values in the order measured. ``index`` is what people know each point by: a number, or a record's id."""

    name: str
    better: str
    index: list[Any] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    unit: str | None = None
    #: when each point's session began, for the records' series
    times: list[str] = field(default_factory=list)
    #: what the series is of, for the records' series
    key: dict[str, Any] = field(default_factory=dict)


def read(file: Path, better: str) -> list[Series]:
    """The series of a CSV file with the columns of :data:`COLUMNS`, in the order of their first rows.

    The rows of a series stand in the order measured: their indices increase. Values are positive, finite numbers.
    Raises :class:`PlumbError` with file and line.
    """
    found: dict[str, Series] = {}
    for where, row in csv_input.table(file, "series", (COLUMNS,)):
        _append(found, row, better, where)
    return list(found.values())


def _append(found: dict[str, Series], row: dict[str, str], better: str, where: str) -> None:
    name, index, value = (row[column] for column in COLUMNS)
    number = _number(index, "index", where)
    measured = _number(value, "value", where)
    if measured <= 0:
        raise PlumbError(f"value '{value}' is not positive", where, "leave out what is no measurement")
    series = found.setdefault(name, Series(name, better))
    if series.index and number <= series.index[-1]:
        what = "twice" if number == series.index[-1] else f"after {series.index[-1]}"
        raise PlumbError(
            f"series {name} has index {index} {what}", where, "rows stand in the order measured, indices increase"
        )
    series.index.append(number)
    series.values.append(measured)


def _number(text: str, column: str, where: str) -> Index:
    try:
        exact = float(text)
    except ValueError:
        raise PlumbError(f"{column} '{text[:40]}' is not a number", where, "correct that line") from None
    if not math.isfinite(exact):
        raise PlumbError(f"{column} '{text[:40]}' is not finite", where, "leave out what is no measurement")
    return int(text) if text.isdecimal() else exact


def of_records(records: Iterable[AnyRecord], test: str | None = None) -> list[Series]:
    """The series of valid and of imported ``records`` (rows or whole ones, oldest first), sorted by name.

    A series is of one site, partition, node set, environment (``provenance.fingerprint``), provenance,
    stack, test variant, arguments, figure, unit and direction. Its index is the records' ids. ``test`` keeps the tests
    whose names begin with it.
    """
    found: dict[str, Series] = {}
    for row in records:
        if (test and not row.variant.test.startswith(test)) or not row.is_comparable:
            continue
        for figure in row.figures:
            if not math.isfinite(figure.value) or figure.value <= 0:
                continue
            key = {
                "test": row.variant.test,
                "variant": row.variant.name,
                "figure": figure.name,
                "unit": figure.unit,
                "better": figure.better,
                "arguments": row.variant.arguments,
                "stack": row.stack.name,
                "site": row.site,
                "partition": row.partition,
                "nodes": sorted(row.nodes),
                "environment": provenance.fingerprint(row.host),
                "provenance": row.provenance,
            }
            name = json.dumps(key, sort_keys=True)
            series = found.setdefault(name, Series(name, figure.better, unit=figure.unit, key=key))
            series.index.append(row.id)
            series.times.append(row.time)
            series.values.append(figure.value)
    everything = list(found.values())
    differing = [name for name in LABELS if len({json.dumps(series.key[name]) for series in everything}) > 1]
    names = Counter(label(series.key, differing) for series in everything)
    for series in everything:
        name = label(series.key, differing)
        series.name = name if names[name] == 1 else label(series.key, [*differing, *UNLIKE])
    return sorted(everything, key=lambda series: series.name)


def label(key: dict[str, Any], differing: Sequence[str]) -> str:
    """A series' name: variant, stack and figure, and the ``differing`` ones of its other members."""
    parts = [key["variant"], key["stack"], key["figure"]]
    for name in differing:
        value = key[name]
        parts.append(("+" if name == "nodes" else " ").join(value) if isinstance(value, list) else value)
    return " ".join(parts)


def direction(better: str, ratio: float) -> str:
    """``worse`` or ``better``: what a series became whose values are ``ratio`` times those before."""
    return "worse" if (ratio > 1) == (better == "lower") else "better"


def course_document(series: Series, course: Course, settings: Settings, notes: Sequence[Note] = ()) -> dict[str, Any]:
    """What a series did, as JSON for ``plumb history`` and the report.

    ``ratio`` is after over before, ``smallest_visible`` a fraction. An alarm has ``notes`` where people noted something
    of the site for the time between the last point before the change and the first one after it.
    """
    return {
        "series": series.name,
        "points": len(series.values),
        "better": series.better,
        "alarms": [
            {
                "index": series.index[change.index],
                "seen_at": series.index[change.seen_at],
                "ratio": round(change.ratio, 6),
                "direction": direction(series.better, change.ratio),
                **_noted(series, change.index, notes),
            }
            for change in course.changes
        ],
        "smallest_visible": None if course.smallest_visible is None else round(course.smallest_visible, 4),
        "min_effect": settings.min_effect,
        "persist": settings.persist,
    }


def _noted(series: Series, index: int, notes: Sequence[Note]) -> dict[str, list[str]]:
    found = between(notes, series.key["site"], *series.times[index - 1 : index + 1]) if notes else []
    return {"notes": [note.text for note in found]} if found else {}
