"""The page of a machine: racks of nodes, each with its place among the others; a node opens with its course."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from plumbline.base import group, units
from plumbline.base.errors import PlumbError
from plumbline.extras.nodes.model import Result
from plumbline.extras.nodes.screening import NodeStatus, ScreenStatus, values, when
from plumbline.show.columns import Column, Table
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
#: the number of a node, and the node
NODES = Table[tuple[int, NodeStatus]](
    "Nodes",
    [
        Column("node", lambda row: row[1].name, page=lambda row: link(row[1].name, entry=row[0])),
        Column("state", lambda row: row[1].state, page=lambda row: _badge(row[1])),
        Column("checked", lambda row: row[1].checked, forms="text"),
        Column("faster than", lambda row: _faster(row[1]), "number", forms="text"),
        Column("faster than", lambda row: row[1].faster, "number", "%", forms="page"),
        Column("checked (UTC)", lambda row: row[1].checked, forms="page"),
        Column("checks", lambda row: len(row[1].course), "number", forms="page"),
        Column("what", lambda row: row[1].line),
    ],
)


def _faster(node: NodeStatus) -> str:
    return units.dashed(None if node.faster is None else f"{node.faster} %")


def _badge(node: NodeStatus) -> Block:
    return block("badge", node.state, verdict=BADGES[node.state])


def document(title: str, status: ScreenStatus, racks: str, lines: Sequence[str]) -> dict[str, Any]:
    """The page. ``racks``: a regular expression whose first group is the rack of a node, its second the place in it."""
    about = "Each cell is a node: how many percent of the others are slower. ✗ bad, ? in doubt, – not checked in time."
    return {
        "title": title,
        "heading": [title],
        "head": [block("paragraph", status.closing(), id="closing"), bool(lines) and block("bullets", *lines)],
        "sections": [
            section("racks", "Racks", about, block("scale", "0 ", " 100 %"), _racks(status, racks)),
            section("nodes", "Nodes", "A node opens with all its checks.", NODES.block(list(enumerate(status.nodes)))),
        ],
        "entries": [_entry(node) for node in status.nodes],
    }


def _racks(status: ScreenStatus, pattern: str) -> Block:
    """A table for each rack, in the order of the names."""
    matcher = re.compile(pattern)
    if matcher.groups < 1:
        raise PlumbError(f"{pattern!r} has no group", "--racks", "put the rack in brackets, such as '^(r[0-9]+)n'")
    matches = [matcher.search(node.name) for node in status.nodes]
    placed = (((matched[1] or "") if matched else "", number) for number, matched in enumerate(matches))
    tables = []
    for rack, numbers in group(placed).items():
        lines = [numbers[first : first + WIDEST] for first in range(0, len(numbers), WIDEST)]
        head = [rack or "nodes", *(str(place) for place in range(1, min(len(numbers), WIDEST) + 1))]
        rows = [
            [rack if not number else "", *(_cell(status, index) for index in line)] for number, line in enumerate(lines)
        ]
        tables.append(blocks.table(rack or "nodes", head, rows, look="matrix", titled=True))
    return block("matrices", *tables)


def _cell(status: ScreenStatus, number: int) -> Block:
    node = status.nodes[number]
    text = MARKS[node.state] + ("" if node.faster is None else str(node.faster))
    hint = f"{node.name}: {node.state}{f': {node.line}' if node.line else ''}, checked {node.checked}"
    colour = {} if node.place is None else {"share": node.place}
    return cell(link(text or "·", entry=number), look="heat", hint=hint, **colour)


def _entry(node: NodeStatus) -> dict[str, Any]:
    """A node as its drawer shows it."""
    rows = [(when(check.time), check.state, check.line) for check in reversed(node.course)]
    checks = blocks.table("Checks", ["checked (UTC)", "state", "what"], rows, empty="It was never checked.")
    return {
        "id": node.name,
        "title": node.name,
        "head": [_badge(node), f" {node.line}"],
        "body": [
            bool(node.course) and block("part", *_courses(node.course), title="Course"),
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
