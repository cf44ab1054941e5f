"""``plumb neighbours``: what a neighbour on the same node costs a program, at each distance between them."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import structs

from plumbline.base import paths, terminal
from plumbline.base.errors import PlumbError, pick
from plumbline.base.terminal import say
from plumbline.base.units import counted, cpu_list, interval, percent, ratio
from plumbline.commands import options
from plumbline.commands.options import command, flag, goes_without, needs, only_with, option
from plumbline.extras.neighbours import bench
from plumbline.extras.neighbours.bench import Distance, named, parts_of
from plumbline.gate import commands, run, setup
from plumbline.gate.live import Stop
from plumbline.gate.setup import GATE, Terms
from plumbline.gate.variants import of_names
from plumbline.host import machine
from plumbline.judge.decide import Verdict
from plumbline.launch.neighbour import KINDS
from plumbline.measure import jobs
from plumbline.measure.application import model
from plumbline.measure.reframe.campaign import first_stack
from plumbline.measure.session import circumstances, passing_folder
from plumbline.records import store
from plumbline.show.columns import Column, Table
from plumbline.statistics.paired import CAP, LOOKS

WHERE = "plumb neighbours"
#: exit status where a neighbour's cost is not known
LACKING = 1


def _slowdown(verdict: Verdict) -> tuple[float, float, float] | None:
    """How many times as long it takes beside the neighbour, and the interval; None where that is not known."""
    if verdict.ratio is None or verdict.interval is None:
        return None
    values = (verdict.ratio, *verdict.interval)
    return values if verdict.pairs.better == "lower" else (1 / values[0], 1 / values[2], 1 / values[1])


def _conclusion(verdict: Verdict) -> str:
    margin = percent((verdict.pairs.rule or Terms().rule).must_detect)
    return {"FAIL": "costs", "GAIN": "faster", "PASS": f"costs less than {margin}"}.get(verdict.state, "not decided")


COSTS = Table[Verdict]("Costs of a neighbour", [
    Column("both share", lambda verdict: parts_of(verdict.subject)[0]),
    Column("neighbour", lambda verdict: parts_of(verdict.subject)[1]),
    Column("figure", lambda verdict: verdict.subject.rpartition(": ")[2], spare=1),
    Column("slowdown", lambda verdict: (cost := _slowdown(verdict)) and ratio(cost[0]), "number"),
    Column("interval", lambda verdict: (cost := _slowdown(verdict)) and interval(cost[1:]), "number"),
    Column("pairs", lambda verdict: verdict.count, "number"),
    Column("conclusion", _conclusion),
])  # fmt: skip
PARTS = Table[Distance]("Parts", [
    Column("both share", lambda each: each.shared),
    Column("program on CPUs", lambda each: cpu_list(each.victim)),
    Column("neighbour on CPUs", lambda each: cpu_list(each.neighbour)),
])  # fmt: skip


@command(
    option("words", "program of plumb.yaml, or -- and a command", nargs="*", metavar="PROGRAM | -- COMMAND"),
    option("--kinds", f"neighbours, of {','.join(KINDS)} (default: all)", metavar="LIST"),
    option("--figure", "of a command: the number that this regular expression has in ( ) (default: time)"),
    option("--unit", "unit of --figure (default: none)", metavar="UNIT"),
    options.better("--figure"),
    option("--application", "plumb.yaml of the program (default: the one here)"),
    option("--stack", "stack of the program (default: the first that the site offers)"),
    option("--minutes", "start no pair of launches after M minutes; --resume continues"),
    option("--seed", "seed of the pair order (default: random, recorded)"),
    option("--work", "folder of this measurement (default: build/neighbours/SESSION)"),
    option("--resume", "continue the measurement of this folder"),
    flag("--dry-run", "print the parts of the machine and the number of launches without measuring"),
    option("--topology", "with --dry-run: of this machine, an hwloc XML file or a synthetic description",
           metavar="MACHINE"),
    options.as_json("print the costs as JSON, progress on standard error"),
    usage="plumb neighbours [--kinds LIST] [--figure REGEX --better DIRECTION] PROGRAM | -- COMMAND\n"
    "       plumb neighbours --dry-run [--topology MACHINE]\n"
    "       plumb neighbours --resume FOLDER",
    description="Measure a program alone and beside a neighbour in turn, for each kind of neighbour at each distance "
    "that the machine has.",
    rules=[
        goes_without("words kinds figure unit better application stack seed work dry_run topology", "resume",
                     "--resume continues a measurement that was begun", "leave out all but --minutes and --json"),
        *options.OF_FIGURE,
        only_with("figure", "better", "--figure without a direction", "add --better lower or --better higher"),
        goes_without("topology", "words", "--topology is for plans", "add --dry-run, without a program"),
        needs("words", "no program is named", f"{WHERE} -- ./program ARG …", unless="resume dry_run"),
    ],
)  # fmt: skip
def run_neighbours(args: argparse.Namespace) -> int:
    """Measure the costs; 0 if all are known, 1 if some are not."""
    if args.dry_run:
        known = bench.distances(
            machine.load(args.topology), range(1 << 20) if args.topology else os.sched_getaffinity(0)
        )
        pairs = len(known) * len(_kinds(args))
        launches = f"{2 * LOOKS[0] * pairs} to {2 * CAP * pairs} launches"
        print(f"{PARTS.text(known)}\n\n{counted(pairs, 'neighbour')}: {launches}, and more where they are disturbed")
        return 0
    with options.progress(args.json):
        folder = args.resume.resolve() if args.resume else _begun(args)
        again = f"{WHERE} --resume {shlex.quote(str(folder))}"
        if not args.resume:
            say(f"to go on after an interruption: {again}")
        request = replace(GATE, name="measurement of neighbours", command="neighbours").peek(folder)
        if request.terms.purpose != "neighbours":
            raise PlumbError("not a measurement of neighbours", str(folder), f"{WHERE} -- COMMAND begins one")
        jobs.refuse(setup.partition_of(request), WHERE)
        outcome = run.resume(
            folder, Stop(args.minutes), lambda line: None, bench.bench_of, again, lambda _, line: say(line)
        )
        rows = outcome.verdicts
        unknown = [each for each in rows if each.state in ("INCONCLUSIVE", "INVALID")]
        notes = [f"{each.subject}: {each.explanation}" for each in unknown]
        notes += [f"{again} goes on"] if outcome.open else []
        terminal.page("\n".join(["", COSTS.text(rows), "", *notes, _closing(rows, len(unknown))]))
    if args.json:
        documents = [{**each.to_dict(), **_cost(each)} for each in rows]
        print(json.dumps(documents, indent=1, ensure_ascii=False, allow_nan=False))
    return LACKING if unknown else 0


def _kinds(args: argparse.Namespace) -> Sequence[str]:
    """The neighbours that are wanted."""
    known = dict(zip(KINDS, KINDS, strict=True))
    wanted = dict.fromkeys(options.names_of(args.kinds) or KINDS)
    return [pick(known, kind, f"there is no neighbour '{kind}'", f"{WHERE} --kinds") for kind in wanted]


def _begun(args: argparse.Namespace) -> Path:
    """The folder of a new measurement."""
    known, kinds = bench.distances(machine.load(), os.sched_getaffinity(0)), _kinds(args)
    ends = [named(distance, kind) for distance in known for kind in kinds]
    terms = Terms(seed=secrets.randbits(32) if args.seed is None else args.seed, measure_equal=True,
                  purpose="neighbours")  # fmt: skip
    name = store.new_session()
    folder = Path(args.work or paths.build() / "neighbours" / name).resolve()
    file = model.named_or_here(args.application)
    if file and len(args.words) == 1 and args.words[0] in model.load(file).programs:
        _begin_program(args, file, ends, terms, folder, name)
        return folder
    if useless := next((each for each in ("application", "stack") if getattr(args, each)), None):
        raise PlumbError(f"--{useless} is for programs of plumb.yaml", WHERE, "leave it out")
    side = f"{commands.KIND}:{shlex.join(args.words)}"
    return commands.begin(
        (side, side), terms, folder, commands.figure_rule(args, WHERE), dict.fromkeys(ends, (side, side)), WHERE
    )


def _begin_program(
    args: argparse.Namespace, file: Path, ends: Sequence[str], terms: Terms, folder: Path, name: str
) -> None:
    stack = args.stack or first_stack(file, say)
    with passing_folder("neighbours") as place:
        listing = of_names(file, args.words, stack, None, place, say)
    variant = next(iter(listing.values()))
    say(f"{variant.name}{f', the first of its {len(listing)} variants' if len(listing) > 1 else ''}")
    couples = [[structs.replace(variant, name=f"{variant.test} {end}")] * 2 for end in ends]
    setup.begun_for(folder, name, ("alone", "beside a neighbour"), couples, terms, circumstances([stack]))


def _closing(rows: Sequence[Verdict], unknown: int) -> str:
    """The largest cost, and how many are not known."""
    costs = [(cost, each) for each in rows if each.state == "FAIL" and (cost := _slowdown(each))]
    texts = [f"{counted(unknown, 'neighbour')} not decided"] if unknown else []
    if costs:
        cost, most = max(costs, key=lambda each: each[0])
        shared, kind = parts_of(most.subject)
        texts.insert(0, f"largest cost: {kind} where both share a {shared}: {ratio(cost[0])} times as long")
    return f"neighbours: {'; '.join(texts or ['none costs anything that was seen'])}"


def _cost(verdict: Verdict) -> dict[str, Any]:
    """The members of the JSON object that a gate's verdict has not."""
    cost, (shared, kind) = _slowdown(verdict) or (None, None, None), parts_of(verdict.subject)
    return {"shared": shared, "neighbour": kind, "slowdown": cost[0], "slowdown_interval": cost[1:]}
