"""Reading tables that people give as CSV: rows with their lines, or one error that names the file and the line."""

from __future__ import annotations

import csv
import io
import math
import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from plumbline.base import units
from plumbline.base.errors import PlumbError

#: larger files are refused before they fill the memory
MOST_BYTES = 1 << 28


def rows(file: Path, label: str) -> Iterator[tuple[int, list[str]]]:
    """The lines of ``file`` that are not empty, the header first, each with the number of its last line.

    Raises :class:`PlumbError` as :func:`text` does, and for broken quotes.
    """
    line = 0
    try:
        reader = csv.reader(io.StringIO(text(file, label, "give a CSV file"), newline=""), strict=True)
        for row in reader:
            line = reader.line_num
            if row:
                yield line, row
    except csv.Error as error:
        raise PlumbError(f"not CSV: {error}", f"{file}:{line + 1}", "fix the line") from error


def text(file: Path, label: str, cure: str = "name another file") -> str:
    """The text of ``file``, without a byte order mark, its line ends as they are.

    ``label`` names the content in the message of a file that cannot be read: ``cannot read the LABEL``. Raises
    :class:`PlumbError` for that, for a device, for more than :data:`MOST_BYTES` and for text that is not UTF-8.
    """
    try:
        with file.open("rb") as stream:
            kind = os.fstat(stream.fileno()).st_mode
            if stat.S_ISBLK(kind) or (stat.S_ISCHR(kind) and not stream.isatty()):
                raise PlumbError(f"cannot read the {label}: it is a device", str(file), cure)
            content = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise PlumbError(f"cannot read the {label}: {error.strerror}", str(file), cure) from error
    if len(content) > MOST_BYTES:
        raise PlumbError(f"more than {units.human_bytes(MOST_BYTES)}", str(file), "divide it")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlumbError("not a text file in UTF-8", str(file), cure) from error


def plain(text: str) -> float:
    """The number that ``text`` is, NaN for another text: Python would read 1_000 too."""
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def finite(text: str, column: str, where: str, cure: str, kept_out: str) -> float:
    """The number of a cell; raises :class:`PlumbError` with ``cure`` for another text, ``kept_out`` for infinity."""
    try:
        value = float(text)
    except ValueError:
        raise PlumbError(f"{column} '{text[:40]}' is not a number", where, cure) from None
    if not math.isfinite(value):
        raise PlumbError(f"{column} '{text[:40]}' is not finite", where, kept_out)
    return value


def table(
    file: Path, label: str, forms: tuple[tuple[str, ...], ...], may_lack: Collection[str] = ()
) -> Iterator[tuple[str, dict[str, str]]]:
    """Each row as a dictionary of the columns of the first of ``forms`` that the header has, with ``FILE:LINE``.

    ``label`` is as for :func:`rows`. Raises :class:`PlumbError` for a file without this form, for one without rows,
    and for a row that lacks a cell, but of the columns that it ``may_lack``: they are empty.
    """
    lines = rows(file, label)
    _, header = next(lines, (0, []))
    names = [name.strip() for name in header]
    places = {name: names.index(name) for name in _form(names, forms, file)}
    where = ""
    for line, row in lines:
        where = f"{file}:{line}"
        if len(row) > len(names) or (len(row) < len(names) and not may_lack):
            raise PlumbError(f"{len(row)} cells under {len(names)} columns", where, "correct the row")
        cells = {name: row[place].strip() if place < len(row) else "" for name, place in places.items()}
        empty = next((name for name, cell in cells.items() if not cell and name not in may_lack), None)
        if empty:
            raise PlumbError(f"no {empty}", where, "fill the cell, or remove the row")
        yield where, cells
    if not where:
        raise PlumbError("the table has no rows", f"{file}:1", "add a row for each measurement")


def _form(names: list[str], forms: tuple[tuple[str, ...], ...], file: Path) -> tuple[str, ...]:
    twice = next((name for form in forms for name in form if names.count(name) > 1), None)
    if twice:
        raise PlumbError(f"two columns '{twice}'", f"{file}:1", "rename one")
    for form in forms:
        if set(form) <= set(names):
            return form
    choice = " or ".join(",".join(form) for form in forms)
    raise PlumbError(f"columns {','.join(names)[:80] or 'missing'}", f"{file}:1", f"the first line has to be {choice}")
