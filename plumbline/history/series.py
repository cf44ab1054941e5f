"""Where series come from: a CSV file, or the records."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plumbline import csv_input
from plumbline.errors import PlumbError
from plumbline.records.rows import Row, as_row, is_valid

COLUMNS = ("series", "index", "value")
#: what of a record's ``host`` makes series of their own when it changes
ENVIRONMENT = ("kernel", "microcode", "governor", "turbo", "smt", "thp", "numa_balancing")
#: parts of a series' key that its name tells where they differ between series
LABELS = ("site", "partition", "nodes", "environment")

Index = int | float


@dataclass
class Series:
    """Values in the order measured. ``index`` is what people know each point by: a number, or a record's id."""

    name: str
    better: str
    index: list[Any] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    unit: str | None = None
    #: what the series is of, for the records' series
    key: dict[str, Any] = field(default_factory=dict)


def read(file: Path, better: str) -> list[Series]:
    """The series of a CSV file with the columns of :data:`COLUMNS`, in the order of their first rows.

    The rows of a series stand in the order measured: their indices increase. Values are positive, finite numbers.
    Raises :class:`PlumbError` with file and line.
    """
    found: dict[str, Series] = {}
    rows = csv_input.rows(file, "series")
    places = _places(csv_input.header(rows), file)
    width = max(places) + 1
    for line, row in rows:
        where = f"{file}:{line}"
        if len(row) < width:
            raise PlumbError(f"{len(row)} columns", where, f"give {', '.join(COLUMNS)}")
        name, index, value = (row[place].strip() for place in places)
        _append(found, name, index, value, better, where)
    if not found:
        raise PlumbError("no series", str(file), "nothing was measured, so nothing can be said")
    return list(found.values())


def _places(names: list[str], file: Path) -> list[int]:
    for column in COLUMNS:
        if names.count(column) != 1:
            what = f"no column '{column}'" if column not in names else f"two columns '{column}'"
            raise PlumbError(what, f"{file}:1", f"the first line is {','.join(COLUMNS)}")
    return [names.index(column) for column in COLUMNS]


def _append(found: dict[str, Series], name: str, index: str, value: str, better: str, where: str) -> None:
    if not name:
        raise PlumbError("the series has no name", where, "fill the column")
    number = _number(index, "index", where)
    measured = _number(value, "value", where)
    if measured <= 0:
        raise PlumbError(f"value '{value}' is not positive", where, "leave out what is no measurement")
    series = found.setdefault(name, Series(name, better))
    if series.index and number <= series.index[-1]:
        what = "twice" if number == series.index[-1] else f"after {series.index[-1]}"
        raise PlumbError(
            f"series {name} has index {index} {what}", where, "rows stand in the order measured, indices increase"
        )
    series.index.append(number)
    series.values.append(measured)


def _number(text: str, column: str, where: str) -> Index:
    try:
        number: Index = int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise PlumbError(f"{column} '{text}' is not a number", where, "mend that line") from None
    if not math.isfinite(number):
        raise PlumbError(f"{column} '{text}' is not finite", where, "leave out what is no measurement")
    return number


def of_records(records: Iterable[Row | dict[str, Any]], test: str | None = None) -> list[Series]:
    """The series of verified, complete, valid ``records`` (rows or whole ones, oldest first), sorted by name.

    A series is of one site, partition, node set, environment (:func:`fingerprint`), stack, test variant and figure.
    Its index is the records' ids. ``test`` keeps the tests whose names begin so.
    """
    found: dict[str, Series] = {}
    for row in map(as_row, records):
        if (test and not row.test.startswith(test)) or not is_valid(row):
            continue
        for figure in row.figures:
            if not math.isfinite(figure.value) or figure.value <= 0:
                continue
            key = {
                "test": row.test,
                "variant": row.variant,
                "figure": figure.name,
                "unit": figure.unit,
                "stack": row.stack.name,
                "site": row.site,
                "partition": row.partition,
                "nodes": sorted(row.nodes),
                "environment": fingerprint(row.host),
            }
            name = json.dumps(key, sort_keys=True)
            series = found.setdefault(name, Series(name, figure.better, unit=figure.unit, key=key))
            series.index.append(row.id)
            series.values.append(figure.value)
    everything = list(found.values())
    differing = [name for name in LABELS if len({json.dumps(series.key[name]) for series in everything}) > 1]
    for series in everything:
        series.name = label(series.key, differing)
    return sorted(everything, key=lambda series: series.name)


def fingerprint(host: dict[str, Any]) -> str:
    """Eight hexadecimal digits of the environment: :data:`ENVIRONMENT` of ``record['host']``."""
    text = json.dumps([host.get(name) for name in ENVIRONMENT])
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def label(key: dict[str, Any], differing: Sequence[str]) -> str:
    """A series' name: variant, stack and figure, and the ``differing`` ones of :data:`LABELS`."""
    parts = [key["variant"], key["stack"], key["figure"]]
    for name in differing:
        value = key[name]
        parts.append("+".join(value) if isinstance(value, list) else value)
    return " ".join(parts)
