"""Curves over the message size, from the measurements of each launch."""

from __future__ import annotations

from typing import Any

from plumbline.base import group
from plumbline.judge.samples import of_launches
from plumbline.records.model import Measurement, Record

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
    if SIZE not in item.params or "first" in item.params:
        return None
    others = tuple(sorted((name, str(value)) for name, value in item.params.items() if name != SIZE))
    return item.metric, others, item.params[SIZE]


def benchmark_name(record: Record) -> str:
    """``IMB PingPong`` or ``OSU latency``: suite and operation."""
    suite = record.benchmark.suite
    variant = record.variant
    operation = str(variant.context.get("benchmark") or variant.benchmark).removeprefix(f"{suite}_")
    return f"{SUITES.get(suite, suite)} {operation}"
