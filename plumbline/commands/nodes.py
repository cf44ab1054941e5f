"""``plumb nodes``: facts of the nodes of a partition, which of them differ, which can be used; out of work and back."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path

from plumbline import schedulers
from plumbline.base import files
from plumbline.base.errors import PlumbError
from plumbline.base.table import table
from plumbline.commands import options
from plumbline.schedulers import Node, names
from plumbline.site.site import claiming, load_all

# Comparing and reading facts take long to import, and plumb launch starts before measurements: each action imports what
# it needs.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb nodes``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    facts = actions.add_parser("facts", help="collect the facts of nodes, by one job: FOLDER/HOST.json and HOST.xml")
    state = actions.add_parser("states", help="the nodes of a partition, usable or not, and why")
    for action in (facts, state):
        options.add_scheduler(action, None)
        options.add(action, "--partition", "the scheduler's partition or queue, unless an --access option names it")
        options.add(action, "--access", "scheduler option, repeated", action="append", default=[])
        text = f"hosts of scheduler {schedulers.REMOTE.name}"
        options.add(action, "--hosts", text, action="append", default=[])
    facts.add_argument(
        "folder", type=files.OutputFolder, metavar="FOLDER", help="where the facts go: the nodes share it"
    )
    which = facts.add_mutually_exclusive_group()
    options.add(which, "--nodes", "any N nodes (default: all that can be used)")
    options.add(which, "--node", "this node, repeated; node[1-4] too", action="append", default=[])
    text = "Python 3.6 or newer on the nodes (default: python3)"
    facts.add_argument("--python", default="python3", metavar="PROGRAM", help=text)
    options.add(facts, "--time-limit", "give up after S seconds (default: 900)", default=900)
    options.add_json(state, "print the nodes as JSON")
    comparison = actions.add_parser("compare", help="nodes that differ from the largest group of like nodes")
    comparison.add_argument("folder", type=Path, metavar="FOLDER", help="where plumb nodes facts put the facts")
    options.add_json(comparison, "print all differences as JSON")
    drain = actions.add_parser("drain", help="keep new jobs away from nodes; what is out of work stays as it is")
    resume = actions.add_parser("resume", help="let jobs on nodes again, if this or a health check has drained them")
    for action in (drain, resume):
        options.add_scheduler(action, None)
        options.add(action, "--node", "this node, repeated; node[1-4] too", action="append", required=True)
    drain.add_argument("--reason", required=True, metavar="TEXT", help="why, for whoever looks at the node")


def run(args: argparse.Namespace) -> int:
    """Run ``plumb nodes ACTION``; returns the exit status."""
    if args.action != "compare" and args.scheduler is None:
        _take_from_site(args)
    actions = {"facts": _facts, "states": _states, "compare": _compare, "drain": _drain, "resume": _drain}
    return actions[args.action](args)


def _take_from_site(args: argparse.Namespace) -> None:
    """Ask the scheduler that the partitions of this host's site have, as their access options say, where there is one.

    ``--partition`` is the name of one of them, or of the scheduler's own.
    """
    claimed = claiming(load_all())
    parts = claimed.partitions if claimed else []
    wanted = [part for part in parts if getattr(args, "partition", None) == part.name] or parts
    used = {part.scheduler for part in wanted}
    args.scheduler = used.pop() if len(used) == 1 else "local"
    if len(wanted) == 1 and args.action in ("facts", "states"):
        args.partition = None if args.partition == wanted[0].name and wanted[0].access else args.partition
        args.access = args.access or wanted[0].access
        args.hosts = args.hosts or wanted[0].hosts


def _facts(args: argparse.Namespace) -> int:
    from plumbline.site.nodes import collect, compare, read

    queue = _queue(args)
    if args.python.startswith("-"):
        raise PlumbError(f"{args.python!r} is not a program", "--python", "give the name or path of Python")
    chosen = [name for text in args.node for name in names.expand(text, "--node")]
    hosts = _hosts(args)
    passed: list[Node] = []
    count = args.nodes or 1
    scheduler = schedulers.named(args.scheduler)
    if scheduler.hosts_are_named and not scheduler.is_one_host:
        chosen = chosen or hosts[: args.nodes]
        if not chosen:
            raise PlumbError(f"scheduler {scheduler.name} needs hosts", "plumb nodes facts", "give --hosts A,B")
    elif not chosen and args.nodes is None and scheduler.has_jobs:
        nodes = schedulers.nodes(scheduler, queue)
        passed = [node for node in nodes if not node.usable]
        chosen = [node.name for node in nodes if node.usable]
        if not chosen:
            raise PlumbError("no node can be used", f"partition {queue or 'default'}", "see plumb nodes states")
    request = collect.FactsRequest(
        scheduler=args.scheduler, output=args.folder.resolve(), queue=queue, access=args.access, nodes=chosen,
        count=count, python=args.python, limit=args.time_limit,
    )  # fmt: skip
    done = collect.collect(request)
    try:
        facts = read.folder(request.output)
    except PlumbError as error:
        if done.status != 0:
            raise PlumbError(f"the job failed: {done.last()}", error.where, "run plumb nodes states") from None
        raise
    for node in passed:
        print(f"{node.name}: not asked: {node.state}{f' ({node.reason})' if node.reason else ''}")
    absent = [item for item in compare.compare(facts).differences if not item.quantity]
    for item in absent:
        print(item.line())
    if done.status != 0:
        print(f"{args.scheduler}: {done.last()}")
    print(f"{len(facts.nodes)} of {request.size()} nodes answered: {names.fold(facts.nodes)} in {args.folder}")
    return 1 if absent or done.status != 0 else 0


def _states(args: argparse.Namespace) -> int:
    nodes = schedulers.nodes(schedulers.named(args.scheduler), _queue(args), _hosts(args), args.access)
    good = sum(node.usable for node in nodes)
    if args.json:
        print(json.dumps([dataclasses.asdict(node) for node in nodes], indent=1))
        return 0
    rows = [
        (node.name, node.state, "yes" if node.usable else "no", node.reason)
        for node in sorted(nodes, key=lambda node: node.usable)
    ]
    print(table(("node", "state", "usable", "reason"), rows))
    print(f"\n{good} of {len(nodes)} nodes can be used")
    return 0


def _compare(args: argparse.Namespace) -> int:
    from plumbline.site.nodes import compare, read

    facts = read.folder(args.folder)
    result = compare.compare(facts)
    if args.json:
        print(json.dumps(result.document(), indent=1))
        return 1 if result.differences else 0
    rows = [(item.where(), item.quantity, item.here, item.usual, str(item.others or "")) for item in result.differences]
    if rows:
        print(table(("nodes", "differ in", "here", "usual", "nodes so"), rows, right=("nodes so",)) + "\n")
    print(f"largest group: {compare.summary(facts, result)}")
    print(f"clocks: the time stamps of the job's starts lie within {result.spread:.2f} s")
    differing = result.differing()
    if not differing:
        print(f"{result.answered} of {result.requested} nodes answered; they are equal")
        return 0
    tie = len(result.groups) > 1 and len(result.groups[0]) == len(result.groups[1])
    if tie:
        print("two groups are equally large: neither is the usual one")
    number = len([name for name in differing if name != "?"]) + facts.unnamed()
    lines = "; ".join(item.line() for item in result.differences[:3])
    more = len(result.differences) - 3
    verb = "differs" if number == 1 else "differ"
    print(f"{number} of {result.requested} nodes {verb}: {lines}{f'; and {more} more' if more > 0 else ''}")
    return 1


def _drain(args: argparse.Namespace) -> int:
    scheduler = schedulers.named(args.scheduler)
    for node in (name for text in args.node for name in names.expand(text, "--node")):
        message = scheduler.resume(node) if args.action == "resume" else scheduler.drain(node, args.reason)
        print(message or f"{node} is left as it is")
    return 0


def _queue(args: argparse.Namespace) -> str | None:
    if args.partition is not None:
        names.partition(args.partition, "--partition")
    return schedulers.named(args.scheduler).queue(args.partition, args.access)


def _hosts(args: argparse.Namespace) -> list[str]:
    return [name for text in args.hosts for name in names.expand(text, "--hosts")]
