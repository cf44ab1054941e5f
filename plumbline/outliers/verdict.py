"""What is said of a class of nodes or links: who differs, and how small a difference would have been seen."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from plumbline.errors import PlumbError
from plumbline.judge import statement
from plumbline.judge.statement import Statement, given, rounded
from plumbline.units import counted, percent, significant

#: slow members that the closing line names
NAMED = 5


@dataclass(frozen=True)
class Margins:
    """Fractions: differences up to ``min_effect`` do not count; a class that hides ``must_detect`` is INCONCLUSIVE."""

    min_effect: float = 0.02
    must_detect: float = 0.10

    def __post_init__(self) -> None:
        for name, value in (("--min-effect", self.min_effect), ("--must-detect", self.must_detect)):
            if not math.isfinite(value) or not 0 <= value <= 10:
                raise PlumbError(f"{name} is {value:g}", "plumb outliers", "give a fraction, such as 0.05 for 5 %")
        if self.must_detect <= self.min_effect:
            what = f"--min-effect {self.min_effect:g}, --must-detect {self.must_detect:g}"
            raise PlumbError(what, "plumb outliers", "--must-detect has to be the larger one")


@dataclass(frozen=True)
class Finding:
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
        known = {"kind": self.kind, "name": self.name, "ratio": significant(self.ratio, 6)}
        return known | {"direction": self.direction, "p": significant(self.p, 2)} | given(notes=list(self.notes))


@dataclass(frozen=True, kw_only=True)
class Verdict(Statement):
    """What is said of one class: PASS, FAIL or INCONCLUSIVE.

    ``members`` are those compared (``{"node": 16}``, ``{"core": 8, "link": 28}``), ``count`` the most launches that one
    has. ``noise`` is the launches' standard deviation and ``spread`` that of the members, both robust and as fractions.
    ``seen``: had any one member of a kind been slower by this fraction, it would have been reported. ``suspects`` are
    slower than the members' spread explains, but their launches may be chance: with any, a class is no PASS.
    ``slowest`` is the member farthest on the slow side and its value over the median of the others: a ratio that was
    measured, whatever may be claimed of it; None with fewer than two members.
    """

    members: dict[str, int]
    noise: float
    spread: float
    seen: dict[str, float | None]
    findings: tuple[Finding, ...] = ()
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
            **given(slowest=slowest, suspects=list(self.suspects), shared=dict(self.shared)),
            **self.facts,
            **given(reason=self.reason),
        }


def closing(verdicts: Sequence[Verdict]) -> str:
    """The line for people: the verdict, how many of each, what is slower in most classes or what is not known."""
    fine = "a member slower by {} would have been found in every class"
    start = f"outliers: {{}}: {counted(len(verdicts), 'class')}: "
    return statement.closing(verdicts, start, fine, f"slower: {_slower(verdicts)}")


def _slower(verdicts: Sequence[Verdict]) -> str:
    """Every slow member once, the one of most classes first, at most :data:`NAMED`."""
    sizes: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in (one for item in verdicts for one in item.findings if one.direction == "worse"):
        sizes[one.kind, one.name].append(one.change)
    ranked = sorted(sizes.items(), key=lambda item: (-len(item[1]), -max(item[1]), item[0]))
    parts = [
        f"{kind} {name} by up to {percent(max(changes))} in {len(changes)} classes"
        if len(changes) > 1
        else f"{kind} {name} by {percent(changes[0])}"
        for (kind, name), changes in ranked[:NAMED]
    ]
    return ", ".join(parts) + (f", and {len(ranked) - NAMED} more" if len(ranked) > NAMED else "")
