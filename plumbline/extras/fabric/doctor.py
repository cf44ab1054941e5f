"""The MPI libraries of installed stacks: what they cost on this host, and what of the node they do not use."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

from plumbline import mpi, parsers
from plumbline import site as sites
from plumbline.base import paths, terminal
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.extras.fabric import audit
from plumbline.launch import process
from plumbline.launch.environment import at_home, inherit
from plumbline.measure import jobs
from plumbline.schedulers.program import last_line
from plumbline.site.nodes.findings import UNREADABLE, NodeFinding
from plumbline.stacks import manifest
from plumbline.stacks.manifest import Manifest

KERNEL = "threaded_pingpong"
BYTES, EXCHANGES = 16, 5000
ARGUMENTS = (
    *("--mode", "serial", "--level", "funneled", "--threads", "1", "--messages", "2"),
    *("--bytes", str(BYTES), "--repetitions", str(EXCHANGES), "--json"),
)
#: launches of each kind, in turn; the best time counts: what disturbs a launch makes it slower
LAUNCHES = 3
#: a library is slow that takes so many times as long as the fastest one on the same two cores
SLOW = 2.0
TIME_LIMIT_S = 60.0


def examine_libraries() -> list[NodeFinding]:
    """Costs of the MPI libraries of the installed stacks, and the means of this host that they leave unused."""
    stacks = manifest.load_all()
    library_findings = examine_costs(stacks)
    try:
        known, partition = sites.chosen(None, None)
        if jobs.needed(partition):
            raise PlumbError(f"partition {partition.name} is reached by jobs: plumb stack check --run")
        used = audit.of_stacks(stacks, known.name, partition, over=1)
    except PlumbError as error:
        return [*library_findings, NodeFinding("ways of messages", f"{UNREADABLE}: {error.message}", None)]
    return library_findings + [use.of_stack for use in used if use.could != audit.NOT_HERE and use.name != audit.HUGE]


def examine_costs(stacks: Sequence[Manifest]) -> list[NodeFinding]:
    """Of each stack's library, how often it gives the CPU away while it waits, and its latency beside the others'.

    MPICH yields at every poll that finds nothing from version 5.0 on.
    """
    costs: dict[str, Yields] = {}
    unknown = []
    for stack in stacks:
        try:
            costs[stack.name] = measure_yields(stack)
        except PlumbError as error:
            unknown.append(NodeFinding(f"yields of {stack.name}", f"{UNREADABLE}: {error.message}", None))
    fastest = min(costs, key=lambda name: costs[name].time_us, default="")
    both = ((cost.finding(name), cost.beside(name, fastest, costs[fastest].time_us)) for name, cost in costs.items())
    return [*unknown, *chain.from_iterable(both)]


def check_stacks(args: argparse.Namespace, names: Sequence[str]) -> int:
    """Print the means that each stack uses; 1 if one misses something that the node has, else 0."""
    known, partition = sites.chosen(args.site, args.partition)
    over = min(2, partition.nodes_offered) if args.nodes is None else args.nodes
    if over > 2:
        raise PlumbError(f"{over} nodes asked", "--nodes", "1, or 2: two ranks are started")
    stacks = [manifest.load(name) for name in names]
    if jobs.needed(partition):
        words = [
            *("stack", "check", *names, "--run", "--site", known.name, "--partition", partition.name),
            *("--nodes", str(over), *(["--json"] if args.json else [])),
        ]
        folder = (paths.build() / "stack-check" / f"job-{partition.name}").resolve()
        return jobs.run_plumb(words, partition, over, folder, terminal.say)
    uses = audit.of_stacks(stacks, known.name, partition, over)
    if args.json:
        options.print_lines(map(asdict, uses))
    else:
        print(audit.text(uses))
    return 1 if any(use.bad for use in uses) else 0


@dataclass(frozen=True)
class Yields:
    """``calls`` of sched_yield per exchange, by the rank that has more; times of a round trip of 16 bytes in us.

    ``kept_us`` is the time where the calls return at once, None where there are none.
    """

    calls: float
    time_us: float
    kept_us: float | None

    def finding(self, name: str) -> NodeFinding:
        """Of the stack ``name``: a call an exchange is too many."""
        title = f"yields of {name}"
        if self.kept_us is None or self.calls < 1:
            return NodeFinding(title, f"{self.calls:.1f} an exchange", False)
        return NodeFinding(
            title, f"{self.calls:.0f} calls of sched_yield an exchange of {BYTES} B", True,
            f"a round trip takes {self.time_us:.2f} us, {self.kept_us:.2f} us where the CPU is kept",
            "no setting changes that; docs/tuning.md names the versions that do not yield",
        )  # fmt: skip

    def beside(self, name: str, fastest: str, best_us: float) -> NodeFinding:
        """Of the stack ``name``: its latency, as a finding if it is far from that of the ``fastest`` stack."""
        times = self.time_us / best_us
        return NodeFinding(
            f"latency of {name}", f"{self.time_us:.2f} us a round trip of {BYTES} B", times >= SLOW,
            f"{times:.1f} times that of {fastest} on the same two cores",
            f"use {fastest}, or see what else is found for {name} here",
        )  # fmt: skip


def measure_yields(stack: Manifest) -> Yields:
    """Measure two ranks of ``stack``, on cores of their own.

    Raises :class:`PlumbError` if they cannot be started.
    """
    if KERNEL not in stack.benchmarks:
        raise PlumbError(f"stack {stack.name} has no {KERNEL}", "its manifest", "install it again")
    calls, times, kept = 0, [], []
    for _ in range(LAUNCHES):
        seen, time_us = _launch(stack, keep=False)
        calls = max(calls, seen)
        times.append(time_us)
        if calls:
            kept.append(_launch(stack, keep=True)[1])
    return Yields(calls / EXCHANGES, min(times), min(kept, default=None))


def _launch(stack: Manifest, keep: bool) -> tuple[int, float]:
    """The calls of the rank with most of them, and the time of a round trip, us."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for inner in ("yields", "output"):
            (folder / inner).mkdir()
        around = {**inherit(os.environ).kept, **manifest.environment(stack, os.environ)}
        two = mpi.Layout(nodes=1, ranks_per_node=2)
        start = stack.launcher_on(None, around).command(two, bound=True, environment=around)
        variables = {name: value for name, value in around.items() if name not in start.removed} | start.environment
        preload = [
            *("env", f"LD_PRELOAD={paths.library('yields')}", f"PLUMB_YIELDS_DIR={folder / 'yields'}"),
            *(["PLUMB_YIELDS_SPIN=1"] if keep else []),
        ]
        bind = [str(paths.binder()), "--placement", "compact", "--threads", "1", "--output", "output", "--"]
        command = [*start.arguments, *bind, *preload, *stack.benchmarks[KERNEL].command, *ARGUMENTS]
        if (ended := process.run(command, at_home(variables, folder), folder, TIME_LIMIT_S)).status != "ok":
            why = last_line(process.printed(folder / "stderr")) or ended.status
            raise PlumbError(f"two ranks of {stack.name} cannot be started: {why}", KERNEL, "plumb stack check")
        counts = [int(file.read_text(encoding="utf-8")) for file in (folder / "yields").iterdir()]
        if len(counts) != 2:
            message = f"{len(counts)} of 2 ranks of {stack.name} counted their yields"
            raise PlumbError(message, str(paths.library("yields")), paths.setup())
        text = "".join(process.printed(file) for file in sorted((folder / "output").iterdir()))
    measurements = parsers.parse("kernel", text, {"kernel": KERNEL})
    times = (item.value for item in measurements if item.metric == "time" and item.params.get("messages") == 1)
    return max(counts), float(next(times))
