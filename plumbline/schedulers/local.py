"""No scheduler: this host, or hosts that are named and reached by ssh from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from plumbline.base.errors import PlumbError
from plumbline.schedulers import names
from plumbline.schedulers.base import JOB_HOSTS, Job, Node, Scheduler
from plumbline.schedulers.program import Done, run


class Local(Scheduler):
    """Commands run on this host."""

    name = "local"
    has_jobs = False
    hosts_are_named = True
    is_one_host = True
    knows_nodes = False
    reframe_jobs = 1
    #: nothing is queued, so nothing has an id
    id_line = r"(?!)"

    def hosts(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Those that the job's script names, if it was made for some of the partition's."""
        return tuple(environment[JOB_HOSTS].split(",")) if JOB_HOSTS in environment else ()

    def submit(self, job: Job, script: Path) -> list[str]:
        """Raises :class:`PlumbError`: there are no jobs."""
        raise PlumbError(f"scheduler {self.name} has no jobs", "site.yaml", "run the command on the host itself")

    def on_every_node(self, job: Job, command: Sequence[str]) -> list[list[str]]:
        """The command itself, here."""
        return [list(command)]

    def run_on_every_node(self, job: Job, command: Callable[[str | None], list[str]], limit: float) -> Done:
        """Here, under this host's own name."""
        return run(command(self.host_name({})), limit)

    def on_one_node(self, access: Sequence[str], hosts: Sequence[str], command: Sequence[str]) -> list[str]:
        """The command itself, here."""
        return list(command)

    def nodes(self, queue: str | None, hosts: Sequence[str] = (), access: Sequence[str] = ()) -> list[Node]:
        """This host."""
        return [Node(names.host(self.host_name({}), "this host"), "up", True)]
