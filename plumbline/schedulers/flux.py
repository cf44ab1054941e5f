"""Flux: flux-batch(1), flux-run(1), flux-job(1), flux-resource(1). https://flux-framework.readthedocs.io/"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from plumbline.base.errors import PlumbError
from plumbline.schedulers import names
from plumbline.schedulers.base import (
    WHERE_STATES,
    Job,
    Node,
    RankVariables,
    Scheduler,
    Words,
    joined,
    three_columns,
)
from plumbline.schedulers.program import answer

WHERE_LIMIT = "flux queue list"
USABLE = {"avail", "allocated", "housekeeping"}


class Flux(Scheduler):
    """Flux. A job script runs in its own instance, which ends with it."""

    name = "flux"
    health = "flux"
    programs = ("flux",)
    queue_options = ("--queue", "-q")
    job_variable = "FLUX_URI"
    job_variables = ("FLUX_",)
    #: of form F58, ``ƒ`` where the locale has it
    id_line = r"^([fƒ][1-9A-HJ-NP-Za-km-z]+)$"
    id_at_once = True
    open_mpi = ("flux",)
    read_by_hydra = False
    cancel_command = ("flux", "cancel")
    #: all processes of the script get SIGTERM, and as soon as the script ends, SIGKILL: it has to wait for the driver
    script_begins = ("trap : TERM",)
    #: hwloc_distrib(3) spreads the tasks over the cores of the job: over all NUMA nodes where it has the whole node
    words = MappingProxyType(
        {
            "flux run": Words(
                "flux run --env='*'",
                "flux run --cores-per-task=THREADS -o cpu-affinity=per-task",
                "flux run --nodes=N --exclusive --cores-per-task=THREADS -o cpu-affinity=per-task",
            )
        }
    )
    rank_variables = (RankVariables("FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", None, "FLUX_JOB_SIZE"),)

    def hosts(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """The hosts that the job's own Flux instance names; a broker runs on each."""
        if not self.inside(environment):
            return ()
        listed = answer(["flux", "getattr", "hostlist"], "hosts of the job", environment=environment)
        return tuple(dict.fromkeys(names.expand(listed.strip(), "flux getattr hostlist")))

    def submit(self, job: Job, script: Path) -> list[str]:
        """Prints the id and ends at once."""
        shape = [f"--job-name={job.name}", f"--nodes={job.nodes}", "--exclusive", f"--output={job.log}"]
        return ["flux", "batch", *shape, *_on(job.hosts), *job.access, str(script)]

    def follow(self, job_id: str) -> list[str] | None:
        """Ends with the job's exit status."""
        return ["flux", "job", "status", job_id]

    def on_every_node(self, job: Job, command: Sequence[str]) -> list[list[str]]:
        """As many tasks as nodes."""
        ask = ["flux", "run", "-N", str(job.nodes), "-n", str(job.nodes), "--exclusive", "-t", f"{job.minutes}m"]
        return [[*ask, *_on(job.hosts), *self.in_queue(job.queue), *joined(job.access), *command]]

    def on_one_node(self, access: Sequence[str], hosts: Sequence[str], command: Sequence[str]) -> list[str]:
        """flux-run(1)."""
        return ["flux", "run", "--job-name=plumb-preflight", "-N1", "-n1", "-t", "1m", *access, *command]

    def nodes(self, queue: str | None, hosts: Sequence[str] = (), access: Sequence[str] = ()) -> list[Node]:
        """By ``status``, because ``list`` calls every node that cannot be used ``down``, without a reason."""
        ask = ["flux", "resource", "status", "-n", "-o", "{state}|{nodelist}|{reason}", *self.in_queue(queue)]
        return read_nodes(answer(ask, WHERE_STATES))

    def longest_job(self, queue: str | None) -> int | None:
        """The limit of the queue, or of the default queue; None without one, and on a host that has no flux."""
        if shutil.which("flux") is None:
            return None
        ask = ["flux", "queue", "list", "-n", "-o", "{queuem}|{limits.timelimit}"]
        return read_limit(answer(ask, WHERE_LIMIT), queue)

    def reframe_backend(self) -> str:
        """The name of Plumbline's own backend. ReFrame is imported here only: other commands do not need it."""
        from plumbline.schedulers import flux_reframe

        return flux_reframe.register(self)


def _on(hosts: Sequence[str]) -> list[str]:
    return [f"--requires=host:{names.fold(hosts)}"] if hosts else []


def read_nodes(text: str) -> list[Node]:
    """``flux resource status -n -o '{state}|{nodelist}|{reason}'``: a line per state; ``*`` ends an offline one."""
    nodes: dict[str, Node] = {}
    for line in filter(str.strip, text.splitlines()):
        state, folded, reason = three_columns(line, "flux resource status")
        usable = state in USABLE
        why = "; ".join(part for part in ("offline" if state.endswith("*") else "", reason) if part)
        for name in names.expand(folded, "flux resource status") if folded else ():
            if name not in nodes or nodes[name].usable:  # a line by which it cannot be used has priority
                nodes[name] = Node(name, state, usable, "" if usable else why)
    return list(nodes.values())


def read_limit(text: str, queue: str | None) -> int | None:
    """``flux queue list -n -o '{queuem}|{limits.timelimit}'``: seconds; None for ``inf``.

    ``*`` ends the name of the default. An instance without queues has one line without a name.
    """
    limits: dict[str | None, str] = {}
    for name, limit in (line.split("|") for line in text.splitlines() if line.count("|") == 1):
        limits[name.removesuffix("*")] = limit
        if not name or name.endswith("*"):
            limits[None] = limit
    if queue is not None and queue not in limits:
        raise PlumbError(f"Flux has no queue {queue}", WHERE_LIMIT, "flux queue list names them")
    limit = limits.get(queue, "inf")
    try:
        return None if limit == "inf" else int(float(limit))
    except ValueError:
        raise PlumbError(f"{limit!r} is not a time limit", WHERE_LIMIT, "report this answer of flux") from None
