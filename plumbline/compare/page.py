"""A comparison in words and data: what the table of the terminal and the page both say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from plumbline import units
from plumbline.judge.compare import MEMBERS, Comparison, Line
from plumbline.statistics import unpaired

#: figures that are not compared, of which the legend tells
NAMED = 3


def document(comparison: Comparison) -> dict[str, Any]:
    """What the page ``compare`` shows."""
    kept = members(comparison)
    return {
        "title": f"Comparison: {', '.join(comparison.sides)}",
        "sides": list(comparison.sides),
        "circumstances": [[name, *values] for name, values in comparison.circumstances],
        "members": kept,
        "lines": [_line(line, kept) for line in comparison.lines],
        "legend": legend(comparison),
        "closing": closing(comparison),
    }


def closing(comparison: Comparison) -> str:
    """The summary line: in how many figures each side alone is best, and in how many no side is."""
    best = [sum(line.best == (number,) for line in comparison.lines) for number in range(len(comparison.sides))]
    counts = [f"{name} best in {count}" for name, count in zip(comparison.sides, best, strict=True)]
    none = sum(len(line.best) != 1 for line in comparison.lines)
    alone = f"; {units.counted(comparison.alone, 'figure')} of one side only" if comparison.alone else ""
    return f"{units.counted(len(comparison.lines), 'figure')}: {', '.join(counts)}, no single best in {none}{alone}"


def legend(comparison: Comparison) -> list[str]:
    """What the marks of the table mean, and how small a difference would have been seen."""
    lines = [
        "ratio to the first side with the figure [interval]; ?: no difference seen; best: none is better, some is worse"
    ]
    found = [
        (difference, known)
        for line in comparison.lines
        for difference, known in zip(line.differences, line.claimed, strict=True)
        if difference
    ]
    if any(difference.basis == "launches" for difference, _ in found):
        lines.append(
            f"~: fewer than {unpaired.ENOUGH} sessions on a side: sessions are taken to differ by "
            f"{100 * unpaired.SESSIONS:.0f} % (standard deviation); the interval is from launch to launch"
        )
    unseen = [difference.visible for difference, known in found if not known]
    if unseen:
        visible = sorted(math.inf if size is None else size for size in unseen)[len(unseen) // 2]
        lines.append(
            f"where none was seen, {units.percent(visible - 1)} would have been seen in every second case (median)"
            if visible < math.inf
            else "where none was seen, most figures have too few launches to show any among so many: "
            f"measure {unpaired.ENOUGH} sessions of each side"
        )
    zero = sum(any(cell and not cell.has_ratio for cell in line.cells) for line in comparison.lines)
    if zero:
        lines.append(f"{units.counted(zero, 'line')} with a figure of 0: it has no ratio, and nothing is claimed of it")
    if comparison.unlike:
        lines.append(f"not compared, for unit, direction or arguments differ: {unlike(comparison)}")
    return [*lines, "records of different sessions are not pairs: plumb gate decides what a change must not cost"]


def unlike(comparison: Comparison) -> str:
    """The figures that are not compared although several sides have them; the first :data:`NAMED` of them."""
    more = len(comparison.unlike) - NAMED
    return "; ".join(comparison.unlike[:NAMED]) + (f"; and {more} more" if more > 0 else "")


def members(comparison: Comparison) -> list[str]:
    """The members of keys in which lines differ: a column that would be the same everywhere is left out."""
    return [name for name in MEMBERS if len({getattr(line.key, name) for line in comparison.lines}) > 1]


def cell(line: Line, number: int) -> dict[str, Any] | None:
    """Side ``number`` of ``line``: value, marks, and the ratio to the first side with its interval, if there is one."""
    known, difference = line.cells[number], line.differences[number]
    if known is None:
        return None
    made: dict[str, Any] = {"value": known.value, "claimed": line.claimed[number], "best": number in line.best}
    if difference:
        made |= {"ratio": difference.ratio, "low": difference.low, "high": difference.high}
    return made


def _line(line: Line, kept: Sequence[str]) -> dict[str, Any]:
    return {
        "name": line.key.variant,
        "placed": line.key.placement,
        "members": [getattr(line.key, name) for name in kept],
        "figure": line.key.figure,
        "unit": line.unit,
        "better": line.better,
        "cells": [_counted(line, number) for number in range(len(line.cells))],
    }


def _counted(line: Line, number: int) -> dict[str, Any] | None:
    """The cell, with how many sessions and launches it is from. ``weak``: the ratio is from launch to launch."""
    made, known, difference = cell(line, number), line.cells[number], line.differences[number]
    if made is None or known is None:
        return None
    return made | {
        "weak": difference is not None and difference.basis == "launches",
        "sessions": len(known.sessions),
        "launches": known.launches,
        "disturbed": known.disturbed,
    }
