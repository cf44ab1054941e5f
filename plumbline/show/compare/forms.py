"""A comparison as a text, Markdown, CSV, JSON and a page."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from plumbline.base import csv_output, table, units
from plumbline.judge.compare import Comparison, Line
from plumbline.show.compare.page import closing, document, legend, members, ratio, why
from plumbline.show.pages import page

#: characters of a circumstance that are shown
WIDTH = 40


def text(comparison: Comparison) -> str:
    """Circumstances that differ, the table, what its marks mean, and the closing line."""
    blocks = []
    if comparison.circumstances:
        cells = [(name, *(value[:WIDTH] for value in values)) for name, values in comparison.circumstances]
        blocks.append(table.table(("differs too", *comparison.sides), cells))
    header, body = _cells(comparison)
    blocks.append(table.table(header, body, right=comparison.sides))
    blocks.append("\n".join(legend(comparison)))
    blocks += [cause] if (cause := why(comparison)) else []
    blocks.append(closing(comparison))
    return "\n\n".join(block for block in blocks if block)


def markdown(comparison: Comparison) -> str:
    """The table and the closing line for a page or a merge request."""
    header, body = _cells(comparison)
    lines = [f"{line}  " for line in legend(comparison)]
    return "\n".join([table.markdown(header, body, comparison.sides), "", *lines, "", f"**{closing(comparison)}**"])


def as_csv(comparison: Comparison) -> str:
    """A row for each figure and side; ratios are to the first side that has the figure."""
    names = ("test", "placement", "figure", "site", "partition", "stack", "unit", "better", "side", "value", "sessions")
    rows: list[tuple[Any, ...]] = []
    for line in comparison.lines:
        key = line.key
        start = (key.variant, key.placement, key.figure, key.site, key.partition, key.stack, line.unit, line.better)
        for number, (side, cell) in enumerate(zip(comparison.sides, line.cells, strict=True)):
            if cell is None:
                continue
            known = line.differences[number]
            difference = (known.ratio, known.low, known.high, known.basis) if known else ("", "", "", "")
            marks = (bool(line.claimed[number]), number in line.best)
            rows.append((*start, side, cell.value, len(cell.sessions), *difference, *marks))
    return csv_output.table((*names, "ratio", "low", "high", "basis", "claimed", "best"), rows).rstrip("\n")


def as_json(comparison: Comparison) -> str:
    """The whole comparison."""
    return json.dumps(asdict(comparison), indent=1)


def html(comparison: Comparison) -> str:
    """The comparison as a page of its own."""
    return page.render(document(comparison))


def _cells(comparison: Comparison) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and rows."""
    kept = members(comparison)
    header = ("test", "placement", *kept, "figure", "unit", *comparison.sides, "best")
    return header, [_row(line, kept, comparison.sides) for line in comparison.lines]


def _row(line: Line, kept: list[str], names: tuple[str, ...]) -> tuple[str, ...]:
    factor, unit = units.scale(max(cell.value for cell in line.cells if cell), line.unit)
    values = [
        f"{units.digits(cell.value / factor, cell.step / factor)}  {ratio(line, number, '{:.3g}'.format)}".rstrip()
        if cell
        else "–"
        for number, cell in enumerate(line.cells)
    ]
    key = line.key
    best = " ".join(names[number] for number in line.best) or "–"
    return (key.variant, key.placement, *(getattr(key, name) for name in kept), key.figure, unit, *values, best)


def of(comparison: Comparison) -> dict[str, Callable[[], str]]:
    """The function that makes the text of a file, by its ending."""
    return {ending: lambda make=make: f"{make(comparison)}\n" for ending, make in FORMS.items()}  # type: ignore[misc]


FORMS: dict[str, Callable[[Comparison], str]] = {
    ".csv": as_csv,
    ".html": html,
    ".json": as_json,
    ".md": markdown,
    ".txt": text,
}
