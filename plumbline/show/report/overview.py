"""The beginning of a report: the campaign, its records in a table, the worst first, and the records left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from plumbline.base import group, units
from plumbline.base.units import counted
from plumbline.records import naming
from plumbline.records.model import Record, Row
from plumbline.records.outcome import WITHOUT_FIGURES, Standing, standing
from plumbline.show import summary
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, Piece, block, column, link, number, section
from plumbline.show.summary import SEVERITY, Line

Numbered = Sequence[tuple[Record, int]]
#: other measurements that a page lists, the newest
MOST_OTHERS = 20
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
        *(
            block("tile", name, count=verdicts[name], verdict=name)
            for name in SEVERITY
            if verdicts[name] and name != "unreferenced"
        ),
        block("tile", "launch" if len(launches) == 1 else "launches", count=len(launches)),
        block("tile", "disturbed", count=sum(launch.disturbed for launch in launches)),
        outcome is not None and block("tile", "skipped", count=skipped),
    ]
    facts = [
        ("site", site),
        ("campaign", campaign or "none: records made one by one"),
        *([("profile", str(Standing(outcome["profile"], outcome.get("part"))))] if outcome else []),
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
    lines = [
        [Line(record, figure, naming.name(record.variant), entry) for figure in summary.shown(record)]
        for record, entry in entries
    ]
    table, cells = summary.VARIANTS.of("page", list(chain.from_iterable(lines)))
    each = iter(cells)
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
            **blocks.table(table.caption, table.heads(), ()),
            "is": "listing",
            "rows": [
                _row(record, [(next(each), table.keys(line)) for line in of], of[0].name)
                for (record, _), of in zip(entries, lines, strict=True)
            ],
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


def _row(record: Record, lines: Sequence[tuple[Sequence[Piece], Sequence[Any]]], name: str) -> dict[str, Any]:
    """A record: the words that it is searched by, its keys in the filters, and cells with their sort keys of lines."""
    verdict, placed = record.final_verdict, naming.placement(record.placement)
    searched = [
        *(record.id, record.variant.name, name, record.stack.name, placed, verdict, *record.nodes),
        *(*record.faults, *(figure.name for figure in record.figures)),
    ]
    return {
        "words": " ".join(searched).lower(),
        "tags": [verdict, record.variant.test, record.stack.name],
        "lines": [list(line) for line in lines],
    }


def other_measurements(site: str, rows: Sequence[Row]) -> Block:
    """What else ``rows``, those beside the campaign that is shown, were measured for: the newest ones."""
    groups = group((row.campaign or row.session, row) for row in rows)
    newest = sorted(groups.items(), key=lambda item: item[1][0].time, reverse=True)[:MOST_OTHERS]
    cells = [
        (
            units.minute(members[0].time),
            _purpose(site, members[0]),
            name,
            units.some(list(dict.fromkeys(row.variant.test for row in members))),
            len(members),
            sum(not row.is_comparable for row in members),
            sum(row.launch_count for row in members),
            sum(row.disturbed_count for row in members),
        )
        for name, members in newest
    ]
    heads = [
        *(column("began", "whole", "UTC"), column("for", "notes"), column("id", "code"), column("tests", "notes")),
        *map(number, ("variants", "not valid", "launches", "disturbed")),
    ]
    return section(
        "others",
        "Other measurements",
        "Campaigns, parts of campaigns, labs, gates and searches, the newest first. plumb report --campaign ID shows a "
        "campaign.",
        blocks.table("Other measurements", heads, cells),
        len(groups) > len(cells) and block("note", f"{len(groups) - len(cells)} older ones are not shown."),
    )


def _purpose(site: str, row: Row) -> str:
    alone = row.experiment or ("profile" if row.is_profiled else "by hand")
    return str(standing(site, row.campaign)) if row.campaign else alone


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
            "paragraph", f"{more}{'is' if records == 1 else 'are'} more than a page holds; plumb list --all shows them."
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
