"""Intel MPI Benchmarks (IMB-MPI1, -NBC, -RMA, -P2P, -MT), versions 3 and 4, and 2017 to 2021.

The lines read::

    #    Intel(R) MPI Benchmarks 2021.11, MPI-1 part
    #    Intel(R) MPI Benchmarks 2019 Update 6, MPI-1 part
    #    Intel (R) MPI Benchmarks 2018 Update 1, MPI-1 part
    #    Intel (R) MPI Benchmark Suite V3.2, MPI-1 part
    # Minimum message length in bytes:   0
    # Maximum message length in bytes:   4096
    # Message lengths were user defined
    # Benchmarking PingPong
    # Benchmarking Stencil2D (2 x 2)
    # #processes = 2
    # #processes = 2 (threads: 2)
    # ( 2 additional processes waiting in MPI_Barrier)
    # window_size = 64
    #    MODE: AGGREGATE
           #bytes #repetitions      t[usec]   Mbytes/sec
                8           50         1.71         4.68
           #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
           #bytes #repetitions   Mbytes/sec      Msg/sec
           #bytes #repetitions t_ovrl[usec] t_pure[usec]  t_CPU[usec]   overlap[%]
           #bytes #repetitions t_pure[usec] t_ovrl[usec]
     #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
               50         0.19         0.19         0.19
            65536 out-of-mem.; needed X=   0.001 GB; use flag "-mem X" …
                0 time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over; …
    # !! Benchmark PingPong invalid for 1 processes !!
    # NO SUCCESSFUL EXECUTIONS
    # All processes entering MPI_Finalize

The names in the column line decide what a number is, never its position. Metrics: ``latency`` (t[usec]), ``time_min``,
``time_max``, ``time_avg``, ``time_overall`` (t_ovrl), ``time_pure``, ``time_cpu``, ``overlap``, ``bandwidth`` (MB/s of
10^6 bytes), ``message_rate``. Params: ``bytes`` (not for barriers), and where printed ``mode``, ``threads``, ``grid``,
``window``. The bandwidth of a message of 0 bytes is left out: it is 0 by definition. Two decimals are all that IMB
prints: a time of 0.00 means below 5 ns and is kept. Beside t[usec] alone (but in IMB-P2P) Mbytes/sec is the bytes
divided by that time, which has more digits where messages are short: 8 bytes at 34.78 MB/s take 0.2300 us, printed as
0.23. Beside t_min, t_max and t_avg it is that of the slowest rank, so those keep their two decimals. The Mbytes of
versions 3 and 4 are 2^20 bytes.

An output is complete if it ends in the MPI_Finalize line and the table ends at the announced maximum size; sizes must
double without a gap unless they were user defined. IMB-MT prints neither: there the context must give ``last_bytes``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from plumbline.base.units import MB_S, MSG_S, PERCENT, US
from plumbline.parsers.measurement import Measurement, ParseError
from plumbline.parsers.text import (
    Meaning,
    at,
    check_columns,
    check_sizes,
    integer,
    living_lines,
    of_context,
    one_row,
    quote,
    real,
    row_measurements,
    several_runs,
    table_cells,
)

#: Name in the column line to metric, unit and direction.
COLUMNS: dict[str, Meaning] = {
    "t[usec]": ("latency", US, "lower"),
    "t_min[usec]": ("time_min", US, "lower"),
    "t_max[usec]": ("time_max", US, "lower"),
    "t_avg[usec]": ("time_avg", US, "lower"),
    "t_ovrl[usec]": ("time_overall", US, "lower"),
    "t_pure[usec]": ("time_pure", US, "lower"),
    "t_CPU[usec]": ("time_cpu", US, "lower"),
    "overlap[%]": ("overlap", PERCENT, "higher"),
    "Mbytes/sec": ("bandwidth", MB_S, "higher"),
    "Msg/sec": ("message_rate", MSG_S, "higher"),
}
#: Benchmarks with one size of their own, whatever sizes were asked for.
ONE_SIZE = ("Fetch_and_op", "Compare_and_swap")

_BANNER = re.compile(
    r"\A#\s+Intel ?\(R\) MPI Benchmark(?:s| Suite V) ?([0-9]+)[^,]*, ([A-Za-z0-9-]+) part(?: \(GPU\))?\Z"
)
_MAXIMUM = re.compile(r"\A# Maximum message length in bytes: +([0-9]+)\Z")
_USER = re.compile(r"\A# Message lengths were user defined\Z")
_BLOCK = re.compile(r"\A# Benchmarking ([A-Za-z0-9_-]+)(?: \(([0-9]+(?: x [0-9]+)+)\))?\Z")
_PROCESSES = re.compile(r"\A# #processes = ([0-9]+)(?:;.*| \(threads: ([0-9]+)\))?\Z")
_MODE = re.compile(r"\A#\s+MODE: (NON-AGGREGATE|AGGREGATE)\Z")
_WINDOW = re.compile(r"\A# window_size = ([0-9]+)\Z")
_NO_RESULT = re.compile(r"\A# NO SUCCESSFUL EXECUTIONS\Z")
_INVALID = re.compile(r"\A# !! Benchmark (\S+)(?: is)? invalid for [0-9]+ process(?:es)? !!\Z")
_HEADER = re.compile(r"\A\s*#(?:bytes|repetitions)\s")
_LIMITED = re.compile(r"\A\s*[0-9]+ (?:out-of-mem\.|int-overflow;|time-out\.)")
_DATA = re.compile(r"\A\s*[0-9][0-9.eE+-]*(?:\s|\Z)")
_END = re.compile(r"\A# All processes entering MPI_Finalize\Z")


@dataclass
class _Block:
    """One table."""

    benchmark: str
    start: int
    ranks: int | None = None
    params: dict[str, int | str] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    rows: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    fault: tuple[str, str] | None = None

    @property
    def title(self) -> str:
        """Its name in errors."""
        return f"imb: {self.benchmark} with {self.ranks} processes"


@dataclass
class _Output:
    """The content of the whole text."""

    version: int = 0
    part: str = ""
    maximum: int | None = None
    user_lengths: bool = False
    blocks: list[_Block] = field(default_factory=list)
    invalid: dict[str, str] = field(default_factory=dict)
    ended: bool = False


def parse(text: str, context: Mapping[str, Any]) -> list[Measurement]:
    """The whole curve of one benchmark. Context: ``benchmark``, ``ranks``, ``mode``, ``threads``, ``last_bytes``."""
    lines = living_lines(text)
    output = _read(lines)
    blocks = _select(output, context)
    has_mark = output.part != "MT"
    if has_mark and not output.ended:
        raise ParseError("imb: truncated: no line 'All processes entering MPI_Finalize'", at(max(len(lines) - 1, 0)))
    if not has_mark and not text.endswith("\n"):
        raise ParseError("imb: truncated: the output ends within a line", at(len(lines) - 1))
    last = of_context(context, "last_bytes", int)
    return [measurement for block in blocks for measurement in _measurements(block, output, last)]


def _read(lines: Sequence[str]) -> _Output:
    """Take the text apart; raise on lines that no single run of IMB prints."""
    output = _Output()
    block: _Block | None = None  # the one whose heading or table is being read
    in_table = False
    for number, line in enumerate(lines):
        if match := _BANNER.match(line):
            if output.part:
                raise several_runs("imb", number)
            output.version, output.part = int(match[1]), match[2]
        elif in_table and block is not None:
            if not line:
                in_table, block = False, None
            elif _LIMITED.match(line):
                block.fault = block.fault or (f"{block.title}: {quote(line)}", at(number))
            else:
                block.rows.append((number, table_cells(line, block.columns, block.title, number)))
        elif match := _BLOCK.match(line):
            block = _Block(match[1], number, params={"grid": match[2].replace(" ", "")} if match[2] else {})
            output.blocks.append(block)
        elif _HEADER.match(line):
            if block is None:
                raise ParseError("imb: a table without a line '# Benchmarking'", at(number))
            block.columns, in_table = line.split(), True
        elif _END.match(line):
            if output.ended:
                raise ParseError("imb: the end mark of a second run", at(number))
            output.ended, block = True, None
        elif block is not None:
            _heading(block, line, number)
        elif match := _INVALID.match(line):
            output.invalid[match[1].casefold()] = quote(line.strip("# "))
        elif match := _MAXIMUM.match(line):
            output.maximum = integer(match[1], "maximum message length", number)
        elif _USER.match(line):
            output.user_lengths = True
        elif _DATA.match(line):
            raise ParseError(f"imb: {quote(line)} is outside any table: garbled output", at(number))
    if not output.part:
        raise ParseError("imb: no line 'Intel(R) MPI Benchmarks': not the output of IMB, or an error message only")
    return output


def _heading(block: _Block, line: str, number: int) -> None:
    if match := _PROCESSES.match(line):
        if block.ranks is not None:
            raise ParseError(f"imb: {block.benchmark}: a second '#processes' line: garbled output", at(number))
        block.ranks = integer(match[1], "#processes", number)
        if match[2]:
            block.params["threads"] = integer(match[2], "threads", number)
    elif match := _MODE.match(line):
        block.params["mode"] = match[1].lower()
    elif match := _WINDOW.match(line):
        block.params["window"] = integer(match[1], "window_size", number)
    elif _NO_RESULT.match(line):
        block.fault = (f"imb: {block.benchmark}: no successful executions", at(number))
    elif line and not line.startswith("#"):
        raise ParseError(f"imb: {block.benchmark}: {quote(line)} is in the heading: garbled output", at(number))


def _select(output: _Output, context: Mapping[str, Any]) -> list[_Block]:
    """The blocks asked for: one, or both modes of an IMB-RMA benchmark."""
    names = sorted({block.benchmark for block in output.blocks})
    wanted = of_context(context, "benchmark", str)
    if wanted is None and len(names) > 1:
        raise ParseError(f"imb: the output holds {', '.join(names)}", cure="say which by 'benchmark' in the context")
    if wanted is None and not names:
        reasons = list(output.invalid.values())
        raise ParseError(f"imb: no benchmark ran: {reasons[0]}" if reasons else "imb: no benchmark in the output")
    wanted = names[0] if wanted is None else wanted
    blocks = [block for block in output.blocks if block.benchmark.casefold() == wanted.casefold()]
    if not blocks:
        reason = output.invalid.get(wanted.casefold()) or f"the output holds {', '.join(names) or 'none'}"
        raise ParseError(f"imb: benchmark {wanted} is missing: {reason}")
    for key in ("mode", "grid"):
        blocks = _only(blocks, key, of_context(context, key, str))
    if output.part == "MT":
        blocks = _only(blocks, "threads", of_context(context, "threads", int))
    if block := next((block for block in blocks if block.ranks is None), None):
        message = f"imb: {block.benchmark}: no line '#processes': truncated or a mode not known here"
        raise ParseError(*(block.fault or (message, at(block.start))))
    blocks = _only(blocks, "processes", of_context(context, "ranks", int))
    if len({block.ranks for block in blocks}) > 1:
        counts = ", ".join(str(block.ranks) for block in blocks)
        raise ParseError(f"imb: {wanted} ran with {counts} processes", cure="say which by 'ranks' in the context")
    if len({tuple(sorted(block.params.items())) for block in blocks}) != len(blocks):
        raise ParseError(f"{blocks[0].title}: the table appears twice", at(blocks[-1].start))
    return blocks


def _only(blocks: list[_Block], parameter: str, wanted: str | int | None) -> list[_Block]:
    """The blocks with the wanted value, all if it is None; none is an error that names those that there are."""
    values = [block.ranks if parameter == "processes" else block.params.get(parameter) for block in blocks]
    matches = [block for block, value in zip(blocks, values, strict=True) if wanted in (None, value)]
    if not matches:
        there = ", ".join(sorted({str(value) for value in values}))
        raise ParseError(f"imb: {blocks[0].benchmark} ran with {parameter} = {there}; {wanted} was asked for")
    return matches


def _finer(time: Measurement, rate: Measurement) -> Measurement:
    """``time`` from the ``rate`` that was computed from it, with the decimals that it has, if these are more than two.

    A rate is printed to 0.01 MB/s as well, so the time's own step is 0.01 us times time / rate. Where the two columns
    do not agree the time stays as printed.
    """
    size = int(time.params.get("bytes", 0))
    if not (size and time.value and rate.value):
        return time
    value = size / rate.value
    decimals = 2 + math.floor(math.log10(rate.value / value))
    agree = abs(value - time.value) <= 0.00501 * (1 + value / rate.value)
    return replace(time, value=round(value, decimals)) if agree and decimals > 2 else time


def _measurements(block: _Block, output: _Output, last: int | None) -> Iterator[Measurement]:
    if block.fault is not None:
        raise ParseError(*block.fault)
    if not block.rows:
        raise ParseError(f"{block.title}: the table has no {'rows' if block.columns else 'columns'}", at(block.start))
    check_columns([name for name in block.columns if name != "defects"], COLUMNS, block.title, block.rows[0][0] - 1)
    for number, row in block.rows:
        if real(row.get("defects", "0"), "defects", number) != 0:
            raise ParseError(f"{block.title}: wrong data received: {row['defects']} defects", at(number))
        cells = row_measurements(row, COLUMNS, block.params, number)
        if not all(cell.iterations for cell in cells):
            raise ParseError(f"{block.title}: a row without repetitions", at(number))
        cells = [cell for cell in cells if cell.unit != MB_S or cell.params.get("bytes") != 0]
        if output.version < 2017:  # printed in 2^20 bytes a second, with two decimals
            in_mb = [replace(cell, value=cell.value * 1.048576, step=0.01048576) for cell in cells]
            cells = [new if new.unit == MB_S else cell for cell, new in zip(cells, in_mb, strict=True)]
        elif [cell.metric for cell in cells] == ["latency", "bandwidth"]:
            cells[0] = _finer(*cells)
        yield from cells
    if "#bytes" not in block.columns:
        one_row(block.rows, block.title, block.start)
        return
    if output.part == "MT" and last is None:
        raise ParseError(f"{block.title}: IMB-MT prints no end mark", cure="give 'last_bytes' in the context")
    sizes = [int(row["#bytes"]) for _, row in block.rows]
    one_size = output.part != "MT" and block.benchmark in ONE_SIZE
    announced = output.part != "MT" and not one_size and not output.user_lengths
    # IMB-P2P announces its sizes by their ends even if a file gave them
    doubling = announced and output.part != "IMB-P2P"
    check_sizes(sizes, doubling=doubling, last=sizes[0] if one_size else last, title=block.title)
    if announced:
        check_sizes(sizes, doubling=False, last=output.maximum, title=block.title)
