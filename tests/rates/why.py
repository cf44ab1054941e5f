"""How often ``plumb why`` errs, on simulated launches with known truth.

    python tests/rates/why.py [--full]

Ends with status 1 if a rate is worse than promised.

A launch is log-normal noise of 1, 2 or 5 %; one in 20 has a tail of Exp(10 %). A search has ten factors, of which none,
one, two, or a pair that acts together makes something. Wrong: a factor is named that does nothing. Found: all that act
are named, a pair as one cause, and nothing else is.
"""

import math
import sys
from dataclasses import dataclass, field

import numpy as np
from promises import Promises, command_line

from plumbline.extras.search.why.search import Rounds, Search, Seen
from plumbline.statistics.paired import PairedRule

FACTORS = 10
#: probability that a search names a factor that does nothing
WRONG = 0.01
RULE = PairedRule(0.01, 0.05, gain=True)


@dataclass(frozen=True)
class Truth:
    """What each factor makes (a log ratio), and what groups make together in addition."""

    name: str
    single: dict[int, float] = field(default_factory=dict)
    together: dict[tuple[int, ...], float] = field(default_factory=dict)

    @property
    def causes(self) -> set[tuple[int, ...]]:
        """The factors, and the groups, that a right answer names."""
        grouped = {one for group in self.together for one in group}
        return {*self.together, *((one,) for one in self.single if one not in grouped)}


def slower(fraction: float) -> float:
    """The log ratio of what makes it slower by ``fraction``."""
    return math.log1p(fraction)


TRUTHS = (
    Truth("none acts"),
    Truth("one, 3 %", {3: slower(0.03)}),
    Truth("one, 5 %", {3: slower(0.05)}),
    Truth("one, 40 %", {3: slower(0.4)}),
    Truth("two, 5 and 20 %", {1: slower(0.05), 7: slower(0.2)}),
    Truth("one 20 % slower, one 10 % faster", {1: slower(0.2), 7: -slower(0.1)}),
    Truth("a pair, 20 %", {}, {(2, 5): slower(0.2)}),
    Truth("a pair, 20 %, and one, 10 %", {0: slower(0.1)}, {(2, 5): slower(0.2)}),
    Truth("three together, 30 %", {}, {(2, 5, 8): slower(0.3)}),
)


class Simulated:
    """Launches of a ``truth`` with a ``noise``."""

    def __init__(self, truth: Truth, noise: float, draw: np.random.Generator) -> None:
        self.truth, self.noise, self.draw = truth, noise, draw

    def launch(self, configuration: int, number: int) -> Seen:
        """One launch."""
        log = sum(value for one, value in self.truth.single.items() if configuration >> one & 1)
        log += sum(
            value for group, value in self.truth.together.items() if all(configuration >> one & 1 for one in group)
        )
        tail = self.draw.exponential(0.1) if self.draw.random() < 0.05 else 0.0
        return Seen(1000.0 * math.exp(log + self.draw.normal(0.0, self.noise) + tail))

    def stop(self) -> None:
        """Never."""


@dataclass
class Count:
    """What came of some searches."""

    searches: int = 0
    wrong: int = 0
    found: int = 0
    launches: int = 0


def search(truth: Truth, noise: float, seed: int, factors: int = FACTORS) -> tuple[set[tuple[int, ...]], int]:
    """What one search names, and how many launches it took."""
    bench = Simulated(truth, noise, np.random.default_rng(seed))
    rounds = Rounds(bench, "lower", RULE, seed)
    found = Search(factors, rounds, noise, lambda line: None).run()
    return {one.members for one in found.named if one.acts}, sum(map(len, rounds.seen.values()))


def measure(truth: Truth, noise: float, searches: int) -> Count:
    """Many searches for one truth."""
    count = Count()
    acting = {one for group in truth.causes for one in group}
    for seed in range(searches):
        named, launches = search(truth, noise, seed)
        count.searches += 1
        count.wrong += any(one not in acting for group in named for one in group)
        count.found += named == truth.causes
        count.launches += launches
    return count


def keep(truth: Truth, noise: float, count: Count, promises: Promises) -> None:
    """A factor that does nothing is hardly ever named, and what acts is; 3 % lies between the margins."""
    kind = f"{truth.name}, {noise:.0%} noise"
    promises.rare(f"a factor that does nothing is named: {kind}", count.wrong, count.searches, WRONG)
    if truth.name != "one, 3 %":
        is_kept = count.found >= 0.9 * count.searches
        promises.keep(f"{count.found} of {count.searches} right: {kind}", is_kept=is_kept)


def main() -> int:
    """Print the table."""
    searches = 400 if command_line(__doc__, "400 searches of each kind instead of 40").parse_args().full else 40
    promises = Promises()
    print(f"{FACTORS} factors, {RULE}, {searches} searches of each kind")
    print(f"{'what acts':<34} {'noise':>5}  {'wrong':>6}  {'right':>6}  launches")
    for truth in TRUTHS:
        for noise in (0.01, 0.02, 0.05):
            count = measure(truth, noise, searches)
            keep(truth, noise, count, promises)
            wrong, right = 100 * count.wrong / count.searches, 100 * count.found / count.searches
            mean = count.launches / count.searches
            print(f"{truth.name:<34} {100 * noise:>3.0f} %  {wrong:>4.1f} %  {right:>4.0f} %  {mean:>8.0f}", flush=True)
    return promises.status()


if __name__ == "__main__":
    sys.exit(main())
