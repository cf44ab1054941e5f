"""Measure how often ``plumb tune --for`` claims a gain of settings of the process, on simulated launches.

    python tests/rates/tune.py [--full]

Ends with status 1 if a rate is worse than promised.

A search races simulated settings as the tuner does, and confirms finalists in fresh pairs, which the gate's code judges
(simulate.py has the models of noise). Without a gain all settings are as fast as the default; with one, the first saves
a tenth of the time.
"""

import math
import sys
from collections.abc import Sequence

import numpy as np
import simulate
from promises import Promises, command_line

from plumbline.extras.tune import process, race
from plumbline.extras.tune.confirm import RULE, Confirmed
from plumbline.extras.tune.curves import Point, Row
from plumbline.extras.tune.race import Score
from plumbline.extras.tune.stages import prove
from plumbline.judge import decide
from plumbline.judge.pairs import Column, Pairs
from plumbline.mpi.settings import Configuration, Knob
from plumbline.statistics.paired import CAP

#: searches with a false gain, and those that find a tenth, as is promised
WRONG, RIGHT = 0.01, 0.9
TIME = Row("time", 0)
#: as many settings as a program with every cost has
KNOBS = [Knob(name, values or ("a", "b"), "start", "both") for name, (_, values) in process.TABLE.items()]
BEST = KNOBS[0].values[0]


def slower(configuration: Configuration, gain: float) -> float:
    """The log time of a configuration: ``gain`` is what the best setting saves."""
    return math.log1p(-gain) if any(setting.value == BEST for setting in configuration.settings) else 0.0


def search(model: str, gain: float, draw: np.random.Generator) -> tuple[Confirmed | None, int]:
    """A search with noise of ``model``: the gain that it claims, and how many settings were confirmed."""

    def scores(_: str, tried: Sequence[Configuration], rounds: int) -> list[Score]:
        noise = simulate.launches(model, len(tried) + 1, draw)[:, :rounds, 0]
        default = [{TIME: math.exp(value)} for value in noise[0]]
        return [
            race.score(each, [{TIME: math.exp(value + slower(each, gain))} for value in row], default, {})
            for each, row in zip(tried, noise[1:], strict=True)
        ]

    def confirmed(_: int, each: Configuration) -> Confirmed:
        times = np.exp(simulate.launches(model, 1, draw)[0] + np.array([0.0, slower(each, gain)]))
        columns = [Column(times[:, side].tolist(), 0.0) for side in (0, 1)]
        (verdict,) = decide.decide([Pairs("time", *columns, "lower")], RULE)
        return Confirmed(each, {("core", Point("p", TIME)): verdict}, ("session",), of_program=True)

    _, finalists = race.rungs(KNOBS, scores)
    tried = prove(finalists, confirmed)
    return next((each for each in tried if each.gains), None), len(tried)


def rate(model: str, gain: float, searches: int) -> tuple[int, int]:
    """How many of so many searches claim a gain, and how many gates they took."""
    draw = np.random.default_rng(1)
    found = [search(model, gain, draw) for _ in range(searches)]
    return sum(result is not None for result, _ in found), sum(gates for _, gates in found)


def main() -> int:
    """Print the table."""
    searches = 1000 if command_line(__doc__, "1000 searches of each kind instead of 100").parse_args().full else 100
    promises = Promises()
    print(f"{len(race.alone(KNOBS))} settings, {RULE}, {searches} searches of each kind, {CAP} pairs at most")
    print("noise     best setting saves    GAIN  gates of a search")
    for model in simulate.MODELS:
        for gain in (0.0, 0.1):
            gains, gates = rate(model, gain, searches)
            print(f"{model:<8}  {gain:>18.0%}  {gains / searches:>6.1%}  {gates / searches:>17.1f}", flush=True)
            if gain and model != "noisy":  # a race of six launches misses a tenth in noise of 4 %
                promises.keep(f"a tenth is found, {model}: {gains} of {searches}", is_kept=gains >= RIGHT * searches)
            elif not gain:
                promises.rare(f"a false gain, {model}", gains, searches, WRONG)
    return promises.status()


if __name__ == "__main__":
    sys.exit(main())
