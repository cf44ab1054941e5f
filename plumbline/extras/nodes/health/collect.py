"""Measuring for a class: plumb-check on each node, by the scheduler. The checks are kept in the site folder."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline import schedulers, site
from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Partition, Site
from plumbline.extras.nodes.health import classes, model
from plumbline.extras.nodes.health.model import Check
from plumbline.host.topology import plan
from plumbline.schedulers import names
from plumbline.schedulers.program import Done


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
    def kept(self) -> Path:
        """The file of the checks, a line each."""
        return self.file.with_suffix(".jsonl")

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
    cores = plan.resolve("core", memory="local", topology=topology, machine=request.name)
    return classes.plan_lines(request.name, cores)


def choose(part: Partition, count: int | None, named: Sequence[str]) -> list[str]:
    """The nodes to measure: ``named``, or the first ``count`` of the partition that can be used.

    Raises :class:`PlumbError` where none can, and for another host where a partition is this host.
    """
    scheduler = schedulers.named(part.scheduler)
    if scheduler.is_one_host:
        here = scheduler.host_name({})
        if foreign := [name for name in named if name.split(".")[0] != here.split(".")[0]]:
            raise PlumbError(f"{foreign[0]} is not this host", f"partition {part.name}", f"--node {here}")
        return [here]
    if named:
        return list(named)
    nodes = schedulers.nodes(scheduler, scheduler.queue(None, part.access), part.hosts, part.access)
    usable = [node.name for node in nodes if node.usable]
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
    done = on_nodes(request, folder, lambda host: _command(request, folder, host))
    checks = model.read(sorted(folder.glob("*.jsonl")))
    if not checks:
        raise PlumbError(f"no node answered: {done.last()}", request.name, "run plumb nodes states")
    before = model.read([request.kept]) if request.kept.exists() else []
    added = "".join(file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.jsonl")))
    kept = request.kept.read_text(encoding="utf-8") if request.kept.exists() else ""
    files.write("what was measured", request.kept, kept + added)
    return [*before, *checks]


def _command(request: CheckRequest, folder: Path, host: str | None) -> list[str]:
    """plumb-check for the class; in a job that has the node, so that it asks for no jobs."""
    plan_file = str((folder / "plan.class").resolve())
    words = [str(paths.checker().resolve()), "--class", plan_file, "--collect", str(folder.resolve())]
    words += ["--checks", str(request.checks), "--seconds", f"{request.seconds:g}"]
    return [*words, "--node", host.split(".")[0]] if host else words
