"""The figures that sides have in common, and which side is better in each.

A side is a choice of records: ``stack=mpich``, ``2026-10..2026-11``, or a name that is known.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from plumbline.base import git, group
from plumbline.base.errors import PlumbError, suggest
from plumbline.base.units import Better, minute, multiple
from plumbline.records import naming
from plumbline.records.figure import Figure, step_of
from plumbline.records.model import FLEETING, AnyRecord
from plumbline.statistics import unpaired
from plumbline.statistics.basic import holm

#: members that may tell two lines of one test, placement and figure apart
MEMBERS = ("site", "partition", "stack")
#: the number of a side, and a figure of it
Measured: TypeAlias = tuple[int, AnyRecord, Figure]
#: by the numbers of two sides: the difference of the second to the first, and whether it is claimed
Pairs: TypeAlias = dict[tuple[int, int], tuple[unpaired.Difference, bool]]


@dataclass(frozen=True)
class Kind:
    """A property in which sides may differ: ``has`` tests a record, ``members`` of a line's key may then differ too."""

    has: Callable[[AnyRecord, str], bool]
    members: tuple[str, ...]


def _in_period(row: AnyRecord, period: str) -> bool:
    first, _, last = period.partition("..")
    return row.time >= first and (not last or row.time[: len(last)] <= last)


def _of_commit(row: AnyRecord, start: str) -> bool:
    """Whether the code that was measured, an application's or else the suite's, is of the commit."""
    application = row.variant.application
    return ((application.commit if application else row.suite.commit) or "").startswith(start)


KINDS = {
    "stack": Kind(lambda row, value: row.stack.name == value, ("stack",)),
    "site": Kind(lambda row, value: row.site == value, ("site", "partition")),
    "partition": Kind(lambda row, value: f"{row.site}:{row.partition}" == value, ("site", "partition")),
    "node": Kind(lambda row, value: value in row.nodes, ()),
    "campaign": Kind(lambda row, value: (row.campaign or "").startswith(value), ()),
    "commit": Kind(_of_commit, ()),
    "version": Kind(lambda row, value: row.stack.mpi.version == value, ("stack",)),
    "period": Kind(_in_period, ()),
    "placement": Kind(lambda row, value: row.placement.name == value, ("placement",)),
}
#: a tag of this checkout stands for its commit
TAG = "tag"


@dataclass(frozen=True)
class Side:
    """``name`` as it was given, and the conditions that all hold for its records."""

    name: str
    conditions: tuple[tuple[str, str], ...]

    def has(self, row: AnyRecord) -> bool:
        """Whether a record is on this side."""
        return all(KINDS[kind].has(row, value) for kind, value in self.conditions)


def side_of(text: str, rows: Sequence[AnyRecord]) -> Side:
    """The side that ``text`` names: ``KIND=VALUE[,KIND=VALUE…]``, a period ``FROM..TO``, or a value alone.

    A value alone is looked for among the ``rows``: it must be the stack, site, partition, campaign, and so on, of some,
    and of one kind only. Raises :class:`PlumbError` for a condition that cannot be read, and for a side without
    records.
    """
    side = Side(text, tuple(_condition(part, text, rows) for part in text.split(",")))
    if not any(side.has(row) for row in rows):
        raise PlumbError(f"no valid record is of side '{text}'", "plumb compare", "plumb list shows what there is")
    return side


def _condition(part: str, text: str, rows: Sequence[AnyRecord]) -> tuple[str, str]:
    kind, equals, value = part.partition("=")
    if equals:
        if kind not in (*KINDS, TAG) or not value:
            cure = f"KIND=VALUE of {', '.join((*KINDS, TAG))}"
            raise PlumbError(f"'{part}' is not a condition", f"plumb compare {text}", cure)
        return ("commit", _commit(value)) if kind == TAG else (kind, value)
    if ".." in part:
        return "period", part
    # a commit and a campaign need at least 6 characters
    guessed = ["stack", "site", "partition", "node", *(["campaign", "commit"] if len(part) >= 6 else [])]
    kinds = [name for name in guessed if any(KINDS[name].has(row, part) for row in rows)]
    if len(kinds) != 1:
        known = {row.stack.name for row in rows} | {row.site for row in rows}
        fault = "is not a stack, site, partition, node, campaign or commit here"
        cure = suggest(part, known, "plumb list shows what there is")
        if kinds:
            fault, cure = f"is a {' and a '.join(kinds)}", f"write {kinds[0]}={part}"
        raise PlumbError(f"'{part}' {fault}", "plumb compare", cure)
    return kinds[0], part


def _commit(tag: str) -> str:
    commit = git.commit(f"refs/tags/{tag}")
    if commit is None:
        raise PlumbError(f"'{tag}' is not a tag of this checkout", "plumb compare", "git tag lists them")
    return commit


def _free(sides: Sequence[Side]) -> set[str]:
    """The members of a row's key in which the sides may differ, because their conditions do."""
    return {
        member
        for side in sides
        for condition in side.conditions
        if any(condition not in another.conditions for another in sides)
        for member in KINDS[condition[0]].members
    }


@dataclass(frozen=True, order=True)
class Key:
    """The identity of a line. Members in which the sides differ are empty.

    ``variant`` has the arguments in which variants of one name differ. ``unit`` is what multiples of it are compared
    in: 5 GB/s and 5000 MB/s are of one line.
    """

    test: str
    variant: str
    placement: str
    figure: str
    site: str
    partition: str
    stack: str
    unit: str
    better: Better


@dataclass(frozen=True)
class Cell:
    """The value of a side: ``value`` is the median over ``sessions`` of the medians of their launches.

    ``records`` are their ids, oldest first. ``step`` is how finely the figures are known. ``names`` are the sessions: a
    session of both sides measured them in turn, launch by launch.
    """

    value: float
    records: tuple[str, ...]
    sessions: tuple[tuple[float, ...], ...]
    disturbed: int
    launches: int
    step: float
    names: tuple[str, ...]

    @property
    def is_disturbed(self) -> bool:
        """Whether half of its launches, or more, were disturbed."""
        return 0 < self.launches <= 2 * self.disturbed

    @property
    def has_ratio(self) -> bool:
        """Whether its figures have a ratio to others: none is 0."""
        return all(value > 0 for samples in self.sessions for value in samples)


@dataclass(frozen=True)
class Line:
    """A figure on all sides. ``cells`` and ``differences`` are in the order of the sides, None where a side lacks it.

    ``differences`` are to the first side that has it, None too where a figure is 0; ``claimed`` says which of them may
    be claimed. ``best`` has the sides that are worse than no other, if some side is worse than another; otherwise it is
    empty. ``doubtful``: other tests contradict a figure of it, so nothing is compared.
    """

    key: Key
    unit: str
    better: Better
    cells: tuple[Cell | None, ...]
    differences: tuple[unpaired.Difference | None, ...]
    claimed: tuple[bool, ...]
    best: tuple[int, ...]
    doubtful: bool = False


@dataclass(frozen=True)
class Comparison:
    """``circumstances``: what else differs between the sides, with each side's values.

    ``spread``: how much sessions are taken to differ where a side has few (standard deviation of logarithms).
    ``alone``: how many figures only one side has; ``unlike`` names those of them that several sides have, in units
    that are not multiples of one another, with other directions or with other arguments. ``more`` is how many sessions
    a side lacks, if it can have more.
    """

    sides: tuple[str, ...]
    lines: tuple[Line, ...]
    circumstances: tuple[tuple[str, tuple[str, ...]], ...]
    alone: int
    spread: float
    unlike: tuple[str, ...] = ()
    more: int = 0


def compare(
    rows: Sequence[AnyRecord],
    sides: Sequence[Side],
    all_figures: bool = False,
    doubtful: Collection[tuple[str, str]] = (),
) -> Comparison:
    """Compare ``sides`` over valid ``rows``: a line for each figure that at least two of them have.

    Without ``all_figures`` only the first figure of each test counts. ``doubtful`` has ids of records and names of
    figures that others contradict (:mod:`plumbline.judge.agreement`).
    """
    loose = _free(sides)
    chosen = [[row for row in rows if side.has(row)] for side in sides]
    call = naming.naming(row.variant for side_rows in chosen for row in side_rows)
    measured = group(
        (_key(row, figure, loose, call(row.variant)), (number, row, figure))
        for number, side_rows in enumerate(chosen)
        for row in side_rows
        for figure in (row.figures if all_figures else row.figures[:1])
    )
    on_sides = {
        key: [[item for item in entries if item[0] == side] for side in range(len(sides))]
        for key, entries in measured.items()
    }
    shared = sorted(key for key, every in on_sides.items() if sum(map(bool, every)) > 1)
    named = group(
        (replace(key, variant=naming.name(entries[0][1].variant), unit="", better="lower"), key)
        for key, entries in measured.items()
    )
    unlike = [[key for key in keys if key not in shared] for keys in named.values()]
    spread = session_spread(rows)
    lines = tuple(judged([(key, *_cells(on_sides[key], key.unit)) for key in shared], doubtful, spread))
    fewest = min((len(cell.sessions) for line in lines for cell in line.cells if cell), default=unpaired.ENOUGH)
    can_grow = not any(kind in ("campaign", "period") for side in sides for kind, _ in side.conditions)
    return Comparison(
        tuple(side.name for side in sides),
        lines,
        tuple(_circumstances(chosen, loose)),
        len(measured) - len(shared),
        spread,
        tuple(
            " and ".join(f"{key.variant} {key.figure} ({key.unit}, {key.better} is better)" for key in keys)
            for keys in unlike
            if len({number for key in keys for number, *_ in measured[key]}) > 1
        ),
        max(unpaired.ENOUGH - fewest, 0) if can_grow else 0,
    )


def difference(first: Cell, second: Cell, better: Better, tests: int, spread: float) -> unpaired.Difference:
    """The difference of two cells without a figure of 0, as one of ``tests``.

    Disturbance makes slower: a side that is worse from few sessions, and alone was disturbed, shows nothing.
    """
    steps = (first.step, second.step)
    between = unpaired.compare(first.sessions, second.sessions, steps, tests, spread, _pairs(first, second))
    worse, other_side = (second, first) if (between.ratio > 1) == (better == "lower") else (first, second)
    explained = between.basis == "launches" and worse.is_disturbed and not other_side.is_disturbed
    return replace(between, p=1.0) if explained else between


def _pairs(first: Cell, second: Cell) -> list[float]:
    """The ratios (logarithms) of launches that were measured in turn: those of one number in one session."""
    counterparts = dict(zip(second.names, second.sessions, strict=True))
    return [
        math.log(later / earlier)
        for name, samples in zip(first.names, first.sessions, strict=True)
        if len(counterparts.get(name, ())) == len(samples)
        for earlier, later in zip(samples, counterparts[name], strict=True)
    ]


def session_spread(rows: Sequence[AnyRecord]) -> float:
    """How much sessions of the machine of ``rows`` differ, by the series of all its figures."""
    series = group(
        (
            (row.site, row.partition, row.stack.name, row.variant.name, figure.name, *row.nodes),
            (row.session, figure.value),
        )
        for row in rows
        for figure in row.figures
        if figure.value > 0
    )
    medians = (group(values).values() for values in series.values())
    return unpaired.session_spread([statistics.median(session) for session in sessions] for sessions in medians)


def _key(row: AnyRecord, figure: Figure, loose: set[str], called: str) -> Key:
    known = {"site": row.site, "partition": row.partition, "stack": row.stack.name}
    kept = {member: "" if member in loose else value for member, value in known.items()}
    unit, _ = multiple(figure.unit)
    placed = naming.placement(row.placement)
    if "placement" in loose:
        # without one nothing is bound, and memory is where it was first touched: the own node's where ranks are bound
        placed = placed.partition(" ")[2].removesuffix(" local").removesuffix(" firsttouch")
    return Key(row.variant.test, called, placed, figure.name, **kept, unit=unit, better=figure.better)


def _cells(by_side: list[list[Measured]], unit: str) -> tuple[str, tuple[Cell | None, ...]]:
    """The unit of a line, ``unit`` if the figures have several, and what each side measured in it."""
    units = {figure.unit for side in by_side for *_, figure in side}
    shown = units.pop() if len(units) == 1 else unit
    return shown, tuple(cell([measured for _, *measured in side], shown) if side else None for side in by_side)


def cell(measured: Sequence[Sequence[Any]], unit: str) -> Cell:
    """The cell of (record, figure) pairs of one kind, in ``unit``."""
    factors = [1.0 if figure.unit == unit else multiple(figure.unit)[1] for _, figure in measured]
    sessions = group(
        (row.id if row.is_imported else row.session, sample * factor)
        for (row, figure), factor in zip(measured, factors, strict=True)
        for sample in figure.samples
    )
    return Cell(
        float(statistics.median(map(statistics.median, sessions.values()))),
        tuple(row.id for row, _ in measured),
        tuple(tuple(samples) for samples in sessions.values()),
        sum(row.disturbed_count for row, _ in measured),
        sum(row.launch_count for row, _ in measured),
        step_of((figure, factor) for (_, figure), factor in zip(measured, factors, strict=True)),
        tuple(sessions),
    )


def judged(
    measured: Sequence[tuple[Key, str, tuple[Cell | None, ...]]],
    doubtful: Collection[tuple[str, str]],
    spread: float,
) -> list[Line]:
    """The lines with what may be claimed: every pair of sides of every line is a hypothesis of one family."""
    unsure = [
        any((record, key.figure) in doubtful for cell in cells if cell for record in cell.records)
        for key, _, cells in measured
    ]
    couples = [
        (number, i, j, first, second)
        for number, (_, _, cells) in enumerate(measured)
        if not unsure[number]
        for (i, first), (j, second) in itertools.combinations(enumerate(cells), 2)
        if first and second and first.has_ratio and second.has_ratio
    ]
    differences = [
        difference(first, second, measured[number][0].better, len(couples), spread)
        for number, _, _, first, second in couples
    ]
    kept = holm(np.array([between.p for between in differences]), len(couples), unpaired.ERROR)
    claims = group(
        (number, ((i, j), (between, bool(is_claimed))))
        for (number, i, j, *_), between, is_claimed in zip(couples, differences, kept, strict=True)
    )
    return [_line(*entry, dict(claims.get(number, ())), unsure[number]) for number, entry in enumerate(measured)]


def _line(key: Key, unit: str, cells: tuple[Cell | None, ...], pairs: Pairs, doubtful: bool) -> Line:
    first = next(number for number, cell in enumerate(cells) if cell)
    to_first = [pairs.get((first, number), (None, False)) for number in range(len(cells))]
    worse = {
        i if (between.ratio > 1) == (key.better == "higher") else j
        for (i, j), (between, is_claimed) in pairs.items()
        if is_claimed
    }
    best = tuple(
        number for number in sorted({side for pair in pairs for side in pair}) if worse and number not in worse
    )
    differences, claimed = zip(*to_first, strict=True)
    return Line(key, unit, key.better, cells, differences, claimed, best, doubtful)


def _circumstances(chosen: list[list[AnyRecord]], loose: set[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Facts of the hosts, versions and the suite that are not the same on all sides, and periods that do not meet."""
    sides = [_facts(rows) for rows in chosen]
    names = sorted({name for facts in sides for name in facts})
    if "stack" in loose:
        names = [name for name in names if not name.startswith("stack ")]
    circumstances = [(name, tuple(", ".join(sorted(facts.get(name, {"–"}))) for facts in sides)) for name in names]
    differing = [(name, values) for name, values in circumstances if len(set(values)) > 1]
    spans = [(min(row.time for row in rows), max(row.time for row in rows)) for rows in chosen if rows]
    if any(earlier[1] < later[0] for earlier, later in itertools.permutations(spans, 2)):
        # one side was measured before another: what changed with time is in the difference
        periods = tuple(" to ".join(map(minute, span)) for span in spans)
        differing.insert(0, ("measured (UTC)", periods))
    return differing


def _facts(rows: list[AnyRecord]) -> dict[str, set[str]]:
    facts = (
        {
            "provenance": row.provenance,
            "suite commit": (row.suite.commit or "unknown")[:12],
            f"stack {row.stack.name}": f"{row.stack.mpi.family} {row.stack.mpi.version}",
            **{name: str(value) for name, value in row.host.items() if name not in FLEETING and value is not None},
        }
        for row in rows
    )
    return {name: set(values) for name, values in group(item for known in facts for item in known.items()).items()}
