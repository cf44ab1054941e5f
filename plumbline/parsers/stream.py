"""McCalpin's STREAM 5.10, and 5.9, which prints ``Rate (MB/s)``, ``Each test is run 5 times`` and no error.

The lines read::

    STREAM version $Revision: 5.10 $
    Array size = 1000000 (elements), Offset = 0 (elements)
    Each kernel will be executed 5 times.
    Number of Threads requested = 2
    Number of Threads counted = 2
    Function    Best Rate MB/s  Avg time     Min time     Max time
    Copy:          132104.1     0.000147     0.000121     0.000195
    Scale:          98834.9     0.000165     0.000162     0.000174
    Add:            95234.9     0.000257     0.000252     0.000263
    Triad:          84804.8     0.000296     0.000283     0.000324
    -------------------------------------------------------------
    Solution Validates: avg error less than 1.000000e-13 on all three arrays
    -------------------------------------------------------------

Metrics ``copy``, ``scale``, ``add``, ``triad`` (MB/s, 10^6 bytes); params ``array_elements`` and, if compiled with
OpenMP, ``threads``. The table without its validation is not a result. One text is the output of one process.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from plumbline.base.units import MB_S
from plumbline.parsers.measurement import Measurement, ParseError, Work, measured
from plumbline.parsers.text import at, check_context, integer, lines_of, living_lines, quote, real

#: bytes that each kernel moves per element
KERNEL_BYTES = {"copy": 16, "scale": 16, "add": 24, "triad": 24}
METRICS = tuple(KERNEL_BYTES)
#: operations and bytes per element, in the four of them together
FLOP, BYTES = 0 + 1 + 1 + 2, sum(KERNEL_BYTES.values())

_BANNER = re.compile(r"\ASTREAM version \$Revision: [0-9.]+ \$\Z")
_ELEMENTS = re.compile(r"\AArray size = ([0-9]+)(?: \(elements\))?, Offset = [0-9]+(?: \(elements\))?\Z")
_TIMES = re.compile(r"\AEach (?:kernel will be executed|test is run) ([0-9]+) times(?:\.|, but only)\Z")
_REQUESTED = re.compile(r"\ANumber of Threads requested = ([0-9]+)\Z")
_COUNTED = re.compile(r"\ANumber of Threads counted = ([0-9]+)\Z")
_HEADER = re.compile(r"\AFunction +(?:Best Rate MB/s|Rate \(MB/s\)) +Avg time +Min time +Max time\Z")
_RULE = re.compile(r"\A-{20,}\Z")
_VALID = re.compile(r"\ASolution Validates(?:: avg error less than [0-9.e+-]+ on all three arrays)?\Z")
#: the lines below the names of the columns
_EXPECTED = (
    *((f"the row '{name}:'", re.compile(rf"\A({name}): +(\S+) +(\S+) +(\S+) +(\S+)\Z"))
      for name in map(str.capitalize, METRICS)),
    ("the rule after the table", _RULE),
    ("'Solution Validates'", _VALID),
    ("the last rule", _RULE),
)  # fmt: skip
_FAILED = re.compile(r"\AFailed Validation on array [abc]\[\],")


def _one(pattern: re.Pattern[str], lines: Sequence[str], label: str, *, needed: bool) -> int | None:
    """The integer in the only line that matches, or None if there is none and none is ``needed``."""
    matches = [(number, match) for number, line in enumerate(lines) if (match := pattern.match(line))]
    if len(matches) > 1:
        raise ParseError(
            f"stream: {label} stands there {len(matches)} times: lines of several ranks", at(matches[1][0])
        )
    if needed and not matches:
        raise ParseError(f"stream: {label} is missing: truncated or damaged output")
    return next((integer(match[1], label, number) for number, match in matches), None)


def parse(text: str, context: Mapping[str, Any]) -> list[Measurement]:
    """The four best rates of one process. Context: ``threads`` and ``array_elements``, checked if given."""
    lines = living_lines(text)
    banners = [number for number, line in enumerate(lines) if _BANNER.match(line)]
    if not banners:
        raise ParseError("stream: no line 'STREAM version': not the output of STREAM, or an error message only")
    if len(banners) > 1:
        raise ParseError(
            f"stream: the outputs of {len(banners)} processes in one text",
            at(banners[1]),
            "keep each rank's output apart, parse each and combine them",
        )
    elements = _one(_ELEMENTS, lines, "the array size", needed=True)
    iterations = _one(_TIMES, lines, "the number of executions", needed=True)
    requested = _one(_REQUESTED, lines, "'Number of Threads requested'", needed=False)
    counted = _one(_COUNTED, lines, "'Number of Threads counted'", needed=requested is not None)
    if requested is not None and requested != counted:
        raise ParseError(f"stream: {requested} threads requested, {counted} counted")
    check_context("stream", context, threads=counted or 1, array_elements=elements)
    headers = [number for number, line in enumerate(lines) if _HEADER.match(line)]
    if not headers:
        raise ParseError("stream: the table of rates never begins: truncated output")
    rates = _table(lines, headers[0] + 1)
    params = {"array_elements": elements or 0, **({} if counted is None else {"threads": counted})}
    return [measured(metric, rates[metric], MB_S, "higher", dict(params), iterations) for metric in METRICS]


def work(texts: Sequence[str]) -> Work:
    """Operations and bytes of all iterations, as STREAM counts them, of the processes that printed ``texts``."""
    done = sum(
        (_one(_ELEMENTS, lines, "the array size", needed=True) or 0)
        * (_one(_TIMES, lines, "the number of executions", needed=True) or 0)
        for lines in map(lines_of, texts)
    )
    return Work(flop=FLOP * done, bytes=BYTES * done)


def _table(lines: Sequence[str], start: int) -> dict[str, float]:
    """The rates from line index ``start`` on; everything to the end of the output must be as STREAM prints it."""
    rates: dict[str, float] = {}
    for number, (expected, pattern) in enumerate(_EXPECTED, start):
        if number >= len(lines):
            raise ParseError(f"stream: truncated: the output ends before {expected}", at(len(lines) - 1))
        line = lines[number]
        if _FAILED.match(line):
            raise ParseError(f"stream: validation failed: {quote(line)}", at(number))
        if (match := pattern.match(line)) is None:
            raise _odd(line, expected, number)
        if pattern.groups:
            cells = zip(match.groups()[1:], ("Best Rate MB/s", "Avg time", "Min time", "Max time"), strict=True)
            rate, average, least, most = (real(token, name, number) for token, name in cells)
            if rate == 0 or not least <= average <= most:
                raise ParseError(f"stream: impossible row {quote(line)}", at(number))
            rates[match[1].lower()] = rate
    if rest := [number for number in range(start + len(_EXPECTED), len(lines)) if lines[number]]:
        raise _odd(lines[rest[0]], "nothing more", rest[0])
    return rates


def _odd(line: str, expected: str, number: int) -> ParseError:
    return ParseError(f"stream: {quote(line)} stands where {expected} was expected: garbled output", at(number))


def combine(ranks: Sequence[Sequence[Measurement]]) -> list[Measurement]:
    """Add up the rates of processes that ran at the same time; ``params`` gets ``ranks``, the others stay per rank.

    Each rank reports its best repetition, and those need not coincide: the sum is an upper bound of what the memory
    system delivered at any one time. All ranks must have run the same thing.
    """
    if not ranks:
        raise ParseError("stream: no rank to combine")
    result = []
    for columns in zip(*ranks, strict=True):
        first, runs = columns[0], [(item.params, item.iterations, item.unit) for item in columns]
        if unlike := [rank for rank, run in enumerate(runs) if run != runs[0]]:
            mine, its = (f"{columns[rank].params} {columns[rank].iterations} times" for rank in (0, unlike[0]))
            raise ParseError(f"stream: rank 0 ran {mine}, rank {unlike[0]} {its}")
        params = {**first.params, "ranks": len(ranks)}
        total = sum(item.value for item in columns)
        result.append(measured(first.metric, total, first.unit, first.better, params, first.iterations))
    return result
