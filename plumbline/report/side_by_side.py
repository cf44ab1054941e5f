"""The campaign's stacks in one table: each figure on each stack, and which is best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plumbline.compare import page
from plumbline.judge import compare
from plumbline.judge.sides import Side
from plumbline.records.model import Record


def compared(usable: Sequence[tuple[Record, int]]) -> compare.Comparison | None:
    """The stacks of the valid records ``usable``, each with the number of its entry; None for a single stack."""
    stacks = sorted({record.stack.name for record, _ in usable})
    if len(stacks) < 2:
        return None
    sides = [Side(name, (("stack", name),)) for name in stacks]
    return compare.compare([record for record, _ in usable], sides)


def side_by_side(usable: Sequence[tuple[Record, int]], comparison: compare.Comparison | None) -> dict[str, Any] | None:
    """``stacks``, and for each line of ``comparison`` its cells: value, entry, ratio to the first, interval, marks."""
    if comparison is None or not comparison.lines:
        return None
    stacks = comparison.sides
    entries = {record.id: number for record, number in usable}
    lines = []
    for line in comparison.lines:
        made = [page.cell(line, number) for number in range(len(stacks))]
        cells = [
            None if shown is None or known is None else {**shown, "entry": entries[known.records[-1]]}
            for shown, known in zip(made, line.cells, strict=True)
        ]
        key = line.key
        lines.append(
            {"name": key.variant, "placed": key.placement, "figure": key.figure, "unit": line.unit, "cells": cells}
        )
    return {"stacks": list(stacks), "lines": lines}
