"""A neighbour of a measured program: ``plumb-neighbour``, which keeps its CPUs busy in one way until it is ended."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Collection, Iterator
from pathlib import Path

from plumbline.base import files, paths, programs, surroundings
from plumbline.base.errors import PlumbError
from plumbline.host.machine import Machine
from plumbline.launch.witness import processes
from plumbline.launch.witness.model import RankWitness

#: the ways in which a neighbour works; the first does nothing
KINDS = ("sleeper", "compute", "memory", "cache", "messages")
#: the least part of its CPUs' time that a neighbour must have used
BUSY = 0.9
#: how much of the last caches around it a neighbour fills
_CACHES = {"memory": 2, "cache": 1}


@contextlib.contextmanager
def neighbour(kind: str, here: Machine, cpus: Collection[int], folder: Path) -> Iterator[list[RankWitness]]:
    """A neighbour on ``cpus`` of this machine within this block; after it the list has its witness.

    Raises :class:`PlumbError` where it cannot be started.
    """
    place, seen = folder / "neighbour", list[RankWitness]()
    size = _CACHES.get(kind, 0) * sum(part.size for part in here.last_level_caches if {*part.cpus} & {*cpus})
    files.make_anew(place)

    def become() -> None:
        programs.die_with_parent()
        os.sched_setaffinity(0, cpus)
        os.environ.update({**processes.preloaded(surroundings.of_user(), place), "PLUMB_WITNESS_PID": str(os.getpid())})

    program = paths.tools() / "bin" / "plumb-neighbour"
    try:
        running = subprocess.Popen([program, kind, str(size)], stdout=subprocess.PIPE, preexec_fn=become)
    except OSError as error:
        raise PlumbError(f"no neighbour: {error.strerror}", str(program), paths.setup()) from error
    with running:
        try:
            if running.stdout is None or not running.stdout.readline():
                raise PlumbError(f"the neighbour '{kind}' ended before it worked", str(program), "is memory short?")
            yield seen
        finally:
            running.terminate()
    seen += processes.read(place)[0]


def busy(seen: RankWitness, cpus: Collection[int]) -> float:
    """The part of the time of its ``cpus`` in which a neighbour worked."""
    return processes.cpu_s(seen) / max(seen.window.wall_s, 1e-9) / len(cpus)
