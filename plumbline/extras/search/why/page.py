"""The page of a search: the difference as a waterfall of what each cause makes, the table, and what was measured."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from plumbline.base.table import table
from plumbline.extras.search.why.answer import HEADER, Answer, Cause
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, block, section

#: causes that are drawn one by one; all others that act are one step
DRAWN = 10


def differences(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The differences of two ends as a table, with long values cut."""
    return table(header, [tuple(cell if len(cell) <= 40 else f"{cell[:39]}…" for cell in row) for row in rows])


def document(answer: Answer) -> dict[str, Any]:
    """The page."""
    outcome = answer.outcome
    facts = [
        ("A", outcome.request.ends.labels[0]),
        ("B", outcome.request.ends.labels[1]),
        ("test", outcome.request.ends.first.name),
        ("figure", f"{outcome.figure}, {outcome.better} is better"),
        ("site", outcome.request.ends.first.site),
    ]
    columns = [*HEADER[:3], *map(blocks.number, HEADER[3:7]), blocks.column(HEADER[7], "notes")]
    drawn = [cause for cause in answer.causes if cause.part]
    return {
        "title": "Why B differs from A",
        "heading": ["Why B differs from A"],
        "head": [blocks.facts("What was compared", facts), block("paragraph", answer.closing(), id="closing")],
        "sections": [
            section(
                "causes",
                "Causes",
                "Each difference was put into A alone, and taken out of B alone. Its share is the mean of both, as a "
                "part of the whole difference; the interval is right with 98 %.",
                bool(drawn) and _waterfall(answer, drawn),
                blocks.table("Causes", columns, [list(row) for row in answer.rows()]),
                otherwise="The ends do not differ for certain, so no cause was looked for.",
            ),
            section("notes", "How it was measured", "", block("bullets", *answer.notes())),
        ],
    }


def _waterfall(answer: Answer, causes: Sequence[Cause]) -> Block:
    """From A to B: each cause that acts begins where the one before it ended."""
    acting = [cause for cause in causes if cause.acts][:DRAWN]
    values = [100 * (cause.part or (0.0,))[0] for cause in acting]
    ends = [0.0, *itertools.accumulate(values)]
    steps = [(cause.subject, *both) for cause, both in zip(acting, itertools.pairwise(ends), strict=True)]
    steps += [("not explained", ends[-1], 100.0), ("B", 0.0, 100.0)]
    names = [name for name, _, _ in steps][::-1]
    low, high = min(0.0, *ends), max(100.0, *ends)
    return blocks.chart(
        "From A to B",
        "What each cause makes of the difference, in percent of it; each begins where the one before it ended.",
        ["cause", blocks.number("part of the difference", "%")],
        [(name, f"{end - start:.1f}") for name, start, end in steps],
        series=[
            blocks.series(
                "part",
                None,
                [(row, end, names.index(name), f"{end - start:.1f} %") for row, (name, start, end) in enumerate(steps)],
                bars=[(names.index(name), start, end) for name, start, end in steps],
                look={"type": "scatter", "symbolSize": 9},
            )
        ],
        height=90 + 30 * len(steps),
        wide=280,
        x={"name": "part of the difference in %", "type": "value", "min": low, "max": 1.04 * high, "boundaryGap": 0},
        y={"min": -0.5, "max": len(names) - 0.5, "interval": 1, "ticks": list(enumerate(names))},
    )
