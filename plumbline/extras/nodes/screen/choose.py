"""Which nodes are checked now: those that are due, are idle, and fit into the node hours. Numbers and names only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from plumbline.base import group
from plumbline.extras.nodes.health.model import Result
from plumbline.schedulers import Node

DAY = 86400.0
#: a node is due when its last check is older than this share of the period: the rest is left for it to become idle
DUE = 0.5
#: seconds that the clock of a node may be before that of this host; as in custom-kernels/check/last.c
CLOCKS_S = 60.0
NO_HOURS = "no node hours are left"


@dataclass(frozen=True)
class Terms:
    """The terms of a screen.

    Every node within ``within`` days, with ``hours`` node hours in that time at most (None: as many as it takes),
    ``seconds`` for each check. ``now`` is Unix time.
    """

    within: float
    hours: float | None
    seconds: float
    now: float

    @property
    def since(self) -> float:
        """When the period that ends now began."""
        return self.now - DAY * self.within

    def room(self, spent: float) -> float:
        """The node seconds that are left when ``spent`` have been taken."""
        return float("inf") if self.hours is None else max(0.0, 3600 * self.hours - spent)


@dataclass
class Choice:
    """The nodes to check, in order, and why others that are due are left out."""

    nodes: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


def short(name: str) -> str:
    """A node as plumb-check calls it: its name up to the first dot."""
    return name.split(".", 1)[0]


def by_node(history: Iterable[Result], now: float) -> dict[str, list[Result]]:
    """The results of each node until ``now``, oldest first. A result from the future is of a wrong clock."""
    return group(
        (short(result.node), result) for result in history if result.state != "busy" and result.time <= now + CLOCKS_S
    )


def spent(history: Iterable[Result], terms: Terms) -> float:
    """Node seconds that checks have taken in the period: each counts as all that it might take."""
    return sum(result.budget for result in history if result.time >= terms.since)


def due(nodes: Iterable[str], history: Iterable[Result], terms: Terms) -> list[str]:
    """The nodes to check next: those that never were, those found bad once, then the oldest checks first."""
    known = by_node(history, terms.now)

    def last(node: str) -> float:
        return known[short(node)][-1].time if short(node) in known else 0.0

    def once(node: str) -> bool:
        return [result.state == "bad" for result in known.get(short(node), [])[-2:]] in ([True], [False, True])

    oldest = terms.now - DUE * DAY * terms.within
    wanted = [node for node in nodes if once(node) or last(node) <= oldest]
    return sorted(wanted, key=lambda node: (last(node) > 0, not once(node), last(node)))


def choose(
    nodes: Sequence[Node],
    history: Sequence[Result],
    terms: Terms,
    jobs_on: Callable[[str], str],
    links_spent: float = 0.0,
) -> Choice:
    """The nodes to check now, asking ``jobs_on`` of each until the node hours are used up.

    ``links_spent``: node seconds of the period that links took.
    """
    choice = Choice()
    usable: Mapping[str, Node] = {node.name: node for node in nodes}
    left = terms.room(spent(history, terms) + links_spent)
    for name in due(usable, history, terms):
        node = usable[name]
        if not node.usable:
            choice.left_out[name] = f"cannot be used: {node.state}"
        elif left < terms.seconds:
            choice.left_out[name] = NO_HOURS
        elif jobs := jobs_on(name):
            choice.left_out[name] = f"busy: {jobs}"
        else:
            choice.nodes.append(name)
            left -= terms.seconds
    return choice
