"""The search: git chooses the next commit, a gate judges it, and the ranges on both sides of a culprit are compared.

It works on comparisons alone, whoever makes them: a live gate (:mod:`plumbline.extras.search.bisect.bench`), or a
simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from plumbline.base.units import percent, some
from plumbline.extras.search.bisect.commits import Commits, Term
from plumbline.extras.search.bisect.model import BisectionFindings, Comparison, Culprit, Part, Step
from plumbline.statistics.paired import PairedRule

#: shows a line
Say = Callable[[str], None]
#: commits of a range that may stay undecided before it is given up: the noise that hides one hides its neighbours too
MOST_UNDECIDED = 3


class Compare(Protocol):
    """Compares two commits by a rule; ``again``: by launches of its own, whatever was measured before."""

    def __call__(self, baseline: str, candidate: str, rule: PairedRule, *, again: bool = False) -> Comparison:
        """The result of a gate of the two."""


@dataclass
class Search:
    """A search among ``commits`` for changes of ``series``; ``rule``: the tolerated change, and the one to detect."""

    commits: Commits
    compare: Compare
    rule: PairedRule
    say: Say
    series: Callable[[], str]
    _seen: list[Comparison] = field(default_factory=list)

    def run(self, findings: BisectionFindings, good: str, bad: str) -> None:
        """Add to ``findings`` the commits that make ``bad`` slower than ``good``, and gains that hide a part of it.

        However it ends, ``findings`` has all results by then.
        """
        findings.ends = self._compared(good, bad, self.rule)
        if findings.ends.state != "FAIL":
            return
        todo = [Part(good, bad, True, findings.ends.slower[1])]
        while todo:
            part = todo.pop(0)
            culprit = self._bisected(part, findings)
            if culprit.comparison.state == "PASS":
                culprit = self._repeated(part, findings) or culprit
            findings.culprits.append(culprit)
            self.say(culprit.line)
            for start, end in ((part.good, culprit.before), (culprit.commit, part.bad)):
                if start != end and self.commits.is_after(end, start):
                    todo += self._left(start, end, findings)

    def _repeated(self, part: Part, findings: BisectionFindings) -> Culprit | None:
        """The commit of ``part``, searched for again after a step was misjudged; None if it is not confirmed either.

        A range that was judged early may seem to differ by too much, and then its one step is neither good nor bad.
        """
        self.say("bisect: a step was misjudged, so the range is searched again")
        least = replace(part, size=min(part.size, math.log1p(self.rule.must_detect)))
        culprit = self._bisected(least, findings, again=True)
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
        known = {term: [part.good if term == "good" else part.bad] for term in ("good", "bad")}
        for commit, term in judged:
            known.setdefault(term, []).append(commit)
        after, before = known["bad"][-1], known["good"][-1]
        left = answer.left or tuple(self.commits.between(before, after))
        if len(left) == 1:
            after = left[0]
            before = self.commits.parent(after) or before
        return self._confirmed(part, before, after, left, findings)

    def _step(self, part: Part, commit: str, *, again: bool) -> Step:
        """The mark of ``commit``: by its gate against the good end, or else against the bad one."""
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
        if part.slower:
            return self._compared(start, end, rule or part.rule, again=again)
        return self._compared(end, start, rule or part.rule, again=again).swapped

    def _compared(self, baseline: str, candidate: str, rule: PairedRule, *, again: bool = False) -> Comparison:
        comparison = self.compare(baseline, candidate, rule, again=again)
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

    def _left(self, start: str, end: str, findings: BisectionFindings) -> list[Part]:
        """The range between two commits to search on; none if no change that must be detected is left there.

        A gate that was made before may rule out both; a gain is asked for by a gate of its own where none does.
        """
        most = math.log1p(self.rule.must_detect)
        for earlier in (comparison for seen in self._seen for comparison in (seen, seen.swapped)):
            low, _, high = earlier.slower
            is_pass = (earlier.baseline, earlier.candidate, earlier.state) == (start, end, "PASS")
            if is_pass and -most < low <= high < most:
                findings.rest.append(earlier)
                return []
        self.say(f"\nbisect: what is left between {start[:12]} and {end[:12]}")
        comparison = self._compared(start, end, self.rule)
        low, centre, _ = comparison.slower
        if comparison.state == "PASS" and low <= -most:
            reverse = self._compared(end, start, self.rule).swapped
            if reverse.state != "PASS":
                comparison, centre = reverse, reverse.slower[1]
        findings.rest.append(comparison)
        if comparison.state in ("FAIL", "GAIN"):
            return [Part(start, end, comparison.state == "FAIL", abs(centre))]
        if comparison.state != "PASS":
            between = f"between {start[:12]} and {end[:12]}"
            findings.unknown.append(f"{between} nothing is certain: {comparison.state}: {comparison.reason}")
        return []
