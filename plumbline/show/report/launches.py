"""Every launch: strips of dots around the median of their figure, a picture for each test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from plumbline.base import group
from plumbline.records import naming
from plumbline.records.figure import Figure
from plumbline.records.model import Record
from plumbline.show import record as parts
from plumbline.show import summary
from plumbline.show.columns import Column, Table
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, block, link, section


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


def _pictures(shown: Sequence[tuple[Record, int]], colours: dict[str, str], every: bool) -> list[Block]:
    """The pictures of each test: the widest spread first, at most :data:`plumbline.show.record.ROWS` in each."""
    pictures = []
    for test, members in sorted(group((item[0].variant.test, item) for item in shown).items()):
        rows = [
            Row(record, entry, _label(record, figure if every else None), figure)
            for record, entry in members
            for figure in (record.figures if every else record.figures[:1])
            if figure.value > 0
        ]
        rows.sort(key=lambda row: -row.spread)
        pictures += [_strip(title, part, colours, every) for title, part in parts.sheets(test, rows)]
    return pictures


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
