"""``CONTRACT.yaml``: what a machine was promised to reach, and how that is to be shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from plumbline.base import schemas, units
from plumbline.base.errors import PlumbError, suggest
from plumbline.base.schemas.site import Name, StackName
from plumbline.base.units import Better
from plumbline.records.variant import Line
from plumbline.schedulers import names
from plumbline.site import expected
from plumbline.statistics.acceptance import AcceptanceRule

CURE = "plumb accept CONTRACT.yaml --init writes one that explains itself"
#: most links that are judged one by one
MOST_MEMBERS = 1_000_000
NODE, LINK, MACHINE = "each node", "each link", "whole machine"
Count: TypeAlias = Annotated[int, Meta(ge=1, le=10_000)]
Share: TypeAlias = Annotated[float, Meta(gt=0, le=1)]
Value: TypeAlias = str | int | float


class Retests(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How often members that were not shown to meet a limit may be tested again, after parts were replaced.

    ``share``: of the members, at most; where more were not shown, there is no retest.
    """

    times: Annotated[int, Meta(ge=1, le=9)] = 1
    share: Share


class Clause(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A promise: a figure of a test on a stack, over each of the members, at least or at most so much.

    ``params`` are those of the test's variant, as records have them (placement, threads, operation, …), as many as
    tell it from others. ``figure`` is a figure of its records; with ``where`` (such as ``bytes: 1024``) it is a metric
    of the program at these parameters, and over links always. ``share``: of the members, that must meet the limit.
    ``of_launches``: of the launches of a member, that must; 0.5 is its median. ``confidence``: 1 less the probability
    that a machine with one bad member more than is allowed passes, and that one fails which is just good.
    ``launches``: of each member, fixed beforehand.
    """

    name: Line
    test: Name
    params: dict[str, Value] = {}
    stack: StackName
    figure: Line
    where: dict[str, Value] = {}
    over: Literal["each node", "each link", "whole machine"]
    at_least: Annotated[float, Meta(gt=0)] | None = None
    at_most: Annotated[float, Meta(gt=0)] | None = None
    unit: Line
    share: Share = 1.0
    confidence: Annotated[float, Meta(ge=0.5, lt=1)] = 0.95
    of_launches: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    launches: Count
    retests: Retests | None = None
    note: str = ""

    @property
    def better(self) -> Better:
        """Which values are better."""
        return "lower" if self.at_least is None else "higher"

    @property
    def limit(self) -> float:
        """The promised value, in :attr:`unit`."""
        return (self.at_most if self.at_least is None else self.at_least) or 0.0

    @property
    def promise(self) -> str:
        """Such as ``at least 180 GB/s``."""
        return f"at {'least' if self.better == 'higher' else 'most'} {units.digits(self.limit)} {self.unit}"

    def members(self, nodes: int) -> int:
        """How many members a machine of so many nodes has."""
        return {NODE: nodes, LINK: nodes * (nodes - 1) // 2, MACHINE: 1}[self.over]

    def rule(self, nodes: int) -> AcceptanceRule:
        """The rule by which the clause is shown, on a machine of so many nodes."""
        again = self.retests.times if self.retests else 0
        return AcceptanceRule(self.members(nodes), self.share, self.confidence, self.launches, self.of_launches, again)

    def again(self, nodes: int) -> int:
        """How many members may be tested again."""
        return int(self.retests.share * self.members(nodes) + 1e-9) if self.retests else 0

    def factor(self, unit: str) -> float:
        """The factor that converts values in ``unit`` to the unit of the clause.

        Raises :class:`PlumbError` where the two measure different things.
        """
        (clause_base, mine), (base, factor) = units.multiple(self.unit), units.multiple(unit)
        if clause_base != base:
            raise PlumbError(
                f"clause {self.name}: {self.figure} is in {unit}", f"unit: {self.unit}", "correct the unit"
            )
        return factor / mine


class Contract(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What was promised of a machine.

    ``nodes``: how many, or their names (``node[001-128]``), as the scheduler has them. ``partition``: where records
    and jobs must be of it.
    """

    schema: Literal[1]
    machine: Line
    vendor: Line
    offer: str
    nodes: Annotated[int, Meta(ge=1, le=200_000)] | Annotated[str, Meta(min_length=1)]
    partition: Name | None = None
    clauses: Annotated[list[Clause], Meta(min_length=1)]

    @property
    def names(self) -> list[str]:
        """The names of the nodes; none where there is a number alone."""
        return [] if isinstance(self.nodes, int) else names.expand(self.nodes, "nodes")

    @property
    def node_count(self) -> int:
        """How many nodes the machine has."""
        return self.nodes if isinstance(self.nodes, int) else len(self.names)


def load(file: Path) -> Contract:
    """The contract in ``file``; raises :class:`PlumbError` with the first of its faults."""
    contract = read(file)
    if fault := next(faults(contract), None):
        raise PlumbError(fault, str(file), "fix that key; plumb accept --check names all")
    return contract


def read(file: Path) -> Contract:
    """The contract in ``file``; only its form is checked. Raises :class:`PlumbError` where that is wrong."""
    return schemas.load("contract", file, Contract, "the contract", CURE)


def faults(contract: Contract) -> Iterator[str]:
    """The faults that no type can state: ``KEY: FAULT``, in the order of the file."""
    try:
        nodes = contract.node_count
    except PlumbError as error:
        yield f"nodes: {error.message}"
        return
    seen, counts = set[str](), dict[tuple[str, ...], int]()
    for place, clause in enumerate(contract.clauses):
        where = f"clauses[{place}]"
        if clause.name in seen:
            yield f"{where}.name: another clause is called '{clause.name}' too"
        seen.add(clause.name)
        same = clause.test, clause.stack, *(f"{name}={value}" for name, value in sorted(clause.params.items()))
        if counts.setdefault(same, clause.launches) != clause.launches:
            yield f"{where}.launches: another clause of this variant has {counts[same]}: they are the same launches"
        yield from (f"{where}.{fault}" for fault in _faults_of(clause, nodes))


def _faults_of(clause: Clause, nodes: int) -> Iterator[str]:
    if clause.test not in expected():
        yield f"test: no test is called '{clause.test}': {suggest(clause.test, sorted(expected()), 'docs/kernels.md')}"
    if (clause.at_least is None) == (clause.at_most is None):
        yield "at_least: one of at_least and at_most is the limit"
    if units.multiple(clause.unit)[0] not in units.UNITS:
        yield f"unit: '{clause.unit}' is unknown: one of {', '.join(units.UNITS)}, or a multiple such as GB/s"
    if clause.over == LINK and nodes < 2:
        yield f"over: {units.counted(nodes, 'node')} has no links"
        return
    if clause.over == MACHINE and (clause.share < 1 or clause.retests):
        yield "over: the whole machine is one: leave out share and retests; of_launches is the share of launches"
        return
    if clause.members(nodes) > MOST_MEMBERS:
        yield f"over: {clause.members(nodes)} links: at most {MOST_MEMBERS} can be judged"
        return
    rule, member = clause.rule(nodes), clause.over.removeprefix("each ")
    if rule.meeting is None:
        needed = rule.launches_needed()
        cure = "no number of launches can" if needed is None else f"{needed} are needed"
        yield (
            f"launches: {clause.launches} of each {member} can never show with confidence {clause.confidence:g} that "
            f"{rule.members - rule.allowed} of {rule.members} meet the limit: {cure}"
        )
    if clause.retests and not clause.again(nodes):
        yield f"retests.share: {clause.retests.share:g} of {units.counted(rule.members, member)} is less than one"
