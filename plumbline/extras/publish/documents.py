"""The data of the pages above the reports: all systems, one system, its machine, one of its tests over time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from plumbline import site
from plumbline.base import units
from plumbline.base.errors import PlumbError
from plumbline.base.units import minute, second, signed, some
from plumbline.host.draw import draw
from plumbline.judge import agreement
from plumbline.judge.compare import Side, compare
from plumbline.records.figure import step_of
from plumbline.records.model import FLEETING, Row
from plumbline.records.notes import Note
from plumbline.show.compare import closing, document
from plumbline.show.pages.blocks import Block, Piece, block, column, facts, link, number, section, table
from plumbline.show.report import history
from plumbline.show.report.circumstances import hosts
from plumbline.show.report.data import finite

#: rows of a long table that are shown before a button asks for all
FIRST = 40
#: the mark of each direction of a change
MARKS = {"worse": "below", "better": "above"}
TIME, CHANGES = column("time", "whole", "UTC"), column("changes over time", "whole")
CAMPAIGN = ("variants", "not valid", "launches", "disturbed")
SYSTEMS = (
    "system",
    CHANGES,
    TIME | {"title": "newest campaign"},
    column("is it fine?", "notes"),
    *map(number, ("not valid", "variants", "campaigns", "nodes")),
    column("processor", "notes"),
)
#: points of a series on the page of its test, the newest
MOST_POINTS = 1000
#: changes that a system's page lists, and states of hosts that its machine's page shows: the newest
MOST_CHANGES, MOST_STATES = 50, 8
#: name and title of the section of campaigns that are not whole
PARTS = ("parts", "Labs, parts and interrupted campaigns")


def slug(name: str) -> str:
    """The name of a page's file: ``name`` where every file system accepts it, else the beginning of its SHA-256."""
    return name if site.NAME.fullmatch(name) else sha256(name.encode(errors="surrogatepass")).hexdigest()[:20]


def counts(rows: Sequence[Row]) -> dict[str, int]:
    """How many variants, invalid ones, launches and disturbed launches ``rows`` are."""
    return {
        "variants": len(rows),
        "invalid": sum(not row.is_valid for row in rows),
        "launches": sum(row.launch_count for row in rows),
        "disturbed": sum(row.disturbed_count for row in rows),
    }


def series(
    name: str, rows: Sequence[Row], notes: Sequence[Note], trail: list[list[str]], with_page: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The page of a test: its series with change points and notes; and its changes, for the system's page.

    ``with_page``: the campaigns to whose pages dots lead.
    """
    trend = history.history(rows, notes, MOST_POINTS, least=1)
    targets = {
        row.id: f"../campaigns/{slug(campaign)}.html#record-{row.id}"
        for row in rows
        if (campaign := row.campaign) and campaign in with_page
    }
    changes = [
        {
            "series": judged.subject,
            "time": judged.series.times[judged.series.index.index(alarm["index"])],
            **{key: alarm.get(key) for key in ("ratio", "direction", "notes")},
        }
        for judged in (curve.judged for curve in trend["series"])
        for alarm in judged.alarms
    ]
    changes.sort(key=lambda change: (change["time"], change["series"]), reverse=True)
    document = {
        "title": f"{name}: history",
        "heading": name,
        "trail": trail,
        "sections": [history.section(trend, targets, "has no page here: plumb show")],
    }
    directions = Counter(change["direction"] for change in changes)
    facts = {
        "series": len(trend["series"]) + trend["left_out"],
        "worse": directions["worse"],
        "better": directions["better"],
        "changes": changes[:MOST_CHANGES],
        "newest": newest_figures(rows),
    }
    return document, facts


def newest_figures(rows: Sequence[Row]) -> str | None:
    """The first figure of a test in the newest campaign that has one: its name, its least and its largest value."""
    if not (usable := [row for row in rows if row.is_comparable and row.figures]):
        return None
    first = usable[-1].figures[0]
    figures = [figure for row in usable if row.campaign == usable[-1].campaign and (figure := row.figure(first.name))]
    step = step_of((figure, 1.0) for figure in figures)
    ends = [" ".join(units.human(end(figure.value for figure in figures), first.unit, step)) for end in (min, max)]
    return f"{first.name} {' … '.join(dict.fromkeys(ends))}"


def machine(name: str, rows: Sequence[Row], trail: list[list[str]]) -> dict[str, Any]:
    """The page of a system's machine: a drawing of each partition, and the newest states of its hosts."""
    local_rows = [row for row in rows if not row.is_imported]
    facts = [(row.time, {key: value for key, value in row.host.items() if key not in FLEETING}) for row in local_rows]
    states = {json.dumps(host, sort_keys=True): (time, finite(host)) for time, host in facts}
    newest = [host for _, host in sorted(states.values(), key=lambda state: state[0], reverse=True)][:MOST_STATES]
    count = units.counted(len(states), "state")
    about = f"The newest {len(newest)} of {count} in which records found the hosts; what differs stands first."
    return {
        "title": f"{name}: machine",
        "heading": f"Machine of {name}",
        "trail": trail,
        "sections": [
            section(
                "topology",
                "Topology",
                "As plumb topology draws it.",
                *_drawings(name, {row.partition for row in local_rows}),
                otherwise="No partition of the records is described here.",
            ),
            section("hosts", "Hosts", about, hosts(newest)),
        ],
    }


def _drawings(name: str, partitions: set[str]) -> Iterator[Piece]:
    """A drawing of each partition whose topology is known, or why there is none."""
    try:
        known = [part.name for part in site.load(name).partitions if part.name in partitions]
    except PlumbError:
        known = sorted(partitions)
    for partition in known:
        try:
            drawn = draw(
                site.folder(name) / site.partition(site.load(name), partition).topology, name=f"{name}:{partition}"
            )
            shown = block("drawing", drawn, label=f"Topology of {partition}")
        except PlumbError as error:
            shown = block("paragraph", f"No drawing: {error.message}.")
        yield [block("heading", f"Partition {partition}"), shown]


def side_by_side(newest: Mapping[str, Sequence[Row]], trail: list[list[str]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The page of all systems in one table, and its summary line; ``newest``: the newest campaign's rows, by system."""
    every = [row for rows in newest.values() for row in rows]
    comparison = compare(
        every, [Side(name, (("site", name),)) for name in newest], doubtful=agreement.doubtful_of(every)
    )
    campaigns = ("newest campaign", tuple(f"{rows[0].campaign}, {rows[0].time[:10]}" for rows in newest.values()))
    shown = document(replace(comparison, circumstances=(campaigns, *comparison.circumstances)))
    return {**shown, "title": "Systems side by side", "trail": trail}, {"closing": closing(comparison)}


def systems(lines: Sequence[dict[str, Any]], together: dict[str, str] | None) -> dict[str, Any]:
    """The page of all systems; ``together`` is the page that has them side by side, with its summary line."""
    shown = section(
        "systems",
        "Systems",
        "A line per system: its newest campaign, and the change points of all its figures.",
        together is not None
        and block(
            "paragraph",
            link("Systems side by side", together["href"]),
            f", by their newest campaigns. {together['closing']}",
        ),
        table("Systems", SYSTEMS, map(_line, lines)),
    )
    return {"title": "Plumbline", "sections": [shown]}


def _line(line: dict[str, Any]) -> list[Piece]:
    last = line.get("newest")
    return [
        link(line["name"], line["href"]),
        _changes(line),
        *((link(minute(last["time"]), last["href"]), last["answer"], _not_valid(last), last["variants"])
          if last else (None,) * 4),
        line["campaigns"],
        len(line["nodes"]),
        "; ".join(line["processors"]) or None,
    ]  # fmt: skip


def system(
    name: str, known: dict[str, Any], sections: Sequence[Block], campaigns: Sequence[Any], last: dict[str, Any] | None
) -> dict[str, Any]:
    """The page of a system: ``sections`` below its ``known`` facts and the answer of its ``last`` campaign."""
    newest = (
        [block("paragraph", block("strong", last["answer"]), " ", link("The newest campaign", last["href"]), ".")]
        if last and last["answer"]
        else []
    )
    rows = [
        ("processor", "; ".join(known["processors"]) or "unknown"),
        ("node" if len(known["nodes"]) == 1 else "nodes", some(known["nodes"])),
        ("measured", f"{second(known['begin'])} to {second(known['end'])}"),
        ("machine", link("topology and hosts", "machine.html")),
    ]
    tiles = [
        block("tile", "campaign" if len(campaigns) == 1 else "campaigns", count=len(campaigns)),
        block("tile", "record" if known["records"] == 1 else "records", count=known["records"]),
        block("tile", "changes for the worse", count=known["worse"], verdict=known["worse"] and MARKS["worse"]),
        block("tile", "for the better", count=known["better"], verdict=known["better"] and MARKS["better"]),
    ]
    return {
        "title": f"{name}: Plumbline",
        "heading": name,
        "head": [facts("System", rows), *newest, block("tiles", *tiles)],
        "sections": sections,
    }


def changes(points: Sequence[dict[str, Any]]) -> Block:
    """The change points of a system, the newest first."""
    return section(
        "changes",
        "Changes",
        "Where a figure changed and stayed so, the newest first. An alarm is a suspicion: measure again before calling "
        "anything slower.",
        table(
            "Changes",
            (TIME | {"title": "since"}, column("change", "whole"), "series", column("noted for that time", "notes")),
            [
                (
                    minute(point["time"]),
                    block(
                        "badge", f"{signed(point['ratio'] - 1)} {point['direction']}", verdict=MARKS[point["direction"]]
                    ),
                    link(point["series"], point["href"]),
                    "; ".join(point["notes"] or ()) or None,
                )
                for point in points
            ],
            first=FIRST,
            empty="No lasting change was seen.",
        ),
    )


def tests(lines: Sequence[dict[str, Any]]) -> Block:
    """The tests of a system."""
    return section(
        "tests",
        "Tests",
        "Each leads to its figures over time. The newest ones: first figure, least and largest of its variants.",
        table(
            "Tests",
            (
                "test",
                column("newest figures", "notes"),
                number("series"),
                number("records"),
                TIME | {"title": "last measured"},
                CHANGES,
            ),
            [
                (
                    link(line["name"], line["href"]),
                    line["newest"],
                    line["series"],
                    line["records"],
                    minute(line["time"]),
                    _changes(line),
                )
                for line in lines
            ],
        ),
    )


def campaigns(lines: Sequence[dict[str, Any]], name: str = "campaigns", title: str = "Campaigns") -> Block:
    """Campaigns of a system."""
    return section(
        name,
        title,
        "The newest first; each leads to its report.",
        table(
            title,
            (TIME | {"title": "began"}, column("campaign", "code"), "for", "stacks", *map(number, CAMPAIGN)),
            [
                (
                    link(minute(line["time"]), line["href"]),
                    line["name"],
                    line["kind"],
                    ", ".join(line["stacks"]),
                    line["variants"],
                    _not_valid(line),
                    line["launches"],
                    line["disturbed"],
                )
                for line in lines
            ],
            first=FIRST,
            empty="Its records are of no campaign.",
        ),
    )


def noted(notes: Sequence[Note]) -> Block:
    """The notes of a system, the newest first."""
    return section(
        "notes",
        "Notes",
        "What people noted of this system (plumb note), the newest first.",
        table(
            "Notes",
            (TIME, column("what happened", "notes")),
            [(minute(time), text) for time, text in notes_json(notes)],
            first=FIRST,
        ),
    )


def _changes(line: dict[str, Any]) -> Piece:
    """Counts of changes with the marks of verdicts: nothing is said by colour alone."""
    counts = ([block("badge", f"{line[name]} {name}", verdict=mark), " "] for name, mark in MARKS.items() if line[name])
    return list(counts) or "none"


def _not_valid(line: dict[str, Any]) -> Piece:
    return line["invalid"] and block("badge", str(line["invalid"]), verdict="invalid")


def notes_json(notes: Sequence[Note]) -> list[list[str]]:
    """Notes as JSON can hold them."""
    return [[note.time, note.text] for note in reversed(notes)]
