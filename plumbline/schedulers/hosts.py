"""No scheduler: this host, or hosts that are named, each reached by ssh(1)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from plumbline.base.errors import PlumbError
from plumbline.schedulers import names
from plumbline.schedulers.base import JOB_HOSTS, WHERE_STATES, Job, Node, Scheduler
from plumbline.schedulers.program import Done, run

#: never asks for a password, and refuses a host whose key is not known
OPTIONS = ("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes")
#: connections at once
FANOUT = 32
#: seconds to reach a host
CONNECT = 10
#: seconds for a host to answer ``true``
REACH = 30


class Local(Scheduler):
    """Commands run on this host."""

    name = "local"
    has_jobs = False
    is_one_host = True
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


class Ssh(Local):
    """Commands run on hosts that the partition names."""

    name = "ssh"
    programs = ("ssh",)
    #: the agent and the tickets by which it is let in without a password
    job_variables = ("SSH_AUTH_SOCK", "KRB5CCNAME")
    is_one_host = False
    can_pin = True

    def submit(self, job: Job, script: Path) -> list[str]:
        """On the first host; with a terminal (``-tt``), the script ends when the connection does."""
        return ["ssh", "-tt", *OPTIONS, *job.access, job.hosts[0], shlex.join(["bash", str(script)])]

    def run_on_every_node(self, job: Job, command: Callable[[str | None], list[str]], limit: float) -> Done:
        """Run the command on all ``job.hosts`` at once; ``stderr`` has a line for each host on which it failed."""
        done = each({host: command(host) for host in job.hosts}, limit, job.access)
        failed = [f"{host}: {answer.last()}" for host, answer in done.items() if answer.status != 0]
        return Done(1 if failed else 0, "", "\n".join(failed))

    def on_one_node(self, access: Sequence[str], hosts: Sequence[str], command: Sequence[str]) -> list[str]:
        """On the first of the hosts."""
        return ["ssh", "-o", "BatchMode=yes", *access, hosts[0], *map(shlex.quote, command)]

    def nodes(self, queue: str | None, hosts: Sequence[str] = (), access: Sequence[str] = ()) -> list[Node]:
        """Each host answers ``true`` or not, with the message of ssh."""
        if not hosts:
            raise PlumbError("scheduler ssh needs hosts", WHERE_STATES, "give --hosts A,B")
        done = each({names.host(name, "--hosts"): ["true"] for name in hosts}, REACH, access)
        return [
            Node(name, "reachable", True) if answer.status == 0 else Node(name, "unreachable", False, answer.last())
            for name, answer in done.items()
        ]

    def reframe_partition(self, access: Sequence[str], hosts: Sequence[str], node: str | None) -> dict[str, Any]:
        """``plumb launch`` runs on the first host: ``#host``, a pseudo option of ssh in ReFrame's documentation."""
        if not hosts:
            return {"access": list(access)}
        ordered = sorted(hosts, key=lambda host: host != node)  # a stable sort
        return {"sched_options": {"ssh_hosts": ordered}, "access": [f"#host={ordered[0]}", *OPTIONS, *access]}


def each(commands: Mapping[str, Sequence[str]], limit: float, access: Sequence[str] = ()) -> dict[str, Done]:
    """Run ``commands[host]`` on every host, at most :data:`FANOUT` at once, each for at most ``limit`` seconds.

    Host names have to be checked already: ssh would take one that begins with '-' for an option.
    """
    from ClusterShell.Task import task_self

    task = task_self()
    task.set_info("fanout", FANOUT)
    task.set_info("connect_timeout", CONNECT)
    task.set_info("ssh_options", shlex.join(["-oBatchMode=yes", *access]))
    workers = {
        # ssh hands one line to the remote shell: every word is quoted for it
        host: task.shell(" ".join(map(shlex.quote, command)), nodes=host, timeout=limit, stderr=True)
        for host, command in commands.items()
    }
    task.resume()
    done = {}
    for host, worker in workers.items():
        late = host in set(worker.iter_keys_timeout())
        texts = (buffer or b"" for buffer in (worker.node_buffer(host), worker.node_error(host)))
        done[host] = Done(
            None if late else worker.node_retcode(host), *(text.decode("utf-8", "replace") for text in texts)
        )
    return done
