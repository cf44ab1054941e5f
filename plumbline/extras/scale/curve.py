"""A scaling curve from rounds of times: speed-up, efficiency, the law that it follows, and the number that is best.

All points are measured in each round, so that ratios are taken within rounds; intervals are Student's over the rounds
(logarithms for ratios). The laws are Amdahl's (AFIPS 1967) and Gunther's universal scalability law (arXiv:0808.1431):
``n / speed-up = 1 + a (n - 1) + b n (n - 1)``, with the serial share or contention ``a`` and the coherency ``b``. They
are fitted to each round by weighted least squares, and refused where a point contradicts them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from plumbline.statistics import Floats, basic, special

#: error of an interval of what is shown, and of what a law claims; that of its parameters together is a quarter
ERROR, LAW_ERROR = 0.05, 0.01
#: the least rounds
ROUNDS = 3
#: half the width of an interval of efficiency at which a point has been measured enough
WIDTH = 0.02
#: no two sides of a ratio agree better than this (standard deviation of logarithms)
FLOOR = 0.002
#: a point that is nearer to a law than this does not contradict it
NEAR = 0.02
#: points that are known less well than this contradict no law (tests/rates/scaling.py)
KNOWN = 0.09


@dataclass(frozen=True)
class Interval:
    """A value between ``low`` and ``high``."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> Interval:
        """All three times ``factor``."""
        return Interval(self.value * factor, self.low * factor, self.high * factor)


def ratio(logs: Floats, error: float = ERROR, hidden: float = 0.0) -> Interval:
    """The mean of logarithms of ratios of rounds, as a ratio with its interval; few digits hide so much more."""
    middle, reach = float(np.mean(logs)), _reach(logs, error, FLOOR) + hidden
    return Interval(math.exp(middle), math.exp(middle - reach), math.exp(middle + reach))


def _reach(values: Floats, error: float, floor: float = 0.0) -> float:
    if len(values) < ROUNDS:
        return math.inf
    deviation = math.hypot(float(np.std(values, ddof=1)), floor)
    return float(-special.stdtrit(len(values) - 1, error / 2)) * deviation / math.sqrt(len(values))


@dataclass(frozen=True)
class Law:
    """A law that no point contradicts: its parameters by name, with intervals."""

    name: str
    parameters: dict[str, Interval]

    def efficiency(self, count: float) -> float:
        """The efficiency that the law gives for ``count`` times the least number."""
        contention, coherency = (self.parameters.get(name, Interval(0, 0, 0)).value for name in ("a", "b"))
        return 1 / (1 + contention * (count - 1) + coherency * count * (count - 1))


@dataclass(frozen=True)
class Curve:
    """Times in seconds of ``counts`` (rows) in rounds (columns); nan where a point has none in a round.

    ``weak``: the work grows with the number. ``rates``: the values are rates of work, and not times. ``steps``: how
    finely the values of each point were printed; empty: in all digits.
    """

    counts: tuple[int, ...]
    values: Floats
    weak: bool = False
    rates: bool = False
    steps: tuple[float, ...] = ()

    @property
    def measured(self) -> list[int]:
        """The places of the points that have a value in each round that counts."""
        return [place for place in range(len(self.counts)) if np.isfinite(self.values[place]).any()]

    @property
    def base(self) -> int:
        """The place of the point that others are compared with: the first that was measured."""
        return self.measured[0]

    def logs(self, place: int, than: int) -> Floats:
        """Logarithms of the speed-up of a point over another one, of each round that has both."""
        both = np.log(self.values[[place, than]])
        gained = (both[0] - both[1]) * (1 if self.rates else -1)
        if self.weak and not self.rates:
            gained = gained + math.log(self.counts[place] / self.counts[than])
        return np.asarray(gained[np.isfinite(gained)], dtype=np.float64)

    def hidden(self, place: int, than: int) -> float:
        """The logarithm of a speed-up over another point that the digits of both may hide."""
        first, second = (self.values[each][np.isfinite(self.values[each])] for each in (place, than))
        return basic.hidden(first, second, (self.step(place), self.step(than))) if self.steps else 0.0

    def step(self, place: int) -> float:
        """How finely the values of a point were printed."""
        return self.steps[place] if self.steps else 0.0

    def ratio(self, place: int, than: int) -> Interval:
        """The speed-up of a point over another one."""
        return ratio(self.logs(place, than), hidden=self.hidden(place, than))

    def speedup(self, place: int) -> Interval:
        """The speed-up over the first point, that of weak scaling for work that grew."""
        return Interval(1, 1, 1) if place == self.base else self.ratio(place, self.base)

    def efficiency(self, place: int, than: int | None = None) -> Interval:
        """The speed-up over another point (default: the first), by the ratio of the numbers."""
        than = self.base if than is None else than
        if place == than:
            return Interval(1, 1, 1)
        return self.ratio(place, than).times(self.counts[than] / self.counts[place])

    @property
    def is_known(self) -> bool:
        """Whether each efficiency is known within :data:`WIDTH`."""
        every = [self.efficiency(place) for place in self.measured]
        return all(max(each.high - each.value, each.value - each.low) <= WIDTH for each in every)

    @property
    def is_enough(self) -> bool:
        """Whether it is, but for few digits, which further rounds do not cure."""
        return replace(self, steps=()).is_known

    def law(self) -> tuple[Law | None, str]:
        """The simplest law that no point contradicts; else None, and why."""
        whole = self.values[:, np.isfinite(self.values[self.measured]).all(axis=0)][self.measured]
        relative = np.array([self.counts[place] / self.counts[self.base] for place in self.measured])
        if len(relative) < 3 or whole.shape[1] < ROUNDS:
            return None, "a law needs three points and three rounds of all of them"
        if max(self.hidden(place, self.base) for place in self.measured) > NEAR:
            return None, "a law needs values that are printed with more digits"
        logs = np.log(whole / whole[0]) * (1 if self.rates else -1)
        if self.weak and not self.rates:
            logs = logs + np.log(relative)[:, None]
        if max(_reach(row, LAW_ERROR / (len(logs) - 1), FLOOR) for row in logs[1:]) > KNOWN:
            return None, f"a law needs points that are known within {KNOWN:.0%}: more --rounds"
        cost = relative[:, None] / np.exp(logs)
        why = ""
        for name, powers in (("Amdahl", 1), ("universal scalability", 2)):
            if len(relative) < powers + 2:
                break
            law, why = _fitted(name, powers, relative, cost)
            if law:
                return law, ""
        return None, why


def _fitted(name: str, powers: int, relative: Floats, cost: Floats) -> tuple[Law | None, str]:
    """The law with so many parameters, fitted to the rounds of ``cost`` = n / speed-up; else why it is refused."""
    terms = np.column_stack([relative - 1, relative * (relative - 1)])[1:, :powers]
    by_round = np.array([
        np.linalg.lstsq(terms / column[1:, None], (column[1:] - 1) / column[1:], rcond=None)[0] for column in cost.T
    ])  # fmt: skip
    residuals = np.log(cost[1:]) - np.log(np.maximum(1 + terms @ by_round.T, 1e-9))
    for number, row in zip(relative[1:], residuals, strict=True):
        middle, reach = float(np.mean(row)), _reach(row, LAW_ERROR / len(residuals), FLOOR)
        if abs(middle) > max(reach, NEAR):
            side = "more" if middle > 0 else "less"
            return (
                None,
                f"{name}'s law is refused: at {number:g} times the cost is {abs(math.expm1(middle)):.0%} {side}",
            )
    parameters = {}
    for key, values in zip("ab", by_round.T, strict=False):
        middle, reach = float(np.mean(values)), _reach(values, LAW_ERROR / 4 / powers)
        parameters[key] = Interval(middle, middle - reach, middle + reach)
        if middle + _reach(values, LAW_ERROR) < 0:
            return None, f"{name}'s law is refused: its parameter {key} is below 0"
    return Law(name, parameters), ""


def fastest(curve: Curve) -> tuple[int, list[int]]:
    """The place of the least number that no other is surely faster than, and places that are not decided."""
    ahead = [curve.speedup(place).value for place in curve.measured]
    best = curve.measured[int(np.argmax(ahead))]
    apart = {place: curve.ratio(best, place) for place in curve.measured if place != best}
    open_places = [place for place, gain in apart.items() if gain.low <= 1]
    return min([best, *open_places]), [place for place in (*open_places, best) if open_places]


def most_efficient(curve: Curve, bound: float) -> tuple[int | None, list[int]]:
    """The place of the largest number whose efficiency is surely at least ``bound``, and larger, undecided places."""
    known = {place: curve.efficiency(place) for place in curve.measured}
    sure = [place for place, each in known.items() if each.low >= bound]
    largest = max(sure) if sure else None
    return largest, [
        place
        for place, each in known.items()
        if each.low < bound <= each.high and place > (-1 if largest is None else largest)
    ]
