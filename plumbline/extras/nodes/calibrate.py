"""``plumb calibrate --nodes``: the class of a partition's nodes, by which ``plumb check`` judges each."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from plumbline import schedulers, site
from plumbline.base import files
from plumbline.base.errors import PlumbError
from plumbline.base.units import counted, percent
from plumbline.commands import options
from plumbline.commands.options import Group, group, option
from plumbline.extras.nodes import checks, classes
from plumbline.extras.nodes.classes import Class
from plumbline.extras.nodes.limits import Limit
from plumbline.records import store
from plumbline.schedulers import names
from plumbline.show.columns import Column, Table

#: the most that plumb-check takes
MOST_CHECKS = 1000


def _judged(values: Sequence[float | None]) -> str:
    return f"{sum(value is not None for value in values)} of {len(values)}"


def _detectable(limits: Sequence[Limit]) -> str | None:
    known = [limit.detectable for limit in limits if limit.detectable is not None]
    return percent(max(known)) if known else None


#: seconds and rounds of a budget, its limits, and the most rounds that any of them lacks
BUDGETS = Table[tuple[int, int, Sequence[Limit], int]](
    "Budgets",
    [
        Column("seconds", lambda row: row[0], "number"),
        Column("rounds", lambda row: row[1], "number"),
        Column("figures judged", lambda row: _judged([limit.member for limit in row[2]]), "number"),
        Column("on other nodes", lambda row: _judged([limit.non_member for limit in row[2]]), "number"),
        Column("found from", lambda row: _detectable(row[2]), "number"),
        Column("missing", lambda row: counted(row[3], "round") if row[3] else ""),
    ],
)


def arguments() -> Sequence[Group]:
    """Options of ``plumb calibrate --nodes``."""
    return [
        group(
            "node class, for plumb check",
            option("--nodes", "measure N usable nodes of the partition and write its class"),
            option("--node", "measure this node, or nodes such as node[1-4]; repeatable", action="append", default=[]),
            option("--checks", "checks per node (default: 8)", type=int, default=8, metavar="N"),
            option("--seconds", "time budget of a check in seconds (default: 25)", default=25),
            option("--tolerance", "tolerated slowdown (default: 0.05, 5 %%)", default=0.05),
            option(
                "--rate",
                "false alarm rate: share of the checks of a healthy node that may report it as bad (default: 1e-5)",
                type=float,
                default=1e-5,
                metavar="X",
            ),
            option("--time-limit", "time limit of the job in seconds (default: 7200)", default=7200),
        )
    ]


def run(args: argparse.Namespace) -> int | None:
    """Measure, and make the class; 0 if a budget judges every figure, 1 if none does yet. None without --nodes."""
    if not (args.nodes or args.node):
        return None
    if not 1 <= args.checks <= MOST_CHECKS:
        raise PlumbError(f"--checks is {args.checks}", "plumb calibrate --nodes", f"1 to {MOST_CHECKS}")
    if args.seconds < 1:
        raise PlumbError(f"--seconds is {args.seconds:g}", "plumb calibrate --nodes", "1 or more")
    classes.require_fractions(args.tolerance, args.rate)
    chosen_site = site.load(args.site or site.here())
    part = site.partition(chosen_site, args.partition) if args.partition else chosen_site.partitions[0]
    chosen = [name for text in args.node for name in names.expand(text, "--node")]
    nodes = checks.choose(part, args.nodes, chosen)
    request = checks.CheckRequest(chosen_site, part, nodes, args.checks, args.seconds, args.time_limit)
    with options.progress(args.json):
        if args.dry_run:
            workload = f"{counted(len(nodes), 'node')}, {args.checks} x {args.seconds:g} s each"
            print(f"would measure {workload}, for {request.file}")
            return 0
        node_class = classes.make(checks.collect(request), args.tolerance, args.rate)
        health = schedulers.named(part.scheduler).health or None
        lines = checks.plan_lines(request)
        text = classes.text(node_class, lines, store.now(), args.tolerance, args.rate, health)
        files.write("the class", request.file, text)
        _show(node_class)
        print(f"written: {request.file}")
    if args.json:
        options.print_lines(_lines(node_class))
    judged = (all(limit.member is not None for limit in limits.values()) for limits in node_class.limits.values())
    return 0 if any(judged) else 1


def _show(node_class: Class) -> None:
    """The budgets, and the limits that the class lacks so far."""
    rows = [
        (seconds, node_class.rounds[seconds], [*limits.values()], max(limit.missing for limit in limits.values()))
        for seconds, limits in node_class.limits.items()
    ]
    print(BUDGETS.text(rows) + "\n")
    for node, why in sorted(node_class.refused.items()):
        print(f"refused: {node}: {why}")
    if node_class.outdated:
        print(f"{counted(node_class.outdated, 'check')} from before a change of facts of the node left out")
    alike = {name: limit.rounds for name, limit in node_class.limits[max(node_class.rounds)].items()}
    least = min(alike, key=lambda name: alike[name])
    print(
        f"{counted(len(node_class.members), 'node')}, {counted(node_class.checks, 'check')} "
        f"on {counted(node_class.days, 'day')}, "
        f"{counted(node_class.disturbed, 'round')} beside other work left out"
    )
    print(
        f"the {node_class.rounds[max(node_class.rounds)]} rounds of {least} "
        f"count as {alike[least]:.1f} independent ones at least"
    )
    if node_class.days < 2:
        print("one day says nothing about others: run it again on another day, what was measured is kept")


def _lines(node_class: Class) -> list[dict[str, object]]:
    """An object for each limit."""
    return [
        {
            "seconds": seconds,
            "rounds": node_class.rounds[seconds],
            "figure": name,
            "unit": node_class.figures[name].unit,
            **{
                key: None if log is None else node_class.figures[name].value(log)
                for key, log in (("limit", limit.member), ("other_nodes", limit.non_member), ("doubt", limit.doubt))
            },
            "found": limit.detectable,
            "missing": limit.missing,
        }
        for seconds, limits in node_class.limits.items()
        for name, limit in limits.items()
    ]
