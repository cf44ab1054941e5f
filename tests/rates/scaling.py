"""Error rates of ``plumb scale``: curves with planted laws, noise of launches and a clock that drifts.

``python tests/rates/scaling.py [--full]`` prints a row for each law, noise and number of rounds, and fails if intervals
of efficiency hold the planted one in less than 92 % of cases, those of parameters of the right law in less than 95 %,
or a saturated curve gets a law.
"""

from __future__ import annotations

import sys

import numpy as np

from plumbline.base.table import markdown
from plumbline.extras.scale.curve import Curve

COUNTS = (1, 2, 4, 8, 16, 32, 64)
N = np.array(COUNTS, float)
#: times of each law; those of Amdahl and Gunther with their parameters
LAWS = {
    "ideal": (1 / N, {"a": 0.0}),
    "Amdahl 1 %": (0.01 + 0.99 / N, {"a": 0.01}),
    "Amdahl 5 %": (0.05 + 0.95 / N, {"a": 0.05}),
    "Gunther 2 %, 0.05 %": ((1 + 0.02 * (N - 1) + 0.0005 * N * (N - 1)) / N, {"a": 0.02, "b": 0.0005}),
    "saturated at 8": (np.maximum(1 / N, 1 / 8), {}),
    "jump of 50 % at 64": (np.where(N > 32, 1.5, 1) / N, {}),
}
HEADER = ("law", "noise", "rounds", "efficiency inside", "right law", "other law", "parameters inside")
#: the least share of intervals of efficiency, and of parameters, that hold the truth
INSIDE, COVERED = 0.92, 0.95


def planted(name: str, noise: float, rounds: int, seed: int) -> Curve:
    """A curve of a law, whose clock drifts by 1 % from round to round."""
    random = np.random.default_rng(seed)
    drift = np.exp(np.cumsum(random.normal(0, 0.01, rounds)))
    return Curve(COUNTS, LAWS[name][0][:, None] * drift * np.exp(noise * random.standard_normal((len(N), rounds))))


def rates(name: str, noise: float, rounds: int, curves: int) -> dict[str, float]:
    """Shares of so many curves, and of their points."""
    times, parameters = LAWS[name]
    inside = right = wrong = covered = 0
    for seed in range(curves):
        known = planted(name, noise, rounds, seed)
        for place in range(1, len(COUNTS)):
            each, truth = known.efficiency(place), times[0] / (times[place] * N[place])
            inside += each.low <= truth <= each.high
        law, _ = known.law()
        if law is None:
            continue
        is_right = law.parameters.keys() == parameters.keys()
        right, wrong = right + is_right, wrong + (not is_right)
        held = (law.parameters[key].low <= value <= law.parameters[key].high for key, value in parameters.items())
        covered += is_right and all(held)
    return {
        "inside": inside / curves / (len(COUNTS) - 1),
        "right": right / curves,
        "wrong": wrong / curves,
        "covered": covered / max(right, 1),
    }


def main() -> int:
    is_full = "--full" in sys.argv
    curves, slack = (400, 0.0) if is_full else (40, 0.1)  # few curves say little
    rows, worse = [], []
    for name, (_, parameters) in LAWS.items():
        for noise in (0.01, 0.03, 0.05):
            for rounds in (5, 10):
                shares = rates(name, noise, rounds, curves)
                cells = [f"{shares[key]:.0%}" for key in ("inside", "right", "wrong", "covered")]
                rows.append((name, f"{noise:.0%}", str(rounds), cells[0], cells[1] if parameters else "–", cells[2],
                             cells[3] if parameters else "–"))  # fmt: skip
                if shares["inside"] < INSIDE - slack or (
                    parameters and shares["right"] and shares["covered"] < COVERED - slack
                ):
                    worse.append(f"{name}, {noise:.0%}, {rounds} rounds: intervals that miss")
                if name.startswith("saturated") and shares["wrong"] > 0.01:
                    worse.append(f"{name}, {noise:.0%}, {rounds} rounds: a law that is none")
    print(markdown(HEADER, rows, HEADER[1:]))
    print(*worse, sep="\n", file=sys.stderr)
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())
