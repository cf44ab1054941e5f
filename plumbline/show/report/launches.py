"""Every launch as a dot: by placement with the limits of the machine, and as strips around the median of its figure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from plumbline.base import group, units
from plumbline.base.units import counted
from plumbline.records import naming
from plumbline.records.figure import Figure
from plumbline.records.model import Record
from plumbline.show import record as parts
from plumbline.show import summary
from plumbline.show.columns import Column, Table
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, block, link, section

#: figures of a test that are drawn, its first ones; the record has all
MOST = 4
#: name of the lines of limits
BOUND = "limit or ceiling"


class Row(NamedTuple):
    """A figure of a record, its entry, and its name within its test."""

    record: Record
    entry: int
    label: str
    figure: Figure

    @property
    def spread(self) -> float:
        """Widest distance of two launches in percent."""
        return 100 * (summary.spread(self.figure) or 0)


STRIP = Table[Row](
    "Launches",
    [
        Column("variant", lambda row: link(row.label, entry=row.entry)),
        Column("figure", lambda row: row.figure.name, "named"),
        Column("median", lambda row: row.figure.shown[0], "number"),
        Column("unit", lambda row: row.figure.shown[1]),
        Column("spread", lambda row: f"{row.spread:.1f}", "number", "%"),
        Column("launches", lambda row: "  ".join(map(str, row.figure.samples)), "number"),
    ],
)


def launches(usable: Sequence[tuple[Record, int]]) -> Block:
    """The pictures of the valid records ``usable``, each with the number of its entry."""
    shown = [(record, entry) for record, entry in usable if record.figures]
    colours = blocks.palette(record.stack.name for record, _ in usable)
    key = [
        *([block("icon", look="swatch round", colour=tint), f" {name}  "] for name, tint in colours.items()),
        *(block("icon", look="dot"), " launch ", block("icon", look="dot open"), " disturbed launch"),
    ]
    options = [
        (name, [block("pictures", *_pictures(shown, colours, every))])
        for name, every in (
            ("first of each variant", False),
            *([("all", True)] if any(len(record.figures) > 1 for record, _ in shown) else []),
        )
    ]
    return section(
        "launches",
        "Launches",
        "Every launch of every variant: how far it lies from the median of its figure, the widest spread at the top.",
        bool(shown) and [block("key", *key), blocks.choice("Figures", options)],
        otherwise="No valid record: no launch to show. The reasons stand under Left out.",
    )


def _pictures(shown: Sequence[tuple[Record, int]], colours: dict[str, str], every: bool) -> Iterator[Block]:
    """The pictures of each test: the widest spread first, at most :data:`plumbline.show.record.ROWS` in each."""
    for test, members in sorted(group((item[0].variant.test, item) for item in shown).items()):
        rows = [
            Row(record, entry, _label(record, figure if every else None), figure)
            for record, entry in members
            for figure in (record.figures if every else record.figures[:1])
            if figure.value > 0
        ]
        rows.sort(key=lambda row: -row.spread)
        yield from (_strip(title, part, colours, every) for title, part in parts.sheets(test, rows))


def _label(record: Record, figure: Figure | None) -> str:
    arguments = naming.name(record.variant)[len(record.variant.test) :].strip()
    words = (arguments, naming.placement(record.placement), record.stack.name, figure and figure.name)
    return " · ".join(word for word in words if word)


def _strip(title: str, rows: Sequence[Row], colours: dict[str, str], every: bool) -> Block:
    names = ", ".join(dict.fromkeys(row.figure.name for row in rows))
    drawn = [
        (row.record.stack.name, dot, (place, dot.far, len(rows) - 1 - place, dot.seen,
         f"{dot.launch.order}, {dot.launch.start[11:19]}", dot.causes))
        for place, row in enumerate(rows)
        for dot in parts.dots(row.record, row.figure)
    ]  # fmt: skip
    series = [
        parts.dot_series(name, colours[name], [(dot, point) for stack, dot, point in drawn if stack == name])
        for name in dict.fromkeys(stack for stack, _, _ in drawn)
    ]
    end = _end(max([1.0, *(abs(dot.far) for _, dot, _ in drawn)]))
    return STRIP.chart(
        title,
        "All figures." if every else f"First figure of each variant: {names}.",
        rows,
        targets=[row.entry for row in rows],
        series=series,
        each=["measured", "launch", "disturbed"],
        height=62 + len(rows) * 19,
        wide=250,
        x={"name": "% from median", "told": True, "min": -end, "max": end, "interval": end / 2},
        y=blocks.lanes([row.label for row in reversed(rows)]),
    )


def _end(value: float) -> float:
    """The end of an axis: a round number that is a little larger."""
    step = 10.0 ** math.floor(math.log10(value))
    return next((factor * step for factor in (1, 2, 4, 6, 10) if factor * step >= value * 1.02), value)


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
        series += [
            parts.dot_series(name, colours[name], dots),
            blocks.series(
                name,
                colours[name],
                [(place, point.figure.value / factor, y) for place, point, y in drawn],
                look={"symbol": "rect", "symbolSize": [3, 13]},
            ),
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
