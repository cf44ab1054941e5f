"""The nodes of a launch: their names, the facts of each, the turn on this one, and the energy that they use.

``python -m plumbline.launch.hosts FOLDER`` runs once on every node and leaves that node's provenance in FOLDER.

Launches on one host take turns: two that run at once would disturb each other. A turn is an abstract address of
unix(7): one process of the host can have it, and the kernel releases it when that process ends, however it ends.
Nothing is left behind, and no file has to be writable by everybody. Any user can have it, so the turn of another user
is only waited for while what that user started works.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pwd
import re
import shutil
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plumbline import mpi, schedulers
from plumbline.base import files, paths, units
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Partition
from plumbline.host import energy, proc, provenance
from plumbline.launch import process
from plumbline.launch.environment import at_home
from plumbline.launch.witness.compare import same_host

#: seconds in which every node must have answered; srun tries again after 60 to 69 where slurmctld was just restarted
PATIENCE_S = 90.0
TURN = "\0plumbline measures a launch"
#: seconds that a launch waits for others: more than most launches take, and not for hours beside a long one
TURN_S = 60.0
#: waits that take longer are announced
ANNOUNCED_S = 2.0
#: seconds in which another user's launch must use CPU time to be waited for
IDLE_S = 2.0
_POLL_S = 0.05
#: processes that kept the turn for as long as anybody waits: they are not waited for again
_slow: set[int] = set()
#: seconds to wait for a step's entry after its end, and between two looks
LATE_S = 10.0
PAUSE_S = 0.5
#: by how many seconds the scheduler's clock may be behind
CLOCKS_S = 5.0


def chosen(partition: Partition, nodes: int) -> tuple[str, ...]:
    """The hosts of a launch on ``nodes`` nodes of a partition without a scheduler, this one first.

    Those of its job, where that was started on some of them; else the partition's in their order.
    Empty for one node, and where the scheduler of the partition gives the hosts. Raises :class:`PlumbError` where the
    partition names too few, or does not name the host that this runs on.
    """
    named = tuple(partition.hosts)
    where = f"partition {partition.name}"
    if not named:
        if nodes > 1 and not schedulers.named(partition.scheduler).has_jobs:
            cure = "name them in site.yaml: hosts: [node1, node2]"
            raise PlumbError(f"{nodes} nodes asked, and neither a scheduler nor hosts gives them", where, cure)
        return ()
    if not (ordered := _this_first(schedulers.named(partition.scheduler).hosts(os.environ)) or _this_first(named)):
        cure = f"its hosts are {', '.join(named)}: start it on one of them, or set scheduler: {schedulers.REMOTE.name}"
        raise PlumbError(f"this host, {socket.gethostname()}, is none of the partition's", where, cure)
    if nodes > len(ordered):
        raise PlumbError(f"{nodes} nodes asked, hosts names {len(ordered)}", where, "name more, or ask for fewer")
    return ordered[:nodes] if nodes > 1 else ()


def share(nodes: int, environment: Mapping[str, str]) -> tuple[str, ...]:
    """This host and the next ones of its job, if the job has more nodes than the launch takes (that of a gate).

    Without them the launcher would deal the ranks over the whole job. Empty where the job has no more nodes.
    """
    hosts = schedulers.current(environment).hosts(environment)
    return _this_first(hosts)[:nodes] if len(hosts) > nodes else ()


def of_job(nodes: int, environment: Mapping[str, str]) -> tuple[str, ...]:
    """This host and the next ones of its job, for a launch over several nodes whose launcher does not know them.

    Empty for one node. Raises :class:`PlumbError` where the scheduler does not name them either.
    """
    if nodes == 1:
        return ()
    scheduler = schedulers.current(environment)
    hosts = _this_first(scheduler.hosts(environment))[:nodes]
    if len(hosts) < nodes:
        cure = "was the job submitted for that many nodes, and is this one of them?"
        raise PlumbError(f"{nodes} nodes asked, the job names {len(hosts)}", scheduler.name, cure)
    return hosts


def _this_first(hosts: tuple[str, ...]) -> tuple[str, ...]:
    local = next((name for name in hosts if same_host(name, socket.gethostname())), None)
    return (local, *(name for name in hosts if name != local)) if local else ()


@dataclass(frozen=True)
class Ranks:
    """How ranks are started: launcher, layout and variables.

    ``exported`` names the variables of ``environment`` that ranks on other nodes must get too.
    """

    launcher: mpi.Launcher
    layout: mpi.Layout
    exported: tuple[str, ...]
    environment: Mapping[str, str]


def collect(ranks: Ranks, folder: Path) -> list[dict[str, Any]]:
    """Provenance of every node of ``ranks``, by one process on each, started as the ranks are.

    A node that does not answer has an element with ``missing``, the reason, and its name if that is known.
    ``folder`` lies on a file system of all nodes. Raises as :func:`process.run` does.
    """
    layout, environment = ranks.layout, ranks.environment
    files.make_anew(folder)
    single = replace(layout, ranks_per_node=1, round_robin=False)
    start = ranks.launcher.command(single, bound=True, exported=ranks.exported, environment=environment)
    command = [*start.arguments, *paths.python(), "-m", "plumbline.launch.hosts", str(folder)]
    ended = process.run(command, at_home({**environment, **start.environment}, folder), folder, PATIENCE_S)
    nodes = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
    if (lost := layout.nodes - len(nodes)) <= 0:
        shutil.rmtree(folder)
        return nodes
    seen = [item["hostname"] for item in nodes]
    known = layout.hosts or schedulers.current(environment).hosts(environment)
    names = [name for name in known if not any(same_host(name, host) for host in seen)]
    why = f"no answer: {_why(ended, folder)}"
    return nodes + [{"hostname": name, "missing": why} for name in [*names, *[None] * lost][:lost]]


def _why(ended: process.Ended, folder: Path) -> str:
    if ended.status == "timeout":
        return f"ended after {PATIENCE_S:g} s"
    lines = process.printed(folder / "stderr").split("\n")
    message = next((line.strip() for line in lines if re.search(r"\w", line)), "")
    return f"the launcher ended with status {ended.exit_code}{f': {message}' if message else ''}"


@dataclass(frozen=True)
class Part:
    """The part of a machine that a launch has: its placement may use ``cpus``.

    In the same turn another launch, or a neighbour, works on the ``others``, if there are any. ``meet`` waits until
    that launch starts too, and ``barrier`` is the file at which the ranks of both meet.
    """

    cpus: tuple[int, ...]
    others: frozenset[int]
    meet: Callable[[], None] | None = None
    barrier: Path | None = None


@contextlib.contextmanager
def turn(patience_s: float = TURN_S) -> Iterator[list[str]]:
    """Have this host's turn within this block. Yields a remark for the launch if another one kept it all the time."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as address:
        alone = _bound(address) or (_holder()[0] not in _slow and _waited(address, patience_s))
        yield [] if alone else [f"measured beside another launch on this host{_named(*_holder())}"]


def _waited(address: socket.socket, patience_s: float) -> bool:
    begin = looked = time.monotonic()
    announced, work = False, _work(*_holder())
    while (waited := time.monotonic() - begin) <= patience_s:
        if waited > ANNOUNCED_S and not announced:
            announced = True
            print(f"plumb: waiting for another launch on this host{_named(*_holder())}", file=sys.stderr, flush=True)
        time.sleep(_POLL_S)
        if _bound(address):
            return True
        if time.monotonic() - looked > IDLE_S:
            before, work, looked = work, _work(*_holder()), time.monotonic()
            if work is not None and work == before:
                break
    _slow.add(_holder()[0])
    _slow.discard(-1)
    return False


def _bound(address: socket.socket) -> bool:
    """Whether ``address`` is the turn now, or none can be had here: then nobody waits for it."""
    try:
        address.bind(TURN)
        address.listen()  # so that it can be asked who has it
    except OSError as error:
        return error.errno != errno.EADDRINUSE
    return True


def _holder() -> tuple[int, int]:
    """Process and user that have the turn; -1 if it has just ended, process 0 if it is of another PID namespace."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)
        asking.connect(TURN)
        size = struct.calcsize("3i")
        pid, uid, _ = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        return pid, uid
    return -1, -1


def _work(pid: int, uid: int) -> int | None:
    """CPU time, in clock ticks, of a process of another user and of those below it; None where it is not to be asked.

    Root and oneself are trusted; of other users a host may hide the processes. Who cannot be asked does nothing.
    """
    if pid == -1:
        return 0
    if uid in (0, os.geteuid()):
        return None
    try:
        every = [proc.stat(proc.PROC / str(number)) for number in (pid, *process.descendants(pid))]
    except OSError:
        return None
    return sum(stat.cpu_ticks + stat.children_ticks for stat in every)


def _named(pid: int, uid: int) -> str:
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    with contextlib.suppress(OSError):
        of_user = "" if uid == os.geteuid() else f" of user {user}"
        return f": process {pid} ({proc.stat(proc.PROC / str(pid)).name}){of_user}"
    return ""


@dataclass(frozen=True)
class Used:
    """Joules by counter, None where there is none; ``remarks`` say why the scheduler's are missing."""

    processors: dict[str, float] | None = None
    gpus: dict[str, float] | None = None
    remarks: tuple[str, ...] = ()


class Meter:
    """Made just before a launch on ``nodes`` nodes; :meth:`used` is asked just after it."""

    def __init__(self, nodes: int, environment: Mapping[str, str]) -> None:
        self._nodes, self._environment, self._scheduler = nodes, environment, schedulers.current(environment)
        meters = (energy.find(), energy.gpus()) if nodes == 1 else ()
        self._first = [energy.Reading.now(meter) if meter else None for meter in meters]
        self._before: Mapping[str, schedulers.Step] = {}
        with contextlib.suppress(PlumbError):  # the steps are asked for again after the launch
            self._before = self._scheduler.steps(environment) if nodes > 1 else {}
        self._begin = time.time()

    def used(self) -> Used:
        """The energy used since this object was made; on several nodes, this waits :data:`LATE_S` at most."""
        if self._nodes == 1:
            first = self._first
            processors, gpus = (start.until(energy.Reading.now(start.meter)) if start else None for start in first)
            return Used(processors, gpus)
        try:
            return self._by_steps()
        except PlumbError as error:
            return Used(remarks=(f"no joules: {error}",))

    def _by_steps(self) -> Used:
        if (source := self._scheduler.energy_source()) is None:
            return Used()
        deadline = time.monotonic() + LATE_S
        while not (new := self._new()) and time.monotonic() < deadline:
            time.sleep(PAUSE_S)
        on_all = [step for step in new if step.nodes == self._nodes]
        if len(new) == len(on_all) == 1 and on_all[0].joules:
            return Used({source: on_all[0].joules})
        seen = [f"{step.joules or 'no'} J on {units.counted(step.nodes, 'node')}" for step in new]
        return Used(remarks=(f"no joules: {source} has {', '.join(seen) or 'no entry of it'}",))

    def _new(self) -> list[schedulers.Step]:
        """The steps that began with this launch: the entry of an earlier launch's step may come as late as this."""
        steps = self._scheduler.steps(self._environment).items()
        return [step for name, step in steps if name not in self._before and step.start > self._begin - CLOCKS_S]


if __name__ == "__main__":  # this host's provenance to FOLDER/HOST.json, whole or not at all
    files.replace(Path(sys.argv[1]) / f"{os.uname().nodename}.json", json.dumps(provenance.measured()))
