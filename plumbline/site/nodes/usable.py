"""How many nodes of each partition can be used now, so that no test waits for nodes that will not come."""

from __future__ import annotations

import time
from collections.abc import Sequence

from plumbline import schedulers
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Site
from plumbline.schedulers import Node, Scheduler

#: variable of ReFrame's tests: ``-S max_nodes=1``, or for single partitions ``-S max_nodes=cpu=1,gpu=4``
VARIABLE = "max_nodes"
#: a scheduler that was just started does not know its nodes yet: how often it is asked, and the seconds between
PATIENCE = (6, 5.0)


def limit(partition: str, offered: int, text: str) -> int:
    """Nodes that one test may use on ``partition``: ``offered``, or fewer if ``text``, the value of max_nodes, says so.

    Raises :class:`PlumbError` for a ``text`` that is malformed.
    """
    for item in filter(None, text.split(",")):
        name, equals, number = item.rpartition("=")
        if not number.isascii() or not number.isdigit() or (not equals and int(number) < 1):
            cure = "give a whole number from 1 on, or PARTITION=NUMBER,…"
            raise PlumbError(f"'{item}' is not a number of nodes", f"-S {VARIABLE}", cure)
        if not equals or name == partition:
            offered = min(offered, int(number))
    return offered


def survey(site: Site) -> tuple[dict[str, int], list[str]]:
    """The usable nodes of each partition that has fewer than a test may ask for, and lines for people.

    The lines name each node that cannot be used, and each of these partitions. Raises
    :class:`PlumbError` if the scheduler does not answer.
    """
    counts: dict[str, int] = {}
    lines = []
    for part in site.partitions:
        scheduler = schedulers.named(part.scheduler)
        if not scheduler.knows_nodes:
            continue
        nodes = _settled(scheduler, part.hosts, part.access)
        good = sum(node.usable for node in nodes)
        lines += [_out_of_work(node) for node in nodes if not node.usable]
        if good < part.nodes_offered:
            counts[part.name] = good
            lines.append(f"partition {part.name}: {good} of {len(nodes)} nodes can be used; tests of more are skipped")
    return counts, lines


def _settled(scheduler: Scheduler, hosts: Sequence[str], access: Sequence[str]) -> list[Node]:
    times, pause = PATIENCE
    queue = scheduler.queue(None, access)
    nodes = schedulers.nodes(scheduler, queue, hosts, access)
    for _ in range(times):
        if not any(node.state.rstrip("*") == "unknown" for node in nodes):
            break
        time.sleep(pause)
        nodes = schedulers.nodes(scheduler, queue, hosts, access)
    return nodes


def _out_of_work(node: Node) -> str:
    return f"{node.name} is {node.state}{f': {node.reason}' if node.reason else ''}"
