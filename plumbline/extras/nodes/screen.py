"""``plumb screen``: every node of a partition checked within some days, when idle, and the links between them.

Its page has racks of nodes, each with its place among the others; a node opens with its course.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from plumbline import schedulers, site
from plumbline.base import files, group, paths, units
from plumbline.base.errors import PlumbError
from plumbline.base.terminal import say
from plumbline.base.units import counted, some
from plumbline.commands import options
from plumbline.commands.options import command, flag, option
from plumbline.extras.nodes import checks, links, model, screening
from plumbline.extras.nodes.checks import CheckRequest
from plumbline.extras.nodes.links import Links
from plumbline.extras.nodes.model import Result
from plumbline.extras.nodes.screening import Choice, NodeStatus, ScreenStatus, Terms, outlook, values, when
from plumbline.schedulers import Node, names
from plumbline.show.columns import Column, Table
from plumbline.show.pages import blocks, render
from plumbline.show.pages.blocks import Block, block, cell, link, section
from plumbline.site.nodes.choice import of_partition
from plumbline.stacks import manifest

#: seconds that a job may wait for its nodes
WAIT = 300


@command(
    option("--site", "site (default: the site of this host)"),
    option("--partition", "partition (default: the first of the site)"),
    option("--within", "period in days for checking every node (default: 7)", default=7),
    option("--node-hours", "budget of node hours per period (default: unlimited)"),
    option("--seconds", "time budget of a check in seconds: 10, 25, 55, 120 or 900 (default: 25)", default=25),
    option(
        "--time-limit", "time limit of a job in seconds, pending and running (default: 300 plus the time of a check)"
    ),
    option("--tolerance", "tolerated slowdown (default: 0.05, 5 %%)", default=0.05),
    flag("--links", "also measure the links between nodes"),
    option("--group", "nodes per group in link checks; slow groups are bisected (default: 2, pairs)", default=2),
    option("--stack", "stack of the link kernels (default: the first of the partition)"),
    flag("--dry-run", "print the pending checks and the progress, and start nothing"),
    option("--history", "judge this history, up to its last check, without measuring", type=Path, metavar="FILE"),
    option(
        "--racks",
        "regular expression for node names; its first group is the rack (default: the name up to its last number)",
    ),
    options.output("also write the results as a page", ".html"),
    options.as_json("print JSON, one line per node"),
)
def run_screen(args: argparse.Namespace) -> int:
    """Check the nodes that are due and report progress; 1 if a node is bad, or a link, else 0."""
    if args.history:
        history = model.history(args.history)
        if not history:
            raise PlumbError("nothing was checked", str(args.history), "name a history of plumb screen")
        terms = Terms(args.within, args.node_hours, args.seconds, history[-1].time)
        assessment = screening.assess(
            names.expand(names.fold(result.node for result in history), "--history"), history, terms, args.tolerance
        )
        return 1 if _shown(args, str(args.history), assessment, history, Choice()) else 0
    chosen_site, part = site.chosen(args.site, args.partition)
    if args.time_limit is not None and args.time_limit <= args.seconds:
        raise PlumbError(
            f"a job of {args.time_limit:g} s has no time for a check of {args.seconds:g} s",
            "--time-limit",
            "give more, or leave it out",
        )
    limit = WAIT + args.seconds if args.time_limit is None else args.time_limit
    request = checks.CheckRequest(chosen_site, part, [], 1, args.seconds, limit)
    checks.require_budget(request)
    terms = Terms(args.within, args.node_hours, args.seconds, time.time())
    links = _linked(args, request, terms) if args.links else None
    lines, is_bad = list[str](), False
    lock = paths.build() / "health" / request.site.name / f"{request.part.name}.screen.lock"
    alone = files.reserved(lock, "another plumb screen of this partition is at work", "wait for its end")
    with options.progress(args.json), alone:
        nodes = of_partition(part)
        choice = _nodes(args, request, terms, nodes, links.spent() if links else 0.0)
        if links:
            lines, is_bad = _links(args, request, links, nodes)
    history = model.history(request.history)
    assessment = screening.assess([node.name for node in nodes], history, terms, args.tolerance)
    assessment.notes += lines
    return 1 if _shown(args, request.name, assessment, history, choice) or is_bad else 0


def _nodes(
    args: argparse.Namespace, request: CheckRequest, terms: Terms, nodes: Sequence[Node], links_node_seconds: float
) -> Choice:
    """Check the nodes that are due and idle; ``links_node_seconds`` of the period are spent on links."""
    jobs_on = schedulers.named(request.part.scheduler).jobs_on
    if not args.dry_run:
        checks.absorb(request)
    choice = screening.choose(nodes, model.history(request.history), terms, jobs_on, links_node_seconds)
    many = f"{counted(len(choice.nodes), 'node')}, {terms.seconds:g} s each"
    say(f"{'would check' if args.dry_run else 'checks'} {many}{f': {some(choice.nodes)}' if choice.nodes else ''}")
    if not args.dry_run:
        choice.left_out |= checks.screen(replace(request, nodes=choice.nodes), jobs_on)
    return choice


def _links(
    args: argparse.Namespace, request: CheckRequest, measured: Links, nodes: Sequence[Node]
) -> tuple[list[str], bool]:
    """Measure groups of idle nodes, and follow the slow ones; a line per result, and whether one is bad."""
    measured.checks_spent = screening.spent(model.history(request.history), measured.terms)
    jobs_on = schedulers.named(request.part.scheduler).jobs_on
    groups = measured.groups([node.name for node in nodes if node.usable and not jobs_on(node.name)])
    if args.dry_run:
        return [f"would measure the links of {counted(len(groups), 'group')} of {args.group} nodes"], False
    slow = links.search(groups, measured.measure)
    return links.lines(measured, slow, len(groups)), bool(slow.nodes or slow.together)


def _linked(args: argparse.Namespace, request: CheckRequest, terms: Terms) -> Links:
    if schedulers.named(request.part.scheduler).is_one_host or args.group < 2:
        raise PlumbError("links are between two nodes or more", "plumb screen --links", "leave it out")
    stack = manifest.first([args.stack] if args.stack else request.part.stacks, links.KERNEL)
    return links.Links(request.site.name, request.part, stack, args.group, terms, args.tolerance, request.limit, say)


def _shown(
    args: argparse.Namespace, name: str, assessment: ScreenStatus, history: Sequence[Result], choice: Choice
) -> bool:
    """Print the assessment, and write the page; whether a node is bad."""
    lines = [*assessment.notes, *outlook(assessment, history, choice)]
    forms = {".html": lambda: render(document(f"Screen of {name}", assessment, args.racks or RACKS, lines))}
    options.write("the page", args.output, forms)
    if args.json:
        options.print_lines(node.to_dict() for node in assessment.nodes)
        print("\n".join([*lines, assessment.closing()]), file=sys.stderr)
    else:
        odd = [node for node in assessment.nodes if node.state in ("bad", "doubt") or node.slower]
        shown = [NODES.text(list(enumerate(odd))), ""] if odd else []
        print("\n".join([*shown, *lines, assessment.closing()]))
    return bool(assessment.bad)


#: a node's name without its last number is its rack
RACKS = r"^(.*?)[-_]?(?:[a-z]*)(\d+)$"
#: the mark of a cell beside its percentile
MARKS = {"bad": "✗", "doubt": "?", "due": "–", "ok": ""}
#: how states are called by the badges of pages
BADGES = {"bad": "FAIL", "doubt": "INCONCLUSIVE", "ok": "PASS", "due": "unreferenced"}
#: cells of a row: a rack without an end is broken
WIDEST = 24
#: the number of a node, and the node
NODES = Table[tuple[int, NodeStatus]](
    "Nodes",
    [
        Column("node", lambda row: row[1].name, page=lambda row: link(row[1].name, entry=row[0])),
        Column("state", lambda row: row[1].state, page=lambda row: _badge(row[1])),
        Column("checked", lambda row: row[1].checked, forms="text"),
        Column(
            "faster than",
            lambda row: None if row[1].faster is None else f"{row[1].faster} %",
            "number",
            forms="text",
        ),
        Column("faster than", lambda row: row[1].faster, "number", "%", forms="page"),
        Column("checked (UTC)", lambda row: row[1].checked, forms="page"),
        Column("checks", lambda row: len(row[1].course), "number", forms="page"),
        Column("what", lambda row: row[1].line),
    ],
)


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
            ["" if not number else f"from {WIDEST * number + 1}", *(_cell(status, index) for index in line)]
            for number, line in enumerate(lines)
        ]
        tables.append(blocks.table(rack or "nodes", head, rows, look="matrix"))
    return block("matrices", *tables)


def _cell(status: ScreenStatus, number: int) -> Block:
    node = status.nodes[number]
    text = MARKS[node.state] + ("" if node.faster is None else str(node.faster))
    hint = f"{node.name}: {node.state}{f': {node.line}' if node.line else ''}, checked {node.checked}"
    if node.state == "ok" and node.place is not None:
        return cell(link(text or "·", entry=number), look="heat", hint=hint, share=node.place)
    return cell(link(text or "·", entry=number), look=f"heat {node.state}", hint=hint)


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
    medians = [(check, values(check)) for check in course]
    courses = [
        (figure, [(check, known[figure.name]) for check, known in medians if figure.name in known])
        for figure in course[-1].figures
    ]
    return [
        blocks.chart(
            f"{figure.name}, {figure.unit}",
            f"{figure.better} is better; a point is a check.",
            ["checked (UTC)", blocks.number(figure.name, figure.unit), "state"],
            [(when(check.time), units.digits(value), check.state) for check, value in known],
            [(number, (check.time - first) / 86400, value) for number, (check, value) in enumerate(known)],
            x={"name": "days", "type": "value"},
            y={"name": figure.unit, "type": "value"},
            height=200,
        )
        for figure, known in courses
    ]
