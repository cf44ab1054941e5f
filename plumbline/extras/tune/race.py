"""The race: candidates, and which of them continue to the next rung.

Successive halving (Jamieson and Talwalkar, arXiv:1502.07943): in every rung each candidate has a launch a round, the
default among them, all in random order; the better third continues to a rung with more rounds. A candidate is held
against the default of the same round, row by row. One whose launch fails is infeasible, which is not an error: it is
not launched again, alone or with others. Algorithms of collectives that the library changes while it runs take turns
within one process, call by call. Of the other algorithms one launch tries one for each collective (a bundle), because
collectives do not affect one another. The algorithms that pay, by size and number of ranks, become rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby

import msgspec
import numpy as np

from plumbline.base.errors import require
from plumbline.extras.tune.curves import BARRIER, OPERATIONS, Contest, Curve, Row
from plumbline.extras.tune.knobs import Known
from plumbline.mpi.settings import Configuration, Knob, Rule, Setting

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
    parts = [
        *(f"{setting.name}={setting.value.replace('glibc.malloc.', '')}" for setting in configuration.settings),
        *(
            f"{rule.collective}:{rule.algorithm}@{rule.from_bytes}-{rule.to_bytes or ''}"
            f"{f'x{rule.ranks}' if rule.ranks else ''}"
            for rule in configuration.rules
        ),
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
        require(name, known, f"no knob '{name}' to race here", "plumb tune --knob", None if known else "known: none")
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


def unbroken(candidates: Iterable[Configuration], broken: Iterable[Configuration]) -> list[Configuration]:
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
    can_change = is_algorithm(knob) and knob.when != "start" and known.running
    return Contest(knob.name, knob.operations[0], numbers) if can_change and numbers else None


def bundles(knobs: Iterable[Knob], base: Configuration) -> list[Configuration]:
    """``base`` with the first value of every algorithm, with the second of each that has one, and so on."""
    mine = [knob for knob in knobs if is_algorithm(knob)]
    return [
        Configuration(
            (*base.settings, *(Setting(knob.name, knob.values[place]) for knob in mine if place < len(knob.values))),
            base.rules,
        )
        for place in range(max((len(knob.values) for knob in mine), default=0))
    ]


def joined(best: Sequence[Configuration]) -> list[Configuration]:
    """Unions of any two of ``best``; of two values for one name the better one's."""
    return [
        _of({setting.name: setting for setting in (*second.settings, *first.settings)}.values())
        for first, second in combinations(best, 2)
    ]


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


def rungs(
    knobs: Sequence[Knob], scores: Callable[[str, Sequence[Configuration], int], list[Score]], name: str = "race"
) -> tuple[list[list[Score]], list[Score]]:
    """The scores of each rung of ``knobs``, and the finalists, best first: none if the default is as good.

    ``scores`` measures candidates in a stage of a name, with so many rounds. A configuration whose launch fails is
    never launched again, alone or with others.
    """
    candidates = alone(knobs)
    broken: list[Configuration] = []
    raced: list[list[Score]] = []
    for number, rounds in enumerate(ROUNDS, 1):
        rung: list[Score] = []
        for stage, more in ((f"{name} {number}", candidates), (f"{name} {number}, pairs", pairs(knobs))):
            tried = unbroken(more, broken) if number == 1 or more is candidates else []
            if tried:
                rung += scores(stage, tried, rounds)
                broken += failed(rung)
        if not rung:
            return [], []
        raced.append(rung)
        candidates = [score.configuration for score in survivors(rung)]
        if number < len(ROUNDS):
            candidates += joined(candidates[:LEAST])
    return raced, [score for score in survivors(raced[-1]) if score.cost < 0]


#: a rule must save so much of its collective's time
WORTH = 0.10
SAVED = math.log(1 - WORTH)


def choose(knobs: Iterable[Knob], base: Mapping[Row, float], scores: Sequence[Score], ranks: int) -> list[Rule]:
    """For each collective the algorithm that wins at each size on ``ranks``, where it saves :data:`WORTH` of ``base``.

    ``base``: the ratios of the configuration that the bundles ``scores`` are built on. Neighbouring sizes with one
    winner make one range, which ends at the next size of the grid. Where the library has to be given an algorithm for
    each size, the winners of all sizes together must save as much; where it takes one for all sizes, that one.
    """
    rules: list[Rule] = []
    for knob in filter(is_algorithm, knobs):
        operation = knob.operations[0]
        options = [  # its algorithms, with the ratios of its rows to those without the algorithm
            (setting.value, {row: score.ratios[row] / base[row] for row in score.ratios if row.operation == operation})
            for score in scores
            for setting in score.configuration.settings
            if setting.name == knob.name and score.ratios
        ]
        rows = sorted({row for _, ratios in options for row in ratios})
        # of each row by size: the smallest ratio, and whose it is
        best = [(row, *min((ratios[row], value) for value, ratios in options if row in ratios)) for row in rows]
        if knob.sizes == "some":
            rules += _ranges(operation, best, ranks, 1 - WORTH)
        elif knob.sizes == "each" and _cost(ratio for _, ratio, _ in best) <= SAVED:
            rules += _ranges(operation, best, ranks, math.inf)
        elif knob.sizes == "all":
            costs = [(_cost(ratios.values()), value) for value, ratios in options if ratios]
            cost, algorithm = min(costs, default=(0.0, ""))
            rules += [Rule(operation, algorithm, 0, None, ranks)] if cost <= SAVED else []
    return rules


def _cost(ratios: Iterable[float]) -> float:
    return float(np.mean([priced(math.log(ratio)) for ratio in ratios] or [0.0]))


def _ranges(operation: str, best: Sequence[tuple[Row, float, str]], ranks: int, most: float) -> list[Rule]:
    """Rules for the rows whose ratio is ``most`` at most."""
    ranges: list[Rule] = []
    for place, (row, ratio, algorithm) in enumerate(best):
        if ratio > most:
            continue
        end = best[place + 1][0].size if place + 1 < len(best) else None
        last = ranges[-1] if ranges else None
        if last and (last.algorithm, last.to_bytes) == (algorithm, row.size):
            ranges[-1] = Rule(operation, algorithm, last.from_bytes, end, ranks)
        else:
            ranges.append(Rule(operation, algorithm, row.size if place else 0, end, ranks))
    return ranges


def without(chosen: Sequence[Rule], slower: Iterable[Row], grid: Sequence[int], knobs: Iterable[Knob]) -> list[Rule]:
    """``chosen`` without the sizes of ``slower`` rows: the range of a rule is cut.

    ``grid``: the sizes that were measured. All rules of a collective are removed where only all or none of them can be
    given, or where it is slower at a size that none of them covers.
    """
    bad = set(slower)
    whole = _together(knobs) | {row.operation for row in bad if not any(holds(rule, row) for rule in chosen)}
    confined = []
    for rule in chosen:
        if rule.collective in whole:
            confined += [] if any(row.operation == rule.collective for row in bad) else [rule]
        else:
            rows = [row for row in (Row(rule.collective, size) for size in grid) if holds(rule, row)]
            confined += [
                msgspec.structs.replace(part, to_bytes=behind[0].size) if behind else part
                for _, part, behind in _runs(rule, rows, set(rows) - bad)
            ]
    return confined


def after(chosen: Iterable[Rule], operations: Iterable[str]) -> tuple[Rule, ...]:
    """Those of ``chosen`` whose collectives a launch measures after all of ``operations``."""
    order = [*OPERATIONS, BARRIER]
    last = max(order.index(name) for name in operations)
    return tuple(rule for rule in chosen if order.index(rule.collective) > last)


def proven(chosen: Sequence[Rule], tame: Collection[Row], gaining: Iterable[Row], measured: Iterable[Row],
           knobs: Iterable[Knob]) -> list[Rule]:  # fmt: skip
    """``chosen`` confined to ranges whose ``measured`` sizes are all ``tame``, with one at least that is ``gaining``.

    A range ends behind the last size that was measured in it. Where only all rules of a collective or none can be
    given, all its rows have to be tame.
    """
    good, together = set(gaining), _together(knobs)
    grid = sorted(set(measured))
    confined = []
    for rule in chosen:
        if rule.collective in together:
            rows = [row for row in grid if row.operation == rule.collective]
            confined += [rule] if set(rows) <= set(tame) and good.intersection(rows) else []
        else:
            rows = [row for row in grid if holds(rule, row)]
            confined += [
                msgspec.structs.replace(part, to_bytes=run[-1].size + 1) if behind or rule.to_bytes is None else part
                for run, part, behind in _runs(rule, rows, tame)
                if good.intersection(run)
            ]
    return confined


def _runs(rule: Rule, rows: Sequence[Row], good: Collection[Row]) -> Iterator[tuple[list[Row], Rule, Sequence[Row]]]:
    """Of the ``rows`` of a rule, each run of ``good`` ones, the rule from where it begins, and the rows behind it."""
    for fits, grouped in groupby(rows, key=lambda row: row in good):
        run = list(grouped)
        if fits:
            begin = rule.from_bytes if run[0] == rows[0] else run[0].size
            yield run, msgspec.structs.replace(rule, from_bytes=begin), rows[rows.index(run[-1]) + 1 :]


def _together(knobs: Iterable[Knob]) -> set[str]:
    """The collectives of which all rules have to be given, or none."""
    return {BARRIER, *(knob.operations[0] for knob in knobs if is_algorithm(knob) and knob.sizes != "some")}


def holds(rule: Rule, row: Row) -> bool:
    """Whether ``rule`` is for the operation and the size of ``row``."""
    within = rule.from_bytes <= row.size and (rule.to_bytes is None or row.size < rule.to_bytes)
    return row.operation == rule.collective and within
