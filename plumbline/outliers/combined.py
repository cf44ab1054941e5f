"""All classes of the same nodes as one: a node that is slow in everything shows there first.

The value of a node's launch is the weighted geometric mean of what its classes measured in launches of that number. The
noise of figures that are measured apart cancels; figures of the same launches only repeat each other, and nothing is
assumed of that: what is compared are nodes and launches, as in any class. More precise classes weigh more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from plumbline.outliers import evidence
from plumbline.outliers.nodes import Nodes

#: share of the smallest effect: a class that is still more precise than that weighs hardly more
EVEN = 0.25

#: a launch of a node: the round that it was measured in, and its number there
Place = tuple[Any, int]


def classes(separate: Iterable[Nodes], floor: float) -> list[Nodes]:
    """A class for each set of nodes that two or more of ``separate`` have; ``floor`` is the smallest log effect.

    Values are relative times: 1.05 is 5 % slower than the usual node. Only launches that every class has are taken.
    """
    groups: dict[frozenset[str], list[Nodes]] = defaultdict(list)
    for item in separate:
        groups[frozenset(item.values)].append(item)
    made = [_join(group, floor) for group in groups.values() if len(group) > 1]
    return [item for item in made if item is not None]


def _join(group: Sequence[Nodes], floor: float) -> Nodes | None:
    """None if some node has no launch that is in all classes."""
    weights = [_weight(item, floor) for item in group]
    shares = [weight / sum(weights) for weight in weights]
    usual = [math.log(item.usual()) for item in group]
    made = Nodes(_name(group), "lower", combined=len(group))
    for node in sorted(group[0].values):
        logs: dict[Place, float] = defaultdict(float)
        found: dict[Place, int] = defaultdict(int)
        for item, share, middle in zip(group, shares, usual, strict=True):
            sign = 1.0 if item.better == "lower" else -1.0
            for place, value in _places(item.values[node]):
                logs[place] += share * sign * (math.log(value) - middle)
                found[place] += 1
        for place, log in logs.items():
            if found[place] == len(group):
                made.add(node, math.exp(log), place[0])
        if node not in made.values:
            return None
    made.remarks = _remarks(group)
    return made


def _places(values: list[tuple[Any, float]]) -> list[tuple[Place, float]]:
    seen: dict[Any, int] = defaultdict(int)
    found = []
    for measured_in, value in values:
        found.append(((measured_in, seen[measured_in]), value))
        seen[measured_in] += 1
    return found


def _weight(item: Nodes, floor: float) -> float:
    """The inverse variance of a node's value: of its launches and of the nodes."""
    ((_, family),) = item.families(floor)
    return 1 / (family.noise**2 + evidence.spread(family.summary) ** 2 + (EVEN * floor) ** 2)


def _name(group: Sequence[Nodes]) -> str:
    """How many classes, and the words that all their names begin with."""
    words = []
    for column in zip(*(item.name.split() for item in group), strict=False):
        if len(set(column)) > 1:
            break
        words.append(column[0])
    return " ".join([*words, f"{len(group)} classes together"])


def _remarks(group: Sequence[Nodes]) -> dict[str, list[str]]:
    """What the classes know of each node, each remark once."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for item in group:
        for node, remarks in item.remarks.items():
            found[node].update(dict.fromkeys(remarks))
    return {node: list(remarks) for node, remarks in found.items()}
