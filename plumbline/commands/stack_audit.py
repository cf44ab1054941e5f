"""``plumb stack check --run``: does the MPI library of a stack use what the node has?"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from plumbline import site as sites
from plumbline.base import paths, terminal
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.schemas.site import Partition
from plumbline.stacks import manifest

if TYPE_CHECKING:
    from plumbline.fabric.audit import Use


def run(args: argparse.Namespace, names: Sequence[str]) -> int:
    """Print what each stack uses; 1 if one misses something that the node has, else 0."""
    from plumbline.fabric import audit  # here and below: other commands do not need what they load
    from plumbline.measure import jobs

    known = sites.load(args.site or sites.here())
    partition = sites.partition(known, args.partition or known.partitions[0].name)
    over = min(2, partition.nodes_offered) if args.nodes is None else args.nodes
    if over > 2:
        raise PlumbError(f"{over} nodes asked", "--nodes", "1, or 2: two ranks are started")
    if jobs.needed(partition):
        words = ["stack", "check", *names, "--run", "--site", known.name, "--partition", partition.name]
        words += ["--nodes", str(over), *(["--json"] if args.json else [])]
        folder = (paths.build() / "stack-check" / f"job-{partition.name}").resolve()
        with options.progress(args.json):
            return jobs.run_plumb(words, partition, over, folder, terminal.say)
    found = of_stacks([manifest.load(name) for name in names], known.name, partition, over)
    if args.json:
        options.print_lines(map(asdict, found))
    else:
        print(audit.text(found))
    return 1 if any(one.bad for one in found) else 0


def of_stacks(stacks: Sequence[manifest.Manifest], site: str, partition: Partition, over: int) -> list[Use]:
    """What each of ``stacks`` uses here; of one that cannot be launched, why."""
    from plumbline.fabric import audit
    from plumbline.measure.session import passing_folder
    from plumbline.nodes import read

    found: list[Use] = []
    with passing_folder("stack-check") as folder:
        facts = read.here(folder)
        for stack in stacks:
            place = folder / stack.name
            place.mkdir()
            try:
                found += audit.audit(stack, site, partition, over, facts, place)
            except PlumbError as error:  # the other stacks are judged all the same
                found.append(audit.unlaunched(stack.name, error))
    return found
