"""The campaign's stacks in one table: each figure on each stack, and which is best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plumbline.compare import rows
from plumbline.compare.sides import Side
from plumbline.records.model import Record


def compared(usable: Sequence[tuple[Record, int]]) -> rows.Comparison | None:
    """The stacks of the valid records ``usable``, each with the number of its entry; None for a single stack."""
    stacks = sorted({record.stack.name for record, _ in usable})
    if len(stacks) < 2:
        return None
    sides = [Side(name, (("stack", name),)) for name in stacks]
    return rows.compare([record for record, _ in usable], sides)


def side_by_side(usable: Sequence[tuple[Record, int]], comparison: rows.Comparison | None) -> dict[str, Any] | None:
    """``stacks``, and for each line of ``comparison`` its cells: value, entry, ratio to the first, interval, marks."""
    if comparison is None or not comparison.lines:
        return None
    entries = {record.id: number for record, number in usable}
    lines = []
    for line in comparison.lines:
        cells = []
        for number, cell in enumerate(line.cells):
            difference = line.differences[number]
            found = {"ratio": difference.ratio, "low": difference.low, "high": difference.high} if difference else {}
            shown = {"claimed": line.claimed[number], "best": number in line.best, **found}
            cells.append({"value": cell.value, "entry": entries[cell.records[-1]], **shown} if cell else None)
        key = line.key
        lines.append(
            {"name": key.variant, "placed": key.placement, "figure": key.figure, "unit": line.unit, "cells": cells}
        )
    return {"stacks": list(comparison.sides), "lines": lines}
