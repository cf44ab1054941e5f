#!/usr/bin/env python3
"""collective against OSU and IMB on the same cores: time of 8 bytes by each way of timing.

    python tests/bench/collectives.py --stack mpich --pairs 10

They measure different things (docs/kernels/collective.md), so there is no target: the ratio says how different. The
time of ours is the median of its valid windows; OSU's is what its program prints, IMB's the mean over the ranks.
"""

import argparse
import sys
from functools import partial

import pairs
import start

from plumbline import parsers
from plumbline.base.errors import PlumbError
from plumbline.base.table import table
from plumbline.stacks import manifest
from plumbline.stacks.manifest import Manifest

SIZE = 8
#: OSU's programs run all their sizes
OSU_LARGEST = 1 << 20
#: of windows that missed their start, %: a busy machine has many, and the others are what counts
MOST_INVALID = "90"
#: operation to the names that OSU and IMB have for it
OPERATIONS = {
    "bcast": ("osu_bcast", "Bcast"),
    "allreduce": (None, "Allreduce"),
    "alltoall": ("osu_alltoall", "Alltoall"),
}


def ours(stack: Manifest, placement: list[str], operation: str) -> float:
    """One launch of the kernel: us."""
    command = [start.kernel(stack, "collective"), "--operation", operation, "--bytes", str(SIZE), "--json"]
    command += ["--most-invalid", MOST_INVALID]
    return pairs.figure(start.bound(stack, placement, command, ranks=2), "time", bytes=SIZE)


def theirs(stack: Manifest, placement: list[str], parser: str, name: str) -> float:
    """One launch of OSU's or IMB's program: us."""
    program = name if parser == "osu" else "imb-mpi1"
    command = list(stack.benchmarks[program].command)
    power = str(SIZE.bit_length() - 1)
    command += [] if parser == "osu" else [name, "-npmin", "2", "-msglog", f"{power}:{power}"]
    context = {"benchmark": name, "last_bytes": OSU_LARGEST if parser == "osu" else SIZE}
    found = parsers.parse(parser, start.bound(stack, placement, command, ranks=2), context)
    metric = "latency" if parser == "osu" else "time_avg"
    (time,) = [item.value for item in found if item.metric == metric and item.params["bytes"] == SIZE]
    return time


def rows(chosen: argparse.Namespace) -> list[list[str]]:
    """A row for each comparison that the stack has the programs for."""
    stack, placement = manifest.load(chosen.stack), ["--placement", chosen.placement]
    found = []
    for operation, (osu, imb) in OPERATIONS.items():
        for parser, name, program in (("osu", osu, osu), ("imb", imb, "imb-mpi1")):
            if name is None or program not in stack.benchmarks:
                continue
            both = partial(ours, stack, placement, operation), partial(theirs, stack, placement, parser, name)
            label = f"{chosen.stack} {operation} {parser}"
            ratio = pairs.compare(*both, chosen.pairs, "lower", seed=chosen.seed, name=label)
            numbers = [f"{ratio.ours:.3f}", f"{ratio.theirs:.3f}", str(ratio.pairs), f"{ratio.median:.2f}"]
            found.append([chosen.stack, operation, parser, *numbers, f"[{ratio.low:.2f}, {ratio.high:.2f}]"])
    return found


def main() -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(description="collective against OSU and IMB, by interleaved launches.")
    parser.add_argument("--placement", default="core", help="of the two ranks (default: %(default)s)")
    chosen = pairs.options(parser)
    header = ["stack", "operation", "against", "ours us", "theirs us", "pairs", "ours/theirs", "95 % interval"]
    try:
        print(table(header, rows(chosen), right=header[3:7]))
    except PlumbError as error:
        print(f"plumb: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
