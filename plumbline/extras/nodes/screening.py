"""Screening: which nodes are checked now, and by their history the state, place among the others and course of each.

Now are checked those that are due, are idle, and fit into the node hours. Works on numbers and names only.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plumbline.base import group
from plumbline.base.units import counted, some
from plumbline.extras.nodes import classes
from plumbline.extras.nodes.model import Result, short
from plumbline.judge import outliers
from plumbline.judge.statement import nonempty, rounded
from plumbline.schedulers import Node

DAY = 86400.0
#: a node is due when its last check is older than this share of the period: the rest is left for it to become idle
DUE = 0.5
#: seconds that the clock of a node may be before that of this host; as in custom-kernels/check/last.c
CLOCKS_S = 60.0
NO_HOURS = "no node hours are left"
#: how the states of nodes are counted; those that were not checked within the period are ``due``
WORDS = {"ok": "ok", "doubt": "in doubt", "bad": "bad"}
#: checks of each node by which it is compared with the others: one alone proves nothing
COMPARED = 8


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
    return sorted(
        [node for node in nodes if once(node) or last(node) <= oldest],
        key=lambda node: (last(node) > 0, not once(node), last(node)),
    )


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


@dataclass(frozen=True)
class NodeStatus:
    """The status of one node.

    ``slower``: by the rule of ``plumb outliers``, over its class. ``place``: how many of the other nodes are slower, as
    a fraction, by the mean of all its figures. ``course`` are its checks, oldest first.
    """

    name: str
    state: str
    course: Sequence[Result] = ()
    slower: str | None = None
    place: float | None = None

    @property
    def line(self) -> str:
        """The reason for the state."""
        last = self.course[-1].line if self.course and self.state in ("bad", "doubt") else ""
        if self.state == "bad":
            row = next((n for n, check in enumerate(reversed(self.course)) if check.state != "bad"), len(self.course))
            last += "; found once: it is checked again first" if row == 1 else f"; in {row} checks in a row"
        return "; ".join(filter(None, (last, self.slower)))

    @property
    def faster(self) -> int | None:
        """How many percent of the others are slower."""
        return None if self.place is None else round(100 * self.place)

    @property
    def checked(self) -> str:
        """When it was checked last, UTC."""
        return when(self.course[-1].time) if self.course else "never"

    def to_dict(self) -> dict[str, Any]:
        """The JSON object that ``plumb screen`` prints for it."""
        known = values(self.course[-1]) if self.course else {}
        return {
            "node": self.name,
            "state": self.state,
            "checked": self.course[-1].time if self.course else None,
            "faster_than": None if self.place is None else round(self.place, 3),
            **nonempty(line=self.line, slower=self.slower, figures=rounded(known, 5)),
            "checks": len(self.course),
        }


@dataclass
class ScreenStatus:
    """The status of all ``nodes``; ``notes`` are lines about the whole."""

    nodes: list[NodeStatus]
    terms: Terms
    notes: list[str] = field(default_factory=list)

    @property
    def bad(self) -> list[NodeStatus]:
        """The nodes that are bad."""
        return [node for node in self.nodes if node.state == "bad"]

    def closing(self) -> str:
        """The line for people: how many of how many are checked, and in which state."""
        number = Counter(node.state for node in self.nodes)
        done = len(self.nodes) - number["due"]
        parts = [f"{number[state]} {word}" for state, word in WORDS.items() if number[state]]
        within = "1 day" if self.terms.within == 1 else f"{self.terms.within:g} days"
        return f"screen: {done} of {counted(len(self.nodes), 'node')} within {within}: {', '.join(parts) or 'none'}"


def when(time: float) -> str:
    """A time to the minute, UTC."""
    return datetime.datetime.fromtimestamp(time, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M")


def assess(names: Iterable[str], history: Sequence[Result], terms: Terms, tolerance: float) -> ScreenStatus:
    """The status of the nodes ``names`` by ``history``."""
    known = by_node(history, terms.now)
    recent = {name: [result for result in results if result.time >= terms.since] for name, results in known.items()}
    judged = {name: results for name, results in recent.items() if results}
    compared = {name: known[name][-COMPARED:] for name in judged}
    figures = classes.common_figures([result for results in compared.values() for result in results])
    slow = classes.slower(compared, figures, tolerance)
    places = _places({name: levels(results[-1]) for name, results in judged.items()}, list(figures))
    nodes = [
        NodeStatus(
            name,
            judged[short(name)][-1].state if short(name) in judged else "due",
            known.get(short(name), ()),
            slow.get(short(name)),
            places.get(short(name)),
        )
        for name in names
    ]
    usable = [name for name, results in compared.items() if any(map(levels, results))]
    without = " with rounds that nothing disturbed" if len(usable) < len(judged) else ""
    few = f"{counted(len(usable), 'node')}{without}: at least {outliers.FEWEST} are compared with one another"
    return ScreenStatus(nodes, terms, [few] if judged and len(usable) < outliers.FEWEST else [])


def levels(result: Result) -> dict[str, float]:
    """The median of each figure, as a logarithm that is larger where it is worse."""
    by_figure = {figure.name: result.logs(figure.name) for figure in result.figures}
    return {name: float(np.median(logs)) for name, logs in by_figure.items() if logs.size}


def values(result: Result) -> dict[str, float]:
    """The median of each figure."""
    known = levels(result)
    return {figure.name: figure.value(known[figure.name]) for figure in result.figures if figure.name in known}


def _places(known: Mapping[str, Mapping[str, float]], names: Sequence[str]) -> dict[str, float]:
    """For each node, which share of the others is slower, by the mean over the figures ``names``."""
    whole = {node: figures for node, figures in known.items() if names and figures.keys() >= set(names)}
    means = {node: float(np.mean([figures[name] for name in names])) for node, figures in whole.items()}
    return {
        node: sum(peer > mean for peer in means.values()) / (len(means) - 1)
        for node, mean in means.items()
        if len(means) > 1
    }


def outlook(status: ScreenStatus, history: Sequence[Result], choice: Choice) -> list[str]:
    """The nodes left out and why, and when all nodes will be through."""
    reasons = group((why.split(":")[0], name) for name, why in choice.left_out.items())
    lines = [
        f"left out: {counted(len(names), 'node')}, {reason}: {some(names)}"
        for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1]))
    ]
    return [*lines, _through(status, history)]


def _through(status: ScreenStatus, history: Sequence[Result]) -> str:
    terms = status.terms
    needed = len(status.nodes) * terms.seconds / 3600
    hours = "" if terms.hours is None else f"; {spent(history, terms) / 3600:.2g} of {terms.hours:g} node hours used"
    if terms.hours is not None and needed > terms.hours:
        return f"through: never, all nodes take {needed:.2g} node hours and {terms.hours:g} are given{hours}"
    waiting = [node for node in status.nodes if node.state == "due"]
    if not waiting:
        return f"through: all nodes are{hours}"
    times = sorted(node.course[-1].time for node in status.nodes if node.state != "due")
    span = (terms.now - times[0]) / DAY if times else 0.0
    if span <= 0:
        return f"through: not known after one call, {counted(len(waiting), 'node')} left{hours}"
    end = terms.now + DAY * len(waiting) * span / len(times)
    return f"through: about {when(end)}, {counted(len(waiting), 'node')} left at this pace{hours}"
