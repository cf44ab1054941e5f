"""Performance logs of ReFrame: lines of values under a header, which is written again where it changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from plumbline.errors import PlumbError
from plumbline.exchange.imported import NEEDED, VALUE


def runs(file: Path, text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """``FILE:LINE`` of the log ``file``, which has ``text``, and the cells of each line by the header above it.

    Raises :class:`PlumbError` for a header that lacks a column, and for a line with another number of cells.
    """
    header: list[str] = []
    separator = "|"
    for number, line in enumerate(text.splitlines(), start=1):
        where = f"{file}:{number}"
        if not line.strip():
            continue
        if not header or line.startswith(f"{header[0]}{separator}{header[1]}{separator}"):
            header, separator = _header(line, where)
            continue
        cells = line.split(separator)
        if len(cells) != len(header):
            raise PlumbError(f"{len(cells)} cells under {len(header)} columns", where, "correct or remove the line")
        yield where, dict(zip(header, cells, strict=True))


def _header(line: str, where: str) -> tuple[list[str], str]:
    separator = max("|,;\t", key=line.count)
    names = line.split(separator)
    missing = [" or ".join(known) for known in NEEDED.values() if not set(known) & set(names)]
    missing += [] if any(name.endswith(VALUE) for name in names) else ["FIGURE_value"]
    if missing:
        cure = "a log needs a header, as ReFrame's default format has it"
        raise PlumbError(f"no column {', '.join(missing)}", where, cure)
    return names, separator
