"""The measurements of the tuner: the time of every operation at every size, from a common start, in one launch.

One launch of the kernel ``collective`` has all rows, so a candidate costs one launch a round. All ranks of the
placement take part, so that messages between two ranks are measured on a busy node. A confirmation launches the kernel
by each protocol, and programs of others (OSU, IMB) that call the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from plumbline.base.units import human_bytes
from plumbline.mpi.settings import Configuration
from plumbline.records.launch import Launch
from plumbline.records.model import Record
from plumbline.records.variant import Variant, WantedFigure
from plumbline.stacks.manifest import imb_arguments

KERNEL = "collective"
METRIC = "time"
#: between two ranks; ``p2p`` in the knobs of the families
MESSAGES = ("pingpong", "exchange")
OPERATIONS = (
    *MESSAGES, "bcast", "reduce", "allreduce", "scan", "gather", "gatherv", "scatter", "scatterv", "allgather",
    "allgatherv", "alltoall", "alltoallv", "reduce_scatter", "reduce_scatter_block",
)  # fmt: skip
BARRIER = "barrier"
SIZES = (8, 64, 256, *(1 << power for power in range(10, 21)))
#: a late start because of other processes is not a candidate's fault: every window counts, medians bear a few late ones
ARGUMENTS = ("--repetitions", "25", "--late", "1e6", "--most-invalid", "100", "--json")
#: of a race within one process: more calls, because each is held against one of the same round
RACE_ARGUMENTS = ("--repetitions", "50", "--seconds", "0.3", "--late", "1e6", "--most-invalid", "100", "--json")
#: seconds after which a launch is ended: one that hangs costs no more
TIME_LIMIT_S = 60


class Row(NamedTuple):
    """One point of a curve; ``size`` as the kernel counts it, in bytes, 0 for the barrier."""

    operation: str
    size: int

    def __str__(self) -> str:
        return f"{self.operation} {human_bytes(self.size)}" if self.size else self.operation

    @property
    def moved_by(self) -> str:
        """The operation as knobs name it."""
        return "p2p" if self.operation in MESSAGES else self.operation

    @property
    def figure(self) -> WantedFigure:
        """The figure that a variant has for this row."""
        if not self.size:
            return WantedFigure(name=self.operation, metric=METRIC, where={"operation": self.operation})
        return WantedFigure(
            name=f"{self.operation}_{self.size}",
            metric=METRIC,
            where={"operation": self.operation, "bytes": self.size, "in_place": "no"},
        )


#: the times of one launch in us
Curve = Mapping[Row, float]


def rows(sizes: Sequence[int]) -> list[Row]:
    """All rows that a launch measures at ``sizes``."""
    return [*(Row(operation, size) for operation in OPERATIONS for size in sizes), Row(BARRIER, 0)]


def sizes_of(measured: Iterable[Row]) -> list[int]:
    """The sizes of ``measured``, ascending."""
    return sorted({row.size for row in measured if row.size})


class TuningPlace(NamedTuple):
    """Where the tuner measures, in the words of a variant; without ``ranks_per_node`` as many as there is room for."""

    site: str
    partition: str
    stack: str
    placement: str
    nodes: int = 1
    ranks_per_node: int | None = None

    @property
    def label(self) -> str:
        """The placement, and the number of ranks of a node if it is given."""
        if self.ranks_per_node is None:
            return self.placement
        return f"{self.placement}, {self.ranks_per_node} ranks{' a node' if self.nodes > 1 else ''}"


class Program(NamedTuple):
    """The program of a launch, how its output is read, and the wanted figures."""

    benchmark: str
    parser: str
    context: dict[str, Any]
    arguments: list[str]
    figures: list[WantedFigure]


def kernel(
    operation: str, how: Sequence[str], sizes: Sequence[int], figures: Iterable[WantedFigure], more: Sequence[str] = ()
) -> Program:
    """The kernel for ``operation`` at ``sizes``, with the arguments ``how`` and ``more``."""
    arguments = ["--operation", operation, *how, "--bytes", ",".join(map(str, sizes)), *more]
    return Program(KERNEL, "kernel", {"kernel": KERNEL}, arguments, list(figures))


def sweep(sizes: Sequence[int]) -> Program:
    """The kernel for all rows."""
    return kernel("all", ARGUMENTS, sizes, (row.figure for row in rows(sizes)))


class Contest(NamedTuple):
    """Values of a setting that one launch takes in turn, all in the same process, for one operation.

    ``numbers``: each value, as settings have it -> the number that MPI_T knows it by.
    """

    setting: str
    operation: str
    numbers: Mapping[str, str]

    def figures(self, sizes: Sequence[int]) -> dict[tuple[str, Row], WantedFigure]:
        """The figure of each value at each size: its time / that of the setting's own value, call by call."""
        each = [Row(self.operation, size) for size in ((0,) if self.operation == BARRIER else sizes)]
        return {
            (value, row): WantedFigure(
                name=f"{row.figure.name}_{value}", metric="ratio", where={**row.figure.where, self.setting: int(number)}
            )
            for value, number in self.numbers.items()
            for row in each
        }

    def program(self, sizes: Sequence[int]) -> Program:
        """The kernel for these rows."""
        race = ("--race", f"{self.setting}={','.join(self.numbers.values())}")
        return kernel(self.operation, [*race, *RACE_ARGUMENTS], sizes, self.figures(sizes).values())

    def ratios(self, records: Sequence[Record], sizes: Sequence[int]) -> dict[str, dict[Row, float]]:
        """Of each value the ratio of each row, the median of the verified ``records``."""
        ratios: dict[str, dict[Row, float]] = {value: {} for value in self.numbers}
        for (value, row), wanted in self.figures(sizes).items():
            if every := [figure.value for record in records if (figure := record.figure(wanted.name)) is not None]:
                ratios[value][row] = float(np.median(every))
        return ratios


def variant(
    place: TuningPlace,
    label: str,
    launches: int,
    settings: Mapping[str, str],
    program: Program,
    time_limit_s: float = TIME_LIMIT_S,
) -> Variant:
    """``program`` under ``settings`` of the library, a rank on every core or as the placement says.

    ``label`` names it among those of its session.
    """
    params: dict[str, Any] = {"placement": place.placement}
    params |= {"rank_count": place.ranks_per_node} if place.ranks_per_node else {}
    return Variant.create(
        test="tune", name=" ".join([f"tune {label}", *(f"%{name}={value}" for name, value in params.items())]),
        site=place.site, partition=place.partition, stack=place.stack, benchmark=program.benchmark,
        arguments=program.arguments, placement=place.placement, threads=1, ranks_per_node=place.ranks_per_node,
        nodes=place.nodes, parser=program.parser, context=program.context, figures=program.figures, launches=launches,
        time_limit_s=time_limit_s, params=params, settings=settings,
    )  # fmt: skip


def of_launch(launch: Launch, wanted: Sequence[Row]) -> Curve | None:
    """The curve of ``launch``; None if it is not verified, or lacks one of the rows ``wanted``."""
    if not launch.verified or launch.status != "ok":
        return None
    curve = {
        Row(item.params["operation"], item.params.get("bytes", 0)): item.value
        for item in launch.measurements
        if item.metric == METRIC and item.params.get("in_place", "no") == "no"
    }
    return curve if all(curve.get(row, 0.0) > 0 for row in wanted) else None


def of_record(record: Record) -> list[Curve | None]:
    """A curve for each launch that counts, in order."""
    wanted = [Row(figure.where["operation"], figure.where.get("bytes", 0)) for figure in record.variant.figures]
    return [of_launch(launch, wanted) for launch in record.counting()]


def median(curves: Sequence[Curve]) -> Curve:
    """The median over launches, row by row, in us."""
    return {row: float(np.median([curve[row] for curve in curves])) for row in curves[0]}


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
    ways = PROTOCOLS if configuration.settings else (START,)
    launches = [
        _kernel(
            "all",
            [name for name in (*OPERATIONS, BARRIER) if name not in ruled],
            ways,
            bool(configuration.settings),
            sizes,
        )
    ]
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
                    figures[point] = WantedFigure(name=str(point), metric=METRIC, where=where)
    how = ["--protocol", "all" if len(protocols) > 1 else protocols[0], "--in-place", "both" if in_place else "no"]
    return Launched(operation, kernel(operation, [*ARGUMENTS, *SECONDS], sizes, figures.values(), how), tuple(figures))


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
            launches.append(
                _program(IMB, name, "imb-mpi1", imb_arguments(imb, LARGEST, "2000,80"), context, metric, factor)
            )
    return launches


def _program(
    way: str, name: str, benchmark: str, arguments: list[str], context: dict[str, Any], metric: str, factor: int
) -> Launched:
    """A program that prints all powers of two; its sizes are ``factor`` times those of a row."""
    sizes = (0,) if name == BARRIER else [1 << power for power in range(2, LARGEST.bit_length())]
    points = {
        size: Point(way, Row(name, size // factor)) for size in sizes if not (size % factor or 0 < size < 4 * factor)
    }
    figures = [
        WantedFigure(name=str(point), metric=metric, where={"bytes": size} if size else {}, must_detect=DETECTED)
        for size, point in points.items()
    ]
    program = Program(benchmark, "imb" if way == IMB else "osu", context, arguments, figures)
    return Launched(f"{way} {name}", program, tuple(points.values()))
