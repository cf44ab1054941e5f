"""OpenPBS and PBS Professional: qsub(1B), qdel(1B), pbsnodes(8B), pbsdsh(1B). https://openpbs.org/"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plumbline.schedulers import names
from plumbline.schedulers.base import WHERE_STATES, Job, Node, Scheduler, joined, whole_json
from plumbline.schedulers.program import answer

USABLE = {"free", "busy", "job-busy", "job-exclusive", "job-sharing", "<various>"}


class Pbs(Scheduler):
    """OpenPBS."""

    name = "pbs"
    programs = ("qsub", "qstat", "pbsnodes")
    no_restart = ("-r", "n")
    job_variable = "PBS_JOBID"
    job_variables = ("PBS_",)
    hosts_variable = "PBS_NODEFILE"
    #: ``4711.server``, of an array ``4711[].server``
    id_line = r"^(\d+(?:\[\])?\.[\w.-]+)$"
    open_mpi = ("pbs", "tm")
    cancel_command = ("qdel",)

    def submit(self, job: Job, script: Path) -> list[str]:
        """``block=true`` waits for the job and ends with its exit status; the login shell may be another than bash."""
        options = [*self.no_restart, "-W", "block=true", "-S", "/bin/bash", "-N", job.name]
        options += ["-j", "oe", "-o", str(job.log)]
        select = "+".join(f"1:host={name}" for name in job.hosts) or str(job.nodes)
        return ["qsub", *options, "-l", f"select={select}", "-l", "place=scatter:excl", *job.access, str(script)]

    def on_every_node(self, job: Job, command: Sequence[str]) -> list[list[str]]:
        """pbsdsh starts the command on every element of the selection."""
        select = "+".join(f"1:ncpus=1:host={name}" for name in job.hosts) or f"{job.nodes}:ncpus=1"
        shape = ["-l", f"select={select}", "-l", "place=scatter:excl", "-l", f"walltime=00:{job.minutes:02d}:00"]
        ask = ["qsub", "-W", "block=true", "-N", job.name, "-j", "oe", "-o", str(job.log), *shape]
        return [[*ask, *self.in_queue(job.queue), *joined(job.access), "--", "pbsdsh", "--", *command]]

    def on_one_node(self, access: Sequence[str], hosts: Sequence[str], command: Sequence[str]) -> list[str]:
        """A job that qsub waits for."""
        options = ["-N", "plumb-preflight", "-j", "oe", "-o", "/dev/null", "-W", "block=true"]
        return ["qsub", *options, *access, "--", *command]

    def nodes(self, queue: str | None, hosts: Sequence[str] = ()) -> list[Node]:
        """By pbsnodes."""
        return read_nodes(answer(["pbsnodes", "-a", "-F", "json"], WHERE_STATES), queue)


def read_nodes(text: str, queue: str | None) -> list[Node]:
    """``pbsnodes -a -F json``: ``nodes`` -> name -> ``state`` (a list joined by commas), ``comment``, ``queue``.

    With a queue, nodes tied to another one are left out: by their attribute ``queue``, or by
    ``resources_available.Qlist``, as many sites have it. A node tied to none is in every queue.
    """
    found = []
    for name, node in (whole_json(text, "pbsnodes").get("nodes") or {}).items():
        parts = [part.strip() for part in str(node.get("state", "state-unknown")).split(",")]
        tied = str(node.get("queue") or (node.get("resources_available") or {}).get("Qlist") or "").split(",")
        if queue is not None and tied != [""] and queue not in [word.strip() for word in tied]:
            continue
        usable = set(parts) <= USABLE
        comment = str(node.get("comment") or "")
        found.append(Node(names.host(name, "pbsnodes"), ",".join(parts), usable, "" if usable else comment))
    return found
