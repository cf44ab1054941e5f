#!/usr/bin/env python3
"""pairs against IMB-MPI1 PingPong on the same two cores: time of 8 bytes and bandwidth of 4 MiB.

    python tests/bench/pairs_latency.py --stack mpich --placement pair:l3 --pairs 20

Both define half a round trip as the time. IMB prints the mean of its iterations; ours is the median of nine batches of
an equal number of iterations in all, and so suffers less from an interruption: compare on a quiet machine. IMB's time
has two decimals only, so the time of 8 bytes is taken from the bandwidth that it prints beside it.
"""

import argparse
import sys
from functools import partial

import pairs
import start

from plumbline import parsers
from plumbline.base.errors import PlumbError
from plumbline.stacks import manifest

SMALL, LARGE = 8, 4 << 20
BATCHES = 9
#: round trips of a launch, by size
ROUND_TRIPS = {SMALL: 18000, LARGE: 90}
TARGETS = {"latency": 1.02, "bandwidth": 0.98}


def ours(chosen: argparse.Namespace, size: int, metric: str) -> float:
    """One launch of pairs: us or MB/s."""
    stack = manifest.load(chosen.stack)
    which = "latency" if size == SMALL else "bandwidth"
    other = "bandwidth" if size == SMALL else "latency"
    command = [start.kernel(stack, "pairs", chosen.kernels), "--json", "--mode", "serial", "--batches", str(BATCHES)]
    command += [f"--{which}-bytes", str(size), f"--{which}-trips", str(ROUND_TRIPS[size] // BATCHES)]
    command += [f"--{other}-bytes", "8", f"--{other}-trips", "1"]
    return pairs.figure(start.bound(stack, ["--placement", chosen.placement], command, ranks=2), metric, first=0)


def theirs(chosen: argparse.Namespace, size: int, metric: str) -> float:
    """One launch of IMB-MPI1 PingPong: us or MB/s."""
    stack = manifest.load(chosen.stack)
    if "imb-mpi1" not in stack.benchmarks:
        raise PlumbError(f"stack {chosen.stack} has no imb-mpi1", "its manifest", "mpich and intelmpi have it")
    power = str(size.bit_length() - 1)
    command = [*stack.benchmarks["imb-mpi1"].command, "PingPong", "-npmin", "2", "-msglog", f"{power}:{power}"]
    command += ["-iter_policy", "off", "-iter", str(ROUND_TRIPS[size])]
    output = start.bound(stack, ["--placement", chosen.placement], command, ranks=2)
    found = parsers.parse("imb", output, {"benchmark": "PingPong", "last_bytes": size})
    (rate,) = [item.value for item in found if item.metric == "bandwidth" and item.params["bytes"] == size]
    return size / rate if metric == "latency" else rate


def comparisons(chosen: argparse.Namespace) -> dict[str, tuple[pairs.Ratio, float]]:
    """Name to ratio and target."""
    found = {}
    for size, metric, better in ((SMALL, "latency", "lower"), (LARGE, "bandwidth", "higher")):
        name = f"{chosen.stack} {chosen.placement} {metric} of {size} B, {'us' if size == SMALL else 'MB/s'}"
        both = (partial(side, chosen, size, metric) for side in (ours, theirs))
        found[name] = (pairs.compare(*both, chosen.pairs, better, seed=chosen.seed, name=name), TARGETS[metric])
    return found


PLACEMENT = {"default": "pair:l3", "help": "of the two ranks (default: %(default)s)"}

if __name__ == "__main__":
    text = "pairs against IMB-MPI1 PingPong, by interleaved launches."
    sys.exit(pairs.main(text, comparisons, "(as named)", placement=PLACEMENT))
