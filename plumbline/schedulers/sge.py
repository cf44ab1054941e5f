"""Grid Engine: qsub(1), qdel(1), qhost(1), qconf(1). https://gridengine.eu/mangridengine/

Which parallel environment gives whole nodes differs between sites: the partition's access options name it,
``-pe NAME SLOTS`` with the slots of one node. A job over several nodes asks for that many times the slots.
"""

from __future__ import annotations

import re
import shlex
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plumbline.base.errors import PlumbError
from plumbline.schedulers import names
from plumbline.schedulers.base import WHERE_FACTS, WHERE_STATES, Job, Node, Scheduler, clock_seconds
from plumbline.schedulers.program import answer

#: letters of a queue's state on a node, qstat(1): those with which no job starts there
STOPS = {
    "u": "unknown: its execution daemon does not answer",
    "E": "error",
    "d": "disabled",
    "D": "disabled by calendar",
    "s": "suspended",
    "S": "suspended by another queue",
    "C": "suspended by calendar",
    "o": "orphaned",
    "c": "ambiguous configuration",
}
#: where the answer of qhost has the letters of a queue
LETTERS = "{*}queuevalue[@name='state_string']"
#: a request that can never be fulfilled is refused at once; without it the job would wait for ever
CHECKED = ("-w", "e")
#: SIGUSR2 comes before SIGKILL: the driver ends its launch and closes its record at it
WARNED = ("-notify",)


class Sge(Scheduler):
    """Grid Engine. It gives no reason for the state of a node; jobs are put on chosen nodes one by one."""

    name = "sge"
    health = "sge"
    programs = ("qsub", "qstat", "qhost")
    no_restart = ("-r", "n")
    #: the script gets SIGUSR2 too, and when it ends, SIGKILL comes: it has to wait for the driver
    script_begins = ("trap : USR2",)
    job_variable = "JOB_ID"
    job_variables = ("SGE_", "JOB_", "PE", "PE_", "NSLOTS", "NHOSTS", "NQUEUES", "QUEUE", "ARC")
    hosts_variable = "PE_HOSTFILE"
    #: of an array ``Your job-array 4711.1-10:1 ("plumb") …``
    id_line = r'^Your job(?:-array)? (\d+)(?:\.\S+)? \(".*"\) has been submitted$'
    open_mpi = ("gridengine",)
    cancel_command = ("qdel",)
    one_by_one = True

    def submit(self, job: Job, script: Path) -> list[str]:
        """``-sync y`` waits for the job and ends with its exit status; the queue's own shell may be another than bash.

        Raises :class:`PlumbError` for several nodes where the options name no parallel environment.
        """
        options = ["-sync", "y", "-S", "/bin/bash", "-N", job.name, "-j", "y", "-o", str(job.log)]
        options += [*self.no_restart, *WARNED]
        where = ["-l", f"hostname={'|'.join(job.hosts)}"] if job.hosts else []
        return ["qsub", *options, *CHECKED, *where, *_slots(job.access, job.nodes), str(script)]

    def on_every_node(self, job: Job, command: Sequence[str]) -> list[list[str]]:
        """A job for each node, because there may be no parallel environment.

        Raises :class:`PlumbError` where no hosts are named.
        """
        if not job.hosts:
            raise PlumbError("scheduler sge needs the names of the nodes", WHERE_FACTS, "give --node A for each")
        begin = ["qsub", "-sync", "y", *CHECKED, "-b", "y", "-N", job.name, "-j", "y", "-o", str(job.log)]
        words = [*self.in_queue(job.queue), *_slots(job.access, 1), *command]
        return [[*begin, "-l", f"hostname={name}", *words] for name in job.hosts]

    def shares_nodes(self, access: Sequence[str]) -> str:
        """Without a parallel environment, which gives whole nodes, a job has one slot."""
        of_one_slot = "-pe" not in names.words_of_all(access)
        return "its access names no parallel environment (-pe NAME SLOTS)" if of_one_slot else ""

    def on_one_node(self, access: Sequence[str], hosts: Sequence[str], command: Sequence[str]) -> list[str]:
        """A job that qsub waits for; ``-b y``: the command is a program, not a script."""
        options = ["-N", "plumb-preflight", "-j", "y", "-o", "/dev/null", "-sync", "y", *CHECKED, "-b", "y"]
        return ["qsub", *options, *access, *command]

    def nodes(self, queue: str | None, hosts: Sequence[str] = (), access: Sequence[str] = ()) -> list[Node]:
        """By qhost."""
        return read_nodes(answer(["qhost", "-q", "-xml"], WHERE_STATES), queue)

    def longest_job(self, queue: str | None) -> int | None:
        """The least limit of the queue (``h_rt``, ``s_rt``); None without a queue, and on a host that has no qconf."""
        if queue is None or shutil.which("qconf") is None:
            return None
        return read_limit(answer(["qconf", "-sq", queue], f"queue {queue}"))

    def reframe_options(self, access: Sequence[str], nodes: int) -> list[str]:
        """The partition's options, which ReFrame's backend drops, with the slots of ``-pe`` for ``nodes`` nodes."""
        return [shlex.join(_slots(names.words_of_all(access), nodes))]

    def reframe_partition(self, access: Sequence[str], hosts: Sequence[str], node: str | None) -> dict[str, Any]:
        """A job that can never start is refused; one that is ended gets a warning first."""
        partition = super().reframe_partition(access, hosts, node)
        return {**partition, "access": [" ".join((*CHECKED, *WARNED)), *partition["access"]]}


def _slots(words: Sequence[str], nodes: int) -> list[str]:
    """``words`` with the slots of ``-pe NAME SLOTS``, which are those of one node, multiplied by ``nodes``."""
    options = list(words)
    if "-pe" not in options:
        if nodes == 1:
            return options
        cure = "add the site's own with the slots of one node to the partition's access, such as '-pe mpi 64'"
        raise PlumbError(f"a job of {nodes} nodes needs a parallel environment", "Grid Engine", cure)
    place = options.index("-pe") + 2
    if not options[place:] or not options[place].isdecimal():
        cure = "write the slots of one node, such as '-pe mpi 64'"
        raise PlumbError(f"{shlex.join(options)!r} has no number of slots", "Grid Engine", cure)
    options[place] = str(nodes * int(options[place]))
    return options


def read_nodes(text: str, queue: str | None) -> list[Node]:
    """``qhost -q -xml``: hosts with their queues and the letters of each queue's state there.

    With a queue, hosts that are not in it are left out. A host is usable if a queue (that queue) takes jobs there.
    """
    try:
        hosts = ET.fromstring(text).findall("{*}host")  # noqa: S314 - the scheduler is trusted with more than this
    except ET.ParseError as error:
        raise PlumbError(f"qhost printed no valid XML: {error}", WHERE_STATES, "run qhost -q -xml yourself") from None
    nodes = []
    for host in hosts:
        states = {str(item.get("name")): item.findtext(LETTERS, "") for item in host.findall("{*}queue")}
        wanted = {name: state for name, state in states.items() if queue in (None, name)}
        if not wanted:
            continue
        state = min(wanted.values(), key=lambda letters: len(STOPS.keys() & set(letters)))
        why = "; ".join(STOPS[letter] for letter in state if letter in STOPS)
        nodes.append(Node(names.host(str(host.get("name")), "qhost"), state or "free", not why, why))
    return nodes


def read_limit(text: str) -> int | None:
    r"""Seconds of the least ``h_rt`` or ``s_rt`` in ``qconf -sq``; of ``1:00:00,[node1=0:30:00]`` all parts count.

    >>> read_limit("h_rt   1:00:00,[node1=0:30:00]\ns_rt  INFINITY"), read_limit("h_rt  INFINITY")
    (1800, None)
    """
    lines = re.findall(r"^[hs]_rt\s+(.*)$", text, re.MULTILINE)
    clocks = (clock for line in lines for clock in re.findall(r"\d+:\d+:\d+", line))
    return min((clock_seconds(clock, "qconf -sq", "qconf") for clock in clocks), default=None)
