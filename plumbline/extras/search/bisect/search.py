"""The search: git chooses the next commit, a gate judges it, and the ranges on both sides of a culprit are compared.

Its results are comparisons of two commits, the mark of each commit, and the culprits. It works on comparisons alone,
whoever makes them: a live gate (:mod:`plumbline.extras.search.bisect.bench`), or a simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import msgspec
import numpy as np
from msgspec import Struct

from plumbline.base.units import Better, percent, significant, some
from plumbline.extras.search.bisect.commits import Commits, Term
from plumbline.judge.decide import SAME
from plumbline.judge.statement import nonempty, rounded
from plumbline.measure.session import Say
from plumbline.statistics import Ints, paired
from plumbline.statistics.paired import Errors, PairedRule

#: commits of a range that may stay undecided before it is given up: the noise that hides one hides its neighbours too
MOST_UNDECIDED = 3
#: margins of the whole: the tolerated slowdown, and the one to detect. A step of 3 % is found at 3 % noise
TOLERANCE, MUST_DETECT = 0.005, 0.03
#: gates of the same two commits, at most, until one is decided
ATTEMPTS = 5
#: a gate with a wider interval, in units of ``must_detect``, is not worth another one
WIDEST = 2.5
#: beside a culprit nothing more is searched for where the gates leave less than this part of ``must_detect``
LITTLE = 1 / 3
#: first pairs of a step: where all of them lie on one side of a margin (1 in 32 by chance) they decide, because a step
#: only says where to search on, and the culprit has a whole gate
SCREENED = 5
SCREENING = Errors(2.0**-SCREENED, 2.0**-SCREENED)


def screened(logs: Ints, rule: PairedRule, blur: int = 0) -> int:
    """The state that the first pairs of ``logs`` give a step, as :func:`paired.look` has it."""
    return int(paired.look(logs[None, :SCREENED], rule, np.array([blur]), SCREENING)[0])


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
    def by(self) -> str:
        """The change for people: ``slower by 9.7 % (9.1 % to 10 %)``."""
        return change(self.slower)


def change(slower: Iterable[float]) -> str:
    """A change as :attr:`Comparison.slower` has it, for people."""
    low, centre, high = map(math.expm1, slower)
    if centre >= 0:
        return f"slower by {percent(centre)} ({percent(low)} to {percent(high)})"
    return f"faster by {percent(-centre)} ({percent(-high)} to {percent(-low)})"


def decided(gate: Callable[[int], Comparison], ends: bool = False) -> Comparison:
    """The last result of at most :data:`ATTEMPTS` gates, with the launches of all; ``gate`` takes a number, from 0.

    Another one may decide where disturbance left it open, or noise that hides little more: the interval is at most
    :data:`WIDEST` times as wide as ``must_detect``.

    Each has pairs of its own and errs as seldom as any gate, so a commit that takes all of them is misjudged at most
    as many times as often. Of the ``ends`` of a search only a slowdown that was nearly seen is worth another gate, and
    is so where they passed, too: of slowdowns that a gate must find it passes up to 1 %.
    """
    launches = 0
    for attempt in range(ATTEMPTS):
        comparison = gate(attempt)
        launches += comparison.launches
        low, centre, high = comparison.slower
        wanted, in_doubt = math.log1p(comparison.must_detect), comparison.in_doubt
        is_open = comparison.state == "INCONCLUSIVE" and (in_doubt or high - low <= WIDEST * wanted)
        is_near = centre >= wanted / 3
        if ends:
            is_open = (is_open and (is_near or in_doubt)) or (comparison.state == "PASS" and is_near)
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
    commits between culprits, ``little`` is what they change where that was too little for gates. ``logs`` are those of
    git, one of each range. ``unknown``: the open questions.
    """

    ends: Comparison | None = None
    steps: list[Step] = field(default_factory=list)
    culprits: list[Culprit] = field(default_factory=list)
    rest: list[Comparison] = field(default_factory=list)
    little: list[str] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether every change that was looked for is one commit, confirmed."""
        certain = [len(culprit.candidates) == 1 and culprit.is_confirmed for culprit in self.culprits]
        return any(certain) and all(certain) and not self.unknown


class Compare(Protocol):
    """Compares two commits by a rule; ``again``: by launches of its own, whatever was measured before.

    ``screen``: the first pairs may decide, as :func:`screened` says.
    """

    def __call__(
        self, baseline: str, candidate: str, rule: PairedRule, *, again: bool = False, screen: bool = False
    ) -> Comparison:
        """The result of a gate of the two."""


@dataclass
class Search:
    """A search among ``commits`` for changes of ``series``; ``rule``: the tolerated change, and the one to detect.

    ``program`` names the first commit that was seen to have the same program as another; those are not compared.
    """

    commits: Commits
    compare: Compare
    rule: PairedRule
    say: Say
    series: Callable[[], str]
    program: Callable[[str], str] = str
    _seen: list[Comparison] = field(default_factory=list)

    def run(self, findings: BisectionFindings, good: str, bad: str) -> None:
        """Add to ``findings`` the commits that make ``bad`` slower than ``good``, and gains that hide a part of it.

        However it ends, ``findings`` has all results by then.
        """
        findings.ends = self.compare(good, bad, self.rule)
        self._seen.append(findings.ends)
        if findings.ends.state != "FAIL":
            return
        for end in (good, bad):  # other commits are named after them
            self.program(end)
        todo = [(Part(good, bad, True, findings.ends.slower[1]), findings.ends)]
        while todo:
            part, whole = todo.pop(0)
            culprit = self._bisected(part, findings)
            if culprit.comparison.state == "PASS":
                culprit = self._repeated(part, findings) or culprit
            findings.culprits.append(culprit)
            self.say(culprit.line)
            both = zip(whole.slower, reversed(culprit.comparison.slower), strict=True)
            left = [end - its for end, its in both]
            if culprit.is_confirmed and abs(left[1]) < LITTLE * math.log1p(self.rule.must_detect):
                where = f"{part.good[:12]}..{part.bad[:12]}"
                findings.little.append(f"without it, {where} is {change(left)}: too little to search on")
                continue
            for start, end in ((part.good, culprit.before), (culprit.commit, part.bad)):
                if start != end and self.commits.is_after(end, start):
                    todo += self._left(start, end, findings)

    def _repeated(self, part: Part, findings: BisectionFindings) -> Culprit | None:
        """The commit of ``part``, searched for again after a step was misjudged; None if it is not confirmed either.

        A range that was judged early may seem to differ by too much, and then its one step is neither good nor bad.
        """
        self.say("bisect: a step was misjudged, so the range is searched again")
        size = min(part.size, math.log1p(self.rule.must_detect))
        culprit = self._bisected(replace(part, size=size), findings, again=True)
        return culprit if culprit.is_confirmed else None

    def _bisected(self, part: Part, findings: BisectionFindings, *, again: bool = False) -> Culprit:
        """The commit of ``part`` from which on it is bad, compared with its parent; ``again``: by gates of its own."""
        judged: list[tuple[str, Term]] = []
        undecided = 0
        findings.logs.append("")
        while True:
            answer = self.commits.ask(part.good, part.bad, judged)
            findings.logs[-1] = answer.log
            if answer.commit is None or undecided == MOST_UNDECIDED:
                break
            self.say(f"\nbisect: step {len(judged) + 1}: {self.commits.label(answer.commit)}; {part.rule}")
            step = self._step(part, answer.commit, again=again)
            findings.steps.append(step)
            judged.append((step.commit, step.term))
            undecided += step.term == "skip" and not step.comparisons[-1].unusable
            self.say(f"bisect: {answer.commit[:12]} is {step.term}{f': {step.why}' if step.why else ''}")
        before, after = (
            [end, *(commit for commit, mark in judged if mark == term)][-1]
            for term, end in (("good", part.good), ("bad", part.bad))
        )
        left = answer.left or tuple(self.commits.between(before, after))
        if len(left) == 1:
            after = left[0]
            before = self.commits.parent(after) or before
        return self._confirmed(part, before, after, left, findings)

    def _step(self, part: Part, commit: str, *, again: bool) -> Step:
        """The mark of ``commit``: that of an end with its program, or by its gate against the good end, or the bad."""
        ends: tuple[tuple[str, Term], ...] = ((part.good, "good"), (part.bad, "bad"))
        for end, term in ends:
            if self.program(commit) == self.program(end):
                return Step(part, commit, term, (self._compared(end, commit, part.rule),))
        first = self._changed(part, part.good, commit, again=again)
        if first.state in (part.state, "PASS"):
            return Step(part, commit, "bad" if first.state == part.state else "good", (first,))
        if commit in first.unusable:
            return Step(part, commit, "skip", (first,))
        second = self._changed(part, commit, part.bad, again=again)
        if second.state in (part.state, "PASS"):
            return Step(part, commit, "good" if second.state == part.state else "bad", (first, second))
        return Step(part, commit, "skip", (first, second))

    def _changed(
        self, part: Part, start: str, end: str, rule: PairedRule | None = None, *, again: bool = False
    ) -> Comparison:
        """``end`` against ``start``, where the gate looks for the change of ``part``."""
        both = (start, end) if part.slower else (end, start)
        comparison = self._compared(*both, rule or part.rule, again=again, screen=not (rule or again))
        return comparison if part.slower else comparison.swapped

    def _compared(
        self, baseline: str, candidate: str, rule: PairedRule, *, again: bool = False, screen: bool = False
    ) -> Comparison:
        first, second = (self.program(commit) for commit in (baseline, candidate))
        if first == second:  # the same program: nothing is measured
            comparison = Comparison(
                baseline=baseline, candidate=candidate, tolerance=rule.tolerance, must_detect=rule.must_detect,
                state="PASS", ratio=1.0, interval=(1.0, 1.0), detectable=0.0, reason=SAME,
            )  # fmt: skip
        else:
            comparison = self.compare(first, second, rule, again=again, screen=screen)
            comparison = msgspec.structs.replace(comparison, baseline=baseline, candidate=candidate)
        self._seen.append(comparison)
        return comparison

    def _confirmed(
        self, part: Part, before: str, after: str, left: tuple[str, ...], findings: BisectionFindings
    ) -> Culprit:
        """The gate of the culprit against the commit before it, by the margins of the whole.

        Where it finds nothing, it contradicts the gates of the search: then a second one has the last word. Another
        commit is named only if the search erred before, and one of the two errs too.
        """
        if len(left) == 1:
            self.say(f"\nbisect: {self.commits.label(after)} against its parent")
        comparison = self._changed(part, before, after, self.rule)
        if comparison.state == "PASS":
            self.say("bisect: that contradicts the search, so it is measured again")
            repeated = self._changed(part, before, after, self.rule, again=True)
            comparison = repeated if repeated.state == part.state else comparison
        is_it = comparison.state == part.state
        skipped = [step for step in findings.steps if step.part == part and step.commit in left and step.why]
        return Culprit(
            subject=some([self.commits.label(commit) for commit in left]),
            state=comparison.state if is_it else "INCONCLUSIVE",
            reason=None if is_it else comparison.reason or f"no change of {percent(self.rule.must_detect)} or more",
            notes=tuple(f"{step.commit[:12]} is skipped: {step.why}" for step in skipped),
            series=self.series(),
            part=part,
            before=before,
            candidates=left,
            comparison=comparison,
        )

    def _left(self, start: str, end: str, findings: BisectionFindings) -> list[tuple[Part, Comparison]]:
        """The range between two commits to search on; none if no change that must be detected is left there.

        A gate that was made before may rule out both; a gain is asked for by a gate of its own where none does.
        """
        most, both = math.log1p(self.rule.must_detect), [self.program(commit) for commit in (start, end)]
        for earlier in (comparison for seen in self._seen for comparison in (seen, seen.swapped)):
            low, _, high = earlier.slower
            programs = [self.program(commit) for commit in (earlier.baseline, earlier.candidate)]
            if (programs, earlier.state) == (both, "PASS") and -most < low <= high < most and earlier.pairs != SCREENED:
                findings.rest.append(earlier)
                return []
        self.say(f"\nbisect: what is left between {start[:12]} and {end[:12]}")
        comparison = self._compared(start, end, self.rule)
        low, centre, _ = comparison.slower
        is_gain_open = comparison.state == "PASS" and low <= -most
        if is_gain_open and (reverse := self._compared(end, start, self.rule).swapped).state != "PASS":
            comparison, centre = reverse, reverse.slower[1]
        findings.rest.append(comparison)
        if comparison.state in ("FAIL", "GAIN"):
            return [(Part(start, end, comparison.state == "FAIL", abs(centre)), comparison)]
        if comparison.state != "PASS":
            between = f"between {start[:12]} and {end[:12]}"
            findings.unknown.append(f"{between} nothing is certain: {comparison.state}: {comparison.reason}")
        return []
