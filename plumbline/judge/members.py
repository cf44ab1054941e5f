"""Classes of members that should be alike: nodes, or links, which are the pairs of nodes or cores at one distance.

Classes of the same nodes are joined as well: a node that is slow in everything shows there first. The value of a node's
launch is the weighted geometric mean of what its classes measured in launches of that number. The noise of figures that
are measured apart cancels; figures of the same launches only repeat each other, and nothing is assumed of that: what is
compared are nodes and launches, as in any class. More precise classes weigh more.

Two tests must both find a difference before a member is reported; all values are logarithms, positive is worse.

1. *The members' spread*: generalised extreme Studentized deviates on one summary per member. It takes into account how
   much healthy members differ, and up to a quarter may be odd without hiding one another.
2. *The launches' spread*: exact rank-sum test of the member's own launches against those of the others. It holds for
   noise of any shape.

Test 1 alone would take a second mode of the launches for odd members; test 2 alone would take members that differ a
little, as healthy ones do, for odd ones.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plumbline.base import group
from plumbline.base.units import Better
from plumbline.judge.statement import nonempty
from plumbline.statistics import Flags, Floats, Ints, basic, unpaired
from plumbline.statistics.basic import extremes

#: nodes that each round needs, so that its level can be removed from the values
ROUND_SIZE = 5
#: links that an end needs in a class for it to be distinguished from them
DEGREE = 3
#: between the names of a link's ends
BETWEEN = " – "
#: share of the smallest effect: a class that is still more precise than that weighs hardly more
EVEN = 0.25
#: launches farther from their member's median than this many standard deviations are clipped (Huber)
CLIP = 1.5
#: healthy members differ a little, so that test 2 asks for a difference above this share of the smallest effect
ALLOWED = 0.5


@dataclass(frozen=True)
class Family:
    """Members that are compared with one another.

    ``summary`` and ``effect`` are one number per member: what test 1 compares, and what is reported (centred).
    ``observations`` are what test 2 ranks, ``owners`` (a row per observation) the members each belongs to: one, or the
    two ends of a link. ``floor`` is the smallest effect that counts, ``noise`` the launches' standard deviation.
    """

    labels: list[str]
    summary: Floats
    effect: Floats
    observations: Floats
    owners: Ints
    floor: float
    noise: float


def summarise(values: Floats, noise: float) -> Floats:
    """Huber's one-step mean of each row's launches (Ann. Math. Stat. 35 (1964) 73).

    It is nearly as precise as the mean, and one bad launch moves it little.
    """
    centre = np.nanmedian(values, axis=1, keepdims=True)
    return np.asarray(
        centre[:, 0] + np.nanmean(np.clip(values - centre, -CLIP * noise, CLIP * noise), axis=1), dtype=np.float64
    )


def spread(summary: Floats) -> float:
    """Standard deviation of members, robust; 0 for none."""
    return float(basic.spread_of_deviations(summary)) if summary.size else 0.0


def of_launches(labels: list[str], values: Floats, floor: float) -> Family:
    """The family of members measured by themselves; ``values`` has a row per member and a column per launch."""
    noise = basic.spread_of_differences(values)
    summary = summarise(values, noise)
    there = np.isfinite(values)
    owners = np.repeat(np.arange(len(labels)), there.sum(axis=1))[:, None]
    return Family(labels, summary, summary - np.median(summary), values[there], owners.astype(np.int64), floor, noise)


def suspects(summary: Floats, error: float) -> tuple[Flags, Floats]:
    """The members that test 1 calls odd within this family at ``error``, and every member's p (1 for the others)."""
    removed, p = extremes(summary)
    odd = np.zeros(summary.size, dtype=bool)
    every = np.ones(summary.size)
    every[removed] = p
    hits = np.flatnonzero(p * (summary.size - np.arange(p.size)) <= error)
    if hits.size:
        odd[removed[: hits[-1] + 1]] = True
    return odd, every


def ranks(family: Family, member: int, odd: Flags) -> tuple[Floats, Floats]:
    """The observations of ``member`` and those of the pool, both without what belongs to other ``odd`` members."""
    mine = (family.owners == member).any(axis=1)
    others_odd = odd.copy()
    others_odd[member] = False
    clean = ~others_odd[family.owners].any(axis=1)
    return family.observations[mine & clean], family.observations[~mine & clean]


def p_values(family: Family, error: float) -> Floats:
    """Per member the larger p of both tests, one-sided; 1 for those that test 1 at ``error`` leaves alone.

    Step down: test 2 leaves out those members that stood out more than the one it asks about, not those that follow.
    """
    odd, one_sided = suspects(family.summary, error)
    p = np.ones(family.summary.size)
    middle = float(np.median(family.summary))
    before = np.zeros(family.summary.size, dtype=bool)
    removed, _ = extremes(family.summary)
    for member in removed[: int(odd.sum())]:
        mine, pool = ranks(family, int(member), before)
        if mine.size and pool.size:
            sign = 1.0 if family.summary[member] >= middle else -1.0
            p[member] = max(
                float(one_sided[member]), unpaired.p_not_larger(sign * mine - ALLOWED * family.floor, sign * pool)
            )
        before[member] = True
    return p


@dataclass
class _Class:
    """The values of each member, each with the launch or round that it was measured in.

    ``step`` is the finest step that the values are given in, 0 if unknown.
    """

    name: str
    better: Better
    values: dict[Any, list[tuple[Any, float]]] = field(default_factory=dict)
    step: float = 0.0

    @property
    def sign(self) -> float:
        """1 where less is better, else -1: of what logarithms are multiplied by, so that positive is worse."""
        return 1.0 if self.better == "lower" else -1.0

    def every(self) -> list[float]:
        """All values."""
        return [value for values in self.values.values() for _, value in values]


@dataclass
class Nodes(_Class):
    """The same figure of the same variant on the same stack and partition, from every node.

    Values are measured in rounds: a campaign, an index, or None. ``remarks``: what else is known of a node.
    ``combined``: how many classes these are the means of, 0 for what was measured.
    """

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
        return max(map(len, self.values.values()), default=0)

    def notes(self, name: str) -> tuple[str, ...]:
        """Remarks on a member."""
        return tuple(self.remarks.get(name, ()))

    def facts(self) -> dict[str, int]:
        """How many classes these are, and how many rounds there were if the nodes were compared round by round."""
        return nonempty(together=self.combined, rounds=len(self._rounds()))

    def families(self, floor: float) -> list[tuple[str, Family]]:
        """The one family of nodes; ``floor`` (a log ratio) is raised to one step of the values.

        Logarithms are without the level of each round that enough nodes share.
        """
        labels = sorted(self.values)
        usual = float(np.median([self.sign * math.log(value) for value in self.every()]))
        level = {
            measured_in: float(
                np.median([np.median([self.sign * math.log(v) for v in launches]) for launches in nodes.values()])
            )
            - usual
            for measured_in, nodes in self._rounds().items()
        }
        logs = [
            [self.sign * math.log(value) - level.get(measured_in, 0.0) for measured_in, value in self.values[name]]
            for name in labels
        ]
        values = np.array(list(itertools.zip_longest(*logs, fillvalue=math.nan)), dtype=np.float64).T.copy()
        return [("node", of_launches(labels, values, max(floor, _step(self, values))))]

    def links(self, floor: float, without: Iterable[str]) -> Family | None:
        """The family of links: none."""

    def _rounds(self) -> dict[Any, dict[str, list[float]]]:
        """The values of each round by node; none for one round, or if one has too few nodes to know its level."""
        rounds: dict[Any, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for node, values in self.values.items():
            for measured_in, value in values:
                rounds[measured_in][node].append(value)
        return rounds if len(rounds) > 1 and min(map(len, rounds.values())) >= ROUND_SIZE else {}


@dataclass
class Matrix(_Class):
    """Values of each link, measured in launches (both directions of a link may be in one).

    ``ends`` says what the ends are, ``node`` or ``core``.
    """

    ends: str = "node"

    def add(self, first: str, second: str, value: float, launch: int) -> None:
        """One value (positive, finite) of a link in a launch, counted from 0; the order of the ends does not matter."""
        self.values.setdefault((min(first, second), max(first, second)), []).append((launch, value))

    def members(self) -> dict[str, int]:
        """How many members of each kind are compared."""
        ends = len(self._joined())
        return {**({self.ends: ends} if ends else {}), "link": len(self.values)}

    def launches(self) -> int:
        """The most launches that a member has."""
        return max((len({launch for launch, _ in values}) for values in self.values.values()), default=0)

    def notes(self, name: str) -> tuple[str, ...]:
        """Remarks on a member."""
        return ("one launch only: measure again",) if self.launches() == 1 and name else ()

    def facts(self) -> dict[str, int]:
        """No further facts are printed of the class."""
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
        values, floor = self._logs(links, floor)
        noise = basic.spread_of_differences(values)
        place = {name: number for number, name in enumerate(labels)}
        owners = np.array([[place[first], place[second]] for first, second in links], dtype=np.int64)
        of_end = [np.flatnonzero((owners == number).any(axis=1)) for number in range(len(labels))]
        observations = summarise(values, noise)
        summary = np.array([float(np.median(observations[rows])) for rows in of_end])
        launches = np.array([_medians(values[rows]) for rows in of_end])
        lasting = np.nanmedian(launches - _medians(launches), axis=1)
        # in how many ways the launches divide into those of one end and of the others: 1 / this is the smallest p
        ways = math.comb(int(np.isfinite(launches).sum()), launches.shape[1])
        if ways >= math.comb(len(links), min(map(len, of_end))):
            few = of_launches(labels, launches, floor)
            observations, owners = few.observations, few.owners
        return [(self.ends, Family(labels, summary, lasting, observations, owners, floor, noise))]

    def links(self, floor: float, without: Iterable[str]) -> Family | None:
        """The family of links, less those of the ends ``without``; None if none is left."""
        links = [link for link in sorted(self.values) if not set(without) & set(link)]
        return of_launches([BETWEEN.join(link) for link in links], *self._logs(links, floor)) if links else None

    def _joined(self) -> list[str]:
        """The ends with :data:`DEGREE` links or more among themselves; none if there are not more ends than that."""
        left, links = set[tuple[str, str]](), set(self.values)
        while left != links:  # an end that is removed takes links of other ends with it
            left, counts = links, Counter(end for link in links for end in link)
            links = {link for link in left if min(counts[end] for end in link) >= DEGREE}
        joined = sorted({end for link in links for end in link})
        return joined if len(joined) > DEGREE else []

    def _logs(self, links: list[tuple[str, str]], floor: float) -> tuple[Floats, float]:
        """A row per link, a column per launch, positive is worse, without the level that all links of a launch share.

        What one launch has of a link is its mean logarithm. ``floor`` is raised to one step of the values.
        """
        logs = [
            [
                self.sign * sum(map(math.log, by_launch[launch])) / len(by_launch[launch])
                if launch in by_launch
                else math.nan
                for launch in range(max(by_launch) + 1)
            ]
            for by_launch in (group(self.values[link]) for link in links)
        ]
        values = np.array(list(itertools.zip_longest(*logs, fillvalue=math.nan)), dtype=np.float64).T.copy()
        return values - _medians(values) + float(np.nanmedian(values)), max(floor, _step(self, values))


def joined(classes: Iterable[Nodes | Matrix], floor: float) -> list[Nodes]:
    """A class for each set of nodes that two or more of ``classes`` have; ``floor`` is the smallest log effect.

    Values are relative times: 1.05 is 5 % slower than the usual node. Only launches that every class has are taken.
    """
    groups = group((frozenset(item.values), item) for item in classes if isinstance(item, Nodes))
    joint_classes = (_join(alike, floor) for alike in groups.values() if len(alike) > 1)
    return [item for item in joint_classes if item is not None]


def _join(classes: Sequence[Nodes], floor: float) -> Nodes | None:
    """None if some node has no launch that is in all classes. Its name begins with the words that all names have."""
    weights = [_weight(item, floor) for item in classes]
    usual = [math.log(float(np.median(item.every()))) for item in classes]
    words = itertools.takewhile(
        lambda same: len(set(same)) == 1, zip(*(item.name.split() for item in classes), strict=False)
    )
    joint = Nodes(
        " ".join([*(word for word, *_ in words), f"{len(classes)} classes together"]), "lower", combined=len(classes)
    )
    for node in sorted(classes[0].values):
        first, *others = tables = [_places(item.values[node]) for item in classes]
        for place in (place for place in first if all(place in table for table in others)):
            logs = zip(classes, weights, usual, tables, strict=True)
            relative = (
                weight / sum(weights) * item.sign * (math.log(table[place]) - middle)
                for item, weight, middle, table in logs
            )
            joint.add(node, math.exp(sum(relative)), place[0])
        if node not in joint.values:
            return None
        joint.remarks[node] = list(dict.fromkeys(remark for item in classes for remark in item.notes(node)))
    return joint


def _places(values: list[tuple[Any, float]]) -> dict[tuple[Any, int], float]:
    """The values by the round that each was measured in, and its number there."""
    seen: Counter[Any] = Counter()
    places = {}
    for measured_in, value in values:
        places[measured_in, seen[measured_in]] = value
        seen[measured_in] += 1
    return places


def _weight(item: Nodes, floor: float) -> float:
    """The inverse variance of a node's value: of its launches and of the nodes."""
    ((_, family),) = item.families(floor)
    return 1 / (family.noise**2 + spread(family.summary) ** 2 + (EVEN * floor) ** 2)


def _step(item: Nodes | Matrix, logs: Floats) -> float:
    """One step of the values as a log ratio at their usual size; 0 if the step is unknown."""
    usual = math.exp(float(np.nanmedian(logs)) * (1 if item.better == "lower" else -1))
    return math.log1p(min(item.step / usual, 10.0)) if item.step > 0 else 0.0


def _medians(values: Floats) -> Floats:
    """The median of each column, NaN where there is nothing."""
    columns = [column[np.isfinite(column)] for column in values.T]
    return np.array([float(np.median(column)) if column.size else math.nan for column in columns])
