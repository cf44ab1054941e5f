"""Records as the JSON documents that stand in the files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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


def sound(results: object = None) -> list[dict[str, Any]]:
    """All records, of the folder ``results`` if it is named; no line is damaged."""
    with pytest.MonkeyPatch.context() as patch:
        if results is not None:
            patch.setenv("PLUMB_RESULTS", str(results))
        records, damages = read_all()
    assert damages == []
    return records


def document(record: Record) -> dict[str, Any]:
    """The record without its seal, which every writing puts on anew."""
    found = model.document(record)
    found.pop("seal", None)
    return found


def keep(*records: dict[str, Any]) -> None:
    """Write each of ``records`` into the file of its session."""
    for record in records:
        store.write(store.session_file("local", record["session"]), [record])
