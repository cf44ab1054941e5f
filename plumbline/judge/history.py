"""A series in time, and what is said of its course: what became slower or faster, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plumbline.records.notes import Note, between

if TYPE_CHECKING:
    from plumbline.statistics.changes import Course, Settings

#: parts of a series' key that are part of its name where they differ between series
LABELS = ("site", "partition", "nodes", "environment", "provenance")
#: ... and those that are part of it where two series would have one name
UNLIKE = ("arguments", "unit", "better")


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
