"""Having the scheduler run plumb-check on nodes: for a class (``plumb calibrate --nodes``), or to screen them.

Checks for a class are kept in the site folder, and so is the history of screens. A node leaves its result in the build
folder and it is in the history as soon as its job has ended; the next call takes the results that a killed one left.
"""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from plumbline import schedulers, site
from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Partition, Site
from plumbline.base.terminal import say
from plumbline.base.units import counted, percent
from plumbline.commands import options
from plumbline.commands.options import Group, group, option
from plumbline.extras.nodes import classes, model
from plumbline.extras.nodes.classes import Class, Limit
from plumbline.extras.nodes.model import Check, Result, short
from plumbline.host import binder
from plumbline.records import store
from plumbline.schedulers import names
from plumbline.schedulers.base import HEALTH
from plumbline.schedulers.program import Done
from plumbline.show.columns import Column, Table
from plumbline.site.nodes import choice

#: nodes of one job of a screen: all of them wait for the last that becomes free
TOGETHER = 16


@dataclass(frozen=True)
class CheckRequest:
    """Which nodes of a partition are measured: ``checks`` of ``seconds`` on each."""

    site: Site
    part: Partition
    nodes: Sequence[str]
    checks: int
    seconds: float
    #: how long the job may wait for its nodes and take, in seconds
    limit: float

    @property
    def name(self) -> str:
        """The name of the class."""
        return f"{self.site.name}:{self.part.name}"

    @property
    def file(self) -> Path:
        """The class file."""
        return class_file(self.site.name, self.part.name)

    @property
    def history(self) -> Path:
        """The file of the results of screens, a line each; it only grows."""
        return self.file.with_suffix(".screen.jsonl")


def class_file(site_name: str, partition: str) -> Path:
    """The class of a partition."""
    return site.folder(site_name) / "health" / f"{partition}.class"


def made_class(site_name: str, part: Partition) -> Path:
    """The class of a partition; raises :class:`PlumbError` where there is none."""
    file = class_file(site_name, part.name)
    if not file.is_file():
        nodes = 1 if schedulers.named(part.scheduler).is_one_host else len(part.hosts[:8]) or 8
        raise PlumbError(
            "there is no class of this partition",
            str(file),
            f"plumb calibrate --nodes {nodes} --site {site_name} --partition {part.name}, when nothing else runs",
        )
    return file


def require_budget(request: CheckRequest) -> None:
    """Raise :class:`PlumbError` where the partition has no class, or that has no such length of a check."""
    text = made_class(request.site.name, request.part).read_text(encoding="utf-8", errors="replace")
    if f"{request.seconds:g}" not in (known := re.findall(r"^budget (\S+)", text, re.MULTILINE)):
        cure = f"--seconds {' or '.join(known)}" if known else "make it again by plumb calibrate --nodes"
        raise PlumbError(f"the class has no checks of {request.seconds:g} s", str(request.file), cure)


def plan_lines(request: CheckRequest) -> list[str]:
    """The plan of a node of the partition."""
    topology = site.folder(request.site.name) / request.part.topology
    return classes.plan_lines(
        request.name, binder.resolve("core", memory="local", topology=topology, machine=request.name)
    )


def choose(part: Partition, count: int | None, named: Sequence[str]) -> list[str]:
    """The nodes to measure: ``named``, or the first ``count`` of the partition that can be used.

    Raises :class:`PlumbError` where none can, and for another host where a partition is this host.
    """
    if (scheduler := schedulers.named(part.scheduler)).is_one_host:
        here = scheduler.host_name({})
        if foreign := [name for name in named if short(name) != short(here)]:
            raise PlumbError(f"{foreign[0]} is not this host", f"partition {part.name}", f"--node {here}")
        return [here]
    if named:
        return list(named)
    usable = [node.name for node in choice.of_partition(part) if node.usable]
    if not usable:
        raise PlumbError("no node can be used", f"partition {part.name}", "see plumb nodes states")
    return usable[:count]


def on_nodes(request: CheckRequest, folder: Path, command: Callable[[str | None], list[str]]) -> Done:
    """Have the scheduler start ``command`` on the nodes, which are this job's alone; ``folder`` gets the job's log."""
    if not paths.checker().is_file():
        raise PlumbError("plumb-check is not built", str(paths.checker()), paths.setup())
    scheduler = schedulers.named(request.part.scheduler)
    if shared := scheduler.shares_nodes(request.part.access):
        raise PlumbError(shared, f"partition {request.part.name}", "a check needs the node for itself")
    minutes = int(request.checks * request.seconds / 60) + 2
    job = schedulers.Job(
        "plumb-check",
        len(request.nodes),
        folder / ".job.log",
        names.access(request.part.access),
        request.nodes,
        scheduler.queue(None, request.part.access),
        minutes,
    )
    return scheduler.run_on_every_node(job, command, request.limit)


def collect(request: CheckRequest) -> list[Check]:
    """Measure; all checks of the partition, earlier ones too. Raises :class:`PlumbError` if no node answers."""
    for name in request.nodes:
        names.host(name, "--node")
    folder = paths.build() / "health" / request.site.name / request.part.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    budget = f"budget {request.seconds:g} {classes.COLLECTED}"  # a class without limits
    files.write("the plan", folder / "plan.class", "\n".join([*plan_lines(request), budget, "end", ""]))
    words = [
        str(paths.checker().resolve()),
        *("--class", str((folder / "plan.class").resolve())),
        *("--collect", str(folder.resolve())),
        *("--checks", str(request.checks)),
        *("--seconds", f"{request.seconds:g}"),
    ]
    done = on_nodes(request, folder, lambda host: [*words, "--node", short(host)] if host else words)
    answers, kept = sorted(folder.glob("*.jsonl")), request.file.with_suffix(".jsonl")
    checks = model.read(answers)
    if not checks:
        raise PlumbError(f"no node answered: {done.last()}", request.name, "run plumb nodes states")
    before = [kept] if kept.exists() else []
    earlier = model.read(before)
    files.write("what was measured", kept, "".join(file.read_text(encoding="utf-8") for file in [*before, *answers]))
    return [*earlier, *checks]


def screen(request: CheckRequest, jobs_on: Callable[[str], str]) -> dict[str, str]:
    """Check the nodes of ``request`` and keep their results; returns why some nodes have none."""
    folder = left_in(request).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    left_out: dict[str, str] = {}
    for first in range(0, len(request.nodes), TOGETHER):
        wanted = [names.host(name, "--node") for name in request.nodes[first : first + TOGETHER]]
        left_out |= {name: f"busy: {jobs}" for name in wanted if first and (jobs := jobs_on(name))}
        batch = [name for name in wanted if name not in left_out]
        if not batch:
            continue
        done = on_nodes(replace(request, nodes=batch), folder, lambda host: screen_words(request, folder, host))
        answered = {short(result.node) for result in absorb(request)}
        why = f"it did not answer: {done.last()}" if done.status != 0 else "it did not answer"
        silent = [name for name in batch if short(name) not in answered]
        left_out |= dict.fromkeys(silent, why)
        say(f"{len(batch) - len(silent)} of {len(batch)} checked: {names.fold(batch)}")
    return left_out


def absorb(request: CheckRequest) -> list[Result]:
    """Move the results that nodes left into the history, each once; files of another form are reported and removed."""
    kept = {(result.node, result.time) for result in model.history(request.history)}
    left = sorted(left_in(request).glob("*.json"))
    results = []
    for file in left:
        try:
            result = msgspec.json.decode(file.read_bytes(), type=Result)
            results.append(msgspec.structs.replace(result, facts={}))  # differing facts are in ``bad``
        except (msgspec.DecodeError, ValueError) as error:
            say(f"{file.stem}: not a result of plumb-check: {error}")
    if new := [result for result in results if (result.node, result.time) not in kept]:
        model.append(request.history, new)
    for file in left:
        file.unlink(missing_ok=True)
    return results


def screen_words(request: CheckRequest, folder: Path, host: str | None) -> list[str]:
    """plumb-check in a job that has the node for itself, so that it need not ask for jobs."""
    return [
        *("/bin/sh", str(HEALTH / "screen.sh"), str(folder), host or "-", str(paths.checker().resolve())),
        *("--class", str(request.file.resolve())),
        *("--seconds", f"{request.seconds:g}"),
        *("--form", "json", "--beside-jobs"),
    ]


def left_in(request: CheckRequest) -> Path:
    """Where nodes leave the results of a screen."""
    return paths.build() / "health" / request.site.name / f"{request.part.name}.screen"


#: the most that plumb-check takes
MOST_CHECKS = 1000


def _judged(values: Sequence[float | None]) -> str:
    return f"{sum(value is not None for value in values)} of {len(values)}"


def _detectable(limits: Sequence[Limit]) -> str | None:
    known = [limit.detectable for limit in limits if limit.detectable is not None]
    return percent(max(known)) if known else None


#: seconds and rounds of a budget, its limits, and the most rounds that any of them lacks
BUDGETS = Table[tuple[int, int, Sequence[Limit], int]](
    "Budgets",
    [
        Column("seconds", lambda row: row[0], "number"),
        Column("rounds", lambda row: row[1], "number"),
        Column("figures judged", lambda row: _judged([limit.member for limit in row[2]]), "number"),
        Column("on other nodes", lambda row: _judged([limit.non_member for limit in row[2]]), "number"),
        Column("found from", lambda row: _detectable(row[2]), "number"),
        Column("missing", lambda row: counted(row[3], "round") if row[3] else ""),
    ],
)


def arguments() -> Sequence[Group]:
    """Options of ``plumb calibrate --nodes``."""
    return [
        group(
            "node class, for plumb check",
            option("--nodes", "measure N usable nodes of the partition and write its class"),
            option("--node", "measure this node, or nodes such as node[1-4]; repeatable", action="append", default=[]),
            option("--checks", "checks per node (default: 8)", type=int, default=8, metavar="N"),
            option("--seconds", "time budget of a check in seconds (default: 25)", default=25),
            option("--tolerance", "tolerated slowdown (default: 0.05, 5 %%)", default=0.05),
            option(
                "--rate",
                "false alarm rate: share of the checks of a healthy node that may report it as bad (default: 1e-5)",
                type=float,
                default=1e-5,
                metavar="X",
            ),
            option("--time-limit", "time limit of the job in seconds (default: 7200)", default=7200),
        )
    ]


def run(args: argparse.Namespace) -> int | None:
    """Measure, and make the class; 0 if a budget judges every figure, 1 if none does yet. None without --nodes."""
    if not (args.nodes or args.node):
        return None
    if not 1 <= args.checks <= MOST_CHECKS:
        raise PlumbError(f"--checks is {args.checks}", "plumb calibrate --nodes", f"1 to {MOST_CHECKS}")
    if args.seconds < 1:
        raise PlumbError(f"--seconds is {args.seconds:g}", "plumb calibrate --nodes", "1 or more")
    if not 0 < args.rate < 0.5 or not 0 < args.tolerance < 10:
        raise PlumbError(
            f"rate {args.rate:g}, tolerance {args.tolerance:g}", "plumb calibrate", "give fractions above 0"
        )
    chosen_site, part = site.chosen(args.site, args.partition)
    nodes = choose(part, args.nodes, [name for text in args.node for name in names.expand(text, "--node")])
    request = CheckRequest(chosen_site, part, nodes, args.checks, args.seconds, args.time_limit)
    with options.progress(args.json):
        if args.dry_run:
            workload = f"{counted(len(nodes), 'node')}, {args.checks} x {args.seconds:g} s each"
            print(f"would measure {workload}, for {request.file}")
            return 0
        node_class = classes.make(collect(request), args.tolerance, args.rate)
        text = classes.text(
            node_class,
            plan_lines(request),
            store.now(),
            args.tolerance,
            args.rate,
            schedulers.named(part.scheduler).health or None,
        )
        files.write("the class", request.file, text)
        _show(node_class)
        print(f"written: {request.file}")
    if args.json:
        options.print_lines(_lines(node_class))
    judged = (all(limit.member is not None for limit in limits.values()) for limits in node_class.limits.values())
    return 0 if any(judged) else 1


def _show(node_class: Class) -> None:
    """The budgets, and the limits that the class lacks so far."""
    rows = [
        (seconds, node_class.rounds[seconds], [*limits.values()], max(limit.missing for limit in limits.values()))
        for seconds, limits in node_class.limits.items()
    ]
    print(BUDGETS.text(rows) + "\n")
    for node, why in sorted(node_class.refused.items()):
        print(f"refused: {node}: {why}")
    if node_class.outdated:
        print(f"{counted(node_class.outdated, 'check')} from before a change of facts of the node left out")
    alike = {name: limit.rounds for name, limit in node_class.limits[max(node_class.rounds)].items()}
    least = min(alike, key=lambda name: alike[name])
    print(
        f"{counted(len(node_class.members), 'node')}, {counted(node_class.checks, 'check')} "
        f"on {counted(node_class.days, 'day')}, "
        f"{counted(node_class.disturbed, 'round')} beside other work left out"
    )
    print(
        f"the {node_class.rounds[max(node_class.rounds)]} rounds of {least} "
        f"count as {alike[least]:.1f} independent ones at least"
    )
    if node_class.days < 2:
        print("one day says nothing about others: run it again on another day, what was measured is kept")


def _lines(node_class: Class) -> list[dict[str, object]]:
    """An object for each limit."""
    return [
        {
            "seconds": seconds,
            "rounds": node_class.rounds[seconds],
            "figure": name,
            "unit": node_class.figures[name].unit,
            **{
                key: None if log is None else node_class.figures[name].value(log)
                for key, log in (("limit", limit.member), ("other_nodes", limit.non_member), ("doubt", limit.doubt))
            },
            "found": limit.detectable,
            "missing": limit.missing,
        }
        for seconds, limits in node_class.limits.items()
        for name, limit in limits.items()
    ]
