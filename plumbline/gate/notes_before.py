"""What people noted of a site shortly before a gate."""

from __future__ import annotations

import datetime

from plumbline.base import units
from plumbline.records import notes, sources

#: notes that are shown: so many at most, and not older than so many days
MOST, DAYS = 5, 30


def happened(site: str, until: str) -> list[str]:
    """The newest notes of ``site`` from the :data:`DAYS` days before ``until`` (a record's time, UTC).

    A damaged line is reported among them and is no error. A site that has no folder here, because the session was
    measured elsewhere, has no notes.
    """
    if site not in sources.sites():
        return []
    found, damages = notes.read(site)
    end = units.moment(until)
    since = (end - datetime.timedelta(days=DAYS)).isoformat()
    kept = [note for note in found if since <= note.time <= until]
    return [
        *(f"noted for {note.time[:16].replace('T', ' ')}: {note.text}" for note in kept[-MOST:]),
        *(f"damaged note: {damage}" for damage in damages),
    ]
