"""Pairs of what other benchmark tools wrote: two folders of JSON files, each file a run of one side; and their series.

The first run of each side is a pair, and so on. They must have been made in turn: runs of one side that all came before
those of the other differ in the hour too. Of these only as much is claimed as of sessions of any kind, each run one.
"""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from plumbline.base import files, group
from plumbline.base.digits import step_of
from plumbline.base.errors import PlumbError
from plumbline.judge.compare import Cell, Comparison, Key, judged
from plumbline.judge.from_csv import fixed_pairs
from plumbline.judge.history import Series
from plumbline.judge.pairs import Pairs
from plumbline.parsers import tools
from plumbline.statistics import unpaired

#: the start of a run, and the times of its repetitions
Run = tuple[float, list[float]]
CURE = (
    "run old and new by turns, a file for each run, such as old, new, new, old (docs/slower.md), or let the gate run "
    "them: --baseline command:OLD --candidate command:NEW. A run of hyperfine, criterion or asv is as old as its file: "
    "cp -a keeps that time, cp -r does not. plumb compare shows what may be claimed without pairs"
)


def pairs(baseline: Path, candidate: Path) -> list[Pairs]:
    """The series of all benchmarks of both sides.

    A last run without its pair does not count. Raises :class:`PlumbError` for files that are no results or copies, a
    benchmark that one side lacks, and runs that were not made by turns.
    """
    old, new = _sides([baseline, candidate])
    where = f"{baseline}, {candidate}"
    if lost := sorted(old.keys() ^ new.keys()):
        raise PlumbError(f"only one side has {lost[0]}", where, "run the same benchmarks")
    return [_pairs(name, runs, new[name], where) for name, runs in old.items()]


def compare(places: Sequence[Path]) -> Comparison:
    """The benchmarks that at least two of ``places`` have, by runs that need be no pairs.

    Raises :class:`PlumbError` for files that are no results or copies, and where no two places have one in common.
    """
    sides = _sides(places)
    names = [name for name, sharing in Counter(itertools.chain(*sides)).items() if sharing > 1]
    if not names:
        raise PlumbError("the sides have no benchmark in common", "plumb compare", "run the same benchmarks")
    measured = [
        (
            Key(name, name, "", "time", "", "", "", unit="s", better="lower"),
            "s",
            tuple(
                _cell(place, side[name]) if name in side else None for place, side in zip(places, sides, strict=True)
            ),
        )
        for name in names
    ]
    spread = unpaired.session_spread([_median(run) for run in runs] for side in sides for runs in side.values())
    spans = ([when for runs in side.values() for when, _ in runs] for side in sides)
    when = tuple(" to ".join(f"{_utc(end(starts)):%Y-%m-%d %H:%M}" for end in (min, max)) for starts in spans)
    alone = sum(name not in names for side in sides for name in side)
    return Comparison(
        tuple(map(str, places)), tuple(judged(measured, (), spread)), (("begun (UTC)", when),), alone, spread
    )


def series(folder: Path, better: str) -> list[Series]:
    """The time of each benchmark in the runs of ``folder``, oldest first; points are known by the start of their run.

    Raises :class:`PlumbError` for a file that is no result.
    """
    return [
        Series(
            name,
            better,
            [f"{_utc(when):%Y-%m-%dT%H:%M:%SZ}" for when, _ in runs],
            [_median(run) for run in runs],
            step=step_of(repr(_median(run)) for run in runs),
        )
        for name, runs in _runs(folder).items()
    ]


def _files(place: Path) -> list[Path]:
    """The files of results in ``place``, or it."""
    every = [place] if place.is_file() else sorted(place.rglob("new/sample.json")) or sorted(place.rglob("*.json"))
    if not every:
        raise PlumbError("there is no JSON file", str(place), tools.CURE)
    return [file for file in every if file.name not in tools.OTHERS]


def _runs(place: Path) -> dict[str, list[Run]]:
    """The runs of each benchmark in a file or folder, oldest first."""
    read = map(tools.read, _files(place))
    runs = group((name, (when, values)) for when, repetitions in read for name, values in repetitions.items())
    return {name: sorted(known) for name, known in runs.items()}


def _sides(places: Sequence[Path]) -> list[dict[str, list[Run]]]:
    """The runs of each of ``places``; raises :class:`PlumbError` for a file that is there twice."""
    same = group((files.sha256(file), file) for place in places for file in _files(place))
    if copies := next((copies for copies in same.values() if len(copies) > 1), None):
        raise PlumbError(f"a copy of {copies[0]}: no run of its own", str(copies[1]), "give a file for each run")
    sides = [_runs(place) for place in places]
    if all(len(side) == 1 for side in sides):  # hyperfine calls it as the command, which differs
        return [dict.fromkeys(sides[-1], *side.values()) for side in sides]
    return sides


def _median(run: Run) -> float:
    return statistics.median(run[1])


def _utc(when: float) -> datetime:
    return datetime.fromtimestamp(when, timezone.utc)


def _cell(place: Path, runs: list[Run]) -> Cell:
    """Each run is a session, and in turn with none of another side."""
    values = [_median(run) for run in runs]
    return Cell(
        statistics.median(values),
        (str(place),),
        tuple(tuple(repetitions) for _, repetitions in runs),
        0,
        sum(len(repetitions) for _, repetitions in runs),
        step_of(map(repr, values)),
        tuple(f"{place} {number}" for number in range(len(runs))),
    )


def _pairs(name: str, old: list[Run], new: list[Run], where: str) -> Pairs:
    order = sorted([(when, 0) for when, _ in old] + [(when, 1) for when, _ in new])
    last, notes = order[-1][1], tuple[str, ...]()
    if len(old) - len(new) == 1 - 2 * last:
        order.pop()
        notes = (f"the last run of the {('baseline', 'candidate')[last]} has no pair and does not count",)
    turns = [{first[1], second[1]} for first, second in zip(order[::2], order[1::2], strict=False)]
    if len(order) % 2 or {0} in turns or {1} in turns or len(dict(order)) < len(order):
        raise PlumbError(
            f"{name}: {len(old)} and {len(new)} runs that were not made by turns show no pairs: no verdict", where, CURE
        )
    sides = [[repr(_median(run)) for run in runs[: len(turns)]] for runs in (old, new)]
    return fixed_pairs(name, sides, "lower", where, notes)
