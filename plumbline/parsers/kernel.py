"""Parser of our own kernels' ``--json`` output, one document of the schema ``kernel``:

    {"schema":1,"kernel":"pi","ranks":2,…,"passed":true,"measurements":[
    {"metric":"time","value":7656.6,"unit":"us","better":"lower","params":{"intervals":1048576},"samples":5,"limit":null}]}

The metrics are the kernel's figures, the params those of its rows. A result that is not correct is not a result.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from plumbline.base import schemas
from plumbline.base.errors import PlumbError
from plumbline.base.units import Better
from plumbline.parsers.measurement import Amount, Measurement, Number, ParseError, Work, measured
from plumbline.parsers.text import check_context, living_lines, quote

#: in the reason of a launch that ended well with a result that is not correct
WRONG = "the answer is wrong"
Count: TypeAlias = Annotated[int, Meta(ge=1)]
Positive: TypeAlias = Annotated[float, Meta(gt=0)]


class Mpi(Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """The MPI library as it calls itself, the standard that it follows, and the threads that it was asked for."""

    library: str
    standard: str
    thread_level: Literal["single", "funneled", "serialized", "multiple"]


class Timer(Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """The clock of the figures, and what it costs to read."""

    source: Literal["tsc", "cntvct", "clock_gettime"]
    ns_per_tick: Positive
    resolution_ns: Positive
    cost_ns: Annotated[float, Meta(ge=0)]


class Binding(Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """Where a rank says that its threads are: lists of CPUs, separated by spaces. The witness is the proof."""

    rank: Annotated[int, Meta(ge=0)]
    host: str
    threads: Count
    cpus: str


class Check(Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """Whether a part of the answer is right, and by how much it may be wrong."""

    subject: str = msgspec.field(name="what")
    passed: bool
    error: float | None
    tolerance: float | None


class Figure(Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """A figure of merit over so many ``samples``; ``limit``: what the kernel's model gives, in the same unit."""

    metric: str
    value: Amount
    unit: str
    better: Better
    params: dict[str, int | str]
    samples: Count
    limit: Number | None


class Printed(Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """Result of one of our kernels, as ``--json`` prints it.

    ``threads``: OpenMP threads of rank 0; ``arguments``: every option, defaults included; ``notes``: lines for people;
    ``remarks``: those of them that a record keeps.
    """

    schema: Literal[1]
    kernel: str
    ranks: Count
    threads: Count
    mpi: Mpi
    timer: Timer
    arguments: dict[str, str]
    binding: Annotated[list[Binding], Meta(min_length=1)]
    model: str
    checks: Annotated[list[Check], Meta(min_length=1)]
    notes: list[str]
    passed: bool
    measurements: Annotated[list[Figure], Meta(min_length=1)]
    remarks: list[str] = []
    work: Work | UnsetType = UNSET


def parse(text: str, context: Mapping[str, Any]) -> list[Measurement]:
    """Every figure of one launch. Context: ``kernel``, ``ranks`` and ``threads``, checked if given."""
    printed = _read(text)
    check_context("kernel", context, kernel=printed.kernel, ranks=printed.ranks, threads=printed.threads)
    wrong = [check.subject for check in printed.checks if not check.passed]
    if wrong or not printed.passed:
        raise ParseError(f"{printed.kernel}: {WRONG}: {', '.join(wrong) or 'it says so without a reason'}")
    figures = [
        measured(item.metric, item.value, item.unit, item.better, dict(item.params), item.samples, item.limit)
        for item in printed.measurements
    ]
    if len({(item.metric, *sorted(item.params.items())) for item in figures}) != len(figures):
        raise ParseError(f"{printed.kernel}: two figures have the same name and parameters")
    return figures


def remarks(text: str) -> list[str]:
    """Remarks of a run that :func:`parse` has accepted: facts that a reader of its figures must know."""
    return list(_read(text).remarks)


def work(text: str) -> Work | None:
    """The work of the kernel in everything that it timed; None if its model counts no work."""
    return _read(text).work or None


@functools.lru_cache(maxsize=1)  # parse, remarks and work read the same text
def _read(text: str) -> Printed:
    lines = living_lines(text)
    if not any(lines):
        raise ParseError("kernel: no output")
    try:
        document = schemas.parse_json(text)
    except ValueError as error:
        first = next(line for line in lines if line)
        raise ParseError(f"kernel: not one JSON document ({error}): {quote(first)}") from None
    try:
        return schemas.convert("kernel", document, Printed, "output of the kernel")
    except PlumbError as error:
        raise ParseError(f"kernel: {error.message}", error.where) from None
