"""The beginning of a report: the campaign, its records in a table, the worst first, and the records left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from plumbline.base import group, units
from plumbline.base.units import counted
from plumbline.records import naming
from plumbline.records.figure import Figure
from plumbline.records.model import Record
from plumbline.records.outcome import WITHOUT_FIGURES
from plumbline.show import summary
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, Piece, block, cell, column, link, number, section
from plumbline.show.report import figures
from plumbline.show.report.entry import SEVERITY

Numbered = Sequence[tuple[Record, int]]
#: columns of the table of variants
COLUMNS = (
    column("verdict", "verdict"),
    {**column("test", "test"), "head": True},
    column("stack", "stack"),
    column("placement", "placement"),
    column("figure", "figure"),
    column("median", "number median"),
    column("unit", "unit"),
    column("spread", "number spread", "%"),
    column("of limit", "number limit", "%"),
    column("to reference", "number reference", "%"),
    column("disturbed", "number disturbed"),
)
ABOUT = (
    "spread: widest distance of two launches, in percent of the median. of limit: percent of the physical limit, or of "
    "what the letter stands for; – where none is known. to reference: how far above (+) or below (−) it."
)
#: state of a case -> its name on the page
STATES = {"SKIP": "skipped", "FAIL": "failed", "ABORT": "aborted"}


def head(
    site: str, campaign: str | None, records: Sequence[Record], outcome: Mapping[str, Any] | None, suites: Sequence[str]
) -> list[Piece]:
    """The subject of the measurements, and the counts of records and verdicts."""
    nodes = list(dict.fromkeys(node for record in records for node in record.nodes))
    launches = [launch for record in records for launch in record.launches]
    verdicts = Counter[str](record.final_verdict for record in records)
    verified = sum(record.is_verified for record in records)
    ends = [units.second(end(record.time for record in records)) for end in (min, max)] if records else []
    measured = ends[0] if len(set(ends)) == 1 else f"{ends[0]} to {ends[1][11:]}" if ends else None
    skipped = sum(case["state"] == "SKIP" for case in outcome["cases"]) if outcome else 0
    tiles = [
        block("tile", "variant" if len(records) == 1 else "variants", count=len(records)),
        block("tile", "verified", count=verified, look="warn" if verified < len(records) else ""),
        *(block("tile", name, count=verdicts[name], verdict=name) for name in SEVERITY if verdicts[name]),
        block("tile", "launch" if len(launches) == 1 else "launches", count=len(launches)),
        block("tile", "disturbed", count=sum(launch.disturbed for launch in launches)),
        outcome is not None and block("tile", "skipped", count=skipped),
    ]
    facts = [
        ("site", site),
        ("campaign", campaign or "none: records made one by one"),
        ("measured", measured),
        ("node" if len(nodes) == 1 else "nodes", units.some(nodes)),
        ("suite", "; ".join(suites)),
    ]
    return [
        blocks.facts("Campaign", facts),
        block("tiles", *tiles),
        block("hidden", summary.closing(records), id="closing"),
    ]


def overview(site: str, entries: Numbered) -> Block:
    """The records in a table that is searched, filtered and sorted: a row for each figure, of which one is shown."""
    verdicts = Counter[str](record.final_verdict for record, _ in entries)
    stacks, tests = (
        sorted(names) for names in ({r.stack.name for r, _ in entries}, {r.variant.test for r, _ in entries})
    )
    unknown = block(
        "note",
        "No figure here has a limit or a ceiling. Limits are those of the memory channels and links in the facts of "
        f"site {site} (site.yaml), ceilings what plumb site measure measured of memory, caches, cores and messages.",
    )
    return section(
        "overview",
        "Overview",
        "",
        {
            **blocks.table("Variants, worst first", COLUMNS, ()),
            "is": "listing",
            "rows": [_row(record, entry) for record, entry in entries],
            "id": "variants",
            "noun": counted(len(entries), "variant"),
            "placeholder": "test, placement, id, reason …",
            "more": "every figure",
            "filters": [
                {
                    "label": "Verdict",
                    "options": [(name, f"{name} {verdicts[name]}") for name in SEVERITY if verdicts[name]],
                    "marked": True,
                },
                {"label": "Test", "options": [(name, name) for name in tests]},
                {"label": "Stack", "options": [(name, name) for name in stacks]},
            ],
        },
        not any(figure.reached for record, _ in entries for figure in record.figures) and unknown,
        block("note", ABOUT),
        *(block("note", text) for text in summary.legend([record for record, _ in entries])),
    )


def _row(record: Record, entry: int) -> dict[str, Any]:
    """A record: its cells with their sort keys, and those of each line: a figure, or the reason for none."""
    verdict, name, placed = record.final_verdict, naming.name(record.variant), naming.placement(record.placement)
    hit = sum(launch.disturbed for launch in record.launches)
    words = [record.id, record.variant.name, name, record.stack.name, placed, verdict, *record.nodes, *record.faults]
    words += [figure.name for figure in record.figures]
    last = (f"{hit} of {len(record.launches)}" if hit else "0", hit / max(1, len(record.launches)))
    lines: list[list[Sequence[Piece]]] = [list(zip(*_cells(figure), last, strict=True)) for figure in record.figures]
    if record.faults or not record.figures:
        why = cell((record.faults or ["no figure"])[0], look="why", span=6, label="reason")
        lines = [[[why, last[0]], ["", -1, "", -1, -1, 0, last[1]]]]
    badge = block("badge", "" if verdict == "unreferenced" else verdict, verdict=verdict)
    return {
        "words": " ".join(words).lower(),
        "tags": [verdict, record.variant.test, record.stack.name],
        "cells": [badge, link(name, entry=entry), record.stack.name, placed],
        "keys": [SEVERITY.index(verdict), name, record.stack.name, placed],
        "lines": lines,
    }


def _cells(figure: Figure) -> list[tuple[Piece, object]]:
    """The cells of a figure, each with its sort key."""
    value, unit = figure.shown
    spread, reached = figures.spread(figure), figure.reached
    change = figure.value / figure.reference.value - 1 if figure.reference else None
    filled = min(100.0, max(0.0, reached.percent)) if reached else 0.0
    bar = reached and block("bar", summary.percent(figure), share=filled, hint=figures.bound(figure))
    return [
        (figure.name, figure.name),
        (cell(value, value=figure.value), figure.value),
        (unit, figure.unit),
        (None, -1) if spread is None else (f"{100 * spread:.1f}", spread),
        (bar, reached.percent if reached else -1),
        (None, 0) if change is None else (units.signed(change).removesuffix(" %"), change),
    ]


def left_out(
    entries: Numbered, outcome: Mapping[str, Any] | None, older: tuple[int, int], damages: Sequence[str]
) -> Block:
    """Cases without a figure, and the reasons; ``older`` counts records not on the page, and the invalid ones."""
    bad = [(record, entry) for record, entry in entries if record.faults or record.final_verdict == "invalid"]
    rows = [
        (
            link(naming.name(record.variant), entry=entry),
            record.stack.name,
            naming.placement(record.placement),
            block("bullets", *record.faults),
        )
        for record, entry in bad
    ]
    records, invalid = older
    more = f"{counted(records, 'older record')} of the campaign, {invalid} of them not valid, "
    return section(
        "left-out",
        "Left out",
        "What has no figure, and why.",
        block("heading", f"{counted(len(bad), 'record')} not valid")
        if bad
        else block("paragraph", "Every record of the campaign is valid."),
        bool(bad)
        and blocks.table(
            "Records that are not valid", ["test", "stack", "placement", column("reasons", "notes")], rows
        ),
        records > 0
        and block(
            "paragraph", f"{more}{'is' if records == 1 else 'are'} more than a page holds; plumb list shows them."
        ),
        *_skipped(outcome),
        bool(damages)
        and [
            block("heading", f"{counted(len(damages), 'line')} of the results could not be read"),
            block("bullets", *damages, plain=True),
        ],
    )


def _skipped(outcome: Mapping[str, Any] | None) -> list[Piece]:
    """Cases without figures, by state and reason: those that concern most cases first."""
    if outcome is None:
        return [block("paragraph", "Skipped cases: not recorded for these records (only plumb campaign keeps them).")]
    ran = counted(len(outcome["cases"]), "case")
    groups = group(
        ((case["state"], case["reason"] or "no reason given"), case["case"])
        for case in outcome["cases"]
        if case["state"] in WITHOUT_FIGURES
    )
    if not groups:
        return [block("paragraph", f"All {ran} of the campaign ran.")]
    ordered = sorted(
        groups.items(), key=lambda case_group: (case_group[0][0] == "SKIP", -len(case_group[1]), case_group[0][1])
    )
    rows = [
        (
            len(cases),
            STATES.get(state, state),
            reason,
            block("folded", block("bullets", *cases, plain=True), title="show"),
        )
        for (state, reason), cases in ordered
    ]
    columns = [number("cases"), "state", column("reason", "notes"), column("which", "notes")]
    return [
        block("heading", f"{sum(map(len, groups.values()))} of {ran} without a valid record"),
        blocks.table("Cases without a valid record", columns, rows),
    ]
