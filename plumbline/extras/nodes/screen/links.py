"""The links of a partition: groups of nodes measured by the kernel ``pairs``, and judged by their records.

Each group is a job of its own that runs ``plumb launch``, so its figures are verified by the witness and are in a
record. Groups with a record of the period are not measured again: a search that was cut off goes on.
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from plumbline.base import files, group, paths
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Partition
from plumbline.base.units import counted, some
from plumbline.extras.nodes.screen.choose import NO_HOURS, Terms, short
from plumbline.extras.nodes.screen.search import Answer, Group, SearchReport, search
from plumbline.judge import outliers
from plumbline.judge.members import BETWEEN, Nodes
from plumbline.measure import jobs
from plumbline.records import query
from plumbline.records.model import Row
from plumbline.records.variant import Variant, WantedFigure

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


#: the nodes of a group
Ends: TypeAlias = frozenset[str]


@dataclass
class Pool:
    """The bandwidths of each group's launches.

    Others are compared with those that this search has ``requested``, that are of the first ``size`` and not slow.
    """

    size: int
    tolerance: float
    values: Mapping[Ends, Sequence[float]] = field(default_factory=dict)
    requested: set[Ends] = field(default_factory=set)
    slow: set[Ends] = field(default_factory=set)

    def judge(self, groups: Sequence[Group]) -> list[Answer]:
        """The answers on ``groups`` by the rule of ``plumb outliers``; None where a slow one would not have shown.

        A smaller group is compared with larger ones: the slowest of fewer pairs is no slower.
        """
        requested = [_ends(trial.nodes) for trial in groups]
        pool = {ends for ends in self.requested - self.slow if len(ends) == self.size}
        self.requested |= set(requested)
        members = Nodes("links", "higher")
        for ends in (pool | set(requested)) & self.values.keys():
            for value in self.values[ends]:
                members.add(BETWEEN.join(sorted(ends)), value)
        if len(members.values) < outliers.FEWEST:
            return [None] * len(groups)
        margins = outliers.Margins(self.tolerance, max(0.1, 2 * self.tolerance))
        (verdict,) = outliers.decide([members], margins)
        worse = {_of(finding.name) for finding in verdict.findings if finding.direction == "worse"}
        seen = verdict.seen["node"]
        unknown = set(requested) - self.values.keys() | set(map(_of, verdict.suspects))
        if seen is None or seen > margins.must_detect:
            unknown |= set(requested)
        self.slow |= worse & set(requested)
        self.slow -= set(requested) - worse
        return ["slow" if ends in worse else None if ends in unknown else "fine" for ends in requested]


@dataclass
class Links:
    """The links of partition ``part`` of ``site``; ``size`` nodes in a group, a job given up after ``limit`` seconds.

    ``checks_spent`` are node seconds of the period that checks have cost. ``why`` has groups without an answer, with
    reasons; ``launched`` counts those that were measured now.
    """

    site: str
    part: Partition
    stack: str
    size: int
    terms: Terms
    tolerance: float
    limit: float
    say: Callable[[str], None]
    checks_spent: float = 0.0
    why: dict[tuple[str, ...], str] = field(default_factory=dict)
    launched: int = 0
    left_over: list[str] = field(default_factory=list)
    _asked: Counter[Ends] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._pool = Pool(self.size, self.tolerance)

    def rows(self) -> list[Row]:
        """The records of the period, of all stacks, oldest first; damaged ones are reported."""
        since = datetime.datetime.fromtimestamp(self.terms.since, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
        rows, damages = query.records(query.Selection(self.site, self.part.name, TEST, since))
        for damage in damages:
            self.say(f"damaged record: {damage}")
        return rows

    def _valid(self, rows: Iterable[Row]) -> list[Row]:
        """Those that this screen compares: of its stack, and valid."""
        return [row for row in rows if row.is_valid and row.variant.stack == self.stack]

    def groups(self, idle: Sequence[str]) -> list[tuple[str, ...]]:
        """The groups that were measured first within the period, then groups of the ``idle`` nodes that are in none.

        Nodes that follow one another by name are in different groups, and in others in the next period. Too few for
        another group are :attr:`left_over`, other ones in the next period.
        """
        before, seen = list[tuple[str, ...]](), set[str]()
        for row in self._valid(self.rows()):
            names = {short(node) for node in row.nodes}
            if len(names) == self.size and not names & seen:  # else it followed a slow one
                before.append(tuple(row.nodes))
                seen |= names
        wanted = [node for node in idle if short(node) not in seen]
        count, over = divmod(len(wanted), self.size)
        turn = int(self.terms.now / (86400 * self.terms.within))
        first = turn % len(wanted) if over else 0
        wanted = [*wanted[first:], *wanted[:first]]
        self.left_over = wanted[count * self.size :]
        lines = [wanted[number * count : (number + 1) * count] for number in range(self.size)]
        new = [
            tuple(line[(place + number * turn) % count] for number, line in enumerate(lines)) for place in range(count)
        ]
        return [*before, *new]

    def spent(self) -> float:
        """The node seconds that links are taken to have cost in the period."""
        return _cost(self.rows())

    def run(self, groups: Sequence[Sequence[str]]) -> SearchReport:
        """Measure ``groups`` and find the cause of the slow ones."""
        return search(groups, self.measure)

    def measure(self, groups: Sequence[Group]) -> list[Answer]:
        """The answer on each of ``groups``, after the launches that it still needs."""
        rows = self.rows()
        known = Counter(_ends(row.nodes) for row in self._valid(rows))
        left = self.terms.room(_cost(rows) + self.checks_spent)
        for trial in groups:
            nodes = _ends(trial.nodes)
            self._asked[nodes] += 1
            if known[nodes] >= self._asked[nodes]:
                continue
            if left < USUAL_S * len(nodes):
                self.why[trial.nodes] = NO_HOURS
                continue
            left -= USUAL_S * len(nodes)
            self._launch(trial.nodes)
        self._pool.values = {_ends(row.nodes): row.figures[0].samples for row in self._valid(self.rows())}
        answers = self._pool.judge(groups)
        for trial, answer in zip(groups, answers, strict=True):
            if answer is None and _ends(trial.nodes) in self._pool.values:
                self.why[trial.nodes] = "too few groups, or too noisy, to say"
        return answers

    def why_open(self, nodes: tuple[str, ...]) -> str:
        """Why nothing is decided of a group."""
        is_slow = _ends(nodes) in self._pool.slow
        fallback = "it is slow, but no other group is certainly fine" if is_slow else "it could not be measured"
        return self.why.get(nodes, fallback)

    def _launch(self, nodes: tuple[str, ...]) -> None:
        place = (paths.build() / "screen" / self.site / self.part.name).resolve()
        file = place / "variant.json"
        document = json.dumps(msgspec.to_builtins(variant(self.site, self.part.name, self.stack, len(nodes))))
        files.write("the variant", file, document)
        words = ["launch", str(file), "--work", str(place / "work")]
        try:
            jobs.run_plumb(words, self.part, len(nodes), place / "job", self.say, nodes, self.limit)
        except PlumbError as error:
            self.why[nodes] = error.message
            self.say(f"{', '.join(nodes)}: {error.message}")
        else:
            self.launched += 1


def variant(site: str, partition: str, stack: str, nodes: int) -> Variant:
    """The variant of a group of ``nodes`` nodes: one rank on each, all pairs in rounds in which each node is in one."""
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


def lines(links: Links, report: SearchReport, groups: int) -> list[str]:
    """The report of a search, a line for each finding."""
    messages = [f"bad: node {node}: every group with it is slow" for node in report.nodes]
    for nodes in report.together:
        messages.append(f"bad: {'link' if len(nodes) == 2 else 'together only'} {BETWEEN.join(nodes)}")
    messages += [f"doubt: {BETWEEN.join(nodes)}: slow once, then fine" for nodes in report.passing]
    for reason, undecided in group((links.why_open(nodes), nodes) for nodes in report.open).items():
        messages.append(f"open: {counted(len(undecided), 'group')}: {reason}: {BETWEEN.join(undecided[0])}")
    if links.left_over:
        few = f"fewer than {links.size} are left of the idle nodes"
        messages.append(f"in no group in this period: {some(links.left_over)}: {few}")
    rounds = f", and {counted(report.rounds, 'round')} of halves" if report.rounds else ""
    return [*messages, f"links: {counted(groups, 'group')}{rounds}; {links.launched} measured now"]


def _cost(rows: Iterable[Row]) -> float:
    """The node seconds that these launches are taken to have cost."""
    return sum(USUAL_S * len(row.nodes) for row in rows)


def _ends(nodes: Iterable[str]) -> Ends:
    return frozenset(map(short, nodes))


def _of(name: str) -> Ends:
    return frozenset(name.split(BETWEEN))
