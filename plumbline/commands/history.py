"""``plumb history``: figures that became slower or faster, in the records or in any numbers."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.base import paths, units
from plumbline.base.errors import PlumbError
from plumbline.base.table import table
from plumbline.base.terminal import say
from plumbline.commands import options
from plumbline.judge import from_csv, samples
from plumbline.judge.history import Followed, followed
from plumbline.judge.statement import nonempty
from plumbline.records import notes, store
from plumbline.show import notes as notes_shown
from plumbline.statistics.changes import Settings

if TYPE_CHECKING:
    from plumbline.gate.confirm import Answer

#: exit statuses, as of the gate: nothing is slower; an alarm (with --confirm: a confirmed one)
QUIET, ALARM = 0, 1
#: options of --confirm
CONFIRMING = ("application", "cause_minutes")
#: above this number of series with fewer points, one line stands for all of these
MOST_SHORT, FEWEST = 20, 3
HEADER = ("series", "n", "last", "unit", "change", "smallest visible")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb history``."""
    text = "judge the columns series, index and value of a CSV file"
    parser.add_argument("--series", type=Path, metavar="FILE", help=text)
    options.add_better(parser, "--series")
    options.add(parser, "--tolerance", "smallest change that counts (default: 0.05, 5 %%)", default=0.05)
    text = "points that a change must last (default: 5)"
    parser.add_argument("--persist", type=int, default=5, metavar="N", help=text)
    options.add_records(parser)
    text = "measure what the newest change of a series may have made slower, in pairs"
    parser.add_argument("--confirm", action="store_true", help=text)
    options.add(parser, "--application", "with --confirm: its commits are measured (default: the plumb.yaml here)")
    options.add(parser, "--cause-minutes", f"after a confirmed change {options.CAUSE}")
    options.add_json(parser, "print JSON of records too: a line for each series")


def run(args: argparse.Namespace) -> int:
    """Follow every series; 0 without a slowdown, 1 with an alarm.

    With ``--confirm`` only a confirmed alarm is 1; one that could be neither confirmed nor refuted is 2, one whose
    measurement is invalid 3.
    """
    settings = Settings(min_effect=args.tolerance, persist=args.persist)
    return _file(args, settings) if args.series else _records(args, settings)


def _file(args: argparse.Namespace, settings: Settings) -> int:
    if args.confirm:
        raise PlumbError(
            "--confirm goes with the records", "plumb history --series", "numbers cannot be measured again"
        )
    for option in options.supplied(args, *options.RECORDS, *CONFIRMING, "json"):
        raise PlumbError(f"{option} goes with the records", "plumb history --series", "leave it out")
    if not args.better:
        raise PlumbError("the direction is missing", "plumb history --series", "say --better lower or --better higher")
    histories = [followed(series, settings) for series in from_csv.series(args.series, args.better)]
    for item in histories:
        print(json.dumps(item.to_dict()))
    return _status(histories)


def _records(args: argparse.Namespace, settings: Settings) -> int:
    if not args.confirm and (unused := options.supplied(args, *CONFIRMING)):
        raise PlumbError(f"{unused[0]} goes with --confirm", "plumb history", "add --confirm")
    if args.better:
        raise PlumbError("--better goes with --series", "plumb history", "records know their direction")
    rows, damages = options.rows(args)
    options.report_damage(damages)
    every_series = samples.series(rows)
    if not every_series:
        raise PlumbError("no verified record", "plumb history", "make campaign measures some")
    noted, spoilt = notes.of_sites(series.key["site"] for series in every_series)
    options.report_damage(spoilt, "note")
    histories = [followed(series, settings, noted) for series in every_series]
    answers: dict[int, Answer] = {}
    causes: dict[int, str] = {}
    if args.confirm:
        from plumbline.gate import cause, confirm

        with options.progress(args.json):
            answers = confirm.answers(histories, settings, say, cause.command, args.application)
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
        if cells := [_row(item, answers.get(place)) for place, item in enumerate(histories) if item.count >= least]:
            print(table(HEADER, cells, right=("n", "last", "smallest visible")))
        if least:
            needed = settings.baseline + settings.persist
            print(f"{short} series of fewer than {FEWEST} points are not shown: a change is seen from {needed} on")
        if noted:
            print(f"\n{notes_shown.listing(noted)}")
        for place, answered in answers.items():
            print(f"\n{answered.state}: {histories[place].subject}: {answered.text}")
            if answered.search:
                print(causes.get(place) or f"the cause: {answered.search}")
        print(f"\n{_closing(histories, answers if args.confirm else None)}")
    return confirm.status(answers.values()) if args.confirm else _status(histories)


def _causes(args: argparse.Namespace, answers: Mapping[int, Answer]) -> dict[int, str]:
    """Results of the searches for causes of confirmed changes, each with an equal share of the minutes."""
    searches = {place: answer.search for place, answer in answers.items() if answer.search}
    if not args.cause_minutes or not searches:
        return {}
    from plumbline.gate import cause

    folder = paths.build() / "why" / f"history-{store.new_session()}"
    minutes = args.cause_minutes / len(searches)
    return {place: cause.search(text, minutes, folder / str(place), say) for place, text in searches.items()}


def _status(histories: Sequence[Followed]) -> int:
    return ALARM if any(item.state == "worse" for item in histories) else QUIET


def _row(item: Followed, answer: Answer | None) -> tuple[str, ...]:
    value, unit = units.human(item.series.values[-1], item.series.unit or "", item.series.step)
    change = "–"
    if item.ratio is not None:
        last = item.alarms[-1]
        suspected = "" if answer and answer.state == "confirmed" else "suspected: "
        change = f"{suspected}{item.ratio - 1:+.1%} {last['direction']} since {last['index']}"
        change += f" ({len(item.alarms)} in all)" if len(item.alarms) > 1 else ""
        change += f", commits {'..'.join(commit[:12] for commit in last['commits'])}" if "commits" in last else ""
        change += f", noted: {'; '.join(last['notes'])}" if "notes" in last else ""
    visible = "too few" if item.detectable is None else f"{item.detectable:.1%}"
    return item.subject, str(item.count), value, unit, change, visible


def _closing(histories: Sequence[Followed], answers: dict[int, Answer] | None) -> str:
    slower = sum(item.state == "worse" for item in histories)
    short = sum(item.detectable is None for item in histories)
    text = f"{len(histories)} series, {slower} suspected to have become worse, {short} with too few points to see any"
    if answers is not None:
        states = Counter(answer.state for answer in answers.values())
        text += "\nNewest changes for the worse: " + (", ".join(f"{n} {s}" for s, n in states.items()) or "none")
    elif slower:
        text += "\nA slow wave looks like a step: --confirm measures the newest changes in pairs, which decides."
    return text
