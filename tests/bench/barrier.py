#!/usr/bin/env python3
"""Our barriers against that of the OpenMP library, for two threads that share a last-level cache.

    python tests/bench/barrier.py --stack mpich --pairs 20

Under its default wait policy gcc's library spins for a while and then sleeps; `active` makes it spin, which is the
fair comparison with barriers that always do. Both are shown.
"""

from __future__ import annotations

import argparse
import sys
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
            ratio = pairs.compare(
                lambda kind=kind, policy=policy: once(kind, policy),  # type: ignore[misc]
                lambda policy=policy: once("openmp", policy),  # type: ignore[misc]
                chosen.pairs,
                "lower",
                seed=chosen.seed,
                name=name,
            )
            found[name] = (ratio, TARGET)
    return found


def main() -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(description="barriers against the OpenMP library's, by interleaved launches.")
    parser.add_argument("--kernels", metavar="DIR", help="folder of another build of the kernels")
    chosen = pairs.options(parser)
    return pairs.report(lambda: comparisons(chosen), "ns")


if __name__ == "__main__":
    sys.exit(main())
