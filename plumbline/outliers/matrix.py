"""A class of links: the pairs of nodes or cores at one distance, and the ends that they have in common."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plumbline.outliers import evidence
from plumbline.outliers.evidence import Family
from plumbline.outliers.nodes import step_ratio
from plumbline.statistics import scale
from plumbline.statistics.arrays import Floats
from plumbline.units import Better

#: links that an end needs in a class for it to be distinguished from them
DEGREE = 3
#: between the names of a link's ends
BETWEEN = " – "


@dataclass
class Matrix:
    """Values of each link, a list per launch (both directions of a link may be in it).

    ``ends`` says what the ends are, ``node`` or ``core``.
    """

    name: str
    better: Better
    ends: str = "node"
    values: dict[tuple[str, str], list[list[float]]] = field(default_factory=dict)
    step: float = 0.0

    def add(self, first: str, second: str, value: float, launch: int) -> None:
        """One value (positive, finite) of a link in a launch, counted from 0; the order of the ends does not matter."""
        found = self.values.setdefault((min(first, second), max(first, second)), [])
        while len(found) <= launch:
            found.append([])
        found[launch].append(value)

    def members(self) -> dict[str, int]:
        """How many members of each kind are compared."""
        ends = len(self._joined())
        return {**({self.ends: ends} if ends else {}), "link": len(self.values)}

    def launches(self) -> int:
        """The most launches that a member has."""
        return max((sum(map(bool, found)) for found in self.values.values()), default=0)

    def notes(self, name: str) -> tuple[str, ...]:
        """What else is known of a member."""
        return ("one launch only: measure again",) if self.launches() == 1 and name else ()

    def empty(self) -> str:
        """The reason to give for a class that has nothing to compare."""
        return "no link was measured"

    def facts(self) -> dict[str, Any]:
        """What else is printed of the class: nothing."""
        return {}

    def families(self, floor: float) -> list[tuple[str, Family]]:
        """The family of the ends that have :data:`DEGREE` links or more in this class; the links come later.

        An end is tested by its links, or, where the ends are few and the launches many, by its launches: whichever can
        give the clearer evidence.
        """
        labels = self._joined()
        if not labels:
            return []
        links = [link for link in sorted(self.values) if set(link) <= set(labels)]
        values = self._logs(links)
        noise = scale.of_differences(values)
        place = {name: number for number, name in enumerate(labels)}
        owners = np.array([[place[first], place[second]] for first, second in links], dtype=np.int64)
        of_end = [np.flatnonzero((owners == number).any(axis=1)) for number in range(len(labels))]
        single = evidence.summarise(values, noise)
        summary = np.array([float(np.median(single[rows])) for rows in of_end])
        launches = np.array([_medians(values[rows]) for rows in of_end])
        lasting = np.nanmedian(launches - _medians(launches), axis=1)
        floor = max(floor, step_ratio(self.step, self._raw(links), self.better))
        if _clearest(launches) < math.comb(len(links), min(map(len, of_end))):
            return [(self.ends, Family(labels, summary, lasting, single, owners, floor, noise))]
        few = evidence.of_launches(labels, launches, floor)
        return [(self.ends, Family(labels, summary, lasting, few.observations, few.owners, floor, noise))]

    def links(self, floor: float, without: Iterable[str]) -> Family | None:
        """The family of links, less those of the ends ``without``; None if none is left."""
        gone = set(without)
        links = [link for link in sorted(self.values) if not gone & set(link)]
        if not links:
            return None
        floor = max(floor, step_ratio(self.step, self._raw(links), self.better))
        return evidence.of_launches([BETWEEN.join(link) for link in links], self._logs(links), floor)

    def _joined(self) -> list[str]:
        """The ends with :data:`DEGREE` links or more among themselves; none if there are not more ends than that."""
        left, links = set[tuple[str, str]](), set(self.values)
        while left != links:  # an end that is removed takes links of other ends with it
            left, counts = links, Counter(end for link in links for end in link)
            links = {link for link in left if min(counts[end] for end in link) >= DEGREE}
        joined = sorted({end for link in links for end in link})
        return joined if len(joined) > DEGREE else []

    def _raw(self, links: list[tuple[str, str]]) -> Floats:
        """A row per link, a column per launch, positive is worse; the mean log of what one launch has of a link."""
        sign = 1.0 if self.better == "lower" else -1.0
        width = max(len(self.values[link]) for link in links)
        values = np.full((len(links), width), np.nan)
        for row, link in enumerate(links):
            for column, found in enumerate(self.values[link]):
                if found:
                    values[row, column] = sign * sum(math.log(value) for value in found) / len(found)
        return values

    def _logs(self, links: list[tuple[str, str]]) -> Floats:
        """A row per link, a column per launch, positive is worse, without the level of each launch.

        Launches differ, and all links of one launch share that.
        """
        values = self._raw(links)
        return values - _medians(values) + float(np.nanmedian(values))


def _medians(values: Floats) -> Floats:
    """The median of each column, NaN where there is nothing."""
    return np.array(
        [float(np.median(found)) if (found := one[np.isfinite(one)]).size else math.nan for one in values.T]
    )


def _clearest(launches: Floats) -> int:
    """In how many ways the launches divide into those of one end and of the others: 1 / this is the smallest p."""
    return math.comb(int(np.isfinite(launches).sum()), launches.shape[1])
