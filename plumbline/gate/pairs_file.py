"""The pairs of a live gate in its folder: ``pairs/N.jsonl`` has the two records of variant N.

The file is replaced whole after each pair.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from plumbline.base.errors import PlumbError
from plumbline.records import store
from plumbline.records.model import Record


def path(folder: Path, position: int) -> Path:
    """Where the two records of variant ``position`` are."""
    return folder / "pairs" / f"{position}.jsonl"


def read(folder: Path, position: int) -> list[Record] | None:
    """The two records of variant ``position``, or None if it has no pair yet.

    Raises :class:`PlumbError` for records that are damaged or were changed.
    """
    file = path(folder, position)
    if not file.exists():
        return None
    found = store.whole(file, "start a new gate")
    if not all(record.seal for record in found):
        raise PlumbError("changed since it was measured: it has no seal any more", str(file), "start a new gate")
    if len(found) != 2:
        raise PlumbError(f"{len(found)} records instead of two", str(file), "start a new gate")
    if len(found[0].launches) != len(found[1].launches):
        raise PlumbError("the records do not have equally many launches", str(file), "start a new gate")
    return found


def refuse_loss(results: Path, records: Iterable[Record]) -> None:
    """Raise :class:`PlumbError` unless ``records`` hold every launch of ``results``, which they will replace."""
    held = {record.id: record.launches for record in records}
    for item in store.whole(results, "move it away, or start a new gate") if results.exists() else ():
        if held.get(item.id, [])[: len(item.launches)] != item.launches:
            what = "the results of this gate have launches that its folder has not"
            raise PlumbError(what, str(results), "bring the folder's pairs back, or start a new gate")
