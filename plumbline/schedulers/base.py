"""The interface of a scheduler: one class for each, and nothing outside this package knows one by its name.

A scheduler here is whatever gives a command its nodes: a batch system, ssh to hosts that are named, or this host. A
partition of ``site.yaml`` names its scheduler; :func:`plumbline.schedulers.named` gives the object for it.

Methods that return a command return its argument list. Nothing of it passes through a shell, unless the scheduler
itself makes a shell line of it: then the words are quoted here.
"""

from __future__ import annotations

import json
import re
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from plumbline.base.errors import PlumbError
from plumbline.schedulers import names
from plumbline.schedulers.program import Done, answer, late, run

#: absolute paths that every scheduler's command line carries unchanged
PLAIN_PATH = re.compile(r"/[A-Za-z0-9_./+=-]*")
#: shell scripts for nodes: they ask schedulers for jobs, drain and resume
HEALTH = Path(__file__).resolve().parent / "health"
WHERE_STATES = "plumb nodes states"
WHERE_FACTS = "plumb nodes facts"
#: where no scheduler gives a job its hosts, its script names them in this variable: ``n1,n2``
JOB_HOSTS = "PLUMB_JOB_HOSTS"


@dataclass(frozen=True)
class Node:
    """A node with the scheduler's word for its state; ``reason`` is empty if the scheduler gives none."""

    name: str
    state: str
    usable: bool
    reason: str = ""


@dataclass(frozen=True)
class Job:
    """A request for whole nodes.

    ``hosts`` asks for these nodes (checked host names); empty: for any ``nodes`` of them. ``access``: the options of
    the partition, as words of a command; ``queue``: where they name none. ``log`` gets what the scheduler writes about
    the job. ``minutes``: the longest time; None: the queue's default.
    """

    name: str
    nodes: int
    log: Path
    access: Sequence[str] = ()
    hosts: Sequence[str] = ()
    queue: str | None = None
    minutes: int | None = None


@dataclass(frozen=True)
class Step:
    """A part of a job that has ended: when it began (Unix time), on how many nodes, their joules; None: not counted."""

    start: float
    nodes: int
    joules: float | None


class RankVariables(NamedTuple):
    """The variables in which a launcher gives a process its rank, its rank on the node, and how many there are."""

    rank: str
    local_rank: str | None = None
    local_size: str | None = None
    size: str | None = None


class Words(NamedTuple):
    """What to write for a launcher.

    One that hands the variable NAME to ranks; one that gives each THREADS cores, and evenly over the NUMA nodes.
    """

    passing: str
    binding: str
    even: str


class RankLauncher(Protocol):
    """A scheduler's own program for starting ranks, chosen by ``launcher:`` of a partition."""

    #: the program, and the value of ``launcher:``
    name: str
    #: the begin of a line of error of this program
    error: str

    def command(
        self,
        nodes: int,
        ranks_per_node: int,
        hosts: Sequence[str],
        *,
        round_robin: bool,
        bound: bool,
        plugin: str | None,
    ) -> list[str]:
        """The command that starts ``nodes`` x ``ranks_per_node`` ranks, up to the program.

        ``hosts``: the nodes by name; empty: the job's. ``round_robin``: rank r runs on node r mod ``nodes``. ``bound``:
        plumb-bind binds, so the launcher must not. ``plugin``: how the MPI library learns of its ranks (PMI); None: as
        the environment says.
        """

    def plugins(self) -> tuple[str, ...]:
        """The PMI plugins that are offered here; raises :class:`PlumbError` where they cannot be asked for."""

    def library(self, plugin: str) -> Path | None:
        """The library by which a program speaks ``plugin``; None where there is none in a usual place."""


class Scheduler(ABC):
    """One scheduler. The defaults are those of a scheduler without jobs."""

    #: as ``site.yaml`` and ReFrame call it
    name: str
    #: the programs that a login host must have
    programs: tuple[str, ...] = ()
    #: whether nodes are had by submitting a job only; else they are those that the partition names (``hosts``)
    has_jobs = True
    #: whether there is one node, the host that this runs on
    is_one_host = False
    #: the scheduler's own program for starting ranks
    rank_launcher: RankLauncher | None = None
    #: what starts ranks -> what to write for it
    words: Mapping[str, Words] = MappingProxyType({})
    #: the variables in which it tells a process its rank, as in custom-kernels/common/rank_variables.c
    rank_variables: tuple[RankVariables, ...] = ()
    #: patterns of the lines in which its programs report that ranks failed
    failures: tuple[str, ...] = ()
    #: the options by which a job names its queue, the one that is used here first
    queue_options: tuple[str, ...] = ("-q",)
    #: the variable that is set in every job, and nowhere else
    job_variable = ""
    #: the variable that names the job's file of hosts, one at the begin of each line
    hosts_variable = ""
    #: the line of :meth:`submit` with the job's id: a pattern with the id as its group
    id_line: str
    #: whether that line comes as soon as there is a job, also into a file: its absence means that nothing answers
    id_at_once = False
    #: the command that ends a job, up to its id
    cancel_command: tuple[str, ...]
    #: Options by which a job whose node dies is not started again: the session would continue on other nodes.
    no_restart: tuple[str, ...] = ()

    # --- inside a job

    def inside(self, environment: Mapping[str, str]) -> bool:
        """Whether a process with this environment belongs to a job."""
        return self.job_variable in environment

    def hosts(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """The hosts of this job, each once; none where the scheduler does not say."""
        file = Path(environment.get(self.hosts_variable, ""))
        lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
        return tuple(dict.fromkeys(line.split()[0] for line in lines if line.strip()))

    def host_name(self, environment: Mapping[str, str]) -> str:
        """This host as the scheduler calls it."""
        return socket.gethostname()

    def energy_source(self) -> str | None:
        """The source of the joules of this scheduler's steps, in words; None: there is none."""
        return None

    def steps(self, environment: Mapping[str, str]) -> Mapping[str, Step]:
        """The steps of this job that have ended, by id; raises :class:`PlumbError` where they cannot be asked for."""
        return {}

    # --- facts that a launcher of ranks needs inside a job

    def may_fork_proxy(self, environment: Mapping[str, str]) -> bool:
        """Whether ranks on this node only should be started without a step of the scheduler."""
        return False

    #: variables of the job that would change what a step's command line says: no launcher may see them
    hidden_variables: tuple[str, ...] = ()
    #: variables with which the steps of a job bind nothing
    unbound_steps: Mapping[str, str] = MappingProxyType({})
    #: variables with which the steps of a job offer no PMI: for a launcher that has its own
    steps_without_pmi: Mapping[str, str] = MappingProxyType({})

    #: the names of Open MPI's components (``ras``) that read its jobs; none: there are no jobs, or no such component
    open_mpi: tuple[str, ...] = ()
    #: whether Hydra reads its jobs
    read_by_hydra = True
    #: the variables by which its own programs, and launchers built with it, know their job; ``A_`` is all that begin so
    job_variables: tuple[str, ...] = ()
    #: those of them by which a person changes how the steps of a job run
    step_settings: tuple[str, ...] = ()

    # --- a job

    #: lines that a job script begins with
    script_begins: tuple[str, ...] = ()

    @abstractmethod
    def submit(self, job: Job, script: Path) -> list[str]:
        """Submits ``script``; it runs once, on the first node of ``job``.

        Where :meth:`follow` gives nothing, this command waits until the job has ended.
        """

    def job_id(self, stdout: str) -> str | None:
        """The job's id from the standard output of :meth:`submit`; None while the scheduler has not printed it.

        Login banners stand on standard output too: only a line of the scheduler's own form counts, and the last one.
        """
        ids = re.findall(self.id_line, stdout, re.MULTILINE)
        return ids[-1] if ids else None

    def follow(self, job_id: str) -> list[str] | None:
        """Waits for the end of a job; None where :meth:`submit` does."""
        return None

    def cancel(self, job_id: str) -> list[str]:
        """Ends a job."""
        return [*self.cancel_command, job_id]

    @abstractmethod
    def on_every_node(self, job: Job, command: Sequence[str]) -> list[list[str]]:
        """Starts ``command`` once on each node and waits; one job, or one for each node where it cannot be one.

        Whole nodes are asked for: in a share of one, a process sees the topology of the share.
        """

    #: whether that is a job for each node, one after the other
    one_by_one = False

    def shares_nodes(self, access: Sequence[str]) -> str:
        """Why such a job with these options may not have its nodes for itself; empty where it has."""
        return ""

    def run_on_every_node(self, job: Job, command: Callable[[str | None], list[str]], limit: float) -> Done:
        """Run ``command(None)`` once on each node for at most ``limit`` seconds; return the first failure, if any.

        ``limit`` holds for each command of the scheduler. ``command(host)`` is the command for a host that is known
        before. Raises :class:`PlumbError` where the scheduler's program is absent, or would change a path on its way to
        the nodes.
        """
        words = command(None)
        for word in [*words, str(job.log)]:
            if word.startswith("/") and not PLAIN_PATH.fullmatch(word):
                raise PlumbError(
                    f"path {word!r} holds letters that {self.name} changes", WHERE_FACTS, "use plain names"
                )
        job.log.unlink(missing_ok=True)  # of an earlier job
        done = Done(0, "", "")
        for start in self.on_every_node(job, words):
            each = run(start, limit, where=WHERE_FACTS)
            done = each if done.status == 0 else done
        return replace(done, stderr=late(job.log)) if done.status and not done.stderr.strip() else done

    @abstractmethod
    def on_one_node(self, access: Sequence[str], hosts: Sequence[str], command: Sequence[str]) -> list[str]:
        """Starts ``command`` on any one node of a partition, as soon as there is room, and waits."""

    # --- a partition

    @abstractmethod
    def nodes(self, queue: str | None, hosts: Sequence[str] = (), access: Sequence[str] = ()) -> list[Node]:
        """The nodes of ``queue`` (None: of the cluster), or the ``hosts`` that are named, reached by ``access``.

        Raises :class:`PlumbError` where the scheduler does not answer.
        """

    def longest_job(self, queue: str | None) -> int | None:
        """Seconds that a job may take; None where there is no limit, or none can be asked for."""
        return None

    #: whether a job can be put on a chosen node; a job on several nodes gets other nodes too
    can_pin = False

    def pin(self, node: str) -> list[str]:
        """The options that put a job on ``node``."""
        return []

    def queue(self, default: str | None, options: Sequence[str]) -> str | None:
        """The scheduler's own name of the partition: that of the access options, else ``default`` if there are none.

        With options that name no queue, jobs go to the scheduler's default: None.
        """
        line = " ".join(names.words_of_all(options))
        queues = re.findall(rf"(?:^| )(?:{'|'.join(self.queue_options)})[= ]?(\S+)", line)
        queue = queues[-1] if queues else None if line else default
        return None if queue is None else names.host(queue, "--partition", "partition")

    def in_queue(self, queue: str | None) -> list[str]:
        """The option that names ``queue``; none for None."""
        option = self.queue_options[0]
        return [] if queue is None else [f"{option}={queue}"] if option.startswith("--") else [option, queue]

    # --- the health of nodes

    #: its part of plumbline/schedulers/health, which nodes run without this package; empty: it can drain no node
    health = ""

    def drain(self, node: str, reason: str) -> str:
        """Keep new jobs away from ``node``; returns a line about it. Where it is out of work, nothing changes.

        Raises :class:`PlumbError` where the scheduler refuses, or cannot do so.
        """
        return self._health("drain", names.host(node, "--node"), reason)

    def resume(self, node: str) -> str:
        """Let jobs on ``node`` again, if :meth:`drain` or a health check drained it; a line about it, or nothing."""
        return self._health("resume", names.host(node, "--node"))

    def jobs_on(self, node: str) -> str:
        """A job on ``node``, in words; empty where there is none, or there are no jobs at all.

        Raises :class:`PlumbError` where nobody can say.
        """
        if not self.has_jobs:
            return ""
        if not self.health:
            fault = f"scheduler {self.name} cannot say whether jobs are on a node"
            raise PlumbError(fault, node, "screen nodes of another scheduler")
        done = run(["sh", str(HEALTH / "health.sh"), self.health, "jobs", names.host(node, "--node")], 60)
        if done.status not in (0, 1):
            raise PlumbError(f"nobody can say whether jobs are on {node}: {done.last()}", self.name, "does it answer?")
        return (done.stdout.strip() or "a job") if done.status else ""

    def _health(self, *words: str) -> str:
        if not self.health:
            raise PlumbError(f"scheduler {self.name} cannot drain nodes", f"plumb nodes {words[0]}", "name another")
        return answer(["sh", str(HEALTH / "health.sh"), self.health, *words], f"{words[0]} {words[1]}").strip()

    # --- ReFrame

    def reframe_backend(self) -> str:
        """ReFrame's name of its backend for this scheduler."""
        return self.name

    def reframe_options(self, access: Sequence[str], nodes: int) -> list[str]:
        """The options that ReFrame's backend omits for a job of ``nodes`` nodes with the options ``access``."""
        return []

    def reframe_partition(self, access: Sequence[str], hosts: Sequence[str], node: str | None) -> dict[str, Any]:
        """``access`` (and ``sched_options``) of a partition in ReFrame's configuration, its jobs pinned to ``node``."""
        once = [" ".join(self.no_restart)] if self.no_restart else []  # one line of the job script each
        return {"access": [*once, *access, *(self.pin(node) if node else [])]}


def whole_json(text: str, program: str) -> dict[str, Any]:
    """The JSON object that ``program`` printed, newlines in texts allowed; :class:`PlumbError` for anything else."""
    try:
        document = json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        raise PlumbError(f"{program} printed no valid JSON: {error}", WHERE_STATES, f"run {program} yourself") from None
    if not isinstance(document, dict):
        raise PlumbError(f"{program} printed no JSON object", WHERE_STATES, f"run {program} yourself")
    return document


def three_columns(line: str, program: str) -> list[str]:
    """The parts of ``A|B|C``, where C may hold the separator too; raises :class:`PlumbError` for anything else."""
    parts = [part.strip() for part in line.split("|", 2)]
    if len(parts) != 3:
        message = f"{program} printed something unexpected: {line[:100]!r}"
        raise PlumbError(message, WHERE_STATES, f"run {program} yourself")
    return parts


def joined(options: Sequence[str]) -> list[str]:
    """``-p main`` as ``-pmain``, so that no word can be taken for the program to start."""
    words: list[str] = []
    for word in options:
        if word.startswith("-"):
            words.append(word)
        else:
            words[-1] += word
    return words


def clock_seconds(text: str, where: str, program: str) -> int:
    """Seconds of ``[days-][[HH:]MM:]SS`` in the answer of ``program``; raises :class:`PlumbError` for another text.

    >>> clock_seconds("1:00:30", "", ""), clock_seconds("2-00:00:30", "", "")
    (3630, 172830)
    """
    if not re.fullmatch(r"(\d+-)?(\d+:){0,2}\d+", text):
        raise PlumbError(f"{text!r} is not a time limit", where, f"report this answer of {program}")
    days, _, clock = text.rpartition("-")
    return 86400 * int(days or 0) + sum(int(part) * 60**power for power, part in enumerate(reversed(clock.split(":"))))
