"""A row per figure of a record, of which every form of export is made; the rows as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields

from plumbline.base import csv_output
from plumbline.records import naming
from plumbline.records.figure import Figure
from plumbline.records.model import Row


@dataclass(frozen=True)
class Exported:
    """A figure, and what was measured.

    ``value``, ``smallest``, ``largest``, ``limit`` and ``reference`` are in ``unit``; ``lower`` and ``upper`` are the
    reference's thresholds as fractions. ``application`` and ``commit`` are of a program of one's own, of files in no
    repository their digest. None: there is none.
    """

    id: str
    time: str
    site: str
    partition: str
    nodes: str
    campaign: str | None
    session: str
    test: str
    variant: str
    stack: str
    mpi: str
    placement: str
    figure: str
    value: float
    unit: str
    better: str
    launches: int
    smallest: float
    largest: float
    limit: float | None
    reference: float | None
    lower: float | None
    upper: float | None
    disturbed: int
    state: str
    verified: bool
    verdict: str
    valid: bool
    provenance: str
    application: str | None
    commit: str | None


def figures(records: Iterable[Row]) -> list[Exported]:
    """All figures of ``records``, in their order."""
    return [_exported(row, figure) for row in records for figure in row.figures]


def _exported(row: Row, figure: Figure) -> Exported:
    known, code = figure.reference, row.variant.application
    return Exported(
        id=row.id,
        time=row.time,
        site=row.site,
        partition=row.partition,
        nodes=" ".join(row.nodes),
        campaign=row.campaign,
        session=row.session,
        test=row.variant.test,
        variant=row.variant.name,
        stack=row.stack.name,
        mpi=f"{row.stack.mpi.family} {row.stack.mpi.version}",
        placement=naming.placement(row.placement),
        figure=figure.name,
        value=float(figure.value),
        unit=figure.unit,
        better=figure.better,
        launches=figure.launches,
        smallest=float(min(figure.samples)),
        largest=float(max(figure.samples)),
        limit=float(figure.limit.value) if figure.limit else None,
        reference=float(known.value) if known else None,
        lower=None if known is None or known.lower is None else float(known.lower),
        upper=None if known is None or known.upper is None else float(known.upper),
        disturbed=row.disturbed_count,
        state=row.state,
        verified=row.is_verified,
        verdict=row.final_verdict,
        valid=row.is_valid,
        provenance=row.provenance,
        application=code.name if code else None,
        commit=(code.commit or code.digest) if code else None,
    )


def as_csv(figures: Sequence[Exported]) -> str:
    """The table of ``figures``."""
    return csv_output.table((field.name for field in fields(Exported)), map(astuple, figures))
