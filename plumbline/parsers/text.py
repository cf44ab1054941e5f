"""Shared by the parsers: lines, numbers, sizes, the messages of a job that died, and tables.

The column line of a table says what each number is: what the parsers of IMB and OSU share.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from plumbline import mpi, schedulers
from plumbline.base.units import Better
from plumbline.parsers.measurement import Measurement, ParseError, Unit, measured

_INTEGER = re.compile(r"\A[0-9]{1,18}\Z")
_NUMBER = re.compile(r"\A[0-9]{1,30}(?:\.[0-9]{0,30})?(?:[eE][+-]?[0-9]{1,4})?\Z")

# A line like one of these means that the run failed, whatever else was printed (IMB, for one, answers an unknown
# benchmark name by running all the others and exits with 0).
_FATAL = re.compile(
    "|".join(
        dict.fromkeys((  # families that are alike say the same
            *(pattern for family in mpi.TABLE.values() for pattern in family.failures),
            *(pattern for scheduler in schedulers.TABLE.values() for pattern in scheduler.failures),
            r"^.*: error while loading shared libraries: ",
            r"^Invalid (?:benchmark name|option) ",
            r"^.*\bDATA VALIDATION ERROR\b",
            r"^CHECK FAILURES: rank ",
            r"^This test requires (?:exactly|at least) ",
            r"^(?:.*: )?Segmentation fault",
            r"^Traceback \(most recent call last\):",
        ))
    )
)  # fmt: skip

#: tags that launchers put before a line where an option asks for it: Open MPI's and PRRTE's, Hydra's, srun's
_TAG = re.compile(r"\A(?:.{0,80}<std(?:out|err)>:|(?:\[[0-9]+\]|[0-9]+:)(?: |\Z))")

Asked = TypeVar("Asked")
#: the types of a context's values, for people
KINDS: dict[type, str] = {int: "non-negative integer", str: "text"}
#: metric, unit and direction of a column
Meaning = tuple[str, Unit, Better]
#: columns of whole numbers to the parameters of their row
PARAMETERS = {"#bytes": "bytes", "Size": "bytes", "TransmitSize": "transmit_bytes"}
#: columns that say how often a row was measured
ITERATIONS = ("#repetitions", "Iterations")


def lines_of(text: str) -> list[str]:
    """The lines without their ends; only a newline ends a line, as for C programs."""
    return [line.rstrip(" \t\r") for line in text.removesuffix("\n").split("\n")] if text else []


def at(number: int) -> str:
    """Name line index ``number`` for an error."""
    return f"line {number + 1} of the output"


def quote(line: str) -> str:
    """A line shortened for an error message."""
    line = " ".join(line.split())
    return f"'{line[:120]}…'" if len(line) > 120 else f"'{line}'"


def living_lines(text: str) -> list[str]:
    """:func:`lines_of`; raises if one says that the job died or was never started, or all have a launcher's tag."""
    lines = lines_of(text)
    printed = [line for line in lines if line]
    if len(printed) > 1 and all(map(_TAG.match, printed)):
        raise ParseError(
            f"a launcher has put a tag before each line: {quote(printed[0])}",
            at(0),
            "leave out the launcher's option: --tag-output, --timestamp-output, -prepend-rank, --label",
        )
    for number, line in enumerate(lines):
        if _FATAL.match(line):
            # the next lines of MPICH's banner say which rank and which signal
            more = lines[number + 1 : number + 3] if "BAD TERMINATION" in line else []
            words = " ".join(each.strip("= ") for each in [line, *more])
            raise ParseError(f"the run failed: {quote(words)}", at(number))
    return lines


def integer(token: str, name: str, number: int) -> int:
    """A non-negative integer in column ``name`` of line ``number``."""
    if not _INTEGER.match(token):
        raise ParseError(f"column {name}: {quote(token)} is not a non-negative integer", at(number))
    return int(token)


def real(token: str, name: str, number: int) -> float:
    """A finite, non-negative number in column ``name`` of line ``number``."""
    value = float(token) if _NUMBER.match(token) else math.inf
    if not math.isfinite(value):
        raise ParseError(f"column {name}: {quote(token)} is not a finite, non-negative number", at(number))
    return value


def of_context(context: Mapping[str, Any], key: str, kind: type[Asked]) -> Asked | None:
    """An optional value of the context: a text or a non-negative integer, by ``kind``."""
    value = context.get(key)
    if value is not None and (type(value) is not kind or (isinstance(value, int) and value < 0)):
        raise ParseError(f"context '{key}' must be a {KINDS[kind]}, not {value!r}")
    return value


def check_context(suite: str, context: Mapping[str, Any], **seen: int | str | None) -> None:
    """Raise where the context asks for another value of a key than was seen."""
    for key, value in seen.items():
        wanted = of_context(context, key, str if isinstance(value, str) else int)
        if wanted is not None and wanted != value:
            raise ParseError(f"{suite}: ran with {key} = {value}, {wanted} was asked for")


def check_sizes(sizes: Sequence[int], *, doubling: bool, last: int | None, title: str) -> None:
    """Raise on a size seen twice, on a gap in a row of doubling sizes, and if the last one is not ``last``."""
    for before, after in itertools.pairwise(sizes):
        if doubling and before not in (0, after / 2) and before < after:
            raise ParseError(f"{title}: sizes between {before} and {after} bytes are missing")
        if before >= after and (doubling or before == after):
            raise ParseError(f"{title}: {after} bytes follow {before}: rows of two outputs, or repeated")
    if len(set(sizes)) != len(sizes):
        raise ParseError(f"{title}: a size appears twice")
    if last is not None and (not sizes or sizes[-1] != last):
        end = f"ends at {sizes[-1]} bytes" if sizes else "has no rows"
        raise ParseError(f"{title}: truncated: the table {end}, {last} bytes were expected last")


def several_runs(suite: str, number: int) -> ParseError:
    """The error for an output in which line index ``number`` begins a second run."""
    cure = "start the program with the launcher of the MPI that it runs on"
    return ParseError(f"{suite}: the outputs of several independent runs in one text", at(number), cure)


def check_columns(columns: Sequence[str], meanings: Mapping[str, Meaning], title: str, number: int) -> None:
    """Raise unless every column is known and appears once, and one of them holds values.

    ``number`` is the index of the column line.
    """
    if unknown := [name for name in columns if name not in (*meanings, *PARAMETERS, *ITERATIONS)]:
        raise ParseError(f"{title}: column '{unknown[0]}' is not known", at(number))
    if len(set(columns)) != len(columns) or not set(columns) & set(meanings):
        raise ParseError(f"{title}: a column appears twice, or there is none with values", at(number))


def table_cells(line: str, columns: Sequence[str], title: str, number: int) -> dict[str, str]:
    """The row of line index ``number``, by column."""
    words = line.split()
    if line.startswith("#") or len(words) != len(columns):
        raise ParseError(f"{title}: {quote(line)} is not a row of the table: garbled output", at(number))
    return dict(zip(columns, words, strict=True))


def row_measurements(
    row: Mapping[str, str], meanings: Mapping[str, Meaning], common: Mapping[str, int | str], number: int
) -> list[Measurement]:
    """The values of a row; ``common``: the parameters of all rows."""
    parameters = {param: integer(row[name], name, number) for name, param in PARAMETERS.items() if name in row}
    iterations = next((integer(row[name], name, number) for name in ITERATIONS if name in row), None)
    return [
        measured(metric, real(row[name], name, number), unit, better, {**common, **parameters}, iterations)
        for name, (metric, unit, better) in ((name, meanings[name]) for name in row if name in meanings)
    ]


def one_row(rows: Collection[object], title: str, number: int) -> None:
    """Raise unless the table that begins at line index ``number`` has one row."""
    if len(rows) != 1:
        raise ParseError(f"{title}: {len(rows)} rows where one was expected", at(number))
