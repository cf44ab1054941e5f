"""Runs the collector once on each node, by the scheduler, and waits for it."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plumbline import schedulers
from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.host import collector
from plumbline.schedulers import names
from plumbline.schedulers.program import Done

#: the note of the collection (nodes asked, times), beside the answers
JOB = ".job.json"
#: minutes that the job asks the scheduler for: the collector takes seconds
MINUTES = 5


@dataclass(frozen=True)
class FactsRequest:
    """Which nodes of which scheduler: by name, or any ``count`` of them."""

    scheduler: str
    output: Path
    queue: str | None = None
    access: Sequence[str] = ()
    nodes: Sequence[str] = ()
    count: int = 1
    python: str = "python3"
    #: seconds until the job is given up, waiting in the queue included
    limit: float = 900.0
    #: the name of this collection, which sets its answers apart from earlier ones
    collection: str = field(default_factory=lambda: secrets.token_hex(8))

    def size(self) -> int:
        """How many nodes are asked."""
        return len(self.nodes) or self.count

    def job(self) -> schedulers.Job:
        """The scheduler's job for it."""
        log = self.output / ".job.log"
        access = names.access(self.access)
        return schedulers.Job("plumb-facts", self.size(), log, access, self.nodes, self.queue, MINUTES)

    def program(self, host: str | None = None) -> list[str]:
        """The collector as a command; for ``host``, if the node calls itself otherwise."""
        words = [self.python, "-I", str(Path(collector.__file__).resolve()), "--output", str(self.output), "--job"]
        words.append(self.collection)
        if paths.binder().exists():
            words += ["--topology-program", str(paths.binder().resolve())]
        return [*words, "--host", host] if host else words


def collect(request: FactsRequest) -> Done:
    """Run the collection and write ``DIR/.job.json``; the output of the scheduler's command is returned.

    The answers are in the folder; :mod:`plumbline.site.nodes.read` reports which nodes did not answer. Raises
    :class:`PlumbError` for a name that cannot be a host, and where the folder cannot be written.
    """
    for name in request.nodes:
        names.host(name, "--node")
    try:
        request.output.mkdir(parents=True, exist_ok=True, mode=0o750)
    except OSError as error:
        raise PlumbError(f"cannot make the folder: {error.strerror}", str(request.output), "name another") from None
    began = time.time()
    scheduler = schedulers.named(request.scheduler)
    done = scheduler.run_on_every_node(request.job(), request.program, request.limit)
    note = {
        "job": request.collection, "scheduler": request.scheduler, "queue": request.queue, "asked": list(request.nodes),
        "size": request.size(), "began": began, "ended": time.time(),
    }  # fmt: skip
    try:
        files.replace(request.output / JOB, json.dumps(note, indent=1) + "\n")
        (request.output / JOB).chmod(0o640)
    except OSError as error:
        raise PlumbError(f"cannot write: {error.strerror}", str(request.output), "free space") from None
    return done
