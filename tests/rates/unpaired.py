"""Measure how often ``plumb compare`` claims a difference where there is none, and finds one where there is.

    python tests/rates/unpaired.py [--full]

A comparison has 24 figures of two sides. Log times: launches differ by ``launch`` (standard deviation), sessions by
``session``; every tenth launch has a tail of Exp(10 %). A slower side is slower by ``effect`` in every figure.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plumbline.statistics import unpaired
from plumbline.statistics.multiplicity import holm

FIGURES = 24
LAUNCHES = 3
#: (launch, session)
MODELS = ((0.005, 0.005), (0.02, 0.01), (0.02, 0.03), (0.05, 0.05))
SESSIONS = ((1, 1), (1, 5), (2, 2), (3, 3), (5, 5), (10, 10))


@dataclass(frozen=True)
class Rate:
    """Of so many comparisons, those with a claim; and the share of figures in which the right side was claimed."""

    comparisons: int
    claiming: int
    found: float


def side(count: int, model: tuple[float, float], effect: float, draw: np.random.Generator) -> Sequence[Sequence[float]]:
    """Times by session and launch."""
    launch, session = model
    logs = draw.normal(0, session, (count, 1)) + draw.normal(0, launch, (count, LAUNCHES)) + math.log1p(effect)
    logs += np.where(draw.random(logs.shape) < 0.1, draw.exponential(0.1, logs.shape), 0.0)
    values: Sequence[Sequence[float]] = np.exp(logs).tolist()
    return values


def measure(sessions: tuple[int, int], model: tuple[float, float], effect: float, comparisons: int, seed: int) -> Rate:
    """Claims of ``comparisons`` comparisons."""
    draw = np.random.default_rng(seed)
    claiming, found = 0, 0
    for _ in range(comparisons):
        differences = [
            unpaired.compare(side(sessions[0], model, 0.0, draw), side(sessions[1], model, effect, draw))
            for _ in range(FIGURES)
        ]
        kept = holm(np.array([one.p for one in differences]), FIGURES, unpaired.ERROR)
        claiming += bool(kept.any())
        found += sum(one.ratio > 1 for one, is_kept in zip(differences, kept, strict=True) if is_kept)
    return Rate(comparisons, claiming, found / comparisons / FIGURES)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--full", action="store_true", help="2,000 comparisons a line instead of 200")
    count = 2000 if parser.parse_args().full else 200
    print("| launches, sessions differ by | sessions | comparisons with a false claim | found: 5 % | 20 % | 100 % |")
    print("|---|---|---|---|---|---|")
    for model in MODELS:
        for sessions in SESSIONS:
            false = measure(sessions, model, 0.0, count, 1)
            found = [measure(sessions, model, effect, count // 10, 2).found for effect in (0.05, 0.2, 1.0)]
            noise = f"{100 * model[0]:g} %, {100 * model[1]:g} %"
            shares = " | ".join(f"{100 * share:.0f} %" for share in found)
            share = 100 * false.claiming / count
            print(f"| {noise} | {sessions[0]} and {sessions[1]} | {share:.1f} % | {shares} |", flush=True)


if __name__ == "__main__":
    main()
