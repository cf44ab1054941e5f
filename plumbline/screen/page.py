"""The page of a machine: racks of nodes, each with its place among the others; a node opens with its course."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from plumbline.base import group, units
from plumbline.base.errors import PlumbError
from plumbline.health.model import Result
from plumbline.pages import blocks
from plumbline.pages.blocks import Block, block, cell, link, section
from plumbline.screen.said import NodeSaid, Said, values, when

#: a node's name without its last number is its rack
RACKS = r"^(.*?)[-_]?(?:[a-z]*)(\d+)$"
#: what is in a cell beside the percentile
MARKS = {"bad": "✗", "doubt": "?", "due": "–", "ok": ""}
#: how states are called by the badges of pages
BADGES = {"bad": "FAIL", "doubt": "INCONCLUSIVE", "ok": "PASS", "due": "INVALID"}
#: cells of a row: a rack without an end is broken
WIDEST = 24


def document(title: str, said: Said, racks: str, lines: Sequence[str]) -> dict[str, Any]:
    """The page. ``racks``: a regular expression whose first group is the rack of a node, its second the place in it."""
    entries = [_entry(one) for one in said.nodes]
    rows = [
        [
            link(one.name, entry=number),
            block("badge", one.state, verdict=BADGES[one.state]),
            _percentile(one),
            one.checked,
            len(one.course),
            one.line,
        ]
        for number, one in enumerate(said.nodes)
    ]
    columns = ["node", "state", blocks.number("faster than", "%"), "checked (UTC)", blocks.number("checks"), "what"]
    about = "Each cell is a node: how many percent of the others are slower. ✗ bad, ? in doubt, – not checked in time."
    return {
        "title": title,
        "heading": [title],
        "head": [block("paragraph", said.closing(), id="closing"), bool(lines) and block("bullets", *lines)],
        "sections": [
            section("racks", "Racks", about, block("scale", "0 ", " 100 %"), _racks(said, racks)),
            section("nodes", "Nodes", "A node opens with all its checks.", blocks.table("Nodes", columns, rows)),
        ],
        "entries": entries,
    }


def _racks(said: Said, pattern: str) -> Block:
    """A table for each rack, in the order of the names."""
    found = re.compile(pattern)
    if found.groups < 1:
        raise PlumbError(f"{pattern!r} has no group", "--racks", "put the rack in brackets, such as '^(r[0-9]+)n'")
    placed = ((_rack(found, one.name), number) for number, one in enumerate(said.nodes))
    tables = []
    for rack, own in group(placed).items():
        lines = [own[first : first + WIDEST] for first in range(0, len(own), WIDEST)]
        head = [rack or "nodes", *(str(place) for place in range(1, min(len(own), WIDEST) + 1))]
        rows = [
            [rack if not number else "", *(_cell(said, node) for node in line)] for number, line in enumerate(lines)
        ]
        tables.append(blocks.table(rack or "nodes", head, rows, look="matrix", titled=True))
    return block("matrices", *tables)


def _rack(found: re.Pattern[str], name: str) -> str:
    matched = found.search(name)
    return (matched[1] or "") if matched else ""


def _cell(said: Said, number: int) -> Block:
    one = said.nodes[number]
    text = MARKS[one.state] + ("" if one.place is None else f"{100 * one.place:.0f}")
    hint = f"{one.name}: {one.state}{f': {one.line}' if one.line else ''}, checked {one.checked}"
    colour = {} if one.place is None else {"share": one.place}
    return cell(link(text or "·", entry=number), look="heat", hint=hint, **colour)


def _percentile(one: NodeSaid) -> int | None:
    return None if one.place is None else round(100 * one.place)


def _entry(one: NodeSaid) -> dict[str, Any]:
    """A node as its drawer shows it."""
    course = list(one.course)
    rows = [(when(check.time), check.state, check.line) for check in reversed(course)]
    told = blocks.table("Checks", ["checked (UTC)", "state", "what"], rows, empty="It was never checked.")
    return {
        "id": one.name,
        "title": one.name,
        "head": [block("badge", one.state, verdict=BADGES[one.state]), f" {one.line}"],
        "body": [
            bool(course) and block("part", *_courses(course), title="Course"),
            block("part", told, title="Checks"),
        ],
    }


def _courses(course: Sequence[Result]) -> list[Block]:
    """A chart of each figure over the checks."""
    first = course[0].time
    charts = []
    for figure in course[-1].figures:
        known = [(one, own[figure.name]) for one in course if figure.name in (own := values(one))]
        rows = [(when(one.time), units.digits(value), one.state) for one, value in known]
        points = [(number, (one.time - first) / 86400, value) for number, (one, value) in enumerate(known)]
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
