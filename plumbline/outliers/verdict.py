"""What is said of a class of nodes or links: who differs, and how small a difference would have been seen."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from plumbline.errors import PlumbError
from plumbline.units import percent, significant
from plumbline.verdicts import State


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
        found = {"kind": self.kind, "name": self.name, "ratio": significant(self.ratio, 6)}
        found |= {"direction": self.direction, "p": significant(self.p, 2)}
        return found | ({"notes": list(self.notes)} if self.notes else {})


@dataclass(frozen=True)
class Verdict:
    """What is said of one class: PASS, FAIL or INCONCLUSIVE.

    ``members`` are those compared (``{"node": 16}``, ``{"core": 8, "link": 28}``), ``launches`` the most that one has.
    ``noise`` is the launches' standard deviation and ``spread`` that of the members, both robust and as fractions.
    ``detectable``: had any one member been slower by this fraction, it would have been reported. ``suspects`` are
    slower than the members' spread explains, but their launches may be chance: with any, a class is no PASS.
    ``slowest`` is the member farthest on the slow side and its value over the median of the others: a ratio that was
    measured, whatever may be claimed of it; None with fewer than two members.
    """

    name: str
    verdict: State
    members: dict[str, int]
    launches: int
    noise: float
    spread: float
    detectable: dict[str, float | None]
    findings: tuple[Finding, ...] = ()
    suspects: tuple[str, ...] = ()
    shared: tuple[tuple[str, int], ...] = ()
    reason: str | None = None
    slowest: tuple[str, float] | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def said(self) -> str:
        """The reason; where nothing is slower, the slowest member follows."""
        if self.slowest is None or self.verdict == "FAIL":
            return self.reason or ""
        name, ratio = self.slowest
        slowest = f"slowest: {name} by {percent(max(ratio, 1 / ratio) - 1)}"
        return f"{self.reason}; {slowest}" if self.reason else slowest

    def to_dict(self) -> dict[str, Any]:
        """The JSON object that ``plumb outliers`` prints for it, numbers to few digits."""
        found: dict[str, Any] = {"class": self.name, "verdict": self.verdict, "members": self.members}
        found |= {"launches": self.launches, "noise": significant(self.noise, 3), "spread": significant(self.spread, 3)}
        seen = self.detectable.items()
        found["detectable"] = {kind: None if value is None else significant(value, 3) for kind, value in seen}
        found["findings"] = [item.to_dict() for item in self.findings]
        if self.slowest:
            found["slowest"] = {"name": self.slowest[0], "ratio": significant(self.slowest[1], 6)}
        if self.suspects:
            found["suspects"] = list(self.suspects)
        if self.shared:
            found["shared"] = dict(self.shared)
        return found | self.facts | ({"reason": self.reason} if self.reason else {})
