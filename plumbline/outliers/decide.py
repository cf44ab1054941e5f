"""From classes of nodes and of links to verdicts: who differs, and how small a difference would have been seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from plumbline.errors import PlumbError
from plumbline.outliers import combined, evidence
from plumbline.outliers.evidence import Family
from plumbline.outliers.matrix import BETWEEN, Matrix
from plumbline.outliers.nodes import Nodes
from plumbline.outliers.verdict import Finding, Margins, Verdict
from plumbline.statistics import rank_sum
from plumbline.statistics.arrays import Flags, Floats
from plumbline.statistics.multiplicity import holm
from plumbline.units import counted, percent

#: probability of any report where nothing differs, over all classes of one call: half for slower, half for faster
ERROR = 0.01
SIDE = ERROR / 2
#: a class of fewer members is not decided
FEWEST = 5
#: share of the error that goes to classes decided together, where there are any
COMBINED = 0.5
#: members for which the detectable difference is worked out; in larger classes so many, evenly spaced by value
TRIED = 60
#: more launches than this are not proposed
MOST_LAUNCHES = 100
#: suspects that a reason names
SHOWN = 4


def decide(classes: Sequence[Nodes | Matrix], margins: Margins) -> list[Verdict]:
    """The verdict of each of ``classes``; the probability of any false report over all of them is :data:`ERROR`.

    Classes of the same nodes are decided together as well, with :data:`COMBINED` of the error: their verdicts follow.
    The links of a node that differs are not decided: its node explains them. Raises :class:`PlumbError` for no class.
    """
    if not classes:
        raise PlumbError(
            "0 classes to judge", "plumb outliers", "nothing measured is not a PASS: see why there is none"
        )
    floor = math.log1p(margins.min_effect)
    joined = combined.classes([item for item in classes if isinstance(item, Nodes)], floor)
    share = COMBINED if joined else 0.0
    apart = _decide(classes, margins, floor, SIDE * (1 - share))
    return apart + _decide(joined, margins, floor, SIDE * share)


def _decide(classes: Sequence[Nodes | Matrix], margins: Margins, floor: float, side: float) -> list[Verdict]:
    """The verdict of each class; ``side`` is the probability of any false report in each direction."""
    total = sum(sum(item.members().values()) for item in classes)
    decided = [[_Part(item, kind, family) for kind, family in item.families(floor)] for item in classes]
    _find(decided, total, side)
    for parts, item in zip(decided, classes, strict=True):
        links = item.links(floor, _names(parts)) if isinstance(item, Matrix) else None
        if links is not None:
            parts.append(_Part(item, "link", links))
    _find(decided, total, side)
    for parts in decided:
        _blame(parts)
    return [_verdict(item, parts, side / total, margins) for item, parts in zip(classes, decided, strict=True)]


class _Part:
    """One family of one class on its way to a verdict."""

    def __init__(self, item: Nodes | Matrix, kind: str, family: Family) -> None:
        self.item, self.kind, self.family = item, kind, family
        size = len(family.labels)
        self.p: Floats = evidence.p_values(family, SIDE) if size >= FEWEST else np.ones(size)
        self.found: Flags = np.zeros(size, dtype=bool)

    def suspects(self) -> list[str]:
        """Members slower than the others' spread explains, though their launches are no proof of it."""
        family = self.family
        if len(family.labels) < FEWEST:
            return []
        odd, _ = evidence.suspects(family.summary, SIDE)
        odd &= ~self.found & (family.effect > family.floor)
        return [family.labels[place] for place in np.flatnonzero(odd)]


def _names(parts: list[_Part]) -> set[str]:
    return {part.family.labels[place] for part in parts for place in np.flatnonzero(part.found)}


def _find(decided: list[list[_Part]], total: int, side: float) -> None:
    """Holm's procedure over the ``total`` members of all classes, for each direction; small effects are dropped."""
    every = [part for parts in decided for part in parts]
    if not every:
        return
    p = np.concatenate([part.p for part in every])
    slower = np.concatenate([part.family.effect > 0 for part in every])
    keep = holm(np.where(slower, p, 1.0), total, side) | holm(np.where(slower, 1.0, p), total, side)
    start = 0
    for part in every:
        stop = start + part.p.size
        part.found = keep[start:stop] & (np.abs(part.family.effect) > part.family.floor)
        start = stop


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
    for row in np.flatnonzero(links.found):
        size = float(links.family.effect[row])
        odd = [(ends.family.effect[place[end]] / size, end) for end in _ends(links.family.labels[row]) if end in place]
        share, end = max(odd, default=(0.0, ""))
        if share >= 0.5 and share * abs(size) > ends.family.floor:
            ends.p[place[end]] = min(ends.p[place[end]], links.p[row])
            blamed.add(end)
    for end in blamed:
        ends.found[place[end]] = True
    for row in np.flatnonzero(links.found):
        links.found[row] = not blamed & set(_ends(links.family.labels[row]))


def _ends(link: str) -> list[str]:
    return link.split(BETWEEN)


def _verdict(item: Nodes | Matrix, parts: list[_Part], error: float, margins: Margins) -> Verdict:
    findings = tuple(finding for part in parts for finding in _findings(part))
    slower = [finding for finding in findings if finding.direction == "worse"]
    detectable = {part.kind: _detectable(part, error) for part in parts}
    doubts = [text for part in parts if (text := _doubt(part, detectable[part.kind], error, margins))]
    doubts = doubts or ([] if parts else [item.empty()])
    suspects = tuple(name for part in parts for name in part.suspects())
    if suspects:
        names = f"{', '.join(suspects[:SHOWN])}{' …' if len(suspects) > SHOWN else ''}"
        doubts.append(f"{names}: slower than the others, but these launches do not prove it: measure again")
    slowest = _slowest(parts)
    return Verdict(
        item.name,
        "FAIL" if slower else "INCONCLUSIVE" if doubts else "PASS",
        item.launches(),
        detectable=max((value or 0.0 for value in detectable.values()), default=0.0),
        reason=_found(slower) if slower else "; ".join(doubts) or None,
        notes=(f"slowest: {slowest[0]} by {percent(max(slowest[1], 1 / slowest[1]) - 1)}",)
        if slowest and not slower
        else (),
        members=item.members(),
        noise=math.expm1(parts[-1].family.noise) if parts else 0.0,
        spread=math.expm1(_spread(parts[0])) if parts else 0.0,
        seen=detectable,
        findings=findings,
        suspects=suspects,
        shared=_shared(findings),
        slowest=slowest,
        facts=item.facts(),
    )


def _findings(part: _Part) -> list[Finding]:
    family, better = part.family, part.item.better
    made = []
    for place in sorted(np.flatnonzero(part.found), key=lambda one: -abs(family.effect[one])):
        effect = float(family.effect[place])
        ratio = math.exp(effect if better == "lower" else -effect)
        name = family.labels[place]
        direction = "worse" if effect > 0 else "better"
        made.append(Finding(part.kind, name, ratio, direction, float(part.p[place]), part.item.notes(name)))
    return made


def _slowest(parts: Sequence[_Part]) -> tuple[str, float] | None:
    """The member that is farthest above the median of the others of its kind, and the ratio of its value to theirs."""
    found = []
    for part in parts:
        summary = part.family.summary
        if summary.size > 1:
            place = int(np.argmax(summary))
            found.append(
                (float(summary[place] - np.median(np.delete(summary, place))), part.family.labels[place], part)
            )
    if not found:
        return None
    effect, name, part = max(found, key=lambda one: one[0])
    return name, math.exp(effect if part.item.better == "lower" else -effect)


def _shared(findings: Sequence[Finding]) -> tuple[tuple[str, int], ...]:
    """Ends that two or more of the links found have in common, most frequent first."""
    counts: dict[str, int] = {}
    for finding in findings:
        if finding.kind == "link":
            for end in _ends(finding.name):
                counts[end] = counts.get(end, 0) + 1
    return tuple(
        sorted(((end, count) for end, count in counts.items() if count > 1), key=lambda one: (-one[1], one[0]))
    )


def _spread(part: _Part) -> float:
    return evidence.spread(part.family.summary[~part.found])


def _detectable(part: _Part, error: float) -> float | None:
    """The smallest slowdown (a fraction) with which any member of the family would have been reported; None if none.

    For each member that was not found: by how much it would have to be slower until both tests, at the error that
    Holm's procedure begins with, and the smallest effect say that it differs. The result is the largest of these; of
    more than :data:`TRIED` members only so many are tried, evenly spaced by value.
    """
    family = part.family
    clean = np.flatnonzero(~part.found)
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
        own, pool = evidence.ranks(family, int(member), part.found)
        allowed = rank_sum.critical(own.size, pool.size, error)
        if allowed < 0:
            return None
        gaps = (pool[None, :] - own[:, None]).ravel()
        place = gaps.size - 1 - allowed
        ranked = float(np.partition(gaps, place)[place]) + evidence.ALLOWED * family.floor
        needed.append(
            max(
                float(others.mean()) + spread - float(family.summary[member]),
                ranked,
                family.floor - float(family.effect[member]),
            )
        )
    return math.expm1(min(max(needed), 50.0))


def _doubt(part: _Part, detectable: float | None, error: float, margins: Margins) -> str | None:
    """Why the family cannot be called free of differences, and what is needed for that; None if it can."""
    family, n = part.family, len(part.family.labels)
    many = counted(n, part.kind)
    if n < FEWEST:
        return f"{many}: at least {FEWEST} are needed"
    if detectable is not None and detectable <= margins.must_detect:
        return None
    several = f"{counted(part.item.launches(), 'launch')} each"
    needed = _launches_needed(part, error, margins)
    cure = f"about {needed} launches each are needed" if needed else "more launches do not help: more members may"
    if detectable is None:
        return f"{many} with {several} cannot show that one differs: {cure}"
    return (
        f"a slowdown below {percent(detectable)} cannot be seen with {many} and {several} (launches vary by "
        f"{percent(math.expm1(family.noise))}, {part.kind}s by {percent(math.expm1(_spread(part)))}): {cure}"
    )


def _launches_needed(part: _Part, error: float, margins: Margins) -> int | None:
    """About how many launches of each member detect must-detect; None if not even :data:`MOST_LAUNCHES` do."""
    family, n = part.family, len(part.family.labels)
    have = max(part.item.launches(), 1)
    limit = -float(special.stdtrit(n - 2, error)) + 2.33
    launch = family.noise**2
    between = max(_spread(part) ** 2 - launch / have, 0.0)
    for launches in range(have, MOST_LAUNCHES + 1):
        enough = limit * math.sqrt((between + launch / launches) * n / (n - 1)) <= math.log1p(margins.must_detect)
        shown = rank_sum.critical(launches, (n - 1) * launches, error) >= 0
        if enough and shown:
            return max(launches, have + 1)
    return None


def _found(findings: Sequence[Finding]) -> str:
    worst = findings[0]
    more = f", and {len(findings) - 1} more" if len(findings) > 1 else ""
    return f"{worst.kind} {worst.name} is slower by {percent(worst.change)}{more}"
