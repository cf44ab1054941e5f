"""Curves over the message size, from the measurements of each launch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from plumbline.base import group, units
from plumbline.host import binder
from plumbline.judge.samples import of_launches
from plumbline.parsers.measurement import Measurement
from plumbline.records import naming
from plumbline.records.model import Record
from plumbline.records.variant import PROGRAM
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, Piece, absent, block, number, section

#: how people call the suites
SUITES = {"imb": "IMB", "osu": "OSU"}
#: the parameter that a curve is over
SIZE = "bytes"
#: keys of the ping-pong pictures, in this order, where they were measured
PING_PONG = (
    *("IMB PingPong · latency", "IMB PingPong · bandwidth", "OSU latency · latency", "OSU bw · bandwidth"),
    *("OSU latency (mpi4py) · latency", "OSU bw (mpi4py) · bandwidth"),
)
#: the order of a benchmark's pictures; other metrics come last
METRICS = ("latency", "time_avg", "bandwidth", "message_rate", "overlap", "time_pure")
#: benchmarks that are shown first, by a word of their name
FIRST = ("Exchange", "bcast")
#: where an empty message stands on an axis that has no zero
EMPTY_AT = 0.5


def curves(record: Record, number: int) -> list[dict[str, Any]]:
    """The curves of a valid record, which is entry ``number`` of the page.

    One per metric and combination of the other parameters, of which ``mode`` names those that differ: ``x`` are message
    sizes in bytes, rising, and ``y`` has for each of them the values of the launches that count, None where a launch
    has none. A curve has two sizes at least.
    """
    groups = group(
        ((metric, others), (size, samples)) for (metric, others, size), samples in of_launches(record, _point).items()
    )
    common = set.intersection(*(set(others) for _, others in groups)) if groups else set()
    return [
        {
            "entry": number,
            "benchmark": benchmark_name(record),
            "metric": metric,
            "mode": " ".join(value for name, value in others if (name, value) not in common),
            "unit": points[0][1].first.unit,
            "better": points[0][1].first.better,
            "x": sorted(size for size, _ in points),
            "y": [samples.by_launch for _, samples in sorted(points, key=lambda point: point[0])],
            "steps": [samples.step for _, samples in sorted(points, key=lambda point: point[0])],
        }
        for (metric, others), points in groups.items()
        if len(points) > 1
    ]


def _point(item: Measurement) -> tuple[str, tuple[tuple[str, str], ...], Any] | None:
    """The metric, the other parameters and the size of a point."""
    if not isinstance(item.params.get(SIZE), int | float) or "first" in item.params:
        return None
    others = tuple(sorted((name, str(value)) for name, value in item.params.items() if name != SIZE))
    return item.metric, others, item.params[SIZE]


def benchmark_name(record: Record) -> str:
    """``IMB PingPong`` or ``OSU latency``: suite and operation."""
    suite = record.benchmark.suite
    variant = record.variant
    operation = str(variant.context.get("benchmark") or variant.benchmark).removeprefix(f"{suite}_")
    port = f" ({variant.params[PROGRAM]})" if PROGRAM in variant.params else ""
    return f"{SUITES.get(suite, suite)} {operation}{port}"


def messages(usable: Sequence[tuple[Record, int]]) -> Block:
    """The section of all curves of the valid records ``usable``, each with the number of its entry."""
    colours = blocks.palette(record.stack.name for record, _ in usable)
    plotted = [
        {
            **curve,
            "of": record,
            "colour": colours[record.stack.name],
            "y": [
                [value for value in launches if value is not None and math.isfinite(value)] for launches in curve["y"]
            ],
        }
        for record, entry in usable
        for curve in curves(record, entry)
    ]
    plotted = [curve for curve in plotted if any(curve["y"])]
    pictures = group(
        (" · ".join(filter(None, (curve["benchmark"], curve["metric"], curve["mode"]))), curve) for curve in plotted
    )
    first = {key: pictures.pop(key) for key in PING_PONG if key in pictures}
    ordered = sorted(
        pictures, key=lambda key: (pictures[key][0]["benchmark"], _rank(METRICS, pictures[key][0]["metric"]), key)
    )
    others = group((str(pictures[key][0]["benchmark"]), key) for key in ordered)
    names = sorted(others, key=lambda name: name != next((n for n in others if any(w in n for w in FIRST)), name))
    options = [(name, [_toggled({key: pictures[key] for key in others[name]})]) for name in names]
    without = ["No ping-pong. This gives it: ", block("code", "reframe -c reframe-tests -r -n imb_pair")]
    return section(
        "curves",
        "Messages",
        "Time and bandwidth over the message size; a mark is the median of the launches, the line through it their "
        "range. An empty message is at the left edge.",
        bool(plotted)
        and (
            [block("heading", "Ping-pong by distance of the two ranks"), _toggled(first)]
            if first
            else block("paragraph", without)
        ),
        bool(options) and [block("heading", "Other benchmarks"), blocks.choice("Benchmark", options)],
        otherwise=absent("reframe -c reframe-tests -r -n imb_pair -n osu_pair"),
    )


def _rank(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else len(names)


def _toggled(pictures: dict[str, list[dict[str, Any]]]) -> Block:
    """Pictures with buttons, common to all, that hide stacks and placements."""
    every = [curve for plotted in pictures.values() for curve in plotted]
    tints = {curve["of"].stack.name: curve["colour"] for curve in every}
    distances = [known.name for known in binder.placements() if known.pair]
    placements = sorted(
        {curve["of"].placement.name for curve in every}, key=lambda name: (_rank(distances, name), name)
    )
    stacks: list[tuple[str, Piece]] = [
        (name, block("icon", look="swatch round", colour=tint)) for name, tint in sorted(tints.items())
    ]
    marks: list[tuple[str, Piece]] = [
        (name, block("icon", look=f"mark mark-{place % len(blocks.MARKS)}")) for place, name in enumerate(placements)
    ]
    return block(
        "toggled",
        *(_picture(key, plotted, placements) for key, plotted in pictures.items()),
        groups=[("Stack", stacks), ("Placement", marks)],
    )


def _picture(key: str, plotted: Sequence[dict[str, Any]], placements: Sequence[str]) -> Block:
    values = [value for curve in plotted for launches in curve["y"] for value in launches]
    names = [f"{curve['of'].stack.name}, {naming.placement(curve['of'].placement)}" for curve in plotted]
    factor, unit = units.scale(max(values, key=abs), plotted[0]["unit"])
    metric = plotted[0]["metric"].replace("_", " ")
    sizes = sorted({size for curve in plotted for size in curve["x"]})
    points = [_points(curve, sizes, factor) for curve in plotted]
    cells = [{row: units.digits(middle, step) for row, _, middle, _, _, step, _ in marks} for marks in points]
    ticks = [*([0] if sizes[0] == 0 else []), *(8**power for power in range(14))]
    return blocks.chart(
        key.replace("_", " "),
        f"{metric} in {unit}; {plotted[0]['better']} is better.",
        [number("size"), *(number(name, unit) for name in names)],
        [(units.human_bytes(size), *(marks.get(row) for marks in cells)) for row, size in enumerate(sizes)],
        series=[
            blocks.series(
                name,
                curve["colour"],
                [(row, x, middle, text) for row, x, middle, *_, text in marks],
                look=blocks.line(placements.index(curve["of"].placement.name), symbolSize=6),
                ranges=[(x, low, high) for _, x, _, low, high, *_ in marks if low < high],
                target=curve["entry"],
                keys=[curve["of"].stack.name, curve["of"].placement.name],
            )
            for curve, name, marks in zip(plotted, names, points, strict=True)
        ],
        together=True,
        height=330,
        x={
            "name": "message size",
            "type": "log",
            "logBase": 2,
            "min": sizes[0] or EMPTY_AT,
            "max": sizes[-1],
            "boundaryGap": 0,
            "ticks": [
                (size or EMPTY_AT, units.human_bytes(size).replace(" ", "\u202f") if size else "0")
                for size in ticks
                if sizes[0] <= size <= sizes[-1]
            ],
        },
        y={
            "name": f"{metric}, {unit}",
            "type": "log" if min(values) > 0 else "value",
            "scale": False,
            "boundaryGap": 0,
        },
    )


def _points(
    curve: dict[str, Any], sizes: Sequence[int], factor: float
) -> list[tuple[int, float, float, float, float, float, str]]:
    """Of each size its row, x, the median, both ends of the launches, how finely they are known, and a text."""

    def text(values: Sequence[float], step: float) -> str:
        middle = " ".join(units.human(statistics.median(values), curve["unit"], step))
        ends = " … ".join(units.human(end(values), curve["unit"], step)[0] for end in (min, max))
        return f"{middle} ({ends})" if len(values) > 1 else middle

    return [
        (
            sizes.index(size),
            size or EMPTY_AT,
            statistics.median(values) / factor,
            min(values) / factor,
            max(values) / factor,
            step / factor,
            text(values, step),
        )
        for size, values, step in zip(curve["x"], curve["y"], curve["steps"], strict=True)
        if values
    ]
