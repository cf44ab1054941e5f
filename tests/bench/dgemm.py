#!/usr/bin/env python3
"""dgemm against the floating-point peak, both measured by turns in every launch on the cores of NUMA node 0.

python tests/bench/dgemm.py --stack mpich --pairs 20
"""

import argparse
import sys
from pathlib import Path

import pairs
import start

from plumbline.stacks import manifest

PLACEMENT = ["--placement", "numa:0"]
TARGET = 0.90
#: without it OpenBLAS starts threads of its own, which then sleep
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}


def comparisons(chosen: argparse.Namespace) -> dict[str, tuple[pairs.Ratio, float]]:
    """Name to ratio and target."""
    stack = manifest.load(chosen.stack)
    command: list[str | Path] = [start.kernel(stack, "dgemm", chosen.kernels), "--json", "--size", str(chosen.size)]
    command += ["--repetitions", str(chosen.repetitions)]
    rates, peaks = [], []
    for number in range(chosen.pairs):
        output = start.bound(stack, PLACEMENT, command, environment=ENVIRONMENT)
        rates.append(pairs.figure(output, "rate"))
        peaks.append(pairs.figure(output, "peak"))
        print(f"launch {number + 1}/{chosen.pairs}", file=sys.stderr)
    return {"dgemm / FMA peak": (pairs.ratio_of(rates, peaks, "higher"), TARGET)}


SIZE = {"type": int, "default": 0, "help": "of the matrices; 0: the kernel's default"}
REPETITIONS = {"type": int, "default": 20, "help": "of a launch; the best one counts"}

if __name__ == "__main__":
    text = "dgemm against the peak of register-only multiply-adds."
    sys.exit(pairs.main(text, comparisons, "GFlop/s", size=SIZE, repetitions=REPETITIONS))
