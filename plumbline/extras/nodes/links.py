"""The links of a partition: groups of nodes measured by the kernel ``pairs``, and judged by their records.

Each group is a job of its own that runs ``plumb launch``, so its figures are verified by the witness and are in a
record. Groups with a record of the period are not measured again: a search that was cut off goes on.

The search for the node, or the link, that makes a group slow works on names and answers only, whoever measures: groups
are halved, and a node that is left gets another partner. A round measures groups that have no node in common. Of a slow
group both halves are measured; a half of one node is measured with a node of a fine group, and if that is slow too with
another one: something that disturbs a group as a whole now and then does so hardly three times in a row. With one bad
node in a group of n this takes log2 n + 1 rounds, with several bad ones as many, and more groups in each.
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec

from plumbline.base import files, group, paths
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Partition
from plumbline.base.units import counted, some
from plumbline.extras.nodes.model import short
from plumbline.extras.nodes.screening import DAY, NO_HOURS, Terms
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
#: the answer on a group; None: it could not be measured, or not well enough
Answer: TypeAlias = Literal["fine", "slow"] | None


@dataclass(frozen=True)
class Group:
    """Nodes that are measured together: the ``suspects``, and a ``helper`` beside one that is left alone.

    ``again``: both halves were fine.
    """

    suspects: tuple[str, ...]
    helper: str | None = None
    again: bool = False

    @property
    def nodes(self) -> tuple[str, ...]:
        """All of them."""
        return self.suspects if self.helper is None else (*self.suspects, self.helper)


@dataclass
class SearchReport:
    """The report of a search.

    ``nodes`` are bad; each of ``together`` is slow, but its halves are not: with two nodes it is the link between them.
    ``passing`` were slow once and then fine, ``open`` could not be decided. ``rounds`` are those after the first.
    """

    nodes: list[str] = field(default_factory=list)
    together: list[tuple[str, ...]] = field(default_factory=list)
    passing: list[tuple[str, ...]] = field(default_factory=list)
    open: list[tuple[str, ...]] = field(default_factory=list)
    rounds: int = 0
    measured: int = 0


Measure: TypeAlias = Callable[[Sequence[Group]], Sequence[Answer]]


def search(groups: Sequence[Sequence[str]], measure: Measure) -> SearchReport:
    """Measure ``groups`` of two nodes or more, and follow each slow one to its end."""
    first = [Group(tuple(nodes)) for nodes in groups]
    answered = list(zip(first, measure(first), strict=True))
    fine = [node for group, answer in answered if answer == "fine" for node in group.nodes]
    slow = [group for group, answer in answered if answer == "slow"]
    report = SearchReport(open=[group.suspects for group, answer in answered if answer is None], measured=len(first))
    while slow:
        helpers = list(fine)
        parts_of = {group: _parts(group, helpers) for group in slow}
        waiting = [group for group, parts in parts_of.items() if not parts]
        tests = [part for parts in parts_of.values() for part in parts]
        if not tests:  # no node is known to be fine: nothing can be said of single ones
            report.open += [group.suspects for group in waiting]
            break
        answer_of = dict(zip(tests, measure(tests), strict=True))
        report.rounds += 1
        report.measured += len(tests)
        fine += [node for part in tests if answer_of[part] == "fine" and not part.again for node in part.suspects]
        followed = [_follow(group, parts, answer_of, report) for group, parts in parts_of.items() if parts]
        slow = waiting + [group for groups in followed for group in groups]
    return report


def _parts(group: Group, helpers: list[str]) -> list[Group]:
    """The next groups to measure of a slow one, with ``helpers`` that are free in this round; none without one."""
    if group.again:
        return [group]
    if len(group.suspects) == 1:
        partner = next((place for place, node in enumerate(helpers) if node != group.helper), None)
        return [] if partner is None else [Group(group.suspects, helpers.pop(partner))]
    middle = len(group.suspects) // 2
    halves = group.suspects[:middle], group.suspects[middle:]
    if sum(len(half) == 1 for half in halves) > len(helpers):
        return []
    return [Group(half, helpers.pop(0) if len(half) == 1 else None) for half in halves]


def _follow(group: Group, parts: Sequence[Group], answer_of: dict[Group, Answer], report: SearchReport) -> list[Group]:
    """The groups to measure after the answers to the ``parts`` of a slow ``group``; ``report`` gets decided ones."""
    answers = [answer_of[part] for part in parts]
    if len(group.suspects) == 1 and answers == ["slow"]:
        report.nodes += group.suspects
        return []
    if len(group.suspects) == 1 or group.again:
        {"slow": report.together, "fine": report.passing, None: report.open}[answers[0]].append(group.suspects)
        return []
    report.open += [part.suspects for part, answer in zip(parts, answers, strict=True) if answer is None]
    if answers == ["fine", "fine"]:
        return [Group(group.suspects, again=True)]
    return [part for part, answer in zip(parts, answers, strict=True) if answer == "slow"]


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
        worse = {_named(finding.name) for finding in verdict.findings if finding.direction == "worse"}
        seen = verdict.seen["node"]
        unknown = set(requested) - self.values.keys() | set(map(_named, verdict.suspects))
        if seen is None or seen > margins.must_detect:
            unknown |= set(requested)
        self.slow = (self.slow - set(requested)) | (worse & set(requested))
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
        turn = int(self.terms.now / (DAY * self.terms.within))
        first = turn % len(wanted) if over else 0
        wanted = [*wanted[first:], *wanted[:first]]
        self.left_over = wanted[count * self.size :]
        lines = [wanted[number * count : (number + 1) * count] for number in range(self.size)]
        new = [
            tuple(line[(place + number * turn) % count] for number, line in enumerate(lines)) for place in range(count)
        ]
        return [*before, *new]

    def spent(self, rows: Iterable[Row] | None = None) -> float:
        """The node seconds that the launches in ``rows``, by default those of the period, are taken to have cost."""
        return sum(USUAL_S * len(row.nodes) for row in (self.rows() if rows is None else rows))

    def measure(self, groups: Sequence[Group]) -> list[Answer]:
        """The answer on each of ``groups``, after the launches that it still needs."""
        rows = self.rows()
        known = Counter(_ends(row.nodes) for row in self._valid(rows))
        left = self.terms.room(self.spent(rows) + self.checks_spent)
        for trial in groups:
            nodes = _ends(trial.nodes)
            cost = USUAL_S * len(nodes)
            self._asked[nodes] += 1
            if known[nodes] < self._asked[nodes] and left < cost:
                self.why[trial.nodes] = NO_HOURS
            elif known[nodes] < self._asked[nodes]:
                left -= cost
                self._launch(trial.nodes)
        self._pool.values = {_ends(row.nodes): row.figures[0].samples for row in self._valid(self.rows())}
        answers = self._pool.judge(groups)
        unclear = (trial.nodes for trial, answer in zip(groups, answers, strict=True) if answer is None)
        measured = (nodes for nodes in unclear if _ends(nodes) in self._pool.values)
        self.why |= dict.fromkeys(measured, "too few groups, or too noisy, to say")
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
    return Variant.create(
        test=TEST, name=f"{TEST} on {nodes} nodes", site=site, partition=partition, stack=stack, benchmark=KERNEL,
        arguments=["--mode", "tournament", "--bandwidth-bytes", "2M", "--json"], placement="node", threads=1,
        ranks_per_node=1, nodes=nodes, figures=[WantedFigure(name=FIGURE, metric=FIGURE, where={"class": "all"})],
        launches=LAUNCHES, time_limit_s=300, params={"nodes": nodes},
    )  # fmt: skip


def lines(links: Links, report: SearchReport, groups: int) -> list[str]:
    """The report of a search, a line for each finding."""
    messages = [
        *(f"bad: node {node}: every group with it is slow" for node in report.nodes),
        *(f"bad: {'link' if len(nodes) == 2 else 'together only'} {BETWEEN.join(nodes)}" for nodes in report.together),
        *(f"doubt: {BETWEEN.join(nodes)}: slow once, then fine" for nodes in report.passing),
        *(
            f"open: {counted(len(undecided), 'group')}: {reason}: {BETWEEN.join(undecided[0])}"
            for reason, undecided in group((links.why_open(nodes), nodes) for nodes in report.open).items()
        ),
    ]
    if links.left_over:
        few = f"fewer than {links.size} are left of the idle nodes"
        messages.append(f"in no group in this period: {some(links.left_over)}: {few}")
    rounds = f", and {counted(report.rounds, 'round')} of halves" if report.rounds else ""
    return [*messages, f"links: {counted(groups, 'group')}{rounds}; {links.launched} measured now"]


def _ends(nodes: Iterable[str]) -> Ends:
    return frozenset(map(short, nodes))


def _named(name: str) -> Ends:
    return frozenset(name.split(BETWEEN))
