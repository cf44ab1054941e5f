"""The nodes of jobs: one that was chosen, so that figures of several nodes are measured, and how many can be used now.

Without a choice they are those of whichever node was free; no test waits for nodes that will not come.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence

from plumbline import schedulers
from plumbline.base.errors import PlumbError, pick
from plumbline.base.schemas.site import Partition, Site
from plumbline.schedulers import Node, names

#: for every partition that jobs are pinned in: ``PLUMB_PIN_JOBS=cpu=node7,gpu=node9``
PIN_JOBS = "PLUMB_PIN_JOBS"
#: variable of ReFrame's tests: ``-S max_nodes=1``, or for single partitions ``-S max_nodes=cpu=1,gpu=4``
MAX_NODES = "max_nodes"
#: a scheduler that was just started does not know its nodes yet: how often it is asked, and the seconds between
PATIENCE = (6, 5.0)


def pinned(partition: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The node that jobs of ``partition`` are to use, if any; :class:`PlumbError` if the variable is malformed."""
    for item in filter(None, environment.get(PIN_JOBS, "").split(",")):
        name, equals, node = item.partition("=")
        if not equals:
            raise PlumbError(f"'{item}' is not PARTITION=NODE", PIN_JOBS, "write PARTITION=NODE,…, or unset it")
        if name == partition:
            return names.host(node, PIN_JOBS)
    return None


def explicit(site: Site, assignments: list[str]) -> dict[str, str]:
    """Node by partition of ``assignments``: ``PARTITION=NODE``, or ``NODE`` where the site has one partition.

    Raises :class:`PlumbError` for a partition that the site lacks, and for a node that cannot be used.
    """
    parts = {part.name: part for part in site.partitions}
    nodes = {}
    for item in assignments:
        name, equals, node = item.partition("=")
        if not equals:
            name, node = next(iter(parts)), item
            if len(parts) > 1:
                raise PlumbError(
                    f"'{item}' names no partition", "--node", f"write PARTITION={item}: {', '.join(parts)}"
                )
        usable = _usable(pick(parts, name, f"no partition '{name}'", f"site {site.name}"))
        if node not in usable:
            raise PlumbError(f"{node} cannot be used", f"partition {name}", f"these can: {names.fold(usable)}")
        nodes[name] = node
    return nodes


def turn(site: Site, position: str) -> dict[str, str]:
    """Node by partition for turn ``position``, ``I/K``: the I-th of the first K usable nodes, again from 1 after K.

    Raises :class:`PlumbError` for a partition with fewer than K such nodes: figures of K nodes were asked for.
    """
    if not re.fullmatch(r"[1-9]\d{0,5}/[1-9]\d{0,5}", position):
        raise PlumbError(f"'{position}' is not a turn", "--turn", "write I/K, such as 2/3: the second of three nodes")
    number, count = map(int, position.split("/"))
    nodes = {}
    for part in site.partitions:
        if count == 1 and schedulers.named(part.scheduler).is_one_host:
            continue
        usable = _usable(part)
        if len(usable) < count:
            fault = (
                f"{len(usable)} nodes can be used ({names.fold(usable)}), not {count}" if usable else "no node is up"
            )
            raise PlumbError(fault, f"partition {part.name}", "ask for fewer, or repair nodes (plumb nodes states)")
        nodes[part.name] = usable[(number - 1) % count]
    return nodes


def require(part: Partition, cure: str) -> None:
    """Raise :class:`PlumbError` where no job can be put on a chosen node."""
    if not schedulers.named(part.scheduler).can_pin:
        fault = f"jobs of {part.scheduler} cannot be put on a node that is named"
        raise PlumbError(fault, f"partition {part.name}", cure)


def of_partition(part: Partition, options: Sequence[str] = ()) -> list[Node]:
    """The nodes of a partition, by name, as its scheduler has them for jobs with further ``options``.

    Raises :class:`PlumbError` where it has none.
    """
    scheduler, access = schedulers.named(part.scheduler), [*part.access, *options]
    return schedulers.nodes(scheduler, scheduler.queue(None, access), part.hosts, access)


def _usable(part: Partition) -> list[str]:
    require(part, "give the scheduler's own option: plumb campaign -- -J OPTION")
    return [node.name for node in of_partition(part) if node.usable]


def limit(partition: str, offered: int, text: str) -> int:
    """Nodes that one test may use on ``partition``: ``offered``, or fewer if ``text``, the value of max_nodes, says so.

    Raises :class:`PlumbError` for a ``text`` that is malformed.
    """
    for item in filter(None, text.split(",")):
        name, equals, number = item.rpartition("=")
        if not number.isascii() or not number.isdigit() or (not equals and int(number) < 1):
            cure = "give a whole number from 1 on, or PARTITION=NUMBER,…"
            raise PlumbError(f"'{item}' is not a number of nodes", f"-S {MAX_NODES}", cure)
        if not equals or name == partition:
            offered = min(offered, int(number))
    return offered


def survey(site: Site, options: Sequence[str] = ()) -> tuple[dict[str, int], list[str]]:
    """The usable nodes of each partition that has fewer than a test may ask for, and lines for people.

    The lines name each node that cannot be used, and each of these partitions. Jobs have ``options`` beside those of
    their partition. Raises :class:`PlumbError` if the scheduler does not answer.
    """
    counts: dict[str, int] = {}
    lines = []
    for part in site.partitions:
        if schedulers.named(part.scheduler).is_one_host:
            continue
        nodes = _settled(part, options)
        broken = [node for node in nodes if not node.usable]
        lines += [f"{node.name} is {node.state}{f': {node.reason}' if node.reason else ''}" for node in broken]
        if (good := len(nodes) - len(broken)) < part.nodes_offered:
            counts[part.name] = good
            lines.append(f"partition {part.name}: {good} of {len(nodes)} nodes can be used; tests of more are skipped")
    return counts, lines


def _settled(part: Partition, options: Sequence[str]) -> list[Node]:
    times, pause = PATIENCE
    nodes = of_partition(part, options)
    while times and any(node.state.rstrip("*") == "unknown" for node in nodes):
        times -= 1
        time.sleep(pause)
        nodes = of_partition(part, options)
    return nodes
