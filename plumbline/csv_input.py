"""Reading tables that people give as CSV: rows with their lines, or one error that names the file and the line."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from plumbline.errors import PlumbError


def rows(file: Path, what: str) -> Iterator[tuple[int, list[str]]]:
    """The lines of ``file`` that are not empty, the header first, each with the number of its last line.

    ``what`` names the content in the message of a file that cannot be read: ``cannot read the WHAT``. Raises
    :class:`PlumbError` for that, for text that is not UTF-8 (a byte order mark is left out) and for broken quotes.
    """
    line = 0
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            for row in reader:
                line = reader.line_num
                if row:
                    yield line, row
    except OSError as error:
        raise PlumbError(f"cannot read the {what}: {error.strerror}", str(file), "give a CSV file") from error
    except UnicodeDecodeError as error:
        raise PlumbError("not a text file in UTF-8", str(file), "give a CSV file") from error
    except csv.Error as error:
        raise PlumbError(f"not CSV: {error}", f"{file}:{line + 1}", "mend the line") from error


def header(table: Iterator[tuple[int, list[str]]]) -> list[str]:
    """The names of the columns, from the first of :func:`rows`; none for an empty file."""
    _, names = next(table, (0, []))
    return [name.strip() for name in names]
