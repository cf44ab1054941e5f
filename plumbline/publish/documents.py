"""The data of the pages above the reports: all systems, one system, its machine, one of its tests over time."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from plumbline import site
from plumbline.compare.page import document
from plumbline.errors import PlumbError
from plumbline.host.draw import draw
from plumbline.judge.compare import compare
from plumbline.judge.sides import Side
from plumbline.records.model import FLEETING, Row
from plumbline.records.notes import Note
from plumbline.report.data import finite
from plumbline.report.history import history

#: points of a series on the page of its test, the newest
MOST_POINTS = 1000
#: changes that a system's page lists, and states of hosts that its machine's page shows: the newest
MOST_CHANGES, MOST_STATES = 50, 8
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,99}")


def slug(name: str) -> str:
    """The name of a page's file: ``name`` where every file system accepts it, else the beginning of its SHA-256."""
    return name if _PLAIN.fullmatch(name) else sha256(name.encode(errors="surrogatepass")).hexdigest()[:20]


def counts(rows: Sequence[Row]) -> dict[str, int]:
    """How many variants, invalid ones, launches and disturbed launches ``rows`` are."""
    return {
        "variants": len(rows),
        "invalid": sum(not row.is_valid for row in rows),
        "launches": sum(row.launch_count for row in rows),
        "disturbed": sum(row.disturbed_count for row in rows),
    }


def campaign_line(name: str, rows: Sequence[Row], href: str | None) -> dict[str, Any]:
    """A campaign in the list of its system; ``href`` is None where its page could not be made."""
    return {
        "name": name,
        "href": href,
        "time": rows[0].time,
        "stacks": sorted({row.stack.name for row in rows}),
        **counts(rows),
    }


def series(
    name: str, rows: Sequence[Row], notes: Sequence[Note], trail: list[list[str]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The page of a test: its series with change points and notes; and its changes, for the system's page.

    A point has the campaign of its record as a fourth member: its number in ``campaigns``, or -1.
    """
    found = history(rows, notes, MOST_POINTS)
    campaigns = {row.id: row.campaign for row in rows if row.campaign}
    names = list(dict.fromkeys(campaigns.values()))
    numbers = {campaign: number for number, campaign in enumerate(names)}
    changes = []
    for one in found["series"]:
        times = {identity: time for time, _, identity in one["points"]}
        for point in one["points"]:
            point.append(numbers.get(campaigns.get(point[2], ""), -1))
        for alarm in one["alarms"]:
            shown = {key: alarm.get(key) for key in ("ratio", "direction", "notes")}
            changes.append({"series": one["name"], "time": times[alarm["index"]], **shown})
    changes.sort(key=lambda change: (change["time"], change["series"]), reverse=True)
    document = {
        "title": f"{name}: history",
        "test": name,
        "trail": trail,
        "history": found,
        "campaigns": [f"../campaigns/{slug(campaign)}.html" for campaign in names],
    }
    directions = Counter(change["direction"] for change in changes)
    facts = {
        "series": len(found["series"]) + found["left_out"],
        "worse": directions["worse"],
        "better": directions["better"],
        "changes": changes[:MOST_CHANGES],
    }
    return document, facts


def machine(name: str, rows: Sequence[Row], trail: list[list[str]]) -> dict[str, Any]:
    """The page of a system's machine: a drawing of each partition, and the newest states of its hosts."""
    states: dict[str, tuple[str, dict[str, Any]]] = {}
    for row in rows:
        if row.is_imported:
            continue
        host = {key: value for key, value in row.host.items() if key not in FLEETING}
        states[json.dumps(host, sort_keys=True)] = (row.time, finite(host))
    newest = sorted(states.values(), key=lambda state: state[0], reverse=True)
    return {
        "title": f"{name}: machine",
        "heading": f"Machine of {name}",
        "trail": trail,
        "machines": _drawings(name, {row.partition for row in rows if not row.is_imported}),
        "hosts": [host for _, host in newest[:MOST_STATES]],
        "states": len(newest),
    }


def _drawings(name: str, partitions: set[str]) -> list[dict[str, str]]:
    """A drawing of each partition whose topology is known, or why there is none."""
    try:
        described = site.load(name)
    except PlumbError as error:
        return [{"partition": partition, "why": error.what} for partition in sorted(partitions)]
    found = []
    for part in described["partitions"]:
        if part["name"] not in partitions:
            continue
        try:
            found.append(
                {
                    "partition": part["name"],
                    "text": draw(site.folder(name) / part["topology"], name=f"{name}:{part['name']}"),
                }
            )
        except PlumbError as error:
            found.append({"partition": part["name"], "why": error.what})
    return found


def side_by_side(newest: Mapping[str, Sequence[Row]], trail: list[list[str]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The page of all systems in one table, and its summary line; ``newest``: the newest campaign's rows, by system."""
    sides = [Side(name, (("site", name),)) for name in newest]
    shown = document(compare([row for rows in newest.values() for row in rows], sides))
    campaigns = ["newest campaign", *(f"{rows[0].campaign}, {rows[0].time[:10]}" for rows in newest.values())]
    page = {
        **shown,
        "title": "Systems side by side",
        "trail": trail,
        "circumstances": [campaigns, *shown["circumstances"]],
    }
    return page, {"closing": shown["closing"]}


def told(notes: Sequence[Note]) -> list[list[str]]:
    """Notes for a page, the newest first."""
    return [[note.time, note.text] for note in reversed(notes)]
