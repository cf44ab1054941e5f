"""The page of one campaign from its rows: its whole records, what is left out of it, and what could not be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.records import query
from plumbline.records.model import Record, Row
from plumbline.records.notes import Note
from plumbline.records.store import Damage
from plumbline.report import data
from plumbline.report import profiles as profiled

#: records of a campaign that a page holds in full, the newest; older ones are counted and stay in the history
MAX_RECORDS = 1000


@dataclass(frozen=True)
class Composed:
    """The data of a page, the records that it shows, how many it leaves out, and all damage that was met."""

    document: dict[str, Any]
    records: list[Record]
    left_out: int
    damages: list[Damage]


def compose(
    site: str,
    campaign: str | None,
    chosen: Sequence[Row],
    outcome: dict[str, Any] | None,
    past: Sequence[Row] | None = None,
    damages: Sequence[Damage] = (),
    notes: Sequence[Note] = (),
) -> Composed:
    """The page of the ``campaign`` whose rows are ``chosen``, with ``past`` as its history and the profiles of both.

    Without ``past`` it has no history.
    """
    left_out, kept = chosen[:-MAX_RECORDS], chosen[-MAX_RECORDS:]
    records, more = query.of_rows(kept)
    found = list(dict.fromkeys([*damages, *more]))
    scope = data.Scope(
        site,
        campaign,
        outcome,
        damages=[_damage(item) for item in found],
        left_out=len(left_out),
        left_out_invalid=sum(not row.is_valid for row in left_out),
        notes=notes,
    )
    document = data.document(scope, records, past, profiled.stored([*(past or ()), *chosen]))
    return Composed(document, records, len(left_out), found)


def _damage(item: Damage) -> str:
    """A damaged line without the path of this machine before the results folder."""
    return f"{item.file.name}:{item.line}: {item.reason}"
