"""Which records a page is made of: the site, the campaign, and its records in full."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plumbline.base.errors import PlumbError
from plumbline.records import query, sources, store
from plumbline.records.model import Record, Row


def campaign(rows: Sequence[Row], wanted: str, site: str) -> tuple[str | None, list[Row]]:
    """The campaign whose id begins with ``wanted`` and its rows; ``last`` is that of the newest record of any campaign.

    Records of no campaign (``plumb launch`` by hand) are taken when there is no campaign at all. Raises
    :class:`PlumbError` unless exactly one campaign matches.
    """
    if not rows:
        raise sources.none_of(site)
    if wanted == "last":
        name = next((row.campaign for row in reversed(rows) if row.campaign), None)
    else:
        known = list(dict.fromkeys(row.campaign for row in rows if row.campaign))
        matches = [item for item in known if item.startswith(wanted)]
        if len(matches) != 1:
            some = ", ".join((matches or known)[-3:]) or "none"
            what = f"'{wanted}' begins {len(matches)} campaigns" if matches else f"no campaign '{wanted}'"
            raise PlumbError(what, f"site {site}", f"the newest are {some}")
        name = matches[0]
    return name, [row for row in rows if row.campaign == name]


def in_full(site: str, rows: Sequence[Row]) -> tuple[list[Record], list[store.Damage]]:
    """The whole records of ``rows``, and what could not be read of them.

    Session files are named after their session, so only those of ``rows`` are read. Records that are not there are
    looked for in what was compacted of these files, then everywhere.
    """
    wanted = {row.id for row in rows}
    found: dict[str, Record] = {}
    damages: list[store.Damage] = []
    for session in dict.fromkeys(row.session for row in rows if Path(row.session).name == row.session):
        file = store.session_file(site, session)
        if not file.is_file():
            continue
        for item in store.read(file):
            if isinstance(item, store.Damage):
                damages.append(item)
            elif item.id in wanted:
                found.setdefault(item.id, item)
    for files in ({f"{row.session}.jsonl" for row in rows if row.id not in found}, None):
        if missing := wanted - found.keys():
            records, more = query.full(missing, files)
            found |= {record.id: record for record in records}
            damages += more
    return list(found.values()), damages
