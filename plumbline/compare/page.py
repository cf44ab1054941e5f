"""The data of the page of a comparison: the same lines as in the table of the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plumbline.compare.rows import MEMBERS, Comparison, Line


def document(comparison: Comparison, legend: Sequence[str], closing: str) -> dict[str, Any]:
    """What the page ``compare`` shows; ``legend`` says what the marks mean, ``closing`` is the important line."""
    kept = members(comparison)
    return {
        "title": f"Comparison: {', '.join(comparison.sides)}",
        "sides": list(comparison.sides),
        "circumstances": [[name, *values] for name, values in comparison.circumstances],
        "members": kept,
        "lines": [_line(line, kept) for line in comparison.lines],
        "legend": list(legend),
        "closing": closing,
    }


def members(comparison: Comparison) -> list[str]:
    """The members of keys in which lines differ: a column that would be the same everywhere is left out."""
    return [name for name in MEMBERS if len({getattr(line.key, name) for line in comparison.lines}) > 1]


def cell(line: Line, number: int) -> dict[str, Any] | None:
    """Side ``number`` of ``line``: value, marks, and the ratio to the first side with its interval, if there is one."""
    known, difference = line.cells[number], line.differences[number]
    if known is None:
        return None
    made = {"value": known.value, "claimed": line.claimed[number], "best": number in line.best}
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
    """The cell with what it rests on. ``weak``: the ratio is from launch to launch."""
    made, known, difference = cell(line, number), line.cells[number], line.differences[number]
    if made is None or known is None:
        return None
    return made | {
        "weak": difference is not None and difference.basis == "launches",
        "sessions": len(known.sessions),
        "launches": known.launches,
        "disturbed": known.disturbed,
    }
