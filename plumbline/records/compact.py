"""Many session files become one compressed file per site and month, with every line as it was.

A part is a file of gzip. Its first line is its index: ``{SOURCE: [NUMBER, …], …}``, the session files (relative to the
site's folder) with the numbers of their lines. The lines themselves follow in this order. A part is written once and
never changed. A session file that exists beats its lines in parts, and of several parts with lines of one session file
the last by name counts: so no record counts twice, even while a compaction runs or after one was interrupted.

A part is written beside its place, read back and compared with the session files, fsynced and only then named: a
compaction that is interrupted leaves the session files and whole parts. Session files are removed only on demand, and
each only after its lines were found in a part once more, bit for bit. Running and damaged sessions stay as they are.
Parquet files of earlier versions are converted first.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import itertools
import os
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import msgspec

from plumbline.base import files, group, paths, units
from plumbline.base.errors import PlumbError
from plumbline.base.files import sync
from plumbline.records import sources, store
from plumbline.records.sources import COMPACT, PARQUET, PARTS, check_present
from plumbline.records.store import Damage

#: number in its session file, and text, of a line
Line = tuple[int, bytes]
Index = dict[str, list[int]]
#: gzip makes files a tenth larger than at its best, in a quarter of the time
LEVEL = 6
#: bytes of session files in a part: they bound the memory that writing takes
BYTES = 128_000_000


class Unreadable(Exception):
    """A part cannot be read; the text says why."""


def write_part(part: Path, sources: Mapping[str, list[Line]]) -> None:
    """Write the lines of ``sources``, by session file, to the new file ``part``."""
    with part.open("wb") as file, gzip.GzipFile("", "wb", LEVEL, file, mtime=0) as stream:
        index = {source: [number for number, _ in sources[source]] for source in sorted(sources)}
        stream.write(msgspec.json.encode(index) + b"\n")
        stream.writelines(text + b"\n" for source in index for _, text in sources[source])


def lines(part: Path, wanted: Collection[str] | None = None) -> Iterator[tuple[str, int, bytes]]:
    """(source, number, text) of the lines of ``part``, in its order, all or those whose source is ``wanted``.

    Raises :class:`Unreadable` (perhaps after some lines), and :class:`~plumbline.records.sources.Vanished`.
    """
    with _opened(part) as stream:
        index, text = _index(stream), b""
        if wanted is not None and index.keys().isdisjoint(wanted):
            return
        for source, numbers in index.items():
            for number in numbers:
                text = stream.readline()
                if wanted is None or source in wanted:
                    yield source, number, text.removesuffix(b"\n")
        if not text.endswith(b"\n") or stream.read(1):  # at the end, gzip compares its checksum
            raise Unreadable("its lines are not those of its index")


@contextlib.contextmanager
def _opened(part: Path) -> Iterator[IO[bytes]]:
    """The content of ``part``; what hinders reading it in the block is :class:`Unreadable`."""
    if part.exists() and not part.is_file():
        raise Unreadable("not a regular file")
    if part.match(PARQUET):
        raise Unreadable("of an earlier version, as Parquet: `plumb compact` converts it")
    try:
        with io.BufferedReader(gzip.open(part)) as stream:  # faster by lines than GzipFile alone
            yield stream
    except (OSError, EOFError, zlib.error) as error:
        check_present([part])
        raise Unreadable((error.strerror if isinstance(error, OSError) else None) or str(error)) from None


def _index(stream: IO[bytes]) -> Index:
    try:
        return msgspec.json.decode(stream.readline(), type=Index)
    except msgspec.DecodeError:
        raise Unreadable("its first line is no index of session files") from None


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
        compaction = Compaction()
        for month, sessions in sorted(_by_month(folder, before, compaction).items()):
            compaction.compacted += len(sessions)
            held = _held(folder, sessions)
            for batch in _batches([file for file in sessions if held.get(file) != digest(lines_of(file))]):
                compaction.written.append(_write(folder, month, batch))
                say(f"{compaction.written[-1]}: {units.counted(len(batch), 'session')}")
            compaction.removed += _remove(folder, sessions) if remove else 0
        return compaction


def _by_month(folder: Path, before: str | None, compaction: Compaction) -> dict[str, list[Path]]:
    months: dict[str, list[Path]] = {}
    for file in sorted(folder.rglob("*.jsonl")):
        damages, running, times = list[Damage](), False, list[str]()
        for item in store.read(file):  # one record at a time: a long gate's are large
            if isinstance(item, Damage):
                damages.append(item)
            else:
                running = running or item.state == "running"
                times.append(item.time)
        compaction.damages += damages
        late = before is not None and max(times, default="") >= before
        reasons = {"damaged": damages, "empty": not times, "running": running, f"not before {before}": late}
        why = next((reason for reason, holds in reasons.items() if holds), None)
        if why is None:
            months.setdefault(min(times)[:7], []).append(file)
        else:
            compaction.left[why] = compaction.left.get(why, 0) + 1
    return months


def lines_of(file: Path) -> list[Line]:
    """(number, text) of the lines of a session file that are not blank. Raises PlumbError."""
    try:
        return [(number, line) for number, line in enumerate(file.read_bytes().split(b"\n"), start=1) if line.strip()]
    except OSError as error:
        raise PlumbError(f"cannot read the session: {error}", str(file), "nothing was removed") from None


def digest(lines: Iterable[Line]) -> str:
    """SHA-256 of lines and their numbers."""
    total = hashlib.sha256()
    for number, text in lines:
        total.update(b"%d %d %b\n" % (number, len(text), text))
    return total.hexdigest()


def _held(folder: Path, files: list[Path]) -> dict[Path, str]:
    """Digests of what parts, of several the last, hold of ``files``, whether or not these exist."""
    names, digests = {file.relative_to(folder).as_posix() for file in files}, dict[Path, str]()
    for part in sorted(folder.glob(PARTS)):
        digests |= _digests(part, folder, names)
    return digests


def _digests(part: Path, folder: Path, sources: set[str]) -> dict[Path, str]:
    groups = itertools.groupby(lines(part, sources), key=lambda row: row[0])
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
    content = {file.relative_to(folder).as_posix(): lines_of(file) for file in files}
    with _written(folder / COMPACT, month, content) as temporary:
        if _digests(temporary, folder, set(content)) != {file: digest(lines_of(file)) for file in files}:
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
        write_part(temporary, content)
        yield temporary
    except OSError as error:
        raise PlumbError(
            f"cannot compact: {error.strerror}", str(target), "make room or permission; no session was lost"
        ) from error
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
    content, folder = _read_parquet(old), old.parent.parent
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


def _remove(folder: Path, files: list[Path]) -> int:
    held = _held(folder, files)
    for file in files:
        if held.get(file) != digest(lines_of(file)):
            raise PlumbError("the session differs from its compacted lines", str(file), "it is kept: try again")
        try:
            file.unlink()
        except OSError as error:
            raise PlumbError(f"cannot remove: {error.strerror}", str(file), "correct the permissions") from error
    return len(files)


def _read_parquet(part: Path) -> dict[str, list[Line]]:
    if not part.is_file():
        raise PlumbError("not a regular file", str(part), "move it away")
    try:
        import polars  # not above: hardly a site has such files

        with part.open("rb") as file:
            rows = polars.read_parquet(file, columns=["source", "line", "json"]).sort("source", "line").rows()
    except ImportError:
        raise PlumbError("only Polars reads Parquet", str(part), "pip install polars, then plumb compact") from None
    except (OSError, polars.exceptions.PolarsError) as error:
        reason = str(error).partition("\n")[0]
        raise PlumbError(f"cannot read: {reason}", str(part), "restore the file, or move it away") from None
    return group((source, (number, text.encode())) for source, number, text in rows)
