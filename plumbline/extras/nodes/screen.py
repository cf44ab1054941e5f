"""``plumb screen``: every node of a partition checked within some days, when idle, and the links between them."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from plumbline import schedulers, site
from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.base.terminal import say
from plumbline.base.units import counted, some
from plumbline.commands import options
from plumbline.commands.options import command, flag, option
from plumbline.extras.nodes import checks, links, model, page, screening
from plumbline.extras.nodes.checks import CheckRequest
from plumbline.extras.nodes.links import Links
from plumbline.extras.nodes.model import Result
from plumbline.extras.nodes.screening import Choice, ScreenStatus, Terms, outlook
from plumbline.schedulers import Node, names
from plumbline.show.pages.page import render
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
        known = names.expand(names.fold(result.node for result in history), "--history")
        assessment = screening.assess(known, history, terms, args.tolerance)
        return 1 if _shown(args, str(args.history), assessment, history, Choice()) else 0
    chosen_site = site.load(args.site or site.here())
    part = site.partition(chosen_site, args.partition) if args.partition else chosen_site.partitions[0]
    if args.time_limit is not None and args.time_limit <= args.seconds:
        message = f"a job of {args.time_limit:g} s has no time for a check of {args.seconds:g} s"
        raise PlumbError(message, "--time-limit", "give more, or leave it out")
    limit = WAIT + args.seconds if args.time_limit is None else args.time_limit
    request = checks.CheckRequest(chosen_site, part, [], 1, args.seconds, limit)
    checks.require_budget(request)
    terms = Terms(args.within, args.node_hours, args.seconds, time.time())
    links = _linked(args, request, terms) if args.links else None
    lines, is_bad = list[str](), False
    with options.progress(args.json), _alone(request):
        nodes = of_partition(part)
        choice = _nodes(args, request, terms, nodes, links.spent() if links else 0.0)
        if links:
            lines, is_bad = _links(args, request, links, nodes)
    history = model.history(request.history)
    assessment = screening.assess([node.name for node in nodes], history, terms, args.tolerance)
    assessment.notes += lines
    return 1 if _shown(args, request.name, assessment, history, choice) or is_bad else 0


def _alone(request: CheckRequest) -> contextlib.AbstractContextManager[None]:
    lock = paths.build() / "health" / request.site.name / f"{request.part.name}.screen.lock"
    return files.reserved(lock, "another plumb screen of this partition is at work", "wait for its end")


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
    slow = measured.run(groups)
    return links.lines(measured, slow, len(groups)), bool(slow.nodes or slow.together)


def _linked(args: argparse.Namespace, request: CheckRequest, terms: Terms) -> Links:
    if schedulers.named(request.part.scheduler).is_one_host or args.group < 2:
        raise PlumbError("links are between two nodes or more", "plumb screen --links", "leave it out")
    stack = manifest.first([args.stack] if args.stack else request.part.stacks, links.KERNEL)
    where = request.site.name, request.part, stack
    return links.Links(*where, args.group, terms, args.tolerance, request.limit, say)


def _shown(
    args: argparse.Namespace, name: str, assessment: ScreenStatus, history: Sequence[Result], choice: Choice
) -> bool:
    """Print the assessment, and write the page; whether a node is bad."""
    lines = [*assessment.notes, *outlook(assessment, history, choice)]
    forms = {".html": lambda: render(page.document(f"Screen of {name}", assessment, args.racks or page.RACKS, lines))}
    options.write("the page", args.output, forms)
    if args.json:
        options.print_lines(node.to_dict() for node in assessment.nodes)
        print("\n".join([*lines, assessment.closing()]), file=sys.stderr)
    else:
        odd = [node for node in assessment.nodes if node.state in ("bad", "doubt") or node.slower]
        shown = [page.NODES.text(list(enumerate(odd))), ""] if odd else []
        print("\n".join([*shown, *lines, assessment.closing()]))
    return bool(assessment.bad)
