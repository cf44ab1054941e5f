"""The end of a campaign on a terminal: what is not as expected, then a line for each test, on one screen."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from plumbline.base import group, units
from plumbline.records import naming
from plumbline.records.figure import Figure
from plumbline.records.model import AnyRecord
from plumbline.show.columns import Column, Table

#: the screen that all of it fits on
LINES, WIDTH = 30, 80
#: faults, stacks, and placements of a test that are shown, at most
FAULTS, STACKS, PLACEMENTS = 5, 3, 2
#: characters of placements, of a figure with its unit, of a stack's name, and the fewest of a test's name
PLACED, FIGURE, STACK, NAME = 19, 13, 9, 12


@dataclass(frozen=True)
class Line:
    """The first variant of a test with its placements and stacks side by side; ``more`` are not shown."""

    name: str
    more: str
    placed: str
    measure: str
    values: dict[str, str]


def lines(records: Sequence[AnyRecord]) -> list[Line]:
    """A line for each test that has a figure; values are in the order of the placements."""
    call, shown = naming.naming(record.variant for record in records), []
    usable = [record for record in records if record.figures and not record.faults]
    for alike in group((record.variant.test, record) for record in usable).values():
        named = group((call(record.variant), record) for record in alike)
        name, first = next(iter(named.items()))
        placements = list(dict.fromkeys(naming.placement(record.placement).rpartition(" ")[0] for record in first))
        figures = {(naming.placement(of.placement).rpartition(" ")[0], of.stack.name): of.figures[0] for of in first}
        divisor, unit = units.scale(max(figure.value for figure in figures.values()), first[0].figures[0].unit)
        more = len(named) - 1 + len(placements[PLACEMENTS:])
        short = [placement.split()[0] for placement in placements[:PLACEMENTS]]
        placed = short if len(set(short)) == len(short) else placements[:PLACEMENTS]
        values = {
            stack: "/".join(_value(figures.get((placement, stack)), divisor) for placement in placements[:PLACEMENTS])
            for stack in sorted({stack for _, stack in figures})
        }
        measure = f"{naming.shorten(first[0].figures[0].name, FIGURE - len(unit))} {unit}"
        shown.append(Line(name, f" +{more}" if more else "", naming.shorten("/".join(placed), PLACED), measure, values))
    return shown


def _value(figure: Figure | None, divisor: float) -> str:
    value = figure.value / divisor if figure else math.nan
    digits = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return units.dashed(None if math.isnan(value) else digits)


def _values(line: Line, stack: str) -> str | None:
    return line.values.get(stack)


def text(records: Sequence[AnyRecord], faults: Sequence[str], end: Sequence[str]) -> str:
    """One screen: the first of ``faults``, the table of the tests, and the lines of the ``end``."""
    stacks = sorted({record.stack.name for record in records})
    top = [
        *(naming.shorten(f"!! {fault}", WIDTH) for fault in faults[:FAULTS]),
        *([f"!! and {len(faults) - FAULTS} more"] if len(faults) > FAULTS else []),
    ]
    closing = [line for sentence in end for line in textwrap.wrap(sentence, WIDTH, break_on_hyphens=False)]
    rows = lines(records)
    kept = rows[: max(1, LINES - len(top) - len(closing) - 7)]
    for count in range(STACKS, 0, -1):
        columns = [
            Column[Line]("placement", lambda row: row.placed),
            Column[Line]("figure", lambda row: row.measure),
            *(Column(naming.shorten(name, STACK), partial(_values, stack=name), "number") for name in stacks[:count]),
        ]
        room = WIDTH - 2 - max(map(len, Table("", columns).text(kept).splitlines()))
        if room >= NAME:
            break
    left_out = [(len(rows) - len(kept), "test"), (max(0, len(stacks) - count), "stack")]
    more = "".join(f", {units.counted(number, noun)} more" for number, noun in left_out if number)
    test = Column[Line]("test", lambda row: naming.shorten(row.name, room - len(row.more)) + row.more)
    return "\n".join(
        [
            *top,
            *([""] if top else []),
            Table("", [test, *columns]).text(kept),
            f"plumb list --all shows the whole table{more}",
            "",
            *closing,
        ]
    )
