"""Schedulers: the differences between them, a module each, behind :class:`plumbline.schedulers.base.Scheduler`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from plumbline.base.errors import PlumbError
from plumbline.schedulers import names
from plumbline.schedulers.base import WHERE_STATES, Job, Node, RankLauncher, RankVariables, Scheduler, Step, Words
from plumbline.schedulers.flux import Flux
from plumbline.schedulers.hosts import OPTIONS as SSH_OPTIONS
from plumbline.schedulers.hosts import Local, Ssh
from plumbline.schedulers.lsf import Lsf
from plumbline.schedulers.pbs import Pbs
from plumbline.schedulers.sge import Sge
from plumbline.schedulers.slurm import Slurm

__all__ = [
    "JOB_VARIABLES",
    "RANK_LAUNCHERS",
    "REMOTE",
    "SSH_OPTIONS",
    "STEP_SETTINGS",
    "TABLE",
    "Job",
    "Node",
    "RankLauncher",
    "RankVariables",
    "Scheduler",
    "Step",
    "Words",
    "current",
    "host_name",
    "named",
    "nodes",
]

#: name in ``site.yaml`` -> scheduler; one that may run inside a job of another is before it
TABLE: dict[str, Scheduler] = {
    scheduler.name: scheduler
    for scheduler in (
        Local(), Flux(), Slurm("slurm", "sacct"), Slurm("squeue", "squeue"), Pbs(), Sge(), Lsf(), Ssh(),
    )
}  # fmt: skip
#: of all schedulers, because a job may run inside another one's: the variables of jobs, and the settings among them
JOB_VARIABLES = tuple(dict.fromkeys(name for scheduler in TABLE.values() for name in scheduler.job_variables))
STEP_SETTINGS = tuple(dict.fromkeys(name for scheduler in TABLE.values() for name in scheduler.step_settings))
#: for hosts that a partition names, from any host
REMOTE = TABLE["ssh"]
#: the schedulers' own programs for starting ranks, a partition's ``launcher:`` -> both
RANK_LAUNCHERS: dict[str, tuple[RankLauncher, Scheduler]] = {
    scheduler.rank_launcher.name: (scheduler.rank_launcher, scheduler)
    for scheduler in TABLE.values()
    if scheduler.rank_launcher
}


def named(name: str) -> Scheduler:
    """The scheduler that ``site.yaml`` calls ``name``, one of its schema's list."""
    return TABLE[name]


def current(environment: Mapping[str, str]) -> Scheduler:
    """The scheduler in whose job, the innermost, a process with this environment runs; ``local`` outside of jobs."""
    return next((scheduler for scheduler in TABLE.values() if scheduler.inside(environment)), TABLE["local"])


def nodes(scheduler: Scheduler, queue: str | None, hosts: Sequence[str] = (), access: Sequence[str] = ()) -> list[Node]:
    """The nodes of ``queue``, sorted by name (node2 before node10); raises :class:`PlumbError` where there are none."""
    listed = scheduler.nodes(queue, hosts, names.words_of_all(access))
    if not listed:
        raise PlumbError(f"{queue or scheduler.name} has no nodes", WHERE_STATES, "name another partition")
    by_name = {node.name: node for node in listed}
    return [by_name[name] for name in names.expand(names.fold(by_name), WHERE_STATES)]


def host_name(environment: Mapping[str, str] = os.environ) -> str:
    """This host as its scheduler, and therefore records, name it."""
    return current(environment).host_name(environment)
