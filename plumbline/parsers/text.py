"""Shared by the parsers: lines, numbers, sizes, and the messages of a job that died."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from plumbline import mpi, schedulers
from plumbline.parsers.measurement import ParseError

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


def lines_of(text: str) -> list[str]:
    """The lines without their ends; only a newline ends a line, as for C programs."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.rstrip(" \t\r") for line in lines]


def at(number: int) -> str:
    """Name line index ``number`` for an error."""
    return f"line {number + 1} of the output"


def quote(line: str) -> str:
    """A line shortened for an error message."""
    line = " ".join(line.split())
    return f"'{line[:120]}…'" if len(line) > 120 else f"'{line}'"


def require_alive(lines: Sequence[str]) -> None:
    """Raise if some line says that the job died or was never started, or all have a launcher's tag."""
    printed = [line for line in lines if line]
    if len(printed) > 1 and all(map(_TAG.match, printed)):
        cure = "leave out the launcher's option: --tag-output, --timestamp-output, -prepend-rank, --label"
        raise ParseError(f"a launcher has put a tag before each line: {quote(printed[0])}", at(0), cure)
    for number, line in enumerate(lines):
        if _FATAL.match(line):
            follow = ""
            if "BAD TERMINATION" in line:  # the next lines say which rank and which signal
                follow = " ".join(following.strip("= ") for following in lines[number + 1 : number + 3])
            raise ParseError(f"the run failed: {quote(line.strip('= ') + ' ' + follow)}", at(number))


def integer(token: str, name: str, number: int) -> int:
    """A non-negative integer in column ``name`` of line ``number``."""
    if not _INTEGER.match(token):
        raise ParseError(f"column {name}: {quote(token)} is not a non-negative integer", at(number))
    return int(token)


def real(token: str, name: str, number: int) -> float:
    """A finite, non-negative number in column ``name`` of line ``number``."""
    if not _NUMBER.match(token):
        raise ParseError(f"column {name}: {quote(token)} is not a finite, non-negative number", at(number))
    value = float(token)
    if not math.isfinite(value):
        raise ParseError(f"column {name}: {quote(token)} is not a finite, non-negative number", at(number))
    return value


def context_int(context: Mapping[str, Any], key: str) -> int | None:
    """An optional non-negative integer of the context."""
    value = context.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ParseError(f"context '{key}' must be a non-negative integer, not {value!r}")
    return value


def context_str(context: Mapping[str, Any], key: str) -> str | None:
    """An optional text of the context."""
    value = context.get(key)
    if value is not None and not isinstance(value, str):
        raise ParseError(f"context '{key}' must be a text, not {value!r}")
    return value


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
