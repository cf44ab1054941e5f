"""Reading a folder of node facts: sound files are read, damaged ones are named."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plumbline.base import schemas
from plumbline.base.errors import PlumbError
from plumbline.host import collector
from plumbline.schedulers import names
from plumbline.site.nodes.collect import JOB
from plumbline.site.nodes.model import Node


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
        raise PlumbError(
            f"cannot read the facts: {error.strerror}", str(place), "plumb nodes facts collects them"
        ) from None
    facts.job = _job(place / JOB)
    for file in listed:
        try:
            node = schemas.convert("node", schemas.parse_json(file.read_text(encoding="utf-8")), Node, str(file))
            names.host(node.host, str(file))
        except (OSError, ValueError) as error:
            facts.damaged[file.name] = f"not readable as JSON: {error}"
            continue
        except PlumbError as error:
            facts.damaged[file.name] = error.message
            continue
        if node.host != file.stem:
            facts.damaged[file.name] = f"holds facts of {node.host}"
        elif facts.job and node.job is not None and node.job != facts.job["job"]:
            facts.silent[file.stem] = "no answer; its file is of an earlier collection"
        else:
            facts.nodes[node.host] = node
    if not facts.nodes:
        why = "; ".join(f"{name}: {reason}" for name, reason in sorted(facts.damaged.items())[:3])
        raise PlumbError(
            f"no facts of any node{f' ({why})' if why else ''}", str(place), "plumb nodes facts collects them"
        )
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
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise PlumbError(f"cannot read the topology: {error}", str(file), "collect the facts again") from None
    return text if "<topology" in text else None


def _job(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise PlumbError(f"cannot read: {error.strerror}", str(file), "correct its permissions") from None
    try:
        job = schemas.parse_json(text)
        sound = isinstance(job, dict) and {"job", "asked", "size", "began", "ended"} <= set(job)
        sound = sound and all(names.HOST.fullmatch(str(name)) for name in job["asked"])
    except ValueError:
        sound = False
    if not sound:
        raise PlumbError("not the note of a collection", str(file), "collect the facts again")
    return dict(job)
