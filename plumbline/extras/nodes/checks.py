"""Having the scheduler run plumb-check on nodes: for a class, or to screen them, some in each job.

Checks for a class are kept in the site folder, and so is the history of screens. A node leaves its result in the build
folder and it is in the history as soon as its job has ended; the next call takes the results that a killed one left.
"""

from __future__ import annotations

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
from plumbline.extras.nodes import classes, model
from plumbline.extras.nodes.model import Check, Result, short
from plumbline.host import binder
from plumbline.schedulers import names
from plumbline.schedulers.base import HEALTH
from plumbline.schedulers.program import Done
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


def made_class(site_name: str, partition: str) -> Path:
    """The class of a partition; raises :class:`PlumbError` where there is none."""
    file = class_file(site_name, partition)
    if not file.is_file():
        cure = f"plumb calibrate --nodes 8 --site {site_name} --partition {partition}"
        raise PlumbError("there is no class of this partition", str(file), cure)
    return file


def require_budget(request: CheckRequest) -> None:
    """Raise :class:`PlumbError` where the partition has no class, or that has no such length of a check."""
    text = made_class(request.site.name, request.part.name).read_text(encoding="utf-8", errors="replace")
    known = re.findall(r"^budget (\S+)", text, re.MULTILINE)
    if f"{request.seconds:g}" not in known:
        message = f"the class has no checks of {request.seconds:g} s"
        cure = f"--seconds {' or '.join(known)}" if known else "make it again by plumb calibrate --nodes"
        raise PlumbError(message, str(request.file), cure)


def plan_lines(request: CheckRequest) -> list[str]:
    """The plan of a node of the partition."""
    topology = site.folder(request.site.name) / request.part.topology
    cores = binder.resolve("core", memory="local", topology=topology, machine=request.name)
    return classes.plan_lines(request.name, cores)


def choose(part: Partition, count: int | None, named: Sequence[str]) -> list[str]:
    """The nodes to measure: ``named``, or the first ``count`` of the partition that can be used.

    Raises :class:`PlumbError` where none can, and for another host where a partition is this host.
    """
    scheduler = schedulers.named(part.scheduler)
    if scheduler.is_one_host:
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
    words = names.access(request.part.access)
    minutes = int(request.checks * request.seconds / 60) + 2
    queue = scheduler.queue(None, request.part.access)
    job = schedulers.Job("plumb-check", len(request.nodes), folder / ".job.log", words, request.nodes, queue, minutes)
    return scheduler.run_on_every_node(job, command, request.limit)


def collect(request: CheckRequest) -> list[Check]:
    """Measure; all checks of the partition, earlier ones too. Raises :class:`PlumbError` if no node answers."""
    for name in request.nodes:
        names.host(name, "--node")
    folder = paths.build() / "health" / request.site.name / request.part.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files.write("the plan", folder / "plan.class", classes.plan_text(plan_lines(request), request.seconds))
    words = [str(paths.checker().resolve()), "--class", str((folder / "plan.class").resolve())]
    words += ["--collect", str(folder.resolve())]
    words += ["--checks", str(request.checks), "--seconds", f"{request.seconds:g}"]
    done = on_nodes(request, folder, lambda host: [*words, "--node", short(host)] if host else words)
    answers, kept = sorted(folder.glob("*.jsonl")), request.file.with_suffix(".jsonl")
    checks = model.read(answers)
    if not checks:
        raise PlumbError(f"no node answered: {done.last()}", request.name, "run plumb nodes states")
    before = [kept] if kept.exists() else []
    earlier = model.read(before)
    whole = "".join(file.read_text(encoding="utf-8") for file in [*before, *answers])
    files.write("what was measured", kept, whole)
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
        except (msgspec.DecodeError, ValueError) as error:
            say(f"{file.stem}: not a result of plumb-check: {error}")
            continue
        results.append(msgspec.structs.replace(result, facts={}))  # differing facts are in ``bad``
    if new := [result for result in results if (result.node, result.time) not in kept]:
        model.append(request.history, new)
    for file in left:
        file.unlink(missing_ok=True)
    return results


def screen_words(request: CheckRequest, folder: Path, host: str | None) -> list[str]:
    """plumb-check in a job that has the node for itself, so that it need not ask for jobs."""
    words = ["/bin/sh", str(HEALTH / "screen.sh"), str(folder), host or "-", str(paths.checker().resolve())]
    words += ["--class", str(request.file.resolve()), "--seconds", f"{request.seconds:g}"]
    return [*words, "--form", "json", "--beside-jobs"]


def left_in(request: CheckRequest) -> Path:
    """Where nodes leave the results of a screen."""
    return paths.build() / "health" / request.site.name / f"{request.part.name}.screen"
