"""The program and libraries that a record's ranks loaded: listed once in the record, and the same in every launch."""

from __future__ import annotations

from typing import Any

from plumbline.records.model import LoadedFile, Record

#: changed files that one reason names
SHOWN = 3


def note(record: Record, seen: list[dict[str, Any]]) -> list[str]:
    """Add the files that a launch's ranks loaded to ``record``; return how they differ from those of earlier launches.

    A path stands for the same file on all nodes; on several nodes, the time of its last change may differ.
    """
    known = {file.path: file for file in record.loaded}
    one_node = record.placement.nodes == 1
    changed: dict[str, None] = {}
    for witness in seen:
        for item in witness["objects"]:
            file = LoadedFile(**item)
            first = known.setdefault(file.path, file)
            same_time = file.modified_ns == first.modified_ns or not one_node
            if (file.build_id, file.bytes) != (first.build_id, first.bytes) or not same_time:
                changed[file.path] = None
    record.loaded = list(known.values())
    return [*_other_program(record, seen), *_shown(list(changed))]


def _other_program(record: Record, seen: list[dict[str, Any]]) -> list[str]:
    first = next((rank.program for launch in record.launches for rank in launch.ranks), None)
    others = sorted({witness["program"] for witness in seen} - {first})
    return [f"the ranks ran {', '.join(others)}, those of the first launch {first}"] if first and others else []


def _shown(changed: list[str]) -> list[str]:
    if not changed:
        return []
    more = f" and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
    return [f"loaded other files than before: {', '.join(changed[:SHOWN])}{more} changed since the first launch"]
