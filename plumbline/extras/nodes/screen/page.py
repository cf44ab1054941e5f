"""The page of a machine: racks of nodes, each with its place among the others; a node opens with its course."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from plumbline.base import group, units
from plumbline.base.errors import PlumbError
from plumbline.extras.nodes.health.model import Result
from plumbline.extras.nodes.screen.status import NodeStatus, ScreenStatus, values, when
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, block, cell, link, section

#: a node's name without its last number is its rack
RACKS = r"^(.*?)[-_]?(?:[a-z]*)(\d+)$"
#: the mark of a cell beside its percentile
MARKS = {"bad": "✗", "doubt": "?", "due": "–", "ok": ""}
#: how states are called by the badges of pages
BADGES = {"bad": "FAIL", "doubt": "INCONCLUSIVE", "ok": "PASS", "due": "INVALID"}
#: cells of a row: a rack without an end is broken
WIDEST = 24


def document(title: str, status: ScreenStatus, racks: str, lines: Sequence[str]) -> dict[str, Any]:
    """The page. ``racks``: a regular expression whose first group is the rack of a node, its second the place in it."""
    entries = [_entry(node) for node in status.nodes]
    rows = [
        [
            link(node.name, entry=number),
            block("badge", node.state, verdict=BADGES[node.state]),
            _percentile(node),
            node.checked,
            len(node.course),
            node.line,
        ]
        for number, node in enumerate(status.nodes)
    ]
    columns = ["node", "state", blocks.number("faster than", "%"), "checked (UTC)", blocks.number("checks"), "what"]
    about = "Each cell is a node: how many percent of the others are slower. ✗ bad, ? in doubt, – not checked in time."
    return {
        "title": title,
        "heading": [title],
        "head": [block("paragraph", status.closing(), id="closing"), bool(lines) and block("bullets", *lines)],
        "sections": [
            section("racks", "Racks", about, block("scale", "0 ", " 100 %"), _racks(status, racks)),
            section("nodes", "Nodes", "A node opens with all its checks.", blocks.table("Nodes", columns, rows)),
        ],
        "entries": entries,
    }


def _racks(status: ScreenStatus, pattern: str) -> Block:
    """A table for each rack, in the order of the names."""
    matcher = re.compile(pattern)
    if matcher.groups < 1:
        raise PlumbError(f"{pattern!r} has no group", "--racks", "put the rack in brackets, such as '^(r[0-9]+)n'")
    placed = ((_rack(matcher, node.name), number) for number, node in enumerate(status.nodes))
    tables = []
    for rack, numbers in group(placed).items():
        lines = [numbers[first : first + WIDEST] for first in range(0, len(numbers), WIDEST)]
        head = [rack or "nodes", *(str(place) for place in range(1, min(len(numbers), WIDEST) + 1))]
        rows = [
            [rack if not number else "", *(_cell(status, index) for index in line)] for number, line in enumerate(lines)
        ]
        tables.append(blocks.table(rack or "nodes", head, rows, look="matrix", titled=True))
    return block("matrices", *tables)


def _rack(matcher: re.Pattern[str], name: str) -> str:
    matched = matcher.search(name)
    return (matched[1] or "") if matched else ""


def _cell(status: ScreenStatus, number: int) -> Block:
    node = status.nodes[number]
    text = MARKS[node.state] + ("" if node.place is None else f"{100 * node.place:.0f}")
    hint = f"{node.name}: {node.state}{f': {node.line}' if node.line else ''}, checked {node.checked}"
    colour = {} if node.place is None else {"share": node.place}
    return cell(link(text or "·", entry=number), look="heat", hint=hint, **colour)


def _percentile(node: NodeStatus) -> int | None:
    return None if node.place is None else round(100 * node.place)


def _entry(node: NodeStatus) -> dict[str, Any]:
    """A node as its drawer shows it."""
    course = list(node.course)
    rows = [(when(check.time), check.state, check.line) for check in reversed(course)]
    checks = blocks.table("Checks", ["checked (UTC)", "state", "what"], rows, empty="It was never checked.")
    return {
        "id": node.name,
        "title": node.name,
        "head": [block("badge", node.state, verdict=BADGES[node.state]), f" {node.line}"],
        "body": [
            bool(course) and block("part", *_courses(course), title="Course"),
            block("part", checks, title="Checks"),
        ],
    }


def _courses(course: Sequence[Result]) -> list[Block]:
    """A chart of each figure over the checks."""
    first = course[0].time
    charts = []
    for figure in course[-1].figures:
        known = [(check, medians[figure.name]) for check in course if figure.name in (medians := values(check))]
        rows = [(when(check.time), units.digits(value), check.state) for check, value in known]
        points = [(number, (check.time - first) / 86400, value) for number, (check, value) in enumerate(known)]
        charts.append(
            blocks.chart(
                f"{figure.name}, {figure.unit}",
                f"{figure.better} is better; a point is a check.",
                ["checked (UTC)", blocks.number(figure.name, figure.unit), "state"],
                rows,
                points,
                x={"name": "days", "type": "value"},
                y={"name": figure.unit, "type": "value"},
                height=200,
            )
        )
    return charts
