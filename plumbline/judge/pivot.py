"""Figures in rows and columns by what they were measured under: placement by memory policy, kind by distance, …

An attribute of a figure is a parameter of its test, a member of its placement, its stack, partition, site, test or
name. What varies inside a cell is named before the rows, so that a cell is always of one kind.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from msgspec import structs

from plumbline.base import group, units
from plumbline.base.table import sparkline
from plumbline.base.table import table as drawn
from plumbline.base.units import RATIO, Better, multiple
from plumbline.judge.compare import Cell, cell
from plumbline.judge.references.match import Entry
from plumbline.judge.samples import Measured
from plumbline.records.model import AnyRecord

#: the values of some attributes, in the order of their names
Values: TypeAlias = tuple[str, ...]
#: attribute -> the values that count, in their order; none: all
Axis: TypeAlias = Mapping[str, Sequence[str]]
#: stands in a cell without a figure
DASH = "–"
#: members of a placement, which follow from what was asked for
PLACED = ("memory", "threads", "ranks_per_node", "nodes")
#: attributes that tell cells apart first, after the parameters
FIRST = ("stack", "test", "placement", *PLACED, "partition", "site")


@dataclass(frozen=True)
class Item:
    """A figure with its attributes: ``parameters`` (test with its own, stack, partition, site) and the others."""

    parameters: dict[str, str]
    others: dict[str, str]
    unit: str
    better: Better
    measured: Measured | None = None
    published: float | None = None

    def get(self, name: str) -> str | None:
        """The value of an attribute."""
        return self.parameters.get(name, self.others.get(name))

    def has(self, where: Axis) -> bool:
        """Whether each attribute has one of its values."""
        return all(self.get(name) in values if values else self.get(name) is not None for name, values in where.items())


@dataclass(frozen=True)
class Shown:
    """The content of a cell: a value with its unit, of launches or of a reference (then without ``cell``)."""

    value: float
    unit: str
    better: Better
    cell: Cell | None = None

    @property
    def step(self) -> float:
        """How finely the value is known; 0 of a reference."""
        return self.cell.step if self.cell else 0.0


@dataclass(frozen=True)
class Pivot:
    """``cells`` by values of the attributes ``by_row`` and ``by_column``; both in the order in which they are shown.

    Of the attributes ``by_row`` the first ``added`` ones are those that would have varied inside cells.
    """

    added: int
    by_row: tuple[str, ...]
    by_column: tuple[str, ...]
    rows: tuple[Values, ...]
    columns: tuple[Values, ...]
    cells: dict[tuple[Values, Values], Shown]

    @property
    def unit(self) -> str | None:
        """The unit of all cells; None where they have several."""
        kinds = {content.unit for content in self.cells.values()}
        return kinds.pop() if len(kinds) == 1 else None


def measured(rows: Iterable[AnyRecord], figures: str = ".*", tests: str = ".*") -> list[Item]:
    """The figures of comparable records whose names, and whose tests, match as a whole; groups are attributes."""
    return [
        _item(row.variant.test, row.variant.params, _placed(row), figure.name, groups, figure.unit, figure.better,
              measured=(row, figure))
        for row in rows
        if row.is_comparable and re.fullmatch(tests, row.variant.test)
        for figure in row.figures
        if (groups := _groups(figures, figure.name)) is not None
    ]  # fmt: skip


def published(site: str, entries: Iterable[Entry], figures: str = ".*", tests: str = ".*") -> list[Item]:
    """The published references of a site, as :func:`measured` has figures."""
    return [
        _item(entry.test, entry.params, {"stack": entry.stack, "partition": entry.partition, "site": site},
              entry.figure, groups, entry.unit, entry.better, published=entry.value)
        for entry in entries
        if entry.method == "published" and re.fullmatch(tests, entry.test)
        if (groups := _groups(figures, entry.figure)) is not None
    ]  # fmt: skip


def _groups(pattern: str, name: str) -> dict[str, str] | None:
    match = re.fullmatch(pattern, name)
    return None if match is None else {key: value for key, value in match.groupdict().items() if value is not None}


def _placed(row: AnyRecord) -> dict[str, str]:
    return {
        "placement": row.placement.name,
        **{name: str(getattr(row.placement, name)) for name in PLACED},
        "stack": row.stack.name,
        "partition": row.partition,
        "site": row.site,
    }


def _item(
    test: str, params: Mapping[str, Any], where: dict[str, str], figure: str, groups: dict[str, str], unit: str,
    better: Better, **of: Any,
) -> Item:  # fmt: skip
    texts = {name: str(value) for name, value in params.items()}
    kept = {name: where[name] for name in ("stack", "partition", "site")}
    others = {name: value for name, value in where.items() if name not in kept}
    return Item({"test": test, **kept, **texts, **groups}, {**others, "figure": figure}, unit, better, **of)


def spread(item: Item) -> Item:
    """How far the launches of a measured figure are from their median, in percent of it."""
    if item.measured is None:
        return item
    row, figure = item.measured
    away = [100 * abs(sample - figure.value) / abs(figure.value) if figure.value else 0.0 for sample in figure.samples]
    changed = structs.replace(figure, value=statistics.median(away), samples=away, unit="%", better="lower")
    return replace(item, unit="%", better="lower", measured=(row, changed))


def launches(items: Iterable[Item]) -> list[Item]:
    """Each launch of measured figures as a figure by attribute ``launch``, its number among launches of the same."""
    by_figure = group(
        (
            str((sorted(item.parameters.items()), item.others)),
            (item, item.measured[0], structs.replace(figure, value=value, samples=[value])),
        )
        for item in items
        if item.measured
        for figure in item.measured[1:]
        for value in figure.samples
    )
    return [
        replace(item, others={**item.others, "launch": str(number)}, measured=(row, figure))
        for members in by_figure.values()
        for number, (item, row, figure) in enumerate(members, 1)
    ]


def table(items: Sequence[Item], rows: Axis, columns: Axis) -> Pivot:
    """The ``items`` that have all attributes of the axes, by their values. Several sessions make one cell."""
    kept = [item for item in items if item.has(rows) and item.has(columns)]
    by_row, by_column = (*_varying(kept, [*rows, *columns]), *rows), tuple(columns)
    by_cell = group(((_values(item, by_row), _values(item, by_column)), item) for item in kept)
    return Pivot(
        len(by_row) - len(rows),
        by_row,
        by_column,
        ordered({row for row, _ in by_cell}, by_row, rows),
        ordered({column for _, column in by_cell}, by_column, columns),
        {key: shown(members) for key, members in by_cell.items()},
    )


def _varying(items: Sequence[Item], axes: Sequence[str]) -> Iterator[str]:
    """The attributes, beside the ``axes``, without which a cell would hold figures of several kinds."""
    names = dict.fromkeys(name for item in items for name in (*item.parameters, *item.others))
    names_in_order = [name for name in names if name not in FIRST] + [name for name in FIRST if name in names]
    by = list(axes)
    for name in (name for name in names_in_order if name not in by):
        cells = group((_values(item, by), item.get(name)) for item in items)
        if any(len(set(values)) > 1 for values in cells.values()):
            by.append(name)
            yield name


def _values(item: Item, names: Sequence[str]) -> Values:
    return tuple(item.get(name) or "" for name in names)


def ordered(distinct: Iterable[Values], names: Sequence[str], axis: Axis) -> tuple[Values, ...]:
    """Values of the attributes ``names``: as the axis has them, else numbers by size and before other texts."""

    def place(values: Values) -> list[Any]:
        return [
            (list(axis[name]).index(value), 0.0, "") if axis.get(name) else _natural(value)
            for name, value in zip(names, values, strict=True)
        ]

    return tuple(sorted(distinct, key=place))


def _natural(text: str) -> tuple[int, float, str]:
    """The sort key of a value: numbers by size, then texts by the first number in them."""
    return (0, float(text), "") if re.fullmatch(r"\d+(?:\.\d+)?", text) else (1, 0.0, text)


def shown(items: Sequence[Item]) -> Shown:
    """The content of a cell with these figures, or with one reference."""
    first = items[0]
    if first.published is not None:
        return Shown(first.published, first.unit, first.better)
    unit = unit_of(items)
    summary = cell([item.measured for item in items if item.measured], unit)
    return Shown(summary.value, unit, first.better, summary)


def unit_of(items: Sequence[Item]) -> str:
    """The unit that the values of ``items`` are compared in: their own, or what all are multiples of."""
    kinds = {item.unit for item in items}
    return kinds.pop() if len(kinds) == 1 else multiple(items[0].unit)[0]


def text(pivot: Pivot, plot: bool = False) -> str:
    """The table for a terminal: the unit above it where all cells have one; then ``plot`` adds a sparkline to rows."""
    unit = pivot.unit
    names = [" ".join(column) or "value" for column in pivot.columns]
    shown = [(row, [pivot.cells.get((row, column)) for column in pivot.columns]) for row in pivot.rows]
    rows = [
        (
            *row,
            *(formatted(content, unit) for content in contents),
            *([sparkline([content.value for content in contents if content]) if unit else ""] if plot else []),
        )
        for row, contents in shown
    ]
    return "\n".join(
        [
            *([f"in {unit}"] if unit else []),
            drawn((*pivot.by_row, *names, *(["plot"] if plot else [])), rows, right=names),
        ]
    )


def formatted(content: Shown | None, unit: str | None) -> str:
    """The value of a cell; with its unit where the table as a whole has no ``unit``. A ratio has none."""
    if content is None:
        return DASH
    if unit or content.unit == RATIO:
        return units.digits(content.value, content.step)
    return " ".join(units.human(content.value, content.unit, content.step))
