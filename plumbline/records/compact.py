"""Many session files become one Parquet file per site and month, with every line as it was.

A part is written beside its place, read back and compared with the session files, fsynced and only then named: a
compaction that is interrupted leaves the session files and whole parts. Session files are removed only on demand, and
each only after its lines were found in a part once more, bit for bit. Running and damaged sessions stay as they are.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.base.files import sync
from plumbline.records import compacted, sources, store
from plumbline.records.compacted import Unreadable, connect, names
from plumbline.records.sources import COMPACT, Sources
from plumbline.records.store import Damage

Line = tuple[int, str]
#: lines in a row group, and bytes of session files in a part: they bound the memory that reading and writing take
GROUP, BYTES = 1024, 128_000_000


@dataclass
class Outcome:
    """What a compaction did.

    ``written`` are the new parts. ``compacted`` counts the session files that are in parts now, ``removed`` those of
    them that were removed, and ``left`` those that were left alone, by reason.
    """

    written: list[Path] = field(default_factory=list)
    compacted: int = 0
    removed: int = 0
    left: dict[str, int] = field(default_factory=dict)
    damages: list[Damage] = field(default_factory=list)

    def leave(self, why: str) -> None:
        """Count a session file that stays outside."""
        self.left[why] = self.left.get(why, 0) + 1


def compact(
    site: str, before: str | None = None, remove: bool = False, say: Callable[[str], None] = lambda line: None
) -> Outcome:
    """Compact the session files of ``site``, those whose records are all older than ``before`` (UTC, ISO 8601).

    Raises :class:`PlumbError` if a part cannot be written or does not hold what it should; no session file is lost.
    """
    folder = paths.results() / site
    sources.require_site(site)
    with files.writing("the compacted records", folder), files.lock(folder / ".compact.lock"):
        for left in (folder / COMPACT).glob(".*.parquet.*"):  # of a compaction that was killed
            left.unlink()
        return _compact(folder, before, remove, say)


def _compact(folder: Path, before: str | None, remove: bool, say: Callable[[str], None]) -> Outcome:
    outcome = Outcome()
    months = _by_month(folder, before, outcome)
    for month in sorted(months):
        files = months[month]
        outcome.compacted += len(files)
        for batch in _batches(_not_yet(folder, files)):
            part = _write(folder, month, batch)
            outcome.written.append(part)
            say(f"{part}: {len(batch)} sessions")
        if remove:
            outcome.removed += _remove(folder, files)
    return outcome


def _by_month(folder: Path, before: str | None, outcome: Outcome) -> dict[str, list[Path]]:
    """The session files to compact, by the month of their oldest record."""
    months: dict[str, list[Path]] = {}
    for file in sorted(folder.rglob("*.jsonl")):
        damages, running, times = list[Damage](), False, list[str]()
        for item in store.read(file):  # one record at a time: a long gate's are large
            if isinstance(item, Damage):
                damages.append(item)
            else:
                running = running or item.state == "running"
                times.append(item.time)
        if damages:
            outcome.damages += damages
            outcome.leave("damaged")
        elif not times:
            outcome.leave("empty")
        elif running:
            outcome.leave("running")
        elif before is not None and max(times) >= before:
            outcome.leave(f"not before {before}")
        else:
            months.setdefault(min(times)[:7], []).append(file)
    return months


def lines_of(file: Path) -> list[Line]:
    """(number, text) of the lines of a session file that are not blank. Raises PlumbError."""
    try:
        raw = file.read_bytes().split(b"\n")
        return [(number, line.decode()) for number, line in enumerate(raw, start=1) if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise PlumbError(f"cannot read the session: {error}", str(file), "nothing was removed") from None


def digest(lines: Iterable[Line]) -> str:
    """SHA-256 of lines and their numbers."""
    total = hashlib.sha256()
    for number, text in lines:
        total.update(f"{number} {len(text)} {text}\n".encode())
    return total.hexdigest()


def _not_yet(folder: Path, files: list[Path]) -> list[Path]:
    """Those of ``files`` that the newest part with their name does not hold as they are now."""
    held = _held(folder, files)
    return [file for file in files if held.get(file) != digest(lines_of(file))]


def _held(folder: Path, files: list[Path]) -> dict[Path, str]:
    """Digests of what parts hold of ``files``, whether or not these exist."""
    wanted, faults = compacted.current(Sources([], sorted((folder / COMPACT).glob("*.parquet"))))
    for part, why in faults.items():
        raise PlumbError(f"cannot read: {why}", str(part), "restore the file, or move it away")
    asked = {file.relative_to(folder).as_posix() for file in files}
    found: dict[Path, str] = {}
    for part, inside in wanted.items():
        found.update(_digests(part, folder, inside & asked))
    return found


def _digests(part: Path, folder: Path, sources: set[str]) -> dict[Path, str]:
    groups = itertools.groupby(compacted.lines(part, sources), key=lambda row: row[0])
    try:
        return {folder / source: digest((number, text) for _, number, text in group) for source, group in groups}
    except Unreadable as error:
        raise PlumbError(f"cannot read: {error}", str(part), "restore the file, or move it away") from None


def _batches(files: list[Path]) -> Iterator[list[Path]]:
    """``files`` in groups that end where they pass :data:`BYTES`."""
    batch, total = list[Path](), 0
    for file in files:
        batch.append(file)
        with contextlib.suppress(FileNotFoundError):  # the engine will say so
            total += file.stat().st_size
        if total >= BYTES:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def _write(folder: Path, month: str, files: list[Path]) -> Path:
    """Write the lines of ``files`` to a new part: beside its place, checked, fsynced, then named."""
    target = folder / COMPACT
    temporary = target / f".{month}.parquet.{os.getpid()}"
    try:
        target.mkdir(exist_ok=True)
        with connect() as engine:
            engine.execute(_COPY.format(target=compacted.quoted(temporary), group=GROUP), {
                "files": "\0".join(names(files)), "start": len(str(folder)) + 2
            })  # fmt: skip
        if _digests(temporary, folder, {file.relative_to(folder).as_posix() for file in files}) != {
            file: digest(lines_of(file)) for file in files
        }:
            raise PlumbError(f"a session of {month} changed meanwhile", str(folder), "nothing was removed: try again")
        sync(temporary)
        part = _name(temporary, month)
        sync(target)
        return part
    except (OSError, duckdb.Error) as error:
        what = error.strerror if isinstance(error, OSError) else compacted.reason(error)
        raise PlumbError(
            f"cannot compact: {what}", str(target), "make room or permission; no session was lost"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def _name(temporary: Path, month: str) -> Path:
    """Give a written part the next free name of its month, never one that another compaction has just taken."""
    while True:
        taken = [int(file.stem.rpartition(".")[2]) for file in temporary.parent.glob(f"{month}.*.parquet")]
        part = temporary.with_name(f"{month}.{max(taken, default=0) + 1:04}.parquet")
        with contextlib.suppress(FileExistsError):
            os.link(temporary, part)
            return part


def _remove(folder: Path, files: list[Path]) -> int:
    """Remove those of ``files`` whose lines are in parts, bit for bit."""
    held = _held(folder, files)
    removed = 0
    for file in files:
        if held.get(file) != digest(lines_of(file)):
            raise PlumbError("the session differs from its compacted lines", str(file), "it is kept: try again")
        try:
            file.unlink()
        except OSError as error:
            raise PlumbError(f"cannot remove: {error.strerror}", str(file), "correct the permissions") from error
        removed += 1
    return removed


_COPY = """
    COPY (
        SELECT source, line, json ->> '$.id' AS id, json ->> '$.time' AS time, json
        FROM (
            SELECT substr(filename, $start) AS source, unnest(range(1, len(texts) + 1)) AS line, unnest(texts) AS json
            FROM (
                SELECT filename, string_split(content, chr(10)) AS texts
                FROM read_text(string_split($files, chr(0)))))
        WHERE regexp_matches(json, '\\S')
        ORDER BY source, line
    ) TO {target} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {group})"""
