"""What a bisection says: the answer in a line, a table of the comparisons, JSON and Markdown."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from plumbline.base.units import counted, percent, some
from plumbline.bisect.bench import State
from plumbline.bisect.commits import Commits
from plumbline.bisect.model import ATTEMPTS, Comparison, Found, Step
from plumbline.judge.statement import given, rounded
from plumbline.statistics.paired import CAP, LOOKS
from plumbline.views import summary
from plumbline.views.table import escaped, markdown, table

HEADER = ("commit", "date", "subject", "against", "verdict", "ratio", "interval", "pairs", "launches", "therefore")
RIGHT = ("ratio", "pairs", "launches")
#: characters of a commit's subject in a table
WIDTH = 32
#: exit statuses
FOUND, NOTHING, OPEN, INVALID = 0, 1, 2, 3


@dataclass(frozen=True)
class Row:
    """A comparison, and what follows from it."""

    comparison: Comparison
    therefore: str


@dataclass(frozen=True)
class Report:
    """What the bisection of ``folder`` found, and ``why`` it ended before all was found, if it did."""

    folder: Path
    state: State
    found: Found
    commits: Commits
    why: str | None = None

    @property
    def status(self) -> int:
        """The exit status."""
        ends = self.found.ends
        if self.why or ends is None:
            return OPEN
        if ends.state == "INVALID":
            return INVALID
        if ends.state != "FAIL":
            return NOTHING
        return FOUND if self.found.is_complete else OPEN

    @property
    def answer(self) -> str:
        """The first line."""
        return self.lines[0]

    @property
    def lines(self) -> list[str]:
        """The answer, one line for each change that was found, and what else is certain or is not."""
        found, asked = self.found, self.state.asked
        series = ": ".join(self.state.series or ())
        ends = found.ends
        lines = [line for culprit in found.culprits for line in (culprit.line, *culprit.notes)]
        if ends and ends.state != "FAIL":
            good, bad = asked.given
            why = ends.reason or f"slowdowns of {percent(ends.detectable or 0.0)} and more are ruled out"
            lines.append(f"{bad} is not slower than {good} for certain: {series}: {ends.state}: {why}")
        if ends and len(found.culprits) > 1:
            lines.append(f"together {asked.given[1]} is {ends.by} than {asked.given[0]}")
        if found.culprits and not (self.why or found.unknown):
            lines.append(f"nothing else in the range changes it by {percent(asked.must_detect)} or more")
        lines += found.unknown
        if self.why:
            lines.append(f"{self.why}: plumb bisect --resume {self.folder} goes on")
        return lines

    @property
    def gates(self) -> int:
        """How many comparisons were measured."""
        return sum(one.launches > 0 for one in self.state.comparisons)

    @property
    def launches(self) -> int:
        """How many launches all comparisons made."""
        return sum(one.launches for one in self.state.comparisons)

    @property
    def notes(self) -> list[str]:
        """What else is to be known."""
        others = self.state.others
        told = [f"slower too, and not followed (--test, --figure): {some(others)}"] if others else []
        replay = [
            f"git bisect replay {self.folder / f'bisect-{number}.log'}" for number in range(1, len(self.found.logs) + 1)
        ]
        cost = f"{counted(self.gates, 'gate')}, {counted(self.launches, 'launch')}; folder {self.folder}"
        return [*told, cost, *replay]

    def rows(self) -> Iterator[Row]:
        """All comparisons, range by range, each once."""
        shown: list[Comparison] = []
        for row in self._rows():
            if row.comparison not in shown:
                shown.append(row.comparison)
                yield row

    def _rows(self) -> Iterator[Row]:
        found = self.found
        if found.ends:
            yield Row(found.ends, "slower" if found.ends.state == "FAIL" else "nothing to search")
        for culprit in found.culprits:
            yield from self._steps([step for step in found.steps if step.part == culprit.part])
            yield Row(culprit.comparison, "confirmed" if culprit.is_confirmed else "not confirmed")
        complete = [culprit.part for culprit in found.culprits]
        yield from self._steps([step for step in found.steps if step.part not in complete])
        said = {"PASS": "nothing more", "FAIL": "searched", "GAIN": "searched"}
        yield from (Row(one, said.get(one.state, "unknown")) for one in found.rest)

    def _steps(self, steps: Sequence[Step]) -> Iterator[Row]:
        for step in steps:
            *before, last = step.comparisons
            yield from (Row(one, "") for one in before)
            yield Row(last, step.term)

    def cells(self, row: Row) -> tuple[str, ...]:
        """A row of :data:`HEADER`."""
        one = row.comparison
        subject, date = self.commits.subject(one.candidate)
        return (
            one.candidate[:12],
            date,
            summary.shorten(subject, WIDTH),
            one.baseline[:12],
            one.state,
            "–" if one.ratio is None else f"{one.ratio:.4f}",
            "–" if one.interval is None else "{:.4f} to {:.4f}".format(*one.interval),
            str(one.pairs),
            str(one.launches),
            row.therefore,
        )

    def text(self) -> str:
        """For people: the table, the answer, notes."""
        rows = [self.cells(row) for row in self.rows()]
        shown = [table(HEADER, rows, RIGHT, spare=("date", "launches", "subject")), ""] if rows else []
        return "\n".join([*shown, *self.notes, "", *(f"bisect: {line}" for line in self.lines)])

    def markdown(self) -> str:
        """The answer, the table, what else is known."""
        first, *rest = self.lines
        cells = [self.cells(row) for row in self.rows()]
        bullets = [f"- {escaped(line)}" for line in (*rest, *self.notes)]
        return "\n".join([f"**{escaped(first)}**", "", markdown(HEADER, cells, RIGHT), "", *bullets]) + "\n"

    def document(self) -> str:
        """All of it as JSON."""
        found, asked = self.found, self.state.asked
        steps = [
            {
                "commit": step.commit,
                "said": step.term,
                **given(reason=step.why),
                "gates": list(map(_plain, step.comparisons)),
            }
            for step in found.steps
        ]
        whole = {
            "answer": self.answer,
            "line": f"bisect: {self.lines[0]}",
            "status": self.status,
            "gates": self.gates,
            "launches": self.launches,
            "series": ": ".join(self.state.series or ()),
            "good": asked.good,
            "bad": asked.bad,
            "rule": {"tolerance": asked.tolerance, "must_detect": asked.must_detect},
            "ends": _plain(found.ends) if found.ends else None,
            "culprits": [culprit.to_dict() for culprit in found.culprits],
            "steps": steps,
            "rest": list(map(_plain, found.rest)),
            **given(unknown=found.unknown, others=self.state.others, ended=self.why),
            "facts": [{"name": "folder", "text": str(self.folder)}, {"name": "stack", "text": asked.stack}],
        }
        return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def facts(self) -> list[tuple[str, str]]:
        """What was asked, by names."""
        asked = self.state.asked
        both = zip(("good", "bad"), asked.given, (asked.good, asked.bad), strict=True)
        named = [(name, f"{said} ({self.commits.label(commit)})") for name, said, commit in both]
        margins = f"{percent(asked.tolerance)} tolerated, {percent(asked.must_detect)} must be seen"
        return [*named, ("figure", ": ".join(self.state.series or ())), ("stack", asked.stack), ("margins", margins)]


def _plain(one: Comparison) -> dict[str, Any]:
    numbers = {"ratio": one.ratio, "interval": one.interval, "detectable": one.detectable}
    known = {name: value for name, value in numbers.items() if value is not None}
    return {**msgspec.to_builtins(one), **rounded(known, 6)}


def plan(commits: int) -> str:
    """What a search among so many commits takes."""
    steps = math.ceil(math.log2(commits))
    gates = steps + 4 if steps else 1
    least, most = 2 * LOOKS[0], 2 * CAP
    return (
        f"{counted(commits, 'commit')}: {counted(steps, 'step')}, for one change about {counted(gates, 'gate')} (the "
        "ends, the steps, the commit against its parent, what is left on both sides)\n"
        f"{least} launches a gate where the change is much larger than the noise, {most} at most: {least * gates} to "
        f"{most * gates} in all\n"
        f"a gate that noise leaves open is measured again where that may decide: {ATTEMPTS} times at most\n"
        "another change in the range takes as many again, a commit that does not build one more step"
    )
