"""A series in time, and its course: which changes made it slower or faster, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plumbline.judge.statement import Statement, nonempty
from plumbline.records.notes import Note, between

if TYPE_CHECKING:
    from plumbline.statistics.changes import Settings

#: parts of a series' key that are part of its name where they differ between series
LABELS = ("site", "partition", "nodes", "environment", "provenance")
#: ... and those that are part of it where two series would have one name
UNLIKE = ("arguments", "settings", "unit", "better")


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
    #: the members that identify the series, for the records' series
    key: dict[str, Any] = field(default_factory=dict)
    #: the commit of each point's program, for the records' series; None for tests of the suite
    commits: list[str | None] = field(default_factory=list)
    #: how finely the values are known, in their unit; 0 if nobody can say
    step: float = 0.0


def label(key: dict[str, Any], differing: Sequence[str]) -> str:
    """A series' name: variant, stack and figure, and the ``differing`` ones of its other members."""
    parts = [key["variant"], key["stack"], key["figure"]]
    for name in (each for each in differing if each in key):
        value = key[name]
        parts.append(("+" if name == "nodes" else " ").join(value) if isinstance(value, list) else value)
    return " ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Followed(Statement):
    """The course of a series: ``worse`` if a change of it is for the worse, else ``steady``.

    ``ratio`` is that of its newest change, after over before; ``last`` is the place of the first value after it.
    ``alarms`` are the changes as JSON: each has ``notes`` where people noted something of the site for the time between
    the last point before the change and the first one after it.
    """

    series: Series
    settings: Settings
    alarms: list[dict[str, Any]]
    last: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of ``plumb history`` and the report; ``smallest_visible`` is a fraction."""
        return {
            "series": self.subject,
            "points": self.count,
            "better": self.series.better,
            "alarms": self.alarms,
            "smallest_visible": None if self.detectable is None else round(self.detectable, 4),
            "min_effect": self.settings.min_effect,
            "persist": self.settings.persist,
        }


def followed(series: Series, settings: Settings, notes: Sequence[Note] = ()) -> Followed:
    """The course of ``series``, with the notes of people on its site."""
    from plumbline.statistics.changes import follow  # not above: it loads what most commands do without

    course = follow(series.values, settings, series.step)
    alarms = [
        {
            "index": series.index[change.index],
            "seen_at": series.index[change.seen_at],
            "ratio": round(change.ratio, 6),
            "direction": "worse" if (change.ratio > 1) == (series.better == "lower") else "better",
            **nonempty(notes=_noted(series, change.index, notes), commits=_commits(series, change.index)),
        }
        for change in course.changes
    ]
    return Followed(
        series.name,
        "worse" if any(alarm["direction"] == "worse" for alarm in alarms) else "steady",
        len(series.values),
        course.changes[-1].ratio if course.changes else None,
        detectable=course.smallest_visible,
        series=series,
        settings=settings,
        alarms=alarms,
        last=course.changes[-1].index if course.changes else 0,
    )


def _commits(series: Series, index: int) -> list[str]:
    """The commits of the program at the last point before a change and at the first one after it, if they differ."""
    around = [commit for commit in series.commits[index - 1 : index + 1] if commit]
    return around if len(set(around)) == 2 else []


def _noted(series: Series, index: int, notes: Sequence[Note]) -> list[str]:
    relevant = between(notes, series.key["site"], *series.times[index - 1 : index + 1]) if notes else []
    return [note.text for note in relevant]
