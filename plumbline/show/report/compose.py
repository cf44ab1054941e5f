"""The page of one campaign from its rows: its whole records, the ones left out, and the unreadable ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from plumbline.base.errors import PlumbError
from plumbline.records import outcome, query, sources, store
from plumbline.records.model import AnyRecord, Record, Row
from plumbline.records.notes import Note
from plumbline.records.store import Damage
from plumbline.show.report import data

Item = TypeVar("Item", bound=AnyRecord)
Page = TypeVar("Page")
#: records of a campaign that a page holds in full, the newest; older ones are counted and stay in the history
MAX_RECORDS = 1000


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
        scope = data.Scope(
            site,
            campaign,
            ended,
            # without the path of this machine before the results folder
            damages=[f"{item.file.name}:{item.line}: {item.reason}" for item in (*distinct_damages, *odd)],
            left_out=len(left_out),
            left_out_invalid=sum(not row.is_valid for row in left_out),
            notes=notes,
            others=others,
        )
        history = None if past is None else [row for row in past if row.id in there]
        whole = [record for record in records if record.id in there]
        every = {row.id: row for row in (*(past or ()), *others, *chosen)}
        return data.document(scope, whole, history, sorted(every.values(), key=lambda row: row.time))

    items: list[AnyRecord] = [*(past or ()), *records]
    document, odd = without_odd(page_of, list({item.id: item for item in items}.values()))
    return Composed(document, records, len(left_out), [*distinct_damages, *odd], odd)


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
