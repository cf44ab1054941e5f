"""The answer of a search: which factors make how much of the difference, as one line, a table, JSON and a page."""

from __future__ import annotations

import itertools
import json
import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plumbline.base.units import counted, percent, signed
from plumbline.extras.search.why.designs import bits
from plumbline.extras.search.why.model import Fixed
from plumbline.extras.search.why.run import WhyOutcome, broken
from plumbline.extras.search.why.search import ACTS, Named
from plumbline.judge.decide import Verdict
from plumbline.judge.disturbed import beside
from plumbline.judge.statement import Statement, nonempty, rounded
from plumbline.records.naming import shorten
from plumbline.show.columns import Column, Table
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, block, section

#: exit status of each kind of answer; 3 is that of what cannot be measured
STATUS = {"explained": 0, "outside": 1, "undecided": 2}
#: causes that are drawn one by one; all others that act are one step
DRAWN = 10
#: characters of a value in the table
_WIDTH = 28
#: why a difference is not set, and what could set it
CAN = {"root only": " (--root can)", "in the stack": " (a part of the stack)"}


@dataclass(frozen=True, kw_only=True)
class Cause(Statement):
    """The verdicts of one factor, or of several that act together.

    ``ratio`` is that of the share: B / A would be so if only this differed. ``before`` and ``after`` are its values.
    ``put_in`` and ``taken_out`` are its effects in A and in B, ``part`` its part of the whole difference with its ends;
    fractions.
    """

    before: str
    after: str
    together: bool = False
    put_in: float | None = None
    taken_out: float | None = None
    part: tuple[float, float, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of it."""
        return {
            "cause": self.subject,
            "state": self.state,
            "a": self.before,
            "b": self.after,
            "rounds": self.count,
            **rounded({"ratio": self.ratio, "interval": self.interval}, 6),
            **nonempty(reason=self.reason),
            **rounded({"put_into_a": self.put_in, "taken_out_of_b": self.taken_out}, 6),
            **({"share": rounded(dict(zip(("value", "low", "high"), self.part, strict=True)), 6)} if self.part else {}),
        }

    @property
    def acts(self) -> bool:
        """Whether it certainly makes a part of the difference."""
        return self.state in ACTS

    @property
    def only_in(self) -> str:
        """The end that it could be tried in, where the other one fails; empty where both were."""
        ends = [name for name, seen in (("A", self.put_in), ("B", self.taken_out)) if seen is not None]
        return ends[0] if len(ends) == 1 else ""


CAUSES = Table[Cause](
    "Causes",
    [
        Column("cause", lambda cause: cause.subject),
        Column("A", lambda cause: shorten(cause.before, _WIDTH)),
        Column("B", lambda cause: shorten(cause.after, _WIDTH)),
        Column("put into A", lambda cause: None if cause.put_in is None else signed(cause.put_in), "number"),
        Column("taken out of B", lambda cause: None if cause.taken_out is None else signed(cause.taken_out), "number"),
        Column("share", lambda cause: cause.part and _percent(cause.part[0]), "number"),
        Column("interval", lambda cause: cause.part and " to ".join(map(_percent, cause.part[1:])), "number"),
        Column("verdict", lambda cause: cause.reason, "notes"),
    ],
)


class Answer:
    """The answer that an outcome gives; ``application`` is the plumb.yaml that was named."""

    def __init__(self, outcome: WhyOutcome, application: Path | None = None) -> None:
        self.application = application
        self.outcome, self.ends = outcome, outcome.request.ends
        self._sign = 1 if outcome.better == "lower" else -1
        attribution = outcome.attribution
        self._log = self._logs((attribution and attribution.whole) or outcome.ends)[0]
        self.causes = claimed([self._cause(named) for named in attribution.named]) if attribution else []
        self.causes.sort(key=lambda cause: -abs(cause.part[0]) if cause.part and cause.acts else math.inf)
        self.acting = [cause for cause in self.causes if cause.acts]

    def _logs(self, verdict: Verdict) -> tuple[float, float, float]:
        """Log ratio and its ends, positive where B is worse than A."""
        low, high = verdict.interval or (1.0, 1.0)
        logs = [self._sign * math.log(value) for value in (verdict.ratio or 1.0, low, high)]
        return logs[0], min(logs[1:]), max(logs[1:])

    def _cause(self, named: Named) -> Cause:
        factors = [self.ends.factors[member] for member in named.members]
        label = factors[0].label if len(factors) == 1 else _together([factor.label for factor in factors])
        before, after = (
            ", ".join("not set" if value is None else value for value in side)
            for side in zip(*((factor.before, factor.after) for factor in factors), strict=True)
        )
        share = named.share
        if share is None:
            alone, whole = bits(named.members), (1 << len(self.ends.factors)) - 1
            every = (self.outcome.reasons.get(configuration) for configuration in (alone, whole ^ alone))
            why = next((f"cannot be tried: {reason}" for reason in every if reason), "not measured: time was up")
            return Cause(label, "INVALID", 0, reason=why, before=before, after=after)
        centre, *bounds = (log / self._log if self._log else 0.0 for log in self._logs(share))
        put_in, taken_out = (
            None if verdict is None or verdict.ratio is None else math.expm1(self._logs(verdict)[0])
            for verdict in (named.put_in, named.taken_out)
        )
        return Cause(
            label, share.state, share.count, share.ratio, share.interval, share.detectable, self._reason(share, named),
            before=before, after=after, together=len(factors) > 1, put_in=put_in, taken_out=taken_out,
            part=(centre, min(bounds), max(bounds)) if self._log else None,
        )  # fmt: skip

    def _reason(self, share: Verdict, named: Named) -> str:
        if len(named.members) > 1:
            return "act together"
        if share.state in ACTS:
            attribution = self.outcome.attribution
            alone = attribution is not None and named.members[0] in attribution.alone
            makes = "makes it slower" if self._logs(share)[0] > 0 else "makes it faster"
            return makes + ("; in A and in B it makes different parts: it acts together with others" if alone else "")
        if share.state == "PASS" and share.detectable is not None:
            return f"makes less than {percent(share.detectable)}"
        return share.reason or f"undecided after {counted(share.count, 'round')}"

    @property
    def kind(self) -> str:
        """One of :data:`STATUS`."""
        if self.outcome.attribution is None:
            return "outside" if self.outcome.ends.state == "PASS" else "undecided"
        if self.acting:
            return "explained"
        open_ones = any(cause.state == "INCONCLUSIVE" for cause in self.causes) or self.outcome.attribution.stopped
        return "undecided" if open_ones else "outside"

    @property
    def remainder(self) -> float | None:
        """The part of the difference that no named factor makes; None where none is named."""
        parts = [cause.part[0] for cause in self.acting if cause.part]
        return 1 - sum(parts) if parts else None

    def closing(self) -> str:
        """The answer in one line."""
        outcome, request = self.outcome, self.outcome.request
        subject = f"{request.ends.first.name}: {outcome.figure}"
        if outcome.attribution is None:
            return f"why: {subject}: {self._not_reproduced()}"
        slower = "slower" if self._log > 0 else "faster"
        whole = f"why: {subject}: B is {slower} by {percent(math.expm1(abs(self._log)))}"
        if self.kind == "outside":
            return f"{whole}, and nothing that could be set explains it{self._cannot()}"
        if self.kind == "undecided":
            return f"{whole}, and no factor is certain yet; more rounds: plumb why --resume{self._cannot()}"
        named = [self._part(cause, first=not place) for place, cause in enumerate(self.acting)]
        low, high = (1 - sum(cause.part[end] for cause in self.acting if cause.part) for end in (2, 1))
        if self.remainder is not None and not low <= 0 <= high:  # more than the intervals of the causes allow
            named.append(f"{_percent(self.remainder)} of it is not explained")
        return "; ".join([whole, *named])

    def _part(self, cause: Cause, first: bool) -> str:
        value, low, high = cause.part or (0.0, 0.0, 0.0)
        if not first:
            return f"{cause.subject} {_percent(value)}"
        verb = "explain" if cause.together else "explains"
        values = f"{shorten(cause.before, _WIDTH)} → {shorten(cause.after, _WIDTH)}"
        return f"{cause.subject} ({values}) {verb} {_percent(value)} of it ({_percent(low)} to {_percent(high)})"

    def _not_reproduced(self) -> str:
        ends = self.outcome.ends
        hit = [launch for launch in self.outcome.launches if launch.disturbed]
        if ends.state == "INVALID" and 2 * len(hit) > len(self.outcome.launches):
            often = f"{len(hit)} of {counted(len(self.outcome.launches), 'launch')} were disturbed"
            return f"this host cannot decide now: {'; '.join(filter(None, (often, beside(hit))))}"
        if ends.state != "PASS":
            return f"whether B differs from A is not certain yet: {ends.explanation}"
        seen = f"slowdowns of {ends.ruled_out} and more are ruled out"
        return (
            f"B is not slower than A when both run here and now ({seen}): the difference is not in what can be set"
            + self._cannot()
        )

    def _cannot(self) -> str:
        fixed = [_changed(difference) for difference in self.ends.fixed if difference.why != "in the stack"]
        more = f" and {len(fixed) - 4} more" if len(fixed) > 4 else ""
        return f"; what differed and is not set here: {', '.join(fixed[:4])}{more}" if fixed else ""

    @property
    def bisection(self) -> list[str]:
        """The command that finds the commit, where the code makes a part of the difference; no line without one."""
        attribution, both = self.outcome.attribution, [self.ends.first, self.ends.second][:: 1 if self._log > 0 else -1]
        acting = {place for named in attribution.named if named.acts for place in named.members} if attribution else ()
        every = (end.application.commit if end.application else end.stack.partition("@")[2] for end in both)
        commits = [commit for commit in every if commit]
        if len(commits) < len(both) or not any(self.ends.factors[place].kind == "code" for place in acting):
            return []
        named = ["--application", str(self.application)] if self.application and both[0].application else []
        where = ["--stack", both[0].stack.partition("@")[0], "--test", f"{re.escape(both[0].test)}(%|$)", *named]
        return [f"to find the commit: {shlex.join(['plumb', 'bisect', *commits, *where])}"]

    def text(self) -> str:
        """The table, how it was measured, and what cannot be set."""
        shown = [CAUSES.text(self.causes), ""] if self.outcome.attribution else []
        return "\n".join([*shown, *self.notes()])

    def notes(self) -> list[str]:
        """Notes on the search for its reader."""
        outcome = self.outcome
        launches = outcome.launches
        disturbed = sum(launch.disturbed and not launch.superseded for launch in launches)
        design = f"; {outcome.attribution.design}" if outcome.attribution else ""
        lines = [f"{counted(len(launches), 'launch')}, {disturbed} of those that count disturbed{design}"]
        lines += [f"could not be started: {line}" for line in broken(outcome)]
        if outcome.attribution and outcome.attribution.stopped:
            lines.append("time was up: plumb why --resume FOLDER goes on")
        lines += [
            f"differs, and was not set alone: {_changed(difference)}{CAN.get(difference.why, '')}"
            for difference in self.ends.fixed
        ]
        others = ", ".join(f"{verdict.subject.rpartition(': ')[2]} ({verdict.ratio:.3g})" for verdict in outcome.others)
        lines += self.bisection
        return [*lines, *([f"other figures that differ (B / A): {others}"] if others else [])]

    def json(self) -> str:
        """All of it as JSON."""
        outcome = self.outcome
        document = {
            "answer": self.kind,
            "line": self.closing(),
            "a": outcome.request.ends.labels[0],
            "b": outcome.request.ends.labels[1],
            "test": outcome.request.ends.first.name,
            "figure": outcome.figure,
            "ends": outcome.ends.to_dict(),
            "causes": [cause.to_dict() for cause in self.causes],
            "not_explained": rounded(self.remainder, 6),
            "not_set": [
                {"key": difference.key, "a": difference.before, "b": difference.after, "why": difference.why}
                for difference in self.ends.fixed
            ],
            "failed": list(broken(outcome)),
            "design": outcome.attribution.design if outcome.attribution else None,
            "launches": len(outcome.launches),
            "session": outcome.request.session,
            "seed": outcome.request.seed,
        }
        return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def markdown(self) -> str:
        """The line, the table and the notes for a merge request."""
        shown = [CAUSES.markdown(self.causes), ""] if self.causes else []
        return "\n".join([f"**{self.closing()}**", "", *shown, *(f"- {note}" for note in self.notes())]) + "\n"


def claimed(causes: Sequence[Cause]) -> list[Cause]:
    """``causes``, of which those are open that make more than the whole with the larger ones, and failed in one end.

    What such a cause makes was seen in one mixture of both ends, and may need that: a library that is loaded twice.
    """
    kept, explained = [], 0.0
    for cause in sorted(causes, key=lambda cause: (cause.only_in != "", -cause.part[0] if cause.part else 0.0)):
        value, low, _ = cause.part if cause.acts and cause.part else (0.0, 0.0, 0.0)
        if cause.only_in and low > 0 and explained + low > 1:
            why = f"tried in {cause.only_in} only, where it makes more than the others leave: open"
            kept.append(replace(cause, state="INCONCLUSIVE", reason=why, part=None))
        else:
            explained += value
            kept.append(cause)
    return kept


def _together(labels: Sequence[str]) -> str:
    """``variables MODE and CHECKS``; of different kinds ``placement with variable MODE``."""
    kinds = {label.partition(" ")[0] for label in labels}
    names = [label.partition(" ")[2] for label in labels]
    if len(kinds) == 1 and all(names):
        return f"{kinds.pop()}s {', '.join(names[:-1])} and {names[-1]}"
    return " with ".join(labels)


def _changed(difference: Fixed) -> str:
    return f"{difference.key} {shorten(difference.before, _WIDTH)} → {shorten(difference.after, _WIDTH)}"


def _percent(fraction: float) -> str:
    return f"{round(100 * fraction)} %"


def page(answer: Answer) -> dict[str, Any]:
    """The page: the difference as a waterfall of what each cause makes, the table, and what was measured."""
    outcome = answer.outcome
    facts = [
        ("A", outcome.request.ends.labels[0]),
        ("B", outcome.request.ends.labels[1]),
        ("test", outcome.request.ends.first.name),
        ("figure", f"{outcome.figure}, {outcome.better} is better"),
        ("site", outcome.request.ends.first.site),
    ]
    drawn = [cause for cause in answer.causes if cause.part]
    return {
        "title": "Why B differs from A",
        "heading": ["Why B differs from A"],
        "head": [blocks.facts("What was compared", facts), block("paragraph", answer.closing(), id="closing")],
        "sections": [
            section(
                "causes",
                "Causes",
                "Each difference was put into A alone, and taken out of B alone. Its share is the mean of both, as a "
                "part of the whole difference; the interval is right with 98 %.",
                bool(drawn) and _waterfall(answer, drawn),
                CAUSES.block(answer.causes),
                otherwise="The ends do not differ for certain, so no cause was looked for.",
            ),
            section("notes", "How it was measured", "", block("bullets", *answer.notes())),
        ],
    }


def _waterfall(answer: Answer, causes: Sequence[Cause]) -> Block:
    """From A to B: each cause that acts begins where the one before it ended."""
    acting = [cause for cause in causes if cause.acts][:DRAWN]
    ends = [0.0, *itertools.accumulate([100 * (cause.part or (0.0,))[0] for cause in acting])]
    steps = [(cause.subject, *both) for cause, both in zip(acting, itertools.pairwise(ends), strict=True)]
    steps += [("not explained", ends[-1], 100.0), ("B", 0.0, 100.0)]
    names = [name for name, _, _ in steps][::-1]
    low, high = min(0.0, *ends), max(100.0, *ends)
    return blocks.chart(
        "From A to B",
        "What each cause makes of the difference, in percent of it; each begins where the one before it ended.",
        ["cause", blocks.number("part of the difference", "%")],
        [(name, f"{end - start:.1f}") for name, start, end in steps],
        series=[
            blocks.series(
                "part",
                None,
                [(row, end, names.index(name), f"{end - start:.1f} %") for row, (name, start, end) in enumerate(steps)],
                bars=[(names.index(name), start, end) for name, start, end in steps],
                look={"type": "scatter", "symbolSize": 9},
            )
        ],
        height=90 + 30 * len(steps),
        wide=280,
        x={"name": "part of the difference in %", "type": "value", "min": low, "max": 1.04 * high, "boundaryGap": 0},
        y={"min": -0.5, "max": len(names) - 0.5, "interval": 1, "ticks": list(enumerate(names))},
    )
