"""The history of every figure, small enough for a page: the newest points of each series and its change points."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from plumbline.base import units
from plumbline.judge.history import Followed, Series, followed, series_of_records
from plumbline.records.model import Row
from plumbline.records.notes import Note
from plumbline.show.columns import Column, Table
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, Piece
from plumbline.statistics.changes import Settings

#: series on a page, those with changes first, then the longest; the page has the count of the others
MAX_SERIES = 400
#: newest points of a series on a page; older ones are counted and shown
MAX_POINTS = 200
#: series that are listed before a button asks for all
SHOWN = 40
#: fewest points of a series that is shown
MIN_POINTS = 2


@dataclass(frozen=True)
class Trend:
    """The course of a series; ``older`` points are not in it. ``confirmed``: pairs confirmed its newest change."""

    judged: Followed
    older: int = 0
    confirmed: bool = False


def _change(alarm: Mapping[str, Any]) -> str:
    return f"{units.signed(alarm['ratio'] - 1)} {alarm['direction']}"


def _noted(alarm: Mapping[str, Any]) -> str:
    """The notes for the time of a change."""
    return f", noted: {'; '.join(alarm['notes'])}" if alarm.get("notes") else ""


def _newest_change(trend: Trend) -> str | None:
    alarms = trend.judged.alarms
    if not alarms:
        return None
    last, more = alarms[-1], f" ({len(alarms)} in all)" if len(alarms) > 1 else ""
    commits = f", commits {'..'.join(commit[:12] for commit in last['commits'])}" if "commits" in last else ""
    return (
        f"{'' if trend.confirmed else 'suspected: '}{_change(last)} since {last['index']}{more}{commits}{_noted(last)}"
    )


def _last(trend: Trend) -> tuple[str, str]:
    series = trend.judged.series
    return units.human(series.values[-1], series.unit or "", series.step)


SERIES = Table[Trend](
    "Series",
    [
        Column("series", lambda trend: trend.judged.subject),
        Column("points", lambda trend: trend.judged.count + trend.older, "number"),
        Column("last", lambda trend: _last(trend)[0], "number"),
        Column("unit", lambda trend: _last(trend)[1]),
        Column("change", _newest_change),
        Column(
            "smallest visible",
            lambda trend: "too few points" if (least := trend.judged.detectable) is None else units.percent(least),
            "number",
        ),
    ],
)


def history(
    rows: Iterable[Row], notes: Sequence[Note] = (), most: int = MAX_POINTS, least: int = MIN_POINTS
) -> dict[str, Any]:
    """``{"series", "left_out", "single", "notes"}`` of records ``rows`` (oldest first) of one site, and its ``notes``.

    ``series`` are trends of the newest ``most`` points. ``single`` counts the series of fewer than ``least`` points,
    ``left_out`` the longer ones beyond :data:`MAX_SERIES`. ``notes`` are ``[time, text]``.
    """
    everything = series_of_records(rows)
    long = sorted(
        (series for series in everything if len(series.values) >= least),
        key=lambda series: (-len(series.values), series.name),
    )
    shown = [_trend(series, notes, most) for series in long[:MAX_SERIES]]
    return {
        "series": sorted(shown, key=_by_alarms),
        "left_out": len(long) - len(shown),
        "single": len(everything) - len(long),
        "notes": [[note.time, note.text] for note in notes],
    }


def _trend(series: Series, notes: Sequence[Note], most: int) -> Trend:
    older = max(0, len(series.values) - most)
    parts = {name: getattr(series, name)[older:] for name in ("index", "values", "times", "commits")}
    return Trend(followed(replace(series, **parts), Settings(), notes), older)


def _by_alarms(trend: Trend) -> tuple[int, int, int, str]:
    judged = trend.judged
    worse = sum(alarm["direction"] == "worse" for alarm in judged.alarms)
    return -worse, -len(judged.alarms), -judged.count, judged.subject


def section(trends: dict[str, Any], targets: Mapping[str, Piece], lost: str) -> Block:
    """The section of the ``trends`` of :func:`history`; a point opens the target of its record, else shows ``lost``."""
    series, single = trends["series"], trends["single"]
    table, cells = SERIES.of("page", series)
    words = [
        single and f"{single} series of one point {'is' if single == 1 else 'are'} not shown.",
        trends["left_out"] and f"{trends['left_out']} more series are left out: plumb history shows them.",
    ]
    remarks = " ".join(filter(None, words))
    changed = f"{len(series)} series, {sum(bool(trend.judged.alarms) for trend in series)} with a change point"
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
            "caption": table.caption,
            "columns": table.heads(),
            "options": list(
                zip(cells, [_chart(trend, trends["notes"], targets, lost) for trend in series], strict=True)
            ),
            "first": SHOWN,
            "placeholder": "test, stack, figure …",
        },
        bool(series and trends["notes"]) and [blocks.block("heading", "Notes"), noted],
        otherwise=f"No figure was measured in two sessions yet. {remarks}",
    )


def _chart(trend: Trend, notes: Sequence[Sequence[str]], targets: Mapping[str, Piece], lost: str) -> Block:
    """A dot for each session, a line at the median between two changes."""
    series, figure = trend.judged.series, trend.judged.series.key["figure"]
    times, values, records = series.times, series.values, series.index
    factor, unit = units.scale(max(values), series.unit or "")
    changes = {alarm["index"]: alarm for alarm in trend.judged.alarms}
    marks = [(place, text) for time, text in notes if (place := sum(at < time for at in times)) and place < len(times)]
    table = Table[tuple[str, float, str]](
        series.name,
        [
            Column("time", lambda point: units.second(point[0])),
            Column(figure, lambda point: units.digits(point[1] / factor, series.step / factor), "number", unit),
            Column("record", lambda point: point[2], "code"),
            Column(
                "change",
                lambda point: _change(changes[point[2]]) + _noted(changes[point[2]]) if point[2] in changes else None,
            ),
        ],
    )
    return table.chart(
        series.name,
        f"{series.better} is better. A dot per session, a line at the median between changes."
        + (f" {trend.older} older points are left out." if trend.older else ""),
        list(zip(times, values, records, strict=True)),
        [(place, place, value / factor) for place, value in enumerate(values)],
        targets=[targets.get(record) for record in records],
        lost=lost,
        height=300,
        x={"name": "session", "labels": list(map(units.minute, times))},
        y={"name": f"{figure}, {unit}"},
        levels=[
            [[at, statistics.median(values[begin:end]) / factor] for at in (begin, end - 1)]
            for begin, end in pairwise([0, *map(records.index, changes), len(values)])
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
