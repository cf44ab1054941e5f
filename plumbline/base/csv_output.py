"""Writing tables as CSV, for notebooks and for people who open them in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

#: what a text begins with that a spreadsheet takes for a formula
_FORMULA = ("=", "+", "-", "@", "\t")


def table(header: Iterable[str], rows: Iterable[Iterable[Any]], formulas: bool = False) -> str:
    """A table with a header; booleans are ``yes`` and ``no``, what there is not is empty.

    A text that a spreadsheet would take for a formula begins with ``'``, unless ``formulas`` may stay.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow(_cell(value, formulas) for value in row)
    return out.getvalue()


def _cell(value: Any, formulas: bool) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) and not formulas else value
