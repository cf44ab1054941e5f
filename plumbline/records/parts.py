"""Compacted records: Parquet files whose rows are the lines of session files, as they were.

Columns: ``source`` (the session file, relative to the site's folder), ``line`` (its number in it), ``id``, ``time`` and
``json``, the line itself. A part is written once and never changed. A session file that exists beats its rows in parts,
and of several parts with rows of one session file the last by name counts: so no state of a compaction counts twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.records import store
from plumbline.records.sources import Sources, connect, names, session_of

if TYPE_CHECKING:
    import duckdb

Pair = tuple[str, str]


def current(sources: Sources) -> tuple[dict[Path, set[str]], dict[Path, str]]:
    """The parts that hold something not superseded: each with the sources to read; and those that cannot be read, why.

    >>> current(Sources([], []))
    ({}, {})
    """
    import duckdb

    present, newest, faults = set(sources.sessions), dict[Path, Path](), dict[Path, str]()
    with connect() as engine:
        for part in sources.parts:
            try:
                rows = engine.execute("SELECT DISTINCT source FROM read_parquet($part)", {"part": names([part])})
                found = [session_of(part, source) for (source,) in rows.fetchall()]
            except duckdb.Error as error:
                faults[part] = reason(error)
                continue
            newest.update((session, part) for session in found if session not in present)
    wanted: dict[Path, set[str]] = {}
    for session, part in newest.items():
        wanted.setdefault(part, set()).add(session.relative_to(part.parent.parent).as_posix())
    return wanted, faults


def reason(error: duckdb.Error) -> str:
    """The first line of what the engine says."""
    return str(error).splitlines()[0]


def lines(part: Path, wanted: set[str]) -> list[tuple[str, int, str]]:
    """(source, number, text) of the lines of ``part`` whose source is ``wanted``, in order. Raises duckdb.Error."""
    query = "SELECT source, line, json FROM read_parquet($part) WHERE source IN $wanted ORDER BY source, line"
    with connect() as engine:
        return engine.execute(query, {"part": names([part]), "wanted": sorted(wanted)}).fetchall()


def read(sources: Sources) -> Iterator[tuple[Path, int, dict[str, Any] | store.Damage]]:
    """(part, line of the session file, record or why it is none) of everything compacted that counts."""
    import duckdb

    wanted, faults = current(sources)
    for part, why in faults.items():
        yield part, 0, store.Damage(part, 0, why)
    for part, names_wanted in wanted.items():
        try:
            found = lines(part, names_wanted)
        except duckdb.Error as error:
            yield part, 0, store.Damage(part, 0, reason(error))
            continue
        for _, number, text in found:
            yield part, number, store.parse(part, number, text.encode() + b"\n")
