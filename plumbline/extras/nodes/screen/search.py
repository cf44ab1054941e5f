"""Which node, or which link, makes a group slow: groups are halved, and a node that is left gets another partner.

A round measures groups that have no node in common. Of a slow group both halves are measured; a half of one node is
measured with a node of a fine group, and if that is slow too with another one: something that disturbs a group as a
whole now and then does so hardly three times in a row. With one bad node in a group of n this takes log2 n + 1 rounds,
with several bad ones as many, and more groups in each. Works on names and answers only, whoever measures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

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
    report = SearchReport(measured=len(groups))
    first = [Group(tuple(nodes)) for nodes in groups]
    answers = measure(first)
    fine = [node for group, answer in zip(first, answers, strict=True) if answer == "fine" for node in group.nodes]
    report.open += [group.suspects for group, answer in zip(first, answers, strict=True) if answer is None]
    slow = [group for group, answer in zip(first, answers, strict=True) if answer == "slow"]
    while slow:
        helpers, tested, waiting = list(fine), list[tuple[Group, list[Group]]](), list[Group]()
        for group in slow:
            parts = _parts(group, helpers)
            if parts:
                tested.append((group, parts))
            else:
                waiting.append(group)
        if not tested:  # no node is known to be fine: nothing can be said of single ones
            report.open += [group.suspects for group in waiting]
            break
        tests = [part for _, parts in tested for part in parts]
        answers = measure(tests)
        report.rounds += 1
        report.measured += len(tests)
        answer_of = dict(zip(tests, answers, strict=True))
        fine += [node for part in tests if answer_of[part] == "fine" and not part.again for node in part.suspects]
        slow = waiting + [more for group, parts in tested for more in _follow(group, parts, answer_of, report)]
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
    if group.again:
        ends = {"slow": report.together, "fine": report.passing, None: report.open}
        ends[answers[0]].append(group.suspects)
        return []
    if len(group.suspects) == 1:
        if answers[0] == "slow":
            report.nodes.append(group.suspects[0])
        else:
            (report.passing if answers[0] else report.open).append(group.suspects)
        return []
    report.open += [part.suspects for part, answer in zip(parts, answers, strict=True) if answer is None]
    if answers == ["fine", "fine"]:
        return [Group(group.suspects, again=True)]
    return [part for part, answer in zip(parts, answers, strict=True) if answer == "slow"]
