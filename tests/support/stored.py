"""Records as the JSON documents that stand in the files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plumbline.records import model, query, store
from plumbline.records.model import Record
from plumbline.records.store import Damage


def read_file(file: Path) -> Iterator[dict[str, Any] | Damage]:
    """Every record of a session file, and the damage that each other line is."""
    for item in store.read(file):
        yield item if isinstance(item, Damage) else document(item)


def read_all() -> tuple[list[dict[str, Any]], list[Damage]]:
    """All records, oldest first, and what could not be read."""
    return query.collect(document)


def document(record: Record) -> dict[str, Any]:
    """The record without its seal, which every writing puts on anew."""
    found = model.document(record)
    found.pop("seal", None)
    return found
