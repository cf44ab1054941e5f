"""``plumb scale``: the curve of a command over threads or ranks, each point proven, and why it bends."""

from __future__ import annotations

import argparse
import secrets
import shlex
import shutil

from msgspec.structs import replace

from plumbline.base import paths, terminal
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.commands.options import command, flag, goes_without, only_with, option
from plumbline.extras.scale import curve, measured, points, shown
from plumbline.extras.scale.measured import SCALING, Scaling
from plumbline.host import machine
from plumbline.measure.application.model import pattern_faults
from plumbline.measure.session import circumstances
from plumbline.parsers.application import FigureRule
from plumbline.records import store
from plumbline.show import pages
from plumbline.show.columns import Column, Table

#: exit status where a point has no value
LACKING = 1


@command(
    option("words", "the command: {threads}, {ranks} and arithmetic with them are replaced", nargs="*",
           metavar="-- COMMAND"),
    option("--counts", "numbers of threads, or of ranks: 1,2,4 or doubling or ladder, the steps of this machine "
           "(default: ladder)", metavar="LIST"),
    flag("--weak", "the command's work grows with the number: its size has a placeholder, such as {100*threads}"),
    option("--values", "what {value} stands for at each point", metavar="A,B,…"),
    option("--order", "cores of the threads: close together or far apart (default: compact)",
           choices=("compact", "spread")),
    option("--figure", "the number that this regular expression has in ( ) (default: time)"),
    option("--unit", "unit of --figure (default: none)", metavar="UNIT"),
    options.better("--figure"),
    option("--minutes", "end after M minutes (default: 10)"),
    option("--rounds", "most rounds over all points (default: 30)"),
    option("--efficiency", "least efficiency of the number for core hours (default: 0.7)", default=0.7, type=float,
           metavar="X"),
    option("--work", "folder of this scaling (default: in the build folder)"),
    option("--resume", "go on with, or show, the scaling in this folder"),
    flag("--dry-run", "print the points and their commands, and start nothing"),
    options.output("write the curve to a file", ".html", ".json", ".csv", ".md", ".txt"),
    usage="plumb scale [--counts LIST] [--weak] [--figure REGEX --better DIRECTION] -- COMMAND\n"
    "       plumb scale --resume FOLDER",
    rules=[
        goes_without("resume", "words counts order weak values figure unit better work dry_run",
                     "--resume has its own command", "leave the others out"),
        only_with("figure", "better", "--figure without a direction", "add --better lower or --better higher"),
        only_with("better unit", "figure", "--better and --unit go with --figure", "leave them out"),
    ],
)  # fmt: skip
def run_scale(args: argparse.Namespace) -> int:
    """Measure a curve, or go on with one; 1 if a point has no value."""
    if not (args.resume or args.words):
        raise PlumbError("no command is named", points.WHERE, "plumb scale --counts 1,2 -- ./program ARG …")
    if not 0 < args.efficiency <= 1:
        raise PlumbError(f"{args.efficiency:g} is no efficiency", f"{points.WHERE} --efficiency", "such as 0.7")
    if args.resume:
        folder = args.resume.resolve()
        scaling = SCALING.peek(folder)
        scaling = replace(scaling, minutes=args.minutes or scaling.minutes, rounds=args.rounds or scaling.rounds)
    else:
        scaling = _begun(args)
        if args.dry_run:
            print(_plan(scaling))
            return 0
        folder = (args.work or paths.build() / "scale" / scaling.name).resolve()
        SCALING.begin(folder, scaling)
    print(f"to go on after an interruption: plumb scale --resume {folder}", flush=True)
    ended = measured.measure(folder, scaling, lambda line: print(line, flush=True))
    result = shown.result(scaling, folder, ended, args.efficiency)
    terminal.page("\n" + shown.text(result))
    options.write("the curve", args.output, {
        ".html": lambda: pages.render(shown.document(result)),
        ".json": lambda: shown.as_json(result),
        ".csv": lambda: shown.as_csv(result),
        ".md": lambda: f"{shown.POINTS.markdown(result.rows)}\n",
        ".txt": lambda: f"{shown.text(result)}\n",
    })  # fmt: skip
    return LACKING if any(row.fault for row in result.rows) else 0


def _begun(args: argparse.Namespace) -> Scaling:
    for fault in pattern_faults(args.figure, number=True) if args.figure else ():
        raise PlumbError(f"'{args.figure}': {fault}", f"{points.WHERE} --figure", "such as 'rate: (\\S+)'")
    here = machine.load()
    kind = points.kind(args.words)
    counts = points.numbers(points.LADDER if args.counts is None else args.counts, here, kind)
    values = args.values.split(",") if args.values else []
    words = points.commands(args.words, kind, counts, values, args.weak)
    if shutil.which(words[0][0]) is None:
        raise PlumbError(
            f"there is no program {words[0][0]} that can be started", points.WHERE, "build it, or give its path"
        )
    printed = FigureRule(pattern=args.figure, unit=args.unit or "1", better=args.better or "lower")
    return Scaling(
        name=store.new_session(), kind=kind, counts=counts, commands=words,
        placement="" if kind == "ranks" else args.order or "compact", weak=args.weak,
        rule=printed if args.figure else FigureRule(wall=True), minutes=args.minutes or 10.0,
        rounds=args.rounds or 30, seed=secrets.randbits(32), circumstances=circumstances([]),
    )  # fmt: skip


def _plan(scaling: Scaling) -> str:
    starts = points.starts(scaling.counts, machine.load())
    rows = list(zip(scaling.counts, scaling.commands, strict=True))
    table = Table[tuple[int, list[str]]](
        "Points",
        [
            Column(scaling.kind, lambda row: str(row[0]), "number"),
            Column("fills", lambda row: starts.get(row[0], "")),
            Column("command", lambda row: shlex.join(row[1])),
        ],
    )
    least = curve.ROUNDS * len(rows)
    end = f"at least {least} launches, in rounds over all points; at most {scaling.minutes:g} min after the first "
    return f"{table.text(rows)}\n\n{end}{curve.ROUNDS} rounds"
