"""What a history says: of each node its state, its place among the others and its course; of all, how far they are."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plumbline.base.units import counted, some
from plumbline.health import classes
from plumbline.health.model import Result
from plumbline.judge import outliers
from plumbline.judge.statement import given, rounded
from plumbline.screen.choose import DAY, Choice, Terms, by_node, short, spent

#: how the states of nodes are counted; those that were not checked within the period are ``due``
WORDS = {"ok": "ok", "doubt": "in doubt", "bad": "bad"}
#: checks of each node by which it is compared with the others: one alone proves nothing
COMPARED = 8


@dataclass(frozen=True)
class NodeSaid:
    """What is said of one node.

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
        """Why it is what it is."""
        last = self.course[-1].line if self.course and self.state in ("bad", "doubt") else ""
        if self.state == "bad":
            row = next((n for n, one in enumerate(reversed(self.course)) if one.state != "bad"), len(self.course))
            last += "; found once: it is checked again first" if row == 1 else f"; in {row} checks in a row"
        return "; ".join(filter(None, (last, self.slower)))

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
            **given(line=self.line, slower=self.slower, figures=rounded(known, 5)),
            "checks": len(self.course),
        }


@dataclass
class Said:
    """What is said of all ``nodes``; ``notes`` are lines about the whole."""

    nodes: list[NodeSaid]
    terms: Terms
    notes: list[str] = field(default_factory=list)

    @property
    def bad(self) -> list[NodeSaid]:
        """The nodes that are bad."""
        return [one for one in self.nodes if one.state == "bad"]

    def closing(self) -> str:
        """The line for people: how many of how many are checked, and what they are."""
        number = Counter(one.state for one in self.nodes)
        done = len(self.nodes) - number["due"]
        parts = [f"{number[state]} {word}" for state, word in WORDS.items() if number[state]]
        within = "1 day" if self.terms.within == 1 else f"{self.terms.within:g} days"
        return f"screen: {done} of {counted(len(self.nodes), 'node')} within {within}: {', '.join(parts) or 'none'}"


def when(time: float) -> str:
    """A time to the minute, UTC."""
    return datetime.datetime.fromtimestamp(time, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M")


def say(names: Iterable[str], history: Sequence[Result], terms: Terms, tolerance: float) -> Said:
    """What ``history`` says of the nodes ``names``."""
    known = by_node(history, terms.now)
    recent = {name: [one for one in own if one.time >= terms.since] for name, own in known.items()}
    judged = {name: own for name, own in recent.items() if own}
    compared = {name: known[name][-COMPARED:] for name in judged}
    figures = classes.common_figures([one for own in compared.values() for one in own])
    slow = classes.slower(compared, figures, tolerance)
    places = _places({name: levels(own[-1]) for name, own in judged.items()}, list(figures))
    nodes = [
        NodeSaid(
            name,
            judged[short(name)][-1].state if short(name) in judged else "due",
            known.get(short(name), ()),
            slow.get(short(name)),
            places.get(short(name)),
        )
        for name in names
    ]
    usable = [name for name, own in compared.items() if any(map(levels, own))]
    without = " with rounds that nothing disturbed" if len(usable) < len(judged) else ""
    few = f"{counted(len(usable), 'node')}{without}: at least {outliers.FEWEST} are compared with one another"
    return Said(nodes, terms, [few] if judged and len(usable) < outliers.FEWEST else [])


def levels(one: Result) -> dict[str, float]:
    """The median of each figure, as a logarithm that is larger where it is worse."""
    found = {figure.name: one.logs(figure.name) for figure in one.figures}
    return {name: float(np.median(logs)) for name, logs in found.items() if logs.size}


def values(one: Result) -> dict[str, float]:
    """The median of each figure."""
    known = levels(one)
    return {figure.name: figure.value(known[figure.name]) for figure in one.figures if figure.name in known}


def _places(known: Mapping[str, Mapping[str, float]], names: Sequence[str]) -> dict[str, float]:
    """For each node, which share of the others is slower, by the mean over the figures ``names``."""
    whole = {node: own for node, own in known.items() if names and own.keys() >= set(names)}
    means = {node: float(np.mean([own[name] for name in names])) for node, own in whole.items()}
    return {
        node: sum(other > mean for other in means.values()) / (len(means) - 1)
        for node, mean in means.items()
        if len(means) > 1
    }


def outlook(said: Said, history: Sequence[Result], choice: Choice) -> list[str]:
    """What was left out and why, and when all nodes will be through."""
    lines = []
    reasons = Counter(why.split(":")[0] for why in choice.left_out.values())
    for reason, number in reasons.most_common():
        own = [name for name, why in choice.left_out.items() if why.split(":")[0] == reason]
        lines.append(f"left out: {counted(number, 'node')}, {reason}: {some(own)}")
    return [*lines, _through(said, history)]


def _through(said: Said, history: Sequence[Result]) -> str:
    terms = said.terms
    needed = len(said.nodes) * terms.seconds / 3600
    hours = "" if terms.hours is None else f"; {spent(history, terms) / 3600:.2g} of {terms.hours:g} node hours used"
    if terms.hours is not None and needed > terms.hours:
        return f"through: never, all nodes take {needed:.2g} node hours and {terms.hours:g} are given{hours}"
    waiting = [one for one in said.nodes if one.state == "due"]
    if not waiting:
        return f"through: all nodes are{hours}"
    times = sorted(one.course[-1].time for one in said.nodes if one.state != "due")
    span = (terms.now - times[0]) / DAY if times else 0.0
    if span <= 0:
        return f"through: not known after one call, {counted(len(waiting), 'node')} left{hours}"
    end = terms.now + DAY * len(waiting) * span / len(times)
    return f"through: about {when(end)}, {counted(len(waiting), 'node')} left at this pace{hours}"
