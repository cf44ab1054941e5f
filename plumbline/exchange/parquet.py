"""Figures as a Parquet file, written by DuckDB, which compacts records too."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from plumbline import files
from plumbline.exchange.rows import Exported, as_csv
from plumbline.records.compacted import connect, quoted

#: columns that are no text
TYPES = {
    **dict.fromkeys(("value", "smallest", "largest", "limit", "reference", "lower", "upper"), "DOUBLE"),
    **dict.fromkeys(("launches", "disturbed"), "BIGINT"),
    **dict.fromkeys(("verified", "valid"), "BOOLEAN"),
    "time": "TIMESTAMPTZ",
}


def write(found: Sequence[Exported], target: Path) -> None:
    """Replace ``target`` by ``found``: a column per member, with numbers, booleans and times in types of their own."""
    with (
        files.writing("the figures", target),
        files.replacing(target) as temporary,
        tempfile.TemporaryDirectory() as folder,
    ):
        table = Path(folder) / "figures.csv"
        table.write_text(as_csv(found), encoding="utf-8")
        columns = {name: TYPES.get(name, "VARCHAR") for name in Exported.__dataclass_fields__}
        with connect() as engine:
            engine.execute(_COPY.format(target=quoted(temporary)), {"table": str(table), "columns": columns})


_COPY = """
    COPY (SELECT * FROM read_csv($table, header = true, columns = $columns, nullstr = ''))
    TO {target} (FORMAT parquet)"""
