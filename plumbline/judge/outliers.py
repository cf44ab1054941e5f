"""From classes of nodes and of links to verdicts: who differs, and how small a difference would have been seen."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from msgspec import Struct, to_builtins

from plumbline.base import group
from plumbline.base.errors import PlumbError
from plumbline.base.units import counted, percent, significant
from plumbline.judge import members, statement
from plumbline.judge.members import BETWEEN, Family, Matrix, Nodes
from plumbline.judge.statement import Statement, nonempty, rounded
from plumbline.statistics import Flags, Floats, special, unpaired
from plumbline.statistics.basic import holm

#: probability of any report where nothing differs, over all classes of one call: half for slower, half for faster
ERROR = 0.01
SIDE = ERROR / 2
#: a class of fewer members is not decided
FEWEST = 5
#: share of the error that goes to classes decided together, where there are any
COMBINED = 0.5
#: members for which the detectable difference is worked out; in larger classes this many, evenly spaced by value
TRIED = 60
#: more launches than this are not proposed
MOST_LAUNCHES = 100
#: suspects that a reason names
SHOWN = 4
#: slow members that the closing line names
NAMED = 5


@dataclass(frozen=True)
class Margins:
    """Fractions: differences up to ``min_effect`` do not count; a class that hides ``must_detect`` is INCONCLUSIVE."""

    min_effect: float = 0.02
    must_detect: float = 0.10

    def __post_init__(self) -> None:
        if self.must_detect <= self.min_effect:
            raise PlumbError(
                f"--tolerance {self.min_effect:g}, --must-detect {self.must_detect:g}",
                "plumb outliers",
                "--must-detect has to be the larger one",
            )


class OddMember(Struct, frozen=True, omit_defaults=True):
    """A member that differs. ``ratio`` is its value over the class's usual one; ``p`` before Holm's procedure."""

    kind: str
    name: str
    ratio: float
    direction: str
    p: float
    notes: tuple[str, ...] = ()

    @property
    def change(self) -> float:
        """How much slower or faster, as a fraction: 0.05 slower is 1.05 times the time, or 1/1.05 of the rate."""
        return max(self.ratio, 1 / self.ratio) - 1

    def to_dict(self) -> dict[str, Any]:
        """The JSON object that ``plumb outliers`` prints for it."""
        return to_builtins(self) | {"ratio": significant(self.ratio, 6), "p": significant(self.p, 2)}


@dataclass(frozen=True, kw_only=True)
class Verdict(Statement):
    """The verdict on one class: PASS, FAIL or INCONCLUSIVE.

    ``members`` are those compared (``{"node": 16}``, ``{"core": 8, "link": 28}``), ``count`` the most launches that one
    has. ``noise`` is the launches' standard deviation and ``spread`` that of the members, both robust and as fractions.
    ``seen``: had any one member of a kind been slower by this fraction, it would have been reported. ``suspects`` are
    slower than the members' spread explains, but their launches may be chance: with any, a class is not a PASS.
    ``slowest`` is the member farthest on the slow side and its value over the median of the others: a ratio that was
    measured, whatever may be claimed of it; None with fewer than two members.
    """

    members: dict[str, int]
    noise: float
    spread: float
    seen: dict[str, float | None]
    findings: tuple[OddMember, ...] = ()
    suspects: tuple[str, ...] = ()
    shared: tuple[tuple[str, int], ...] = ()
    slowest: tuple[str, float] | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object that ``plumb outliers`` prints for it, numbers to few digits."""
        slowest = self.slowest and {"name": self.slowest[0], "ratio": significant(self.slowest[1], 6)}
        return {
            "class": self.subject,
            "verdict": self.state,
            "members": self.members,
            "launches": self.count,
            **rounded({"noise": self.noise, "spread": self.spread, "detectable": self.seen}, 3),
            "findings": [item.to_dict() for item in self.findings],
            **nonempty(slowest=slowest, suspects=list(self.suspects), shared=dict(self.shared)),
            **self.facts,
            **nonempty(reason=self.reason),
        }


def decide(classes: Sequence[Nodes | Matrix], margins: Margins) -> list[Verdict]:
    """The verdict of each of ``classes``; the probability of any false report over all of them is :data:`ERROR`.

    Classes of the same nodes are decided together as well, with :data:`COMBINED` of the error: their verdicts follow.
    The links of a node that differs are not decided: its node explains them. Raises :class:`PlumbError` for no class.
    """
    if not classes:
        raise PlumbError(
            "0 classes to judge",
            "plumb outliers",
            "an empty comparison is not a PASS: find the reason for the missing classes",
        )
    floor = math.log1p(margins.min_effect)
    joined = members.joined(classes, floor)
    share = COMBINED if joined else 0.0
    return _decide(classes, margins, floor, SIDE * (1 - share)) + _decide(joined, margins, floor, SIDE * share)


def _decide(classes: Sequence[Nodes | Matrix], margins: Margins, floor: float, side: float) -> list[Verdict]:
    """The verdict of each class; ``side`` is the probability of any false report in each direction."""
    total = sum(sum(item.members().values()) for item in classes)
    decided = [[_Part(item, kind, family) for kind, family in item.families(floor)] for item in classes]
    _find(decided, total, side)
    for parts, item in zip(decided, classes, strict=True):
        links = item.links(floor, [name for part in parts for name in part.named(part.flagged)])
        parts += [] if links is None else [_Part(item, "link", links)]
    _find(decided, total, side)
    for parts in decided:
        _blame(parts)
    return [_verdict(item, parts, side / total, margins) for item, parts in zip(classes, decided, strict=True)]


class _Part:
    """One family of one class on its way to a verdict."""

    def __init__(self, item: Nodes | Matrix, kind: str, family: Family) -> None:
        self.item, self.kind, self.family = item, kind, family
        size = len(family.labels)
        self.p: Floats = members.p_values(family, SIDE) if size >= FEWEST else np.ones(size)
        self.flagged: Flags = np.zeros(size, dtype=bool)

    def named(self, chosen: Flags) -> list[str]:
        """The names of the ``chosen`` members."""
        return [self.family.labels[place] for place in np.flatnonzero(chosen)]

    def suspects(self) -> list[str]:
        """Members slower than the others' spread explains, though their launches do not prove it."""
        odd, _ = members.suspects(self.family.summary, SIDE)
        large = self.family.effect > self.family.floor
        return self.named(odd & ~self.flagged & large) if len(self.family.labels) >= FEWEST else []

    def spread(self) -> float:
        """Standard deviation of the members that were not found."""
        return members.spread(self.family.summary[~self.flagged])

    def ratio(self, effect: float) -> float:
        """The ratio of values that a log effect, positive where slower, stands for."""
        return math.exp(effect if self.item.better == "lower" else -effect)


def _find(decided: list[list[_Part]], total: int, side: float) -> None:
    """Holm's procedure over the ``total`` members of all classes, for each direction; small effects are dropped."""
    every = [part for parts in decided for part in parts]
    if not every:
        return
    p = np.concatenate([part.p for part in every])
    slower = np.concatenate([part.family.effect > 0 for part in every])
    keep = holm(np.where(slower, p, 1.0), total, side) | holm(np.where(slower, 1.0, p), total, side)
    for part, kept in zip(every, np.split(keep, np.cumsum([part.p.size for part in every])[:-1]), strict=True):
        part.flagged = kept & (np.abs(part.family.effect) > part.family.floor)


def _blame(parts: list[_Part]) -> None:
    """Report an end in place of a link that was found, where the end is odd itself.

    It is where the median over all its links differs at least half as much as that link. This only renames what Holm's
    procedure has let through, so it adds no error.
    """
    if [part.kind for part in parts][1:] != ["link"]:
        return
    ends, links = parts
    place = {name: number for number, name in enumerate(ends.family.labels)}
    blamed = set()
    for row in np.flatnonzero(links.flagged):
        size = float(links.family.effect[row])
        its_ends = links.family.labels[row].split(BETWEEN)
        odd = [(ends.family.effect[place[end]] / size, end) for end in its_ends if end in place]
        share, end = max(odd, default=(0.0, ""))
        if share >= 0.5 and share * abs(size) > ends.family.floor:
            ends.p[place[end]] = min(ends.p[place[end]], links.p[row])
            blamed.add(end)
    ends.flagged[[place[end] for end in blamed]] = True
    links.flagged &= np.array([not blamed & set(link.split(BETWEEN)) for link in links.family.labels])


def _verdict(item: Nodes | Matrix, parts: list[_Part], error: float, margins: Margins) -> Verdict:
    findings = tuple(finding for part in parts for finding in _findings(part))
    slower = [finding for finding in findings if finding.direction == "worse"]
    seen = {part.kind: _detectable(part, error) for part in parts}
    doubts = [text for part in parts if (text := _doubt(part, seen[part.kind], error, margins))]
    doubts += [] if parts else ["nothing was measured"]
    suspects = tuple(name for part in parts for name in part.suspects())
    if suspects:
        names = f"{', '.join(suspects[:SHOWN])}{' …' if len(suspects) > SHOWN else ''}"
        doubts.append(f"{names}: slower than the others, but these launches do not prove it: measure again")
    slowest = _slowest(parts)
    slowest_note = slowest and f"slowest: {slowest[0]} by {percent(max(slowest[1], 1 / slowest[1]) - 1)}"
    ends = Counter(end for finding in findings if finding.kind == "link" for end in finding.name.split(BETWEEN))
    several = [(end, count) for end, count in ends.items() if count > 1]
    more = f", and {len(slower) - 1} more" if len(slower) > 1 else ""
    return Verdict(
        item.name,
        "FAIL" if slower else "INCONCLUSIVE" if doubts else "PASS",
        item.launches(),
        detectable=max((value or 0.0 for value in seen.values()), default=0.0),
        reason=f"{slower[0].kind} {slower[0].name} is slower by {percent(slower[0].change)}{more}"
        if slower
        else "; ".join(doubts) or None,
        notes=(slowest_note,) if slowest_note and not slower else (),
        members=item.members(),
        noise=math.expm1(parts[-1].family.noise) if parts else 0.0,
        spread=math.expm1(parts[0].spread()) if parts else 0.0,
        seen=seen,
        findings=findings,
        suspects=suspects,
        shared=tuple(sorted(several, key=lambda end_count: (-end_count[1], end_count[0]))),
        slowest=slowest,
        facts=item.facts(),
    )


def _findings(part: _Part) -> list[OddMember]:
    effects = part.family.effect
    return [
        OddMember(
            part.kind,
            part.family.labels[place],
            part.ratio(float(effects[place])),
            "worse" if effects[place] > 0 else "better",
            float(part.p[place]),
            part.item.notes(part.family.labels[place]),
        )
        for place in sorted(np.flatnonzero(part.flagged), key=lambda member: -abs(effects[member]))
    ]


def _slowest(parts: Sequence[_Part]) -> tuple[str, float] | None:
    """The member that is farthest above the median of the others of its kind, and the ratio of its value to theirs."""
    farthest = []
    for part in parts:
        summary = part.family.summary
        if summary.size > 1:
            place = int(np.argmax(summary))
            effect = float(summary[place] - np.median(np.delete(summary, place)))
            farthest.append((effect, part.family.labels[place], part.ratio(effect)))
    return max(farthest, key=lambda ranked: ranked[0])[1:] if farthest else None


def _detectable(part: _Part, error: float) -> float | None:
    """The smallest slowdown (a fraction) with which any member of the family would have been reported; None if none.

    For each member that was not found: by how much it would have to be slower until both tests, at the error that
    Holm's procedure begins with, and the smallest effect say that it differs. The result is the largest of these; of
    more than :data:`TRIED` members only that many are tried, evenly spaced by value.
    """
    family = part.family
    clean = np.flatnonzero(~part.flagged)
    n = clean.size
    if n < FEWEST:
        return None
    order = clean[np.argsort(family.summary[clean], kind="stable")]
    chosen = order[np.unique(np.linspace(0, n - 1, min(n, TRIED)).round().astype(int))]
    limit = -float(special.stdtrit(n - 2, error))
    needed = []
    for member in chosen:
        others = family.summary[clean[clean != member]]
        spread = limit * float(np.std(others, ddof=1)) * math.sqrt(n / (n - 1))
        mine, pool = members.ranks(family, int(member), part.flagged)
        allowed = unpaired.critical(mine.size, pool.size, error)
        if allowed < 0:
            return None
        gaps = (pool[None, :] - mine[:, None]).ravel()
        place = gaps.size - 1 - allowed
        ranked = float(np.partition(gaps, place)[place]) + members.ALLOWED * family.floor
        tested = float(others.mean()) + spread - float(family.summary[member])
        needed.append(max(tested, ranked, family.floor - float(family.effect[member])))
    return math.expm1(min(max(needed), 50.0))


def _doubt(part: _Part, detectable: float | None, error: float, margins: Margins) -> str | None:
    """Why the family cannot be called free of differences, and what is needed for that; None if it can."""
    family, n = part.family, len(part.family.labels)
    many = counted(n, part.kind)
    if n < FEWEST:
        return f"{many}: at least {FEWEST} are needed" + ("; plumb report judges a single node" if n == 1 else "")
    if detectable is not None and detectable <= margins.must_detect:
        return None
    several = f"{counted(part.item.launches(), 'launch')} each"
    needed = _launches_needed(part, error, margins)
    cure = f"about {needed} launches each are needed" if needed else "more launches do not help: more members may"
    if detectable is None:
        return f"{many} with {several} cannot show that one differs: {cure}"
    return (
        f"a slowdown below {percent(detectable)} cannot be seen with {many} and {several} (launches vary by "
        f"{percent(math.expm1(family.noise))}, {part.kind}s by {percent(math.expm1(part.spread()))}): {cure}"
    )


def _launches_needed(part: _Part, error: float, margins: Margins) -> int | None:
    """About how many launches of each member detect must-detect; None if not even :data:`MOST_LAUNCHES` do."""
    family, n = part.family, len(part.family.labels)
    have = max(part.item.launches(), 1)
    limit = -float(special.stdtrit(n - 2, error)) + 2.33
    launch = family.noise**2
    between = max(part.spread() ** 2 - launch / have, 0.0)
    for launches in range(have, MOST_LAUNCHES + 1):
        enough = limit * math.sqrt((between + launch / launches) * n / (n - 1)) <= math.log1p(margins.must_detect)
        if enough and unpaired.critical(launches, (n - 1) * launches, error) >= 0:
            return max(launches, have + 1)
    return None


def closing(verdicts: Sequence[Verdict]) -> str:
    """The line for people: the verdict, how many of each, what is slower in most classes or what is not known."""
    fine = "a member slower by {} would have been found in every class"
    return statement.closing(
        verdicts, f"outliers: {{}}: {counted(len(verdicts), 'class')}: ", fine, f"slower: {_slower(verdicts)}"
    )


def _slower(verdicts: Sequence[Verdict]) -> str:
    """Every slow member once, the one of most classes first, at most :data:`NAMED`."""
    slow = (finding for item in verdicts for finding in item.findings if finding.direction == "worse")
    sizes = group(((finding.kind, finding.name), finding.change) for finding in slow)
    ranked = sorted(sizes.items(), key=lambda item: (-len(item[1]), -max(item[1]), item[0]))
    parts = [
        f"{kind} {name} by up to {percent(max(changes))} in {len(changes)} classes"
        if len(changes) > 1
        else f"{kind} {name} by {percent(changes[0])}"
        for (kind, name), changes in ranked[:NAMED]
    ]
    return ", ".join(parts) + (f", and {len(ranked) - NAMED} more" if len(ranked) > NAMED else "")
