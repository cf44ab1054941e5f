"""The links of a partition: groups of nodes measured by the kernel ``pairs``, and what their records say.

Each group is a job of its own that runs ``plumb launch``, so its figures are verified by the witness and stand in a
record. What was measured within the period is read, not measured again: a search that was cut off goes on.
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from plumbline.base import files, group, paths
from plumbline.base.errors import PlumbError
from plumbline.base.units import counted
from plumbline.judge import outliers
from plumbline.judge.members import BETWEEN, Nodes
from plumbline.measure import jobs
from plumbline.records import query
from plumbline.records.model import Row
from plumbline.records.variant import Variant, WantedFigure
from plumbline.schemas.site import Partition
from plumbline.screen.choose import NO_HOURS, Terms, short
from plumbline.screen.search import Answer, Found, Group, search
from plumbline.stacks import manifest as manifests

TEST = "screen_links"
KERNEL = "pairs"
#: the slowest pair of a group, while all nodes of it send
FIGURE = "worst_bandwidth"
#: of each group, fixed beforehand
LAUNCHES = 5
#: seconds of a group that the node hours are planned with
USUAL_S = 60.0
#: the probability that a screen names any good node: two decisions would have to err, each with outliers.SIDE at most
RATE = 2 * outliers.SIDE


@dataclass
class Links:
    """The links of partition ``part`` of ``site``; ``size`` nodes in a group, a job given up after ``limit`` seconds.

    ``taken`` are node seconds of the period that checks have cost. ``why`` says of groups why they have no answer,
    ``launched`` counts those that were measured now.
    """

    site: str
    part: Partition
    stack: str
    size: int
    terms: Terms
    tolerance: float
    limit: float
    say: Callable[[str], None]
    taken: float = 0.0
    why: dict[tuple[str, ...], str] = field(default_factory=dict)
    launched: int = 0
    _asked: Counter[frozenset[str]] = field(default_factory=Counter)

    def rows(self) -> list[Row]:
        """The records of the period, oldest first."""
        since = datetime.datetime.fromtimestamp(self.terms.since, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
        where = query.Selection(site=self.site, partition=self.part.name, test=TEST, since=since)
        return [row for row in query.records(where)[0] if row.variant.benchmark == KERNEL]

    def spent(self) -> float:
        """The node seconds that links are taken to have cost in the period."""
        return sum(USUAL_S * len(row.nodes) for row in self.rows())

    def groups(self, idle: Sequence[str]) -> list[tuple[str, ...]]:
        """The groups that were measured first within the period, then groups of the ``idle`` nodes that are in none.

        Nodes that follow one another by name are in different groups, and in others in the next period.
        """
        before, seen = list[tuple[str, ...]](), set[str]()
        for row in self.rows():
            own = {short(node) for node in row.nodes}
            if row.is_valid and len(own) == self.size and not own & seen:  # else it followed a slow one
                before.append(tuple(row.nodes))
                seen |= own
        wanted = [node for node in idle if short(node) not in seen]
        count = len(wanted) // self.size
        turn = int(self.terms.now / (86400 * self.terms.within))
        lines = [wanted[first * count : (first + 1) * count] for first in range(self.size)]
        new = [
            tuple(line[(place + number * turn) % count] for number, line in enumerate(lines)) for place in range(count)
        ]
        return [*before, *new]

    def run(self, groups: Sequence[Sequence[str]]) -> Found:
        """Measure ``groups`` and find what makes the slow ones slow."""
        self._asked.clear()
        return search(groups, self.measure)

    def measure(self, groups: Sequence[Group]) -> list[Answer]:
        """What is said of each of ``groups``, after the launches that it still needs."""
        for one in groups:
            nodes = frozenset(map(short, one.nodes))
            self._asked[nodes] += 1
            known = [row for row in self.rows() if frozenset(map(short, row.nodes)) == nodes and row.is_valid]
            if len(known) < self._asked[nodes]:
                self._launch(one.nodes)
        return self.judged(groups)

    def judged(self, groups: Sequence[Group]) -> list[Answer]:
        """What the records say of ``groups``, among all groups of the first size; the newest record counts."""
        measured = {frozenset(map(short, row.nodes)): row for row in self.rows() if row.is_valid}
        wanted = {frozenset(map(short, one.nodes)): one for one in groups}
        members = {
            _name(nodes): row.figures[0].samples
            for nodes, row in measured.items()
            if len(nodes) == self.size or nodes in wanted
        }
        slow, able = decide(members, self.tolerance)
        answers: list[Answer] = []
        for nodes, one in wanted.items():
            if nodes not in measured:
                answers.append(None)
            elif _name(nodes) in slow:
                answers.append("slow")
            else:
                answers.append("fine" if able else None)
                if not able:
                    self.why[one.nodes] = "too few groups, or too noisy, to say"
        return answers

    def _launch(self, nodes: tuple[str, ...]) -> None:
        if self.terms.room(self.spent() + self.taken) < USUAL_S * len(nodes):
            self.why[nodes] = NO_HOURS
            return
        place = (paths.build() / "screen" / self.site / self.part.name).resolve()
        file = place / "variant.json"
        document = json.dumps(msgspec.to_builtins(variant(self.site, self.part.name, self.stack, len(nodes))))
        files.write("the variant", file, document)
        words = ["launch", str(file), "--work", str(place / "work")]
        try:
            jobs.run_plumb(words, self.part, len(nodes), place / "job", self.say, nodes, self.limit)
        except PlumbError as error:
            self.why[nodes] = error.what
            self.say(f"{', '.join(nodes)}: {error.what}")
        else:
            self.launched += 1


def decide(members: Mapping[str, Sequence[float]], tolerance: float) -> tuple[set[str], bool]:
    """The groups that are slower than the others, by the rule of ``plumb outliers``; whether another would have shown.

    ``members``: the bandwidths of each group's launches.
    """
    if len(members) < outliers.FEWEST:
        return set(), False
    found = Nodes("links", "higher")
    for name, values in members.items():
        for value in values:
            found.add(name, value)
    margins = outliers.Margins(tolerance, max(0.1, 2 * tolerance))
    (verdict,) = outliers.decide([found], margins)
    slow = {finding.name for finding in verdict.findings if finding.direction == "worse"}
    seen = verdict.seen["node"]
    return slow, seen is not None and seen <= margins.must_detect


def variant(site: str, partition: str, stack: str, nodes: int) -> Variant:
    """What a group of ``nodes`` nodes runs: one rank on each, all pairs in rounds in which each node is in one."""
    return Variant(
        schema=1,
        test=TEST,
        name=f"{TEST} on {nodes} nodes",
        site=site,
        partition=partition,
        stack=stack,
        benchmark=KERNEL,
        arguments=["--mode", "tournament", "--bandwidth-bytes", "2M", "--json"],
        placement="node",
        memory=None,
        threads=1,
        ranks_per_node=1,
        nodes=nodes,
        parser="kernel",
        context={"kernel": KERNEL},
        figures=[WantedFigure(name=FIGURE, metric=FIGURE, where={"class": "all"})],
        launches=LAUNCHES,
        time_limit_s=300,
        environment={},
        params={"nodes": nodes},
    )


def first_stack(part: Partition) -> str:
    """The first stack of ``part`` that is installed and has the kernel."""
    for name in part.stacks:
        if name in manifests.names() and KERNEL in manifests.load(name).benchmarks:
            return name
    known = ", ".join(part.stacks) or "none"
    raise PlumbError("no stack of the partition has the kernels", f"its stacks: {known}", "plumb stack install NAME")


def lines(links: Links, found: Found, groups: int) -> list[str]:
    """What a search found, a line each."""
    told = [f"bad: node {node}: every group with it is slow" for node in found.nodes]
    for one in found.together:
        told.append(f"bad: {'link' if len(one) == 2 else 'together only'} {BETWEEN.join(one)}")
    told += [f"doubt: {BETWEEN.join(one)}: slow once, then fine" for one in found.passing]
    for reason, own in group((links.why.get(one, "it could not be measured"), one) for one in found.open).items():
        told.append(f"open: {counted(len(own), 'group')}: {reason}: {BETWEEN.join(own[0])}")
    rounds = f", and {counted(found.rounds, 'round')} of halves" if found.rounds else ""
    return [*told, f"links: {counted(groups, 'group')}{rounds}; {links.launched} measured now"]


def _name(nodes: frozenset[str]) -> str:
    return BETWEEN.join(sorted(nodes))
