"""``plumb outliers``, ``history``, ``calibrate`` and ``lint``: figures against their like, past and references."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from plumbline import site
from plumbline.base import paths, units
from plumbline.base.errors import PlumbError
from plumbline.base.extensions import Extension
from plumbline.base.terminal import say
from plumbline.base.units import counted, percent
from plumbline.base.verdicts import EXIT
from plumbline.commands import options
from plumbline.commands.options import Group, command, exclusive, flag, goes_without, needs, only_with, option
from plumbline.judge import from_csv, from_tools, samples, statement
from plumbline.judge.history import Followed, followed, series_of_records
from plumbline.judge.members import Matrix, Nodes
from plumbline.judge.outliers import Margins, Verdict, closing, decide
from plumbline.judge.references import calibrate, match
from plumbline.judge.references.calibrate import Change
from plumbline.judge.references.faults import faults, is_own
from plumbline.judge.statement import nonempty
from plumbline.measure.application import model
from plumbline.records import notes, query, store
from plumbline.show import summary
from plumbline.show.columns import Column, Table
from plumbline.show.report.history import SERIES, Trend
from plumbline.statistics.changes import Settings

if TYPE_CHECKING:
    from plumbline.gate.confirm import Answer

#: above this number of INCONCLUSIVE rows with one reason, one line stands for all of these
MOST_ALIKE = 5


def _notes(item: Verdict) -> str:
    notes = [note for finding in item.findings for note in finding.notes][:2]
    return f"{item.explanation} ({'; '.join(notes)})" if notes else item.explanation


OUTLIERS = Table[Verdict](
    "Classes",
    [
        Column("class", lambda item: item.subject),
        Column("members", lambda item: ", ".join(counted(count, kind) for kind, count in item.members.items())),
        Column("launches", lambda item: item.count, "number"),
        Column("noise", lambda item: percent(item.noise), "number"),
        Column(
            "detectable",
            lambda item: (
                ", ".join("none" if value is None else percent(value) for value in item.seen.values()) or "none"
            ),
            "number",
        ),
        Column("verdict", lambda item: item.state),
        Column("what", _notes),
    ],
)


@command(
    exclusive(
        option("id", "judge the links in this record of the kernel pairs (last: the newest)", nargs="?"),
        option(
            "--members",
            "judge the nodes in a CSV file with the columns node,class,value or node,series,index,value",
            type=Path,
            metavar="FILE",
        ),
        option(
            "--matrix",
            "judge the links in a CSV file with the columns first,second,class,value (and launch)",
            type=Path,
            metavar="FILE",
        ),
    ),
    options.better("a file"),
    option("--tolerance", "ignore differences below this (default: 0.02, 2 %%)", default=0.02),
    option(
        "--must-detect",
        "smallest difference that must be detected, else INCONCLUSIVE (default: 0.1, 10 %%)",
        default=0.10,
    ),
    options.records(),
    options.EXPERIMENTS,
    option("--figure", "only figures of this name, such as triad"),
    options.as_json("print JSON, one line per class"),
    rules=[
        goes_without(
            f"{' '.join(options.RECORDS)} experiments figure",
            "members matrix id",
            "{} chooses among all records",
            "leave it out",
        ),
        needs("better", "the direction is missing", "say --better lower or --better higher", having="members matrix"),
        only_with("better", "members matrix", "--better goes with a file", "records know their direction"),
    ],
)
def run_outliers(args: argparse.Namespace) -> int:
    """Judge every class; returns the gate's exit status: 0 PASS, 1 FAIL (something is slower), 2 INCONCLUSIVE."""
    verdicts = decide(_classes(args), Margins(args.tolerance, args.must_detect))
    if args.json:
        print(statement.lines(verdicts), flush=True)
        print(closing(verdicts), file=sys.stderr)
    else:
        show_outliers(verdicts)
    return EXIT[statement.overall(verdicts)]


def show_outliers(verdicts: Sequence[Verdict]) -> None:
    """Print the table, in which classes that are undecided for one reason are a line."""
    counts = Counter(item.explanation for item in verdicts if item.state == "INCONCLUSIVE")
    alike = {reason: count for reason, count in counts.items() if count > MOST_ALIKE}
    if rows := [item for item in verdicts if item.explanation not in alike]:
        print(f"{OUTLIERS.text(rows)}\n")
    for reason, count in alike.items():
        print(f"{count} classes are INCONCLUSIVE: {reason}\n")
    print(closing(verdicts))


def _classes(args: argparse.Namespace) -> list[Nodes | Matrix]:
    if args.members:
        return list(from_csv.nodes(args.members, args.better))
    if args.matrix:
        return list(from_csv.matrices(args.matrix, args.better))
    if args.id:
        return list(samples.matrices(query.find(args.id)))
    rows, damages = options.rows(args, valid=True)
    options.report_damage(damages)
    classes = list(samples.nodes(rows, args.figure))
    if not classes:
        raise PlumbError("no verified record of a single node", "plumb outliers", "measure several nodes first")
    return [*classes]


#: classes of nodes: options, and what they ask for; None where it was not asked for
OPTIONS: Extension[[], Sequence[Group]] = Extension("calibrate.options")
RUN: Extension[[argparse.Namespace], int | None] = Extension("calibrate.run")


def _old(change: Change) -> str | None:
    if change.old is None:
        return None
    number, unit = units.human(change.old.value, change.old.unit)
    return number if unit == units.human(change.new.value, change.new.unit)[1] else f"{number} {unit}"


def _moved(change: Change) -> str:
    if change.old is None:
        return "new"
    return units.signed(change.new.value / change.old.value - 1) if change.old.unit == change.new.unit else "unit"


CHANGES = Table[Change](
    "References",
    [
        Column("reference", lambda change: str(change.new)),
        Column("old", _old, "number"),
        Column("new", lambda change: units.human(change.new.value, change.new.unit)[0], "number"),
        Column("unit", lambda change: units.human(change.new.value, change.new.unit)[1]),
        Column("change", _moved, "number"),
        Column("within", lambda change: f"±{change.new.upper:.1%}", "number"),
        Column("sessions", lambda change: change.new.source.sessions, "number"),
        Column("", lambda change: change.kept or ""),
    ],
)


@command(
    options.records(site="site (default: the site of this host)"),
    options.EXPERIMENTS,
    option("--min-sessions", "sessions required for a reference (default: 3)", type=int, default=3, metavar="N"),
    flag("--dry-run", "show the changes and write nothing"),
    options.as_json(),
    added=OPTIONS,
)
def run_calibrate(args: argparse.Namespace) -> int:
    """Calibrate; 0 if there is a reference to show, 1 if the records gave none."""
    for status in RUN(args):
        if status is not None:
            return status
    name = args.site or site.here()
    site.load(name)
    args.site = name
    where = options.selection(args)
    records, damages = query.records(where)
    if not records:
        query.require(where)
    options.report_damage(damages)
    outcome = calibrate.propose(records, name, args.min_sessions)
    changes = [change for family in sorted(outcome.changes) for change in outcome.changes[family]]
    changed = sum(change.kept is None and change.old != change.new for change in changes)
    with options.progress(args.json):
        if changes and not args.json:
            print(CHANGES.text(changes) + "\n")
        for (kind, reason), count in sorted(outcome.refused.items()):
            print(f"refused: {units.counted(count, kind)}: {reason}")
        for file in [] if args.dry_run else calibrate.write(name, outcome):
            print(f"written: {file}")
        done = "would change" if args.dry_run else "changed"
        print(f"site {name}: {changed} of {units.counted(len(changes), 'reference')} {done}")
    if args.json:
        options.print_lines(map(msgspec.to_builtins, changes))
    return 0 if changes else 1


@command(
    option("sites", "sites to check (default: all)", nargs="*", metavar="SITE"),
    options.as_json("print JSON, one line per fault"),
)
def run_lint(args: argparse.Namespace) -> int:
    """Print a line per fault; 1 if there is one."""
    names, tests = options.sites_of(args), site.expected()
    file = model.find(Path.cwd())
    application = model.load(file) if file else None
    programs = [model.test_name(application.application, name) for name in application.programs] if application else []
    by_site = {name: faults(name, tests, programs) for name in names}
    if args.json:
        options.print_lines({"site": name, "fault": fault} for name in names for fault in by_site[name])
    else:
        entries = []
        for file in (file for name in names for file in match.files(name)):
            with contextlib.suppress(PlumbError):  # it is a fault already
                document = match.read(file)
                entries += [(document.test, entry) for entry in document.references]
        application_tests = list(
            dict.fromkeys(entry.test for family, entry in entries if is_own(entry, family, tests, programs))
        )
        print("".join(f"FAULT {fault}\n" for name in names for fault in by_site[name]), end="")
        if application_tests:
            listed = ", ".join(application_tests)
            print(f"not tests of the suite, but of applications, whose plumb.yaml has them: {listed}")
        counts = {"site": len(names), "reference": len(entries), "fault": sum(map(len, by_site.values()))}
        print(", ".join(units.counted(count, noun) for noun, count in counts.items()))
    return 1 if any(by_site.values()) else 0


#: how messages name the command for a file
OF_FILE = "plumb history --series"
#: above this number of series with fewer points, one line stands for all of these
MOST_SHORT, FEWEST = 20, 3


@command(
    option(
        "--series",
        "judge a CSV file with the columns series,index,value, or a folder of JSON files that another tool wrote",
        type=Path,
        metavar="FILE",
    ),
    options.better("--series"),
    option("--tolerance", "ignore changes below this (default: 0.05, 5 %%)", default=0.05),
    option(
        "--persist", "smallest number of points that a change must last (default: 5)", type=int, default=5, metavar="N"
    ),
    options.records(),
    options.EXPERIMENTS,
    flag("--confirm", "confirm the newest slowdown of each series by paired measurements"),
    option("--application", "with --confirm: plumb.yaml of the application to measure (default: the one here)"),
    option("--cause-minutes", f"after a confirmed change, {options.CAUSE}"),
    options.as_json("print JSON, one line per series (always with a file)"),
    rules=[
        goes_without(
            "confirm", "series", "--confirm goes with the records", "numbers cannot be measured again", OF_FILE
        ),
        goes_without(
            f"{' '.join(options.RECORDS)} experiments application cause_minutes json",
            "series",
            "{} goes with the records",
            "leave it out",
            OF_FILE,
        ),
        needs(
            "better",
            "the direction is missing",
            "say --better lower or --better higher",
            having="series",
            where=OF_FILE,
        ),
        only_with("application cause_minutes", "confirm", "{} goes with --confirm", "add --confirm"),
        only_with("better", "series", "--better goes with --series", "records know their direction"),
    ],
)
def run_history(args: argparse.Namespace) -> int:
    """Follow every series; 0 without a slowdown, 1 with an alarm.

    With ``--confirm`` only a confirmed alarm is 1; one that could be neither confirmed nor refuted is 2, one whose
    measurement is invalid 3.
    """
    settings = Settings(min_effect=args.tolerance, persist=args.persist)
    return _history_of_file(args, settings) if args.series else _history_of_records(args, settings)


def _history_of_file(args: argparse.Namespace, settings: Settings) -> int:
    read = from_tools.series if args.series.is_dir() else from_csv.series
    histories = [followed(series, settings) for series in read(args.series, args.better)]
    options.print_lines(item.to_dict() for item in histories)
    return int(any(item.state == "worse" for item in histories))


def _history_of_records(args: argparse.Namespace, settings: Settings) -> int:
    rows, damages = options.rows(args)
    options.report_damage(damages)
    every_series = series_of_records(rows)
    if not every_series:
        raise PlumbError("no verified record", "plumb history", "make campaign measures some")
    noted, spoilt = notes.of_sites(series.key["site"] for series in every_series)
    options.report_damage(spoilt, "note")
    histories = [followed(series, settings, noted) for series in every_series]
    answers: dict[int, Answer] = {}
    causes: dict[int, str] = {}
    if args.confirm:
        from plumbline.gate import cause_command, confirm

        with options.progress(args.json):
            answers = confirm.answers(histories, settings, say, cause_command, args.application)
            causes = _causes(args, answers)
    if args.json:
        for place, item in enumerate(histories):
            answer = (
                {"confirmation": nonempty(**asdict(answers[place]), cause=causes.get(place))}
                if place in answers
                else {}
            )
            print(json.dumps({**item.to_dict(), **answer, "unit": item.series.unit, "key": item.series.key}))
    else:
        short = sum(item.count < FEWEST for item in histories)
        least = FEWEST if short > MOST_SHORT else 0
        confirmed = {place for place, answer in answers.items() if answer.state == "confirmed"}
        trends = [
            Trend(item, confirmed=place in confirmed) for place, item in enumerate(histories) if item.count >= least
        ]
        if trends:
            print(SERIES.text(trends))
        if least:
            needed = settings.baseline + settings.persist
            print(f"{short} series of fewer than {FEWEST} points are not shown: a change is seen from {needed} on")
        if noted:
            print(f"\n{summary.NOTES.text(noted)}")
        for place, answered in answers.items():
            print(f"\n{answered.state}: {histories[place].subject}: {answered.text}")
            if answered.search:
                print(causes.get(place) or f"the cause: {answered.search}")
        print(f"\n{_history_closing(histories, answers if args.confirm else None)}")
    return confirm.status(answers.values()) if args.confirm else int(any(item.state == "worse" for item in histories))


def _causes(args: argparse.Namespace, answers: Mapping[int, Answer]) -> dict[int, str]:
    """Results of the searches for causes of confirmed changes, each with an equal share of the minutes."""
    searches = {place: answer.search for place, answer in answers.items() if answer.search}
    if not args.cause_minutes or not searches:
        return {}
    from plumbline.gate import cause_search

    folder = paths.build() / "why" / f"history-{store.new_session()}"
    minutes = args.cause_minutes / len(searches)
    return {place: cause_search(text, minutes, folder / str(place), say) for place, text in searches.items()}


def _history_closing(histories: Sequence[Followed], answers: dict[int, Answer] | None) -> str:
    slower = sum(item.state == "worse" for item in histories)
    short = sum(item.detectable is None for item in histories)
    text = f"{len(histories)} series, {slower} suspected to have become worse, {short} with too few points to see any"
    if answers is not None:
        states = Counter(answer.state for answer in answers.values())
        text += "\nNewest changes for the worse: " + (", ".join(f"{n} {s}" for s, n in states.items()) or "none")
    elif slower:
        text += "\nA slow wave looks like a step: --confirm measures the newest changes in pairs, which decides."
    return text
