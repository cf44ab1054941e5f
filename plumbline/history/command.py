"""``plumb history``: what became slower or faster, in the records or in any numbers."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline import units
from plumbline.errors import PlumbError
from plumbline.judge.history import Series, course_document, direction
from plumbline.records import notes, query, sources
from plumbline.views.note import listing
from plumbline.views.table import table

if TYPE_CHECKING:
    from plumbline.history.confirm import Answer
    from plumbline.statistics.changes import Course, Settings

#: exit statuses, as of the gate: nothing is slower; an alarm (with --confirm: a confirmed one)
QUIET, ALARM = 0, 1
HEADER = ("series", "n", "last", "unit", "change", "smallest visible")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb history``."""
    parser.add_argument("--series", type=Path, metavar="F.csv", help="judge these: columns series, index, value")
    parser.add_argument("--better", choices=("lower", "higher"), help="direction of the values of --series")
    parser.add_argument("--min-effect", type=float, default=0.05, metavar="X", help="smallest change (default: 0.05)")
    parser.add_argument("--persist", type=int, default=5, metavar="N", help="points it must last (default: 5)")
    parser.add_argument("--site", help="only records of this site")
    parser.add_argument("--test", help="only tests whose name begins so")
    parser.add_argument(
        "--confirm",
        action="store_true",
        help="measure what the newest change of a series may have made slower, in pairs",
    )
    parser.add_argument("--json", action="store_true", help="a JSON line per series of the records too")


def run(args: argparse.Namespace) -> int:
    """Follow every series; 0 without a slowdown, 1 with an alarm.

    With ``--confirm`` only a confirmed alarm is 1; one that could be neither confirmed nor refuted is 2, one whose
    measurement is invalid 3.
    """
    from plumbline.statistics.changes import Settings  # not above: scipy takes longer to load than most commands to run

    settings = Settings(min_effect=args.min_effect, persist=args.persist)
    return _file(args, settings) if args.series else _records(args, settings)


def _file(args: argparse.Namespace, settings: Settings) -> int:
    if args.confirm:
        raise PlumbError(
            "--confirm goes with the records", "plumb history --series", "numbers cannot be measured again"
        )
    for name in ("site", "test", "json"):
        if getattr(args, name):
            raise PlumbError(f"--{name} goes with the records", "plumb history --series", "leave it out")
    if not args.better:
        raise PlumbError("the direction is missing", "plumb history --series", "say --better lower or --better higher")
    from plumbline.judge import from_csv
    from plumbline.statistics.changes import follow

    alarmed = False
    for series in from_csv.series(args.series, args.better):
        line = course_document(series, follow(series.values, settings), settings)
        print(json.dumps(line))
        alarmed |= _worse(line)
    return ALARM if alarmed else QUIET


def _records(args: argparse.Namespace, settings: Settings) -> int:
    if args.better:
        raise PlumbError("--better goes with --series", "plumb history", "records know their direction")
    from plumbline.judge import samples
    from plumbline.statistics.changes import follow

    rows, damages = query.records(query.Selection(site=args.site, test=args.test))
    for damage in damages:
        print(f"plumb: damaged record: {damage}", file=sys.stderr)
    found = samples.series(rows)
    if args.site:
        sources.require_site(args.site)
    if args.test and not rows:
        query.require_test(args.test)
    if not found:
        raise PlumbError("no verified record", "plumb history", "make campaign measures some")
    noted, spoilt = notes.of_sites(series.key["site"] for series in found)
    for damage in spoilt:
        print(f"plumb: damaged note: {damage}", file=sys.stderr)
    courses = [(series, follow(series.values, settings)) for series in found]
    lines = [course_document(series, course, settings, noted) for series, course in courses]
    answers = _confirm(courses, settings, args.json) if args.confirm else {}
    for place, answer in answers.items():
        lines[place]["confirmation"] = {"state": answer.state, "text": answer.text}
    if args.json:
        for (series, _), line in zip(courses, lines, strict=True):
            print(json.dumps({**line, "unit": series.unit, "key": series.key}))
    else:
        cells = [_row(*pair, line) for pair, line in zip(courses, lines, strict=True)]
        print(table(HEADER, cells, right=("n", "last", "smallest visible")))
        if noted:
            print(f"\n{listing(noted)}")
        for place, answer in answers.items():
            print(f"\n{answer.state}: {courses[place][0].name}: {answer.text}")
        print(f"\n{_closing(courses, lines, args.confirm)}")
    if args.confirm:
        return _status(answers)
    return ALARM if any(map(_worse, lines)) else QUIET


def _confirm(courses: list[tuple[Series, Course]], settings: Settings, quiet: bool) -> dict[int, Answer]:
    """The answer to each series whose newest change is for the worse, by the series' place; progress on stderr."""
    from plumbline.history import confirm  # measuring needs the launch driver; looking at history does not
    from plumbline.statistics.sequential import Rule

    def say(line: str) -> None:
        print(line, file=sys.stderr if quiet else sys.stdout, flush=True)

    rule = Rule(settings.min_effect / 5, settings.min_effect)
    confirmer = confirm.Confirmer(rule, confirm.measure_here(say))
    answers = {}
    for place, (series, course) in enumerate(courses):
        last = course.changes[-1] if course.changes else None
        if last is not None and direction(series.better, last.ratio) == "worse":
            good, bad = (query.find(series.index[index]) for index in (last.index - 1, last.index))
            say(f"confirming: {series.name}, slower since {bad.id}")
            answers[place] = confirmer.answer(confirm.Alarm(series.name, series.key["figure"], good, bad))
    return answers


def _status(answers: dict[int, Answer]) -> int:
    """The exit status of the worst answer, in the order of the gate's verdicts."""
    from plumbline.history.confirm import STATUS

    order = list(STATUS)
    states = sorted((answer.state for answer in answers.values()), key=order.index)
    return STATUS[states[-1]] if states else QUIET


def _row(series: Series, course: Course, line: dict[str, Any]) -> tuple[str, ...]:
    value, unit = units.human(series.values[-1], series.unit or "")
    change = "–"
    if course.changes:
        last = course.changes[-1]
        factor = last.ratio - 1
        suspected = "" if line.get("confirmation", {}).get("state") == "confirmed" else "suspected: "
        change = f"{suspected}{factor:+.1%} {direction(series.better, last.ratio)} since {series.index[last.index]}"
        if len(course.changes) > 1:
            change += f" ({len(course.changes)} in all)"
        if told := line["alarms"][-1].get("notes"):
            change += f", noted: {'; '.join(told)}"
    visible = "too few" if course.smallest_visible is None else f"{course.smallest_visible:.1%}"
    return series.name, str(len(series.values)), value, unit, change, visible


def _closing(courses: list[tuple[Series, Course]], lines: list[dict[str, Any]], confirmed: bool) -> str:
    slower = sum(map(_worse, lines))
    short = sum(course.smallest_visible is None for _, course in courses)
    parts = [
        f"{len(courses)} series",
        f"{slower} suspected to have become worse",
        f"{short} with too few points to see any",
    ]
    text = ", ".join(parts)
    if confirmed:
        states = Counter(line["confirmation"]["state"] for line in lines if "confirmation" in line)
        text += "\nNewest changes for the worse: " + (", ".join(f"{n} {s}" for s, n in states.items()) or "none")
    elif slower:
        text += "\nA slow wave looks like a step: --confirm measures the newest changes in pairs, which decides."
    return text


def _worse(line: dict[str, Any]) -> bool:
    return any(alarm["direction"] == "worse" for alarm in line["alarms"])
