"""Jobs on a node that was chosen, so that figures of several nodes are measured and not those of whichever was free."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from plumbline import schedulers
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Partition, Site
from plumbline.schedulers import names

#: for every partition that jobs are pinned in: ``PLUMB_PIN_JOBS=cpu=node7,gpu=node9``
VARIABLE = "PLUMB_PIN_JOBS"


def of(partition: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The node that jobs of ``partition`` are to use, if any; :class:`PlumbError` if the variable is malformed."""
    for item in filter(None, environment.get(VARIABLE, "").split(",")):
        name, equals, node = item.partition("=")
        if not equals:
            raise PlumbError(f"'{item}' is not PARTITION=NODE", VARIABLE, "write PARTITION=NODE,…, or unset it")
        if name == partition:
            return names.host(node, VARIABLE)
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
        if name not in parts:
            raise PlumbError(f"no partition '{name}'", f"site {site.name}", f"it has {', '.join(parts)}")
        usable = _usable(parts[name])
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
    scheduler = schedulers.named(part.scheduler)
    if not scheduler.can_pin:
        fault = f"jobs of {scheduler.name} cannot be put on a node that is named"
        raise PlumbError(fault, f"partition {part.name}", cure)


def _usable(part: Partition) -> list[str]:
    scheduler = schedulers.named(part.scheduler)
    require(part, "give the scheduler's own option: plumb campaign -- -J OPTION")
    nodes = schedulers.nodes(scheduler, scheduler.queue(None, part.access), part.hosts, part.access)
    return [node.name for node in nodes if node.usable]
