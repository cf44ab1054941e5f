"""Compacted records: Parquet files whose rows are the lines of session files, as they were.

Columns: ``source`` (the session file, relative to the site's folder), ``line`` (its number in it), ``id``, ``time`` and
``json``, the line itself. A part is written once and never changed. A session file that exists beats its rows in parts,
and of several parts with rows of one session file the last by name counts: so no record counts twice, even while a
compaction runs or after one was interrupted.
"""

from __future__ import annotations

import functools
import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.base.files import state
from plumbline.records.sources import Sources, check_present

if TYPE_CHECKING:
    import duckdb

#: more threads than this read no faster from one file system, and each holds buffers
THREADS = 4
#: session files asked of a part at a time: their lines are in memory together
SOURCES_AT_ONCE = 128


class Unreadable(Exception):
    """A part cannot be read; the text says why."""


def connect() -> duckdb.DuckDBPyConnection:
    """An engine in memory that fetches no extension from anywhere and writes no temporary file."""
    import duckdb  # not above: most sites have no compacted records, and plumb launch reads none

    threads = min(THREADS, len(os.sched_getaffinity(0)))
    settings: dict[str, Any] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "temp_directory": "",
        "threads": str(threads),
        "preserve_insertion_order": "false",
    }
    engine = duckdb.connect(":memory:", config=settings)
    engine.execute("SET enable_progress_bar = false")  # it would write between the lines of a command
    return engine


def names(files: Iterable[Path]) -> list[str]:
    """File names with ``*`` and ``[`` escaped, which the engine would take for patterns."""
    return [glob.escape(str(file)) for file in files]


def quoted(path: Path) -> str:
    """A file name as a literal, where the engine takes no parameter."""
    return "'" + str(path).replace("'", "''") + "'"


def reason(error: duckdb.Error) -> str:
    """The first line of what the engine says."""
    return str(error).splitlines()[0]


def current(sources: Sources) -> tuple[dict[Path, set[str]], dict[Path, str]]:
    """The parts that hold something not superseded: each with the sources to read; and those that cannot be read, why.

    >>> current(Sources([], []))
    ({}, {})
    """
    present, newest, faults = set(sources.sessions), dict[Path, Path](), dict[Path, str]()
    for part in sources.parts:
        try:
            found = _sources(part, state(part))
        except Unreadable as error:
            faults[part] = str(error)
            continue
        except OSError as error:
            check_present([part])
            faults[part] = error.strerror or str(error)
            continue
        sessions = (part.parent.parent / source for source in found)
        newest.update((session, part) for session in sessions if session not in present)
    wanted: dict[Path, set[str]] = {}
    for session, part in newest.items():
        wanted.setdefault(part, set()).add(session.relative_to(part.parent.parent).as_posix())
    return wanted, faults


@functools.cache
def _sources(part: Path, _: tuple[int, ...]) -> frozenset[str]:
    """The session files with lines in ``part``; the second argument is its state: each state is read once."""
    return frozenset(source for (source,) in _ask(part, "SELECT DISTINCT source FROM read_parquet($part)", {}))


def lines(part: Path, wanted: Iterable[str]) -> Iterator[tuple[str, int, str]]:
    """(source, number, text) of the lines of ``part`` whose source is ``wanted``, in this order.

    Raises :class:`Unreadable` (perhaps after some lines), and :class:`~plumbline.records.sources.Vanished`.
    """
    query = """
        SELECT source, line, json FROM read_parquet($part)
        WHERE source BETWEEN $first AND $last AND source IN (SELECT unnest($sources))
        ORDER BY source, line"""
    ordered = sorted(wanted, key=str.encode)  # as the engine compares
    for start in range(0, len(ordered), SOURCES_AT_ONCE):
        chosen = ordered[start : start + SOURCES_AT_ONCE]
        yield from _ask(part, query, {"first": chosen[0], "last": chosen[-1], "sources": chosen})


def _ask(part: Path, query: str, values: dict[str, Any]) -> list[Any]:
    import duckdb

    if part.exists() and not part.is_file():
        raise Unreadable("not a regular file")
    try:
        with connect() as engine:
            return engine.execute(query, {"part": names([part]), **values}).fetchall()
    except duckdb.Error as error:
        check_present([part])
        raise Unreadable(reason(error)) from None
