"""Whether the lesson of a lab holds here.

By its figures, compared as any two sides of records are, and by commands whose output shows it: a plan, a profile, a
screen of settings.
"""

from __future__ import annotations

import functools
import re
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plumbline.base import group, paths, units
from plumbline.base.units import Better
from plumbline.extras.labs.model import RECORD, Lab, Lesson, Printed, Table
from plumbline.judge import pivot
from plumbline.judge.compare import Cell, cell, difference, session_spread
from plumbline.judge.pivot import Item, Pivot
from plumbline.judge.references import match
from plumbline.judge.references.match import Entry
from plumbline.judge.statement import Statement
from plumbline.records.model import AnyRecord
from plumbline.statistics import Floats, unpaired
from plumbline.statistics.basic import holm

#: states of findings
HOLDS, OPPOSITE, UNSEEN, MISSING = "holds", "does not hold", "no difference seen", "not measured"


@dataclass(frozen=True, kw_only=True)
class LessonFinding(Statement):
    """The result of one lesson; ``subject`` is the lesson's sentence and the parameters of the figures.

    The ``ratio`` is how many times better the figure is that should be better; None where one of them is 0. A
    ``planned`` finding follows from a topology: it is true of any machine, and nothing was measured.
    """

    planned: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of it."""
        return {
            "lesson": self.subject,
            "state": self.state,
            "launches": self.count,
            "reason": self.reason,
            "ratio": self.ratio,
            "interval": self.interval,
        }


@dataclass(frozen=True)
class Filled:
    """A table of a lab: published figures by ``SITE:PARTITION``, and those measured here."""

    table: Table
    published: dict[str, Pivot]
    measured: Pivot


@dataclass(frozen=True)
class Couple:
    """Two figures that a lesson compares, the one first that should be better, in one ``unit``.

    Those of a lab's ``counted`` table, and bytes, have no noise if all launches of a side are alike.
    """

    lesson: Lesson
    of: str
    better: Cell
    than: Cell
    unit: str
    direction: Better
    counted: bool

    @property
    def exact(self) -> tuple[float, float] | None:
        """The value of each side where figures are counted, the one first that should be better; else None."""
        sides = [set(_values(side.sessions)) for side in (self.better, self.than)]
        if not (self.counted or self.unit == units.BYTES) or any(len(side) != 1 for side in sides):
            return None
        return sides[0].pop(), sides[1].pop()


def filled(lab: Lab, rows: Sequence[AnyRecord]) -> list[Filled]:
    """The tables of a lab from records, and from the published references of the partitions that it names."""
    return [
        Filled(
            table,
            {place: pivot.table(items, table.rows, table.columns) for place in table.published
             if (items := _published(place, table))},
            pivot.table(_items(table, rows), table.rows, table.columns),
        )
        for table in lab.tables
    ]  # fmt: skip


def _items(table: Table, rows: Iterable[AnyRecord]) -> list[Item]:
    items = [item for item in pivot.measured(rows, table.figures, table.tests) if item.has(table.where)]
    return list(map(pivot.spread, items)) if table.spread else items


def _published(place: str, table: Table) -> list[Item]:
    name, _, partition = place.partition(":")
    items = pivot.published(name, _references(name), table.figures, table.tests)
    return [item for item in items if item.get("partition") == partition and item.has(table.where)]


@functools.cache
def _references(name: str) -> list[Entry]:
    """The references of a machine of the documents, read once: several tables show them."""
    files = sorted((paths.suite() / "site-configs" / name / "references").glob("*.yaml"))
    return [entry for file in files for entry in match.read(file).references]


def findings(lab: Lab, rows: Sequence[AnyRecord]) -> list[LessonFinding]:
    """The findings of the records on each lesson of a lab, one for each stack, machine and further parameter."""
    compared = [lesson for lesson in lab.seen if lesson.better]
    couples = [couple for lesson in compared for couple in _couples(lesson, lab.tables[lesson.table], rows)]
    spread = session_spread(rows)
    differences = [_difference(couple, len(couples), spread) for couple in couples]
    claimed = holm(np.array([p for *_, p in differences]), max(len(couples), 1), unpaired.ERROR)
    judged = group(
        (couple.lesson.says, _finding(couple, ratio, interval, bool(sure), _is_enough(couple, len(couples))))
        for couple, (ratio, interval, _), sure in zip(couples, differences, claimed, strict=True)
    )
    return [
        finding
        for lesson in lab.seen
        for finding in judged.get(lesson.says, []) or [_without_figures(lesson, lab.tables, rows)]
    ]


def _without_figures(lesson: Lesson, tables: Sequence[Table], rows: Sequence[AnyRecord]) -> LessonFinding:
    """Of a comparison that nothing was measured for, and of programs that check their answers."""
    if lesson.better:
        return LessonFinding(subject=lesson.says, state=MISSING, count=0)
    counting = [table.tests for table in tables if table.counted]
    checked = [row for row in rows if not any(re.fullmatch(tests, row.variant.test) for tests in counting)]
    count = sum(row.launch_count for row in checked if row.is_valid)
    wrong = next((row.reasons[0] for row in checked if row.reasons), None)  # a record that runs has no answer yet
    state = OPPOSITE if wrong else HOLDS if count else MISSING
    return LessonFinding(subject=lesson.says, state=state, count=count, reason=wrong)


def _couples(lesson: Lesson, table: Table, rows: Sequence[AnyRecord]) -> list[Couple]:
    items = _items(table, rows)
    first, second = (
        group(
            (_rest(item, point), item)
            for item in items
            if all(item.get(name) == value for name, value in point.items())
        )
        for point in (lesson.better, lesson.than)
    )
    shared = [rest for rest in first if rest in second]
    shown = {name for rest in shared for name, value in rest if len({dict(params).get(name) for params in shared}) > 1}
    couples = []
    for rest in shared:
        unit = pivot.unit_of([*first[rest], *second[rest]])
        better, than = (cell([item.measured for item in side[rest] if item.measured], unit) for side in (first, second))
        of = " ".join(f"{name} {value}" if value.isdigit() else value for name, value in rest if name in shown)
        couples.append(Couple(lesson, of, better, than, unit, first[rest][0].better, table.counted))
    return couples


def _rest(item: Item, point: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """All parameters but those that a lesson names; its tests may differ if it names figures."""
    return tuple(sorted((name, value) for name, value in item.parameters.items() if name not in {*point, "test"}))


def _difference(couple: Couple, tests: int, spread: float) -> tuple[float | None, tuple[float, float] | None, float]:
    """How many times better, with its interval, and p; only p where a figure is 0, no interval where it is counted."""
    than_cell, better_cell, higher = couple.than, couple.better, couple.direction == "higher"
    has_ratio = than_cell.has_ratio and better_cell.has_ratio
    if couple.exact:
        more, less = couple.exact if higher else couple.exact[::-1]
        return (more / less, None, float(more == less)) if has_ratio else (None, None, float(more <= less))
    if not has_ratio:
        worse, better = (_values(side.sessions) * (1 if higher else -1) for side in (than_cell, better_cell))
        return None, None, min(1.0, 2 * unpaired.p_not_larger(better, worse))
    comparison = difference(than_cell, better_cell, couple.direction, tests, spread)
    bounds = None if comparison.low is None or comparison.high is None else (comparison.low, comparison.high)
    if higher:
        return comparison.ratio, bounds, comparison.p
    return 1 / comparison.ratio, bounds and (1 / bounds[1], 1 / bounds[0]), comparison.p


def _values(sessions: Sequence[Sequence[float]]) -> Floats:
    return np.concatenate([np.asarray(session, dtype=np.float64) for session in sessions])


def _is_enough(couple: Couple, tests: int) -> bool:
    """Whether so few launches could show any difference, of so many comparisons."""
    sides = (couple.than, couple.better)
    if couple.exact or min(len(side.sessions) for side in sides) >= unpaired.ENOUGH:
        return True
    launches = [sum(map(len, side.sessions)) for side in sides]
    if all(side.has_ratio for side in sides):
        return min(launches) >= unpaired.ENOUGH
    return unpaired.critical(*launches, unpaired.ERROR / 2 / tests) >= 0


def _finding(
    couple: Couple, ratio: float | None, interval: tuple[float, float] | None, sure: bool, enough: bool
) -> LessonFinding:
    shown = HOLDS if ratio is None or ratio > 1 else OPPOSITE
    state = shown if sure else UNSEEN if enough else MISSING
    values = [
        pivot.formatted(pivot.Shown(side.value, couple.unit, couple.direction, side), None)
        for side in (couple.better, couple.than)
    ]
    sides = {side.records: side for side in (couple.better, couple.than)}.values()  # one, of figures of one record
    launches, disturbed = sum(side.launches for side in sides), sum(side.disturbed for side in sides)
    reason = f"{values[0]} against {values[1]}" + (", too few launches to say more" if state == MISSING else "")
    reason += f", {disturbed} of {units.counted(launches, 'launch')} disturbed" if disturbed else ""
    subject = couple.lesson.says + (f" ({couple.of})" if couple.of else "")
    return LessonFinding(subject, state, launches, ratio, interval, reason=reason)


def closing(lab: Lab, findings: Sequence[LessonFinding], lacks: str) -> str:
    """The line that ends a lab: holds here, does not hold here and why, or cannot be shown here and the reason."""
    known = [finding for finding in findings if finding.state != MISSING]
    planned = [finding for finding in known if finding.planned]
    measured = [finding for finding in known if not finding.planned]
    against = [finding for finding in known if finding.state != HOLDS]
    holding = sum(finding.state == HOLDS for finding in measured)
    if lacks and not holding and all(finding.state == UNSEEN for finding in against):
        measured, against = [], []  # nothing else could be seen here
    if against:
        some = f"holds here in {holding} of {len(measured)} comparisons, not in" if holding else "does not hold here"
        return "; ".join(filter(None, (f"{some}: {finding_line(against[0])}", lacks)))
    plans = f"what the document says of plans is true, in {units.counted(len(planned), 'line')}" if planned else ""
    if not measured and (len(planned) < len(findings) or not findings):
        few = any(finding.count for finding in findings if finding.state == MISSING)
        why = "too few launches to say it" if few else "not measured here yet"
        missing = f"cannot be shown here: {lacks}" if lacks else f"{why}: plumb lab {lab.name}"
        return "; ".join(filter(None, (missing, plans)))
    if not measured:
        return f"holds: {plans}"
    if len(known) < len(findings):
        missing = lacks or "the others have no figures"
        return f"holds here in {len(measured)} of {len(findings) - len(planned)} comparisons; {missing}"
    if len(measured) > 1:
        return f"holds here in all {len(measured)} comparisons"
    return f"holds here: {': '.join(filter(None, (measured[0].subject, _how_much(measured[0]))))}"


def finding_line(finding: LessonFinding) -> str:
    """A finding in a line: sentence, state, how many times, and the values."""
    return f"{finding.subject}: {'; '.join(filter(None, (finding.state, _how_much(finding))))}"


def _how_much(finding: LessonFinding) -> str:
    times = "" if finding.ratio is None else f"{units.digits(finding.ratio)} times"
    times += f" ({' to '.join(map(units.digits, finding.interval))})" if times and finding.interval else ""
    return ", ".join(filter(None, (times, finding.reason)))


@dataclass(frozen=True)
class Output:
    """The output of a command, and the finding of each of its expected lines."""

    command: str
    text: str
    findings: list[LessonFinding]


def run_printed(printed: Printed, record: str = "") -> Output:
    """The output of a command in the suite's folder; ``record`` is the id of the lab's newest one.

    Where it fails, its errors are part of the text, such as of a program that was ended, and their last line is
    the reason why an expected line is missing.
    """
    program = paths.program("plumb")
    words = [record if word == RECORD else word for word in printed.command[1:]]
    words = [
        str(paths.stacks() / word.removeprefix("stacks/")) if word.startswith("stacks/") else word for word in words
    ]
    done = subprocess.run([program, *words], cwd=paths.suite(), capture_output=True, text=True, check=False)
    text, failure = done.stdout.rstrip("\n"), None
    if done.returncode:
        errors = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        text, failure = "\n".join([*filter(None, [text]), *errors]), errors[-1]
    planned = not (printed.measures or record in words)
    findings = [replace(_line_finding(*line, text, failure), planned=planned) for line in printed.lines.items()]
    return Output(shlex.join([printed.command[0], *words]), _parts(printed.shows, text), findings)


def _parts(pattern: str | None, text: str) -> str:
    """The matches of ``pattern``, with dots for lines between; the whole if there are none."""
    if pattern is None:
        return text
    shown, end = "", 0
    for part in re.finditer(pattern, text, re.MULTILINE):
        between = "\n…\n" if text[end : part.start()].strip("\n") else "\n"
        shown += (between if shown else "") + part[0].strip("\n")
        end = part.end()
    return shown or text


def _line_finding(pattern: str, says: str, text: str, failure: str | None) -> LessonFinding:
    if line := re.search(pattern, text, re.MULTILINE):
        return LessonFinding(subject=says, state=HOLDS, count=1, reason=" ".join(line[0].split()))
    if failure:
        return LessonFinding(subject=says, state=MISSING, count=0, reason=failure)
    return LessonFinding(subject=says, state=OPPOSITE, count=1, reason="the output has no such line")
