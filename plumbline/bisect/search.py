"""The search: git says which commit is next, a gate says what it is, and what is left on both sides is looked at.

It works on comparisons alone, whoever makes them: a live gate (:mod:`plumbline.bisect.bench`), or a simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from plumbline.base.units import percent, some
from plumbline.bisect.commits import Commits, Term
from plumbline.bisect.model import Comparison, Culprit, Found, Part, Step
from plumbline.statistics.paired import Rule

#: shows a line
Say = Callable[[str], None]
#: commits of a range that may stay undecided before it is given up: the noise that hides one hides its neighbours too
MOST_UNDECIDED = 3


class Compare(Protocol):
    """Compares two commits by a rule; ``again``: by launches of its own, whatever was measured before."""

    def __call__(self, baseline: str, candidate: str, rule: Rule, *, again: bool = False) -> Comparison:
        """What a gate of the two says."""


@dataclass
class Search:
    """A search among ``commits`` for what changes ``series``; ``rule``: what is tolerated, and what must be found."""

    commits: Commits
    compare: Compare
    rule: Rule
    say: Say
    series: Callable[[], str]
    _seen: list[Comparison] = field(default_factory=list)

    def run(self, found: Found, good: str, bad: str) -> None:
        """Add to ``found`` what makes ``bad`` slower than ``good``, and the gains between them that hide a part of it.

        Whatever ends it, ``found`` has what is known by then.
        """
        found.ends = self._compared(good, bad, self.rule)
        if found.ends.state != "FAIL":
            return
        todo = [Part(good, bad, True, found.ends.slower[1])]
        while todo:
            part = todo.pop(0)
            culprit = self._bisected(part, found)
            if culprit.comparison.state == "PASS":
                culprit = self._repeated(part, found) or culprit
            found.culprits.append(culprit)
            self.say(culprit.line)
            for start, end in ((part.good, culprit.before), (culprit.commit, part.bad)):
                if start != end and self.commits.is_after(end, start):
                    todo += self._left(start, end, found)

    def _repeated(self, part: Part, found: Found) -> Culprit | None:
        """The commit of ``part``, searched for again after a step was misjudged; None if it is not confirmed either.

        A range that was judged early may seem to differ by too much, and then its one step is neither good nor bad.
        """
        self.say("bisect: a step was misjudged, so the range is searched again")
        least = replace(part, size=min(part.size, math.log1p(self.rule.must_detect)))
        culprit = self._bisected(least, found, again=True)
        return culprit if culprit.is_confirmed else None

    def _bisected(self, part: Part, found: Found, *, again: bool = False) -> Culprit:
        """The commit of ``part`` from which on it is bad, compared with its parent; ``again``: by gates of its own."""
        judged: list[tuple[str, Term]] = []
        undecided = 0
        found.logs.append("")
        while True:
            said = self.commits.ask(part.good, part.bad, judged)
            found.logs[-1] = said.log
            if said.commit is None or undecided == MOST_UNDECIDED:
                break
            self.say(f"\nbisect: step {len(judged) + 1}: {self.commits.label(said.commit)}; {part.rule}")
            step = self._step(part, said.commit, again=again)
            found.steps.append(step)
            judged.append((step.commit, step.term))
            undecided += step.term == "skip" and not step.comparisons[-1].unusable
            self.say(f"bisect: {said.commit[:12]} is {step.term}{f': {step.why}' if step.why else ''}")
        known = {term: [part.good if term == "good" else part.bad] for term in ("good", "bad")}
        for commit, term in judged:
            known.setdefault(term, []).append(commit)
        after, before = known["bad"][-1], known["good"][-1]
        left = said.left or tuple(self.commits.between(before, after))
        if len(left) == 1:
            after = left[0]
            before = self.commits.parent(after) or before
        return self._confirmed(part, before, after, left, found)

    def _step(self, part: Part, commit: str, *, again: bool) -> Step:
        """What ``commit`` is: by its gate against the good end, or else against the bad one."""
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
        self, part: Part, start: str, end: str, rule: Rule | None = None, *, again: bool = False
    ) -> Comparison:
        """``end`` against ``start``, where the change of ``part`` is what the gate looks for."""
        if part.slower:
            return self._compared(start, end, rule or part.rule, again=again)
        return self._compared(end, start, rule or part.rule, again=again).swapped

    def _compared(self, baseline: str, candidate: str, rule: Rule, *, again: bool = False) -> Comparison:
        made = self.compare(baseline, candidate, rule, again=again)
        self._seen.append(made)
        return made

    def _confirmed(self, part: Part, before: str, after: str, left: tuple[str, ...], found: Found) -> Culprit:
        """The gate of what was found against what is before it, by the margins that hold for the whole.

        Where it finds nothing, it contradicts the gates of the search: then a second one has the last word. Another
        commit is named only if the search erred before, and one of the two errs too.
        """
        if len(left) == 1:
            self.say(f"\nbisect: {self.commits.label(after)} against its parent")
        said = self._changed(part, before, after, self.rule)
        if said.state == "PASS":
            self.say("bisect: that contradicts the search, so it is measured again")
            other = self._changed(part, before, after, self.rule, again=True)
            said = other if other.state == part.state else said
        is_it = said.state == part.state
        why = None if is_it else said.reason or f"no change of {percent(self.rule.must_detect)} or more"
        skipped = [step for step in found.steps if step.part == part and step.commit in left and step.why]
        return Culprit(
            some([self.commits.label(one) for one in left]),
            said.state if is_it else "INCONCLUSIVE",
            said.pairs,
            said.ratio,
            said.interval,
            said.detectable,
            why,
            tuple(f"{step.commit[:12]} is skipped: {step.why}" for step in skipped),
            series=self.series(),
            part=part,
            before=before,
            candidates=left,
            comparison=said,
        )

    def _left(self, start: str, end: str, found: Found) -> list[Part]:
        """What is left between two commits: a range in which to search on, or nothing that must be found.

        A gate that was made before may rule out both; a gain is asked for by a gate of its own where none does.
        """
        most = math.log1p(self.rule.must_detect)
        for made in (one for seen in self._seen for one in (seen, seen.swapped)):
            low, _, high = made.slower
            if (made.baseline, made.candidate, made.state) == (start, end, "PASS") and -most < low <= high < most:
                found.rest.append(made)
                return []
        self.say(f"\nbisect: what is left between {start[:12]} and {end[:12]}")
        said = self._compared(start, end, self.rule)
        low, centre, _ = said.slower
        if said.state == "PASS" and low <= -most:
            other = self._compared(end, start, self.rule).swapped
            if other.state != "PASS":
                said, centre = other, other.slower[1]
        found.rest.append(said)
        if said.state in ("FAIL", "GAIN"):
            return [Part(start, end, said.state == "FAIL", abs(centre))]
        if said.state != "PASS":
            between = f"between {start[:12]} and {end[:12]}"
            found.unknown.append(f"{between} nothing is certain: {said.state}: {said.reason}")
        return []
