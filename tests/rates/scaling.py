"""Error rates of ``plumb scale``: curves with planted laws, noise of launches and a clock that drifts.

``python tests/rates/scaling.py [--full]`` prints a row for each law, noise and number of rounds, and fails if intervals
of efficiency hold the planted one in less than 92 % of cases, or if more than 1 % of curves get another law, or
parameters whose intervals do not hold the planted ones. Then gates of two curves: it fails if more than 1 % of gates of
equal ones have a FAIL, or more than 1 % of those of a curve that is slower at the last point alone have one elsewhere.
"""

import sys

import numpy as np

from plumbline.base.table import markdown
from plumbline.extras.scale.curve import ROUNDS, Curve
from plumbline.judge import decide
from plumbline.judge.pairs import Column, Pairs, efficiency
from plumbline.statistics.paired import CAP, PairedRule

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
HEADER = ("law", "noise", "rounds", "efficiency inside", "right", "not decided", "wrong")
STOPPED = ("law", "noise", "points", "efficiency inside", "rounds")
GATES = ("noise", "slower at 16", "FAIL elsewhere", "efficiency at 16 FAIL", "all others PASS")
#: the least share of intervals of efficiency that hold the truth, and the largest of wrong laws or parameters
INSIDE, WRONG = 0.92, 0.01


def planted(name: str, noise: float, rounds: int, seed: int) -> Curve:
    """A curve of a law, whose clock drifts by 1 % from round to round."""
    random = np.random.default_rng(seed)
    drift = np.exp(np.cumsum(random.normal(0, 0.01, rounds)))
    return Curve(COUNTS, LAWS[name][0][:, None] * drift * np.exp(noise * random.standard_normal((len(N), rounds))))


def rates(name: str, noise: float, rounds: int, curves: int) -> dict[str, float]:
    """Shares of so many curves, and of their points."""
    times, parameters = LAWS[name]
    inside = right = wrong = 0
    for seed in range(curves):
        known = planted(name, noise, rounds, seed)
        for place in range(1, len(COUNTS)):
            each, truth = known.efficiency(place), times[0] / (times[place] * N[place])
            inside += each.low <= truth <= each.high
        law, _ = known.law()
        named = law.parameters if law else {}
        is_right = named.keys() == parameters.keys() and all(
            named[key].low <= value <= named[key].high for key, value in parameters.items()
        )
        right, wrong = right + bool(law and is_right), wrong + bool(law and not is_right)
    shares = {"inside": inside / curves / (len(COUNTS) - 1), "right": right / curves}
    return {**shares, "open": (curves - right - wrong) / curves, "wrong": wrong / curves}


def stopped(name: str, noise: float, points: int, curves: int) -> tuple[float, float]:
    """The share of intervals that hold the truth where measuring ends once all are narrow, and the mean of rounds."""
    inside, rounds, times = 0, 0, LAWS[name][0]
    for seed in range(curves):
        values = planted(name, noise, 30, seed).values[:points]
        every = (Curve(COUNTS[:points], values[:, :number]) for number in range(ROUNDS, 31))
        known = next((each for each in every if each.is_enough), None) or Curve(COUNTS[:points], values)
        rounds += known.values.shape[1]
        for place in range(1, points):
            each = known.efficiency(place)
            inside += each.low <= times[0] / (times[place] * N[place]) <= each.high
    return inside / curves / (points - 1), rounds / curves


def gates(noise: float, slower: float, number: int) -> dict[str, float]:
    """Shares of so many gates of curves of the counts 1 to 16, whose candidate is ``slower`` at 16 alone."""
    counts, wrong, seen, passes = COUNTS[:5], 0, 0, 0
    for seed in range(number):
        random = np.random.default_rng([9, seed])
        series, base = [], None
        for count in counts:
            values = np.exp(noise * random.standard_normal((2, CAP))) / count
            values[1] *= 1 + slower * (count == counts[-1])
            times = Pairs(f"{count}: time", Column(values[0].tolist()), Column(values[1].tolist()), "lower")
            series += [times, *([efficiency(f"{count}: efficiency", times, base, count)] if base else [])]
            base = base or times
        states = [verdict.state for verdict in decide.decide(series, PairedRule())]
        last = 2 if slower else 0
        wrong += "FAIL" in states[: len(states) - last]
        seen += slower > 0 and states[-1] == "FAIL"
        passes += all(state == "PASS" for state in states[: len(states) - last])
    return {"wrong": wrong / number, "seen": seen / number, "passes": passes / number}


def main() -> int:
    is_full = "--full" in sys.argv
    curves, slack = (2000, 0.0) if is_full else (40, 0.1)  # few curves say little
    rows, worse = [], []
    for name in LAWS:
        for noise in (0.01, 0.03, 0.05):
            for rounds in (5, 10):
                shares = rates(name, noise, rounds, curves)
                rows.append((name, f"{noise:.0%}", str(rounds), *(f"{share:.1%}" for share in shares.values())))
                if shares["inside"] < INSIDE - slack:
                    worse.append(f"{name}, {noise:.0%}, {rounds} rounds: intervals that miss")
                if shares["wrong"] > WRONG + slack:
                    worse.append(f"{name}, {noise:.0%}, {rounds} rounds: a law or parameters that are wrong")
    print(markdown(HEADER, rows, HEADER[1:]))
    rows = []
    for name in ("ideal", "Amdahl 5 %"):
        for noise in (0.005, 0.01, 0.02, 0.03):
            for points in (2, 4):
                share, rounds = stopped(name, noise, points, 400 if is_full else curves)
                rows.append((name, f"{noise:.1%}", str(points), f"{share:.0%}", f"{rounds:.1f}"))
                if share < 0.9 - slack:
                    worse.append(f"{name}, {noise:.1%}, {points} points: intervals that miss where it ends by itself")
    print("\n" + markdown(STOPPED, rows, STOPPED))
    rows = []
    for noise in (0.005, 0.01, 0.02):
        for slower in (0.0, 0.1):
            shares = gates(noise, slower, 2000 if is_full else 50)
            rows.append((f"{noise:.1%}", f"{slower:.0%}", *(f"{shares[key]:.1%}" for key in shares)))
            if shares["wrong"] > 0.01:
                worse.append(f"gates at {noise:.1%}: a FAIL without a reason in {shares['wrong']:.1%}")
    print("\n" + markdown(GATES, rows, GATES))
    print(*worse, sep="\n", file=sys.stderr)
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())
