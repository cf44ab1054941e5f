"""Jobs on a node that was chosen, so that figures of several nodes are measured and not those of whichever was free."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from plumbline.errors import PlumbError
from plumbline.nodes import names, states

#: for every partition that jobs are pinned in: ``PLUMB_NODE=cpu=node7,gpu=node9``
VARIABLE = "PLUMB_NODE"
#: schedulers that take a node by name and fill up a job of several with others
ABLE = ("slurm", "squeue", "ssh")


def of(partition: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The node that jobs of ``partition`` are to use."""
    for item in filter(None, environment.get(VARIABLE, "").split(",")):
        name, equals, node = item.partition("=")
        if not equals:
            raise PlumbError(f"'{item}' is not PARTITION=NODE", VARIABLE, "write PARTITION=NODE,…, or unset it")
        if name == partition:
            return names.host(node, VARIABLE)
    return None


def access(part: dict[str, Any], environment: Mapping[str, str] = os.environ) -> list[str]:
    """The scheduler's option for it; none where nothing was chosen, or where :func:`hosts` says it."""
    node = of(part["name"], environment)
    return [f"--nodelist={node}"] if node and part["scheduler"] in ("slurm", "squeue") else []


def hosts(part: dict[str, Any], environment: Mapping[str, str] = os.environ) -> list[str]:
    """The hosts of scheduler ssh, the chosen one first."""
    node = of(part["name"], environment)
    return sorted(part.get("hosts", []), key=lambda host: host != node)  # a stable sort


def explicit(document: dict[str, Any], given: list[str]) -> dict[str, str]:
    """Node by partition of ``given``: ``PARTITION=NODE``, or ``NODE`` where the site has one partition."""
    parts = {part["name"]: part for part in document["partitions"]}
    found = {}
    for item in given:
        name, equals, node = item.partition("=")
        if not equals:
            name, node = next(iter(parts)), item
            if len(parts) > 1:
                raise PlumbError(
                    f"'{item}' names no partition", "--node", f"write PARTITION={item}: {', '.join(parts)}"
                )
        if name not in parts:
            raise PlumbError(f"no partition '{name}'", f"site {document['name']}", f"it has {', '.join(parts)}")
        usable = _usable(parts[name])
        if node not in usable:
            raise PlumbError(f"{node} cannot be used", f"partition {name}", f"these can: {names.fold(usable)}")
        found[name] = node
    return found


def turn(document: dict[str, Any], asked: str) -> dict[str, str]:
    """Node by partition for turn ``asked``, ``I/K``: the I-th of the first K usable nodes, again from 1 after K.

    A partition with fewer than K such nodes is an error: figures of K nodes were asked for.
    """
    if not re.fullmatch(r"[1-9]\d{0,5}/[1-9]\d{0,5}", asked):
        raise PlumbError(f"'{asked}' is no turn", "--turn", "write I/K, such as 2/3: the second of three nodes")
    number, count = map(int, asked.split("/"))
    found = {}
    for part in document["partitions"]:
        if part["scheduler"] == "local" and count == 1:
            continue
        usable = _usable(part)
        if len(usable) < count:
            what = f"{len(usable)} nodes can be used ({names.fold(usable)}), not {count}" if usable else "no node is up"
            raise PlumbError(what, f"partition {part['name']}", "ask for fewer, or mend nodes (plumb nodes states)")
        found[part["name"]] = usable[(number - 1) % count]
    return found


def _usable(part: dict[str, Any]) -> list[str]:
    if part["scheduler"] not in ABLE:
        what = f"jobs of {part['scheduler']} cannot be put on a node that is named"
        raise PlumbError(
            what, f"partition {part['name']}", "give the scheduler's own option: plumb campaign -- -J OPTION"
        )
    queue = names.queue(part["scheduler"], None, part.get("access", []))
    return states.usable(states.states(part["scheduler"], queue, part.get("hosts", [])))
