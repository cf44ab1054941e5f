"""The data of a page: plain JSON, in an order that follows from the records only."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.base import group
from plumbline.compare import hybrid
from plumbline.profiles.model import Profile
from plumbline.records.model import Record, Row
from plumbline.records.notes import Note
from plumbline.records.outcome import WITHOUT_FIGURES
from plumbline.report import history, matrices
from plumbline.report.circumstances import circumstances, devices
from plumbline.report.collectives import collectives
from plumbline.report.curves import curves
from plumbline.report.efficiency import work
from plumbline.report.entry import SEVERITY, Shared, entry, severity
from plumbline.report.findings import Campaign, compared, findings, stacks
from plumbline.report.profiles import profiled
from plumbline.topology import binder
from plumbline.views import summary


@dataclass(frozen=True)
class Scope:
    """The subject of a page, and what it lacks.

    ``outcome`` is what :mod:`plumbline.records.outcome` read; ``damages`` name lines of the results that could not be
    read; ``left_out`` counts records of the campaign beyond what a page holds, ``left_out_invalid`` those of them that
    are not valid; ``notes`` are those of the site.
    """

    site: str
    campaign: str | None = None
    outcome: dict[str, Any] | None = None
    damages: Sequence[str] = ()
    left_out: int = 0
    left_out_invalid: int = 0
    notes: Sequence[Note] = ()


def document(
    scope: Scope, records: Sequence[Record], past: Sequence[Row] | None = None, profiles: Sequence[Profile] = ()
) -> dict[str, Any]:
    """Everything a page shows: ``records`` in full, ``past`` (rows, oldest first) as history, and ``profiles``.

    Numbers are those of the records; one that is not finite becomes a word.
    """
    shared = Shared()
    records = sorted(records, key=severity)
    entries = [entry(record, shared) for record in records]
    numbered = [(record, number) for number, record in enumerate(records)]
    usable = [(record, number) for record, number in numbered if record.is_valid]
    campaign = Campaign(numbered, compared(usable))
    found = None if past is None else history.history(past, scope.notes)
    numbers = {record.id: number for record, number in numbered}
    shown = {
        "title": f"Plumbline report: {scope.site} {scope.campaign or ''}".strip(),
        "site": scope.site,
        "campaign": scope.campaign,
        "begin": min((record.time for record in records), default=None),
        "end": max((record.time for record in records), default=None),
        "closing": summary.closing(records),
        "legend": summary.legend(records),
        "counts": _counts(entries),
        "severity": SEVERITY,
        "distances": [placement.name for placement in binder.placements() if placement.pair],
        "entries": entries,
        "shared": shared.items,
        "curves": [curve for record, number in usable for curve in curves(record, number)],
        "history": len(found["series"]) if found else 0,
        "sections": [
            findings(campaign),
            stacks(campaign),
            "overview",
            "left-out",
            "stream",
            "curves",
            collectives(usable),
            hybrid.section(usable),
            matrices.section(usable),
            profiled(profiles),
            work(usable),
            "launches",
            *([] if found is None else [history.section(found, numbers, "is of another campaign: plumb show")]),
            devices(records),
            circumstances(shared.items),
        ],
        "outcome": _outcome(scope.outcome),
        "damages": list(scope.damages),
        "left_out": {"records": scope.left_out, "invalid": scope.left_out_invalid},
    }
    document: dict[str, Any] = finite(shown)
    return document


def _counts(entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    launches = [launch for item in entries for launch in item["launches"]]
    return {
        "variants": len(entries),
        "verified": sum(item["verified"] for item in entries),
        "launches": len(launches),
        "disturbed": sum(launch["disturbed"] for launch in launches),
        "verdicts": Counter(item["verdict"] for item in entries),
    }


def _outcome(outcome: dict[str, Any] | None) -> dict[str, Any] | None:
    """Cases without figures, by state and reason: those that concern most cases first."""
    if outcome is None:
        return None
    groups = group(
        ((case["state"], case["reason"] or "no reason given"), case["case"])
        for case in outcome["cases"]
        if case["state"] in WITHOUT_FIGURES
    )
    rows = [{"state": state, "reason": reason, "cases": cases} for (state, reason), cases in groups.items()]
    rows.sort(key=lambda row: (row["state"] == "SKIP", -len(row["cases"]), row["reason"]))
    return {"profile": outcome["profile"], "ran": len(outcome["cases"]), "groups": rows}


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
