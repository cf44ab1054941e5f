"""STREAM: CPU node x memory node as tables in colour, and curves over threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plumbline.base import group, units
from plumbline.pages import blocks, looks
from plumbline.pages.blocks import Block, Piece, absent, block, cell, link, number, section
from plumbline.records.figure import Figure
from plumbline.records.model import Record
from plumbline.views import summary

#: the order of its figures
KERNELS = ("triad", "copy", "scale", "add")
#: what a letter behind a percentage stands for
BOUNDS = {"": "limit", "c": "ceiling", "m": "model"}


@dataclass(frozen=True)
class Cell:
    """A figure of a record, which is entry ``entry`` of the page, in a ``colour`` of its stack."""

    record: Record
    entry: int
    figure: Figure
    colour: str

    @property
    def stack(self) -> str:
        """The stack's name."""
        return self.record.stack.name

    def param(self, name: str) -> int | None:
        """A parameter that is a number."""
        value = self.record.variant.params.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def stream(usable: Sequence[tuple[Record, int]]) -> Block:
    """The section of the valid records ``usable``, each with the number of its entry."""
    own = [(record, entry) for record, entry in usable if record.benchmark.suite == "stream" and record.figures]
    colours = looks.palette(record.stack.name for record, _ in usable)
    cells = [
        Cell(record, entry, figure, colours[record.stack.name]) for record, entry in own for figure in record.figures
    ]
    names = sorted(
        {one.figure.name for one in cells},
        key=lambda name: (KERNELS.index(name) if name in KERNELS else len(KERNELS), name),
    )
    options = [(name, _parts(name, [one for one in cells if one.figure.name == name])) for name in names]
    return section(
        "stream",
        "STREAM",
        "Memory bandwidth: the median over the launches of the rate that STREAM prints. Higher is better.",
        bool(options) and blocks.choice("Kernel", options),
        otherwise=absent("reframe -c reframe-tests -r -n stream"),
    )


def _parts(kernel: str, cells: Sequence[Cell]) -> list[Piece]:
    nodes = [one for one in cells if {"cpu_node", "memory_node"} <= one.record.variant.params.keys()]
    others = [one for one in cells if one not in nodes]
    without = [
        "No matrix of CPU and memory nodes. This gives it: ",
        block("code", "reframe -c reframe-tests -r -n stream_numa"),
    ]
    return [
        _matrices(kernel, nodes) if nodes else block("paragraph", without),
        block("stacked", _threads(kernel, others)),
    ]


def _matrices(kernel: str, cells: Sequence[Cell]) -> list[Piece]:
    """One table per stack and number of threads, all in one scale of colours, from nothing: noise must not fill it."""
    high = max(one.figure.value for one in cells)
    factor, unit = units.scale(high, cells[0].figure.unit)
    groups = group(((one.param("threads") or 0, one.stack), one) for one in cells)
    return [
        block("heading", f"{kernel} by threads, CPU node and memory node, {unit}"),
        block("scale", "0 ", f" {units.digits(high / factor)} {unit}"),
        block("matrices", *(_matrix(found, factor, high) for _, found in sorted(groups.items()))),
    ]


def _matrix(cells: Sequence[Cell], factor: float, high: float) -> Block:
    threads = cells[0].record.variant.params.get("threads", "?")
    ends = [sorted({one.record.variant.params[name] for one in cells}) for name in ("cpu_node", "memory_node")]
    known = {
        tuple(one.record.variant.params[name] for name in ("cpu_node", "memory_node")): one for one in reversed(cells)
    }
    rows = [
        [node, *((one := known.get((node, memory))) and _heat(one, factor, high) for memory in ends[1])]
        for node in ends[0]
    ]
    title = f"{cells[0].stack}, {threads} {'thread' if threads == 1 else 'threads'}"
    columns = ["CPU node", *(f"memory {node}" for node in ends[1])]
    return blocks.table(title, columns, rows, look="matrix", titled=True)


def _heat(one: Cell, factor: float, high: float) -> Block:
    figure, reached = one.figure, one.figure.reached
    bound = f", {reached.percent:.1f} % of {BOUNDS[reached.mark]}" if reached else ""
    return cell(
        link(units.digits(figure.value / factor), entry=one.entry),
        bool(reached) and block("small", f"{reached.percent:.0f} %{reached.mark}" if reached else ""),
        look="heat",
        value=figure.value,
        share=figure.value / high if high > 0 else 0.5,
        hint=f"{' '.join(units.human(figure.value, figure.unit))}{bound}, {summary.span(figure)}",
    )


def _threads(kernel: str, cells: Sequence[Cell]) -> Piece:
    """Lines over the number of threads, where some placement was measured with two or more."""
    counted = [one for one in cells if one.param("threads") is not None]
    groups = group(((one.record.variant.test, one.record.placement.name, one.stack), one) for one in counted)
    lines = [
        sorted(found, key=lambda one: one.param("threads") or 0)
        for found in groups.values()
        if len({one.param("threads") for one in found}) > 1
    ]
    if not lines:
        return False
    factor, unit = units.scale(max(one.figure.value for one in cells), cells[0].figure.unit)
    names = list(dict.fromkeys(found[0].record.placement.name for found in lines))
    drawn = [(f"{one.stack}, {one.record.placement.name}", one) for found in lines for one in found]
    places = {id(one): place for place, (_, one) in enumerate(drawn)}
    return blocks.chart(
        f"{kernel} over threads",
        "Median of the launches. Colour: stack; mark and dash: placement.",
        ["stack and placement", number("threads"), number(kernel, unit), "launches"],
        [
            (name, one.param("threads"), units.digits(one.figure.value / factor), summary.span(one.figure))
            for name, one in drawn
        ],
        targets=[one.entry for _, one in drawn],
        series=[
            blocks.series(
                f"{found[0].stack}, {found[0].record.placement.name}",
                found[0].colour,
                [(places[id(one)], one.param("threads"), one.figure.value / factor) for one in found],
                look=looks.line(names.index(found[0].record.placement.name)),
            )
            for found in lines
        ],
        legend=True,
        height=340,
        x={"name": "threads", "type": "log", "logBase": 2, "min": "dataMin", "max": "dataMax"},
        y={"name": unit, "min": 0, "boundaryGap": 0},
    )
