"""OSU Micro-Benchmarks: the C suite (versions 5 to 7) and its ports in mpi4py's ``demo`` folder.

The lines read, C suite::

    # OSU MPI Latency Test v7.4
    # Datatype: MPI_CHAR.
    # [ pairs: 1 ] [ window size: 64 ]
    # Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)
    # OSU MPI-CUDA Latency Test v7.5
    # Size          Latency (us)
    # Size       Avg Latency(us)
    # Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
    # Size       Avg Latency(us)        Validation
    # Size      Bandwidth (MB/s)
    # Size                  MB/s        Messages/s
    # Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
    # Avg Latency(us)
    # Datatype: MPI_CHAR.
    1                       1.54
    64                      0.95              Pass
                 0.34
    nprocs: 2, min: 50 ms, max: 58 ms, avg: 54 ms

and the ports::

    # MPI Latency Test
    # Size [B]        Latency [us]
             8                0.47

Metrics: ``latency`` (``Latency`` or ``Avg Latency``), ``latency_min``, ``latency_max``, ``bandwidth`` (MB/s of 10^6
bytes), ``message_rate``, ``time_overall``, ``time_compute``, ``time_pure``, ``overlap`` and the other columns of the
non-blocking collectives, ``latency_p99`` for percentiles; of ``osu_init`` ``time_avg``, ``time_min`` and ``time_max``.
Params: ``bytes`` (not for barriers and atomic operations), ``pairs``, ``window``, ``ranks`` (of ``osu_init``),
``buffers`` of programs that can use a GPU's memory (``D D``: of sender and receiver; ``H`` the host's, ``M`` managed);
from 7.5 on no line names them: those asked for on the command line count if the title has the device.

The column line decides what a number is, with one exception: the ports print ``Latency [us]`` over their bandwidths
too (mpi4py 4.1.2), so for a port the title decides. The suite prints no end mark: for a table with sizes the context
must give ``last_bytes``. Sizes double, without a gap. Multi-threaded and persistent tests print the datatype after the
column line. ``osu_hello`` prints no figure and is not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from plumbline.base.units import MB_S, MSG_S, PERCENT, US
from plumbline.parsers.measurement import Measurement, ParseError, measured
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
    row_measurements,
    several_runs,
    table_cells,
)

#: Collectives whose titles hold their names, blocking and not.
_COLLECTIVES = (
    *("allgather", "allgatherv", "allreduce", "gather", "gatherv", "reduce", "reduce_scatter"),
    *("reduce_scatter_block", "scatter", "scatterv"),
)
#: Those among neighbours whose titles hold their names; the blocking all-to-allw prints the title of the other one.
_NEIGHBOURS = ("allgather", "allgatherv", "alltoall")

#: Benchmark to the titles that the suites print for it, in small letters, without OSU, version and device.
TITLES: dict[str, tuple[str, ...]] = {
    "latency": ("mpi latency test",),
    "latency_persistent": ("mpi latency persistent test",),
    "bw_persistent": ("mpi bandwidth persistent test",),
    "bibw_persistent": ("mpi bi-directional bandwidth persistent test",),
    "latency_mt": ("mpi multi-threaded latency test",),
    "latency_mp": ("mpi multi-process latency test",),
    "bw": ("mpi bandwidth test",),
    "bibw": ("mpi bi-directional bandwidth test",),
    "multi_lat": ("mpi multi latency test",),
    "mbw_mr": ("mpi multiple bandwidth / message rate test",),
    "put_latency": ("mpi_put latency test",),
    "put_bw": ("mpi_put bandwidth test",),
    "put_bibw": ("mpi_put bi-directional bandwidth test",),
    "get_latency": ("mpi_get latency test",),
    "get_bw": ("mpi_get bandwidth test",),
    "acc_latency": ("mpi_accumulate latency test",),
    "get_acc_latency": ("mpi_get_accumulate latency test",),
    "fop_latency": ("mpi_fetch_and_op latency test",),
    "cas_latency": ("mpi_compare_and_swap latency test",),
    "bcast": ("mpi broadcast latency test",),
    "barrier": ("mpi barrier latency test",),
    "alltoall": ("mpi all-to-all personalized exchange latency test", "mpi all-to-all latency test"),
    "alltoallv": ("mpi all-to-allv personalized exchange latency test", "mpi alltoallv latency test"),
    "alltoallw": ("mpi all-to-allw personalized exchange latency test",),
    **{name: (f"mpi {name} latency test",) for name in _COLLECTIVES},
    "ibcast": ("mpi non-blocking broadcast latency test",),
    "ialltoall": ("mpi non-blocking all-to-all latency test",),
    "ialltoallv": ("mpi non-blocking all-to-allv personalized exchange latency test",),
    "ialltoallw": ("mpi non-blocking all-to-allw personalized exchange latency test",),
    **{f"i{name}": (f"mpi non-blocking {name} latency test",) for name in (*_COLLECTIVES, "barrier")},
    **{f"neighbor_{name}": (f"mpi neighborhood {name} latency test",) for name in _NEIGHBOURS},
    "neighbor_alltoallv": ("mpi neighborhood all-to-allv latency test",),
    **{
        f"ineighbor_{name}": (f"mpi non-blocking neighborhood {name} latency test",)
        for name in (*_NEIGHBOURS, "alltoallv", "alltoallw")
    },
    "init": ("mpi init test",),
}

#: Benchmarks with one row for the whole run: no message sizes, or the size of the one operand.
ONE_ROW = ("barrier", "ibarrier", "fop_latency", "cas_latency")

#: The fewest iterations of a size in any version of the suite (4 to 7) or its port, unless the command line has a
#: number: unit to those for sizes up to ``LARGE_BYTES``, and beyond, which are those of a table without sizes, too: the
#: port calls its barrier 100 times. An iteration of a bandwidth is a window of messages.
LEAST_ITERATIONS = {US: (1000, 100), MB_S: (100, 20)}
LARGE_BYTES = 8192
#: Messages of a window that the output does not tell: the one-sided tests have 32, the others 64.
LEAST_WINDOW = 32
#: How the number of iterations is given on the command line.
ITERATIONS_OPTIONS = ("-i", "--iterations")

#: Column, without blanks and with round brackets, to metric, unit and direction.
COLUMNS: dict[str, Meaning] = {
    "Latency(us)": ("latency", US, "lower"),
    "AvgLatency(us)": ("latency", US, "lower"),
    "MinLatency(us)": ("latency_min", US, "lower"),
    "MaxLatency(us)": ("latency_max", US, "lower"),
    "Bandwidth(MB/s)": ("bandwidth", MB_S, "higher"),
    "MB/s": ("bandwidth", MB_S, "higher"),
    "Messages/s": ("message_rate", MSG_S, "higher"),
    "Overall(us)": ("time_overall", US, "lower"),
    "Compute(us)": ("time_compute", US, "lower"),
    "Coll.Init(us)": ("time_init", US, "lower"),
    "MPI_Test(us)": ("time_test", US, "lower"),
    "MPI_Wait(us)": ("time_wait", US, "lower"),
    "PureComm.(us)": ("time_pure", US, "lower"),
    "MinComm.(us)": ("time_pure_min", US, "lower"),
    "MaxComm.(us)": ("time_pure_max", US, "lower"),
    "Overlap(%)": ("overlap", PERCENT, "higher"),
}

_TITLE = re.compile(r"\A# (OSU )?(MPI\S*(?: [A-Za-z/_-]+)* Test)(?: v([0-9]+)(?:\.([0-9]+))?\S*)?\Z", re.IGNORECASE)
_DEVICE = re.compile(r"\A(mpi)-(?:cuda|openacc|rocm|sycl|managed|cuda managed)\b")
#: the first version that does not name the buffers
_UNNAMED = (7, 5)
_PAIRS = re.compile(r"\A# \[ pairs: ([0-9]+) \] \[ window size: ([0-9]+) \]\Z")
_TAIL = re.compile(r"\AP([0-9]+)Tail(Lat\(us\)|BW\(MB/s\))\Z")
_STARTED = re.compile(r"\Anprocs: ([0-9]+), min: ([0-9]+) ms, max: ([0-9]+) ms, avg: ([0-9]+) ms\Z")
_BUFFERS = re.compile(r"\A# Send Buffer on \w+ \(([DHM])\) and Receive Buffer on \w+ \(([DHM])\)\Z")
_SIZED = re.compile(r"\A# Size(?: \[B\])?\s{2,}\S")
_UNSIZED = re.compile(r"\A#?\s+(?:(?:Avg )?Latency ?\(us\)|Overall\(us\)|Bandwidth \(MB/s\)|MB/s)(?:\s{2,}\S.*)?\Z")


def parse(text: str, context: Mapping[str, Any]) -> list[Measurement]:
    """The whole table. Context: ``benchmark`` (``osu_`` may be left out), ``last_bytes`` (if sizes are printed).

    ``buffers`` in the context are what the program must have said.
    """
    lines = living_lines(text)
    titles = [(number, match) for number, line in enumerate(lines) if (match := _TITLE.match(line))]
    if not titles:
        raise ParseError("osu: no title line '# … Test': not the output of an OSU benchmark, or an error message only")
    if len(titles) > 1:
        raise several_runs("osu", titles[1][0])
    start, match = titles[0]
    title, of_device = _DEVICE.subn(r"\1", match[2].casefold())
    name = _identify(title, of_context(context, "benchmark", str))
    if not text.endswith("\n"):
        raise ParseError("osu: truncated: the output ends within a line", at(len(lines) - 1))
    if name == "init":
        return _start_up(lines, start + 1)
    header, columns, params = _header(lines, start + 1)
    buffers = of_context(context, "buffers", str)
    if buffers is not None and of_device and match[3] and (int(match[3]), int(match[4] or 0)) >= _UNNAMED:
        params.setdefault("buffers", buffers)
    if buffers is not None and params.get("buffers") != buffers:
        raise ParseError(f"osu: the buffers were {params.get('buffers', 'not named')}, {buffers} was asked for")
    if match[1] is None:
        columns = _port_columns(columns, title, header)
    rows = _rows(lines, header, columns, params)
    if columns[0] == "Size" and name not in ONE_ROW:
        if (last := of_context(context, "last_bytes", int)) is None:
            raise ParseError("osu: the suite prints no end mark", cure="give 'last_bytes' in the context")
        check_sizes([int(row[0].params["bytes"]) for row in rows], doubling=True, last=last, title=f"osu: {name}")
    else:
        one_row(rows, f"osu: {name}", header)
        for measurement in rows[0]:
            measurement.params.pop("bytes", None)
    return [measurement for row in rows for measurement in row]


def _identify(title: str, wanted: str | None) -> str:
    name = next((name for name, titles in TITLES.items() if title in titles), None)
    if wanted is not None:
        if (short := wanted.removeprefix("osu_")) not in TITLES:
            raise ParseError(f"osu: unknown benchmark '{wanted}'", cure=f"one of {', '.join(sorted(TITLES))}")
        if short != name:
            raise ParseError(f"osu: benchmark {wanted} is missing: the output is that of '{title}'")
    if name is None:
        raise ParseError(f"osu: unknown title '{title}'")
    return name


def _start_up(lines: Sequence[str], start: int) -> list[Measurement]:
    """Time of MPI_Init over the ranks, which ``osu_init`` prints in whole milliseconds."""
    rest = [line for line in lines[start:] if line]
    if (match := _STARTED.match(rest[0]) if len(rest) == 1 else None) is None:
        raise ParseError("osu: no line 'nprocs: N, min: …', or more than that: truncated or garbled output", at(start))
    ranks, *times = (integer(word, "time of MPI_Init", start) for word in match.groups())
    return [
        measured(metric, 1000.0 * time, US, "lower", {"ranks": ranks})
        for metric, time in zip(("time_min", "time_max", "time_avg"), times, strict=True)
    ]


def _header(lines: Sequence[str], start: int) -> tuple[int, list[str], dict[str, int | str]]:
    """Index of the column line, the columns without blanks, and what stands between title and columns."""
    params: dict[str, int | str] = {}
    for number, line in enumerate(lines[start:], start):
        if match := _PAIRS.match(line):
            pairs, window = integer(match[1], "pairs", number), integer(match[2], "window size", number)
            params |= {"pairs": pairs, "window": window}
        elif match := _BUFFERS.match(line):
            params["buffers"] = f"{match[1]} {match[2]}"
        elif _SIZED.match(line):
            names = re.split(r"\s{2,}", re.sub(r"\A# Size(?: \[B\])?\s+", "", line))
            return number, ["Size", *(_plain(name) for name in names)], params
        elif _UNSIZED.match(line):
            return number, [_plain(name) for name in re.split(r"\s{2,}", line.lstrip("# "))], params
        elif line and not line.startswith("#"):
            raise ParseError(f"osu: {quote(line)} is in the heading: garbled output", at(number))
    raise ParseError("osu: no column line: truncated output", at(max(len(lines) - 1, 0)))


def _plain(name: str) -> str:
    return name.replace(" ", "").replace("[", "(").replace("]", ")")


def _port_columns(columns: Sequence[str], title: str, header: int) -> list[str]:
    value = "Bandwidth(MB/s)" if "bandwidth" in title else "Latency(us)"
    printed = list(columns[1:])
    if columns[0] != "Size" or printed not in (["Latency(us)"], [value]):
        raise ParseError(f"osu: columns {', '.join(printed)} under the title '{title}'", at(header))
    return ["Size", value]


def _meanings(columns: Sequence[str]) -> dict[str, Meaning]:
    """Meanings of columns: those that are known by name, and the percentiles among ``columns``."""
    tails = list(filter(None, map(_TAIL.match, columns)))
    times: dict[str, Meaning] = {tail[0]: (f"latency_p{tail[1]}", US, "lower") for tail in tails if "Lat" in tail[2]}
    rates: dict[str, Meaning] = {
        tail[0]: (f"bandwidth_p{tail[1]}", MB_S, "higher") for tail in tails if "BW" in tail[2]
    }
    return {**COLUMNS, **times, **rates}


def _rows(
    lines: Sequence[str], header: int, columns: Sequence[str], common: Mapping[str, int | str]
) -> list[list[Measurement]]:
    """The measurements of each row; everything after the column line must be a row.

    Excepted are a line with the datatype before them and blank lines at the end.
    """
    meanings = _meanings(columns)
    check_columns([name for name in columns if name != "Validation"], meanings, "osu", header)
    end = max(number for number, line in enumerate(lines, start=1) if line)
    first = header + 1 + lines[header + 1].startswith("# Datatype: ") if header + 1 < end else end
    rows: list[list[Measurement]] = []
    for number in range(first, end):
        row = table_cells(lines[number], columns, "osu", number)
        if row.get("Validation", "Pass") != "Pass":
            raise ParseError(f"osu: validation failed: {quote(lines[number])}", at(number))
        rows.append(row_measurements(row, meanings, common, number))
    if not rows:
        raise ParseError("osu: truncated: the table has no rows", at(header))
    return rows
