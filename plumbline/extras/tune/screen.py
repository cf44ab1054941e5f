"""Findings in the curves of a library, each worth a race: broken performance guidelines, and knees.

A library can keep a guideline alone, without knowing the network (Traeff, Gropp, Thakur: Self-consistent
MPI performance guidelines, 2010; Hunold, Carpen-Amarie: PGMPITuneLib, 2018): more data take no less time, twice the
data at most twice the time, and no operation is slower than others that together do the same (a mock-up). A knee is a
step that is much steeper than both of its neighbours: where a protocol ends. Over numbers of ranks: as many more ranks
take at most so much longer, and fewer ranks are not slower, each with a margin, because algorithms change in between.

A finding has to be seen in every single launch of the screen: launches differ, and medians over them can mislead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Literal

from plumbline.base.units import human_bytes
from plumbline.extras.tune.curves import BARRIER, OPERATIONS, Curve, Row, sizes_of

Kind = Literal["monotony", "split", "mock-up", "knee", "ranks"]
#: by which factor a guideline must be broken in every launch
SLACK = 1.1
#: by which factor a knee must be steeper than the steps next to it
STEEPER = 1.4
#: by which factor a neighbouring number of ranks must be faster, each launch of one against each of the other
APART = 1.5


@dataclass(frozen=True)
class CurveFinding:
    """``row`` takes ``factor`` times the allowed time; ``low`` and ``high``: the range over launches."""

    kind: Kind
    row: Row
    against: str
    factor: float
    low: float
    high: float


#: operation -> mock-ups: the text, and operations with the size that each has: that of the row (``=``), of a part of
#: it (``/``), of all parts together (``*``). A size is of a vector (bcast, reduce, allreduce, scan), else of one rank's
#: block for another
MOCKS: dict[str, dict[str, tuple[str, ...]]] = {
    "exchange": {"pingpong": ("pingpong=",)},
    "bcast": {"scatter + allgather": ("scatter/", "allgather/"), "allreduce": ("allreduce=",)},
    "reduce": {"allreduce": ("allreduce=",), "reduce_scatter_block + gather": ("reduce_scatter_block/", "gather/")},
    "allreduce": {
        "reduce + bcast": ("reduce=", "bcast="),
        "reduce_scatter_block + allgather": ("reduce_scatter_block/", "allgather/"),
    },
    "gather": {"allgather": ("allgather=",), "gatherv": ("gatherv=",)},
    "scatter": {"bcast of all blocks": ("bcast*",), "scatterv": ("scatterv=",)},
    "allgather": {
        "alltoall": ("alltoall=",),
        "gather + bcast of all blocks": ("gather=", "bcast*"),
        "allgatherv": ("allgatherv=",),
    },
    "alltoall": {"alltoallv": ("alltoallv=",)},
    "reduce_scatter_block": {
        "reduce + scatter": ("reduce*", "scatter="),
        "allreduce": ("allreduce*",),
        "reduce_scatter": ("reduce_scatter=",),
    },
}


def findings(curves: Sequence[Curve], ranks: int) -> list[CurveFinding]:
    """The findings that all of ``curves`` (one per launch, all rows) show, worst first. ``ranks`` took part."""
    return worst_first([*_shapes(curves), *_mocks(curves, ranks)])


def worst_first(findings: Iterable[CurveFinding]) -> list[CurveFinding]:
    """The findings by their factors."""
    return sorted(findings, key=lambda finding: finding.factor, reverse=True)


def of_ranks(curves: Mapping[int, Sequence[Curve]], ranks: int) -> Iterator[CurveFinding]:
    """Rows that are too slow on ``ranks``, compared with the next smaller and the next larger number in ``curves``.

    Each number of ranks has launches, and so curves, of its own.
    """
    counts = sorted(curves)
    place = counts.index(ranks)
    for neighbour in (*counts[max(place - 1, 0) : place], *counts[place + 1 : place + 2]):
        allowed = max(ranks / neighbour, 1.0)
        more = "which are more" if neighbour > ranks else f"times {allowed:.3g}"
        for row in curves[ranks][0]:
            mine, others = ([curve[row] for curve in curves[number]] for number in (ranks, neighbour))
            low, high = min(mine) / max(others) / allowed, max(mine) / min(others) / allowed
            if low > APART:
                against = f"against {neighbour} ranks, {more}"
                yield CurveFinding("ranks", row, against, median(mine) / median(others) / allowed, low, high)


def _seen(kind: Kind, row: Row, against: str, factors: Sequence[float], least: float) -> Iterator[CurveFinding]:
    if min(factors) > least:
        yield CurveFinding(kind, row, against, median(factors), min(factors), max(factors))


def _shapes(curves: Sequence[Curve]) -> Iterator[CurveFinding]:
    sizes = sizes_of(curves[0])
    for operation in OPERATIONS:
        rows = [Row(operation, size) for size in sizes]
        steps = [[curve[after] / curve[before] for curve in curves] for before, after in pairwise(rows)]
        for place, (before, after) in enumerate(pairwise(rows)):
            less = [1 / step for step in steps[place]]
            yield from _seen("monotony", before, f"against {human_bytes(after.size)}, which is more", less, SLACK)
            twice = after.size / before.size
            yield from _seen(
                "split", after, f"against {twice:.0f} x {before}", [step / twice for step in steps[place]], SLACK
            )
            beside = [steps[near] for near in (place - 1, place + 1) if 0 <= near < len(steps)]
            steeper = [
                step / max(near[launch] for near in beside) for launch, step in enumerate(steps[place]) if beside
            ]
            if after.size == 2 * before.size and 0 < place < len(steps) - 1:
                yield from _seen(
                    "knee", after, f"steeper from {human_bytes(before.size)} than around it", steeper, STEEPER
                )


def _mocks(curves: Sequence[Curve], ranks: int) -> Iterator[CurveFinding]:
    sizes = sizes_of(curves[0])
    for operation, mocks in MOCKS.items():
        for size in sizes:
            scaled = {"=": size, "/": -1 if size % ranks else size // ranks, "*": size * ranks}  # -1 is on no grid
            row = Row(operation, size)
            for name, parts in mocks.items():
                bound = [Row(part[:-1], scaled[part[-1]]) for part in parts]
                if all(part in curves[0] for part in bound):
                    factors = [curve[row] / sum(curve[part] for part in bound) for curve in curves]
                    yield from _seen("mock-up", row, f"against {name}", factors, SLACK)
    small = [curve[Row(BARRIER, 0)] / curve[Row("allreduce", sizes[0])] for curve in curves]
    yield from _seen("mock-up", Row(BARRIER, 0), f"against allreduce of {sizes[0]} B", small, SLACK)
