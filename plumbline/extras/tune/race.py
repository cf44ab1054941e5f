"""The race: candidates, and which of them continue to the next rung.

Successive halving (Jamieson and Talwalkar, arXiv:1502.07943): in every rung each candidate has a launch a round, the
default among them, all in random order; the better third continues to a rung with more rounds. A candidate is held
against the default of the same round, row by row. One whose launch fails is infeasible, which is not an error: it is
not launched again, alone or with others. Algorithms
of collectives that the library changes while it runs take turns within one process, call by call. Of the other
algorithms one launch tries one for each collective (a bundle), because collectives do not affect one another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from plumbline.base.errors import PlumbError, suggest
from plumbline.extras.tune.curves import Contest, Curve, Row
from plumbline.extras.tune.inventory import Known
from plumbline.mpi.settings import Configuration, Knob, Setting

DEFAULT = Configuration()
#: rounds of the rungs
ROUNDS = (1, 2, 3)
#: of those that finished a rung, one in this many continues ...
KEPT = 3
#: ... and at least this many
LEAST = 3
#: A slower row counts this many times as much as an equally faster one: a gain here does not pay for a loss there
LOSS = 3.0
NO_DEFAULT = "no launch of the default to compare it with"


def label(configuration: Configuration) -> str:
    """A configuration in one word of a variant's name."""
    parts = [f"{setting.name}={setting.value}" for setting in configuration.settings]
    parts += [
        f"{rule.collective}:{rule.algorithm}@{rule.from_bytes}-{rule.to_bytes or ''}"
        f"{f'x{rule.ranks}' if rule.ranks else ''}"
        for rule in configuration.rules
    ]
    return ",".join(parts) or "default"


def wanted(knobs: Iterable[Knob], suspects: Sequence[str], every: bool, nodes: int = 1) -> list[Knob]:
    """The knobs that may help on ``nodes`` nodes: those of a suspected operation, or of no operation in particular."""
    elsewhere = "inter" if nodes == 1 else "intra"
    here = [knob for knob in knobs if knob.scope != elsewhere]
    if every:
        return here
    return [knob for knob in here if suspects and (not knob.operations or set(knob.operations) & set(suspects))]


def chosen(knobs: Sequence[Knob], names: Sequence[str]) -> list[Knob]:
    """Those of ``knobs`` that ``names`` has, all if it is empty; raises :class:`PlumbError` for an unknown name."""
    known = [knob.name for knob in knobs]
    for name in names:
        if name not in known:
            raise PlumbError(f"no knob '{name}' to race here", "plumb tune --knob", suggest(name, known or ["none"]))
    return [knob for knob in knobs if not names or knob.name in names]


def alone(knobs: Iterable[Knob]) -> list[Configuration]:
    """Every value of the knobs that are not the algorithm of one collective."""
    return [
        Configuration((Setting(knob.name, value),)) for knob in knobs if not is_algorithm(knob) for value in knob.values
    ]


def pairs(knobs: Iterable[Knob]) -> list[Configuration]:
    """Any two of those knobs at their last values."""
    last = [Setting(knob.name, knob.values[-1]) for knob in knobs if not is_algorithm(knob)]
    return [_of(pair) for pair in combinations(last, 2)]


def failed(scores: Iterable[Score]) -> list[Configuration]:
    """The configurations that a launch failed with."""
    return [score.configuration for score in scores if not math.isfinite(score.cost) and score.reason != NO_DEFAULT]


def without(candidates: Iterable[Configuration], broken: Iterable[Configuration]) -> list[Configuration]:
    """Those of ``candidates`` that do not have all settings of one that is ``broken``."""
    sets = [set(configuration.settings) for configuration in broken]
    return [candidate for candidate in candidates if not any(each <= set(candidate.settings) for each in sets)]


def _of(settings: Iterable[Setting]) -> Configuration:
    """The configuration of ``settings`` in one order, so that equal ones are raced once."""
    return Configuration(tuple(sorted(settings, key=lambda setting: setting.name)))


def is_algorithm(knob: Knob) -> bool:
    """Whether it chooses the algorithm of one collective: its wins become rules by size."""
    return len(knob.operations) == 1 and knob.operations[0] != "p2p"


def contest(knob: Knob, known: Known) -> Contest | None:
    """The contest of ``knob``'s values in one process; None if it is not an algorithm, or fixed when MPI starts."""
    numbers = {value: number for value in knob.values if (number := known.number(value)) is not None}
    if not is_algorithm(knob) or knob.when == "start" or not known.running or not numbers:
        return None
    return Contest(knob.name, knob.operations[0], numbers)


def bundles(knobs: Iterable[Knob], base: Configuration) -> list[Configuration]:
    """``base`` with the first value of every algorithm, with the second of each that has one, and so on."""
    mine = [knob for knob in knobs if is_algorithm(knob)]
    most = max((len(knob.values) for knob in mine), default=0)
    return [
        Configuration(
            (*base.settings, *(Setting(knob.name, knob.values[place]) for knob in mine if place < len(knob.values))),
            base.rules,
        )
        for place in range(most)
    ]


def joined(best: Sequence[Configuration]) -> list[Configuration]:
    """Unions of any two of ``best``; of two values for one name the better one's."""
    unions = []
    for first, second in combinations(best, 2):
        values = {setting.name: setting.value for setting in (*second.settings, *first.settings)}
        unions.append(_of(Setting(name, value) for name, value in values.items()))
    return unions


@dataclass(frozen=True)
class Score:
    """How a candidate did: ``cost`` is below 0 for one that is better than the default, infinite if infeasible.

    ``ratios``: of each row, candidate / default, median over rounds. ``reason``: why it is infeasible.
    """

    configuration: Configuration
    cost: float
    ratios: Mapping[Row, float]
    reason: str | None = None

    @property
    def mean(self) -> float:
        """Geometric mean of the ratios."""
        return math.exp(float(np.mean(np.log(list(self.ratios.values()))))) if self.ratios else math.inf


def score(
    configuration: Configuration,
    candidate: Sequence[Curve | None],
    default: Sequence[Curve | None],
    weights: Mapping[Row, float],
    reason: str | None = None,
) -> Score:
    """``candidate`` against ``default``, a curve for each round; a round whose default failed counts for neither.

    ``weights`` of rows, one that is not among them counts 0; empty: all rows count alike.
    """
    if any(curve is None for curve in candidate) or not candidate:
        return Score(configuration, math.inf, {}, reason or "a launch failed")
    rounds = [
        (curve, base) for curve, base in zip(candidate, default, strict=True) if curve is not None and base is not None
    ]
    if not rounds:
        return Score(configuration, math.inf, {}, NO_DEFAULT)
    logs = {row: float(np.median([math.log(curve[row] / base[row]) for curve, base in rounds])) for row in rounds[0][0]}
    weights = weights or dict.fromkeys(logs, 1.0)
    total = sum(weights.get(row, 0.0) for row in logs)
    costs = (weights.get(row, 0.0) * priced(log) for row, log in logs.items())
    return Score(configuration, sum(costs) / total, {row: math.exp(log) for row, log in logs.items()})


def priced(log: float) -> float:
    """The part of a row with this log ratio in a cost: a loss counts :data:`LOSS` times."""
    return log if log < 0 else LOSS * log


def ranked(scores: Iterable[Score]) -> list[Score]:
    """The feasible scores, best first."""
    return sorted((score for score in scores if math.isfinite(score.cost)), key=lambda score: score.cost)


def survivors(scores: Sequence[Score]) -> list[Score]:
    """The scores that continue, best first: a third of the feasible ones, and at least :data:`LEAST`."""
    feasible = ranked(scores)
    return feasible[: max(LEAST, math.ceil(len(feasible) / KEPT))]
