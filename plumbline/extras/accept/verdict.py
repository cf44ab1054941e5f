"""The verdict on each clause: pass, fail or unknown, why, and the measurements that would decide it.

Its evidence are the launches in records of each member that count, and why others do not.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from plumbline.base import group, paths, units
from plumbline.base.errors import PlumbError
from plumbline.base.units import Better, counted, some
from plumbline.extras.accept.model import LINK, MACHINE, NODE, Clause, Contract, Value
from plumbline.judge import samples
from plumbline.judge.members import BETWEEN
from plumbline.judge.references import match
from plumbline.judge.statement import Statement, nonempty, overall, rounded
from plumbline.parsers.measurement import Measurement, step_of
from plumbline.records import query
from plumbline.records.launch import Launch
from plumbline.records.model import AnyRecord, Record
from plumbline.records.query import Selection
from plumbline.records.store import Damage
from plumbline.records.variant import Variant, WantedFigure
from plumbline.statistics import acceptance
from plumbline.statistics.acceptance import AcceptanceRule

#: why launches do not count
DISTURBED, UNVERIFIED, LACKING = "disturbed", "not verified", "without the figure"
WHOLE = "the machine"


@dataclass
class Member:
    """A node, a link or the machine.

    ``values`` are those of its launches that count, in the order measured, each of which may be off by ``half`` a step
    of what the benchmark prints; ``left_out``: how many others there are, by the reason. ``every``: the values of
    disturbed ones too, each with whether it is of one.
    """

    name: str
    values: list[float] = field(default_factory=list)
    half: float = 0.0
    left_out: Counter[str] = field(default_factory=Counter)
    every: list[tuple[float, bool]] = field(default_factory=list)


@dataclass(frozen=True)
class Evidence:
    """The measurements for a clause.

    ``foreign``: nodes that are not of the contract; ``unsealed``: records without a seal. ``spread``: standard
    deviation of launches around their member, as a fraction; ``seconds``: the median time of a launch; both are None
    where nothing was measured.
    """

    members: dict[str, Member]
    records: Sequence[str]
    stacks: Sequence[str]
    foreign: Sequence[str]
    unsealed: int
    spread: float | None
    seconds: float | None


def wanted(contract: Contract, record: AnyRecord) -> bool:
    """Whether a record is of one of the clauses."""
    return any(_is_of(clause, contract, record) for clause in contract.clauses)


def find(contract: Contract, where: Selection) -> tuple[list[Record], list[Damage]]:
    """The whole records of all clauses, oldest first, and the damaged ones."""
    return query.collect(lambda record: record if wanted(contract, record) else None, where)


def _is_of(clause: Clause, contract: Contract, record: AnyRecord) -> bool:
    return (
        is_asked(clause, record.variant)
        and record.stack.name == clause.stack
        and contract.partition in (None, record.partition)
        and not record.is_imported
        and not record.is_profiled
    )


def is_asked(clause: Clause, variant: Variant) -> bool:
    """Whether a variant is of the test of a clause and has its params."""
    return variant.test == clause.test and _has(variant.params, clause.params)


def _has(params: Mapping[str, Value], required: Mapping[str, Value]) -> bool:
    return all(name in params and str(params[name]) == str(value) for name, value in required.items())


def of_clause(clause: Clause, contract: Contract, records: Iterable[Record]) -> Evidence:
    """The evidence of ``records`` for ``clause``.

    Raises :class:`PlumbError` where they are of several variants, partitions or sites, or the clause has another unit
    or direction than its figure.
    """
    named = set(contract.names)
    mine = [
        (record, {*record.nodes} - named if named else set[str]())
        for record in records
        if _is_of(clause, contract, record)
    ]
    foreign = {node for _, others in mine for node in others}
    used = [record for record, others in mine if not others and _fits(clause, contract, record)]
    _require_one(clause, "variants", "params", {record.variant.name for record in used})
    _require_one(clause, "systems", "--site, or partition", {f"{record.site}:{record.partition}" for record in used})
    launches = [launch for record in used for launch in _launches(clause, record)]
    by_unit = group((item.unit, item) for _, item, _ in launches if item)
    half = max((step_of(items) / 2 * clause.factor(unit) for unit, items in by_unit.items()), default=0.0)
    of_members = group(
        (name, (item.value * clause.factor(item.unit) if item else None, why)) for name, item, why in launches
    )
    members = {
        name: Member(
            name,
            values=[value for value, why in each if value is not None and not why],
            half=half,
            left_out=Counter(why for _, why in each if why),
            every=[(value, bool(why)) for value, why in each if value is not None],
        )
        for name, each in of_members.items()
    }
    seconds = [launch.wall_s for record in used for launch in record.launches]
    return Evidence(
        members,
        [record.id for record in used],
        sorted({f"{record.stack.name} {record.stack.sha256[:12]}" for record in used}),
        sorted(foreign),
        sum(record.seal is None for record in used),
        _spread(members.values()),
        sorted(seconds)[len(seconds) // 2] if seconds else None,
    )


def _require_one(clause: Clause, kind: str, where: str, names: set[str]) -> None:
    if len(names) > 1:
        raise PlumbError(
            f"clause {clause.name}: records of several {kind}", where, f"choose: {', '.join(sorted(names))}"
        )


def _fits(clause: Clause, contract: Contract, record: Record) -> bool:
    nodes = len(record.nodes)
    return {MACHINE: nodes == contract.node_count, NODE: nodes == 1, LINK: nodes > 1}[clause.over]


def _launches(clause: Clause, record: Record) -> Iterator[tuple[str, Measurement | None, str]]:
    """Of each launch each member, its measurement if it has one, and why the launch does not count (empty: it does)."""
    names = names_of(clause, record.nodes)
    wanted = None if clause.over == LINK else _figure(clause, record)
    for launch in record.counting():
        measured = _links(clause, launch) if wanted is None else {names[0]: launch.find(wanted)}
        for name in names:
            item = measured.get(name)
            if not record.is_valid or not launch.verified:
                yield name, None, UNVERIFIED
            elif item is None or not math.isfinite(item.value):
                yield name, None, DISTURBED if launch.disturbed else LACKING
            else:
                _require_direction(clause, item.better)
                yield name, item, DISTURBED if launch.disturbed else ""


def _figure(clause: Clause, record: Record) -> WantedFigure:
    """The figure of a clause in the launches of a record."""
    if clause.where:
        return WantedFigure(name=clause.figure, metric=clause.figure, where=clause.where)
    known = {figure.name: figure for figure in record.variant.figures}
    if clause.figure not in known:
        raise PlumbError(
            f"clause {clause.name}: {record.variant.test} has no figure {clause.figure}",
            record.id,
            f"it has {', '.join(known)}",
        )
    return known[clause.figure]


def _links(clause: Clause, launch: Launch) -> dict[str, Measurement | None]:
    """The worse of the two directions of each link in a launch of a matrix."""
    worse = max if clause.better == "lower" else min
    links = group(
        (link, item)
        for item in launch.measurements
        if item.metric == clause.figure and _has(item.params, clause.where) and (link := samples.node_link(item))
    )
    return {name: worse(items, key=lambda item: item.value) for name, items in links.items()}


def names_of(clause: Clause, nodes: Sequence[str]) -> list[str]:
    """The members of a machine with these nodes, by name."""
    if clause.over == LINK:
        return [BETWEEN.join(ends) for ends in combinations(sorted(nodes), 2)]
    return list(nodes) if clause.over == NODE else [WHOLE]


def _require_direction(clause: Clause, better: Better) -> None:
    if better != clause.better:
        write = "at_least" if better == "higher" else "at_most"
        raise PlumbError(f"clause {clause.name}: of {clause.figure}, {better} is better", "its limit", f"write {write}")


def _spread(members: Iterable[Member]) -> float | None:
    logs = [
        [math.log(value / sorted(member.values)[len(member.values) // 2]) for value in member.values]
        for member in members
        if len(member.values) > 1 and min(member.values) > 0
    ]
    squares = sum(value * value for row in logs for value in row)
    return math.sqrt(squares / sum(len(row) - 1 for row in logs)) if logs else None


def contradictions(contract: Contract, rows: Iterable[AnyRecord]) -> Iterator[str]:
    """``KEY: WHAT`` for units and directions that figures of records, or of references, do not have."""
    files = sorted(paths.sites().glob("*/references/*.yaml"))
    known = {
        **{(row.variant.test, figure.name): (figure.unit, figure.better) for row in rows for figure in row.figures},
        **{(of.test, of.figure): (of.unit, of.better) for file in files for of in match.read(file).references},
    }
    for place, clause in enumerate(contract.clauses):
        if (recorded := known.get((clause.test, clause.figure))) and not clause.where and clause.over != LINK:
            unit, better = recorded
            try:
                clause.factor(unit)
                _require_direction(clause, better)
            except PlumbError as error:
                key = "unit" if "is in" in error.message else "at_least"
                yield f"clauses[{place}].{key}: {error.message}: {error.cure}"


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
    return [of_evidence(clause, contract, of_clause(clause, contract, records), known) for clause in contract.clauses]


def of_evidence(clause: Clause, contract: Contract, measured: Evidence, nodes: Sequence[str] = ()) -> Judged:
    """The verdict on one clause."""
    rule, higher = clause.rule(contract.node_count), clause.better == "higher"
    known = names_of(clause, nodes) if len(nodes) == contract.node_count else []
    members = {**{name: Member(name) for name in known}, **measured.members}
    rules = {name: _rule_of(member, clause, rule) for name, member in members.items()}
    of_all = {
        name: replace(member, values=[value for value, _ in member.every[: rule.launches]])
        for name, member in members.items()
        if rules[name] is not rule
    }
    beside = [name for name, member in of_all.items() if _test(member, 0, clause, rules[name]).state == SHOWN]
    members |= {name: of_all[name] for name in beside}
    count = sum(len(member.values) for member in members.values())
    if len(members) > rule.members:  # nobody says which of them are the machine's
        reason = f"{len(members)} members were measured, the contract has {rule.members}: name its nodes there"
        return Judged(
            clause.name, "INVALID", count, reason=reason, clause=clause, measured=measured, members=rule.members
        )
    parts = [_test(member, 0, clause, rules[member.name]) for member in members.values()]
    failed = [part.name for part in parts if part.state != SHOWN and not part.lacking]
    if len(failed) <= clause.again(contract.node_count):
        parts = [
            _again(members[part.name], part, clause, rules[part.name]) if part.name in failed else part
            for part in parts
        ]
    medians = [statistics.median(member.values) for member in members.values() if member.values]
    judged = Judged(
        clause.name,
        _state(parts, rule),
        count,
        notes=tuple(_notes(measured, failed, parts, beside)),
        clause=clause,
        measured=measured,
        members=rule.members,
        parts=parts,
        unmeasured=rule.members - len(medians),
        bound=acceptance.shown([part.bound for part in parts if part.bound is not None], rule, higher),
        usual=statistics.median(medians) if medians else None,
    )
    return replace(judged, reason=_reason(judged, rule))


def _rule_of(member: Member, clause: Clause, rule: AcceptanceRule) -> AcceptanceRule:
    """The rule for a member: one chance more where most of its first launches were disturbed and it is judged twice.

    Disturbance makes slower, so these launches may show that it meets the limit, never that it misses it. Whether they
    are judged depends on their causes alone.
    """
    disturbed = sum(is_disturbed for _, is_disturbed in member.every[: rule.launches])
    is_judged = len(member.every) >= rule.launches and 2 * disturbed > rule.launches
    twice = replace(rule, retests=rule.retests + 1)
    can = units.multiple(clause.unit)[0] in units.TIMES_AND_RATES and twice.meeting is not None
    return twice if is_judged and can else rule


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
    return Part(
        member.name,
        state,
        met,
        len(values),
        lacking,
        bound=acceptance.bound(worst_ends, rule, higher),
        left_out=left_out,
        hidden=possible - met,
    )


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


def _notes(measured: Evidence, failed: Sequence[str], parts: Sequence[Part], beside: Sequence[str]) -> Iterator[str]:
    if measured.foreign:
        yield f"not of the contract: {some(measured.foreign)}"
    if len(measured.stacks) > 1:
        yield f"measured with several states of the stack: {', '.join(measured.stacks)}"
    if measured.unsealed:
        yield f"{counted(measured.unsealed, 'record')} of earlier versions without a seal"
    if beside:
        yield f"shown by disturbed launches, which are slower, never faster: {some(beside)}"
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
