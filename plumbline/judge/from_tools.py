"""Pairs of what other benchmark tools wrote: two folders of JSON files, each file a run of one side; and their series.

The first run of each side is a pair, and so on. They must have been made in turn: runs of one side that all came before
those of the other differ in the hour too.
"""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from plumbline.base import files, group
from plumbline.base.digits import step_of
from plumbline.base.errors import PlumbError
from plumbline.judge.from_csv import fixed_pairs
from plumbline.judge.history import Series
from plumbline.judge.pairs import Pairs
from plumbline.parsers import tools

#: the start of a run, and a time in it
Point = tuple[float, float]
CURE = (
    "run old and new by turns, a file for each run, such as old, new, new, old (docs/slower.md), or let the gate run "
    "them: --baseline command:OLD --candidate command:NEW. A run of hyperfine, criterion or asv is as old as its file: "
    "cp -a keeps that time, cp -r does not"
)


def pairs(baseline: Path, candidate: Path) -> list[Pairs]:
    """The series of all benchmarks of both sides.

    A last run without its pair does not count. Raises :class:`PlumbError` for files that are no results or copies, a
    benchmark that one side lacks, and runs that were not made by turns.
    """
    same = group((files.sha256(file), file) for place in (baseline, candidate) for file in _files(place))
    if copies := next((copies for copies in same.values() if len(copies) > 1), None):
        raise PlumbError(f"a copy of {copies[0]}: no run of its own", str(copies[1]), "give a file for each run")
    old, new = _points(baseline), _points(candidate)
    if len(old) == len(new) == 1:  # hyperfine calls it as the command, which differs
        old = dict.fromkeys(new, *old.values())
    if lost := sorted(old.keys() ^ new.keys()):
        raise PlumbError(f"only one side has {lost[0]}", f"{baseline}, {candidate}", "run the same benchmarks")
    return [_pairs(name, points, new[name], f"{baseline}, {candidate}") for name, points in old.items()]


def series(folder: Path, better: str) -> list[Series]:
    """The time of each benchmark in the runs of ``folder``, oldest first; points are known by the start of their run.

    Raises :class:`PlumbError` for a file that is no result.
    """
    return [
        Series(
            name,
            better,
            [f"{datetime.fromtimestamp(when, timezone.utc):%Y-%m-%dT%H:%M:%SZ}" for when, _ in points],
            [value for _, value in points],
            step=step_of(repr(value) for _, value in points),
        )
        for name, points in _points(folder).items()
    ]


def _files(place: Path) -> list[Path]:
    """The files of results in ``place``, or it."""
    every = [place] if place.is_file() else sorted(place.rglob("new/sample.json")) or sorted(place.rglob("*.json"))
    if not every:
        raise PlumbError("there is no JSON file", str(place), tools.CURE)
    return [file for file in every if file.name not in tools.OTHERS]


def _points(place: Path) -> dict[str, list[Point]]:
    """Start and time of each benchmark in the runs of a file or folder, oldest first."""
    runs = map(tools.read, _files(place))
    points = group((name, (run.when, value)) for run in runs for name, value in run.times.items())
    return {name: sorted(values) for name, values in points.items()}


def _pairs(name: str, old: list[Point], new: list[Point], where: str) -> Pairs:
    order = sorted([(when, 0) for when, _ in old] + [(when, 1) for when, _ in new])
    last, notes = order[-1][1], tuple[str, ...]()
    if len(old) - len(new) == 1 - 2 * last:
        order.pop()
        notes = (f"the last run of the {('baseline', 'candidate')[last]} has no pair and does not count",)
    turns = [{first[1], second[1]} for first, second in zip(order[::2], order[1::2], strict=False)]
    if len(order) % 2 or {0} in turns or {1} in turns or len(dict(order)) < len(order):
        message = f"{name}: {len(old)} and {len(new)} runs that were not made by turns show no pairs: no verdict"
        raise PlumbError(message, where, CURE)
    sides = [[repr(value) for _, value in points[: len(turns)]] for points in (old, new)]
    return fixed_pairs(name, sides, "lower", where, notes)
