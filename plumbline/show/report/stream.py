"""STREAM: CPU node x memory node as tables in colour, and curves over threads."""

from __future__ import annotations

from collections.abc import Sequence

from plumbline.base import group, units
from plumbline.records.model import Record
from plumbline.show import summary
from plumbline.show.columns import Column, Table
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, Piece, absent, block, cell, link, section
from plumbline.show.record import Drawn

#: the order of its figures
KERNELS = ("triad", "copy", "scale", "add")
#: letter behind a percentage -> its meaning
BOUNDS = {"": "limit", "c": "ceiling", "m": "model"}


def _thread_count(point: Drawn) -> int | None:
    """The threads, where they are a number."""
    value = point.record.variant.params.get("threads")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def stream(usable: Sequence[tuple[Record, int]]) -> Block:
    """The section of the valid records ``usable``, each with the number of its entry."""
    colours = blocks.palette(record.stack.name for record, _ in usable)
    cells = [
        Drawn(record, entry, figure)
        for record, entry in usable
        if record.benchmark.suite == "stream"
        for figure in record.figures
    ]
    names = sorted(
        {point.figure.name for point in cells},
        key=lambda name: (KERNELS.index(name) if name in KERNELS else len(KERNELS), name),
    )
    options = [(name, _parts(name, [point for point in cells if point.figure.name == name], colours)) for name in names]
    return section(
        "stream",
        "STREAM",
        "Memory bandwidth: the median over the launches of the rate that STREAM prints. Higher is better.",
        bool(options) and blocks.choice("Kernel", options),
        otherwise=absent("reframe -c reframe-tests -r -n stream"),
    )


def _parts(kernel: str, cells: Sequence[Drawn], colours: dict[str, str]) -> list[Piece]:
    nodes = [point for point in cells if {"cpu_node", "memory_node"} <= point.record.variant.params.keys()]
    without = [
        "No matrix of CPU and memory nodes. This gives it: ",
        block("code", "reframe -c reframe-tests -r -n stream_numa"),
    ]
    return [
        _matrices(kernel, nodes) if nodes else block("paragraph", without),
        block("stacked", _threads(kernel, [point for point in cells if point not in nodes], colours)),
    ]


def _matrices(kernel: str, cells: Sequence[Drawn]) -> list[Piece]:
    """One table per stack and number of threads, all in one scale of colours, from nothing: noise must not fill it."""
    high = max(point.figure.value for point in cells)
    factor, unit = units.scale(high, cells[0].figure.unit)
    return [
        block("heading", f"{kernel} by threads, CPU node and memory node, {unit}"),
        block("scale", "0 ", f" {units.digits(high / factor)} {unit}"),
        block(
            "matrices",
            *(
                _matrix(members, factor, high)
                for _, members in sorted(
                    group(((_thread_count(point) or 0, point.stack), point) for point in cells).items()
                )
            ),
        ),
    ]


def _matrix(cells: Sequence[Drawn], factor: float, high: float) -> Block:
    threads = cells[0].record.variant.params.get("threads", "?")
    ends = [sorted({point.record.variant.params[name] for point in cells}) for name in ("cpu_node", "memory_node")]
    known = {
        tuple(point.record.variant.params[name] for name in ("cpu_node", "memory_node")): point
        for point in reversed(cells)
    }
    rows = [
        [node, *((point := known.get((node, memory))) and _heat(point, factor, high) for memory in ends[1])]
        for node in ends[0]
    ]
    title = f"{cells[0].stack}, {threads} {'thread' if threads == 1 else 'threads'}"
    return blocks.table(title, ["CPU node", *(f"memory {node}" for node in ends[1])], rows, look="matrix", titled=True)


def _heat(point: Drawn, factor: float, high: float) -> Block:
    figure, reached = point.figure, point.figure.reached
    bound = f", {reached.percent:.1f} % of {BOUNDS[reached.mark]}" if reached else ""
    return cell(
        link(point.digits(point.figure.value, factor), entry=point.entry),
        bool(reached) and block("small", f"{reached.percent:.0f} %{reached.mark}" if reached else ""),
        look="heat",
        value=figure.value,
        share=figure.value / high if high > 0 else 0.5,
        hint=f"{' '.join(figure.shown)}{bound}, {summary.span(figure)}",
    )


def _threads(kernel: str, cells: Sequence[Drawn], colours: dict[str, str]) -> Piece:
    """Lines over the number of threads, where some placement was measured with two or more."""
    counted = [point for point in cells if _thread_count(point) is not None]
    groups = group(((point.record.variant.test, point.record.placement.name, point.stack), point) for point in counted)
    lines = [
        sorted(line, key=lambda point: _thread_count(point) or 0)
        for line in groups.values()
        if len({_thread_count(point) for point in line}) > 1
    ]
    if not lines:
        return False
    factor, unit = units.scale(max(point.figure.value for point in cells), cells[0].figure.unit)
    names = list(dict.fromkeys(line[0].record.placement.name for line in lines))
    drawn = [point for line in lines for point in line]
    places = {id(point): place for place, point in enumerate(drawn)}
    table = Table[Drawn](
        kernel,
        [
            Column("stack and placement", lambda point: f"{point.stack}, {point.record.placement.name}"),
            Column("threads", lambda point: _thread_count(point), "number"),
            Column(kernel, lambda point: point.digits(point.figure.value, factor), "number", unit),
            Column("launches", lambda point: summary.span(point.figure)),
        ],
    )
    return table.chart(
        f"{kernel} over threads",
        "Median of the launches. Colour: stack; mark and dash: placement.",
        drawn,
        targets=[point.entry for point in drawn],
        series=[
            blocks.series(
                f"{line[0].stack}, {line[0].record.placement.name}",
                colours[line[0].stack],
                [(places[id(point)], _thread_count(point), point.figure.value / factor) for point in line],
                look=blocks.line(names.index(line[0].record.placement.name)),
            )
            for line in lines
        ],
        legend=True,
        height=340,
        x={"name": "threads", "type": "log", "logBase": 2, "min": "dataMin", "max": "dataMax"},
        y={"name": unit, "min": 0, "boundaryGap": 0},
    )
