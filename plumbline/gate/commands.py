"""Two commands as the sides of a gate: ``command:'./old -n 10'``, without site, stack or plumb.yaml.

Words are split as a shell does it, and no shell is started. A command runs in the folder where the gate was begun, with
the variables of its user. Its figure is the time from its start to its end, or a number that it prints.

The witness is preloaded. A program that it cannot be loaded into (linked statically, most of Go) or that leaves work to
such a one is judged without proof of placement, and the verdict says so. The records lie in the gate's folder alone:
they are no figures of a campaign, a reference or a history.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import secrets
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
from msgspec import structs

from plumbline import parsers, schedulers
from plumbline.base import files, git, paths, surroundings
from plumbline.base.errors import PlumbError
from plumbline.gate import rules, sides
from plumbline.gate.live import AGAIN, GateBench
from plumbline.gate.setup import GATE, Session, Terms
from plumbline.host import binder, machine, provenance
from plumbline.host.binder import Pages, Plan, PlannedRank
from plumbline.launch import hosts, process
from plumbline.launch.output import WIDTH
from plumbline.launch.witness import compare, disturbance, processes
from plumbline.measure.application.model import pattern_faults
from plumbline.measure.session import circumstances
from plumbline.parsers.application import FigureRule, Rules
from plumbline.records import store
from plumbline.records.launch import UNPROVEN, Disturbance, Launch
from plumbline.records.model import Benchmark, Mpi, Placement, Record, Stack, Suite
from plumbline.records.variant import Variant, WantedFigure
from plumbline.stacks import manifest

KIND = "command"
#: seconds after which a command is ended
LIMIT_S = 86_400.0
NO_WITNESS = "the witness cannot be loaded (linked statically, Go, or started with more rights)"
#: placement of a command that is started as it is
FREE = "none"
#: the figure that the command itself does not measure
TIME = "time"
#: quoted parts of a command, and what else only a shell reads
_OF_SHELL = re.compile(
    r"""'[^']*'|\\.|"(?!\$\{?[A-Za-z_]\S*")(?:\\.|[^"\\])*"|([|&;<>]+|\$(?:\{?[A-Za-z_]\w*\}?|\()|`)""", re.DOTALL
)


def figure_rule(args: argparse.Namespace, command: str) -> FigureRule:
    """How ``command`` reads the figure of another one: by its options ``--figure``, ``--unit`` and ``--better``.

    Without them it is the time. Raises :class:`PlumbError` for a pattern without a number.
    """
    if args.figure is None:
        return FigureRule(wall=True)
    for fault in pattern_faults(args.figure, number=True):
        raise PlumbError(f"'{args.figure}': {fault}", f"{command} --figure", "such as 'rate: (\\S+)'")
    return FigureRule(pattern=args.figure, unit=args.unit or "1", better=args.better or "lower")


def begin(
    both: tuple[str, str], terms: Terms, folder: Path | None, rule: FigureRule,
    points: Mapping[str, tuple[str, str]] | None = None, where: str = "plumb gate --{}",
) -> Path:  # fmt: skip
    """Begin a gate of two commands, of which ``rule`` reads the figure, and measure nothing; returns its folder.

    ``points`` are the commands of both sides at the points of a curve, by name; none: ``both`` as they are. ``where``
    names a side in errors. Raises :class:`PlumbError` for a side that is no command, and for a program that is not
    there.
    """
    name, figure = store.new_session(), TIME if rule.wall else "figure"
    context = {"rules": msgspec.to_builtins(Rules(figures={figure: rule})), "folder": str(Path.cwd())}
    couples = []
    for point, commands in (points or {"": both}).items():
        each = [
            _variant(*side, context, figure, where) for side in zip(("baseline", "candidate"), commands, strict=True)
        ]
        test = each[1].test
        settled = [rules.settle(item, [], "", terms.rule) for item in each]
        couples.append([structs.replace(item, test=test, name=f"{test} {point}".strip()) for item in settled])
    folder = (folder or paths.build() / "gate" / name).resolve()
    old, new = (text.removeprefix(f"{KIND}:") for text in both)
    GATE.begin(folder, Session(name, old, new, couples, terms, circumstances([])))
    return folder


def _variant(role: str, spelling: str, context: dict[str, Any], figure: str, where: str) -> Variant:
    where = where.format(role)
    named = sides.parsed(spelling, where)
    if KIND not in named:
        raise PlumbError(
            f"'{spelling}' is no command, and both sides must be", where, f"--{role} {KIND}:'PROGRAM ARG …'"
        )
    try:
        words = shlex.split(named[KIND][0])
    except ValueError as error:
        raise PlumbError(f"{named[KIND][0]}: {error}", where, "quote it as for a shell") from None
    if shell := next(filter(None, (match[1] for match in _OF_SHELL.finditer(named[KIND][0]))), None):
        message = f"{named[KIND][0]}: no shell reads '{shell}', it would be an argument"
        inner = f"sh -c {shlex.quote(named[KIND][0])}"
        outer = shlex.quote(inner) if re.search(r'["$`!\\\\]', inner) else f'"{inner}"'
        raise PlumbError(message, where, f"write {KIND}:{outer}, or quote it")
    program = shutil.which(words[0]) if words else None
    if program is None:
        lacking = words[0] if words else "named"
        raise PlumbError(
            f"there is no program {lacking}", where, manifest.that_has(lacking) or "build it, or give its path"
        )
    variant = Variant.create(
        test=Path(program).name, name="", site="", partition="", stack=KIND, benchmark=KIND,
        placement=FREE, figures=[WantedFigure(name=figure, metric=figure, where={})], time_limit_s=LIMIT_S,
        arguments=words, ranks_per_node=1, parser="application",
        context={**context, "program": str(Path(program).absolute())},
    )  # fmt: skip
    return sides.changes(named, False, where).of(variant)


class CommandBench(GateBench):
    """Starts commands; of its jobs it has nothing but their records."""

    def __init__(self, begun: Session, folder: Path) -> None:
        self.folder, self.again = folder, AGAIN
        self.kept = f"the pairs before it are kept: plumb gate --resume {folder}"
        self.host = machine.load()
        every = [variant for couple in begun.couples for variant in couple]
        records = (_record(variant, begun) for variant in every)
        self.jobs = cast("list[Any]", [SimpleNamespace(record=record, part=None) for record in records])

    def same(self, position: int) -> tuple[bool, list[str]]:
        """Whether both sides are the same command in the same circumstances."""
        first, second = (self.jobs[2 * position + side].record.variant for side in (0, 1))
        return first == second, []

    def launch(self, which: int, index: int, order: int) -> Launch:
        """Start the command; raises :class:`PlumbError` where it cannot be started."""
        record, folder = self.jobs[which].record, self.folder_of(order)
        variant, plan, is_free = record.variant, record.plan, record.variant.placement == FREE
        words, around = list(variant.arguments), {**surroundings.of_user(), **variant.environment}
        part: hosts.Part | None = self.jobs[which].part
        files.make_anew(folder)
        (witness := folder / "witness").mkdir()
        if is_free:
            around = processes.preloaded(around, witness)
        else:
            placed = ["--placement", plan.placement, "--threads", str(plan.threads), "--memory", plan.memory]
            placed += ["--barrier", str(part.barrier)] if part and part.barrier else []
            words = [str(paths.binder()), *placed, "--witness", str(witness), "--", *words]
        others = part.others if part else frozenset[int]()
        with contextlib.nullcontext(list[str]()) if others else hosts.turn() as remarks:
            before, start = disturbance.snapshot(plan.cpus), store.now()
            try:
                place = Path(variant.context["folder"])
                ended = process.run(
                    words, around, folder, variant.time_limit_s, at=place, observed=is_free,
                    meet=part.meet if part else None,
                )  # fmt: skip
            except OSError as error:
                raise PlumbError(f"it cannot be started: {error}", shlex.join(variant.arguments), self.kept) from error
            after = disturbance.snapshot(plan.cpus)
        seen, _ = processes.read(witness)
        unproven = processes.unseen(seen[0], "the command") if seen else [NO_WITNESS]
        if is_free and part:  # without a plan, nothing beside it would disturb it
            whole = PlannedRank(local_rank=0, cpus=list(part.cpus), places=[], mem=Pages(policy="none", nodes=[]))
            seen = [structs.replace(item, plan=whole) for item in seen]
        assessed = disturbance.assess(before, after, seen, self.host, may_sleep=True, partner=others)
        launch = Launch(
            index=index, order=order, start=start, wall_s=round(ended.wall_s, 4), status=ended.status,
            exit_code=ended.exit_code, verified=False, reasons=[], disturbed=assessed["disturbed"],
            disturbance=msgspec.convert(assessed, Disturbance), measurements=[],
            remarks=[*remarks, *(f"{UNPROVEN}: {why}" for why in unproven[:1])],
            ranks=[processes.rank_seen(item) for item in seen], waiting=ended.waiting or None,
            half=processes.half_seen(seen) if part and seen else None,
        )  # fmt: skip
        launch.reasons += (
            compare.compare(plan, seen, {seen[0].host: 1}, binds="ranks") if not (is_free or unproven)
            else [fault for item in seen for fault in compare.clock_faults(item, "the command")
                  if variant.figures[0].name != TIME]
        )  # fmt: skip
        if files.sha256_once(file := Path(record.benchmark.file)) != record.benchmark.sha256:
            launch.reasons.append(f"{file} changed since the gate began")
        launch.reasons += _read(launch, variant, ended.ran_s, folder)
        launch.verified = not launch.reasons
        if launch.verified:
            shutil.rmtree(folder)
        return launch

    def settle(self, which: int) -> None:
        """Update reasons and verdict of a record; it has no figures, so that nothing can take them for a machine's."""
        record = self.jobs[which].record
        record.reasons = [reason for launch in record.launches for reason in launch.reasons]
        record.verified = not record.reasons
        record.verdict = "invalid" if record.reasons else "unreferenced"


def _read(launch: Launch, variant: Variant, ran_s: float, folder: Path) -> list[str]:
    """Add the figure of a ``launch`` that ran for ``ran_s``; returns why it has none."""
    line = shlex.join(variant.arguments)
    if launch.status == "timeout":
        return [f"{line}: ended after {LIMIT_S:g} s"]
    if launch.exit_code:
        last = process.printed(folder / "stderr").strip().rpartition("\n")[2][:WIDTH]
        end = f"signal {-launch.exit_code}" if launch.exit_code < 0 else f"exit status {launch.exit_code}"
        return [f"{line}: {end}{f': {last}' if last else ''}"]
    seconds = {"wall_s": ran_s, "launch_s": launch.wall_s, "workers": os.cpu_count()}
    try:
        context = {**variant.context, **seconds}
        launch.measurements = parsers.parse("application", process.printed(folder / "stdout"), context)
    except PlumbError as error:
        return [f"{line}: {str(error).removeprefix('figure ')}"]
    return []


def _record(variant: Variant, begun: Session) -> Record:
    is_free, file = variant.placement == FREE, Path(variant.context["program"])
    plan = Plan() if is_free else binder.resolve(
        variant.placement, threads=variant.threads, memory=variant.memory, ranks=1
    )  # fmt: skip
    return Record(
        schema=1, id=secrets.token_hex(6), session=begun.name, campaign=None, time=store.now(), state="running",
        site="", partition="", nodes=[schedulers.host_name()], suite=msgspec.convert(git.suite_state(), Suite),
        stack=Stack(name=KIND, provider=KIND, mpi=Mpi(family="", version=""), compiler={}, sources=[], sha256=""),
        variant=variant, placement=Placement(
            name=plan.placement, memory=plan.memory, threads=plan.threads, ranks_per_node=1, nodes=1
        ),
        benchmark=Benchmark(suite=KIND, version="", command=variant.arguments, file=str(file),
                            sha256=files.sha256(file), built="not by Plumbline"),
        plan=plan, launches=[], verified=False, reasons=["no launch finished"], figures=[], verdict="invalid",
        host=provenance.measured(), command=variant.arguments, seed=begun.terms.seed,
    )  # fmt: skip
