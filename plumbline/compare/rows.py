"""What sides have in common, figure by figure, and which of them is better where."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plumbline.compare.sides import Side, free
from plumbline.records.model import FLEETING, AnyRecord, Figure
from plumbline.statistics import unpaired
from plumbline.statistics.multiplicity import holm
from plumbline.units import Better
from plumbline.views import summary

#: what may tell two lines of one test, placement and figure apart
MEMBERS = ("site", "partition", "stack")


@dataclass(frozen=True, order=True)
class Key:
    """What a line compares. Members in which the sides differ are empty."""

    test: str
    variant: str
    placement: str
    figure: str
    site: str
    partition: str
    stack: str


@dataclass(frozen=True)
class Cell:
    """What a side measured: ``value`` is the median over ``sessions`` of the medians of their launches.

    ``records`` are their ids, oldest first.
    """

    value: float
    records: tuple[str, ...]
    sessions: tuple[tuple[float, ...], ...]
    disturbed: int
    launches: int


@dataclass(frozen=True)
class Line:
    """A figure on all sides. ``cells`` and ``differences`` are in the order of the sides, None where a side lacks it.

    ``differences`` are to the first side that has it; ``claimed`` says which of them may be claimed. ``best`` has the
    sides that are worse than no other, if some side is worse than another; otherwise it is empty.
    """

    key: Key
    unit: str
    better: Better
    cells: tuple[Cell | None, ...]
    differences: tuple[unpaired.Difference | None, ...]
    claimed: tuple[bool, ...]
    best: tuple[int, ...]


@dataclass(frozen=True)
class Comparison:
    """``circumstances``: what else differs between the sides, with each side's values.

    ``alone``: how many figures only one side has.
    """

    sides: tuple[str, ...]
    lines: tuple[Line, ...]
    circumstances: tuple[tuple[str, tuple[str, ...]], ...]
    alone: int


def compare(rows: Sequence[AnyRecord], sides: Sequence[Side], all_figures: bool = False) -> Comparison:
    """Compare ``sides`` over valid ``rows``: a line for each figure that at least two of them have.

    Without ``all_figures`` only the first figure of each test counts.
    """
    loose = free(sides)
    chosen = [[row for row in rows if side.has(row)] for side in sides]
    found: dict[Key, list[list[AnyRecord]]] = defaultdict(lambda: [[] for _ in sides])
    for number, own in enumerate(chosen):
        for row in own:
            for figure in row.figures if all_figures else row.figures[:1]:
                found[_key(row, figure.name, loose)][number].append(row)
    cells = {key: tuple(_cell(rows, key.figure) for rows in own) for key, own in found.items()}
    shared = sorted(key for key, own in cells.items() if sum(cell is not None for cell in own) > 1)
    measured = [(key, _figure(found[key], key.figure), cells[key]) for key in shared]
    return Comparison(
        tuple(side.name for side in sides),
        tuple(_judged(measured)),
        tuple(_circumstances(chosen, loose)),
        sum(sum(map(bool, own)) == 1 for own in found.values()),
    )


def _key(row: AnyRecord, figure: str, loose: set[str]) -> Key:
    known = {"site": row.site, "partition": row.partition, "stack": row.stack.name}
    kept = {member: "" if member in loose else known[member] for member in MEMBERS}
    placed = summary.placement(row.placement)
    return Key(row.variant.test, summary.name(row.variant), placed, figure, **kept)


def _figure(own: list[list[AnyRecord]], name: str) -> Figure:
    """Any of that name: unit and direction are the same in all."""
    return next(figure for rows in own for row in rows if (figure := row.figure(name)))


def _cell(rows: list[AnyRecord], name: str) -> Cell | None:
    """None without records, or where a figure is zero, which has no ratio."""
    sessions: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        figure = row.figure(name)
        sessions[row.session] += figure.samples if figure else []
    if not sessions or any(value <= 0 for samples in sessions.values() for value in samples):
        return None
    medians = [float(np.median(samples)) for samples in sessions.values()]
    return Cell(
        float(np.median(medians)),
        tuple(row.id for row in rows),
        tuple(tuple(samples) for samples in sessions.values()),
        sum(row.disturbed_count for row in rows),
        sum(row.launch_count for row in rows),
    )


def _judged(measured: Sequence[tuple[Key, Figure, tuple[Cell | None, ...]]]) -> list[Line]:
    """The lines with what may be claimed: every pair of sides of every line is a hypothesis of one family."""
    pairs = [
        (number, i, j, unpaired.compare(one.sessions, other.sessions))
        for number, (_, _, cells) in enumerate(measured)
        for (i, one), (j, other) in itertools.combinations(enumerate(cells), 2)
        if one and other
    ]
    kept = holm(np.array([pair[3].p for pair in pairs]), len(pairs), unpaired.ERROR)
    found: dict[int, dict[tuple[int, int], tuple[unpaired.Difference, bool]]] = defaultdict(dict)
    for (number, i, j, difference), is_claimed in zip(pairs, kept, strict=True):
        found[number][i, j] = (difference, bool(is_claimed))
    return [_line(*one, found[number]) for number, one in enumerate(measured)]


def _line(
    key: Key,
    figure: Figure,
    cells: tuple[Cell | None, ...],
    pairs: dict[tuple[int, int], tuple[unpaired.Difference, bool]],
) -> Line:
    """``pairs``: of two sides, the difference of the second to the first, and whether it is claimed."""
    first, *others = (number for number, cell in enumerate(cells) if cell)
    to_first = [pairs.get((first, number), (None, False)) for number in range(len(cells))]
    worse = {
        i if (difference.ratio > 1) == (figure.better == "higher") else j
        for (i, j), (difference, is_claimed) in pairs.items()
        if is_claimed
    }
    best = tuple(number for number in (first, *others) if worse and number not in worse)
    differences, claimed = tuple(one for one, _ in to_first), tuple(one for _, one in to_first)
    return Line(key, figure.unit, figure.better, cells, differences, claimed, best)


def _circumstances(chosen: list[list[AnyRecord]], loose: set[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Facts of the hosts, versions and the suite that are not the same on all sides."""
    sides = [_facts(rows) for rows in chosen]
    names = sorted({name for facts in sides for name in facts})
    if "stack" in loose:
        names = [name for name in names if not name.startswith("stack ")]
    found = [(name, tuple(", ".join(sorted(facts.get(name, {"–"}))) for facts in sides)) for name in names]
    return [(name, values) for name, values in found if len(set(values)) > 1]


def _facts(rows: list[AnyRecord]) -> dict[str, set[str]]:
    facts: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        facts["provenance"].add(row.provenance)
        facts["suite commit"].add((row.suite.commit or "unknown")[:12])
        facts[f"stack {row.stack.name}"].add(f"{row.stack.mpi.family} {row.stack.mpi.version}")
        for name, value in row.host.items():
            if name not in FLEETING and value is not None:
                facts[name].add(str(value))
    return facts
