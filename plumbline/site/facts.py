"""Facts about this host that can be read without guessing."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline import paths
from plumbline.errors import PlumbError
from plumbline.host import collector
from plumbline.host.collector import is_virtual, memory, parse_dmidecode, without_serials
from plumbline.nodes import compare, read

__all__ = [
    "Captured", "captured", "hostname_pattern", "is_virtual", "known", "memory", "parse_dmidecode", "topology",
    "without_serials",
]  # fmt: skip


def hostname_pattern() -> str:
    """A regular expression that matches exactly this host's name."""
    return f"^{re.escape(socket.gethostname())}$"


def topology() -> str:
    """This machine as hwloc XML, from the binder or else from lstopo; raises :class:`PlumbError` without either."""
    xml, reason = collector.topology(str(paths.binder()) if paths.binder().exists() else None)
    if xml is None:
        raise PlumbError(
            f"cannot capture the topology: {reason}", "plumb site init", "build the tools first: make setup"
        )
    return xml


@dataclass(frozen=True)
class Captured:
    """What was read on the nodes of a partition.

    Topology and limits are those of one node of the largest group of equal nodes; ``nodes`` is how many answered.
    """

    topology: str
    limits: dict[str, Any]
    nodes: int
    summary: str


def captured(folder: Path) -> Captured:
    """What ``plumb nodes facts`` wrote into ``folder``; raises :class:`PlumbError` if it has no topology."""
    found = read.folder(folder)
    comparison = compare.compare(found)
    for name in comparison.groups[0]:
        xml = read.topology(found, name)
        if xml is not None:
            limits = dict(found.nodes[name]["limits"])
            return Captured(without_serials(xml), limits, len(found.nodes), compare.summary(found, comparison))
    reason = found.nodes[comparison.groups[0][0]]["missing"].get("topology", "no HOST.xml is there")
    raise PlumbError(
        f"no node of the largest group of equal nodes has a topology: {reason}", str(folder), "make setup, then again"
    )


def known() -> dict[str, Any]:
    """The facts for physical limits that can be read on this host, by their names in ``site.yaml``."""
    return collector.limits()
