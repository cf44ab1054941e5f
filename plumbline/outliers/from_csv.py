"""Classes from CSV files.

Nodes: ``node,class,value`` or ``node,series,index,value``. Links: ``first,second,class,value``.

Columns may stand in any order, others are ignored. Rows of the same member are its launches, in the order measured.
Values with the same index were measured together. A matrix may have a column ``launch``, else the first value of each
pair in each direction is taken for the first launch, and so on. A bad row is an error: it is never left out.
"""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

from plumbline import csv_input
from plumbline.errors import PlumbError
from plumbline.outliers.matrix import BETWEEN, Matrix
from plumbline.outliers.nodes import Nodes
from plumbline.statistics.resolution import limiting_step
from plumbline.units import Better

NODES = (("node", "class", "value"), ("node", "series", "index", "value"))
LINKS = (("first", "second", "class", "launch", "value"), ("first", "second", "class", "value"))


def nodes(file: Path, better: Better) -> list[Nodes]:
    """The classes of ``file`` in the order of their first rows; raises :class:`PlumbError` with file and line."""
    found: dict[str, Nodes] = {}
    texts: dict[str, list[str]] = defaultdict(list)
    for where, row in csv_input.table(file, "values", NODES):
        name = row.get("class") or row.get("series", "")
        made = found.setdefault(name, Nodes(name, better))
        made.add(row["node"], _number(row["value"], where), row.get("index"))
        texts[name].append(row["value"])
    for name, made in found.items():
        made.step = limiting_step(texts[name])
    return list(found.values())


def matrices(file: Path, better: Better) -> list[Matrix]:
    """The classes of links of ``file``; ends are cores where all names are numbers, else nodes.

    Raises :class:`PlumbError` with file and line.
    """
    found: dict[str, Matrix] = {}
    texts: dict[str, list[str]] = defaultdict(list)
    seen: dict[tuple[str, str, str], int] = defaultdict(int)
    for where, row in csv_input.table(file, "values", LINKS):
        first, second, name = row["first"], row["second"], row["class"]
        if first == second:
            raise PlumbError(f"{first} is paired with itself", where, "remove the row")
        if BETWEEN in first or BETWEEN in second:
            raise PlumbError(f"a name contains '{BETWEEN}'", where, "rename it")
        launch = _launch(row["launch"], where) if "launch" in row else seen[name, first, second]
        seen[name, first, second] += 1
        made = found.setdefault(name, Matrix(name, better))
        made.add(first, second, _number(row["value"], where), launch)
        texts[name].append(row["value"])
    for name, made in found.items():
        made.step = limiting_step(texts[name])
        if all(end.isdecimal() for link in made.values for end in link):
            made.ends = "core"
    return list(found.values())


def _number(text: str, where: str) -> float:
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise PlumbError(f"value '{text[:40]}' is not a positive number", where, "leave out what is no measurement")
    return value


def _launch(text: str, where: str) -> int:
    if not text.isdecimal() or len(text) > 4:
        raise PlumbError(f"launch '{text[:40]}' is not a number from 0 to 9999", where, "count the launches")
    return int(text)
