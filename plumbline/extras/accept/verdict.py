"""The verdict on each clause: pass, fail or unknown, why, and the measurements that would decide it."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from plumbline.base.units import counted, some
from plumbline.extras.accept import evidence
from plumbline.extras.accept.evidence import Evidence, Member
from plumbline.extras.accept.model import Clause, Contract
from plumbline.judge.statement import Statement, nonempty, overall, rounded
from plumbline.records.model import Record
from plumbline.statistics import acceptance
from plumbline.statistics.acceptance import AcceptanceRule

#: the words of a contract for the verdicts of the project, from best to worst
WORDS = {"PASS": "pass", "INCONCLUSIVE": "unknown", "FAIL": "fail", "INVALID": "invalid"}
SHOWN, MISSED, OPEN = "shown", "missed", "open"


@dataclass(frozen=True)
class Part:
    """The result of a member: it was ``shown`` to meet the limit, it ``missed`` it, or that is ``open``.

    ``met`` of ``count`` launches of its last test met the limit, in which ``lacking`` are to be measured. Whether
    ``hidden`` of them do, the digits that were printed do not say. ``again``: it may be tested again. ``bound``: the
    best limit that one of its tests shows it to meet.
    """

    name: str
    state: str
    met: int
    count: int
    lacking: int
    again: bool = False
    bound: float | None = None
    left_out: str = ""
    hidden: int = 0

    @property
    def line(self) -> str:
        """Such as ``n3: 4 of 5 launches meet the limit``; of one that was not measured its name, and why."""
        if not self.count:
            return f"{self.name} ({self.left_out})" if self.left_out else self.name
        lacking = f", {self.lacking} to be measured" if self.lacking else ""
        left_out = f" ({self.left_out})" if self.left_out and self.lacking else ""
        return f"{self.name}: {self.met} of {counted(self.count, 'launch')} meet the limit{lacking}{left_out}"


@dataclass(frozen=True, kw_only=True)
class Judged(Statement):
    """A clause with its evidence: ``count`` is how many launches count.

    ``members``: how many the machine has, of which ``unmeasured`` were not measured; ``parts``: those that were, and
    those that are known by name. ``bound``: the best limit that the machine would have passed with, ``usual`` the
    median of the members' medians.
    """

    clause: Clause
    measured: Evidence
    members: int
    parts: Sequence[Part] = ()
    unmeasured: int = 0
    bound: float | None = None
    usual: float | None = None

    @property
    def word(self) -> str:
        """Its state, as contracts call it."""
        return WORDS[self.state]

    @property
    def again(self) -> list[str]:
        """The members that may be tested again."""
        return [part.name for part in self.parts if part.again]

    def of(self, state: str) -> list[str]:
        """The members in this state."""
        return [part.name for part in self.parts if part.state == state]

    def to_dict(self) -> dict[str, object]:
        """The JSON object of it."""
        return {
            "clause": self.subject,
            "verdict": self.word,
            "promise": self.clause.promise,
            "over": self.clause.over,
            "unit": self.clause.unit,
            "launches": self.count,
            "shown": len(self.of(SHOWN)),
            "bound": rounded(self.bound, 6),
            "usual": rounded(self.usual, 6),
            **nonempty(
                missed=self.of(MISSED),
                open=[part.line for part in self.parts if part.state == OPEN and part.count],
                absent=[part.line for part in self.parts if not part.count],
                unmeasured=self.unmeasured,
                again=self.again,
                reason=self.reason,
                notes=list(self.notes),
                records=list(self.measured.records),
            ),
        }


def judge(contract: Contract, records: Sequence[Record], nodes: Sequence[str] = ()) -> list[Judged]:
    """A verdict on each clause; ``nodes`` are the machine's by name, where the contract has a number alone."""
    known = contract.names or nodes
    return [
        of_evidence(clause, contract, evidence.of_clause(clause, contract, records), known)
        for clause in contract.clauses
    ]


def of_evidence(clause: Clause, contract: Contract, measured: Evidence, nodes: Sequence[str] = ()) -> Judged:
    """The verdict on one clause."""
    rule, higher = clause.rule(contract.node_count), clause.better == "higher"
    known = evidence.names_of(clause, nodes) if len(nodes) == contract.node_count else []
    members = {**{name: Member(name) for name in known}, **measured.members}
    count = sum(len(member.values) for member in members.values())
    if len(members) > rule.members:  # nobody says which of them are the machine's
        reason = f"{len(members)} members were measured, the contract has {rule.members}: name its nodes there"
        return Judged(
            clause.name, "INVALID", count, reason=reason, clause=clause, measured=measured, members=rule.members
        )
    parts = [_test(member, 0, clause, rule) for member in members.values()]
    failed = [part.name for part in parts if part.state != SHOWN and not part.lacking]
    if len(failed) <= clause.again(contract.node_count):
        parts = [_again(members[part.name], part, clause, rule) if part.name in failed else part for part in parts]
    medians = [statistics.median(member.values) for member in members.values() if member.values]
    judged = Judged(
        clause.name,
        _state(parts, rule),
        count,
        notes=tuple(_notes(measured, failed, parts)),
        clause=clause,
        measured=measured,
        members=rule.members,
        parts=parts,
        unmeasured=rule.members - len(medians),
        bound=acceptance.shown([part.bound for part in parts if part.bound is not None], rule, higher),
        usual=statistics.median(medians) if medians else None,
    )
    return replace(judged, reason=_reason(judged, rule))


def _test(member: Member, number: int, clause: Clause, rule: AcceptanceRule) -> Part:
    """The result of a member in the test of this number; further launches are of no test."""
    higher = clause.better == "higher"
    values = member.values[number * rule.launches :][: rule.launches]
    lowest, highest = ([value + sign * member.half for value in values] for sign in (-1, 1))
    worst_ends, best_ends = (lowest, highest) if higher else (highest, lowest)
    met, possible = (
        sum(value >= clause.limit if higher else value <= clause.limit for value in ends)
        for ends in (worst_ends, best_ends)
    )
    needed = rule.meeting or rule.launches + 1
    state = SHOWN if met >= needed else MISSED if len(values) - possible >= rule.missing else OPEN
    lacking = rule.launches - len(values) if state == OPEN else 0
    left_out = ", ".join(f"{counted(often, 'launch')} {why}" for why, often in sorted(member.left_out.items()))
    bound = acceptance.bound(worst_ends, rule, higher)
    return Part(member.name, state, met, len(values), lacking, bound=bound, left_out=left_out, hidden=possible - met)


def _again(member: Member, first: Part, clause: Clause, rule: AcceptanceRule) -> Part:
    """The result of the last test of a member that was not shown in the ``first``."""
    last, number = first, 1
    while number <= rule.retests and last.state != SHOWN:
        part = _test(member, number, clause, rule)
        if not part.count:
            return replace(last, again=True)
        bounds = [bound for bound in (last.bound, part.bound) if bound is not None]
        best = (max if clause.better == "higher" else min)(bounds, default=None)
        last, number = replace(part, bound=best), number + 1
    return last


def _state(parts: Sequence[Part], rule: AcceptanceRule) -> str:
    if sum(part.state == SHOWN for part in parts) >= rule.members - rule.allowed:
        return "PASS"
    missed = sum(part.state == MISSED and not part.again for part in parts)
    return "FAIL" if rule.failing is not None and missed >= rule.failing else "INCONCLUSIVE"


def _reason(judged: Judged, rule: AcceptanceRule) -> str:
    """The reason of the verdict, and for ``unknown`` the measurements that would decide it."""
    shown, missed = judged.of(SHOWN), [part for part in judged.parts if part.state == MISSED]
    summary = f"{len(shown)} of {rule.members} shown"
    if judged.state == "PASS":
        return f"{summary}, {rule.members - rule.allowed} needed"
    if judged.state == "FAIL":
        misses = missed[0].line if len(missed) == 1 else f"{len(missed)} miss the limit: {some(judged.of(MISSED))}"
        return f"{summary}; {misses}"
    lacking = [part.line for part in judged.parts if part.lacking and part.count]
    absent = [part.line for part in judged.parts if not part.count]
    reasons = []
    if judged.unmeasured:
        named = f": {some(absent)}" if len(absent) == judged.unmeasured else ", which the contract does not name"
        reasons.append(f"{judged.unmeasured} not measured{named}")
    reasons += [some(lacking)] if lacking else []
    if reasons:
        reasons[-1] += ": plumb accept CONTRACT measures what is missing"
    measured = [part for part in judged.parts if part.state != SHOWN and part.count and not part.lacking]
    if judged.again:
        reasons.append(f"{some(judged.again)} may be tested again: plumb accept CONTRACT --retest")
    elif measured:
        deciding = [rule.deciding(part.met, part.count) for part in measured]
        needed = None if None in deciding else max(filter(None, deciding))
        cure = "more launches are unlikely to" if needed is None else f"a contract of about {needed} launches would"
        if any(part.hidden for part in measured):
            half = max(member.half for member in judged.measured.members.values())
            cure = f"they were printed to within {half:g} {judged.clause.unit} of the limit: print more digits"
        reasons.append(f"{some([part.line for part in measured])}, which decides nothing: {cure}")
    return "; ".join([summary, *reasons])


def _notes(measured: Evidence, failed: Sequence[str], parts: Sequence[Part]) -> Iterator[str]:
    if measured.foreign:
        yield f"not of the contract: {some(measured.foreign)}"
    if len(measured.stacks) > 1:
        yield f"measured with several states of the stack: {', '.join(measured.stacks)}"
    if measured.unsealed:
        yield f"{counted(measured.unsealed, 'record')} of earlier versions without a seal"
    if again := [part.name for part in parts if part.name in failed and part.state == SHOWN]:
        yield f"shown in a retest: {some(again)}"


def closing(judged: Sequence[Judged]) -> str:
    """The line that ends an acceptance test."""
    state = overall(judged)
    counts = Counter(verdict.word for verdict in judged)
    numbers = ", ".join(f"{counts[word]} {word}" for word in WORDS.values() if counts[word])
    line = f"accept: {WORDS[state]}: {counted(len(judged), 'clause')}: {numbers}"
    first = next(verdict for verdict in judged if verdict.state == state)
    return line if state == "PASS" else f"{line}; {first.subject}: {first.reason}"
