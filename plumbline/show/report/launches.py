"""Every launch: strips of dots around the median of their figure, a picture for each test."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from plumbline.records import naming
from plumbline.records.figure import Figure
from plumbline.records.model import Record
from plumbline.show.pages import blocks, looks
from plumbline.show.pages.blocks import Block, Piece, block, column, link, number, section
from plumbline.show.report import figures

#: rows of one picture: a taller one is more than some browsers can draw
ROWS = 60
COLUMNS = ("variant", column("figure", "named"), number("median"), "unit", number("spread", "%"), number("launches"))
#: a record, its entry, its name within its test, and a figure of it
Row = tuple[Record, int, str, Figure]


def launches(usable: Sequence[tuple[Record, int]]) -> Block:
    """The pictures of the valid records ``usable``, each with the number of its entry."""
    shown = [(record, entry) for record, entry in usable if record.figures]
    colours = looks.palette(record.stack.name for record, _ in usable)
    key: list[Piece] = [
        [block("icon", look="swatch round", colour=tint), f" {name}  "] for name, tint in colours.items()
    ]
    key += [block("icon", look="dot"), " launch ", block("icon", look="dot open"), " disturbed launch"]
    several = any(len(record.figures) > 1 for record, _ in shown)
    options = [
        (name, [block("pictures", *_pictures(shown, colours, every))])
        for name, every in (("first of each variant", False), *([("all", True)] if several else []))
    ]
    return section(
        "launches",
        "Launches",
        "Every launch of every variant: how far it lies from the median of its figure, the widest spread at the top.",
        bool(shown) and [block("key", *key), blocks.choice("Figures", options)],
        otherwise="No valid record: no launch to show. The reasons stand under Left out.",
    )


def _pictures(shown: Sequence[tuple[Record, int]], colours: dict[str, str], every: bool) -> list[Block]:
    """The pictures of each test: the widest spread first, at most :data:`ROWS` in each."""
    pictures = []
    by_test = sorted(shown, key=lambda member: member[0].variant.test)
    for test, group in itertools.groupby(by_test, key=lambda member: member[0].variant.test):
        rows: list[Row] = [
            (record, entry, _label(record, figure if every else None), figure)
            for record, entry in group
            for figure in (record.figures if every else record.figures[:1])
            if figure.value > 0
        ]
        rows.sort(key=lambda row: -(figures.spread(row[3]) or 0))
        count = math.ceil(len(rows) / ROWS)
        for place in range(count):
            title = f"{test} ({place + 1} of {count})" if count > 1 else test
            pictures.append(_strip(title, rows[place * ROWS : (place + 1) * ROWS], colours, every))
    return pictures


def _label(record: Record, figure: Figure | None) -> str:
    arguments = naming.name(record.variant)[len(record.variant.test) :].strip()
    words = (arguments, naming.placement(record.placement), record.stack.name, figure and figure.name)
    return " · ".join(word for word in words if word)


def _strip(title: str, rows: Sequence[Row], colours: dict[str, str], every: bool) -> Block:
    names = ", ".join(dict.fromkeys(figure.name for *_, figure in rows))
    drawn = [
        (record.stack.name, dot, (place, dot.far, len(rows) - 1 - place, dot.seen,
         f"{dot.launch.order}, {dot.launch.start[11:19]}", dot.causes))
        for place, (record, _, _, figure) in enumerate(rows)
        for dot in figures.dots(record, figure)
    ]  # fmt: skip
    series = [
        figures.series(name, colours[name], [(dot, point) for stack, dot, point in drawn if stack == name])
        for name in dict.fromkeys(stack for stack, _, _ in drawn)
    ]
    end = _end(max([1.0, *(abs(dot.far) for _, dot, _ in drawn)]))
    return blocks.chart(
        title,
        "All figures." if every else f"First figure of each variant: {names}.",
        COLUMNS,
        [_row(row) for row in rows],
        targets=[entry for _, entry, *_ in rows],
        series=series,
        each=["measured", "launch", "disturbed"],
        height=62 + len(rows) * 19,
        wide=250,
        x={"name": "% from median", "told": True, "min": -end, "max": end, "interval": end / 2},
        y={
            "min": -0.5,
            "max": len(rows) - 0.5,
            "interval": 1,
            "ticks": [(len(rows) - 1 - place, label) for place, (_, _, label, _) in enumerate(rows)],
        },
    )


def _row(row: Row) -> list[Piece]:
    _, entry, label, figure = row
    return [
        link(label, entry=entry),
        figure.name,
        *figure.shown,
        f"{100 * (figures.spread(figure) or 0):.1f}",
        "  ".join(map(str, figure.samples)),
    ]


def _end(value: float) -> float:
    """The end of an axis: a round number that is a little larger."""
    step = 10.0 ** math.floor(math.log10(value))
    return next((factor * step for factor in (1, 2, 4, 6, 10) if factor * step >= value * 1.02), value)
