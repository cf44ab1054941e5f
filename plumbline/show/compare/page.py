"""A comparison in words and data: what the table of the terminal and the page both say."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from plumbline.base import units
from plumbline.judge.compare import MEMBERS, Comparison, Line
from plumbline.show.pages.blocks import Block, Piece, block, column, link, number, section, table
from plumbline.statistics import unpaired

#: figures that are not compared, of which the legend tells
NAMED = 3


def document(comparison: Comparison) -> Block:
    """The page of a comparison."""
    differs = section(
        "differs",
        "What differs too",
        "Circumstances that are not the same on all sides, besides what the sides were chosen by.",
        table(
            "What differs too",
            ["circumstance", *(column(name, "notes") for name in comparison.sides)],
            [(name, *values) for name, values in comparison.circumstances],
        ),
    )
    figured = section(
        "figures",
        "Figures",
        "The median over the sessions of each side, and its ratio to the first side that has the figure.",
        *figures(comparison),
    )
    return {
        "title": f"Comparison: {', '.join(comparison.sides)}",
        "head": [block("paragraph", closing(comparison), id="closing")],
        "sections": [differs, figured] if comparison.circumstances else [figured],
    }


def figures(comparison: Comparison, entries: Mapping[str, int] = MappingProxyType({})) -> list[Piece]:
    """Each figure on each side, below what the marks mean; a value opens its record, if that is among ``entries``."""
    kept = members(comparison)
    columns = [column("test", "test"), *kept, "figure", *map(number, comparison.sides)]
    rows = [
        [
            [line.key.variant, block("small", line.key.placement)],
            *(getattr(line.key, name) for name in kept),
            *_cells(line, entries),
        ]
        for line in comparison.lines
    ]
    return [block("bullets", "★: best", *legend(comparison)), table("Figures by side", columns, rows)]


def closing(comparison: Comparison) -> str:
    """The summary line: in how many figures each side alone is best, and in how many no side is."""
    best = [sum(line.best == (number,) for line in comparison.lines) for number in range(len(comparison.sides))]
    counts = [f"{name} best in {count}" for name, count in zip(comparison.sides, best, strict=True)]
    none = sum(len(line.best) != 1 for line in comparison.lines)
    alone = f"; {units.counted(comparison.alone, 'figure')} of one side only" if comparison.alone else ""
    return f"{units.counted(len(comparison.lines), 'figure')}: {', '.join(counts)}, no single best in {none}{alone}"


def why(comparison: Comparison) -> str | None:
    """The command that looks for the cause of the largest difference that is claimed; None where none is."""
    claims = [
        (abs(math.log(difference.ratio)), line, number)
        for line in comparison.lines
        for number, (difference, known) in enumerate(zip(line.differences, line.claimed, strict=True))
        if known and difference and difference.ratio > 0 and line.key.site
    ]
    if not claims:
        return None
    _, line, number = max(claims, key=lambda claim: claim[0])
    first, candidate = next(cell for cell in line.cells if cell), line.cells[number]
    ids = [cell.records[-1] for cell in (first, candidate) if cell]
    return f"the cause of the largest difference: plumb why {' '.join(ids)} --figure {shlex.quote(line.key.figure)}"


def legend(comparison: Comparison) -> list[str]:
    """The meaning of the marks of the table, and how small a difference would have been seen."""
    lines = [
        "ratio to the first side with the figure [interval]; ?: no difference seen; best: none is better, some is worse"
    ]
    differences = [
        (difference, known)
        for line in comparison.lines
        for difference, known in zip(line.differences, line.claimed, strict=True)
        if difference
    ]
    if any(difference.basis == "launches" for difference, _ in differences):
        lines.append(
            f"~: fewer than {unpaired.ENOUGH} sessions on a side: sessions are taken to differ by "
            f"{100 * comparison.spread:.2g} % (standard deviation); the interval is from launch to launch"
        )
    unseen = [difference.visible for difference, known in differences if not known]
    if unseen:
        visible = sorted(math.inf if size is None else size for size in unseen)[len(unseen) // 2]
        lines.append(
            f"where none was seen, {units.percent(visible - 1)} would have been seen in every second case (median)"
            if visible < math.inf
            else "if no difference was seen, most figures have too few launches to show one in a table of this size: "
            f"measure {unpaired.ENOUGH} sessions of each side"
        )
    zero = sum(any(cell and not cell.has_ratio for cell in line.cells) for line in comparison.lines)
    if zero:
        lines.append(f"{units.counted(zero, 'line')} with a figure of 0: it has no ratio, and no claim is made")
    unsure = sum(line.doubtful for line in comparison.lines)
    if unsure:
        lines.append(
            f"!: tests that measure the same quantity disagree ({units.counted(unsure, 'line')}): not compared"
        )
    if comparison.unlike:
        lines.append(f"not compared, for unit, direction or arguments differ: {unlike(comparison)}")
    return [*lines, "records of different sessions are not pairs: plumb gate decides what a change must not cost"]


def unlike(comparison: Comparison) -> str:
    """The figures that are not compared although several sides have them; the first :data:`NAMED` of them."""
    more = len(comparison.unlike) - NAMED
    return "; ".join(comparison.unlike[:NAMED]) + (f"; and {more} more" if more > 0 else "")


def members(comparison: Comparison) -> list[str]:
    """The members of keys in which lines differ: a column that would be the same everywhere is left out."""
    return [name for name in MEMBERS if len({getattr(line.key, name) for line in comparison.lines}) > 1]


def _cells(line: Line, entries: Mapping[str, int]) -> Iterator[Piece]:
    factor, unit = units.scale(max(known.value for known in line.cells if known), line.unit)
    yield [line.key.figure, block("small", f"{unit}, {line.better} is better")]
    for side, known in enumerate(line.cells):
        if known is None:
            yield None
            continue
        shown = link(units.digits(known.value / factor, known.step / factor), entry=entries.get(known.records[-1]))
        best = [block("glyph", "★ ", title="best"), block("strong", shown)] if side in line.best else shown
        basis = f"{units.counted(len(known.sessions), 'session')}, {units.counted(known.launches, 'launch')}"
        disturbed = f", {known.disturbed} disturbed" if known.disturbed else ""
        under = [ratio(line, side, units.digits), "" if entries else basis + disturbed]
        yield [best, *(block("small", text) for text in under if text)]


def ratio(line: Line, side: int, shown: Callable[[float], str]) -> str:
    """``0.87 [0.85 0.90]``: ``~``: the weaker basis, ``?``: nothing is claimed, ``!`` alone: a doubtful line."""
    difference = line.differences[side]
    if difference is None:
        return "!" if line.doubtful else ""
    weak = "~" if difference.basis == "launches" else ""
    unknown = "" if line.claimed[side] else "?"
    interval = (
        ""
        if difference.low is None or difference.high is None
        else f" [{shown(difference.low)} {shown(difference.high)}]"
    )
    return f"{weak}{shown(difference.ratio)}{interval}{unknown}"
