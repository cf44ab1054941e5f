"""Notes of what happened to a site, for a terminal."""

from __future__ import annotations

from plumbline.base.table import table
from plumbline.records.notes import Note


def line(note: Note) -> str:
    """A note on one line."""
    return f"{note.time[:16].replace('T', ' ')} {note.site}: {note.text} ({note.id})"


def listing(notes: list[Note]) -> str:
    """A table of notes, oldest first."""
    rows = [(note.id, note.time[:16].replace("T", " "), note.site, note.text) for note in notes]
    return table(("note", "time (UTC)", "site", "what happened"), rows)
