"""The history of every figure, small enough for a page: the newest points of each series and its change points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from plumbline.judge import samples
from plumbline.judge.history import Series, followed
from plumbline.records.model import Row
from plumbline.records.notes import Note
from plumbline.statistics.changes import Settings, follow

#: series on a page, those with changes first, then the longest; what is left out is counted and shown
MAX_SERIES = 400
#: newest points of a series on a page; older ones are counted and shown
MAX_POINTS = 200
#: fewest points of a series that is shown
MIN_POINTS = 2


def history(rows: Iterable[Row], notes: Sequence[Note] = (), most: int = MAX_POINTS) -> dict[str, Any]:
    """``{"series", "left_out", "single", "notes"}`` of records ``rows`` (oldest first) of one site, and its ``notes``.

    A series has ``name``, ``unit``, ``better``, ``points`` (``[time, value, record id]``), ``older`` (points left
    out), ``alarms`` and ``smallest_visible`` as ``plumb history --json`` gives them, for the points shown, and ``key``
    (``test``, ``variant``, ``figure``, ``stack``). ``single`` counts the series of one point only, ``left_out`` the
    longer ones beyond :data:`MAX_SERIES`. ``most`` points of each series are shown. ``notes`` are ``[time, text]``.
    """
    everything = samples.series(rows)
    long = [series for series in everything if len(series.values) >= MIN_POINTS]
    long.sort(key=lambda series: (-len(series.values), series.name))
    found = [_series(series, notes, most) for series in long[:MAX_SERIES]]
    found.sort(key=lambda item: (-_worst(item), -len(item["alarms"]), -len(item["points"]), item["name"]))
    return {
        "series": found,
        "left_out": len(long) - len(found),
        "single": len(everything) - len(long),
        "notes": [[note.time, note.text] for note in notes],
    }


def _series(series: Series, notes: Sequence[Note], most: int) -> dict[str, Any]:
    older = max(0, len(series.values) - most)
    parts = {name: getattr(series, name)[older:] for name in ("index", "values", "times")}
    kept = replace(series, **parts)
    settings = Settings()
    said = followed(kept, follow(kept.values, settings), settings, notes)
    return {
        "name": series.name,
        "unit": series.unit,
        "better": series.better,
        "points": [list(point) for point in zip(kept.times, kept.values, kept.index, strict=True)],
        "older": older,
        "alarms": said.alarms,
        "smallest_visible": said.to_dict()["smallest_visible"],
        "key": {name: series.key[name] for name in ("test", "variant", "figure", "stack")},
    }


def _worst(item: dict[str, Any]) -> int:
    return sum(alarm["direction"] == "worse" for alarm in item["alarms"])
