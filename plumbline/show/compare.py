"""Figures of several stacks, systems, campaigns, commits or periods in one table, by records that were not paired.

A comparison is shown as a text, Markdown, CSV, JSON or a page. So is the best hybrid code against the best pure MPI
code on the same nodes, as a text or a section of a report.
"""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from operator import attrgetter
from types import MappingProxyType

from plumbline.base import group, table, units
from plumbline.judge.compare import MEMBERS, Comparison, Line
from plumbline.judge.hybrid import FEW, HYBRID, MPI, NONE, Verdict, how, notes, verdicts
from plumbline.records import naming
from plumbline.records.model import AnyRecord, Record
from plumbline.show.columns import Column, Table
from plumbline.show.pages import render
from plumbline.show.pages.blocks import Block, Piece, absent, block, link, section
from plumbline.statistics import unpaired

#: said where a campaign has no pure MPI code
NOTHING = (
    "the records have hybrid codes but no pure MPI code: reframe -c reframe-tests -r -S profile=full -n jacobi_modes"
)
#: figures that are not compared, of which the legend tells
NAMED = 3
#: characters of a circumstance that a text shows
WIDTH = 40
#: of more sides than this the closing line says in how many figures each is best
IN_WORDS = 3
#: a ratio from which a difference is named apart from smaller ones
CLEAR = 2.0


def document(comparison: Comparison) -> Block:
    """The page of a comparison."""
    differs = section(
        "differs",
        "What differs too",
        "Circumstances that are not the same on all sides, besides what the sides were chosen by.",
        circumstances(comparison).block(comparison.circumstances),
    )
    figured = section(
        "figures",
        "Figures",
        "The median over the sessions of each side, and its ratio to the first side that has the figure.",
        *figures(comparison),
    )
    return {
        "title": f"Comparison: {', '.join(comparison.sides)}",
        "head": [block("paragraph", closing(comparison), id="closing")],
        "sections": [differs, figured] if comparison.circumstances else [figured],
    }


def circumstances(comparison: Comparison) -> Table[tuple[str, Sequence[str]]]:
    """What differs besides what the sides were chosen by."""
    return Table(
        "What differs too",
        [
            Column("differs too", lambda row: row[0]),
            *(
                Column(
                    name, partial(_circumstance, side, WIDTH), "notes", page=partial(_circumstance, side, sys.maxsize)
                )
                for side, name in enumerate(comparison.sides)
            ),
        ],
    )


def _circumstance(side: int, width: int, row: tuple[str, Sequence[str]]) -> str:
    return naming.shorten(row[1][side], width)


def figures(comparison: Comparison, entries: Mapping[str, int] = MappingProxyType({})) -> list[Piece]:
    """Each figure on each side, below what the marks mean; a value opens its record, if that is among ``entries``."""
    return [block("bullets", *legend(comparison)), figures_table(comparison, entries).block(comparison.lines)]


def figures_table(comparison: Comparison, entries: Mapping[str, int] = MappingProxyType({})) -> Table[Line]:
    """A line for each figure with a column for each side; a value opens its record, if that is among ``entries``."""
    # a member that is the same in all lines has no column
    names = [name for name in MEMBERS if len({getattr(line.key, name) for line in comparison.lines}) > 1]
    return Table(
        "Figures by side",
        [
            Column("test", lambda line: line.key.variant, "test"),
            Column("placement", lambda line: line.key.placement),
            *(Column(name, attrgetter(f"key.{name}")) for name in names),
            Column("figure", lambda line: line.key.figure),
            Column("unit", lambda line: _scale(line)[1]),
            Column("better", lambda line: line.better, forms="page"),
            *(
                Column(name, partial(_cell, side), "number", page=partial(_cell_of_page, side, entries))
                for side, name in enumerate(comparison.sides)
            ),
        ],
    )


def _scale(line: Line) -> tuple[float, str]:
    return units.scale(max(known.value for known in line.cells if known), line.unit)


def _cell(side: int, line: Line, entries: Mapping[str, int] = MappingProxyType({})) -> Piece:
    """The value of a side, marked if it is the best, and its ratio."""
    known, (factor, _) = line.cells[side], _scale(line)
    if known is None:
        return None
    shown = link(units.digits(known.value / factor, known.step / factor), entry=entries.get(known.records[-1]))
    best = [block("glyph", "★ ", title="best"), block("strong", shown)] if side in line.best else [shown]
    return [*best, *([block("small", text)] if (text := ratio(line, side)) else [])]


def _cell_of_page(side: int, entries: Mapping[str, int], line: Line) -> Piece:
    """The same, and how many sessions and launches it rests on, where no record is on the page."""
    known, cell = line.cells[side], _cell(side, line, entries)
    if known is None or entries:
        return cell
    disturbed = f", {known.disturbed} disturbed" if known.disturbed else ""
    basis = f"{units.counted(len(known.sessions), 'session')}, {units.counted(known.launches, 'launch')}{disturbed}"
    return [cell, block("small", basis)]


def closing(comparison: Comparison) -> str:
    """The answer in a line: in how many figures each side is worse than the first, and by how much.

    Of many sides: in how many figures each alone is best.
    """
    alone = f"; {units.counted(comparison.alone, 'figure')} of one side only" if comparison.alone else ""
    if len(comparison.sides) <= IN_WORDS:
        return (
            "; ".join(text for side in range(1, len(comparison.sides)) for text in _against(comparison, side))
            + _firm(comparison)
            + alone
        )
    best = [sum(line.best == (number,) for line in comparison.lines) for number in range(len(comparison.sides))]
    counts = [f"{name} best in {count}" for name, count in zip(comparison.sides, best, strict=True)]
    none = sum(len(line.best) != 1 for line in comparison.lines)
    return f"{units.counted(len(comparison.lines), 'figure')}: {', '.join(counts)}, no single best in {none}{alone}"


def _against(comparison: Comparison, side: int) -> list[str]:
    """A side against each one before it that is the first with some of its figures."""
    shared = group((_first(line), line) for line in comparison.lines if line.cells[side] and _first(line) < side)
    return [
        _counts(comparison.sides[side], comparison.sides[first] if len(comparison.sides) > 2 else "", side, lines)
        for first, lines in sorted(shared.items())
    ]


def _counts(name: str, first: str, side: int, lines: Sequence[Line]) -> str:
    """``mpich is slower in 10 of 15 figures (8 of them 2.20 to 6.97 times), faster in 1, 4 undecided``."""
    factors = [
        difference.ratio ** (1 if line.better == "lower" else -1)
        for line in lines
        if (difference := line.differences[side]) and line.claimed[side]
    ]
    if not factors:
        against = first and f" against {first}"
        return f"{name}{against}: {len(lines)} of {units.counted(len(lines), 'figure')} undecided"
    slower, faster = (sorted(number for number in sizes if number > 1) for sizes in (factors, [1 / x for x in factors]))
    speeds = all(units.is_measured(line.unit, ()) for line in lines)
    ways = ((slower, "slower" if speeds else "worse"), (faster, "faster" if speeds else "better"))
    (most, way), (rest, contrary) = sorted(ways, key=lambda way: -len(way[0]))
    clear = [factor for factor in most if factor >= CLEAR] or most
    some = f"{len(clear)} of them " if len(clear) < len(most) else ""
    ends = " to ".join(dict.fromkeys(f"{factor:.2f}" for factor in (*clear[:1], *clear[-1:])))
    return (
        f"{name} is {way}{first and f' than {first}'} in {len(most)} of {units.counted(len(lines), 'figure')}"
        f"{ends and f' ({some}{ends} times)'}, {contrary} in {len(rest)}, {len(lines) - len(factors)} undecided"
    )


def _firm(comparison: Comparison) -> str:
    """How many campaigns would do without assumptions on sessions; empty where none is needed, or can be."""
    if not comparison.more:
        return ""
    verb = "make" if comparison.more > 1 else "makes"
    aim = f"{verb} it firm" if any(any(line.claimed) for line in comparison.lines) else "can decide more"
    return f"; {['one', 'two'][comparison.more - 1]} more {'campaigns' if comparison.more > 1 else 'campaign'} {aim}"


def _first(line: Line) -> int:
    return next(number for number, cell in enumerate(line.cells) if cell)


def why(comparison: Comparison) -> str | None:
    """The command that looks for the cause of the largest difference that is claimed; None where none is."""
    claims = [
        (abs(math.log(difference.ratio)), line, number)
        for line in comparison.lines
        for number, (difference, known) in enumerate(zip(line.differences, line.claimed, strict=True))
        if known and difference and difference.ratio > 0 and line.key.site
    ]
    if not claims:
        return None
    _, line, number = max(claims, key=lambda claim: claim[0])
    first, candidate = line.cells[_first(line)], line.cells[number]
    ids = [cell.records[-1] for cell in (first, candidate) if cell]
    return f"the cause of the largest difference: plumb why {' '.join(ids)} --figure {shlex.quote(line.key.figure)}"


def legend(comparison: Comparison) -> list[str]:
    """The meaning of the marks of the table, and how small a difference would have been seen."""
    differences = [
        (difference, known)
        for line in comparison.lines
        for difference, known in zip(line.differences, line.claimed, strict=True)
        if difference
    ]
    bases = {difference.basis for difference, _ in differences}
    unseen = sorted(difference.visible or math.inf for difference, known in differences if not known)
    visible = unseen[len(unseen) // 2] if unseen else None
    zero = sum(any(cell and not cell.has_ratio for cell in line.cells) for line in comparison.lines)
    unsure = sum(line.doubtful for line in comparison.lines)
    lines = [
        "ratio to the first side with the figure [interval]; ?: undecided; ★: best: none is better, some is worse",
        "launches" in bases
        and f"~: from fewer than {unpaired.ENOUGH} sessions of a side, which are taken to differ by "
        f"{100 * comparison.spread:.2g} % (standard deviation): only what exceeds this by far is "
        "decided; the interval is from launch to launch",
        "pairs" in bases
        and "=: measured in turn in one session: the ratio of its pairs of launches, and its 95 % interval",
        any(map(_is_disturbed, comparison.lines))
        and "†: half or more of the launches of a side were disturbed; if only the worse side's, undecided",
        visible == math.inf
        and f"most undecided figures have fewer than {unpaired.ENOUGH} launches on a side, which show nothing",
        visible is not None
        and visible < math.inf
        and f"where it is undecided, {units.percent(visible - 1)} would have been seen in every second case (median)",
        zero and f"{units.counted(zero, 'line')} with a figure of 0: it has no ratio, and no claim is made",
        unsure and f"!: tests that measure the same quantity disagree ({units.counted(unsure, 'line')}): not compared",
        comparison.unlike and f"not compared, for unit, direction or arguments differ: {unlike(comparison)}",
        "records of different sessions are not pairs: plumb gate decides what a change must not cost",
    ]
    return [line for line in lines if isinstance(line, str)]


def unlike(comparison: Comparison) -> str:
    """The figures that are not compared although several sides have them; the first :data:`NAMED` of them."""
    more = len(comparison.unlike) - NAMED
    return "; ".join(comparison.unlike[:NAMED]) + (f"; and {more} more" if more > 0 else "")


def _is_disturbed(line: Line) -> bool:
    return any(known and known.basis != "sessions" for known in line.differences) and any(
        cell and cell.is_disturbed for cell in line.cells
    )


def ratio(line: Line, side: int) -> str:
    """``~0.870 [0.850 to 0.900]†?``: the marks that :func:`legend` explains; ``!`` alone: a doubtful line."""
    difference = line.differences[side]
    if difference is None:
        return "!" if line.doubtful else ""
    weak = {"sessions": "", "launches": "~", "pairs": "="}[difference.basis]
    both = (line.cells[_first(line)], line.cells[side])
    disturbed = "†" if weak and any(cell and cell.is_disturbed for cell in both) else ""
    unknown = disturbed + ("" if line.claimed[side] else "?")
    bounded = difference.low is not None and difference.high is not None
    interval = f" [{units.interval((difference.low, difference.high))}]" if bounded else ""
    return f"{weak}{units.ratio(difference.ratio)}{interval}{unknown}"


def text(comparison: Comparison) -> str:
    """Circumstances that differ, the table, what its marks mean, and the closing line."""
    blocks = [
        circumstances(comparison).text(comparison.circumstances) if comparison.circumstances else "",
        figures_table(comparison).text(comparison.lines),
        "\n".join(legend(comparison)),
        why(comparison),
        closing(comparison),
    ]
    return "\n\n".join(filter(None, blocks))


def markdown(comparison: Comparison) -> str:
    """The table and the closing line for a page or a merge request."""
    lines = [
        figures_table(comparison).markdown(comparison.lines),
        "",
        *(f"{line}  " for line in legend(comparison)),
        "",
        f"**{closing(comparison)}**",
    ]
    return "\n".join(lines)


def as_csv(comparison: Comparison) -> str:
    """A row for each figure and side; ratios are to the first side that has the figure."""
    rows = [
        {
            "test": line.key.variant,
            **{name: getattr(line.key, name) for name in ("placement", "figure", "site", "partition", "stack")},
            "unit": line.unit,
            "better": line.better,
            "side": side,
            "value": cell.value,
            "sessions": len(cell.sessions),
            **{name: getattr(known, name) if known else "" for name in ("ratio", "low", "high", "basis")},
            "claimed": bool(line.claimed[number]),
            "best": number in line.best,
        }
        for line in comparison.lines
        for number, (side, cell, known) in enumerate(zip(comparison.sides, line.cells, line.differences, strict=True))
        if cell
    ]
    return table.as_csv(rows[0], (row.values() for row in rows)).rstrip("\n")


def as_json(comparison: Comparison) -> str:
    """The whole comparison."""
    return json.dumps(asdict(comparison), indent=1)


def of(comparison: Comparison) -> dict[str, Callable[[], str]]:
    """The function that makes the text of a file, by its ending."""
    return {ending: lambda make=make: f"{make(comparison)}\n" for ending, make in FORMS.items()}  # type: ignore[misc]


FORMS: dict[str, Callable[[Comparison], str]] = {
    ".csv": as_csv,
    ".html": lambda comparison: render(document(comparison)),
    ".json": as_json,
    ".md": markdown,
    ".txt": text,
}


def hybrids_text(compared: Sequence[Verdict]) -> str:
    """The table with its notes and a closing line."""
    if not compared:
        return NOTHING
    counted = Counter(verdict.state for verdict in compared)
    closing = ", ".join(f"{counted[word]} {word}" for word in (HYBRID, MPI, NONE, FEW) if counted[word])
    return "\n".join([_hybrids().text(compared), *notes(compared), "", closing])


def _hybrids(numbers: Mapping[str, int] = MappingProxyType({})) -> Table[Verdict]:
    """A line for each verdict; a code opens its record, whose entry is among ``numbers``."""

    def code(record: AnyRecord) -> Piece:
        return [link(how(record), entry=numbers.get(record.id)), block("small", " ".join(record.figures[0].shown))]

    return Table(
        "Best against best",
        [
            Column("test", lambda verdict: verdict.subject),
            Column("stack", lambda verdict: verdict.pure.stack.name),
            Column("best hybrid", lambda verdict: code(verdict.hybrid)),
            Column("best pure MPI", lambda verdict: code(verdict.pure)),
            Column("hybrid / pure", lambda verdict: units.ratio(verdict.ratio), "number"),
            Column("95 % interval", lambda verdict: units.interval(verdict.interval), "number"),
            Column("verdict", lambda verdict: verdict.explanation),
        ],
    )


def hybrids(usable: Sequence[tuple[Record, int]]) -> Block:
    """The verdicts of the valid records ``usable``, each with the number of its entry."""
    compared = verdicts([record for record, _ in usable])
    return section(
        "hybrids",
        "Hybrid or pure MPI",
        "The best hybrid code against the best pure MPI code, of one problem on the same nodes.",
        compared and block("bullets", *notes(compared)),
        compared and _hybrids({record.id: entry for record, entry in usable}).block(compared),
        otherwise=absent("reframe -c reframe-tests -r -S profile=full -n jacobi_modes"),
    )
