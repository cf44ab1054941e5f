#!/usr/bin/env python3
"""Our barriers against that of the OpenMP library, for two threads that share a last-level cache.

    python tests/bench/barrier.py --stack mpich --pairs 20

Under its default wait policy gcc's library spins for a while and then sleeps; `active` makes it spin, which is the
fair comparison with barriers that always do. Both are shown.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

import pairs
import start

from plumbline.stacks import manifest

PLACEMENT = ["--placement", "pair:l3", "--threads", "2"]
POLICIES: dict[str, dict[str, str]] = {"default": {}, "active": {"OMP_WAIT_POLICY": "active"}}
OURS = ("spin", "dissemination")
TARGET = 0.5


def comparisons(chosen: argparse.Namespace) -> dict[str, tuple[pairs.Ratio, float]]:
    """Name to ratio and target."""
    stack = manifest.load(chosen.stack)
    program = start.kernel(stack, "barrier", chosen.kernels)

    def once(kind: str, policy: str) -> float:
        command: list[str | Path] = [program, "--kernel", kind, "--threads", "2", "--json"]
        output = start.bound(stack, PLACEMENT, command, environment=POLICIES[policy])
        return pairs.figure(output, "time", kernel=kind, threads=2)

    found = {}
    for policy in POLICIES:
        for kind in OURS:
            name = f"{kind} / openmp, wait policy {policy}"
            both = partial(once, kind, policy), partial(once, "openmp", policy)
            found[name] = (pairs.compare(*both, chosen.pairs, "lower", seed=chosen.seed, name=name), TARGET)
    return found


if __name__ == "__main__":
    sys.exit(pairs.main("barriers against the OpenMP library's, by interleaved launches.", comparisons, "ns"))
