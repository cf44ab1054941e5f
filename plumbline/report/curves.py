"""Curves over the message size, from the measurements of each launch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from plumbline.base import group, units
from plumbline.judge.samples import of_launches
from plumbline.pages import blocks, looks
from plumbline.pages.blocks import Block, Piece, absent, block, number, section
from plumbline.parsers.measurement import Measurement
from plumbline.records.model import Record
from plumbline.topology import binder
from plumbline.views import summary

#: how people call the suites
SUITES = {"imb": "IMB", "osu": "OSU"}
#: the parameter that a curve is over
SIZE = "bytes"
#: what the pictures of ping-pongs show, in this order, where it was measured
PING_PONG = ("IMB PingPong · latency", "IMB PingPong · bandwidth", "OSU latency · latency", "OSU bw · bandwidth")
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
    found = group(
        ((metric, others), (size, own)) for (metric, others, size), own in of_launches(record, _point).items()
    )
    common = set.intersection(*(set(others) for _, others in found)) if found else set()
    return [
        {
            "entry": number,
            "benchmark": benchmark_name(record),
            "metric": metric,
            "mode": " ".join(value for name, value in others if (name, value) not in common),
            "unit": points[0][1].first.unit,
            "better": points[0][1].first.better,
            "x": sorted(size for size, _ in points),
            "y": [own.by_launch for _, own in sorted(points, key=lambda point: point[0])],
        }
        for (metric, others), points in found.items()
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
    return f"{SUITES.get(suite, suite)} {operation}"


def messages(usable: Sequence[tuple[Record, int]]) -> Block:
    """The section of all curves of the valid records ``usable``, each with the number of its entry."""
    colours = looks.palette(record.stack.name for record, _ in usable)
    found = [
        {**one, "of": record, "colour": colours[record.stack.name], "y": [_finite(launches) for launches in one["y"]]}
        for record, entry in usable
        for one in curves(record, entry)
    ]
    found = [one for one in found if any(one["y"])]
    pictures = group((" · ".join(filter(None, (one["benchmark"], one["metric"], one["mode"]))), one) for one in found)
    first = {key: pictures.pop(key) for key in PING_PONG if key in pictures}
    ordered = sorted(
        pictures, key=lambda key: (pictures[key][0]["benchmark"], _rank(METRICS, pictures[key][0]["metric"]), key)
    )
    others = group((str(pictures[key][0]["benchmark"]), key) for key in ordered)
    names = sorted(others, key=lambda name: name != next((n for n in others if any(w in n for w in FIRST)), name))
    options = [(name, [_toggled({key: pictures[key] for key in others[name]})]) for name in names]
    heading = block("heading", "Ping-pong by distance of the two ranks")
    without = ["No ping-pong. This gives it: ", block("code", "reframe -c reframe-tests -r -n imb_pair")]
    return section(
        "curves",
        "Messages",
        "Time and bandwidth over the message size; a mark is the median of the launches, the line through it their "
        "range. An empty message is at the left edge.",
        bool(found) and ([heading, _toggled(first)] if first else block("paragraph", without)),
        bool(options) and [block("heading", "Other benchmarks"), blocks.choice("Benchmark", options)],
        otherwise=absent("reframe -c reframe-tests -r -n imb_pair -n osu_pair"),
    )


def _finite(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value)]


def _rank(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else len(names)


def _toggled(pictures: dict[str, list[dict[str, Any]]]) -> Block:
    """Pictures with buttons, common to all, that hide stacks and placements."""
    every = [one for found in pictures.values() for one in found]
    tints = {one["of"].stack.name: one["colour"] for one in every}
    distances = [known.name for known in binder.placements() if known.pair]
    placements = sorted({one["of"].placement.name for one in every}, key=lambda name: (_rank(distances, name), name))
    stacks: list[tuple[str, Piece]] = [
        (name, block("icon", look="swatch round", colour=tint)) for name, tint in sorted(tints.items())
    ]
    marks: list[tuple[str, Piece]] = [
        (name, block("icon", look=f"mark mark-{place % len(looks.MARKS)}")) for place, name in enumerate(placements)
    ]
    charts = [_picture(key, found, placements) for key, found in pictures.items()]
    return blocks.toggled([("Stack", stacks), ("Placement", marks)], *charts)


def _picture(key: str, found: Sequence[dict[str, Any]], placements: Sequence[str]) -> Block:
    values = [value for one in found for launches in one["y"] for value in launches]
    names = [f"{one['of'].stack.name}, {summary.placement(one['of'].placement)}" for one in found]
    factor, unit = units.scale(max(values, key=abs), found[0]["unit"])
    metric = found[0]["metric"].replace("_", " ")
    sizes = sorted({size for one in found for size in one["x"]})
    points = [_points(one, sizes, factor) for one in found]
    cells = [{row: units.digits(middle) for row, _, middle, *_ in own} for own in points]
    ticks = [*([0] if sizes[0] == 0 else []), *(8**power for power in range(14))]
    return blocks.chart(
        key.replace("_", " "),
        f"{metric} in {unit}; {found[0]['better']} is better.",
        [number("size"), *(number(name, unit) for name in names)],
        [(units.human_bytes(size), *(own.get(row) for own in cells)) for row, size in enumerate(sizes)],
        series=[
            blocks.series(
                name,
                one["colour"],
                [(row, x, middle, text) for row, x, middle, _, _, text in own],
                look=looks.line(placements.index(one["of"].placement.name), symbolSize=6),
                ranges=[(x, low, high) for _, x, _, low, high, _ in own if low < high],
                target=one["entry"],
                keys=[one["of"].stack.name, one["of"].placement.name],
            )
            for one, name, own in zip(found, names, points, strict=True)
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
    one: dict[str, Any], sizes: Sequence[int], factor: float
) -> list[tuple[int, float, float, float, float, str]]:
    """Of each size its row, x, the median, both ends of the launches, and what is said of it."""
    found = []
    for size, values in zip(one["x"], one["y"], strict=True):
        if not values:
            continue
        middle, low, high = statistics.median(values), min(values), max(values)
        shown = " ".join(units.human(middle, one["unit"]))
        ends = " … ".join(units.human(end, one["unit"])[0] for end in (low, high))
        text = f"{shown} ({ends})" if len(values) > 1 else shown
        found.append((sizes.index(size), size or EMPTY_AT, middle / factor, low / factor, high / factor, text))
    return found
