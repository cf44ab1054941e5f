"""Numbers that people give as CSV: pairs, classes of nodes and of links, series in time.

Columns may be in any order, and others are ignored; rows of different series or classes may be mixed. A bad row is
an error and never left out, except among pairs: there a cell that is not a positive number makes its series INVALID, as
does a side whose values repeat digit by digit.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from plumbline.base import csv_input, group
from plumbline.base.digits import limiting_step, repeated, step_of
from plumbline.base.errors import PlumbError
from plumbline.base.units import Better
from plumbline.judge.history import Series
from plumbline.judge.members import BETWEEN, Matrix, Nodes
from plumbline.judge.pairs import Column, Pairs

PAIRS = ("series", "baseline", "candidate")
NODES = (("node", "class", "value"), ("node", "series", "index", "value"))
LINKS = (("first", "second", "class", "launch", "value"), ("first", "second", "class", "value"))
SERIES = ("series", "index", "value")
#: the cure for a value that is no measurement
LEAVE_OUT = "leave out rows that are not measurements"


def pairs(file: Path, better: Better) -> list[Pairs]:
    """The series of ``file``, pairs in the order measured; raises :class:`PlumbError` with file and line."""
    rows = csv_input.table(file, "pairs", (PAIRS,), may_lack=PAIRS[1:])
    cells = group((row["series"], (where, row["baseline"], row["candidate"])) for where, row in rows)
    return [_series(name, series_cells, file, better) for name, series_cells in cells.items()]


def _series(name: str, cells: list[tuple[str, str, str]], file: Path, better: Better) -> Pairs:
    places, *sides = zip(*cells, strict=True)
    numbers = [[csv_input.plain(text) for text in texts] for texts in sides]
    faults = []
    for side, texts, values in zip(("baseline", "candidate"), sides, numbers, strict=True):
        if bad := [place for place, value in enumerate(values) if not 0 < value < math.inf]:
            first = next((place for place in bad if math.isnan(values[place])), bad[0])
            fault = f"'{text[:40]}', not a positive number" if (text := texts[first]) else "missing"
            faults.append(f"{places[first]}: the {side} is {fault}")
    if faults:
        return Pairs(name, nothing := Column([0.0] * len(cells)), nothing, better, faults, fixed=True)
    return fixed_pairs(name, sides, better, str(file))


def fixed_pairs(
    name: str, sides: Sequence[Sequence[str]], better: Better, where: str, notes: tuple[str, ...] = ()
) -> Pairs:
    """The pairs of positive numbers as they were written, INVALID where those of a side repeat."""
    columns = [Column([csv_input.plain(text) for text in texts], step_of(texts)) for texts in sides]
    faults = []
    for side, texts, column in zip(("baseline", "candidate"), sides, columns, strict=True):
        if column.step < 1 and repeated([(column.values, 0.0)]):  # whole numbers may be counts, which repeat
            often = Counter(texts).most_common(1)[0]
            many = "all" if often[1] == len(texts) else f"{often[1]} of the"
            faults.append(f"{where}: {many} {len(texts)} values of the {side} are {often[0]}: nothing was measured")
    return Pairs(name, columns[0], columns[1], better, faults, fixed=True, notes=notes)


def nodes(file: Path, better: Better) -> list[Nodes]:
    """The classes of ``file``; values of a node are its launches in the order measured, of an index those of a round.

    Raises :class:`PlumbError` with file and line.
    """
    classes = group(
        (row.get("class") or row.get("series", ""), (row, _positive(row["value"], where)))
        for where, row in csv_input.table(file, "values", NODES)
    )
    return [
        Nodes(
            name,
            better,
            group((row["node"], (row.get("index"), value)) for row, value in rows),
            limiting_step(row["value"] for row, _ in rows),
        )
        for name, rows in classes.items()
    ]


def matrices(file: Path, better: Better) -> list[Matrix]:
    """The classes of links of ``file``; ends are cores where all names are numbers, else nodes.

    Without a column ``launch``, the first value of each pair in each direction is taken for the first launch, and so
    on. Raises :class:`PlumbError` with file and line.
    """
    classes: dict[str, Matrix] = {}
    texts: dict[str, list[str]] = defaultdict(list)
    seen: dict[tuple[str, str, str], int] = defaultdict(int)
    for where, row in csv_input.table(file, "values", LINKS):
        first, second, name = row["first"], row["second"], row["class"]
        if first == second:
            raise PlumbError(f"{first} is paired with itself", where, "remove the row")
        if BETWEEN in first or BETWEEN in second:
            raise PlumbError(f"a name contains '{BETWEEN}'", where, "rename it")
        text = row.get("launch", "0")
        if not text.isdecimal() or len(text) > 4:
            raise PlumbError(f"launch '{text[:40]}' is not a number from 0 to 9999", where, "count the launches")
        launch = int(text) if "launch" in row else seen[name, first, second]
        seen[name, first, second] += 1
        classes.setdefault(name, Matrix(name, better)).add(first, second, _positive(row["value"], where), launch)
        texts[name].append(row["value"])
    for name, matrix in classes.items():
        matrix.step = limiting_step(texts[name])
        matrix.ends = "core" if all(end.isdecimal() for link in matrix.values for end in link) else "node"
    return list(classes.values())


def _positive(text: str, where: str) -> float:
    value = csv_input.plain(text)
    if not 0 < value < math.inf:
        raise PlumbError(f"value '{text[:40]}' is not a positive number", where, LEAVE_OUT)
    return value


def series(file: Path, better: Better) -> list[Series]:
    """The series of ``file``, whose indices increase; raises :class:`PlumbError` with file and line."""
    by_name: dict[str, Series] = {}
    texts: dict[str, list[str]] = defaultdict(list)
    for where, row in csv_input.table(file, "series", (SERIES,)):
        index, value = (csv_input.finite(row[name], name, where, "correct that line", LEAVE_OUT) for name in SERIES[1:])
        if value <= 0:
            raise PlumbError(f"value '{row['value']}' is not positive", where, LEAVE_OUT)
        entry = by_name.setdefault(row["series"], Series(row["series"], better))
        number = int(row["index"]) if row["index"].isdecimal() else index
        if entry.index and number <= entry.index[-1]:
            position = "twice" if number == entry.index[-1] else f"after {entry.index[-1]}"
            raise PlumbError(
                f"series {entry.name} has index {number} {position}",
                where,
                "put the rows in the order measured, with increasing indices",
            )
        entry.index.append(number)
        entry.values.append(value)
        texts[row["series"]].append(row["value"])
    for name, entry in by_name.items():
        entry.step = step_of(texts[name])
    return list(by_name.values())
