"""The data of a page: plain JSON, in an order that follows from the records only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.base.extensions import Extension
from plumbline.records.model import Record, Row
from plumbline.records.notes import Note
from plumbline.show import hybrid
from plumbline.show.efficiency import work
from plumbline.show.pages.blocks import Block
from plumbline.show.report import history, matrices
from plumbline.show.report.answer import answer, sentence
from plumbline.show.report.circumstances import circumstances, devices
from plumbline.show.report.collectives import collectives
from plumbline.show.report.curves import messages
from plumbline.show.report.entry import Shared, entry, severity
from plumbline.show.report.findings import Campaign, findings, stacks
from plumbline.show.report.launches import launches
from plumbline.show.report.overview import head, left_out, others, overview
from plumbline.show.report.placements import placements
from plumbline.show.report.stream import stream

#: sections of extras, from the usable records of the campaign and the rows of the site
SECTIONS: Extension[[Sequence[Record], Sequence[Row]], Block] = Extension("report.sections")


@dataclass(frozen=True)
class Scope:
    """The subject of a page, and its missing parts.

    ``outcome`` comes from :mod:`plumbline.records.outcome`; ``damages`` name lines of the results that could not be
    read; ``left_out`` counts records of the campaign beyond the room of a page, ``left_out_invalid`` those of them that
    are not valid; ``notes`` are those of the site, ``others`` its records that were measured for something else.
    """

    site: str
    campaign: str | None = None
    outcome: dict[str, Any] | None = None
    damages: Sequence[str] = ()
    left_out: int = 0
    left_out_invalid: int = 0
    notes: Sequence[Note] = ()
    others: Sequence[Row] = ()


def document(
    scope: Scope, records: Sequence[Record], past: Sequence[Row] | None = None, rows: Sequence[Row] = ()
) -> dict[str, Any]:
    """Everything a page shows: ``records`` in full, ``past`` (rows, oldest first) as history, sections of extras.

    Those are made from the records and from ``rows``, those of the campaign and the past.

    Numbers are those of the records; one that is not finite becomes a word.
    """
    shared = Shared()
    records = sorted(records, key=severity)
    entries = [entry(record, shared) for record in records]
    numbered = [(record, number) for number, record in enumerate(records)]
    usable = [(record, number) for record, number in numbered if record.is_valid]
    campaign = Campaign(numbered)
    trends = None if past is None else history.history(past, scope.notes)
    numbers = {record.id: number for record, number in numbered}
    first = [answer(campaign), findings(campaign)]
    sections = [
        stacks(campaign),
        overview(scope.site, numbered),
        left_out(numbered, scope.outcome, (scope.left_out, scope.left_out_invalid), scope.damages),
        placements(usable),
        stream(usable),
        messages(usable),
        collectives(usable),
        hybrid.section(usable),
        matrices.section(usable),
        *SECTIONS([record for record, _ in usable], rows),
        work(usable),
        launches(usable),
        *([] if trends is None else [history.section(trends, numbers, "is of another campaign: plumb show")]),
        *([others(scope.site, scope.others)] if scope.others else []),
        devices(records),
        circumstances(shared.parts),
    ]
    is_own = bool(records) and all(record.variant.application for record in records)  # no test of the suite is missing
    shown = {
        "title": f"Plumbline report: {scope.site} {scope.campaign or ''}".strip(),
        "heading": "Plumbline report",
        "head": head(scope.site, scope.campaign, records, scope.outcome, shared.parts["suite"]),
        "history": len(trends["series"]) if trends else 0,
        "answer": sentence(campaign),
        "entries": entries,
        "shared": shared.pieces,
        "sections": first + sorted(
            (section for section in sections if not (is_own and section.get("empty"))),
            key=lambda section: bool(section.get("empty")),
        ),
    }
    document: dict[str, Any] = finite(shown)
    return document


def finite(value: Any) -> Any:
    """``value`` with every number that JSON has no word for as a string: ``nan``, ``inf``, ``-inf``."""
    if value is None or isinstance(value, str | int):  # most values
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return value
