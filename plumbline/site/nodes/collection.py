"""The facts of nodes: the collector runs once on each, by the scheduler; then their folder is read.

Sound files are read, damaged ones are named.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plumbline import schedulers
from plumbline.base import csv_input, files, paths, schemas
from plumbline.base.errors import PlumbError
from plumbline.host import collector
from plumbline.schedulers import names
from plumbline.schedulers.program import Done
from plumbline.site.nodes.model import Node

#: the note of the collection (nodes asked, times), beside the answers
JOB = ".job.json"
CURE = "plumb nodes facts collects them"
AGAIN = "collect the facts again"
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
        log, access = self.output / ".job.log", names.access(self.access)
        return schedulers.Job("plumb-facts", self.size(), log, access, self.nodes, self.queue, MINUTES)

    def program(self, host: str | None = None) -> list[str]:
        """The collector as a command; for ``host``, if the node calls itself otherwise."""
        return [
            *(self.python, "-I", str(Path(collector.__file__).resolve())),
            *("--output", str(self.output), "--job", self.collection),
            *(["--topology-program", str(paths.binder().resolve())] if paths.binder().exists() else []),
            *(["--host", host] if host else []),
        ]


def collect(request: FactsRequest) -> Done:
    """Run the collection and write ``DIR/.job.json``; the output of the scheduler's command is returned.

    The answers are in the folder; :func:`folder` reports which nodes did not answer. Raises
    :class:`PlumbError` for a name that cannot be a host, and where the folder cannot be written.
    """
    for name in request.nodes:
        names.host(name, "--node")
    with files.writing("the facts", request.output):
        request.output.mkdir(parents=True, exist_ok=True, mode=0o750)
    began = time.time()
    done = schedulers.named(request.scheduler).run_on_every_node(request.job(), request.program, request.limit)
    note = {
        "job": request.collection, "scheduler": request.scheduler, "queue": request.queue, "asked": list(request.nodes),
        "size": request.size(), "began": began, "ended": time.time(),
    }  # fmt: skip
    with files.writing("the facts", request.output):
        files.replace(request.output / JOB, json.dumps(note, indent=1) + "\n")
        (request.output / JOB).chmod(0o640)
    return done


@dataclass
class Facts:
    """The nodes that answered by name, the names of those that did not, damaged files with the reason."""

    folder: Path
    nodes: dict[str, Node] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)
    damaged: dict[str, str] = field(default_factory=dict)
    #: the content of ``.job.json``; empty if it is not there
    job: dict[str, Any] = field(default_factory=dict)

    def unnamed(self) -> int:
        """How many nodes did not answer whose names are not known (``--nodes N``)."""
        if self.job.get("asked"):
            return 0
        return max(0, int(self.job.get("size", 0)) - len(self.nodes) - len(self.damaged))


def here(place: Path) -> Node:
    """The facts of this host, for results in ``place``."""
    return schemas.convert("node", collector.collect(socket.gethostname(), place), Node, "this host")


def folder(place: Path) -> Facts:
    """All facts in ``place``; raises :class:`PlumbError` for a folder without any."""
    facts = Facts(place)
    try:
        listed = sorted(file for file in place.iterdir() if file.suffix == ".json" and not file.name.startswith("."))
    except OSError as error:
        raise PlumbError(f"cannot read the facts: {error.strerror}", str(place), CURE) from None
    facts.job = _job(place / JOB)
    for file in listed:
        try:
            node = schemas.convert("node", schemas.parse_json(file.read_text(encoding="utf-8")), Node, str(file))
        except (OSError, ValueError) as error:
            facts.damaged[file.name] = f"not readable as JSON: {error}"
        except PlumbError as error:
            facts.damaged[file.name] = error.message
        else:
            if node.host != file.stem:
                facts.damaged[file.name] = f"holds facts of {node.host}"
            elif facts.job and node.job is not None and node.job != facts.job["job"]:
                facts.silent[file.stem] = "no answer; its file is of an earlier collection"
            else:
                facts.nodes[node.host] = node
    if not facts.nodes:
        why = "; ".join(f"{name}: {reason}" for name, reason in sorted(facts.damaged.items())[:3])
        raise PlumbError(f"no facts of any node{f' ({why})' if why else ''}", str(place), CURE)
    answered = {*facts.nodes, *(name.rsplit(".", 1)[0] for name in facts.damaged)}
    short = {name.split(".")[0] for name in answered}
    requested = list(facts.job.get("asked", []))
    # an older file of a node that was not asked by name this time says nothing
    known = {*requested, *(name.split(".")[0] for name in requested)}
    facts.silent = {name: why for name, why in facts.silent.items() if name in known}
    for name in requested:
        if name not in answered and name.split(".")[0] not in short:
            facts.silent.setdefault(name, "no answer")
    return facts


def topology(facts: Facts, host: str) -> str | None:
    """hwloc XML of a node that answered; None if it has none. Raises :class:`PlumbError` if it cannot be read."""
    file = facts.folder / f"{host}.xml"
    text = csv_input.text(file, "topology", AGAIN) if file.exists() else ""
    return text if "<topology" in text else None


def _job(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    text = csv_input.text(file, "note of the collection", AGAIN)
    with contextlib.suppress(ValueError):
        job = schemas.parse_json(text)
        is_note = isinstance(job, dict) and {"job", "asked", "size", "began", "ended"} <= job.keys()
        if is_note and all(names.HOST.fullmatch(str(name)) for name in job["asked"]):
            return dict(job)
    raise PlumbError("not the note of a collection", str(file), AGAIN)
