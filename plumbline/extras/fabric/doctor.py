"""The MPI libraries of installed stacks: what they cost on this host, and what of the node they do not use."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from plumbline import site as sites
from plumbline.base import paths, terminal
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.extras.fabric import audit, yields
from plumbline.measure import jobs
from plumbline.site.nodes.findings import UNREADABLE, NodeFinding
from plumbline.stacks import manifest
from plumbline.stacks.manifest import Manifest


def examine_libraries() -> list[NodeFinding]:
    """Costs of the MPI libraries of the installed stacks, and the means of this host that they leave unused."""
    stacks = manifest.load_all()
    library_findings = [examine_library(stack) for stack in stacks]
    try:
        known = sites.load(sites.here())
        partition = known.partitions[0]
        if jobs.needed(partition):
            raise PlumbError(f"partition {partition.name} is reached by jobs: plumb stack check --run")
        used = audit.of_stacks(stacks, known.name, partition, over=1)
    except PlumbError as error:
        return [*library_findings, NodeFinding("ways of messages", f"{UNREADABLE}: {error.message}", None)]
    return library_findings + [use.of_stack for use in used if use.could != audit.NOT_HERE and use.name != audit.HUGE]


def examine_library(stack: Manifest) -> NodeFinding:
    """Whether the MPI library of a stack gives the CPU away at every poll that finds nothing, counted here.

    MPICH does so where it is built with ``--enable-thread-cs=per-vci``, its default (``MPIDI_PROGRESS_YIELD`` in its
    ``src/mpid/ch4/src/ch4_progress.h``).
    """
    name = f"yields of {stack.name}"
    try:
        cost = yields.measure(stack)
    except PlumbError as error:
        return NodeFinding(name, f"{UNREADABLE}: {error.message}", None)
    if cost.kept_us is None or cost.calls < 1:
        return NodeFinding(name, f"{cost.calls:.1f} an exchange", False)
    return NodeFinding(
        name, f"{cost.calls:.0f} calls of sched_yield an exchange of {yields.BYTES} B", True,
        f"a round trip takes {cost.time_us:.2f} us, {cost.kept_us:.2f} us where the CPU is kept",
        "no setting changes that; docs/tuning.md says which option of its configure may",
    )  # fmt: skip


def check_stacks(args: argparse.Namespace, names: Sequence[str]) -> int:
    """Print the means that each stack uses; 1 if one misses something that the node has, else 0."""
    known = sites.load(args.site or sites.here())
    partition = sites.partition(known, args.partition or known.partitions[0].name)
    over = min(2, partition.nodes_offered) if args.nodes is None else args.nodes
    if over > 2:
        raise PlumbError(f"{over} nodes asked", "--nodes", "1, or 2: two ranks are started")
    stacks = [manifest.load(name) for name in names]
    if jobs.needed(partition):
        words = ["stack", "check", *names, "--run", "--site", known.name, "--partition", partition.name]
        words += ["--nodes", str(over), *(["--json"] if args.json else [])]
        folder = (paths.build() / "stack-check" / f"job-{partition.name}").resolve()
        return jobs.run_plumb(words, partition, over, folder, terminal.say)
    uses = audit.of_stacks(stacks, known.name, partition, over)
    if args.json:
        options.print_lines(map(asdict, uses))
    else:
        print(audit.text(uses))
    return 1 if any(use.bad for use in uses) else 0
