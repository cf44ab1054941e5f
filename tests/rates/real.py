"""Measure the gate's errors on this machine: STREAM triad against itself, and against itself with 5 % more work.

    python tests/rates/real.py --minutes 45 [--gates 200] [--slowed 40] [--folder build/rates] [--json FILE]

STREAM is compiled twice: with N elements an array, and with 1.05 N. The figure is the shortest time of its triad in one
launch, in seconds, lower is better: over 5 % more elements it takes 5 % longer, while the rate stays the same. A gate
is one sequential decision over fresh pairs of launches, in random order, disturbed pairs measured again by the gate's
rule; A/A gates have the N program on both sides.
Each finished gate is a line of FOLDER/gates.jsonl; started again, it goes on where it stopped, unless the programs or
the machine are others. The result is FOLDER/result.json.
"""

import argparse
import hashlib
import json
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.base.verdicts import EXIT
from plumbline.host import machine, provenance
from plumbline.judge import decide, disturbed
from plumbline.judge.pairs import Column, Pairs
from plumbline.launch.witness import disturbance, processes
from plumbline.stacks import stream
from plumbline.statistics.paired import CAP, LOOKS, PairedRule, noise

#: each array is so many times the last-level caches, which then no longer help either program
CACHES = 2
#: elements are a multiple of this, so that the arrays of N and of 1.05 N elements lie alike relative to one another:
#: where one set of arrays begins at the same offset in a page and the other does not, 5 % more elements cost 10 %
STEP = 20 * 4096
#: executions of each kernel in a launch; STREAM leaves out the first, and the shortest of the others is the figure
TIMES = 8
SLOWER = 1.05
_TRIAD = re.compile(r"^Triad: +\S+ +\S+ +(\S+) +\S+$", re.MULTILINE)
#: program -> its triad's seconds, and whether the launch was disturbed, as the element of a record says it
Measure = Callable[[str], dict[str, Any]]


def build(folder: Path, elements: int) -> dict[str, Path]:
    """The two programs, ``plain`` and ``slowed``, from the source of the installed stacks."""
    sources = sorted(paths.stacks().glob("*/share/stream/stream.c"))
    if not sources:
        raise PlumbError("no source of STREAM", str(paths.stacks()), "make setup")
    compiler = stream.Compiler.find()
    programs = {}
    for name, count in (("plain", elements), ("slowed", round(elements * SLOWER))):
        programs[name] = folder / f"stream-{name}"
        command = [compiler.path, *options(count), "-o", str(programs[name]), str(sources[0])]
        subprocess.run(command, check=True)
    return programs


def round_up(elements: int) -> int:
    """The next multiple of :data:`STEP`."""
    return -(-elements // STEP) * STEP


def options(elements: int) -> list[str]:
    """The stacks' options, but with fewer executions of each kernel: 200 gates take thousands of launches."""
    return [*(item for item in stream.flags(elements) if not item.startswith("-DNTIMES")), f"-DNTIMES={TIMES}"]


def triad(program: Path, cpu: int) -> dict[str, Any]:
    """One launch with one thread on ``cpu``: its shortest triad, and whether something disturbed it."""
    with tempfile.TemporaryDirectory() as folder:
        bind = ["taskset", "-c", str(cpu), str(paths.binder()), "--placement", "compact", "--threads", "1"]
        before = disturbance.snapshot([cpu])
        command = [*bind, "--witness", folder, "--", str(program)]
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
        seen = disturbance.assess(before, disturbance.snapshot([cpu]), processes.read(folder)[0], machine.load())
    found = _TRIAD.search(answer.stdout)
    if found is None or "Solution Validates" not in answer.stdout:
        raise PlumbError("STREAM printed no valid triad", str(program), "run it by hand")
    return {"value": float(found[1]), "verified": True, "disturbed": seen["disturbed"]}


def gate(candidate: str, measure: Measure, draw: random.Random, until: float) -> dict[str, Any] | None:
    """One gate of ``candidate`` against ``plain``; None if the time ended before its decision."""
    columns: tuple[list[float], list[float]] = ([], [])
    aside = flagged = 0
    while True:
        first = draw.randrange(2)
        pair = {side: measure(("plain", candidate)[side]) for side in (first, 1 - first)}
        flagged += pair[0]["disturbed"] + pair[1]["disturbed"]
        verified = all(launch["verified"] for launch in pair.values())
        hit = any(launch["disturbed"] for launch in pair.values())
        repeated = disturbed.is_due(verified, hit, len(columns[0]), aside)
        aside += repeated
        if not repeated:
            for side in (0, 1):
                columns[side].append(pair[side]["value"])
        if not repeated and len(columns[0]) in LOOKS:
            series = Pairs("triad", *(Column(values, 1e-6) for values in columns), "lower")
            found = decide.decide([series], PairedRule())[0]
            if found.state != "INCONCLUSIVE" or len(columns[0]) == CAP:
                logs = decide.standing([series], PairedRule())[0].logs[None]
                told = {"pair_noise": float(noise(logs)[0]) / 1e9, "again": aside, "disturbed": flagged}
                return {"candidate": candidate, **found.to_dict(), **told}
        if time.monotonic() >= until:
            return None


def summary(lines: list[dict[str, Any]], setting: dict[str, Any]) -> dict[str, Any]:
    """Counts and means of both kinds of gates; the bound is the upper 95 % one of the probability of a FAIL."""
    result: dict[str, Any] = {"setting": setting}
    for kind in ("plain", "slowed"):
        mine = [line for line in lines if line["candidate"] == kind]
        counts = {state: sum(line["verdict"] == state for line in mine) for state in EXIT}
        failed = counts["FAIL"]
        bound = float(stats.beta.ppf(0.95, failed + 1, len(mine) - failed)) if len(mine) > failed else 1.0
        result["A/A" if kind == "plain" else "5 % slower"] = {
            "gates": len(mine),
            **counts,
            "FAIL at most": round(bound, 4),
            "mean pairs": round(float(np.mean([line["pairs"] for line in mine])), 1) if mine else None,
            "median ratio": round(float(np.median([line["ratio"] for line in mine])), 4) if mine else None,
            "pairs measured again": sum(line["again"] for line in mine),
            "disturbed launches": sum(line["disturbed"] for line in mine),
            "median pair noise": round(float(np.median([line["pair_noise"] for line in mine])), 4) if mine else None,
        }
    return result


def describe(elements: int, cpu: int) -> dict[str, Any]:
    """What the result depends on; gates of another setting are not added to these."""
    host = {"machine": platform.machine(), "last_level_cache_bytes": stream.last_level_cache_bytes()}
    host |= {name: provenance.collect()[name] for name in ("cpu", "virtual")}
    arrays = {"elements": elements, "array_bytes": 8 * elements, "slowed_elements": round(elements * SLOWER)}
    how = {"executions": TIMES, "threads": 1, "on_cpu": cpu, "options": options(elements), "looks": list(LOOKS)}
    return {**host, **arrays, **how}


def read(file: Path, key: str) -> list[dict[str, Any]]:
    """The gates measured so far; an unfinished last line is left out."""
    if not file.exists():
        return []
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    found = [json.loads(line) for line in lines]
    others = [line for line in found if line["setting"] != key]
    if others:
        raise PlumbError(f"{len(others)} gates of another setting", str(file), "move the file away")
    return found


def next_kind(lines: list[dict[str, Any]], wanted: dict[str, int]) -> str | None:
    """The kind of gate that is farthest from what is wanted, None when there are enough."""
    left = {kind: 1 - sum(line["candidate"] == kind for line in lines) / count for kind, count in wanted.items()}
    kind = max(left, key=lambda name: left[name])
    return kind if left[kind] > 0 else None


def run(folder: Path, wanted: dict[str, int], minutes: float, elements: int | None, cpu: int) -> dict[str, Any]:
    """Measure until there are as many gates as ``wanted`` or the time is up, and return the result."""
    until = time.monotonic() + 60 * minutes
    folder.mkdir(parents=True, exist_ok=True)
    count = round_up(elements or CACHES * (stream.last_level_cache_bytes() or 32 << 20) // 8)
    setting = describe(count, cpu)
    key = hashlib.sha256(json.dumps(setting, sort_keys=True).encode()).hexdigest()[:12]
    log = folder / "gates.jsonl"
    lines = read(log, key)
    files.replace(log, "".join(json.dumps(line) + "\n" for line in lines))  # without a torn last line
    programs = build(folder, count)
    began, launches = time.monotonic(), 0

    def measure(name: str) -> dict[str, Any]:
        nonlocal launches
        launches += 1
        return triad(programs[name], cpu)

    measure("plain")  # brings the programs into the page cache
    while (kind := next_kind(lines, wanted)) is not None:
        seed = len(lines)
        found = gate(kind, measure, random.Random(f"real/{key}/{seed}"), until)  # noqa: S311 - a design, no secret
        if found is None:
            break
        lines.append({"setting": key, "seed": seed, **found})
        with log.open("a", encoding="utf-8") as stream_:
            stream_.write(json.dumps(lines[-1]) + "\n")
        took = (time.monotonic() - began) / launches
        print(f"gate {len(lines):>4} of {sum(wanted.values())}  {told(found)}  {took:.2f} s a launch", flush=True)
    return summary(lines, setting)


def told(found: dict[str, Any]) -> str:
    """A gate in a line."""
    return (
        f"{found['candidate']:<6} {found['verdict']:<12} {found['pairs']:>2} pairs and {found['again']:>2} again  "
        f"ratio {found['ratio']:.4f}  pair noise {100 * found['pair_noise']:4.1f} %"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=45, help="no pair begins later (default 45)")
    parser.add_argument("--gates", type=int, default=200, help="A/A gates wanted (default 200)")
    parser.add_argument("--slowed", type=int, default=40, help="gates of the slowed program wanted (default 40)")
    parser.add_argument(
        "--elements", type=int, help=f"of an array, made a multiple of {STEP} (default: twice the last-level caches)"
    )
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="where the thread runs")
    parser.add_argument("--folder", type=Path, default=paths.build() / "rates")
    parser.add_argument("--json", type=Path, help="copy the result to this file")
    args = parser.parse_args()
    try:
        if min(args.gates, args.slowed) < 1:
            raise PlumbError("nothing to measure", "--gates, --slowed", "each is at least 1")
        wanted = {"plain": args.gates, "slowed": args.slowed}
        result = run(args.folder, wanted, args.minutes, args.elements, args.cpu)
    except (PlumbError, subprocess.CalledProcessError) as error:
        sys.exit(f"plumb: {error}")
    text = json.dumps(result, indent=1) + "\n"
    for target in (args.folder / "result.json", *([args.json] if args.json else [])):
        files.replace(target, text)
    print(text, end="")


if __name__ == "__main__":
    main()
