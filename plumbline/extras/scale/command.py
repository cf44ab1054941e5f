"""``plumb scale``: the curve of a program over threads, ranks or nodes, each point proven, and why it bends."""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from plumbline import schedulers
from plumbline.base import paths, terminal, units
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.commands.options import command, flag, goes_without, needs, option
from plumbline.extras.scale import curve, measured, points, shown
from plumbline.extras.scale.measured import SCALING, Scaling
from plumbline.gate.commands import figure_rule
from plumbline.gate.setup import GATE
from plumbline.host import binder, machine
from plumbline.launch.neighbour import KINDS
from plumbline.measure.application import model
from plumbline.measure.session import circumstances
from plumbline.parsers.application import FigureRule
from plumbline.records import store
from plumbline.records.variant import Variant
from plumbline.schedulers import names
from plumbline.show import pages
from plumbline.show.columns import Column, Table

#: exit status where a point has no value
LACKING = 1


@command(
    option("words", "program of plumb.yaml, or -- and a command: {threads}, {ranks}, {nodes} and arithmetic with them "
           "are replaced", nargs="*", metavar="PROGRAM | -- COMMAND"),
    option("--test", "scale the test whose name matches this regular expression from the start"),
    option("--over", "what of a program or test grows (default: threads, or ranks where each has one thread)",
           choices=("threads", "ranks", "nodes")),
    option("--baseline", "compare two curves: command:'PROGRAM ARG …' with {threads} or {ranks}", metavar="SIDE"),
    option("--candidate", "candidate, named like the baseline", metavar="SIDE"),
    option("--counts", "numbers of threads, ranks or nodes: 1,2,4 or doubling or ladder, the steps of this machine "
           "(default: ladder)", metavar="LIST"),
    flag("--weak", "the command's work grows with the number: its size has a placeholder, such as {100*threads}"),
    option("--split", "ranks x threads on N cores, in place of a curve: the command has {ranks} and {threads}",
           type=int, metavar="N"),
    option("--values", "what {value} stands for at each point", metavar="A,B,…"),
    option("--placement", "cores of the threads, such as compact or spread (default: compact)"),
    option("--fill", "neighbour on the cores that a point leaves idle, as in production (default: they stay idle)",
           choices=KINDS[1:]),
    option("--figure", "the number that this regular expression has in ( ) (default: time); of a program or test: "
           "the name of its figure (default: the first)"),
    option("--unit", "unit of --figure (default: none)", metavar="UNIT"),
    options.better("--figure"),
    option("--minutes", "end after M minutes (default: 10; two curves: when all is decided)"),
    option("--rounds", "most rounds over all points (default: 30)"),
    option("--tolerance", "of two curves: tolerated slowdown (default: 0.01, 1 %%)"),
    option("--must-detect", "of two curves: smallest slowdown that must be detected (default: 0.05, 5 %%)"),
    option("--efficiency", "least efficiency of the number for core hours (default: 0.7)", default=0.7, type=float,
           metavar="X"),
    option("--application", "plumb.yaml of the program (default: the one here)"),
    option("--stack", "stack of the program or test (default: the first that the site offers)"),
    option("--site", "site (default: the site of this host)"),
    option("--partition", "measure in one job of this partition, of as many nodes as the largest point needs"),
    option("--work", "folder of this scaling (default: in the build folder)"),
    option("--resume", "go on with, or show, the scaling in this folder"),
    flag("--dry-run", "print the points, launches, time and core hours, and start nothing"),
    options.as_json("print the curve as JSON, progress on standard error"),
    options.output("write the curve to a file", ".html", ".json", ".csv", ".md", ".txt", ".badge"),
    usage="plumb scale [--counts LIST] [--weak] [--figure REGEX --better DIRECTION] -- COMMAND\n"
    "       plumb scale [--counts LIST] [--over threads|ranks|nodes] PROGRAM | --test REGEX\n"
    "       plumb scale [--counts LIST] --baseline SIDE --candidate SIDE\n"
    "       plumb scale --resume FOLDER",
    rules=[
        goes_without("resume", "words test over baseline candidate counts placement weak split values fill figure unit "
                     "better tolerance must_detect application stack site partition work dry_run",
                     "--resume has its own command", "leave the others out"),
        needs("baseline candidate", "{} needs both sides", "add --baseline SIDE --candidate SIDE",
              having="baseline candidate tolerance must_detect"),
        goes_without("baseline", "words test over split fill rounds efficiency application stack site partition "
                     "dry_run", "two curves are two commands", "leave the others out"),
        goes_without("test", "words", "--test and a command", "name one of them"),
        goes_without("split", "weak counts placement", "--split has its own points", "leave the others out"),
        *options.OF_FIGURE,
        needs("words", "no command is named", "plumb scale --counts 1,2 -- ./program ARG …",
              unless="resume test baseline"),
    ],
)  # fmt: skip
def run_scale(args: argparse.Namespace) -> int:
    """Measure a curve, or go on with one; 1 if a point has no value. Two curves: the status of a gate."""
    if not 0 < args.efficiency <= 1:
        raise PlumbError(f"{args.efficiency:g} is no efficiency", f"{points.WHERE} --efficiency", "such as 0.7")
    if args.baseline or (args.resume and (args.resume / GATE.file).exists()):
        from plumbline.extras.scale import gated  # here and below: a curve of a command needs neither

        if useless := next((file for file in args.output if file.suffix in (".csv", ".txt", ".badge")), None):
            raise PlumbError(f"{useless.suffix} of two curves", str(useless), "their forms: .html, .json, .md")
        return gated.measured(args, args.resume.resolve() if args.resume else gated.begin(args, _rule(args)))
    if args.dry_run:
        print(_plan(_begun(args)))
        return 0
    passed = ("minutes", "rounds", "efficiency", "output")
    return options.in_session(args, SCALING, _folder, lambda folder: SCALING.peek(folder).where, _measured, passed)


def _rule(args: argparse.Namespace) -> FigureRule:
    """How the figure of a command is read."""
    rule = figure_rule(args, points.WHERE)
    if args.figure is not None and not args.better:
        raise PlumbError("--figure without a direction", points.WHERE, "add --better lower or --better higher")
    return rule


def _folder(args: argparse.Namespace) -> Path:
    """The folder of the scaling, which is begun unless it is resumed."""
    if args.resume:
        return Path(args.resume).resolve()
    scaling = _begun(args)
    folder = Path(args.work or paths.build() / "scale" / scaling.name).resolve()
    SCALING.begin(folder, scaling)
    print(f"to go on after an interruption: plumb scale --resume {folder}", flush=True)
    return folder


def _measured(args: argparse.Namespace, folder: Path) -> tuple[int, str]:
    scaling = SCALING.peek(folder)
    scaling = replace(scaling, minutes=args.minutes or scaling.minutes, rounds=args.rounds or scaling.rounds)
    ended, scaling, launches = measured.measure(folder, scaling, lambda line: print(line, flush=True))
    if scaling.kind == "nodes":
        job = SCALING.peek(folder).circumstances["nodes"]
        several = len(names.expand(job, str(folder))) > 1
        ended += f"; each point was a part of the job on {job}" if several else "; each launch had nodes of its own"
    result = shown.result(scaling, launches, ended, args.efficiency)
    terminal.page("\n" + shown.text(result))
    options.write("the curve", args.output, {
        ".html": lambda: pages.render(shown.document(result)),
        ".json": lambda: shown.as_json(result),
        ".csv": lambda: shown.as_csv(result),
        ".badge": lambda: shown.badge(result, args.efficiency),
        ".md": lambda: f"{shown.points_table(result).markdown(result.rows)}\n",
        ".txt": lambda: f"{shown.text(result)}\n",
    })  # fmt: skip
    return LACKING if any(row.fault for row in result.rows) else 0, shown.as_json(result)


def _begun(args: argparse.Namespace) -> Scaling:
    file, first = model.named_or_here(args.application), "".join(args.words[:1])
    is_alone = len(args.words) == 1 or args.weak
    is_named = is_alone and "/" not in first and file and first in model.load(file).programs
    return _of_variants(args, file if is_named else None) if is_named or args.test else _of_command(args)


def _of_variants(args: argparse.Namespace, file: Path | None) -> Scaling:
    """The scaling of a program of ``file``, or of a test. Words after the program are its arguments in weak scaling."""
    from plumbline.extras.scale import named

    useless_for = ("split", "better") if args.weak and file else ("weak", "split", "values", "better")
    if useless := next((name for name in useless_for if getattr(args, name)), None):
        raise PlumbError(f"--{useless} needs a command", points.WHERE, "plumb scale … -- ./program ARG …")
    program = args.words[0] if file else None
    declared = model.load(file).programs[program].scale if file and program else None
    variant = named.base(program or args.test, file, args.stack, options.system(args))
    usual = "ranks" if variant.threads == 1 and "threads" not in variant.params else "threads"
    kind = args.over or (declared.over if declared else usual)
    listed = ",".join(map(str, declared.counts)) if declared and kind == declared.over else ""
    counts = _counts(args.counts if args.counts is not None else listed or points.LADDER, kind)
    words = points.commands(args.words, kind, counts, options.names_of(args.values), True) if args.weak else []
    variants = named.points(variant, kind, counts, args.placement or "compact", args.figure, words)
    return _scaling(
        args, kind, counts, words or [[each.name] for each in variants], FigureRule(),
        f"{variant.site}:{variant.partition}", [variant.stack], variants,
    )  # fmt: skip


def _of_command(args: argparse.Namespace) -> Scaling:
    if useless := next((name for name in ("over", "stack", "application") if getattr(args, name)), None):
        raise PlumbError(f"--{useless} is for programs of plumb.yaml and tests", points.WHERE, "leave it out")
    kind = points.kind(args.words)
    if kind != "threads" and args.placement:
        raise PlumbError(f"--placement with {{{kind}}}", points.WHERE, "their launcher places them")
    spelled = points.LADDER if args.counts is None else args.counts
    counts = _counts(spelled, kind) if args.split is None else points.splits(args.words, args.split)
    words = points.commands(args.words, kind, counts, options.names_of(args.values), args.weak, args.split or 0)
    if shutil.which(words[0][0]) is None:
        raise PlumbError(
            f"there is no program {words[0][0]} that can be started", points.WHERE, "build it, or give its path"
        )
    return _scaling(args, kind, counts, words, _rule(args), (options.system(args) or "") if args.partition else "")


def _counts(spelled: str, kind: str) -> list[int]:
    job = schedulers.current(os.environ)
    return points.numbers(spelled, machine.load(), kind, len(job.hosts(os.environ)) if job.has_jobs else 0)


def _scaling(
    args: argparse.Namespace, kind: str, counts: list[int], commands: list[list[str]], rule: FigureRule,
    partition: str, stacks: Sequence[str] = (), variants: Sequence[Variant] = (),
) -> Scaling:  # fmt: skip
    if args.placement and (fault := binder.fault(args.placement)):
        raise PlumbError(fault, f"{points.WHERE} --placement", "such as compact or spread")
    scaling = Scaling(
        name=store.new_session(), kind=kind, counts=counts, commands=commands, weak=args.weak, rule=rule,
        placement=args.placement or "compact" if kind == "threads" else "", minutes=args.minutes or 10.0,
        rounds=args.rounds or 30, seed=secrets.randbits(32), cores=args.split or 0, variants=list(variants),
        partition=partition, fill=args.fill or "", circumstances={},
    )  # fmt: skip
    (part, nodes), placed = scaling.where, binder.placement(args.placement or "compact")
    if args.fill and (nodes > 1 or (placed and not placed.bound)):
        where = f"on {nodes} nodes" if nodes > 1 else f"with placement {args.placement}"
        raise PlumbError(f"--fill {where}", points.WHERE, "leave it out: it fills what the plan of one node leaves")
    return replace(scaling, circumstances=circumstances(list(stacks), part))


def _plan(scaling: Scaling) -> str:
    here = machine.load()
    starts = points.starts(scaling.counts, here) if scaling.placement else {}
    rows = list(enumerate(scaling.counts))
    table = Table[tuple[int, int]](
        "Points",
        [
            Column("point", lambda row: scaling.label(row[0])),
            Column("fills", lambda row: starts.get(row[1], "")),
            Column("command", lambda row: shlex.join(scaling.commands[row[0]])),
        ],
    )
    least, hours = curve.ROUNDS * len(rows), scaling.minutes / 60 * len(here.cores) * scaling.where[1]
    return (
        f"{table.text(rows)}\n\n{least} to {scaling.rounds * len(rows)} launches, in rounds over all points\n"
        f"at most {scaling.minutes:g} min, if {curve.ROUNDS} rounds take no longer: {hours:.2g} core hours of "
        f"{units.counted(scaling.where[1], 'node')}"
    )
