"""Matrices over pairs of ranks, from the kernel ``pairs``."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from plumbline.base import group, units
from plumbline.judge.samples import RANKS, Samples, of_launches
from plumbline.parsers.measurement import Measurement
from plumbline.records import naming
from plumbline.records.model import Record
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, Piece

#: metrics of a pair; the kernel's other figures are sums over many pairs
METRICS = ("latency", "bandwidth")


def matrices(record: Record, number: int) -> list[dict[str, Any]]:
    """The matrices of a valid record, which is entry ``number`` of the page: one per metric and mode.

    ``ends`` are ``[rank, CPU or None, host or None]`` in the order of ranks, which is the machine's under the placement
    ``core``; a cell is ``[first rank, second rank, number of its class, value of each launch that counts…]``, and
    ``classes`` names the classes.
    """
    groups = group(((metric, mode), samples) for (metric, mode, *_), samples in of_launches(record, _cell).items())
    return [_matrix(number, metric, mode, cells) for (metric, mode), cells in groups.items()]


def _cell(item: Measurement) -> tuple[Any, ...] | None:
    """The metric, the mode and the ranks of a cell."""
    if item.metric not in METRICS or not all(end in item.params for end in RANKS):
        return None
    return item.metric, str(item.params.get("mode", "")), *(item.params[end] for end in RANKS)


def _matrix(number: int, metric: str, mode: str, cells: Sequence[Samples]) -> dict[str, Any]:
    of = [cell.first.params for cell in cells]
    ends = {
        params[end]: [params[end], params.get(f"{end}_cpu"), params.get(f"{end}_host")]
        for params in of
        for end in RANKS
    }
    kinds = [str(params.get("class", "")) for params in of]
    classes = list(dict.fromkeys(kinds))
    return {
        "entry": number,
        "metric": metric,
        "mode": mode,
        "unit": cells[0].first.unit,
        "better": cells[0].first.better,
        "ends": [ends[rank] for rank in sorted(ends)],
        "classes": classes,
        "cells": [
            [*(params[end] for end in RANKS), classes.index(kind), *cell.by_launch]
            for params, kind, cell in zip(of, kinds, cells, strict=True)
        ],
    }


def section(usable: Sequence[tuple[Record, int]]) -> Block:
    """The matrices of the valid records ``usable``, each with the number of its entry; one is shown at a time."""
    options = [_option(record, matrix) for record, number in usable for matrix in matrices(record, number)]
    return blocks.section(
        "pairs",
        "Core pairs",
        "Every pair of ranks: the median over the launches. Ranks are in their order, which is the order of the "
        "machine: neighbours side by side.",
        options and blocks.choice("Matrix", options, "pictures pairs"),
        otherwise=blocks.absent("reframe -c reframe-tests -r -n pairs"),
    )


def _option(record: Record, matrix: dict[str, Any]) -> tuple[str, list[Piece]]:
    """Name and picture of a matrix, and its values by class; medians in the unit that suits the largest."""
    stack, nodes, placed = record.stack.name, "+".join(record.nodes), naming.placement(record.placement)
    name = ", ".join(filter(None, (matrix["metric"], matrix["mode"], stack, nodes, placed)))
    medians = [statistics.median(value for value in cell[3:] if value is not None) for cell in matrix["cells"]]
    factor, unit = units.scale(max(medians), matrix["unit"])
    middle = [value / factor for value in medians]
    return name, [_picture(name, matrix, middle, unit), _classes(matrix, middle, unit)]


def _picture(name: str, matrix: dict[str, Any], middle: list[float], unit: str) -> Block:
    """A cell for each pair and direction; a value of one direction stands for both."""
    cells, ends = matrix["cells"], matrix["ends"]
    kind = "CPU" if all(cpu is not None for _, cpu, _ in ends) else "rank"
    several = len({host for *_, host in ends}) > 1
    names = {rank: f"{host} " * several + str(cpu if kind == "CPU" else rank) for rank, cpu, host in ends}
    places = {rank: place for place, rank in enumerate(names)}
    directed = {(first, second) for first, second, *_ in cells}
    drawn = [(row, places[second], places[first]) for row, (first, second, *_) in enumerate(cells)]
    drawn += [
        (row, y, x)
        for (row, x, y), (first, second, *_) in zip(drawn, cells, strict=True)
        if (second, first) not in directed
    ]
    return blocks.chart(
        f"{name} between two {kind}s",
        f"{unit}; {matrix['better']} is better.",
        [f"{kind}s", "class", blocks.number("median", unit), "launches", "ranks"],
        [
            (
                f"{names[first]}, {names[second]}",
                matrix["classes"][number] or "unknown",
                units.digits(value),
                ", ".join(" ".join(units.human(median, matrix["unit"])) for median in launches if median is not None),
                f"{first}, {second}",
            )
            for (first, second, number, *launches), value in zip(cells, middle, strict=True)
        ],
        [(*point, middle[point[0]], units.digits(middle[point[0]])) for point in drawn],
        targets=[matrix["entry"]] * len(cells),
        square=len(names),
        heat={**blocks.scale(middle, unit), "labels": len(names) <= 12},
        x={"name": kind, "labels": list(names.values())},
        y={"name": kind, "labels": list(names.values())},
    )


def _classes(matrix: dict[str, Any], middle: list[float], unit: str) -> Block:
    groups = group(
        (matrix["classes"][number] or "unknown", value)
        for (_, _, number, *_), value in zip(matrix["cells"], middle, strict=True)
    )
    return blocks.table(
        f"{matrix['metric']} by class of the pair",
        ["class", blocks.number("pairs"), *(blocks.number(title, unit) for title in ("least", "median", "most"))],
        [
            (kind, len(values), *(units.digits(end(values)) for end in (min, statistics.median, max)))
            for kind, values in groups.items()
        ],
    )
