"""On which stack the programs of an application are fastest: gates of the stacks that can still be it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from plumbline.base.table import table
from plumbline.base.units import counted, percent
from plumbline.base.verdicts import EXIT, worst
from plumbline.gate import live, run, setup, sides
from plumbline.judge.decide import Verdict
from plumbline.measure import jobs
from plumbline.measure.session import Say
from plumbline.statistics.paired import PairedRule

#: measures two stacks: the verdicts of the second against the first
Compare = Callable[[str, str], Sequence[Verdict]]


@dataclass
class SeriesRanking:
    """The ranking of the stacks in one series, by their gates.

    ``slower``: of each stack that is certainly slower than another one, by which fraction, and than which.
    ``doubts`` are reasons of gates that have decided nothing, by their two stacks.
    """

    slower: dict[str, tuple[float, str]] = field(default_factory=dict)
    doubts: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, first: str, second: str, verdict: Verdict) -> None:
        """Count the ``verdict`` on ``second`` against ``first``."""
        if verdict.state == "FAIL" and verdict.slower:
            self.slower[second] = (verdict.slower - 1, first)
        elif verdict.state == "GAIN" and verdict.slower:
            self.slower[first] = (1 / verdict.slower - 1, second)
        elif verdict.state != "PASS":
            self.doubts[first, second] = f"{verdict.state}: {verdict.explanation}"

    def row(self, stacks: Sequence[str]) -> tuple[str, str]:
        """Those of ``stacks`` that can be the fastest, and the evidence against the others."""
        best = [name for name in stacks if name not in self.slower]
        notes = [f"{name} {percent(by)} slower than {faster}" for name, (by, faster) in sorted(self.slower.items())]
        open_ = [text for both, text in self.doubts.items() if set(both) <= set(best)]
        if len(best) > 1 and not open_:
            notes.append("no difference between the first")
        return " or ".join(best), "; ".join(notes + open_)


def find(stacks: Sequence[str], compare: Compare) -> tuple[dict[str, SeriesRanking], int]:
    """The place of each series after gates of each two of ``stacks``, and the exit status.

    Two are compared unless one of them is slower than another in every series. The status is 0 where all gates decided.
    """
    places: dict[str, SeriesRanking] = {}
    states: list[str] = ["PASS"]
    for first, second in combinations(stacks, 2):
        if places and any(all(name in place.slower for place in places.values()) for name in (first, second)):
            continue
        for verdict in compare(first, second):
            places.setdefault(verdict.subject, SeriesRanking()).add(first, second, verdict)
            states.append("PASS" if verdict.state == "FAIL" else verdict.state)
    return places, EXIT[worst(states)]


def text(stacks: Sequence[str], places: dict[str, SeriesRanking]) -> str:
    """The table, and how often each of ``stacks`` alone is the fastest."""
    rows = [(name, *place.row(stacks)) for name, place in places.items()]
    alone = [sum(row[1] == name for row in rows) for name in stacks]
    named = ", ".join(f"{name} in {number}" for name, number in zip(stacks, alone, strict=True))
    closing = f"{counted(len(rows), 'figure')}: fastest is {named}, none alone in {len(rows) - sum(alone)}"
    return "\n".join([table(("figure", "fastest", "the others"), rows), "", closing])


def gates(file: Path, tests: str, system: str | None, rule: PairedRule, minutes: float | None, say: Say) -> Compare:
    """The real :data:`Compare`: live gates of the application of ``file`` in this process, ``minutes`` for them all.

    ``tests`` is the regular expression of its tests, ``system`` as of :class:`setup.GateRequest`. Raises
    :class:`PlumbError` where the site is reached by jobs.
    """
    end = time.monotonic() + 60 * minutes if minutes else None

    def compare(first: str, second: str) -> Sequence[Verdict]:
        both = (
            sides.resolve("baseline", f"stack:{first}", None, file),
            sides.resolve("candidate", f"stack:{second}", None, file),
        )
        request = setup.GateRequest(
            both, setup.Terms(rule, purpose="run"), tests, system, common=True, application=file
        )
        folder = setup.prepare(request, say)
        jobs.refuse(setup.partition_of(setup.GATE.peek(folder)), "plumb run --any-mpi")
        left = None if end is None else max((end - time.monotonic()) / 60, 0.0)
        return run.resume(folder, live.Stop(left), say).verdicts

    return compare
