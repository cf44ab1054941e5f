"""How often ``plumb history`` alarms for nothing, and how soon it finds a change.

``python tests/rates/changes.py`` prints the table of docs/rates.md, and ends with status 1 if a rate is worse than
promised.

Series of simulated sessions with known truth. A point is the median of the launches of one session, as records give it.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from promises import Promises

from plumbline.statistics.changes import Settings, follow

Array = NDArray[np.float64]
Generator = np.random.Generator

#: the sizes of the steps that are injected
STEPS = (0.03, 0.05, 0.07, 0.10)
#: of five launches: false alarms at most, steps of 5 % and of 10 % that are found at least, mean delay of the latter at
#: most
PROMISED = {
    "quiet": (0.02, 0.85, 0.97, 5.0),
    "bimodal": (0.03, 0.80, 0.95, 6.0),
    "drift": (0.04, 0.45, 0.93, 9.0),
    "noisy": (0.03, 0.40, 0.93, 8.0),
    "spikes": (0.02, 0.75, 0.90, 6.0),
}
#: slow waves of five launches: false alarms at most; with the usual correction of the autocorrelation's bias these were
#: 31 and 53 %
WAVES = {"sine": 0.15, "walk": 0.45}
#: values that are printed with two decimals, and the noise of a point; a change of half a percent may cross a step
PRINTED = [(value, noise) for value in (0.105, 0.115, 0.145, 0.195, 0.3) for noise in (0.0005, 0.002, 0.005, 0.01)]
SMALL = 0.005
#: points of a series, and the position of an injected step
POINTS, STEP_AT = 100, 50


def quiet(random: Generator, points: int, launches: int) -> Array:
    """Launches 1 %, 5 % of them with a tail of 10 %; sessions 0.3 %."""
    shape = (points, launches)
    tail = (random.random(shape) < 0.05) * random.exponential(0.10, shape)
    return _points(random.normal(0, 0.01, shape) + tail, random.normal(0, 0.003, points))


def bimodal(random: Generator, points: int, launches: int) -> Array:
    """A quarter of the launches 6 % slower; launches 0.5 %, sessions 0.3 %."""
    shape = (points, launches)
    modes = (random.random(shape) < 0.25) * 0.06
    return _points(random.normal(0, 0.005, shape) + modes, random.normal(0, 0.003, points))


def drift(random: Generator, points: int, launches: int) -> Array:
    """Sessions 2 % with an autocorrelation of 0.6; launches 0.8 %."""
    return _points(random.normal(0, 0.008, (points, launches)), _wave(random, points, 0.6, 0.02))


def noisy(random: Generator, points: int, launches: int) -> Array:
    """Launches 4 % with an autocorrelation of 0.5, 10 % of them with a tail of 15 %; sessions 1.5 %."""
    shape = (points, launches)
    runs = _wave(random, points * launches, 0.5, 0.04).reshape(shape)
    tail = (random.random(shape) < 0.10) * random.exponential(0.15, shape)
    return _points(runs + tail, random.normal(0, 0.015, points))


def spikes(random: Generator, points: int, launches: int) -> Array:
    """As quiet, and 3 % of the sessions slower by 10 % to 100 %."""
    high = (random.random(points) < 0.03) * random.uniform(0.10, 1.0, points)
    return quiet(random, points, launches) + np.log1p(high)


def slow(random: Generator, points: int, launches: int) -> Array:
    """The shocks of drift (1.6 %) with an autocorrelation of 0.8; launches 0.8 %."""
    return _points(random.normal(0, 0.008, (points, launches)), _wave(random, points, 0.8, 0.016 / 0.6))


def slower(random: Generator, points: int, launches: int) -> Array:
    """The shocks of drift with an autocorrelation of 0.9; launches 0.8 %."""
    return _points(random.normal(0, 0.008, (points, launches)), _wave(random, points, 0.9, 0.016 / (1 - 0.9**2) ** 0.5))


def walk(random: Generator, points: int, launches: int) -> Array:
    """A random walk of 1 % from session to session; launches 0.8 %."""
    return _points(random.normal(0, 0.008, (points, launches)), np.cumsum(random.normal(0, 0.01, points)))


def sine(random: Generator, points: int, launches: int) -> Array:
    """A sine of 4 % with a period of 50 sessions, beginning anywhere; launches 0.8 %."""
    angle = 2 * np.pi * (np.arange(points) / 50 + random.random())
    return _points(random.normal(0, 0.008, (points, launches)), 0.04 * np.sin(angle))


MODELS: dict[str, Callable[[Generator, int, int], Array]] = {
    **{model.__name__: model for model in (quiet, bimodal, drift, noisy, spikes)},
    **{"AR 0.8": slow, "AR 0.9": slower, "walk": walk, "sine": sine},
}


def _points(launches: Array, sessions: Array) -> Array:
    """Logarithms of the sessions' medians."""
    return np.asarray(np.median(launches, axis=1) + sessions, dtype=np.float64)


def _wave(random: Generator, points: int, memory: float, deviation: float) -> Array:
    """A stationary autoregressive series of order one."""
    shocks = random.normal(0, deviation * np.sqrt(1 - memory**2), points)
    wave = np.empty(points)
    level = random.normal(0, deviation)
    for position in range(points):
        level = memory * level + shocks[position]
        wave[position] = level
    return wave


@dataclass(frozen=True)
class Rates:
    """Fractions of series; ``delay`` is the mean number of points from the first changed one to the alarm."""

    series: int
    found: float
    delay: float
    #: alarms at a change that is none (series without a step: any alarm), by series
    false: float


def measure(model: str, step: float, series: int, launches: int, seed: int, settings: Settings | None = None) -> Rates:
    """Follow ``series`` series of a model with a slowdown of ``step`` (0: none) from :data:`STEP_AT` on.

    Found is a slowdown alarm raised from the step on, at a position within 5 points of it. Every other alarm is false.
    """
    random = np.random.default_rng([seed, list(MODELS).index(model), round(step * 1000)])
    found, delays, wrong = 0, 0, 0
    for _ in range(series):
        logs = MODELS[model](random, POINTS, launches)
        if step:
            logs[STEP_AT:] += np.log1p(step)
        hit = False
        false = False
        for change in follow(np.exp(logs), settings).changes:
            right = step > 0 and change.ratio > 1 and change.seen_at >= STEP_AT and abs(change.index - STEP_AT) <= 5
            if right and not hit:
                hit = True
                delays += change.seen_at - STEP_AT
            else:
                false = True
        found += hit
        wrong += false
    return Rates(series, found / series, delays / found if found else float("nan"), wrong / series)


def visible(model: str, series: int, launches: int, seed: int, settings: Settings | None = None) -> tuple[float, float]:
    """The median of ``smallest_visible`` after :data:`STEP_AT` points, and how often a step of that size is then found.

    Found within 2 x ``persist`` points, as it promises.
    """
    settings = settings or Settings()
    random = np.random.default_rng([seed, 99, list(MODELS).index(model)])
    sizes, found = [], 0
    for _ in range(series):
        logs = MODELS[model](random, STEP_AT + 2 * settings.persist, launches)
        course = follow(np.exp(logs[:STEP_AT]), settings)
        size = course.smallest_visible
        if size is None:
            continue
        sizes.append(size)
        logs[STEP_AT:] += np.log1p(size)
        found += any(
            change.ratio > 1 and change.seen_at >= STEP_AT for change in follow(np.exp(logs), settings).changes
        )
    return float(np.median(sizes)), found / len(sizes)


def printed(value: float, noise: float, change: float, series: int, seed: int) -> float:
    """The fraction of ``series`` with an alarm that are printed with two decimals, and slower by ``change``."""
    random = np.random.default_rng([seed, 98, round(value * 1e4), round(noise * 1e4)])
    alarms = 0
    for _ in range(series):
        logs = np.log(value) - change / 2 + random.normal(0, noise, POINTS)
        logs[STEP_AT:] += change
        alarms += bool(follow(np.maximum(np.round(np.exp(logs), 2), 0.01), step=0.01).changes)
    return alarms / series


def keep(model: str, false: float, steps: dict[float, Rates], visible_share: float, promises: Promises) -> None:
    """The rates of five launches; ``steps`` by size, ``visible_share``: steps of the smallest visible size."""
    if model in WAVES:
        promises.keep(f"{model}: {false:.1%} false alarms", is_kept=false <= WAVES[model])
    if model in PROMISED:
        most, least5, least10, delay = PROMISED[model]
        five, ten = steps[0.05], steps[0.10]
        promises.keep(f"{model}: {false:.1%} false alarms", is_kept=false <= most)
        promises.keep(f"{model}: {five.found:.1%} of 5 % found", is_kept=five.found >= least5)
        promises.keep(f"{model}: {ten.found:.1%} of 10 % found", is_kept=ten.found >= least10)
        promises.keep(f"{model}: 10 % found after {ten.delay:.1f} points", is_kept=ten.delay <= delay)
        promises.keep(f"{model}: {visible_share:.1%} visible steps found", is_kept=visible_share >= 0.95)


def main(argv: list[str] | None = None) -> int:
    """Print the tables of docs/rates.md."""
    parser = argparse.ArgumentParser(prog="tests/rates/changes.py", description="measured rates")
    parser.add_argument("--series", type=int, default=2000, help="series per cell (default: 2000)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    promises = Promises()
    steps = " | ".join(f"{100 * step:.0f} % found (delay)" for step in STEPS)
    print(f"| series | launches | false alarms | {steps} | smallest visible, found |")
    print("|---|---|---|" + "---|" * (len(STEPS) + 1))
    for launches in (1, 5):
        for model in MODELS:
            none = measure(model, 0.0, args.series, launches, args.seed)
            by_step = {step: measure(model, step, args.series, launches, args.seed) for step in STEPS}
            cells = [f"{none.false:.2%}"]
            cells += [f"{rates.found:.1%} ({rates.delay:.1f})" if rates.found else "0" for rates in by_step.values()]
            size, share = visible(model, args.series, launches, args.seed)
            if launches == 5:
                keep(model, none.false, by_step, share, promises)
            print(f"| {model} | {launches} | {' | '.join(cells)} | {size:.1%}, {share:.1%} |", flush=True)
    print("\nPrinted with two decimals:\n\n| value, noise | slower by 0.5 % | 20 % |\n|---|--:|--:|")
    for value, noise in PRINTED:
        small, large = (printed(value, noise, change, args.series, args.seed) for change in (SMALL, np.log(1.2)))
        promises.keep(f"{value:g} printed, {noise:.2%}: {small:.1%} alarms", is_kept=small <= 0.02)
        print(f"| {value:g}, {100 * noise:g} % | {small:.1%} | {large:.1%} |", flush=True)
    return promises.status()


if __name__ == "__main__":
    sys.exit(main())
