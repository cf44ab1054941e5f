#!/usr/bin/env python3
"""What the witness costs: STREAM triad and 8-byte ping-pong, with and without libplumbwitness.so.

Launches come in pairs, one with and one without, in an order drawn for each pair (seeded), so that drift and
noisy neighbours hit both alike. Printed are the ratio of the medians and the cost with its 95 % interval: the
Hodges-Lehmann estimate over the paired log ratios and the interval of the signed-rank test, which does not assume any
distribution.

    python tests/bench/witness_programs.py --stack mpich --pairs 30

The stack is one that is installed (stacks/NAME/manifest.json). Ping-pong is IMB-MPI1 PingPong where the stack has it,
else osu_latency. Exit status 0: the cost is shown to be below --limit; 1: it is above; 3: too noisy to say.
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from plumbline import mpi
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.stacks import manifest as manifests
from plumbline.stacks.manifest import Manifest

TIME_LIMIT_S = 120
NORMAL_975 = 1.959964


@dataclass(frozen=True)
class Case:
    """One figure: how to start it (around ``plumb-bind`` options), and the line of the output that holds it."""

    name: str
    unit: str
    better: str
    head: list[str]
    placement: list[str]
    command: list[str]
    environment: dict[str, str]
    ranks: int


def stream_case(manifest: Manifest) -> Case:
    """STREAM on all cores of the node: no MPI, so plumb-bind starts it itself."""
    return Case(
        "STREAM triad",
        "MB/s",
        "higher",
        [],
        ["--placement", "node"],
        manifest.benchmarks["stream"].command,
        manifests.environment(manifest, os.environ),
        1,
    )


def pingpong_case(manifest: Manifest, iterations: int) -> Case:
    """Two ranks on the first two cores."""
    start = manifest.launcher_on(None, os.environ).command(
        mpi.Layout(nodes=1, ranks_per_node=2), bound=True, environment=os.environ
    )
    benchmarks = manifest.benchmarks
    if "imb-mpi1" in benchmarks:
        options = ["PingPong", "-msglog", "3:3", "-iter", str(iterations), "-iter_policy", "off", "-time", "60"]
        name, command = "IMB PingPong, 8 bytes", [*benchmarks["imb-mpi1"].command, *options]
    else:
        name, command = "osu_latency, 8 bytes", benchmarks["osu_latency"].command
    environment = {**manifests.environment(manifest, os.environ), **start.environment}
    placement = ["--placement", "compact", "--threads", "1"]
    return Case(name, "us", "lower", list(start.arguments), placement, command, environment, 2)


def triad(output: str) -> float:
    """``Triad:          31021.5     0.0125     0.0124     0.0126``: the best rate."""
    for line in output.splitlines():
        if line.startswith("Triad:"):
            return float(line.split()[1])
    raise ValueError("no Triad line")


def latency(output: str) -> float:
    """Microseconds from ``8  200000  0.21  38.15`` (IMB) or ``8  0.45`` (OSU).

    IMB prints two decimals: too few for 0.15 us, so the time comes from the bandwidth in MB/s, which is bytes per us.
    """
    for line in output.splitlines():
        words = line.split()
        if len(words) == 4 and words[0] == "8":
            return 8 / float(words[3])
        if len(words) == 2 and words[0] == "8":
            return float(words[1])
    raise ValueError("no line for 8 bytes")


def launch(case: Case, witnessed: bool) -> float:
    """The figure of one launch; a witnessed one must have left its witnesses."""
    with tempfile.TemporaryDirectory(prefix="plumb-cost-") as folder:
        witness = ["--witness", folder] if witnessed else []
        command = [*case.head, str(paths.binder()), *case.placement, *witness, "--", *case.command]
        environment = {**os.environ, **case.environment}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
        )
        left = len(list(Path(folder).glob("*.json")))
        if done.returncode != 0:
            tail = (done.stderr or done.stdout)[-300:]
            raise PlumbError(f"exit status {done.returncode}: {tail}", case.name, "fix the stack first")
        if witnessed and left != case.ranks:
            raise PlumbError(f"{left} witnesses instead of {case.ranks}", case.name, "build the tools: make setup")
        try:
            return triad(done.stdout) if case.unit == "MB/s" else latency(done.stdout)
        except ValueError as error:
            raise PlumbError(f"cannot read the output: {error}", case.name, "compare it with this script") from error


def measure(case: Case, pairs: int, draw: random.Random) -> tuple[list[float], list[float]]:
    """``pairs`` figures without and with, after one launch of each that is thrown away."""
    launch(case, False)
    launch(case, True)
    figures: dict[bool, list[float]] = {False: [], True: []}
    began = time.monotonic()
    for number in range(pairs):
        order = [False, True]
        draw.shuffle(order)
        for witnessed in order:
            figures[witnessed].append(launch(case, witnessed))
        left = (time.monotonic() - began) / (number + 1) * (pairs - number - 1)
        print(f"{case.name}: pair {number + 1}/{pairs}, {left:.0f} s left", file=sys.stderr)
    return figures[False], figures[True]


def signed_rank(values: list[float]) -> tuple[float, float, float]:
    """Hodges-Lehmann estimate and its 95 % interval (normal approximation of the signed-rank statistic)."""
    count = len(values)
    walsh = sorted((values[i] + values[j]) / 2 for i in range(count) for j in range(i, count))
    middle = count * (count + 1) / 4
    spread = math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
    cut = max(0, math.floor(middle - NORMAL_975 * spread))
    return statistics.median(walsh), walsh[cut], walsh[-1 - cut]


def costs(case: Case, without: list[float], with_witness: list[float]) -> dict[str, Any]:
    """Cost as a relative loss: more latency or less bandwidth is positive."""
    sign = 1 if case.better == "lower" else -1
    logs = [sign * math.log(b / a) for a, b in zip(without, with_witness, strict=True)]
    estimate, low, high = (math.expm1(value) for value in signed_rank(logs))
    return {
        "figure": case.name,
        "unit": case.unit,
        "pairs": len(logs),
        "median_without": statistics.median(without),
        "median_with": statistics.median(with_witness),
        "ratio_of_medians": statistics.median(with_witness) / statistics.median(without),
        "cost": estimate,
        "interval": [low, high],
    }


def verdict(result: dict[str, Any], limit: float) -> tuple[str, int]:
    """In words, and as exit status."""
    low, high = result["interval"]
    if high < limit:
        return f"below {100 * limit:g} %", 0
    return (f"above {100 * limit:g} %", 1) if low > limit else ("too noisy to say", 3)


def show(result: dict[str, Any], limit: float) -> str:
    """One line for people."""
    low, high = (100 * value for value in result["interval"])
    medians = f"{result['median_without']:.4g} {result['unit']} without, {result['median_with']:.4g} with"
    cost = f"cost {100 * result['cost']:+.2f} % [{low:+.2f}, {high:+.2f}] over {result['pairs']} pairs"
    ratio = f"ratio of medians {result['ratio_of_medians']:.4f}"
    return f"{result['figure']}: {medians} ({ratio}); {cost}: {verdict(result, limit)[0]}"


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="What the witness costs, by interleaved launches.")
    parser.add_argument("--stack", required=True, help="an installed stack")
    parser.add_argument("--pairs", type=int, default=30, help="pairs of launches for each figure (at least 6)")
    parser.add_argument("--seed", type=int, default=1, help="of the order within the pairs")
    parser.add_argument("--limit", type=float, default=0.01, help="cost that is still accepted, as a fraction")
    parser.add_argument("--only", choices=["stream", "pingpong"], help="one figure only")
    parser.add_argument("--iterations", type=int, default=200_000, help="of IMB PingPong in a launch")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there, too")
    chosen = parser.parse_args(arguments)
    if chosen.pairs < 6:
        parser.error("--pairs must be at least 6: fewer have no 95 % interval")
    return chosen


def main() -> int:
    """Measure, print, and judge."""
    chosen = options()
    draw = random.Random(chosen.seed)  # noqa: S311 - an experimental design, not a secret
    try:
        manifest = manifests.load(chosen.stack)
        cases = [] if chosen.only == "pingpong" else [stream_case(manifest)]
        cases += [] if chosen.only == "stream" else [pingpong_case(manifest, chosen.iterations)]
        results = [costs(case, *measure(case, chosen.pairs, draw)) for case in cases]
    except (PlumbError, subprocess.TimeoutExpired) as error:
        print(f"plumb: {error}", file=sys.stderr)
        return 2
    for result in results:
        print(show(result, chosen.limit))
    if chosen.json:
        document = {"stack": chosen.stack, "seed": chosen.seed, "limit": chosen.limit, "results": results}
        chosen.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return max(verdict(result, chosen.limit)[1] for result in results)


if __name__ == "__main__":
    sys.exit(main())
