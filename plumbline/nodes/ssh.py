"""One command on many hosts by ssh (ClusterShell): batch mode, host keys checked as the user's ssh config says."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from plumbline.nodes.process import Done

#: connections at once
FANOUT = 32
#: seconds to reach a host
CONNECT = 10


def each(commands: Mapping[str, Sequence[str]], limit: float) -> dict[str, Done]:
    """Run ``commands[host]`` on every host, at most :data:`FANOUT` at once, each for at most ``limit`` seconds.

    Host names have to be checked already: ssh would take one that begins with '-' for an option.
    """
    from ClusterShell.Task import task_self

    task = task_self()
    task.set_info("fanout", FANOUT)
    task.set_info("connect_timeout", CONNECT)
    task.set_info("ssh_options", "-oBatchMode=yes")
    workers = {
        # ssh hands one line to the remote shell: every word is quoted for it
        host: task.shell(" ".join(map(shlex.quote, command)), nodes=host, timeout=limit, stderr=True)
        for host, command in commands.items()
    }
    task.resume()
    return {host: _done(worker, host) for host, worker in workers.items()}


def _done(worker, host: str) -> Done:  # type: ignore[no-untyped-def]  # noqa: ANN001
    late = host in set(worker.iter_keys_timeout())
    status = None if late else worker.node_retcode(host)
    return Done(status, _text(worker.node_buffer(host)), _text(worker.node_error(host)))


def _text(buffer: bytes | None) -> str:
    return (buffer or b"").decode("utf-8", "replace")
