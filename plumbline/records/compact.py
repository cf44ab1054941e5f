"""Many session files become one compressed file per site and month, with every line as it was.

A part is written beside its place, read back and compared with the session files, fsynced and only then named: a
compaction that is interrupted leaves the session files and whole parts. Session files are removed only on demand, and
each only after its lines were found in a part once more, bit for bit. Running and damaged sessions stay as they are.
Parquet files of earlier versions are converted first.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.base.files import sync
from plumbline.records import compacted, parquet, sources, store
from plumbline.records.compacted import Line, Unreadable
from plumbline.records.sources import COMPACT, PARQUET, PARTS, Sources
from plumbline.records.store import Damage

#: bytes of session files in a part: they bound the memory that writing takes
BYTES = 128_000_000


@dataclass
class Compaction:
    """The result of a compaction.

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
) -> Compaction:
    """Compact the session files of ``site``, those whose records are all older than ``before`` (UTC, ISO 8601).

    Raises :class:`PlumbError` if a part cannot be written or does not hold what it should; no session file is lost.
    """
    folder = paths.results() / site
    sources.require_site(site)
    with files.writing("the compacted records", folder), files.lock(folder / ".compact.lock"):
        for left in (folder / COMPACT).glob(".*.*"):  # of a compaction that was killed
            left.unlink()
        for part in sorted(folder.glob(PARQUET)):
            say(f"{_converted(part)}: converted")
        return _compact(folder, before, remove, say)


def _compact(folder: Path, before: str | None, remove: bool, say: Callable[[str], None]) -> Compaction:
    compaction = Compaction()
    months = _by_month(folder, before, compaction)
    for month in sorted(months):
        files = months[month]
        compaction.compacted += len(files)
        for batch in _batches(_not_yet(folder, files)):
            part = _write(folder, month, batch)
            compaction.written.append(part)
            say(f"{part}: {len(batch)} sessions")
        if remove:
            compaction.removed += _remove(folder, files)
    return compaction


def _by_month(folder: Path, before: str | None, compaction: Compaction) -> dict[str, list[Path]]:
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
            compaction.damages += damages
            compaction.leave("damaged")
        elif not times:
            compaction.leave("empty")
        elif running:
            compaction.leave("running")
        elif before is not None and max(times) >= before:
            compaction.leave(f"not before {before}")
        else:
            months.setdefault(min(times)[:7], []).append(file)
    return months


def lines_of(file: Path) -> list[Line]:
    """(number, text) of the lines of a session file that are not blank. Raises PlumbError."""
    try:
        raw = file.read_bytes().split(b"\n")
        return [(number, line) for number, line in enumerate(raw, start=1) if line.strip()]
    except OSError as error:
        raise PlumbError(f"cannot read the session: {error}", str(file), "nothing was removed") from None


def digest(lines: Iterable[Line]) -> str:
    """SHA-256 of lines and their numbers."""
    total = hashlib.sha256()
    for number, text in lines:
        total.update(b"%d %d %b\n" % (number, len(text), text))
    return total.hexdigest()


def _not_yet(folder: Path, files: list[Path]) -> list[Path]:
    """Those of ``files`` that the newest part with their name does not hold as they are now."""
    held = _held(folder, files)
    return [file for file in files if held.get(file) != digest(lines_of(file))]


def _held(folder: Path, files: list[Path]) -> dict[Path, str]:
    """Digests of what parts hold of ``files``, whether or not these exist."""
    wanted, faults = compacted.current(Sources([], sorted(folder.glob(PARTS))))
    for part, why in faults.items():
        raise PlumbError(f"cannot read: {why}", str(part), "restore the file, or move it away")
    names = {_source(folder, file) for file in files}
    digests: dict[Path, str] = {}
    for part, inside in wanted.items():
        digests.update(_digests(part, folder, inside & names))
    return digests


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
    """A new part with the lines of ``files``."""
    with _written(folder / COMPACT, month, {_source(folder, file): lines_of(file) for file in files}) as temporary:
        if _digests(temporary, folder, {_source(folder, file) for file in files}) != {
            file: digest(lines_of(file)) for file in files
        }:
            raise PlumbError(f"a session of {month} changed meanwhile", str(folder), "nothing was removed: try again")
        sync(temporary)
        part = _name(temporary, month)
        sync(part.parent)
        return part


@contextlib.contextmanager
def _written(target: Path, name: str, content: Mapping[str, list[Line]]) -> Iterator[Path]:
    """A new file in the folder ``target``, beside its place: to be checked, fsynced and then named."""
    temporary = target / f".{name}.jsonl.gz.{os.getpid()}"
    try:
        target.mkdir(exist_ok=True)
        compacted.write(temporary, content)
        yield temporary
    except OSError as error:
        cure = "make room or permission; no session was lost"
        raise PlumbError(f"cannot compact: {error.strerror}", str(target), cure) from error
    finally:
        temporary.unlink(missing_ok=True)


def _name(temporary: Path, month: str) -> Path:
    """Give a written part the next free name of its month, never one that another compaction has just taken."""
    while True:
        numbers = [int(file.name.split(".")[1]) for file in temporary.parent.glob(f"{month}.*.jsonl.gz")]
        part = temporary.with_name(f"{month}.{max(numbers, default=0) + 1:04}.jsonl.gz")
        with contextlib.suppress(FileExistsError):
            os.link(temporary, part)
            return part


def _converted(old: Path) -> Path:
    """The part that replaces the Parquet file ``old``, with the same name; ``old`` is removed."""
    content, folder = parquet.read(old), old.parent.parent
    part = old.with_suffix(".jsonl.gz")
    with _written(old.parent, old.stem, content) as temporary:
        sync(temporary)
        with contextlib.suppress(FileExistsError):  # of a conversion that was interrupted
            os.link(temporary, part)
        sync(part.parent)
        if _digests(part, folder, set(content)) != {folder / name: digest(lines) for name, lines in content.items()}:
            raise PlumbError(f"differs from {part.name}", str(old), "move one of them away")
        old.unlink()
        return part


def _source(folder: Path, file: Path) -> str:
    return file.relative_to(folder).as_posix()


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
