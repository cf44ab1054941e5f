"""A series in time, of all records of a variant, and its course: which changes made it slower or faster, and when."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plumbline.base import group
from plumbline.host import provenance
from plumbline.judge.samples import measured
from plumbline.judge.statement import Statement, nonempty
from plumbline.records.figure import Figure, step_of
from plumbline.records.model import AnyRecord
from plumbline.records.notes import Note, between

if TYPE_CHECKING:
    from plumbline.statistics.changes import Settings

#: parts of a series' key that are part of its name where they differ between series
LABELS = ("site", "partition", "nodes", "environment", "provenance")
#: ... and those that are part of it where two series would have one name
UNLIKE = ("arguments", "settings", "variables", "build", "program", "unit", "better")


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


def _label(key: dict[str, Any], differing: Sequence[str]) -> str:
    """A series' name: variant, stack and figure, and the ``differing`` ones of its other members."""
    others = (
        ("+" if name == "nodes" else " ").join(value) if isinstance(value := key[name], list) else value
        for name in differing
        if name in key
    )
    return " ".join([key["variant"], key["stack"], key["figure"], *others])


def series_of_records(records: Iterable[AnyRecord]) -> list[Series]:
    """The series of valid and of imported ``records`` (rows or whole ones, oldest first), sorted by name.

    A series is of one site, partition, node set, environment (:func:`plumbline.host.provenance.fingerprint`),
    provenance, stack, test variant, arguments, figure, unit, direction, and the variant's own circumstances
    (:attr:`plumbline.records.variant.Variant.circumstances`). Its index is the records' ids.
    """
    usable = group(
        (json.dumps(_key(*item), sort_keys=True), item) for item in measured(records) if 0 < item[1].value < math.inf
    )
    groups = [(_key(*entries[0]), entries) for entries in usable.values()]
    differing = [name for name in LABELS if len({json.dumps(key[name]) for key, _ in groups}) > 1]
    names = Counter(_label(key, differing) for key, _ in groups)
    unsorted = [
        Series(
            _label(key, differing if names[_label(key, differing)] == 1 else [*differing, *UNLIKE]),
            key["better"],
            [row.id for row, _ in entries],
            [figure.value for _, figure in entries],
            key["unit"],
            [row.time for row, _ in entries],
            key,
            [row.variant.application.commit if row.variant.application else None for row, _ in entries],
            step_of((figure, 1.0) for _, figure in entries),
        )
        for key, entries in groups
    ]
    return sorted(unsorted, key=lambda entry: entry.name)


def _key(row: AnyRecord, figure: Figure) -> dict[str, Any]:
    return {
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
        **row.variant.circumstances,
    }


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
    alarms = []
    for change in course.changes:
        around = slice(change.index - 1, change.index + 1)  # the last point before the change, the first one after it
        noted = between(notes, series.key["site"], *series.times[around]) if notes else []
        commits = [commit for commit in series.commits[around] if commit]
        alarms.append(
            {
                "index": series.index[change.index],
                "seen_at": series.index[change.seen_at],
                "ratio": round(change.ratio, 6),
                "direction": "worse" if (change.ratio > 1) == (series.better == "lower") else "better",
                **nonempty(notes=[note.text for note in noted], commits=commits if len(set(commits)) == 2 else []),
            }
        )
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
