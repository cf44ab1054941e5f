"""Algorithms of collectives by size and number of ranks: the rules that pay, and the proven part of each."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import msgspec
import numpy as np

from plumbline.extras.tune.curves import BARRIER, OPERATIONS, Row
from plumbline.extras.tune.race import Score, is_algorithm, priced
from plumbline.mpi.settings import Knob, Rule

#: a rule must save so much of its collective's time
WORTH = 0.10
SAVED = math.log(1 - WORTH)
#: algorithms of a collective, with the ratios of its rows to those without the algorithm
Options = Sequence[tuple[str, Mapping[Row, float]]]


def choose(knobs: Iterable[Knob], base: Mapping[Row, float], scores: Sequence[Score], ranks: int) -> list[Rule]:
    """For each collective the algorithm that wins at each size on ``ranks``, where it saves :data:`WORTH` of ``base``.

    ``base``: the ratios of the configuration that the bundles ``scores`` are built on. Neighbouring sizes with one
    winner make one range, which ends at the next size of the grid. Where the library has to be given an algorithm for
    each size, the winners of all sizes together must save as much; where it takes one for all sizes, that one.
    """
    rules: list[Rule] = []
    for knob in filter(is_algorithm, knobs):
        operation = knob.operations[0]
        options = [
            (setting.value, {row: score.ratios[row] / base[row] for row in score.ratios if row.operation == operation})
            for score in scores
            for setting in score.configuration.settings
            if setting.name == knob.name and score.ratios
        ]
        best = _best(options)
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
        rows = [row for row in (Row(rule.collective, size) for size in grid) if holds(rule, row)]
        for run, part in _runs(rule, rows, set(rows) - bad):
            behind = rows[rows.index(run[-1]) + 1 :]
            confined.append(msgspec.structs.replace(part, to_bytes=behind[0].size) if behind else part)
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
        for run, part in _runs(rule, rows, tame):
            if good.intersection(run):
                to_end = run[-1] == rows[-1] and rule.to_bytes is not None
                confined.append(part if to_end else msgspec.structs.replace(part, to_bytes=run[-1].size + 1))
    return confined


def _runs(rule: Rule, rows: Sequence[Row], good: Collection[Row]) -> Iterator[tuple[list[Row], Rule]]:
    """Of the ``rows`` of a rule, each run of ``good`` ones, and the rule from where the run begins."""
    for fits, grouped in groupby(rows, key=lambda row: row in good):
        run = list(grouped)
        if fits:
            start = rule.from_bytes if run[0] == rows[0] else run[0].size
            yield run, msgspec.structs.replace(rule, from_bytes=start)


def _together(knobs: Iterable[Knob]) -> set[str]:
    """The collectives of which all rules have to be given, or none."""
    return {BARRIER, *(knob.operations[0] for knob in knobs if is_algorithm(knob) and knob.sizes != "some")}


def holds(rule: Rule, row: Row) -> bool:
    """Whether ``rule`` is for the operation and the size of ``row``."""
    within = rule.from_bytes <= row.size and (rule.to_bytes is None or row.size < rule.to_bytes)
    return row.operation == rule.collective and within
