"""What queries answer with: the part of a record that lists, histories, gates and reports are made of.

A full record is some ten to thirty kilobytes; its row is a few hundred bytes. Rows are made from a record in one place
only (:func:`of_record`, :func:`samples_of_record`); the fast path of queries makes the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plumbline.records.select import find
from plumbline.units import Better

#: what of ``host`` changes from one minute to the next and says nothing about the machine
FLEETING = ("load",)


@dataclass(frozen=True, slots=True)
class Stack:
    """The stack of a record. ``family`` and ``version`` are those of its MPI library; ``sha256`` of its manifest."""

    name: str
    provider: str
    family: str
    version: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a record: the median over its launches, in ``unit``; ``samples`` are the launches' values in order.

    ``limit`` is the record's object (value, unit, method, percent) or None where the site's facts give no limit;
    ``reference`` its object (value, unit, method, file) or None.
    """

    name: str
    value: float
    unit: str
    better: Better
    launches: int
    samples: tuple[float, ...]
    limit: dict[str, Any] | None
    reference: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Row:
    """One record. ``verified``: it says so, and so does every launch; ``figures`` is empty unless they do.

    ``launches`` and ``disturbed`` count the launches that count, without those that were superseded.

    ``params``, ``placement`` and ``host`` are the record's objects, ``host`` without :data:`FLEETING`. They are shared
    between rows: do not change them.
    """

    id: str
    session: str
    campaign: str | None
    time: str
    state: str
    site: str
    partition: str
    nodes: tuple[str, ...]
    suite_version: str
    suite_commit: str | None
    stack: Stack
    test: str
    variant: str
    benchmark: str
    params: dict[str, Any]
    placement: dict[str, Any]
    host: dict[str, Any]
    launches: int
    disturbed: int
    verified: bool
    reasons: tuple[str, ...]
    verdict: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Launches:
    """The launches of a record, one element each and in the record's order; ``wall_s`` in seconds."""

    index: list[int]
    order: list[int]
    start: list[str]
    wall_s: list[float]
    status: list[str]
    verified: list[bool]
    disturbed: list[bool]
    #: measured again later in the session: counts in no figure
    superseded: list[bool]


@dataclass(frozen=True, slots=True)
class Samples:
    """What each launch of a record measured for one figure of its variant, also where the record is not valid.

    ``values`` has an element per launch, None where the launch has no such measurement. ``kinds`` are the (unit,
    better) of the measurements chosen: more than one makes them incomparable. ``launches`` is shared by a record's
    figures.
    """

    row: Row
    figure: str
    values: list[float | None]
    kinds: frozenset[tuple[str, str]]
    launches: Launches


def of_record(record: dict[str, Any]) -> Row:
    """The row of a record that obeys the schema."""
    stack, variant = record["stack"], record["variant"]
    counting = [launch for launch in record["launches"] if not launch.get("superseded")]
    return Row(
        id=record["id"],
        session=record["session"],
        campaign=record["campaign"],
        time=record["time"],
        state=record["state"],
        site=record["site"],
        partition=record["partition"],
        nodes=tuple(record["nodes"]),
        suite_version=record["suite"]["version"],
        suite_commit=record["suite"]["commit"],
        stack=Stack(stack["name"], stack["provider"], stack["mpi"]["family"], stack["mpi"]["version"], stack["sha256"]),
        test=variant["test"],
        variant=variant["name"],
        benchmark=variant["benchmark"],
        params=variant["params"],
        placement=record["placement"],
        host={name: value for name, value in record["host"].items() if name not in FLEETING},
        launches=len(counting),
        disturbed=sum(launch["disturbed"] for launch in counting),
        verified=record["verified"] and all(launch["verified"] for launch in record["launches"]),
        reasons=tuple(record["reasons"]),
        verdict=record["verdict"],
        figures=tuple(Figure(**{**figure, "samples": tuple(figure["samples"])}) for figure in record["figures"]),
    )


def is_valid(row: Row) -> bool:
    """Whether a record may be used as a performance figure: complete, verified and not invalid."""
    return row.state == "complete" and row.verified and not row.reasons and row.verdict != "invalid"


def as_row(item: Row | dict[str, Any]) -> Row:
    """A row as it is, or the row of a whole record."""
    return item if isinstance(item, Row) else of_record(item)


def samples_of_record(record: dict[str, Any], row: Row) -> list[Samples]:
    """A :class:`Samples` per figure that the variant of ``record``, whose row is ``row``, names, in its order."""
    launches = Launches(
        index=[launch["index"] for launch in record["launches"]],
        order=[launch["order"] for launch in record["launches"]],
        start=[launch["start"] for launch in record["launches"]],
        wall_s=[launch["wall_s"] for launch in record["launches"]],
        status=[launch["status"] for launch in record["launches"]],
        verified=[launch["verified"] for launch in record["launches"]],
        disturbed=[launch["disturbed"] for launch in record["launches"]],
        superseded=[bool(launch.get("superseded")) for launch in record["launches"]],
    )
    found = []
    for wanted in record["variant"]["figures"]:
        chosen = [find(wanted, launch) for launch in record["launches"]]
        values = [None if item is None else item["value"] for item in chosen]
        kinds = frozenset((item["unit"], item["better"]) for item in chosen if item is not None)
        found.append(Samples(row, wanted["name"], values, kinds, launches))
    return found
