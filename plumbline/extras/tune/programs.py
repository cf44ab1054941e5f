"""The launches of a confirmation: the kernel by each protocol, and programs of others (OSU, IMB) that call the same."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from math import sqrt
from typing import Any, NamedTuple

from plumbline.extras.tune import curves
from plumbline.extras.tune.curves import BARRIER, MESSAGES, OPERATIONS, Program, Row
from plumbline.mpi.settings import Configuration
from plumbline.records.variant import WantedFigure
from plumbline.stacks.manifest import imb_arguments

START = "start"
GAPS = "gaps"
PROTOCOLS = (START, "barrier", "loop", "changing", "work", GAPS)
OSU, IMB = "OSU", "IMB"
#: behind the name of a protocol: the same buffer is sent and received
IN_ONE_BUFFER = ", in place"
#: operations that MPI has in place, too
IN_PLACE = tuple(name for name in OPERATIONS if name not in (*MESSAGES, "bcast"))
#: operations whose blocks may lie apart: the only ones that the protocol :data:`GAPS` measures
DISPLACED = ("gatherv", "scatterv", "allgatherv", "alltoallv")
#: of a size as ``--seconds``: a protocol makes fewer calls of slow operations
SECONDS = ("--seconds", "0.02")
LARGEST = 1 << 20
#: a program prints means with two decimals, which show no smaller loss
DETECTED = 0.10
_IMB = {
    "pingpong": "PingPong", "exchange": "Sendrecv", "reduce_scatter": "Reduce_scatter", BARRIER: "Barrier",
    **{
        name: name.capitalize()
        for name in ("bcast", "allreduce", "reduce", "allgather", "allgatherv", "alltoall", "alltoallv", "gather",
                     "gatherv", "scatter", "scatterv")
    },
}  # fmt: skip


class Point(NamedTuple):
    """The subject of one verdict: a row, and the way in which its calls were made and timed."""

    way: str
    row: Row

    def __str__(self) -> str:
        return f"{self.row} ({self.way})"


class Launched(NamedTuple):
    """One launch of a side: the program, and which of its figures is which point."""

    name: str
    program: Program
    points: tuple[Point, ...]


def dense(sizes: Sequence[int]) -> list[int]:
    """``sizes``, those in the middle between them, half of the smallest and twice the largest; multiples of 4."""
    middle = [int(sqrt(low * high)) // 4 * 4 for low, high in pairwise(sizes)]
    return sorted({max(4, sizes[0] // 8 * 4), *middle, *sizes, 2 * sizes[-1]})


def kernel_launches(configuration: Configuration, sizes: Sequence[int]) -> list[Launched]:
    """Launches of the kernel: rules are tried by every protocol at :func:`dense` sizes, settings for all operations.

    All other operations are measured from a common start: earlier calls of their process may affect them.
    """
    ruled = list(dict.fromkeys(rule.collective for rule in configuration.rules))
    others = [name for name in (*OPERATIONS, BARRIER) if name not in ruled]
    ways = PROTOCOLS if configuration.settings else (START,)
    launches = [_kernel("all", others, ways, bool(configuration.settings), sizes)]
    return launches + [_kernel(name, [name], PROTOCOLS, name in IN_PLACE, dense(sizes)) for name in ruled]


def _kernel(
    operation: str, wanted: Iterable[str], protocols: Sequence[str], in_place: bool, sizes: Sequence[int]
) -> Launched:
    figures = {}
    for name in wanted:
        for protocol in protocols if name in DISPLACED else [each for each in protocols if each != GAPS]:
            for place in ("no", "yes") if in_place and name in IN_PLACE else ("no",):
                way = f"{protocol}{IN_ONE_BUFFER}" if place == "yes" else protocol
                for size in (0,) if name == BARRIER else sizes:
                    where: dict[str, Any] = {"operation": name, "protocol": protocol}
                    where |= {"bytes": size, "in_place": place} if size else {}
                    point = Point(way, Row(name, size))
                    figures[point] = WantedFigure(name=str(point), metric=curves.METRIC, where=where)
    how = ["--protocol", "all" if len(protocols) > 1 else protocols[0], "--in-place", "both" if in_place else "no"]
    program = curves.kernel(operation, [*curves.ARGUMENTS, *SECONDS], sizes, figures.values(), how)
    return Launched(operation, program, tuple(figures))


def others(
    operations: Collection[str], benchmarks: Mapping[str, Any], ranks: Mapping[str, int | None]
) -> list[Launched]:
    """Launches of OSU's and IMB's programs for ``operations``, as far as the stack has them in ``benchmarks``.

    ``ranks`` of an operation: IMB's Reduce_scatter counts the vector of all ranks; without them it is left out.
    """
    launches = []
    for name in operations:
        osu = "osu_multi_lat" if name == MESSAGES[0] else f"osu_{name}"
        if osu in benchmarks:
            context = {"benchmark": osu, "last_bytes": 1 << 22 if name == MESSAGES[0] else LARGEST}
            launches.append(_program(OSU, name, osu, [], context, "latency", 1))
        factor = ranks.get(name) if name == "reduce_scatter" else 1
        if "imb-mpi1" in benchmarks and name in _IMB and factor:
            imb = _IMB[name]
            metric = "latency" if imb == "PingPong" else "time_avg"
            context = {"benchmark": imb} | ({} if name == BARRIER else {"last_bytes": LARGEST})
            arguments = imb_arguments(imb, LARGEST, "2000,80")
            launches.append(_program(IMB, name, "imb-mpi1", arguments, context, metric, factor))
    return launches


def _program(
    way: str, name: str, benchmark: str, arguments: list[str], context: dict[str, Any], metric: str, factor: int
) -> Launched:
    """A program that prints all powers of two; its sizes are ``factor`` times those of a row."""
    figures = {}
    for size in (0,) if name == BARRIER else [1 << power for power in range(2, LARGEST.bit_length())]:
        if size % factor or (size and size < 4 * factor):
            continue
        point = Point(way, Row(name, size // factor))
        where = {"bytes": size} if size else {}
        figures[point] = WantedFigure(name=str(point), metric=metric, where=where, must_detect=DETECTED)
    parser = "imb" if way == IMB else "osu"
    return Launched(
        f"{way} {name}", Program(benchmark, parser, context, arguments, list(figures.values())), tuple(figures)
    )
