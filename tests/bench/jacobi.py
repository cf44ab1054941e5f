#!/usr/bin/env python3
"""The Jacobi solvers against what limits them: ``jacobi`` / its bandwidth model, ``jacobi_temporal`` / plain solver.

    python tests/bench/jacobi.py --stack mpich --pairs 12

Both numbers of a ratio come from one launch, in which the program measures them in turns: the model's bandwidth is
that of a copy of the same arrays by the same threads, the plain solver is the one of ``jacobi`` in vector mode. Teams:
one thread on each core, and all cores of a shared cache.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pairs
import start

from plumbline.base.errors import PlumbError
from plumbline.host import binder
from plumbline.stacks import manifest

MODEL_TARGET, TEMPORAL_TARGET = 0.90, 1.50


class Twins:
    """Two figures of one launch, handed out by two calls in any order."""

    def __init__(self, launch: Callable[[], tuple[float, float]]) -> None:
        self._launch = launch
        self._kept: dict[int, float] = {}

    def get(self, which: int) -> float:
        """Figure 0 or 1: of a new launch, or what the other call's launch left."""
        if which in self._kept:
            return self._kept.pop(which)
        figures = self._launch()
        self._kept = {1 - which: figures[1 - which]}
        return figures[which]


def rates(output: str) -> list[dict[str, Any]]:
    """The rate of each row, with its model's as ``limit``."""
    found = [item for item in json.loads(output)["measurements"] if item["metric"] == "rate"]
    if not found:
        raise PlumbError("no rate in the output", "jacobi", "compare it with this script")
    return found


def against_model(output: str) -> tuple[float, float]:
    """Rate and model of the only row."""
    (row,) = rates(output)
    return float(row["value"]), float(row["limit"])


def against_plain(output: str) -> tuple[float, float]:
    """Rate of the only scheme, the last row, and of the plain solver, the first."""
    rows = rates(output)
    return float(rows[-1]["value"]), float(rows[0]["value"])


def comparisons(chosen: argparse.Namespace) -> dict[str, tuple[pairs.Ratio, float]]:
    """Name to ratio and target."""
    stack = manifest.load(chosen.stack)

    def compare(
        name: str,
        placement: str,
        command: Sequence[str],
        read: Callable[[str], tuple[float, float]],
        target: float,
    ) -> tuple[pairs.Ratio, float]:
        program = start.kernel(stack, command[0], chosen.kernels)
        ranks = len(binder.resolve(placement).ranks)
        words: list[str | Path] = [program, *command[1:], "--json"]

        def launch() -> tuple[float, float]:
            return read(start.bound(stack, ["--placement", placement], words, ranks=ranks))

        twins = Twins(launch)
        ratio = pairs.compare(
            lambda: twins.get(0), lambda: twins.get(1), chosen.pairs, "higher", seed=chosen.seed, name=name
        )
        return ratio, target

    plain = ["jacobi", "--repetitions", "3"]
    temporal = ["jacobi_temporal", "--scheme", "columns", "--repetitions", "3"]
    plans: dict[str, tuple[str, Sequence[str], Callable[[str], tuple[float, float]], float]] = {
        "jacobi vector / model": ("node", [*plain, "--mode", "vector"], against_model, MODEL_TARGET),
        "jacobi pure / model": ("core", [*plain, "--mode", "pure"], against_model, MODEL_TARGET),
        "temporal, thread on each core / plain": ("core", temporal, against_plain, TEMPORAL_TARGET),
        "temporal, team on each cache / plain": ("l3", temporal, against_plain, TEMPORAL_TARGET),
    }
    return {name: compare(name, *what) for name, what in plans.items()}


if __name__ == "__main__":
    sys.exit(pairs.main("The Jacobi solvers against their models, by launches.", comparisons, "MLUP/s"))
