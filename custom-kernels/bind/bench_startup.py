"""How long plumb-bind takes to start: required is below 30 ms on a topology of 256 CPUs.

    python custom-kernels/bind/bench_startup.py [--runs 50] [--topology FILE.xml]

Times whole processes, from before fork to after exit: ``--print`` over a stored topology of 2 x 64 cores with SMT 2
and all its caches, and the real start (this host's topology from sysfs, binding, exec of ``true``). The same
program without the binder is timed in between, and its median is what starting any process costs here. A line of
JSON per case; exit status 1 if a maximum is not below the limit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from plumbline import paths  # noqa: E402  (the script also runs from a checkout that is not installed)

LIMIT_MS = 30.0


def milliseconds(command: list[str]) -> float:
    """Wall time of one process."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--topology", default=str(ROOT / "tests/data/topologies/epyc-2x64-smt2.xml"))
    args = parser.parse_args()
    binder = str(paths.binder())
    printing = [binder, "--topology", args.topology, "--print", "--placement"]
    cases = {
        "print numa": [*printing, "numa"],
        "print scatter, 128 ranks": [*printing, "scatter"],
        "print smt, remote memory": [*printing, "smt", "--memory", "remote"],
        "real start on this host": [binder, "--placement", "compact", "--", "true"],
        "true alone": ["true"],
    }
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(args.runs):
        for name, command in cases.items():
            times[name].append(milliseconds(command))
    within = True
    for name, values in times.items():
        median, longest = statistics.median(values), max(values)
        within &= longest < LIMIT_MS
        print(json.dumps({"case": name, "runs": args.runs, "median_ms": round(median, 2), "max_ms": round(longest, 2)}))
    print(json.dumps({"limit_ms": LIMIT_MS, "within": within}))
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
