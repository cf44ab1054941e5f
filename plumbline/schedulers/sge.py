"""Grid Engine: qsub(1), qdel(1). https://gridengine.eu/mangridengine/

Which parallel environment gives whole nodes is the site's own matter: a job over several nodes needs it among the
partition's access options.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plumbline.errors import PlumbError
from plumbline.schedulers.base import WHERE_FACTS, WHERE_STATES, Job, Node, Scheduler


class Sge(Scheduler):
    """Grid Engine, whose host list knows no reason and no queue: it is not asked for the states of nodes."""

    name = "sge"
    programs = ("qsub", "qstat", "qhost")
    knows_nodes = False
    no_restart = ("-r", "n")
    reframe_drops_access = True
    job_variable = "JOB_ID"
    job_variables = ("SGE_", "JOB_", "PE", "PE_", "NSLOTS", "NHOSTS", "NQUEUES", "QUEUE", "ARC")
    hosts_variable = "PE_HOSTFILE"
    #: of an array ``Your job-array 4711.1-10:1 ("plumb") …``
    id_line = r'^Your job(?:-array)? (\d+)(?:\.\S+)? \(".*"\) has been submitted$'
    cancel_command = ("qdel",)

    def submit(self, job: Job, script: Path) -> list[str]:
        """``-sync y`` waits for the job and ends with its exit status; the queue's own shell may be another than bash.

        Raises :class:`PlumbError` for several nodes where the options name no parallel environment.
        """
        if job.nodes > 1 and "-pe" not in job.access:
            cure = "add the site's own to the partition's access, such as '-pe mpi 64'"
            raise PlumbError(f"a job of {job.nodes} nodes needs a parallel environment", "Grid Engine", cure)
        options = ["-sync", "y", "-S", "/bin/bash", "-N", job.name, "-j", "y", "-o", str(job.log), *self.no_restart]
        where = ["-l", f"hostname={'|'.join(job.hosts)}"] if job.hosts else []
        return ["qsub", *options, *where, *job.access, str(script)]

    def on_every_node(self, job: Job, command: Sequence[str]) -> list[list[str]]:
        """A job for each node, because no parallel environment can be counted on."""
        if not job.hosts:
            raise PlumbError("under sge the nodes have to be named", WHERE_FACTS, "give --node A for each")
        begin = ["qsub", "-sync", "y", "-b", "y", "-N", job.name, "-j", "y", "-o", str(job.log)]
        words = [*self.in_queue(job.queue), *job.access, *command]
        return [[*begin, "-l", f"hostname={name}", *words] for name in job.hosts]

    def on_one_node(self, access: Sequence[str], hosts: Sequence[str], command: Sequence[str]) -> list[str]:
        """A job that qsub waits for; ``-b y``: the command is a program, not a script."""
        options = ["-N", "plumb-preflight", "-j", "y", "-o", "/dev/null", "-sync", "y", "-b", "y"]
        return ["qsub", *options, *access, *command]

    def nodes(self, queue: str | None, hosts: Sequence[str] = ()) -> list[Node]:
        """Not read."""
        raise PlumbError(
            f"states of nodes under {self.name} cannot be read", WHERE_STATES, "name the nodes with --node"
        )
