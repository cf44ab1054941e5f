"""Notes of people: what happened to a site, and when, such as a kernel update. Histories and pages show them.

``results/SITE/notes.ndjson`` has one JSON line each. The file is replaced whole under a lock, so that it is at any
moment either the old or the new one. It holds no records: its name keeps it from those who look for session files.
"""

from __future__ import annotations

import datetime
import json
import secrets
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from plumbline.base import files, paths, units
from plumbline.base.errors import PlumbError
from plumbline.records import sources, store
from plumbline.records.figure import Time

#: characters of a note: it is shown in tables
LONGEST = 500


class Note(Struct, frozen=True, kw_only=True, order=True):
    """``text`` is what happened at ``site`` at ``time`` (UTC); ``written`` is when that was written down."""

    time: Time
    id: Annotated[str, Meta(pattern="^[0-9a-f]{8}$")]
    text: Annotated[str, Meta(min_length=1)]
    site: str
    written: Time = msgspec.field(name="made")
    schema: Literal[1] = 1


def file(site: str) -> Path:
    """Where the notes of a site are."""
    return paths.results() / site / "notes.ndjson"


def read(site: str) -> tuple[list[Note], list[store.Damage]]:
    """The notes of a site, oldest first, and the lines that are not notes.

    Raises :class:`PlumbError` if the file cannot be read.
    """
    known = [(number, _note(line)) for number, line in _lines(file(site))]
    damages = [store.Damage(file(site), number, note) for number, note in known if isinstance(note, str)]
    return sorted(note for _, note in known if isinstance(note, Note)), damages


def of_sites(sites: Iterable[str]) -> tuple[list[Note], list[store.Damage]]:
    """The notes of all ``sites``, oldest first, and the lines that are not notes; raises like :func:`read`."""
    both = [read(site) for site in sorted(set(sites))]
    return sorted(note for notes, _ in both for note in notes), [line for _, damages in both for line in damages]


def between(notes: Sequence[Note], site: str, after: str, until: str) -> list[Note]:
    """The notes of ``site`` later than ``after`` and no later than ``until``: they may explain a change there."""
    return [note for note in notes if note.site == site and after < note.time <= until]


def add(site: str, text: str, time: str) -> Note:
    """Add a note to a site and return it; ``time`` is as :func:`moment` returns it.

    Raises :class:`PlumbError` for a site without records, and if the file cannot be written.
    """
    note = Note(time=time, id=secrets.token_hex(4), text=text, site=site, written=store.now())
    line = json.dumps(msgspec.to_builtins(note), ensure_ascii=False).encode() + b"\n"
    _change(site, lambda lines: [*lines, line])
    return note


def remove(site: str, prefix: str) -> Note:
    """Remove and return the note whose id begins with ``prefix``; lines that are not notes stay as they are.

    Raises :class:`PlumbError` unless there is exactly one.
    """
    matches = [note for note in read(site)[0] if note.id.startswith(prefix)]
    if len(matches) != 1:
        raise PlumbError(
            f"'{prefix}' begins {len(matches)} notes" if matches else f"no note '{prefix}'",
            str(file(site)),
            "plumb note shows the ids",
        )
    _change(site, lambda lines: [line for line in lines if _note(line) != matches[0]])
    return matches[0]


def moment(text: str) -> str:
    """``2026-11-22`` or ``2026-11-22T10:30[:00][Z]`` (UTC) as records have times; else raises :class:`PlumbError`."""
    try:
        return units.utc(text)
    except (ValueError, OverflowError):
        raise PlumbError(
            f"'{text[:40]}' is not a time", "--time", "such as 2026-11-22 or 2026-11-22T10:30 (UTC), from 1970 to 2199"
        ) from None


def _note(line: bytes) -> Note | str:
    """The note that a line is, or why it is none."""
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        return f"not a note: {error}"


def _lines(source: Path) -> list[tuple[int, bytes]]:
    """(number, text) of every line that is not blank; none where there is no file."""
    try:
        with files.opened(source) as stream:
            return [(number, line) for number, line in enumerate(stream, start=1) if not line.isspace()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise PlumbError(f"cannot read the notes: {error.strerror}", str(source), "correct it") from error


def _change(site: str, make: Callable[[list[bytes]], list[bytes]]) -> None:
    folder = paths.results() / site
    sources.require_site(site)
    with (
        files.writing("the note", folder),
        files.lock(folder / ".notes.lock"),
        files.replacing(file(site)) as temporary,
    ):
        whole = [line if line.endswith(b"\n") else line + b"\n" for _, line in _lines(file(site))]
        temporary.write_bytes(b"".join(make(whole)))


_DECODER = msgspec.json.Decoder(Note)
#: notes that are shown: the largest number, and the largest age in days
SHOWN, SHOWN_DAYS = 5, 30


def before(site: str, until: str) -> list[str]:
    """The newest notes of ``site`` from the :data:`DAYS` days before ``until`` (a record's time, UTC).

    A damaged line is reported among them and is not an error. A site that has no folder here, because the session was
    measured elsewhere, has no notes.
    """
    if site not in sources.sites():
        return []
    notes, damages = read(site)
    since = (units.moment(until) - datetime.timedelta(days=SHOWN_DAYS)).isoformat()
    kept = [note for note in notes if since <= note.time <= until][-SHOWN:]
    lines = [f"noted for {units.minute(note.time)}: {note.text}" for note in kept]
    return lines + [f"damaged note: {damage}" for damage in damages]
