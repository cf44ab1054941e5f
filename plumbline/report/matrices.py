"""Matrices over pairs of ranks, from the kernel ``pairs``."""

from __future__ import annotations

from typing import Any

from plumbline.records.model import Record
from plumbline.report.curves import measurements

#: what a pair is measured by; the kernel's other figures are sums over many pairs
METRICS = ("latency", "bandwidth")


def matrices(record: Record, number: int) -> list[dict[str, Any]]:
    """The matrices of a valid record, which is entry ``number`` of the page: one per metric and mode.

    ``ends`` are ``[rank, CPU or None, host or None]`` in the order of ranks, which is the machine's under the placement
    ``core``; a cell is ``[first rank, second rank, number of its class, value of each launch that counts…]``, and
    ``classes`` names the classes.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    positions = {id(launch): position for position, launch in enumerate(record.counting())}
    for launch, item in measurements(record):
        params = item.params
        if item.metric not in METRICS or "first" not in params or "second" not in params:
            continue
        key = (item.metric, str(params.get("mode", "")))
        matrix = found.setdefault(key, {"of": item, "mode": key[1], "cells": {}, "ends": {}})
        for end in ("first", "second"):
            matrix["ends"][params[end]] = [params[end], params.get(f"{end}_cpu"), params.get(f"{end}_host")]
        _, values = matrix["cells"].setdefault(
            (params["first"], params["second"]), (str(params.get("class", "")), [None] * len(positions))
        )
        values[positions[id(launch)]] = item.value
    return [_matrix(number, matrix) for matrix in found.values()]


def _matrix(number: int, matrix: dict[str, Any]) -> dict[str, Any]:
    classes = list(dict.fromkeys(kind for kind, _ in matrix["cells"].values()))
    return {
        "entry": number,
        "metric": matrix["of"].metric,
        "mode": matrix["mode"],
        "unit": matrix["of"].unit,
        "better": matrix["of"].better,
        "ends": [matrix["ends"][rank] for rank in sorted(matrix["ends"])],
        "classes": classes,
        "cells": [
            [first, second, classes.index(kind), *values] for (first, second), (kind, values) in matrix["cells"].items()
        ],
    }
