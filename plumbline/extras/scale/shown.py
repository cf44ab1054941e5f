"""A scaling curve for people and programs: table, reasons, best numbers, page, JSON and CSV."""

from __future__ import annotations

import itertools
import json
import math
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from plumbline.base import table, terminal, units
from plumbline.extras.scale import bends, curve, measured, points
from plumbline.extras.scale.bends import Account
from plumbline.extras.scale.curve import Curve, Interval
from plumbline.extras.scale.measured import Measured, Scaling
from plumbline.host import machine
from plumbline.show.columns import Column, Table
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, block, section

#: part of the rate of all cores of an L3 cache, NUMA node, socket or node, from which on fewer saturate it
SATURATED = 0.95
#: characters of a line of sentences, where nothing else is known
WIDTH = 110
#: the last line on a program that works with one thread whatever it is given
UNUSED = "1 thread worked at each point: this program does not use the threads that it is given; best: 1 thread"


@dataclass(frozen=True)
class Row:
    """A point as it is shown; ``gained``: of the cores that were added, the share that the step to it gained.

    ``threads`` are those of each of ``count`` ranks, where they share a number of cores; else 0. ``common`` is the
    efficiency at the clock that this point had, where clocks are known. ``memory``: the part of the bandwidth that its
    cores reach, where it is known.
    """

    count: int
    threads: int = 0
    fills: str = ""
    value: str = ""
    speedup: Interval | None = None
    efficiency: Interval | None = None
    gained: Interval | None = None
    busy: float | None = None
    cpu: float | None = None
    ghz: float = 0.0
    common: Interval | None = None
    memory: float = 0.0
    beside: Mapping[str, float] = field(default_factory=dict)
    fault: str = ""


@dataclass(frozen=True)
class Result:
    """A curve with all that is said of it."""

    scaling: Scaling
    curve: Curve
    rows: list[Row]
    lines: list[str]
    last: str


def result(scaling: Scaling, launches: Sequence[Measured], ended: str, bound: float) -> Result:
    """The result of ``launches``; ``bound`` is the least efficiency for core hours."""
    launches = measured.proven(scaling, launches)
    faults, accounts = measured.faults(scaling, launches), measured.accounts(launches)
    known = measured.curve_of(scaling, launches)
    starts = points.starts(scaling.counts, machine.load()) if scaling.placement else {}
    before = {place: than for than, place in itertools.pairwise(known.measured)}
    rows = [
        _row(scaling, known, accounts, place, before.get(place)) if place in known.measured else Row(count)
        for place, count in enumerate(scaling.counts)
    ]
    rows = [
        replace(
            row, fills=starts.get(row.count, ""), fault=faults.get(place, ""), threads=scaling.cores // row.count,
            beside=measured.beside(launches, place),
        )
        for place, row in enumerate(rows)
    ]  # fmt: skip
    if not known.measured:
        return Result(scaling, known, rows, [], "no point has a value")
    alone = len(accounts) > 1 and all(each.spent["threads"] <= 1 and each.is_listed for each in accounts.values())
    lines = [] if scaling.cores else [
        *_remarks(scaling, known, rows), *_bends(scaling, known, accounts, before),
        *_saturated(known, starts),
    ]  # fmt: skip
    lines += _failed(scaling, known, launches)
    if len(known.measured) > 2 and not scaling.cores:
        law, why = known.law()
        lines += [_law(law, known) if law else why]
    lines += [f"{ended}; {units.counted(len(launches), 'launch')}"]
    last = UNUSED if scaling.placement and alone else _best(known, scaling, bound)
    return Result(scaling, known, rows, lines, last)


def _row(scaling: Scaling, known: Curve, accounts: Mapping[int, Account], place: int, before: int | None) -> Row:
    count = scaling.counts[place]
    values = known.values[place][np.isfinite(known.values[place])]
    row = Row(
        count,
        value=measured.shown(scaling, float(np.median(values)), known.step(place)),
        speedup=known.speedup(place),
        efficiency=known.efficiency(place),
        gained=None if before is None or scaling.cores else _gained(known, place, before),
    )
    if not {place, known.base} <= accounts.keys():
        return row
    account, first = accounts[place], accounts[known.base]
    grown = count / scaling.counts[known.base] if scaling.weak else 1.0
    workers = count if scaling.kind == "threads" else account.spent.get("workers", count)
    busy, cpu = account.cpu_s / account.wall_s / workers, account.cpu_s / first.cpu_s / grown
    row = replace(row, busy=busy, cpu=cpu, memory=account.spent.get("memory", 0.0))
    if account.ghz and first.ghz and row.efficiency:
        row = replace(row, ghz=account.ghz, common=row.efficiency.times(first.ghz / account.ghz))
    return row


def _remarks(scaling: Scaling, known: Curve, rows: Sequence[Row]) -> Iterator[str]:
    if scaling.counts[known.base] != scaling.counts[0]:
        yield f"no value with {scaling.label(0)}: all is compared with {scaling.label(known.base)}"
    if above := [row.count for row in rows if row.efficiency and row.efficiency.low > 1]:
        yield f"{above[0]} {scaling.kind} do better than in proportion: caches, most likely"


def _failed(scaling: Scaling, known: Curve, launches: Sequence[Measured]) -> Iterator[str]:
    """The points of which some launches have a value, and others have none."""
    for place in known.measured:
        mine = [launch for launch in launches if launch.place == place]
        if reasons := [launch.reason for launch in mine if launch.reason]:
            lost = f"{len(reasons)} of {units.counted(len(mine), 'launch')} had no value"
            yield f"{scaling.label(place)}: {lost}, the last: {reasons[-1]}"


def _bends(scaling: Scaling, known: Curve, accounts: Mapping[int, Account], before: Mapping[int, int]) -> list[str]:
    """A line for each step that surely loses."""
    kept = {place: known.efficiency(place, than) for place, than in before.items()}
    steps = bends.steps(
        scaling.counts, {place: each.value for place, each in kept.items()}, accounts, scaling.weak, scaling.kind
    )
    sure = {scaling.counts[place] for place, each in kept.items() if each.high < 1 - bends.BEND}
    return [bends.sentence(step) for step in steps if step.after in sure]


def _saturated(known: Curve, starts: Mapping[int, str]) -> Iterator[str]:
    """A line for each part of the machine that fewer threads than its cores surely saturate."""
    for place in (each for each in known.measured if known.counts[each] in starts):
        least = next(each for each in known.measured if each == place or known.ratio(each, place).low >= SATURATED)
        if known.counts[least] < known.counts[place]:
            part = f"{starts[known.counts[place]]} ({known.counts[place]} cores)"
            yield f"{part} is saturated: {known.counts[least]} threads have at least {SATURATED:.0%} of its rate"


def _gained(known: Curve, place: int, before: int) -> Interval:
    grown = known.counts[place] / known.counts[before]
    kept = known.efficiency(place, before)
    return Interval(*((each * grown - 1) / (grown - 1) for each in (kept.value, kept.low, kept.high)))


def _law(law: curve.Law, known: Curve) -> str:
    names = {"a": "serial share" if len(law.parameters) == 1 else "contention", "b": "coherency"}
    parts = [
        f"{names[key]} {min(each.value, 1):.2%} ({max(each.low, 0):.2%} to {min(each.high, 1):.2%})"
        for key, each in law.parameters.items()
    ]
    further = law.efficiency(2 * known.counts[-1] / known.counts[known.base])
    double = f"by it {2 * known.counts[-1]} would have efficiency {further:.2f} (not measured)"
    return f"{law.name}'s law fits: {', '.join(parts)}; {double}"


def _best(known: Curve, scaling: Scaling, bound: float) -> str:
    fast, undecided = curve.fastest(known)
    if len(known.measured) < 2:
        return f"no best number: only {scaling.label(known.base)} has a value"
    lean, also = curve.most_efficient(known, bound)
    count = scaling.counts
    time = f"best for time: {scaling.label(fast)}"
    if undecided:
        time += f" ({', '.join(str(count[place]) for place in sorted({*undecided}))} not told apart)"
    if scaling.cores:
        return f"{time}, of {scaling.cores} cores"
    hours = f"none is surely above efficiency {bound:g}" if lean is None else (
        f"for core hours (efficiency {bound:g} or more): {count[lean]}"
    )  # fmt: skip
    hours += f" ({', '.join(str(count[place]) for place in also)} not decided: more --rounds)" if also else ""
    return f"{time}; {hours}"


def _interval(each: Interval | None, form: str = ".2f") -> str:
    if each is None:
        return ""
    return (
        f"{each.value:{form}}"
        if each.low == each.high or math.isinf(each.high)  # too few rounds for an interval
        else f"{each.value:{form}} ({each.low:{form}} to {each.high:{form}})"
    )


POINTS = Table[Row](
    "Scaling",
    [
        Column("n", lambda row: f"{row.count} x {row.threads}" if row.threads else str(row.count), "number", head=True),
        Column("fills", lambda row: row.fills, spare=1),
        Column("value", lambda row: row.value, "number"),
        Column("speed-up", lambda row: _interval(row.speedup), "number"),
        Column("efficiency", lambda row: _interval(row.efficiency), "number"),
        Column("of added", lambda row: _interval(row.gained, ".0%"), "number", spare=2),
        Column("busy", lambda row: f"{row.busy:.0%}" if row.busy is not None else "", "number"),
        Column("CPU time ×", lambda row: f"{row.cpu:.2f}" if row.cpu is not None else "", "number", spare=3),
        Column("of memory", lambda row: f"{row.memory:.0%}" if row.memory else "", "number", spare=3),
        Column("GHz", lambda row: f"{row.ghz:.2f}" if row.ghz else "", "number", spare=4),
        Column("at this clock", lambda row: _interval(row.common), "number", spare=4),
        Column("no value", lambda row: row.fault, "notes"),
    ],
)


def points_table(result: Result) -> Table[Row]:
    """:data:`POINTS` with a column for each other figure of the program."""
    names = dict.fromkeys(name for row in result.rows for name in row.beside)
    more = [Column[Row](name, partial(_beside, name), "number", spare=5) for name in names]
    return Table(POINTS.caption, [*POINTS.columns[:-1], *more, POINTS.columns[-1]])


def _beside(name: str, row: Row) -> str:
    return f"{row.beside[name]:.4g}" if name in row.beside else ""


def text(result: Result) -> str:
    """Command, table, curve, reasons and the best numbers."""
    scaling = result.scaling
    kind = "weak" if scaling.weak else "strong"
    over = f"ranks x threads on {scaling.cores} cores" if scaling.cores else scaling.kind
    head = f"{kind} scaling over {over}: {shlex.join(scaling.commands[-1])}"
    head += f"\nother cores: plumb-neighbour {scaling.fill}" if scaling.fill else ""
    known = [row.efficiency.value for row in result.rows if row.efficiency]
    parts = [
        head,
        points_table(result).text(result.rows),
        f"efficiency  {table.sparkline(known)}" if len(known) > 2 else "",
        "\n".join(map(_wrapped, result.lines)),
        result.last,
    ]
    return "\n\n".join(filter(None, parts))


def _wrapped(line: str) -> str:
    return textwrap.fill(line, terminal.width() or WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _three(each: Interval | None) -> list[float] | None:
    return None if each is None else [each.value, each.low, each.high]


def as_json(result: Result) -> str:
    """The points with intervals, the reasons and the best numbers."""
    rows = [
        {
            "n": row.count,
            **({"threads": row.threads} if row.threads else {}),
            "speedup": _three(row.speedup),
            "efficiency": _three(row.efficiency),
            **({"memory": row.memory} if row.memory else {}),
            **({"figures": row.beside} if row.beside else {}),
            "fault": row.fault or None,
        }
        for row in result.rows
    ]
    scaling = result.scaling
    known = {
        "kind": scaling.kind, "weak": scaling.weak, "fill": scaling.fill, "commands": scaling.commands,
        "unit": scaling.rule.unit,
    }  # fmt: skip
    known |= {"points": rows, "rounds": result.curve.values.tolist(), "lines": [*result.lines, result.last]}
    return json.dumps(known, indent=1) + "\n"


def as_csv(result: Result) -> str:
    """A line for each point."""
    names = [f"{name}{end}" for name in ("speedup", "efficiency") for end in ("", "_low", "_high")]
    none = [""] * 3
    rows = (
        [row.count, *(_three(row.speedup) or none), *(_three(row.efficiency) or none), row.fault] for row in result.rows
    )
    return table.as_csv(["n", *names, "fault"], rows)


def badge(result: Result, bound: float) -> str:
    """The efficiency of the largest number, as a badge of shields.io reads it; green from ``bound`` on."""
    place, known = next(
        ((place, row.efficiency) for place, row in reversed([*enumerate(result.rows)]) if row.efficiency), (0, None)
    )
    colour = "lightgrey" if not known else "green" if known.low >= bound else "red" if known.high < bound else "yellow"
    words = f"{known.value:.0%} with {result.scaling.label(place)}" if known else "no value"
    return json.dumps({"schemaVersion": 1, "label": "efficiency", "message": words, "color": colour}) + "\n"


def document(result: Result) -> Block:
    """The page: the best numbers, the curve beside the ideal one, the table, the reasons."""
    scaling = result.scaling
    drawn = [(row.count, row.speedup) for row in result.rows if row.speedup]
    ideal = [1.0 if scaling.cores else count / drawn[0][0] for count, _ in drawn]
    chart = blocks.chart(
        "Speed-up",
        f"Over {scaling.kind}; dashed: ideal.",
        [blocks.number(scaling.kind), blocks.number("speed-up"), blocks.number("ideal")],
        [
            (str(count), f"{speedup.value:.2f}", f"{best:.2f}")
            for (count, speedup), best in zip(drawn, ideal, strict=True)
        ],
        series=[
            blocks.series(
                name,
                blocks.colour(number),
                [(place, drawn[place][0], value, f"{value:.2f}") for place, value in enumerate(values)],
                look=blocks.line(number, symbolSize=6),
            )
            for number, (name, values) in enumerate(
                [("measured", [speedup.value for _, speedup in drawn]), ("ideal", ideal)]
            )
        ],
        together=True, beside=True, height=330, legend=True,
        x={"name": scaling.kind, "min": "dataMin", "max": "dataMax", "type": "value", "minInterval": 1},
        y={"name": "speed-up", "type": "value", "scale": False, "boundaryGap": 0},
    )  # fmt: skip
    return {
        "title": f"Scaling over {scaling.kind}",
        "head": [
            block("paragraph", block("strong", result.last), id="closing"),
            block("paragraph", block("code", shlex.join(scaling.commands[-1]))),
        ],
        "sections": [
            section("curve", "Curve", "", drawn and chart, points_table(result).block(result.rows)),
            section("why", "Why it bends", "", block("bullets", *result.lines)),
        ],
    }
