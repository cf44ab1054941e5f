"""Files of pairs: CSV with the columns ``series``, ``baseline`` and ``candidate``, rows in the order measured.

Other columns are allowed and ignored; rows of different series may be mixed. A cell that is no positive number makes
its series INVALID, as does a side whose values repeat digit by digit; a file that is no such table is an error.
"""

from __future__ import annotations

from pathlib import Path

from plumbline import csv_input
from plumbline.errors import PlumbError
from plumbline.gate.pairs import Pairs
from plumbline.statistics import constant
from plumbline.statistics.resolution import step_of
from plumbline.units import Better

COLUMNS = ("series", "baseline", "candidate")


def read(file: Path, better: Better) -> list[Pairs]:
    """The series of ``file`` in the order of their first rows; raises :class:`PlumbError` with file and line."""
    found: dict[str, tuple[list[str], list[str], list[int]]] = {}
    rows = csv_input.rows(file, "pairs")
    header = csv_input.header(rows)
    first, second, third = _places(header, file)
    width = len(header)
    for line, row in rows:
        if len(row) > width:
            raise PlumbError(f"{len(row)} cells under {width} columns", f"{file}:{line}", "correct the row")
        row += [""] * (width - len(row))
        name = row[first].strip()
        if not name:
            raise PlumbError("a row without the name of its series", f"{file}:{line}", "name it")
        entry = found.get(name)
        if entry is None:
            entry = found[name] = ([], [], [])
        entry[0].append(row[second])
        entry[1].append(row[third])
        entry[2].append(line)
    if not found:
        raise PlumbError("0 series: the table has no rows", f"{file}:1", "nothing measured is not a PASS")
    return [_series(name, *columns, file, better) for name, columns in found.items()]


def _places(header: list[str], file: Path) -> list[int]:
    for name in COLUMNS:
        if header.count(name) != 1:
            seen = ", ".join(header)[:80] or "nothing"
            number = "no" if name not in header else "more than one"
            cure = f"the first line has to be {','.join(COLUMNS)}"
            raise PlumbError(f"{number} column '{name}' among: {seen}", f"{file}:1", cure)
    return [header.index(name) for name in COLUMNS]


def _series(
    name: str, baseline: list[str], candidate: list[str], lines: list[int], file: Path, better: Better
) -> Pairs:
    faults: list[str] = []
    numbers: list[list[float]] = []
    for side, texts in (("baseline", baseline), ("candidate", candidate)):
        try:
            values = [float(text) for text in texts]
            if not any("_" in text for text in texts):
                numbers.append(values)
                bad = next((place for place, value in enumerate(values) if not 0 < value < float("inf")), None)
            else:
                bad = next(place for place, text in enumerate(texts) if "_" in text)
        except ValueError:
            bad = next(place for place, text in enumerate(texts) if not _is_number(text))
        if bad is not None:
            what = f"'{texts[bad].strip()[:40]}', not a positive number" if texts[bad].strip() else "missing"
            faults.append(f"{file}:{lines[bad]}: the {side} is {what}")
    if faults:
        return Pairs(name, [0.0] * len(baseline), [0.0] * len(candidate), better, faults=faults, fixed=True)
    for side, texts, values in zip(("baseline", "candidate"), (baseline, candidate), numbers, strict=True):
        if step_of(texts) < 1 and constant.repeats([values]):  # whole numbers may be counts, which repeat
            faults.append(f"{file}: all {len(values)} values of the {side} are {texts[0]}: nothing was measured")
    steps = step_of(baseline), step_of(candidate)
    return Pairs(name, numbers[0], numbers[1], better, steps, faults=faults, fixed=True)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
