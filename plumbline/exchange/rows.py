"""A row per figure of a record: what every form of export is made of; the rows as CSV and as Parquet."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from plumbline.base import csv_output, files
from plumbline.records.compacted import connect, quoted
from plumbline.records.figure import Figure
from plumbline.records.model import Row
from plumbline.views import summary

#: columns of a Parquet file that are not text
TYPES = {
    **dict.fromkeys(("value", "smallest", "largest", "limit", "reference", "lower", "upper"), "DOUBLE"),
    **dict.fromkeys(("launches", "disturbed"), "BIGINT"),
    **dict.fromkeys(("verified", "valid"), "BOOLEAN"),
    "time": "TIMESTAMPTZ",
}
_COPY = """
    COPY (SELECT * FROM read_csv($table, header = true, columns = $columns, nullstr = ''))
    TO {target} (FORMAT parquet)"""


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
        placement=summary.placement(row.placement),
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
    return _table(figures)


def _table(figures: Sequence[Exported], formulas: bool = False) -> str:
    return csv_output.table((field.name for field in fields(Exported)), map(astuple, figures), formulas)


def write_parquet(found: Sequence[Exported], target: Path) -> None:
    """Replace ``target`` by ``found``: a column per member, with numbers, booleans and times in types of their own.

    DuckDB writes it, which compacts records too.
    """
    with (
        files.writing("the figures", target),
        files.replacing(target) as temporary,
        tempfile.TemporaryDirectory() as folder,
    ):
        table = Path(folder) / "figures.csv"
        table.write_text(_table(found, formulas=True), encoding="utf-8")
        columns = {name: TYPES.get(name, "VARCHAR") for name in Exported.__dataclass_fields__}
        with connect() as engine:
            engine.execute(_COPY.format(target=quoted(temporary)), {"table": str(table), "columns": columns})
