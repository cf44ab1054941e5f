"""The data of the page of a campaign: plain JSON, in an order that follows from the records only.

A page has the whole records of its rows, the ones left out, and the unreadable ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from plumbline.base.errors import PlumbError
from plumbline.base.extensions import Extension
from plumbline.records import outcome, query, sources, store
from plumbline.records.model import AnyRecord, Record, Row
from plumbline.records.notes import Note
from plumbline.records.store import Damage
from plumbline.show.compare import hybrids
from plumbline.show.efficiency import work
from plumbline.show.pages.blocks import Block
from plumbline.show.report import history, matrices
from plumbline.show.report.answer import answer, sentence
from plumbline.show.report.circumstances import circumstances, devices
from plumbline.show.report.collectives import collectives
from plumbline.show.report.curves import messages
from plumbline.show.report.entry import PARTS, Shared, entry, severity
from plumbline.show.report.findings import Campaign, findings, stacks
from plumbline.show.report.launches import launches, placements
from plumbline.show.report.overview import head, left_out, other_measurements, overview
from plumbline.show.report.stream import stream

Item = TypeVar("Item", bound=AnyRecord)
Page = TypeVar("Page")
#: records of a campaign that a page holds in full, the newest; older ones are counted and stay in the history
MAX_RECORDS = 1000
#: sections of extras, from the usable records of the campaign and the rows of the site
SECTIONS: Extension[[Sequence[Record], Sequence[Row]], Block] = Extension("report.sections")


def document(
    site: str,
    records: Sequence[Record],
    past: Sequence[Row] | None = None,
    rows: Sequence[Row] = (),
    *,
    campaign: str | None = None,
    ended: dict[str, Any] | None = None,
    older: tuple[int, int] = (0, 0),
    damages: Sequence[str] = (),
    notes: Sequence[Note] = (),
    others: Sequence[Row] = (),
) -> dict[str, Any]:
    """Everything a page shows: ``records`` in full, ``past`` (rows, oldest first) as history, sections of extras.

    Those are made from the records and from ``rows``, those of the campaign and the past. ``ended`` comes from
    :mod:`plumbline.records.outcome`; ``older`` counts records of the campaign beyond the room of a page, and those of
    them that are not valid; ``damages`` name lines of the results that could not be read; ``notes`` are those of the
    site, ``others`` its records that were measured for something else.

    Numbers are those of the records; one that is not finite becomes a word.
    """
    shared = Shared()
    records = sorted(records, key=severity)
    entries = [entry(record, shared) for record in records]
    numbered = [(record, number) for number, record in enumerate(records)]
    usable = [(record, number) for record, number in numbered if record.is_valid]
    measured = Campaign(numbered)
    trends = None if past is None else history.history(past, notes)
    sections = [
        stacks(measured),
        overview(site, numbered),
        left_out(numbered, ended, older, damages),
        placements(usable),
        stream(usable),
        messages(usable),
        collectives(usable),
        hybrids(usable),
        matrices.section(usable),
        *SECTIONS([record for record, _ in usable], rows),
        work(usable),
        launches(usable),
        *([] if trends is None else [history.section(trends, measured.numbers, "is of another campaign: plumb show")]),
        *([other_measurements(site, others)] if others else []),
        devices(records),
        circumstances({kind: shared.items(kind) for kind in PARTS}),
    ]
    is_own = bool(records) and all(record.variant.application for record in records)  # no test of the suite is missing
    shown = {
        "title": f"Plumbline report: {site} {campaign or ''}".strip(),
        "heading": "Plumbline report",
        "head": head(site, campaign, records, ended, shared.items("suite")),
        "history": len(trends["series"]) if trends else 0,
        "answer": sentence(measured),
        "entries": entries,
        "shared": shared.items(""),
        "sections": [
            answer(measured),
            findings(measured),
            *sorted(
                (section for section in sections if not (is_own and section.get("empty"))),
                key=lambda section: bool(section.get("empty")),
            ),
        ],
    }
    return {name: finite(value) for name, value in shown.items()}


def finite(value: Any) -> Any:
    """``value`` with every number that JSON has no word for as a string: ``nan``, ``inf``, ``-inf``."""
    if value is None or isinstance(value, str | int):  # most values
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): finite(inner) for key, inner in value.items()}
    return [finite(inner) for inner in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Composed:
    """The data of a page, the records that it shows, the number of those left out, and all damages.

    ``odd`` are the damages of records that cannot be shown.
    """

    document: dict[str, Any]
    records: list[Record]
    left_out: int
    damages: list[Damage]
    odd: list[Damage]


def compose(
    site: str,
    campaign: str | None,
    chosen: Sequence[Row],
    ended: dict[str, Any] | None,
    past: Sequence[Row] | None = None,
    damages: Sequence[Damage] = (),
    notes: Sequence[Note] = (),
    others: Sequence[Row] = (),
) -> Composed:
    """The page of the ``campaign`` whose rows are ``chosen``, with ``past`` as its history and the profiles of both.

    Without ``past`` it has no history. ``others`` are listed by what they were measured for.
    """
    left_out, kept = chosen[:-MAX_RECORDS], chosen[-MAX_RECORDS:]
    records, more = query.of_rows(kept)
    distinct_damages = list(dict.fromkeys([*damages, *more]))

    def page_of(some: Sequence[AnyRecord], odd: Sequence[Damage]) -> dict[str, Any]:
        there = {item.id for item in some}
        every = {row.id: row for row in (*(past or ()), *others, *chosen)}
        return document(
            site,
            [record for record in records if record.id in there],
            None if past is None else [row for row in past if row.id in there],
            sorted(every.values(), key=lambda row: row.time),
            campaign=campaign,
            ended=ended,
            older=(len(left_out), sum(not row.is_valid for row in left_out)),
            # without the path of this machine before the results folder
            damages=[f"{item.file.name}:{item.line}: {item.reason}" for item in (*distinct_damages, *odd)],
            notes=notes,
            others=others,
        )

    items: list[AnyRecord] = [*(past or ()), *records]
    whole_page, odd = without_odd(page_of, list({item.id: item for item in items}.values()))
    return Composed(whole_page, records, len(left_out), [*distinct_damages, *odd], odd)


def without_odd(
    make: Callable[[Sequence[Item], Sequence[Damage]], Page], items: Sequence[Item]
) -> tuple[Page, list[Damage]]:
    """The page of ``items`` by ``make``, without the items that ``make`` cannot show; these become damages.

    A record may be sound by its seal and its types, and hold values that only another version of the program knows.
    Raises :class:`PlumbError` where no item is left.
    """
    try:
        return make(items, ()), []
    except Exception:
        odd = _odd(make, items)
        if not odd:
            raise
    named = [
        Damage(store.session_file(item.site, item.session), 0, f"record {item.id} cannot be shown: {why}")
        for item, why in odd.values()
    ]
    if len(odd) == len(items):
        raise PlumbError(named[0].reason, str(named[0].file), "show it with the version that wrote it")
    return make([item for item in items if item.id not in odd], named), named


def _odd(
    make: Callable[[Sequence[Item], Sequence[Damage]], Page], items: Sequence[Item]
) -> dict[str, tuple[Item, str]]:
    """The items that ``make`` cannot show, by id, each with the reason."""
    try:
        make(items, ())
    except Exception as error:
        if len(items) < 2:
            return {item.id: (item, f"{type(error).__name__}: {error}") for item in items}
        half = len(items) // 2
        return _odd(make, items[:half]) | _odd(make, items[half:])
    return {}


def choose(rows: Sequence[Row], wanted: str, site: str, profile: str | None = None) -> tuple[str | None, list[Row]]:
    """The campaign whose id begins with ``wanted`` and its rows; ``last`` is the newest whole one of ``profile``.

    Without a profile that is one of the suite, or where there is none of an application, or of an unknown profile; or
    else the newest part, or the newest lab. Records of no campaign (``plumb launch`` by hand) are taken when there is
    no campaign at all. Raises :class:`PlumbError` unless exactly one campaign matches.
    """
    if not rows:
        raise sources.none_of(site)
    known = list(dict.fromkeys(row.campaign for row in reversed(rows) if row.campaign))  # the newest first
    if wanted == "last":
        standings = {name: outcome.standing(site, name) for name in known}
        whole = [name for name in known if profile is None or standings[name] == (profile, None)]
        if profile and not whole:
            some = "; ".join(dict.fromkeys(map(str, standings.values()))) or "none"
            raise PlumbError(f"no whole campaign of profile '{profile}'", f"site {site}", f"there are: {some}")
        name = min(whole, key=lambda name: standings[name].rank, default=None)
    else:
        known.reverse()
        matches = [item for item in known if item.startswith(wanted)]
        if len(matches) != 1:
            some = ", ".join((matches or known)[-3:]) or "none"
            message = f"'{wanted}' begins {len(matches)} campaigns" if matches else f"no campaign '{wanted}'"
            raise PlumbError(message, f"site {site}", f"the newest are {some}")
        name = matches[0]
    chosen = [row for row in rows if row.campaign == name]
    return name, [row for row in chosen if name or not row.is_experiment] or chosen
