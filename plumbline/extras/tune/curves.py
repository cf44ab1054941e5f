"""The measurements of the tuner: the time of every operation at every size, from a common start, in one launch.

One launch of the kernel ``collective`` has all rows, so a candidate costs one launch a round. All ranks of the
placement take part, so that messages between two ranks are measured on a busy node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from plumbline.base.units import human_bytes
from plumbline.records.launch import Launch
from plumbline.records.model import Record
from plumbline.records.variant import Variant, WantedFigure

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
        where = {"operation": self.operation, "bytes": self.size, "in_place": "no"}
        return WantedFigure(name=f"{self.operation}_{self.size}", metric=METRIC, where=where)


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
            every = [figure.value for record in records if (figure := record.figure(wanted.name)) is not None]
            if every:
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
