"""Curves over the message size, from the measurements of each launch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plumbline.records.model import Launch, Measurement, Record

#: how people call the suites
SUITES = {"imb": "IMB", "osu": "OSU"}
#: the parameter that a curve is over
SIZE = "bytes"


def curves(record: Record, number: int) -> list[dict[str, Any]]:
    """The curves of a valid record, which is entry ``number`` of the page.

    One per metric and combination of the other parameters, of which ``mode`` names those that differ: ``x`` are message
    sizes in bytes, rising, and ``y`` has for each of them the values of the launches that count, None where a launch
    has none. A curve has two sizes at least.
    """
    found: dict[tuple[str, tuple[tuple[str, str], ...]], dict[str, Any]] = {}
    positions = {id(launch): position for position, launch in enumerate(record.counting())}
    for launch, item in measurements(record):
        if SIZE not in item.params or "first" in item.params:
            continue
        others = tuple(sorted((name, str(value)) for name, value in item.params.items() if name != SIZE))
        curve = found.setdefault((item.metric, others), {"of": item, "points": {}})
        values = curve["points"].setdefault(item.params[SIZE], [None] * len(positions))
        values[positions[id(launch)]] = item.value
    common = set.intersection(*(set(others) for _, others in found)) if found else set()
    return [
        _curve(record, number, curve, " ".join(value for name, value in others if (name, value) not in common))
        for (_, others), curve in found.items()
        if len(curve["points"]) > 1
    ]


def _curve(record: Record, number: int, curve: dict[str, Any], mode: str) -> dict[str, Any]:
    sizes = sorted(curve["points"])
    return {
        "entry": number,
        "benchmark": benchmark_name(record),
        "metric": curve["of"].metric,
        "mode": mode,
        "unit": curve["of"].unit,
        "better": curve["of"].better,
        "x": sizes,
        "y": [curve["points"][size] for size in sizes],
    }


def benchmark_name(record: Record) -> str:
    """``IMB PingPong`` or ``OSU latency``: suite and operation."""
    suite = record.benchmark.suite
    variant = record.variant
    operation = str(variant.context.get("benchmark") or variant.benchmark).removeprefix(f"{suite}_")
    return f"{SUITES.get(suite, suite)} {operation}"


def measurements(record: Record) -> Iterator[tuple[Launch, Measurement]]:
    """(launch, measurement) of every verified launch that counts."""
    for launch in record.counting():
        if launch.verified:
            for item in launch.measurements:
                yield launch, item
