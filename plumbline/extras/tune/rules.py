"""Algorithms of collectives by size and number of ranks: the rules that pay, and the proven part of each."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby

import msgspec
import numpy as np

from plumbline.extras.tune.curves import BARRIER, OPERATIONS, Row
from plumbline.extras.tune.race import Score, is_algorithm, priced
from plumbline.mpi.settings import Knob, Rule

#: a rule must save so much of its collective's time
WORTH = 0.10
#: algorithms of a collective, with the ratios of its rows to those without the algorithm
Options = Sequence[tuple[str, Mapping[Row, float]]]


def choose(knobs: Iterable[Knob], base: Mapping[Row, float], scores: Sequence[Score], ranks: int) -> list[Rule]:
    """For each collective the algorithm that wins at each size on ``ranks``, where it saves :data:`WORTH` of ``base``.

    ``base``: the ratios of the configuration that the bundles ``scores`` are built on. Neighbouring sizes with one
    winner make one range, which ends at the next size of the grid. Where the library has to be given an algorithm for
    each size, the winners of all sizes together must save as much; where it takes one for all sizes, that one.
    """
    find = {"some": _for_some, "each": _for_each, "all": _for_all}
    rules: list[Rule] = []
    for knob in knobs:
        if not is_algorithm(knob):
            continue
        operation = knob.operations[0]
        tried = [
            (dict((s.name, s.value) for s in score.configuration.settings).get(knob.name), score) for score in scores
        ]
        options = [
            (value, {row: score.ratios[row] / base[row] for row in score.ratios if row.operation == operation})
            for value, score in tried
            if value is not None and score.ratios
        ]
        rules += find[knob.sizes](operation, options, ranks)
    return rules


def _for_some(operation: str, options: Options, ranks: int) -> list[Rule]:
    return _ranges(operation, _best(options), ranks, 1 - WORTH)


def _for_each(operation: str, options: Options, ranks: int) -> list[Rule]:
    best = _best(options)
    return _ranges(operation, best, ranks, math.inf) if _saves(ratio for _, ratio, _ in best) else []


def _for_all(operation: str, options: Options, ranks: int) -> list[Rule]:
    costs = [(_cost(ratios.values()), value) for value, ratios in options if ratios]
    algorithm = min(costs, default=(0.0, ""))[1]
    saves = any(value == algorithm and _saves(ratios.values()) for value, ratios in options)
    return [Rule(operation, algorithm, 0, None, ranks)] if saves else []


def _cost(ratios: Iterable[float]) -> float:
    return float(np.mean([priced(math.log(ratio)) for ratio in ratios] or [0.0]))


def _saves(ratios: Iterable[float]) -> bool:
    return _cost(ratios) <= math.log(1 - WORTH)


def _best(options: Options) -> list[tuple[Row, float, str]]:
    """Of each row by size: the smallest ratio, and whose it is."""
    rows = sorted({row for _, ratios in options for row in ratios})
    return [(row, *min((ratios[row], value) for value, ratios in options if row in ratios)) for row in rows]


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
            continue
        sizes = [size for size in grid if holds(rule, Row(rule.collective, size))]
        start: int | None = None
        for size in sizes:
            if Row(rule.collective, size) in bad:
                if start is not None:
                    confined.append(msgspec.structs.replace(rule, from_bytes=start, to_bytes=size))
                start = None
            elif start is None:
                start = rule.from_bytes if size == sizes[0] else size
        if start is not None:
            confined.append(msgspec.structs.replace(rule, from_bytes=start))
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
            continue
        rows = [row for row in grid if holds(rule, row)]
        for fits, run in groupby(rows, key=lambda row: row in tame):
            of_run = list(run)
            if fits and good.intersection(of_run):
                start = rule.from_bytes if of_run[0] == rows[0] else of_run[0].size
                whole = of_run[-1] == rows[-1] and rule.to_bytes is not None
                end = rule.to_bytes if whole else of_run[-1].size + 1
                confined.append(msgspec.structs.replace(rule, from_bytes=start, to_bytes=end))
    return confined


def _together(knobs: Iterable[Knob]) -> set[str]:
    """The collectives of which all rules have to be given, or none."""
    return {BARRIER, *(knob.operations[0] for knob in knobs if is_algorithm(knob) and knob.sizes != "some")}


def holds(rule: Rule, row: Row) -> bool:
    """Whether ``rule`` is for the operation and the size of ``row``."""
    within = rule.from_bytes <= row.size and (rule.to_bytes is None or row.size < rule.to_bytes)
    return row.operation == rule.collective and within
