"""Tests by placement: every launch of a figure as a dot, a row for each placement, with the limits of the machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from plumbline.base import group, units
from plumbline.base.units import counted
from plumbline.records import naming
from plumbline.records.figure import Figure
from plumbline.records.model import Record
from plumbline.show import record as parts
from plumbline.show.columns import Column, Table
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, block, link, section

#: figures of a test that are drawn, its first ones; the record has all
MOST = 4
#: name of the lines of limits
BOUND = "limit or ceiling"


def _bound(figure: Figure) -> float | None:
    """The limit or else the ceiling of the figure, in the figure's unit."""
    known = figure.limit or figure.ceiling
    return known.value if known and known.unit == figure.unit else None


def placements(usable: Sequence[tuple[Record, int]]) -> Block:
    """The section of the valid records ``usable``, each with the number of its entry: a choice of tests."""
    colours = blocks.palette(record.stack.name for record, _ in usable)
    tests = group((record.variant.test, (record, entry)) for record, entry in usable if record.figures)
    options = [(name, pieces) for name, entries in sorted(tests.items()) if (pieces := _test(entries, colours))]
    return section(
        "placements",
        "Tests by placement",
        "Every test that ran on several placements: a dot per launch, a bar at the median, a line at the limit or the "
        "ceiling. Colour: stack. Open dots: disturbed.",
        bool(options) and blocks.choice("Test", options),
        otherwise="No test ran on several placements.",
    )


def _test(entries: Sequence[tuple[Record, int]], colours: dict[str, str]) -> list[Block]:
    """The pictures of a test: those of the first figure of its variants, and the others folded."""
    first = dict.fromkeys(record.figures[0].name for record, _ in entries)
    names = dict.fromkeys([*first, *(figure.name for record, _ in entries for figure in record.figures)])
    pictures = [(name, list(_figure(entries, name, colours))) for name in list(names)[: max(MOST, len(first))]]
    shown = [picture for name, drawn in pictures if name in first for picture in drawn]
    others = [drawn for name, drawn in pictures if name not in first and drawn]
    stacked = [block("stacked", *drawn) for drawn in others]
    folded = [block("folded", *stacked, title=counted(len(others), "more figure"))] if others else []
    return [block("stacked", *shown), *folded] if shown else []


def _figure(entries: Sequence[tuple[Record, int]], name: str, colours: dict[str, str]) -> Iterator[Block]:
    """A figure of a test by placement, a picture for each of the test's other parameters."""
    variants = group(
        (naming.name(record.variant), parts.Drawn(record, entry, figure))
        for record, entry in entries
        if (figure := record.figure(name))
    )
    for variant, points in variants.items():
        labels = sorted({point.placement for point in points}, key=_natural)
        for title, part in parts.sheets(f"{variant}: {name}", labels) if len(labels) > 1 else ():
            yield _picture(title, part[::-1], [point for point in points if point.placement in part], colours)


def _picture(title: str, labels: Sequence[str], rows: Sequence[parts.Drawn], colours: dict[str, str]) -> Block:
    """A row for each label, the last one at the top; stacks one below the other."""
    bounds = {
        (point.placement, _bound(point.figure)): place
        for place, point in enumerate(rows)
        if _bound(point.figure) is not None
    }
    most = max(
        value for point in rows for value in (point.figure.value, _bound(point.figure) or 0, *point.figure.samples)
    )
    factor, unit = units.scale(most, rows[0].figure.unit)
    stacks = sorted({point.stack for point in rows})
    lane = max(30, 13 * len(stacks))
    aside = {name: (place - (len(stacks) - 1) / 2) * 0.7 / len(stacks) for place, name in enumerate(stacks)}
    series = []
    for name in stacks:
        drawn = [
            (place, point, labels.index(point.placement) + aside[name])
            for place, point in enumerate(rows)
            if point.stack == name
        ]
        dots = [
            (dot, (place, dot.value / factor, y, f"{dot.launch.order}: {dot.seen}", dot.causes))
            for place, point, y in drawn
            for dot in parts.dots(point.record, point.figure)
        ]
        bars = [(place, point.figure.value / factor, y) for place, point, y in drawn]
        series += [
            parts.dot_series(name, colours[name], dots),
            blocks.series(name, colours[name], bars, look={"symbol": "rect", "symbolSize": [3, 13]}),
        ]
    lines = [(place, bound / factor, labels.index(label)) for (label, bound), place in bounds.items() if bound]
    if lines:
        series.append(blocks.series(BOUND, "text", lines, look={"symbol": "rect", "symbolSize": [1.5, lane]}))

    table = Table[parts.Drawn](
        title,
        [
            Column("placement", lambda of: link(of.placement, entry=of.entry)),
            Column("stack", lambda of: of.stack, "named"),
            Column("median", lambda of: of.digits(of.figure.value, factor), "number named", unit),
            Column(
                BOUND, lambda of: (known := _bound(of.figure)) and units.digits(known / factor), "number named", unit
            ),
            Column(
                "launches",
                lambda of: "  ".join(of.digits(value, factor) for value in of.figure.samples),
                "number",
                unit,
            ),
        ],
    )
    return table.chart(
        title,
        f"{rows[0].figure.better} is better.",
        rows,
        targets=[point.entry for point in rows],
        series=series,
        each=["launch", "disturbed"],
        legend=True,
        wide=210,
        height=100 + len(labels) * lane,
        x={"name": unit, "type": "value", "min": 0, "boundaryGap": [0, "4%"]},
        y=blocks.lanes(labels),
    )


def _natural(text: str) -> list[int | str]:
    """A key that sorts the numbers in texts by their value."""
    return [int(part) if place % 2 else part for place, part in enumerate(re.split(r"(\d+)", text))]
