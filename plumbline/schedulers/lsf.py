"""LSF: bsub(1), bkill(1), bhosts(1), bqueues(1), blaunch(1). https://www.ibm.com/docs/en/spectrum-lsf"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from plumbline.schedulers import names
from plumbline.schedulers.base import WHERE_STATES, Job, Node, Scheduler, whole_json
from plumbline.schedulers.program import answer

USABLE = {"ok", "closed_Full", "closed_Excl", "closed_cu_excl", "closed_Busy"}
REASONS = {
    "closed_Adm": "closed by an administrator",
    "closed_EGO": "closed by the resource manager",
    "closed_LIM": "the load manager does not answer",
    "closed_Lock": "locked",
    "closed_Wind": "outside its dispatch window",
    "unavail": "down",
    "unreach": "the batch daemon does not answer",
    "unlicensed": "no licence",
}


class Lsf(Scheduler):
    """LSF; whole nodes are asked for by one slot on each and ``-x``. bsub makes one shell line of a command's words."""

    name = "lsf"
    programs = ("bsub", "bjobs", "bhosts")
    no_restart = ("-rn",)
    job_variable = "LSB_JOBID"
    job_variables = ("LSB_", "LSF_", "EGO_", "LS_JOBPID", "LS_SUBCWD", "LS_EXEC_T")
    id_line = r"^Job <(\d+)> is submitted to (?:default )?queue <.*>\.?$"
    open_mpi = ("lsf",)
    cancel_command = ("bkill",)

    def hosts(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """LSB_MCPU_HOSTS has each host and its slots; LSB_HOSTS has a word a slot, and is not set above 4096 bytes."""
        counted = environment.get("LSB_MCPU_HOSTS", "").split()[::2]
        return tuple(dict.fromkeys(counted or environment.get("LSB_HOSTS", "").split()))

    def submit(self, job: Job, script: Path) -> list[str]:
        """``-K`` waits for the job and ends with its exit status."""
        return ["bsub", *self.no_restart, *self._shape(job), *job.access, shlex.quote(str(script))]

    def on_every_node(self, job: Job, command: Sequence[str]) -> list[list[str]]:
        """blaunch starts the command on every slot."""
        ask = ["bsub", *self._shape(job), "-W", str(job.minutes), *self.in_queue(job.queue)]
        return [[*ask, *job.access, "blaunch", *map(shlex.quote, command)]]

    def _shape(self, job: Job) -> list[str]:
        where = ["-m", " ".join(job.hosts)] if job.hosts else []
        nodes = ["-x", "-n", str(job.nodes), "-R", "span[ptile=1]"]
        return ["-K", "-J", job.name, "-o", str(job.log), *nodes, *where]

    def on_one_node(self, access: Sequence[str], hosts: Sequence[str], command: Sequence[str]) -> list[str]:
        """A job that bsub waits for."""
        ask = ["bsub", "-K", "-J", "plumb-preflight", "-o", "/dev/null", "-n", "1", "-W", "1"]
        return [*ask, *access, *map(shlex.quote, command)]

    def nodes(self, queue: str | None, hosts: Sequence[str] = (), access: Sequence[str] = ()) -> list[Node]:
        """By bhosts, for the hosts that bqueues names."""
        queue_hosts = _hosts_of_queue(queue)
        return read_nodes(answer(["bhosts", "-w", "-o", "host_name status", "-json", *queue_hosts], WHERE_STATES))


def read_nodes(text: str) -> list[Node]:
    """``bhosts -o 'host_name status' -json``: ``RECORDS`` with ``HOST_NAME``, ``STATUS`` (``ok``, ``closed_Adm``)."""
    nodes = []
    for record in whole_json(text, "bhosts").get("RECORDS") or []:
        state = str(record.get("STATUS", ""))
        usable = state in USABLE
        reason = "" if usable else REASONS.get(state, "")
        nodes.append(Node(names.host(str(record.get("HOST_NAME", "")), "bhosts"), state, usable, reason))
    return nodes


def _hosts_of_queue(queue: str | None) -> list[str]:
    """Hosts and host groups of a queue (``bqueues -o hosts -json``); none means all."""
    if queue is None:
        return []
    text = answer(["bqueues", "-o", "hosts", "-json", queue], WHERE_STATES)
    records = whole_json(text, "bqueues").get("RECORDS") or [{}]
    words = [word.split("+")[0].rstrip("/") for word in str(records[0].get("HOSTS", "")).split()]
    return [] if words in ([], ["all"]) else [names.host(word, "bqueues") for word in words]
