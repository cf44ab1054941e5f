"""The evidence of records for a clause: the launches of each member that count, and why others do not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from plumbline.base import group, paths
from plumbline.base.errors import PlumbError
from plumbline.base.units import Better
from plumbline.extras.accept.model import LINK, MACHINE, NODE, Clause, Contract, Value
from plumbline.judge import samples
from plumbline.judge.members import BETWEEN
from plumbline.judge.references import match
from plumbline.parsers.measurement import Measurement, step_of
from plumbline.records import query
from plumbline.records.launch import Launch
from plumbline.records.model import AnyRecord, Record
from plumbline.records.query import Selection
from plumbline.records.store import Damage
from plumbline.records.variant import Variant, WantedFigure

#: why launches do not count
DISTURBED, UNVERIFIED, LACKING = "disturbed", "not verified", "without the figure"
WHOLE = "the machine"


@dataclass
class Member:
    """A node, a link or the machine.

    ``values`` are those of its launches that count, in the order measured, each of which may be off by ``half`` a step
    of what the benchmark prints; ``left_out``: how many others there are, by the reason.
    """

    name: str
    values: list[float] = field(default_factory=list)
    half: float = 0.0
    left_out: Counter[str] = field(default_factory=Counter)


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
    records, damages = query.collect(lambda record: record if wanted(contract, record) else None, where)
    return [record for record in records if record], damages


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
    named, foreign = set(contract.names), set[str]()
    used = []
    for record in records:
        if _is_of(clause, contract, record):
            others = {*record.nodes} - named if named else set()
            foreign |= others
            used += [record] if not others and _fits(clause, contract, record) else []
    _require_one(clause, "variants", "params", {record.variant.name for record in used})
    _require_one(clause, "systems", "--site, or partition", {f"{record.site}:{record.partition}" for record in used})
    launches = [launch for record in used for launch in _launches(clause, record)]
    by_unit = group((item.unit, item) for _, item in launches if not isinstance(item, str))
    half = max((step_of(items) / 2 * clause.factor(unit) for unit, items in by_unit.items()), default=0.0)
    members = dict[str, Member]()
    for name, item in launches:
        member = members.setdefault(name, Member(name, half=half))
        if isinstance(item, str):
            member.left_out[item] += 1
        else:
            member.values.append(item.value * clause.factor(item.unit))
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
    if clause.over == MACHINE:
        return len(record.nodes) == contract.node_count
    return len(record.nodes) == 1 if clause.over == NODE else len(record.nodes) > 1


def _launches(clause: Clause, record: Record) -> Iterator[tuple[str, Measurement | str]]:
    """Of each launch that counts, each member and its measurement, or why it has none."""
    names = names_of(clause, record.nodes)
    wanted = None if clause.over == LINK else _figure(clause, record)
    for launch in record.counting():
        measured = _links(clause, launch) if wanted is None else {names[0]: launch.find(wanted)}
        for name in names:
            item = measured.get(name)
            if not record.is_valid or not launch.verified:
                yield name, UNVERIFIED
            elif launch.disturbed:
                yield name, DISTURBED
            elif item is None or not math.isfinite(item.value):
                yield name, LACKING
            else:
                _require_direction(clause, item.better)
                yield name, item


def _figure(clause: Clause, record: Record) -> WantedFigure:
    """The figure of a clause in the launches of a record."""
    if clause.where:
        return WantedFigure(name=clause.figure, metric=clause.figure, where=clause.where)
    known = {figure.name: figure for figure in record.variant.figures}
    if clause.figure not in known:
        fault = f"clause {clause.name}: {record.variant.test} has no figure {clause.figure}"
        raise PlumbError(fault, record.id, f"it has {', '.join(known)}")
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
    known = {(row.variant.test, figure.name): (figure.unit, figure.better) for row in rows for figure in row.figures}
    for file in sorted(paths.sites().glob("*/references/*.yaml")):
        known |= {(entry.test, entry.figure): (entry.unit, entry.better) for entry in match.read(file).references}
    for place, clause in enumerate(contract.clauses):
        recorded = known.get((clause.test, clause.figure))
        if recorded and not clause.where and clause.over != LINK:
            unit, better = recorded
            try:
                clause.factor(unit)
                _require_direction(clause, better)
            except PlumbError as error:
                key = "unit" if "is in" in error.message else "at_least"
                yield f"clauses[{place}].{key}: {error.message}: {error.cure}"
