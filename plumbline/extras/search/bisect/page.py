"""The page of a bisection: the answer, every step, and the commits of the range by their ratio to the good one."""

from __future__ import annotations

from typing import Any

from plumbline.base.units import percent
from plumbline.extras.search.bisect.report import HEADER, RIGHT, Report
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, block, section

#: the columns of the table of gates
_COLUMNS = tuple(blocks.number(name) if name in (*RIGHT, "interval") else name for name in HEADER)


def document(report: Report) -> dict[str, Any]:
    """The page."""
    first, *rest = report.lines
    rows = [list(report.cells(row)) for row in report.rows()]
    for row in rows:
        row[4] = block("badge", row[4], verdict=row[4])  # type: ignore[call-overload]
    return {
        "title": "Bisection",
        "heading": ["Bisection"],
        "head": [
            block("paragraph", first, id="closing"),
            bool(rest) and block("bullets", *rest),
            blocks.facts("What was asked", report.facts()),
        ],
        "sections": [
            section(
                "range", "Range", "What was measured against the good commit, by place in history.", _chart(report)
            ),
            section(
                "steps",
                "Gates",
                "Every gate, range by range. Ratio: commit / what it stands against; each end of an interval is right "
                "with 99 %.",
                blocks.table("Gates", _COLUMNS, rows),
            ),
            section("notes", "Notes", "", block("bullets", *report.notes)),
        ],
    }


def _chart(report: Report) -> Block | bool:
    """Each commit that was compared with the good end, at its place in the range, with its interval."""
    request = report.state.request
    places = {commit: place for place, commit in enumerate(report.commits.between(request.good, request.bad), 1)}
    known = [
        (places[row.comparison.candidate], row)
        for row in report.rows()
        if row.comparison.baseline == request.good and row.comparison.ratio and row.comparison.candidate in places
    ]
    if not known:
        return False
    known.sort(key=lambda item: item[0])
    ratios = [(place, row, row.comparison.ratio, row.comparison.interval or (0.0, 0.0)) for place, row in known]
    ends = [end for *_, interval in ratios for end in interval]
    room = 0.1 * (max(*ends, 1.0) - min(*ends, 1.0)) or 0.01
    margin = 1 + request.must_detect
    return blocks.chart(
        "Ratio to the good commit",
        f"{request.named[0]} is 1. Lines: intervals of 99 %; dashed: {percent(request.must_detect)}.",
        ["place", blocks.column("commit", "code"), blocks.number("ratio"), blocks.number("interval"), "therefore"],
        [
            (
                place,
                report.commits.label(row.comparison.candidate),
                f"{ratio:.4f}",
                f"{low:.4f} to {high:.4f}",
                row.therefore,
            )
            for place, row, ratio, (low, high) in ratios
        ],
        id="ratios",
        height=300,
        series=[
            blocks.series(
                "ratio",
                None,
                [(number, place, ratio) for number, (place, _, ratio, _) in enumerate(ratios)],
                ranges=[(place, *interval) for place, _, _, interval in ratios],
            )
        ],
        x={"name": "commit of the range", "min": 0, "max": len(places) + 1},
        y={"name": "commit / good", "type": "value", "min": min(*ends, 1.0) - room, "max": max(*ends, 1.0) + room},
        marks=[
            {"yAxis": 1, "tone": "line-strong", "dash": "solid"},
            {"yAxis": margin, "tone": "bad", "dash": "dashed", "label": "must be seen", "place": "insideEndTop"},
        ],
    )
