"""Compacted records: files of gzip whose lines are those of session files, as they were.

The first line of a part is its index: ``{SOURCE: [NUMBER, …], …}``, the session files (relative to the site's folder)
with the numbers of their lines. The lines themselves follow in this order. A part is written once and never changed. A
session file that exists beats its lines in parts, and of several parts with lines of one session file the last by name
counts: so no record counts twice, even while a compaction runs or after one was interrupted.
"""

from __future__ import annotations

import functools
import gzip
import io
import zlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import msgspec

from plumbline.base.files import state
from plumbline.records.sources import PARQUET, Sources, check_present

#: number in its session file, and text, of a line
Line = tuple[int, bytes]
Index = dict[str, list[int]]
#: gzip makes files a tenth larger than at its best, in a quarter of the time
LEVEL = 6


class Unreadable(Exception):
    """A part cannot be read; the text says why."""


def write(part: Path, sources: Mapping[str, list[Line]]) -> None:
    """Write the lines of ``sources``, by session file, to the new file ``part``."""
    with part.open("wb") as file, gzip.GzipFile("", "wb", LEVEL, file, mtime=0) as stream:
        index = {source: [number for number, _ in sources[source]] for source in sorted(sources)}
        stream.write(msgspec.json.encode(index) + b"\n")
        for source in index:
            for _, text in sources[source]:
                stream.write(text + b"\n")


def current(sources: Sources) -> tuple[dict[Path, set[str]], dict[Path, str]]:
    """The parts that hold something not superseded: each with the sources to read; and those that cannot be read, why.

    >>> current(Sources([], []))
    ({}, {})
    """
    present, newest, faults = set(sources.sessions), dict[Path, Path](), dict[Path, str]()
    for part in sources.parts:
        try:
            names = _sources(part, state(part))
        except Unreadable as error:
            faults[part] = str(error)
            continue
        except OSError as error:
            check_present([part])
            faults[part] = error.strerror or str(error)
            continue
        sessions = (part.parent.parent / source for source in names)
        newest.update((session, part) for session in sessions if session not in present)
    wanted: dict[Path, set[str]] = {}
    for session, part in newest.items():
        wanted.setdefault(part, set()).add(session.relative_to(part.parent.parent).as_posix())
    return wanted, faults


@functools.cache
def _sources(part: Path, _: tuple[int, ...]) -> frozenset[str]:
    """The session files with lines in ``part``; the second argument is its state: each state is read once."""
    _require_file(part)
    if part.match(PARQUET):
        raise Unreadable("of an earlier version, as Parquet: `plumb compact` converts it")
    try:
        with _opened(part) as stream:
            return frozenset(_index(stream))
    except (OSError, EOFError, zlib.error) as error:
        check_present([part])
        raise Unreadable(_reason(error)) from None


def lines(part: Path, wanted: Collection[str]) -> Iterator[tuple[str, int, bytes]]:
    """(source, number, text) of the lines of ``part`` whose source is ``wanted``, in the order of the part.

    Raises :class:`Unreadable` (perhaps after some lines), and :class:`~plumbline.records.sources.Vanished`.
    """
    if not wanted:
        return
    try:
        with _opened(part) as stream:
            text = b""
            for source, numbers in _index(stream).items():
                for number in numbers:
                    text = stream.readline()
                    if source in wanted:
                        yield source, number, text.removesuffix(b"\n")
            if not text.endswith(b"\n") or stream.read(1):  # at the end, gzip compares its checksum
                raise Unreadable("its lines are not those of its index")
    except (OSError, EOFError, zlib.error) as error:
        check_present([part])
        raise Unreadable(_reason(error)) from None


def _require_file(part: Path) -> None:
    if part.exists() and not part.is_file():
        raise Unreadable("not a regular file")


def _opened(part: Path) -> io.BufferedReader:
    _require_file(part)
    return io.BufferedReader(gzip.open(part))  # type: ignore[arg-type]  # faster by lines than GzipFile alone


def _index(stream: io.BufferedReader) -> Index:
    try:
        return msgspec.json.decode(stream.readline(), type=Index)
    except msgspec.DecodeError:
        raise Unreadable("its first line is no index of session files") from None


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
