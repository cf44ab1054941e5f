"""How long plumb-bind takes to start: required is below 30 ms on a topology of 256 CPUs.

    python tests/bench/startup.py [--runs 50]

Times whole processes, from before fork to after exit, all cases in turn so that a busy moment hits them alike:
``--print`` over a stored topology of 2 x 64 cores with SMT 2 and all its caches; the same machine as a tree of sysfs
files, which is what a real start reads on such a host; the real start on this host (topology, binding, exec of
``true``); and ``true`` alone, what starting any process costs here. A line of JSON per case; exit status 1 if a
median is not below the limit.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from plumbline.base import paths  # noqa: E402

LIMIT_MS = 30.0


def mask(cpus: Iterable[int]) -> str:
    """The kernel's notation of a CPU set of 256 CPUs."""
    value = sum(1 << cpu for cpu in cpus)
    return ",".join(f"{value >> shift & 0xFFFFFFFF:08x}" for shift in range(224, -1, -32))


def write_sysfs(root: Path) -> None:
    """The files that a kernel shows of 2 x 64 cores with SMT 2, 8 NUMA nodes and an L3 per 8 cores."""

    def write(path: str, **files: object) -> None:
        (root / path).mkdir(parents=True, exist_ok=True)
        for name, value in files.items():
            (root / path / name).write_text(f"{value}\n", encoding="utf-8")

    def both(first: int, count: int) -> list[int]:
        return [cpu + sibling for sibling in (0, 128) for cpu in range(first, first + count)]

    system = "sys/devices/system"
    write(f"{system}/cpu", online="0-255", possible="0-255", present="0-255")
    for cpu in range(256):
        core = cpu % 128
        threads, cache, package = mask(both(core, 1)), mask(both(core // 8 * 8, 8)), mask(both(core // 64 * 64, 64))
        topology = f"{system}/cpu/cpu{cpu}/topology"
        write(topology, core_cpus=threads, cluster_cpus=threads, die_cpus=package, package_cpus=package)
        write(topology, core_id=core % 64, cluster_id=core % 64, die_id=0, physical_package_id=core // 64)
        levels = ((1, "Data", threads), (1, "Instruction", threads), (2, "Unified", threads), (3, "Unified", cache))
        for index, (level, kind, shared) in enumerate(levels):
            folder = f"{system}/cpu/cpu{cpu}/cache/index{index}"
            write(folder, level=level, type=kind, shared_cpu_map=shared, size="1024K", id=core)
            write(folder, coherency_line_size=64, number_of_sets=64, physical_line_partition=1)
    write(f"{system}/node", online="0-7", possible="0-7")
    for node in range(8):
        distances = " ".join("10" if a == node else "12" if a // 4 == node // 4 else "32" for a in range(8))
        memory = f"Node {node} MemTotal: 98000000 kB"
        write(f"{system}/node/node{node}", cpumap=mask(both(node * 16, 16)), meminfo=memory, distance=distances)
    write("proc", cpuinfo="\n\n".join(f"processor\t: {cpu}" for cpu in range(256)), meminfo="MemTotal: 790000000 kB")


def milliseconds(command: list[str], variables: dict[str, str]) -> float:
    """Wall time of one process."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | variables)
    return (time.perf_counter() - start) * 1e3


def measure(runs: int, sysfs: str) -> bool:
    """Time every case, print a line for each, and say whether all medians are within the limit."""
    binder = str(paths.binder())
    printing = [binder, "--print", "--placement"]
    stored = ["--topology", str(ROOT / "tests/data/topologies/epyc-2x64-smt2.xml")]
    host = {"HWLOC_FSROOT": sysfs, "HWLOC_COMPONENTS": "linux,stop"}
    cases: dict[str, tuple[list[str], dict[str, str]]] = {
        "256 CPUs, XML: numa": ([*printing, "numa", *stored], {}),
        "256 CPUs, XML: scatter, 128 ranks": ([*printing, "scatter", *stored], {}),
        "256 CPUs, XML: smt, remote memory": ([*printing, "smt", "--memory", "remote", *stored], {}),
        "256 CPUs, sysfs: numa": ([*printing, "numa"], host),
        "this host, real start": ([binder, "--placement", "compact", "--", "true"], {}),
        "true alone": (["true"], {}),
    }
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(runs):
        for name, (command, variables) in cases.items():
            times[name].append(milliseconds(command, variables))
    for name, values in times.items():
        figures = {"median_ms": round(statistics.median(values), 2), "max_ms": round(max(values), 2)}
        print(json.dumps({"case": name, "runs": runs} | figures))
    return all(statistics.median(values) < LIMIT_MS for values in times.values())


def main() -> int:
    """Measure every case; 1 if a median is not below the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as sysfs:
        write_sysfs(Path(sysfs))
        within = measure(args.runs, sysfs)
    print(json.dumps({"limit_ms": LIMIT_MS, "medians_within": within}))
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
