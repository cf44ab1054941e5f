"""The race of settings that are fixed at start: candidates, and who of them goes on to the next rung.

Successive halving: in every rung each candidate has a launch a round, the default among them, all in random order; the
better third goes on to a rung with more rounds. A candidate is held against the default of the same round, row by
row. One whose launch fails is infeasible, which is no error. Algorithms of different collectives do not meet each
other, so one launch tries one of each (a bundle).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import msgspec
import numpy as np

from plumbline.errors import PlumbError
from plumbline.mpi.settings import Configuration, Knob, Rule, Setting
from plumbline.tune.curves import BARRIER, Curve, Row

DEFAULT = Configuration()
#: rounds of the rungs
ROUNDS = (1, 2, 3)
#: of those that finished a rung, one in so many goes on ...
KEPT = 3
#: ... and so many at least
LEAST = 3
#: A slower row counts so many times as much as an equally faster one: a gain here does not pay for a loss there
LOSS = 3.0
#: a rule for a collective must save so much of its time at each of its sizes
WORTH = 0.10


def label(configuration: Configuration) -> str:
    """A configuration in one word of a variant's name."""
    parts = [f"{one.name}={one.value}" for one in configuration.settings]
    parts += [
        f"{one.collective}:{one.algorithm}@{one.from_bytes}-{one.to_bytes or ''}{f'x{one.ranks}' if one.ranks else ''}"
        for one in configuration.rules
    ]
    return ",".join(parts) or "default"


def wanted(knobs: Iterable[Knob], suspects: Sequence[str], every: bool, nodes: int = 1) -> list[Knob]:
    """The knobs that may help on so many nodes: those of a suspected operation, or of no operation in particular."""
    elsewhere = "inter" if nodes == 1 else "intra"
    here = [knob for knob in knobs if knob.scope != elsewhere]
    if every:
        return here
    return [knob for knob in here if suspects and (not knob.operations or set(knob.operations) & set(suspects))]


def chosen(knobs: Sequence[Knob], names: Sequence[str]) -> list[Knob]:
    """Those of ``names``, or all; raises :class:`PlumbError` for a name that is none of them."""
    known = [knob.name for knob in knobs]
    for name in names:
        if name not in known:
            raise PlumbError(
                f"no knob '{name}' to race here", "plumb tune --knob", f"one of {', '.join(known) or 'none'}"
            )
    return [knob for knob in knobs if not names or knob.name in names]


def general(knobs: Iterable[Knob]) -> list[Configuration]:
    """Every value of the knobs that are of no collective alone, and pairs of knobs at their last values."""
    mine = [knob for knob in knobs if not is_algorithm(knob)]
    alone = [Configuration((Setting(knob.name, value),)) for knob in mine for value in knob.values]
    last = [Setting(knob.name, knob.values[-1]) for knob in mine]
    return alone + [_of(pair) for pair in combinations(last, 2)]


def _of(settings: Iterable[Setting]) -> Configuration:
    """In one order, so that what is the same is not raced twice."""
    return Configuration(tuple(sorted(settings, key=lambda one: one.name)))


def is_algorithm(knob: Knob) -> bool:
    """Whether it chooses how one collective is done: then what it wins is a rule for sizes."""
    return len(knob.operations) == 1 and knob.operations[0] != "p2p"


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
    found = []
    for first, second in combinations(best, 2):
        values = {one.name: one.value for one in (*second.settings, *first.settings)}
        found.append(_of(Setting(name, value) for name, value in values.items()))
    return found


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
    rounds = [(one, base) for one, base in zip(candidate, default, strict=True) if one is not None and base is not None]
    if not rounds:
        return Score(configuration, math.inf, {}, "no launch of the default to hold it against")
    logs = {row: float(np.median([math.log(one[row] / base[row]) for one, base in rounds])) for row in rounds[0][0]}
    weights = weights or dict.fromkeys(logs, 1.0)
    total = sum(weights.get(row, 0.0) for row in logs)
    costs = (weights.get(row, 0.0) * _priced(log) for row, log in logs.items())
    return Score(configuration, sum(costs) / total, {row: math.exp(log) for row, log in logs.items()})


def _priced(log: float) -> float:
    return log if log < 0 else LOSS * log


def survivors(scores: Sequence[Score]) -> list[Score]:
    """Who goes on, best first: a third of the feasible ones, and at least :data:`LEAST`."""
    feasible = sorted((one for one in scores if math.isfinite(one.cost)), key=lambda one: one.cost)
    return feasible[: max(LEAST, math.ceil(len(feasible) / KEPT))]


def rules(knobs: Iterable[Knob], base: Mapping[Row, float], scores: Sequence[Score], ranks: int) -> list[Rule]:
    """For each collective the algorithm that wins at each size on ``ranks``, where it saves :data:`WORTH` of ``base``.

    ``base``: the ratios of the configuration that the bundles ``scores`` are built on. Neighbouring sizes with one
    winner make one range, which ends at the next size of the grid. Where the library takes one algorithm for all sizes
    only, it is the one of the least cost, if it saves as much over all of them.
    """
    found: list[Rule] = []
    for knob in knobs:
        if is_algorithm(knob):
            tried = [
                (dict((s.name, s.value) for s in one.configuration.settings).get(knob.name), one) for one in scores
            ]
            options = [
                (value, {row: one.ratios[row] / base[row] for row in one.ratios if row.operation == knob.operations[0]})
                for value, one in tried
                if value is not None and one.ratios
            ]
            found += (_by_size if knob.by_size else _for_all_sizes)(knob.operations[0], options, ranks)
    return found


#: algorithms with the ratios of the rows of their collective to those without it
_Options = Sequence[tuple[str, Mapping[Row, float]]]


def _by_size(operation: str, options: _Options, ranks: int) -> list[Rule]:
    found: list[Rule] = []
    rows = sorted({row for _, ratios in options for row in ratios})
    for place, row in enumerate(rows):
        ratio, algorithm = min(((ratios[row], value) for value, ratios in options if row in ratios), default=(1.0, ""))
        if ratio > 1 - WORTH:
            continue
        end = rows[place + 1].size if place + 1 < len(rows) else None
        last = found[-1] if found else None
        if last and (last.algorithm, last.to_bytes) == (algorithm, row.size):
            found[-1] = Rule(operation, algorithm, last.from_bytes, end, ranks)
        else:
            found.append(Rule(operation, algorithm, row.size if place else 0, end, ranks))
    return found


def _for_all_sizes(operation: str, options: _Options, ranks: int) -> list[Rule]:
    costs = [
        (float(np.mean([_priced(math.log(ratio)) for ratio in ratios.values()])), value)
        for value, ratios in options
        if ratios
    ]
    cost, algorithm = min(costs, default=(0.0, ""))
    return [Rule(operation, algorithm, 0, None, ranks)] if cost <= math.log(1 - WORTH) else []


def without(chosen: Sequence[Rule], slower: Iterable[Row], grid: Sequence[int], knobs: Iterable[Knob]) -> list[Rule]:
    """``chosen`` confined to what is not ``slower``: a rule loses the sizes of slower rows, its range is cut.

    ``grid``: the sizes that were measured. All rules of a collective go if its knob takes no sizes, or if it is slower
    where none of them holds: a library may choose otherwise there, once it is told anything of a collective.
    """
    bad = set(slower)
    whole = {BARRIER, *(knob.operations[0] for knob in knobs if is_algorithm(knob) and not knob.by_size)}
    whole |= {row.operation for row in bad if not any(_holds(rule, row) for rule in chosen)}
    found = []
    for rule in chosen:
        if rule.collective in whole:
            found += [] if any(row.operation == rule.collective for row in bad) else [rule]
            continue
        sizes = [size for size in grid if rule.from_bytes <= size and (rule.to_bytes is None or size < rule.to_bytes)]
        start: int | None = None
        for size in sizes:
            if Row(rule.collective, size) in bad:
                if start is not None:
                    found.append(msgspec.structs.replace(rule, from_bytes=start, to_bytes=size))
                start = None
            elif start is None:
                start = rule.from_bytes if size == sizes[0] else size
        if start is not None:
            found.append(msgspec.structs.replace(rule, from_bytes=start))
    return found


def gaining(chosen: Sequence[Rule], faster: Iterable[Row]) -> list[Rule]:
    """Those of ``chosen`` in whose range a row is ``faster``: collectives do not meet, so the others are idle."""
    good = set(faster)
    return [rule for rule in chosen if any(_holds(rule, row) for row in good)]


def _holds(rule: Rule, row: Row) -> bool:
    within = rule.from_bytes <= row.size and (rule.to_bytes is None or row.size < rule.to_bytes)
    return row.operation == rule.collective and within
