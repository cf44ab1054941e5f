"""Ours against theirs on a busy machine: launches in pairs, the ratio of each pair, an interval without assumptions.

Both launches of a pair follow each other at once, in an order drawn for each pair (seeded), so that drift and
neighbours hit both alike. The figure is the median of the pairs' ratios; its interval consists of the order statistics
that the sign test leaves: it holds the true median with at least 95 %, whatever the distribution.

Source: Hollander, Wolfe, Chicken, Nonparametric Statistical Methods, 3.4-3.6.
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from plumbline.base.errors import PlumbError
from plumbline.base.table import table

Better = Literal["higher", "lower"]
CONFIDENCE = 0.95
#: with fewer pairs the sign test has no 95 % interval
LEAST_PAIRS = 6
TIME_LIMIT_S = 300.0


@dataclass(frozen=True)
class Ratio:
    """Ours / theirs: the median over the pairs and its 95 % interval; ``ours`` and ``theirs`` are the medians."""

    median: float
    low: float
    high: float
    pairs: int
    ours: float
    theirs: float
    better: Better

    def verdict(self, target: float) -> str:
        """Against a ratio to reach: ``reached``, ``missed``, or what the interval leaves open."""
        if self.better == "higher":
            sure, impossible, median = self.low >= target, self.high < target, self.median >= target
        else:
            sure, impossible, median = self.high <= target, self.low > target, self.median <= target
        if sure:
            return "reached"
        if impossible:
            return "missed"
        return "open, median reaches it" if median else "open, median misses it"


#: what the options ask for: name to ratio and target
Comparisons = Callable[[argparse.Namespace], Mapping[str, tuple[Ratio, float]]]


def interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The sign test's interval for the median of ``values``. Raises ValueError if there are too few for one."""
    ordered, count = sorted(values), len(values)
    outside, below = 0.0, 0
    while 2 * (outside + math.comb(count, below) / 2**count) <= 1 - confidence:
        outside += math.comb(count, below) / 2**count
        below += 1
    if below == 0:
        raise ValueError(f"{count} pairs have no {100 * confidence:g} % interval")
    return ordered[below - 1], ordered[count - below]


def ratio_of(ours: Sequence[float], theirs: Sequence[float], better: Better) -> Ratio:
    """The ratio of figures that were measured in pairs: ``ours[i]`` beside ``theirs[i]``."""
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    low, high = interval(ratios)
    medians = statistics.median(ours), statistics.median(theirs)
    return Ratio(statistics.median(ratios), low, high, len(ratios), *medians, better)


def compare(
    run_ours: Callable[[], float],
    run_theirs: Callable[[], float],
    pairs: int,
    better: Better,
    *,
    seed: int = 1,
    name: str = "",
) -> Ratio:
    """Launch both ``pairs`` times, interleaved, after one launch of each that is thrown away.

    The callables make one launch each and return its figure (any unit, the same for both). ``name`` labels the
    progress on stderr.
    """
    draw = random.Random(seed)  # noqa: S311 - an experimental design, not a secret
    runs = (run_ours, run_theirs)
    figures: tuple[list[float], list[float]] = ([], [])
    for run in runs:
        run()
    began = time.monotonic()
    for number in range(pairs):
        for which in draw.sample((0, 1), 2):
            figures[which].append(runs[which]())
        left = (time.monotonic() - began) / (number + 1) * (pairs - number - 1)
        print(f"{name}: pair {number + 1}/{pairs}, {left:.0f} s left", file=sys.stderr)
    return ratio_of(*figures, better)


def launch(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Standard output of one launch with ``environment`` added to this process's. Raises PlumbError if it fails."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PlumbError(str(error), " ".join(words), "try it by hand") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-300:]
        raise PlumbError(f"exit status {done.returncode}: {said}", " ".join(words), "fix it first")
    return done.stdout


def figure(output: str, metric: str, **where: Any) -> float:
    """The value of ``metric`` in a kernel's --json output, at the row whose parameters contain ``where``."""
    found = [
        item["value"]
        for item in json.loads(output)["measurements"]
        if item["metric"] == metric and where.items() <= item["params"].items()
    ]
    if len(found) != 1:
        raise PlumbError(f"{len(found)} figures '{metric}' with {where} instead of one", "kernel output", "see --json")
    return float(found[0])


def show(results: Mapping[str, tuple[Ratio, float]], unit: str) -> str:
    """A table: per name, both medians in ``unit``, the ratio with its interval, and the verdict on the target."""
    header = ["comparison", f"ours {unit}", f"theirs {unit}", "pairs", "ours/theirs", "95 % interval", "target", ""]
    rows = [
        [
            name,
            f"{ratio.ours:.4g}",
            f"{ratio.theirs:.4g}",
            str(ratio.pairs),
            f"{ratio.median:.3f}",
            f"[{ratio.low:.3f}, {ratio.high:.3f}]",
            f"{'>=' if ratio.better == 'higher' else '<='} {target:.2f}",
            ratio.verdict(target),
        ]
        for name, (ratio, target) in results.items()
    ]
    return table(header, rows, right=header[1:5])


def options(parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse with ``--pairs``, ``--seed`` and ``--stack`` added, which all comparisons have."""
    parser.add_argument("--stack", default="mpich", help="an installed stack (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=20, help="pairs of launches of each comparison, at least 6")
    parser.add_argument("--seed", type=int, default=1, help="of the order within the pairs")
    chosen = parser.parse_args(arguments)
    if chosen.pairs < LEAST_PAIRS:
        parser.error(f"--pairs must be at least {LEAST_PAIRS}: fewer have no 95 % interval")
    return chosen


def main(description: str, comparisons: Comparisons, unit: str, **more: Mapping[str, Any]) -> int:
    """Read the options, ``more`` of them by name, run the comparisons and print their table; the exit status."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--kernels", metavar="DIR", help="folder of another build of the kernels")
    for name, settings in more.items():
        parser.add_argument(f"--{name}", **settings)
    chosen = options(parser)
    return report(lambda: comparisons(chosen), unit)


def report(work: Callable[[], Mapping[str, tuple[Ratio, float]]], unit: str) -> int:
    """Run the comparisons and print their table; the exit status: 0 all reached or open, 1 one missed, 2 an error."""
    try:
        results = work()
    except PlumbError as error:
        print(f"plumb: {error}", file=sys.stderr)
        return 2
    print(show(results, unit))
    return int(any(ratio.verdict(target) == "missed" for ratio, target in results.values()))
