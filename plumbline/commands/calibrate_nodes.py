"""``plumb calibrate --nodes``: the class of a partition's nodes, by which ``plumb check`` judges each."""

from __future__ import annotations

import argparse

from plumbline import schedulers, site
from plumbline.base import files
from plumbline.base.errors import PlumbError
from plumbline.base.units import counted, percent
from plumbline.commands import options
from plumbline.health import classes, collect
from plumbline.health.classes import Class
from plumbline.records import store
from plumbline.schedulers import names
from plumbline.views.table import table

#: the most that plumb-check takes
MOST_CHECKS = 1000
HEADER = ("seconds", "rounds", "figures judged", "on other nodes", "found from", "missing")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Those options of ``plumb calibrate`` that are for a class."""
    group = parser.add_argument_group("a class of nodes, for plumb check")
    options.add(group, "--nodes", "measure N nodes of the partition that can be used, and make its class")
    options.add(group, "--node", "measure this node, repeated; node[1-4] too", action="append", default=[])
    group.add_argument("--checks", type=int, default=8, metavar="N", help="checks of each node (default: 8)")
    options.add(group, "--seconds", "that a check may take (default: 25)", default=25)
    options.add(group, "--tolerance", "slowdowns up to this are never bad (default: 0.05, 5 %%)", default=0.05)
    text = "the share of checks of a healthy node that may end as bad (default: 1e-5)"
    group.add_argument("--rate", type=float, default=1e-5, metavar="X", help=text)
    options.add(group, "--time-limit", "give the job up after S seconds (default: 7200)", default=7200)


def run(args: argparse.Namespace) -> int:
    """Measure, and make the class; 0 if a budget judges every figure, 1 if none does yet."""
    if not 1 <= args.checks <= MOST_CHECKS:
        raise PlumbError(f"--checks is {args.checks}", "plumb calibrate --nodes", f"1 to {MOST_CHECKS}")
    if args.seconds < 1:
        raise PlumbError(f"--seconds is {args.seconds:g}", "plumb calibrate --nodes", "1 or more")
    classes.require_fractions(args.tolerance, args.rate)
    found = site.load(args.site or site.here())
    part = site.partition(found, args.partition) if args.partition else found.partitions[0]
    chosen = [name for text in args.node for name in names.expand(text, "--node")]
    nodes = collect.choose(part, args.nodes, chosen)
    request = collect.Request(found, part, nodes, args.checks, args.seconds, args.time_limit)
    with options.progress(args.json):
        if args.dry_run:
            what = f"{counted(len(nodes), 'node')}, {args.checks} x {args.seconds:g} s each"
            print(f"would measure {what}, for {request.file}")
            return 0
        made = classes.make(collect.collect(request), args.tolerance, args.rate)
        health = schedulers.named(part.scheduler).health or None
        lines = collect.plan_lines(request)
        text = classes.text(made, lines, store.now(), args.tolerance, args.rate, health)
        files.write("the class", request.file, text)
        _show(made)
        print(f"written: {request.file}")
    if args.json:
        options.print_lines(_lines(made))
    return 0 if any(_judged(made, seconds) == len(made.figures) for seconds in made.rounds) else 1


def _judged(made: Class, seconds: int) -> int:
    return sum(one.member is not None for one in made.limits[seconds].values())


def _show(made: Class) -> None:
    """The budgets, and what the class cannot promise yet."""
    rows = []
    for seconds, rounds in made.rounds.items():
        own = list(made.limits[seconds].values())
        found = [one.found for one in own if one.found is not None]
        others = sum(one.other is not None for one in own)
        missing = max(one.missing for one in own)
        rows.append((
            str(seconds), str(rounds), f"{_judged(made, seconds)} of {len(own)}", f"{others} of {len(own)}",
            percent(max(found)) if found else "–", counted(missing, "round") if missing else "",
        ))  # fmt: skip
    print(table(HEADER, rows, right=HEADER[:5]) + "\n")
    for node, why in sorted(made.refused.items()):
        print(f"refused: {node}: {why}")
    if made.outdated:
        print(f"{counted(made.outdated, 'check')} from before a change of facts of the node left out")
    alike = {name: one.rounds for name, one in made.limits[max(made.rounds)].items()}
    least = min(alike, key=lambda name: alike[name])
    print(
        f"{counted(len(made.members), 'node')}, {counted(made.checks, 'check')} on {counted(made.days, 'day')}, "
        f"{counted(made.disturbed, 'round')} beside other work left out"
    )
    print(
        f"the {made.rounds[max(made.rounds)]} rounds of {least} count as {alike[least]:.1f} independent ones at least"
    )
    if made.days < 2:
        print("one day says nothing about others: run it again on another day, what was measured is kept")


def _lines(made: Class) -> list[dict[str, object]]:
    """An object for each limit."""
    return [
        {
            "seconds": seconds,
            "rounds": made.rounds[seconds],
            "figure": name,
            "unit": made.figures[name].unit,
            **{
                key: None if log is None else made.figures[name].value(log)
                for key, log in (("limit", one.member), ("other_nodes", one.other), ("doubt", one.doubt))
            },
            "found": one.found,
            "missing": one.missing,
        }
        for seconds, limits in made.limits.items()
        for name, one in limits.items()
    ]
