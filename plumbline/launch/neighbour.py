"""A neighbour of a measured program: ``plumb-neighbour``, which keeps its CPUs busy in one way until it is ended."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from plumbline.base import files, paths, programs, surroundings
from plumbline.base.errors import PlumbError
from plumbline.base.units import cpu_list, percent
from plumbline.host.machine import Machine
from plumbline.launch import process
from plumbline.launch.witness import processes
from plumbline.launch.witness.model import RankWitness

#: the ways in which a neighbour works; the first does nothing
KINDS = ("sleeper", "compute", "memory", "cache", "messages")
#: the least part of its CPUs' time that a neighbour must have used
BUSY = 0.9
#: how much of the last caches around it a neighbour fills
_CACHES = {"memory": 2, "cache": 1}


@contextlib.contextmanager
def neighbour(kind: str, here: Machine, cpus: Collection[int], folder: Path) -> Iterator[list[str]]:
    """A neighbour on ``cpus`` of this machine within this block, in which launches leave it alone.

    After it the list has why it did not work all the time, if so. Raises :class:`PlumbError` where it cannot be
    started, ended by itself, or was not seen on ``cpus``.
    """
    place, idle = folder / "neighbour", list[str]()
    size = _CACHES.get(kind, 0) * sum(part.size for part in here.last_level_caches if {*part.cpus} & {*cpus})
    files.make_anew(place)

    def become() -> None:
        programs.die_with_parent()
        os.sched_setaffinity(0, cpus)
        os.environ.update({**processes.preloaded(surroundings.of_user(), place), "PLUMB_WITNESS_PID": str(os.getpid())})

    program = paths.tools() / "bin" / "plumb-neighbour"
    ended = PlumbError(f"the neighbour '{kind}' ended by itself", str(program), "is memory short?")
    try:
        running = subprocess.Popen([program, kind, str(size)], stdout=subprocess.PIPE, preexec_fn=become)
    except OSError as error:
        raise PlumbError(f"no neighbour: {error.strerror}", str(program), paths.setup()) from error
    process.beside.add(running.pid)
    with running:
        try:
            if running.stdout is None or not running.stdout.readline():
                raise ended
            yield idle
            if running.poll() is not None:
                raise ended
        finally:
            running.terminate()
            process.beside.discard(running.pid)
    idle += unproven(processes.read(place)[0], kind, cpus)


def unproven(seen: Sequence[RankWitness], kind: str, cpus: Collection[int]) -> list[str]:
    """Why a neighbour that was ``seen`` did not work all the time on each of ``cpus``; empty if it did.

    Raises :class:`PlumbError` where it was not on them.
    """
    on = {cpu for each in seen for thread in (*each.threads, *each.ended) for cpu in thread.affinity}
    if on != {*cpus}:
        raise PlumbError(f"the neighbour was seen on CPUs {cpu_list(on)}, its part is {cpu_list(cpus)}")
    worked = sum(processes.cpu_s(each) / max(each.window.wall_s, 1e-9) for each in seen) / len(cpus)
    return [f"the neighbour worked for {percent(worked)} of its time"] if worked < BUSY and kind != KINDS[0] else []
