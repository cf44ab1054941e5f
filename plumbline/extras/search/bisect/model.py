"""The results of a bisection: comparisons of two commits, the mark of each commit, and the culprits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Struct

from plumbline.base.units import Better, percent, significant
from plumbline.extras.search.bisect.commits import Term
from plumbline.judge.statement import nonempty, rounded
from plumbline.statistics.paired import PairedRule

#: margins of the whole: the tolerated slowdown, and the one to detect. A step of 3 % is found at 3 % noise
TOLERANCE, MUST_DETECT = 0.005, 0.03
#: gates of the same two commits, at most, until one is decided
ATTEMPTS = 5
#: a gate with a wider interval, in units of ``must_detect``, is not worth another one
WIDEST = 2.5


class Comparison(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a gate of the commit ``candidate`` against the commit ``baseline``, by its margins.

    ``pairs`` decided it, ``launches`` were made. ``ratio`` is candidate / baseline, as measured. ``unusable`` are those
    of the two that could not be built, or gave no valid answer; ``folder`` is the gate's. ``in_doubt``: disturbance
    left it open.
    """

    baseline: str
    candidate: str
    tolerance: float
    must_detect: float
    state: str
    pairs: int = 0
    launches: int = 0
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    detectable: float | None = None
    better: Better = "lower"
    reason: str | None = None
    unusable: tuple[str, ...] = ()
    folder: str = ""
    in_doubt: bool = False

    @property
    def rule(self) -> PairedRule:
        """The margins that it was decided by."""
        return PairedRule(self.tolerance, self.must_detect)

    @property
    def numbers(self) -> dict[str, Any]:
        """Ratio, interval and what would have been seen, to six digits."""
        return {name: rounded(getattr(self, name), 6) for name in ("ratio", "interval", "detectable")}

    @property
    def slower(self) -> tuple[float, float, float]:
        """Lower bound, estimate and upper bound of the slowdown, as log ratios; without an interval nothing is known.

        Positive is slower.
        """
        if self.ratio is None or self.interval is None:
            return -math.inf, 0.0, math.inf
        sign = 1 if self.better == "lower" else -1
        low, high = sorted(sign * math.log(end) for end in self.interval)
        return low, sign * math.log(self.ratio), high

    @property
    def swapped(self) -> Comparison:
        """The same with the commits exchanged: where the baseline was slower, its candidate is faster."""
        return msgspec.structs.replace(
            self,
            baseline=self.candidate,
            candidate=self.baseline,
            state={"FAIL": "GAIN", "GAIN": "FAIL"}.get(self.state, self.state),
            ratio=None if self.ratio is None else 1 / self.ratio,
            interval=(1 / self.interval[1], 1 / self.interval[0]) if self.interval else None,
        )

    @property
    def may_be_decided(self) -> bool:
        """Whether another gate of the same two may decide: disturbance left it open, or noise that hides little more.

        Noise hides little more where the interval is at most :data:`WIDEST` times as wide as ``must_detect``.
        """
        is_fine = self.slower[2] - self.slower[0] <= WIDEST * math.log1p(self.must_detect)
        return self.state == "INCONCLUSIVE" and (self.in_doubt or is_fine)

    @property
    def by(self) -> str:
        """The change for people: ``slower by 9.7 % (9.1 % to 10 %)``."""
        low, centre, high = map(math.expm1, self.slower)
        if centre >= 0:
            return f"slower by {percent(centre)} ({percent(low)} to {percent(high)})"
        return f"faster by {percent(-centre)} ({percent(-high)} to {percent(-low)})"


def decided(gate: Callable[[int], Comparison], ends: bool = False) -> Comparison:
    """The last result of at most :data:`ATTEMPTS` gates, with the launches of all; ``gate`` takes a number, from 0.

    Each has pairs of its own and errs as seldom as any gate, so a commit that takes all of them is misjudged at most
    as many times as often. Of the ``ends`` of a search only a slowdown that was nearly seen is worth another gate, and
    is so where they passed, too: of slowdowns that a gate must find it passes up to 1 %.
    """
    launches = 0
    for attempt in range(ATTEMPTS):
        comparison = gate(attempt)
        launches += comparison.launches
        is_near = comparison.slower[1] >= math.log1p(comparison.must_detect) / 3
        is_open = comparison.may_be_decided
        if ends:
            is_open = (is_open and (is_near or comparison.in_doubt)) or (comparison.state == "PASS" and is_near)
        if not is_open:
            break
    return msgspec.structs.replace(comparison, launches=launches)


@dataclass(frozen=True)
class Part:
    """A range in which the commit ``bad`` differs from ``good``, certainly: slower or faster.

    ``size`` is by how much, as a log ratio above 0.
    """

    good: str
    bad: str
    slower: bool
    size: float

    @property
    def rule(self) -> PairedRule:
        """Of a step: with at most a quarter of the difference a commit is good, with two thirds or more it is bad.

        Between them either is right: then there are several steps, and the rest is looked for later. Half instead of
        two thirds takes more pairs and decides less (tests/rates/bisection.py).
        """
        tolerance, must_detect = (significant(math.expm1(self.size * share), 6) for share in (1 / 4, 2 / 3))
        return PairedRule(tolerance, must_detect)

    @property
    def state(self) -> str:
        """The verdict of a gate of a bad commit against a good one."""
        return "FAIL" if self.slower else "GAIN"


@dataclass(frozen=True)
class Step:
    """The mark of a ``commit`` of a range, and the comparisons behind it."""

    part: Part
    commit: str
    term: Term
    comparisons: tuple[Comparison, ...]

    @property
    def why(self) -> str:
        """Why it was skipped; empty for any other."""
        return (self.comparisons[-1].reason or "") if self.term == "skip" else ""


@dataclass(frozen=True, kw_only=True)
class Culprit:
    """A commit that makes the figure slower (FAIL) or faster (GAIN) than ``before`` it; of ``candidates`` it is one.

    INCONCLUSIVE: the gate of both, ``comparison``, did not confirm it for a ``reason``. ``subject`` is the commit for
    people, or all candidates; ``series`` is the figure, ``part`` the range in which it was found. ``notes`` say why
    candidates were skipped.
    """

    subject: str
    state: str
    reason: str | None
    notes: tuple[str, ...]
    series: str
    part: Part
    before: str
    candidates: tuple[str, ...]
    comparison: Comparison

    @property
    def commit(self) -> str:
        """The commit, or the newest of the candidates."""
        return self.comparison.candidate

    @property
    def is_certain(self) -> bool:
        """Whether it is one commit, which its gate confirms."""
        return len(self.candidates) == 1 and self.is_confirmed

    @property
    def is_confirmed(self) -> bool:
        """Whether its gate against the commit before it agrees with the steps."""
        return self.state in ("FAIL", "GAIN")

    @property
    def line(self) -> str:
        """The answer in a line."""
        makes = f"makes {self.series} {self.comparison.by}"
        if not self.is_confirmed:
            makes = f"is where {self.series} changes, by the steps; not confirmed: {self.reason}"
        if len(self.candidates) == 1:
            return f"{self.subject} {makes}"
        return f"one of {len(self.candidates)} commits {makes}: {self.subject}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON object that ``plumb bisect`` prints for it, numbers to six digits."""
        return {
            "series": self.series,
            "verdict": self.state,
            "commit": self.commit,
            "label": self.subject,
            "before": self.before,
            "candidates": list(self.candidates),
            "pairs": self.comparison.pairs,
            **self.comparison.numbers,
            **nonempty(reason=self.reason, notes=list(self.notes)),
        }


@dataclass
class BisectionFindings:
    """The results of a bisection so far.

    ``ends`` is the gate of the last commit against the first; ``rest`` are the comparisons of the
    commits between culprits. ``logs`` are those of git, one of each range. ``unknown``: the open questions.
    """

    ends: Comparison | None = None
    steps: list[Step] = field(default_factory=list)
    culprits: list[Culprit] = field(default_factory=list)
    rest: list[Comparison] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether every change that was looked for is one commit, confirmed."""
        return bool(self.culprits) and not self.unknown and all(culprit.is_certain for culprit in self.culprits)
