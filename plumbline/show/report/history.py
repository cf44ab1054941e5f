"""The history of every figure, small enough for a page: the newest points of each series and its change points."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from plumbline.base import units
from plumbline.judge import samples
from plumbline.judge.history import Series, followed
from plumbline.records.model import Row
from plumbline.records.notes import Note
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, Piece
from plumbline.statistics.changes import Settings

#: series on a page, those with changes first, then the longest; the page has the count of the others
MAX_SERIES = 400
#: newest points of a series on a page; older ones are counted and shown
MAX_POINTS = 200
#: series that are listed before a button asks for all
SHOWN = 40
COLUMNS = (
    {"title": "series"},
    *map(blocks.number, ("points", "last")),
    {"title": "unit"},
    {"title": "last change"},
    blocks.number("smallest slowdown it could see"),
)
#: fewest points of a series that is shown
MIN_POINTS = 2


def history(
    rows: Iterable[Row], notes: Sequence[Note] = (), most: int = MAX_POINTS, least: int = MIN_POINTS
) -> dict[str, Any]:
    """``{"series", "left_out", "single", "notes"}`` of records ``rows`` (oldest first) of one site, and its ``notes``.

    A series has ``name``, ``unit``, ``better``, ``points`` (``[time, value, record id]``), ``older`` (points left
    out), ``alarms`` and ``smallest_visible`` as ``plumb history --json`` gives them, for the points shown, and ``key``
    (``test``, ``variant``, ``figure``, ``stack``). ``single`` counts the series of fewer than ``least`` points,
    ``left_out`` the longer ones beyond :data:`MAX_SERIES`. ``most`` points of each series are shown. ``notes`` are
    ``[time, text]``.
    """
    everything = samples.series(rows)
    long = [series for series in everything if len(series.values) >= least]
    long.sort(key=lambda series: (-len(series.values), series.name))
    shown = [_series(series, notes, most) for series in long[:MAX_SERIES]]
    shown.sort(key=lambda item: (-_worst(item), -len(item["alarms"]), -len(item["points"]), item["name"]))
    return {
        "series": shown,
        "left_out": len(long) - len(shown),
        "single": len(everything) - len(long),
        "notes": [[note.time, note.text] for note in notes],
    }


def _series(series: Series, notes: Sequence[Note], most: int) -> dict[str, Any]:
    older = max(0, len(series.values) - most)
    parts = {name: getattr(series, name)[older:] for name in ("index", "values", "times")}
    kept = replace(series, **parts)
    settings = Settings()
    judged = followed(kept, settings, notes)
    return {
        "name": series.name,
        "unit": series.unit,
        "step": series.step,
        "better": series.better,
        "points": [list(point) for point in zip(kept.times, kept.values, kept.index, strict=True)],
        "older": older,
        "alarms": judged.alarms,
        "smallest_visible": judged.to_dict()["smallest_visible"],
        "key": {name: series.key[name] for name in ("test", "variant", "figure", "stack")},
    }


def _worst(item: dict[str, Any]) -> int:
    return sum(alarm["direction"] == "worse" for alarm in item["alarms"])


def section(trends: dict[str, Any], targets: Mapping[str, Piece], lost: str) -> Block:
    """The section of the ``trends`` of :func:`history`; a point opens the target of its record, else shows ``lost``."""
    series, single = trends["series"], trends["single"]
    words = [
        single and f"{single} series of one point {'is' if single == 1 else 'are'} not shown.",
        trends["left_out"] and f"{trends['left_out']} more series are left out: plumb history shows them.",
    ]
    remarks = " ".join(filter(None, words))
    changed = f"{len(series)} series, {sum(bool(trend['alarms']) for trend in series)} with a change point"
    alarms = f"{changed}. An alarm is a suspicion: measure again before calling anything slower. {remarks}"
    noted = blocks.table(
        "Notes",
        [blocks.column("time", "whole"), blocks.column("what happened", "notes")],
        [(units.second(time), text) for time, text in reversed(trends["notes"])],
    )
    return blocks.section(
        "history",
        "History",
        alarms if series else "",
        bool(series)
        and {
            "is": "picker",
            "caption": "Series",
            "columns": COLUMNS,
            "options": [(_row(trend), _chart(trend, trends["notes"], targets, lost)) for trend in series],
            "first": SHOWN,
            "placeholder": "test, stack, figure …",
        },
        bool(series and trends["notes"]) and [blocks.block("heading", "Notes"), noted],
        otherwise=f"No figure was measured in two sessions yet. {remarks}",
    )


def _row(trend: dict[str, Any]) -> list[Piece]:
    more = f" ({len(trend['alarms'])} in all)" if len(trend["alarms"]) > 1 else ""
    last = (f"{_change(alarm)} at {str(alarm['index'])[:12]}{more}{_noted(alarm)}" for alarm in trend["alarms"][-1:])
    visible = trend["smallest_visible"]
    return [
        trend["name"],
        len(trend["points"]) + trend["older"],
        *units.human(trend["points"][-1][1], trend["unit"], trend["step"]),
        next(last, None),
        "too few points" if visible is None else units.percent(visible),
    ]


def _change(alarm: dict[str, Any]) -> str:
    return f"{units.signed(alarm['ratio'] - 1)} {alarm['direction']}"


def _noted(alarm: dict[str, Any]) -> str:
    """The notes for the time of a change."""
    return f", noted: {'; '.join(alarm['notes'])}" if alarm.get("notes") else ""


def _chart(trend: dict[str, Any], notes: Sequence[Sequence[str]], targets: Mapping[str, Piece], lost: str) -> Block:
    """A dot for each session, a line at the median between two changes."""
    times, values, records = zip(*trend["points"], strict=True)
    factor, unit = units.scale(max(values), trend["unit"])
    changes = {alarm["index"]: alarm for alarm in trend["alarms"]}
    ends = [0, *map(records.index, changes), len(values)]
    marks = [(place, text) for time, text in notes if (place := sum(at < time for at in times)) and place < len(times)]
    return blocks.chart(
        trend["name"],
        f"{trend['better']} is better. A dot per session, a line at the median between changes."
        + (f" {trend['older']} older points are left out." if trend["older"] else ""),
        ["time", blocks.number(trend["key"]["figure"], unit), blocks.column("record", "code"), "change"],
        [
            (
                units.second(time),
                units.digits(value / factor, trend["step"] / factor),
                record,
                _change(changes[record]) + _noted(changes[record]) if record in changes else None,
            )
            for time, value, record in trend["points"]
        ],
        [(place, place, value / factor) for place, value in enumerate(values)],
        targets=[targets.get(record) for record in records],
        lost=lost,
        height=300,
        x={"name": "session", "labels": list(map(units.minute, times))},
        y={"name": f"{trend['key']['figure']}, {unit}"},
        levels=[
            [[at, statistics.median(values[begin:end]) / factor] for at in (begin, end - 1)]
            for begin, end in pairwise(ends)
        ],
        marks=[
            *(
                {
                    "xAxis": records.index(record),
                    "tone": "bad" if alarm["direction"] == "worse" else "good",
                    "dash": "dashed",
                    "label": _change(alarm),
                }
                for record, alarm in changes.items()
            ),
            *(
                {
                    "xAxis": place,
                    "tone": "muted",
                    "dash": "dotted",
                    "label": text if len(text) <= 32 else f"{text[:31]}…",
                    "place": "insideEndTop",
                }
                for place, text in marks
            ),
        ],
    )
