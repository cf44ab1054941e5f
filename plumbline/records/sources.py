"""The files that records are in: session files, and the Parquet files that ``plumb compact`` makes of them."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from plumbline import paths
from plumbline.errors import PlumbError

if TYPE_CHECKING:
    import duckdb

#: the folder of a site's compacted records
COMPACT = "compact"
#: more threads than this read no faster from one file system, and each holds buffers
THREADS = 4
#: how often the files are looked for anew when one vanished while they were read
TRIES = 20

Answer = TypeVar("Answer")


class Vanished(Exception):
    """A file that was listed is no longer there: compacted, or removed by somebody."""


@dataclass(frozen=True)
class Sources:
    """What there was to read when it was looked for."""

    sessions: list[Path]
    parts: list[Path]


def find(site: str | None = None) -> Sources:
    """The record files below ``results/``, or of one site.

    Session files are listed first: compaction removes one only after its Parquet file is in place, so whatever vanishes
    in between is found again as Parquet.
    """
    folder = paths.results() / site if site else paths.results()
    sessions = sorted(folder.rglob("*.jsonl"))
    return Sources(sessions, sorted(folder.rglob(f"{COMPACT}/*.parquet")))


def steady(read: Callable[[Sources], Answer], site: str | None = None) -> Answer:
    """What ``read`` makes of the sources; once more with those of that moment if one of them vanished meanwhile."""
    for _ in range(TRIES):
        try:
            return read(find(site))
        except Vanished as error:
            last = error
    raise PlumbError(f"the records change while they are read: {last} is gone", str(paths.results()), "try again")


def check_present(files: Iterable[Path]) -> None:
    """Raise :class:`Vanished` if one of ``files`` is no more (a link that leads nowhere still is)."""
    for file in files:
        if not os.path.lexists(file):
            raise Vanished(file)


def connect() -> duckdb.DuckDBPyConnection:
    """An engine in memory that fetches no extension from anywhere and writes no temporary file."""
    import duckdb  # not above: plumb launch starts inside a job and asks no question

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
    """File names as the engine wants them: it would take ``*`` and ``[`` for patterns."""
    return [glob.escape(str(file)) for file in files]


def batches(files: list[Path], count: int, size: int) -> Iterator[list[Path]]:
    """``files`` in groups of at most ``count`` that end where they pass ``size`` bytes."""
    batch: list[Path] = []
    total = 0
    for file in files:
        batch.append(file)
        with contextlib.suppress(FileNotFoundError):  # the engine will say so
            total += file.stat().st_size
        if len(batch) == count or total >= size:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def session_of(part: Path, source: str) -> Path:
    """The session file that the rows of ``part`` with this ``source`` were made from."""
    return part.parent.parent / source
