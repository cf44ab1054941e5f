"""Compacted records of earlier versions: Parquet files with the columns ``source``, ``line`` and ``json``."""

from __future__ import annotations

from pathlib import Path

from plumbline.base.errors import PlumbError
from plumbline.records.compacted import Line


def read(part: Path) -> dict[str, list[Line]]:
    """The lines in ``part``, by session file. Raises PlumbError; needs Polars, which comes with ReFrame."""
    if not part.is_file():
        raise PlumbError("not a regular file", str(part), "move it away")
    try:
        import polars  # not above: hardly a site has such files

        with part.open("rb") as file:
            rows = polars.read_parquet(file, columns=["source", "line", "json"]).sort("source", "line").rows()
    except ImportError:
        raise PlumbError("only Polars reads Parquet", str(part), "pip install polars, then plumb compact") from None
    except (OSError, polars.exceptions.PolarsError) as error:
        reason = str(error).partition("\n")[0]
        raise PlumbError(f"cannot read: {reason}", str(part), "restore the file, or move it away") from None
    content: dict[str, list[Line]] = {}
    for source, number, text in rows:
        content.setdefault(source, []).append((number, text.encode()))
    return content
