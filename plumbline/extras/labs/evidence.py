"""Whether the lesson of a lab holds here.

By its figures, compared as any two sides of records are, and by commands whose output shows it: a plan, a profile, a
screen of settings.
"""

from __future__ import annotations

import functools
import itertools
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plumbline.base import group, paths, units
from plumbline.base.units import Better
from plumbline.extras.labs.model import RECORD, Lab, Lesson, Point, Printed, Table
from plumbline.judge import pivot
from plumbline.judge.compare import Cell, cell, difference, session_spread
from plumbline.judge.pivot import Item, Pivot
from plumbline.judge.references import match
from plumbline.judge.references.match import Entry
from plumbline.judge.statement import Statement
from plumbline.parsers.kernel import WRONG
from plumbline.records.model import AnyRecord
from plumbline.statistics import Floats, unpaired
from plumbline.statistics.basic import holm

#: family-wise error of the firm lines of a lab, which are read as facts; where a figure is 0, the order of launches
#: alone decides, with unpaired.ERROR
FIRM = 0.002
#: states of findings
HOLDS, OPPOSITE, UNSEEN, MISSING = "holds", "does not hold", "not decided", "not measured"


@dataclass(frozen=True, kw_only=True)
class LessonFinding(Statement):
    """The result of one lesson; ``subject`` is the lesson's sentence and the parameters of the figures.

    The ``ratio`` is how many times better the figure is that should be better; None where one of them is 0. A
    ``planned`` finding is counted or computed: it is true of any machine, and nothing was measured. So many of its
    launches were ``disturbed``.
    """

    planned: bool = False
    disturbed: int = 0

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

    @property
    def bound(self) -> Cell:
        """The side ``than``, worse by the factor that the lesson allows."""
        factor = self.lesson.within if self.direction == "lower" else 1 / self.lesson.within
        sessions = tuple(tuple(value * factor for value in session) for session in self.than.sessions)
        return replace(self.than, value=self.than.value * factor, sessions=sessions)


@dataclass(frozen=True)
class Difference:
    """How many times better the side is that should be, with its interval, and p; None where a figure is 0.

    ``by_rounds``: the rounds of both sides decide, and not the launches of one. A difference of ``visible`` times would
    have been seen.
    """

    ratio: float | None
    interval: tuple[float, float] | None
    p: float
    by_rounds: bool = True
    visible: float | None = None


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
    return (
        pivot.launches(items)
        if table.launches == "each"
        else items
        if table.launches == "median"
        else list(map(pivot.spread, items))
    )


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
    claimed = holm(np.array([between.p for between in differences]), max(len(couples), 1), FIRM)
    judged = group(
        (couple.lesson.says, _finding(couple, between, bool(sure), _is_enough(couple, len(couples))))
        for couple, between, sure in zip(couples, differences, claimed, strict=True)
    )
    return [
        finding
        for lesson in lab.seen
        for finding in judged.get(lesson.says, []) or [_without_figures(lesson, lab.tables, rows)]
    ]


def _without_figures(lesson: Lesson, tables: Sequence[Table], rows: Sequence[AnyRecord]) -> LessonFinding:
    """Of a comparison that nothing was measured for, and of programs that check their answers.

    A launch that failed is no evidence: only a wrong answer of a program that ended well is against a lesson.
    """
    counting = [table.tests for table in tables if table.counted]
    checked = [row for row in rows if not any(re.fullmatch(tests, row.variant.test) for tests in counting)]
    if lesson.better:
        checked = [row for row in rows if re.fullmatch(tables[lesson.table].tests, row.variant.test)]
    failed = next((f"{row.variant.name} on {row.stack.name}: {row.reasons[0]}" for row in checked if row.reasons), None)
    if lesson.better:
        return LessonFinding(subject=lesson.says, state=MISSING, count=0, reason=failed)
    valid = [row for row in checked if row.is_valid]
    answers = group(
        item for row in valid for item in row.answers.items() if re.fullmatch(lesson.answers or "(?!)", item[0])
    )
    unlike = (f"{name} is {' and '.join(dict.fromkeys(of))}" for name, of in answers.items() if len(set(of)) > 1)
    wrong = (reason for row in checked for reason in row.reasons if WRONG in reason)
    lacking = _lacking(lesson, valid)
    if lesson.answers and not lacking and all(len(of) < 2 for of in answers.values()):
        lacking = ["two answers to compare"]
    reason = next(itertools.chain(wrong, unlike), None)
    state = OPPOSITE if reason else MISSING if lacking or not valid else HOLDS
    if state == MISSING:
        reason = failed or (f"there is no {', no '.join(lacking)}" if valid else None)
    if state == HOLDS:
        reason = next((f"{name} is {of[0]}" for name, of in sorted(answers.items())), None)
    return LessonFinding(lesson.says, state, sum(row.launch_count for row in valid), reason=reason)


def _lacking(lesson: Lesson, valid: Sequence[AnyRecord]) -> list[str]:
    """The variants that a lesson needs and that no valid record has."""
    items = pivot.measured(valid)
    return [
        f"{name} {value}"
        for name, values in lesson.variants.items()
        for value in values
        if all(item.get(name) != value for item in items)
    ]


def _couples(lesson: Lesson, table: Table, rows: Sequence[AnyRecord]) -> Iterator[Couple]:
    items = _items(table, rows)
    first, second = (
        group(
            (_rest(item, point), item)
            for item in items
            if all(item.get(name) == value for name, value in point.items())
        )
        for point in (_nearest(lesson.better, items), _nearest(lesson.than, items))
    )
    shared = [rest for rest in first if rest in second]
    shown = {name for rest in shared for name, value in rest if len({dict(params).get(name) for params in shared}) > 1}
    for rest in shared:
        unit = pivot.unit_of([*first[rest], *second[rest]])
        better, than = (cell([item.measured for item in side[rest] if item.measured], unit) for side in (first, second))
        of = " ".join(f"{name} {value}" if value.isdigit() else value for name, value in rest if name in shown)
        yield Couple(lesson, of, better, than, unit, first[rest][0].better, table.counted)


def _nearest(point: Point, items: Sequence[Item]) -> Point:
    """``point`` with the first of several values that was measured."""
    measured = {name: {item.get(name) for item in items} for name in point}
    return {
        name: next((each for each in value.split("|") if each in measured[name]), value)
        for name, value in point.items()
    }


def _rest(item: Item, point: Point) -> tuple[tuple[str, str], ...]:
    """All parameters but those that a lesson names; its tests may differ if it names figures."""
    return tuple(sorted((name, value) for name, value in item.parameters.items() if name not in {*point, "test"}))


def _difference(couple: Couple, tests: int, spread: float) -> Difference:
    """The difference of a couple; only p where a figure is 0, no interval where it is counted."""
    than_cell, better_cell, higher = couple.bound, couple.better, couple.direction == "higher"
    has_ratio = than_cell.has_ratio and better_cell.has_ratio
    if couple.exact:
        more, less = couple.exact if higher else couple.exact[::-1]
        return Difference(
            more / less if has_ratio else None, None, float(more == less) if has_ratio else float(more <= less)
        )
    if not has_ratio:
        worse, better = (_values(side.sessions) * (1 if higher else -1) for side in (than_cell, better_cell))
        return Difference(None, None, min(1.0, 2 * unpaired.p_not_larger(better, worse) * FIRM / unpaired.ERROR))
    between = difference(than_cell, better_cell, couple.direction, tests, spread)
    ratio, low, high = between.ratio, between.low, between.high
    if not higher:
        ratio, low, high = 1 / ratio, high and 1 / high, low and 1 / low
    # from the worst to the best pair of launches is not the interval of what decides
    interval = None if low is None or high is None or (low <= 1 <= high and between.p < unpaired.ERROR) else (low, high)
    return Difference(ratio, interval, between.p, between.basis != "launches", between.visible)


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


def _finding(couple: Couple, between: Difference, claimed: bool, enough: bool) -> LessonFinding:
    sides = {side.records: side for side in (couple.better, couple.than)}.values()  # one, of figures of one record
    ratio, within = between.ratio, couple.lesson.within
    if claimed and any(side.is_disturbed for side in sides):
        # other work may come and go between two sides: only what rounds of both show, and clearly, is said
        claimed = between.by_rounds and (ratio is None or unpaired.exceeds_sessions(ratio))
    shown = HOLDS if ratio is None or ratio > 1 else OPPOSITE
    state = shown if claimed else UNSEEN if enough else MISSING
    values = [
        pivot.formatted(pivot.Shown(side.value, couple.unit, couple.direction, side), None)
        for side in (couple.better, couple.than)
    ]
    launches, disturbed = sum(side.launches for side in sides), sum(side.disturbed for side in sides)
    reasons = [
        f"{values[0]} against {values[1]}",
        *(["too few launches to say more"] if state == MISSING else []),
        *([f"{units.digits(between.visible)} times would be seen"] if state == UNSEEN and between.visible else []),
        *([f"{disturbed} of {units.counted(launches, 'launch')} disturbed"] if disturbed else []),
    ]
    return LessonFinding(
        couple.lesson.says + (f" ({couple.of})" if couple.of else ""),
        state,
        launches,
        ratio and ratio / within,
        between.interval and (between.interval[0] / within, between.interval[1] / within),
        reason=", ".join(reasons),
        planned=couple.counted and couple.exact is not None,
        disturbed=disturbed,
    )


def closing(lab: Lab, findings: Sequence[LessonFinding], lacks: str) -> str:
    """The line that ends a lab: holds here, does not hold here and why, or cannot be shown here and the reason."""
    counted = sum(finding.planned and finding.state == HOLDS for finding in findings)
    compared = [finding for finding in findings if not (finding.planned and finding.state == HOLDS)]
    by_state = group((finding.state, finding) for finding in compared)
    holds, opposite, unseen, missing = (by_state.get(state, []) for state in (HOLDS, OPPOSITE, UNSEEN, MISSING))
    again, reason = f"plumb lab {lab.name}", next(filter(None, (finding.reason for finding in missing)), None)
    if opposite or (holds and len(holds) < len(compared)):
        some = f"holds here in {len(holds)} of {len(compared)} comparisons"
        parts = [(some if holds else "does not hold here") + (", not in" if holds and opposite else "")]
        parts = [
            *([f"{parts[0]}: {finding_line(opposite[0])}"] if opposite else parts),
            *([f"not decided: {unseen[0].subject} ({again} measures again)"] if unseen and not opposite else []),
            *([lacks or reason or "the others have no figures"] if missing and not opposite else []),
            *([lacks] if opposite else []),
        ]
    elif holds and len(holds) > 1:
        parts = [f"holds here in all {len(holds)} comparisons"]
    elif holds:
        parts = [f"holds here: {finding_line(holds[0], False)}"]
    elif lacks and (compared or not counted):
        parts = [f"cannot be shown here: {lacks}"]
    elif unseen:
        parts = [f"not decided here: {finding_line(unseen[0], False)}; {again} measures again"]
    elif reason and not any(finding.count for finding in missing):
        parts = [f"no figures here: {reason}"]
    elif compared or not counted:
        few = any(finding.count for finding in missing)
        parts = [f"{'too few launches to say it' if few else 'not measured here yet'}: {again}"]
    else:
        parts = []
    launches = sum(finding.count for finding in compared)
    parts += [
        *(["all launches were disturbed"] if 0 < launches == sum(item.disturbed for item in compared) else []),
        *([f"true without measuring, in {units.counted(counted, 'line')}"] if counted else []),
    ]
    return "; ".join(filter(None, parts))


def finding_line(finding: LessonFinding, with_state: bool = True) -> str:
    """A finding in a line: sentence, state, how many times, and the values."""
    times = "" if finding.ratio is None else f"{units.digits(finding.ratio)} times"
    times += f" ({' to '.join(map(units.digits, finding.interval))})" if times and finding.interval else ""
    parts = (finding.state if with_state else None, ", ".join(filter(None, (times, finding.reason))))
    return ": ".join(filter(None, (finding.subject, "; ".join(filter(None, parts)))))


@dataclass(frozen=True)
class Output:
    """The output of a command, with the published one below it, and the finding of each of its expected lines."""

    command: str
    text: str
    findings: list[LessonFinding]


def not_run(printed: Printed, reason: str = "") -> Output:
    """The published output of a command, and that nothing was measured, and why."""
    return Output(
        shlex.join(printed.command),
        _with_published("", printed),
        [LessonFinding(says, MISSING, 0, reason=reason) for says in printed.lines.values()],
    )


def _with_published(text: str, printed: Printed) -> str:
    return "\n\n".join(filter(None, (text, printed.published and f"published:\n{printed.published.rstrip()}")))


def run_printed(printed: Printed, record: str = "") -> Output:
    """The output of a command in the suite's folder; ``record`` is the id of the lab's newest one.

    Where it fails, its errors are part of the text, such as of a program that was ended, and their last line is
    the reason why an expected line is missing.
    """
    shown = [record if word == RECORD else word for word in printed.command]
    words = [
        str(paths.stacks() / word.removeprefix("stacks/")) if word.startswith("stacks/") else word for word in shown[1:]
    ]
    done = subprocess.run(
        [paths.program("plumb"), *words], cwd=paths.suite(), capture_output=True, text=True, check=False
    )
    text, failure = done.stdout.rstrip("\n"), None
    if done.returncode:
        errors = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        text, failure = "\n".join([*filter(None, [text]), *errors]), errors[-1]
    planned = not (printed.measures or record in words)
    findings = [replace(_line_finding(*line, text, failure), planned=planned) for line in printed.lines.items()]
    return Output(shlex.join(shown), _with_published(_parts(printed.shows, text), printed), findings)


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
