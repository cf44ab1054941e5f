#!/usr/bin/env python3
"""Triad of membw against STREAM and likwid-bench on the cores of NUMA node 0, with arrays of the same size.

    python tests/bench/membw.py --stack mpich --pairs 20

STREAM reports its best repetition, likwid-bench the mean of all: each is compared with the same figure of membw.
likwid-bench (Debian package likwid) is left out where it is not installed.
"""

import argparse
import re
import shutil
import sys
from pathlib import Path

import pairs
import start

from plumbline.base.errors import PlumbError
from plumbline.host import binder
from plumbline.stacks import manifest

REPETITIONS = 20
PLACEMENT = "numa:0"


def likwid_kernel(flags: str) -> str:
    """The widest triad with streaming stores that a processor with these ``flags`` (of /proc/cpuinfo) has."""
    words = flags.split()
    return "stream_mem_avx512" if "avx512f" in words else "stream_mem_avx" if "avx" in words else "stream_mem_sse"


def stream_triad(output: str) -> float:
    """``Triad:          31021.5     0.0125     0.0124     0.0126``: the best rate in MB/s."""
    return float(_found(r"^Triad:\s+([\d.]+)", output, "STREAM"))


def likwid_rate(output: str) -> float:
    """``MByte/s:		43703.29``."""
    return float(_found(r"^MByte/s:\s+([\d.]+)", output, "likwid-bench"))


def _found(pattern: str, output: str, program: str) -> str:
    match = re.search(pattern, output, re.MULTILINE)
    if match is None:
        raise PlumbError("cannot read the output", program, "compare it with this script")
    return match[1]


def comparisons(chosen: argparse.Namespace) -> dict[str, tuple[pairs.Ratio, float]]:
    """Name to ratio and target."""
    stack = manifest.load(chosen.stack)
    stream = stack.benchmarks["stream"]
    elements = int(stream.facts["array_elements"])
    threads = len(binder.resolve(PLACEMENT).ranks[0].places)
    program = start.kernel(stack, "membw", chosen.kernels)
    where = ["--placement", PLACEMENT]

    def ours(stores: str, metric: str) -> float:
        options = ["--kernels", "triad", "--size", str(elements), "--stores", stores, "--json"]
        repetitions = ["--repetitions", str(REPETITIONS + 1)]
        return pairs.figure(start.bound(stack, where, [program, *options, *repetitions]), metric, mode=stores)

    def stream_run() -> float:
        return stream_triad(start.bound(stack, where, stream.command))

    def likwid_run() -> float:
        flags = _found(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), "/proc/cpuinfo")
        group = f"M0:{elements * 24 // 1000}kB:{threads}"
        command = ["likwid-bench", "-t", likwid_kernel(flags), "-i", str(REPETITIONS), "-w", group]
        return likwid_rate(pairs.launch(command))

    plans = [
        ("streaming stores / STREAM", lambda: ours("streaming", "bandwidth"), stream_run, 1.00),
        ("regular stores / STREAM", lambda: ours("regular", "bandwidth"), stream_run, 0.98),
    ]
    if shutil.which("likwid-bench"):
        plans.append(("streaming stores / likwid-bench", lambda: ours("streaming", "bandwidth_mean"), likwid_run, 1.00))
    return {
        f"triad, {name}": (pairs.compare(one, other, chosen.pairs, "higher", seed=chosen.seed, name=name), target)
        for name, one, other, target in plans
    }


if __name__ == "__main__":
    sys.exit(pairs.main("membw against STREAM and likwid-bench, by interleaved launches.", comparisons, "MB/s"))
