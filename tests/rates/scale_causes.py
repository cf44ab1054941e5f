"""How often ``plumb scale`` names the right reason for a bend, of causes that are planted in real programs.

    python tests/rates/scale_causes.py [--runs 20] [--seconds 0.3]

A run is a curve of one and of two threads, over four rounds. Causes take turns, so that all meet the same machine.
Finished runs stay in ``build/rates/scale-causes.jsonl``; a new start continues with them. Ends with status 1 if less
than 95 of 100 reasons of a cause are right or said to be undecided, or more than 1 is wrong.
"""

import argparse
import itertools
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from promises import Kept

from plumbline.base import paths
from plumbline.extras.scale import measured, shown
from plumbline.extras.scale.measured import SCALING, Scaling
from plumbline.measure.session import circumstances
from plumbline.parsers.application import FigureRule

#: cause -> what its line may name; "" stands for no line
RIGHT = {
    "none": ("",),
    "serial": ("serial part",),
    "load": ("load",),
    "lock": ("waits",),
    "faults": ("kernel",),
    "shared core": ("no value",),  # the proof refuses it
    "bandwidth": ("memory, caches, clock, or spinning", "memory bandwidth", "memory or caches", ""),
    "serial+faults": ("serial part, and kernel",),
}
UNDECIDED = ("cause not decided", "load or waits")


def reason(folder: Path, program: Path, cause: str, seconds: float) -> tuple[str, str]:
    """The reason that is named for the step to two threads, or why the point has no value, and the line with it."""
    scaling = Scaling(
        name=cause, kind="threads", counts=[1, 2], commands=[[str(program), cause, str(seconds)]] * 2,
        placement="compact", weak=False, rule=FigureRule(wall=True), minutes=10.0, rounds=4, seed=1,
        circumstances=circumstances([], measured.HERE),
    )  # fmt: skip
    SCALING.begin(folder, scaling)
    ended, scaling, launches = measured.measure(folder, scaling, lambda _: None)
    result = shown.result(scaling, launches, ended, 0.7)
    if fault := result.rows[-1].fault:
        return "no value", fault
    line = next((line for line in result.lines if line.startswith("from 1 to 2 threads")), "")
    return line.split(": ")[2] if line else "", line or "; ".join(result.lines)


def main() -> int:
    """Measure what is missing, and print how often each cause was named right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--causes", help="comma-separated (default: all)")
    args = parser.parse_args()
    kept = Kept(paths.build() / "rates/scale-causes.jsonl")
    done = Counter(row["cause"] for row in kept.lines)
    chosen = args.causes.split(",") if args.causes else list(RIGHT)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        source = Path(__file__).with_suffix(".c")
        subprocess.run(["gcc", "-O1", "-fopenmp", source, "-o", folder / "p"], check=True)
        for number, cause in itertools.product(range(args.runs), chosen):
            if number < done[cause]:
                continue
            named, line = reason(folder / f"{number}-{cause}", folder / "p", cause, args.seconds)
            kept.add({"cause": cause, "named": named, "line": line})
            print(f"{number + 1:3} {cause:14} {line}", flush=True)
    return report(kept.lines)


def report(rows: list[dict[str, str]]) -> int:
    """Print a line a cause; 1 if one is not as promised."""
    bad = False
    print(f"\n{'cause':14} {'runs':>5} {'right':>6} {'no line':>8} {'undecided':>9} {'wrong':>6}  named")
    for cause, right in RIGHT.items():
        names = Counter(row["named"] for row in rows if row["cause"] == cause)
        runs, good, none = sum(names.values()), sum(names[name] for name in right), names[""]
        undecided = sum(number for name, number in names.items() if name.startswith(UNDECIDED))
        wrong = runs - undecided - sum(names[name] for name in {*right, ""})
        bad |= good + undecided < 0.95 * runs or wrong > 0.01 * runs
        print(f"{cause:14} {runs:5} {good:6} {none:8} {undecided:9} {wrong:6}  {dict(names)}")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
