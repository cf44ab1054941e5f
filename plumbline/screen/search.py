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

#: what is said of a group; None: it could not be measured, or not well enough
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
class Found:
    """What a search found.

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


def search(groups: Sequence[Sequence[str]], measure: Measure) -> Found:
    """Measure ``groups`` of two nodes or more, and follow each slow one to its end."""
    found = Found(measured=len(groups))
    first = [Group(tuple(one)) for one in groups]
    answers = measure(first)
    fine = [node for group, answer in zip(first, answers, strict=True) if answer == "fine" for node in group.nodes]
    found.open += [group.suspects for group, answer in zip(first, answers, strict=True) if answer is None]
    slow = [group for group, answer in zip(first, answers, strict=True) if answer == "slow"]
    while slow:
        helpers, asked, waiting = list(fine), list[tuple[Group, list[Group]]](), list[Group]()
        for group in slow:
            parts = _parts(group, helpers)
            if parts:
                asked.append((group, parts))
            else:
                waiting.append(group)
        if not asked:  # no node is known to be fine: nothing can be said of single ones
            found.open += [group.suspects for group in waiting]
            break
        tests = [part for _, parts in asked for part in parts]
        answers = measure(tests)
        found.rounds += 1
        found.measured += len(tests)
        said = dict(zip(tests, answers, strict=True))
        fine += [node for part in tests if said[part] == "fine" and not part.again for node in part.suspects]
        slow = waiting + [more for group, parts in asked for more in _follow(group, parts, said, found)]
    return found


def _parts(group: Group, helpers: list[str]) -> list[Group]:
    """What is measured next of a slow group, with ``helpers`` that are free in this round; nothing without one."""
    if group.again:
        return [group]
    if len(group.suspects) == 1:
        other = next((place for place, node in enumerate(helpers) if node != group.helper), None)
        return [] if other is None else [Group(group.suspects, helpers.pop(other))]
    middle = len(group.suspects) // 2
    halves = group.suspects[:middle], group.suspects[middle:]
    if sum(len(half) == 1 for half in halves) > len(helpers):
        return []
    return [Group(half, helpers.pop(0) if len(half) == 1 else None) for half in halves]


def _follow(group: Group, parts: Sequence[Group], said: dict[Group, Answer], found: Found) -> list[Group]:
    """What is to be measured after the answers to the ``parts`` of a slow ``group``; what is known is noted."""
    answers = [said[part] for part in parts]
    if group.again:
        ends = {"slow": found.together, "fine": found.passing, None: found.open}
        ends[answers[0]].append(group.suspects)
        return []
    if len(group.suspects) == 1:
        if answers[0] == "slow":
            found.nodes.append(group.suspects[0])
        else:
            (found.passing if answers[0] else found.open).append(group.suspects)
        return []
    found.open += [part.suspects for part, answer in zip(parts, answers, strict=True) if answer is None]
    if answers == ["fine", "fine"]:
        return [Group(group.suspects, again=True)]
    return [part for part, answer in zip(parts, answers, strict=True) if answer == "slow"]
