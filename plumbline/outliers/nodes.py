"""A class of nodes: the same figure of the same variant on the same stack and partition, from every node."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plumbline.outliers import evidence
from plumbline.outliers.evidence import Family
from plumbline.statistics.arrays import Floats
from plumbline.units import Better

#: nodes that each round needs, so that its level can be removed from the values
ROUND_SIZE = 5


@dataclass
class Nodes:
    """Values of every node with the round that each was measured in (a campaign, an index, or None).

    ``step`` is the finest step that the values are given in, 0 if unknown. ``remarks``: what else is known of a node.
    ``combined``: how many classes these are the means of, 0 for what was measured.
    """

    name: str
    better: Better
    values: dict[str, list[tuple[Any, float]]] = field(default_factory=dict)
    step: float = 0.0
    remarks: dict[str, list[str]] = field(default_factory=dict)
    combined: int = 0

    def add(self, node: str, value: float, measured_in: Any = None) -> None:
        """One launch (positive, finite) of ``node``, and the round that it was measured in."""
        self.values.setdefault(node, []).append((measured_in, value))

    def members(self) -> dict[str, int]:
        """How many members of each kind are compared."""
        return {"node": len(self.values)}

    def launches(self) -> int:
        """The most launches that a member has."""
        return max((len(found) for found in self.values.values()), default=0)

    def count(self) -> int:
        """How many values all nodes have together."""
        return sum(map(len, self.values.values()))

    def notes(self, name: str) -> tuple[str, ...]:
        """What else is known of a member."""
        return tuple(self.remarks.get(name, ()))

    def empty(self) -> str:
        """The reason to give for a class that has nothing to compare."""
        return "no node was measured"

    def facts(self) -> dict[str, Any]:
        """How many classes these are, and how many rounds there were if the nodes were compared round by round."""
        shared = self._shared()
        return ({"together": self.combined} if self.combined else {}) | ({"rounds": len(shared)} if shared else {})

    def usual(self) -> float:
        """The median of all values."""
        return float(np.median([value for values in self.values.values() for _, value in values]))

    def families(self, floor: float) -> list[tuple[str, Family]]:
        """The one family of nodes; ``floor`` (a log ratio) is raised to one step of the values."""
        labels = sorted(self.values)
        values = self._logs(labels)
        floor = max(floor, step_ratio(self.step, values, self.better))
        return [("node", evidence.of_launches(labels, values, floor))]

    def _logs(self, labels: list[str]) -> Floats:
        """A row of logarithms per node, positive is worse, without the level of each round that enough nodes share."""
        sign = 1.0 if self.better == "lower" else -1.0
        level = self._levels(sign)
        width = self.launches()
        values = np.full((len(labels), width), np.nan)
        for row, node in enumerate(labels):
            logs = [sign * math.log(value) - level.get(measured_in, 0.0) for measured_in, value in self.values[node]]
            values[row, : len(logs)] = logs
        return values

    def _levels(self, sign: float) -> dict[Any, float]:
        shared = self._shared()
        found = {}
        usual = float(np.median([sign * math.log(v) for values in self.values.values() for _, v in values]))
        for one in shared:
            medians = [
                float(np.median(logs))
                for values in self.values.values()
                if (logs := [sign * math.log(value) for where, value in values if where == one])
            ]
            found[one] = float(np.median(medians)) - usual
        return found

    def _shared(self) -> set[Any]:
        """The rounds, if there are several and each has nodes enough; else none: values are compared as they are."""
        nodes: dict[Any, set[str]] = defaultdict(set)
        for node, values in self.values.items():
            for measured_in, _ in values:
                nodes[measured_in].add(node)
        if len(nodes) < 2 or any(len(found) < ROUND_SIZE for found in nodes.values()):
            return set()
        return set(nodes)


def step_ratio(step: float, logs: Floats, better: Better) -> float:
    """One step of the values as a log ratio at their usual size; 0 if the step is unknown."""
    if step <= 0:
        return 0.0
    usual = math.exp(float(np.nanmedian(logs)) * (1 if better == "lower" else -1))
    return math.log1p(min(step / usual, 10.0))
