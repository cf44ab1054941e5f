"""Writing tables as CSV, for notebooks and for people who open them in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

#: first characters of a text that a spreadsheet takes for a formula
_FORMULA = ("=", "+", "-", "@", "\t")


def table(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table with a header; booleans are ``yes`` and ``no``, an absent value is empty.

    A text that a spreadsheet would take for a formula begins with ``'``.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow(_cell(value) for value in row)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
