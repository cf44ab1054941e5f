"""Session files: replaced whole, read line by line, and never trusted blindly."""

from __future__ import annotations

import datetime
import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline import schedulers
from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.records import model, sources
from plumbline.records.model import Record

#: bytes to read at a time: a line is some ten of thousands
BUFFER = 1 << 18


@dataclass(frozen=True)
class Damage:
    """A line that could not be read: reported, while everything else is read. Line 0 stands for the whole file."""

    file: Path
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


def new_session() -> str:
    """A name that sorts by time and never repeats: UTC time, host, random."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return f"{now:%Y%m%dT%H%M%SZ}-{schedulers.host_name().split('.')[0]}-{secrets.token_hex(3)}"


def now() -> str:
    """The time as records have it: UTC, ISO 8601, milliseconds."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def session_file(site: str, session: str) -> Path:
    """Where the records of one session are."""
    return paths.results() / site / f"{session}.jsonl"


def write(file: Path, records: Sequence[Record]) -> None:
    """Replace ``file`` by ``records``, one JSON line each.

    The new content is written beside the file, fsynced and renamed over it, so that the file is at any moment either
    the old or the new one. Raises :class:`PlumbError` (no space, no permission) with the old file untouched.
    """
    files.write("the record", file, model.encode(records), "make room or permission; launches written so far are kept")


def read(file: Path) -> Iterator[Record | Damage]:
    """Every record of ``file``, and a :class:`Damage` for every line that is none."""
    try:
        yield from (parse(file, number, line) for number, _, line in lines(file))
    except OSError as error:
        yield unreadable(file, error)
    except sources.Vanished:
        yield Damage(file, 0, os.strerror(errno.ENOENT))


def whole(file: Path, cure: str) -> list[Record]:
    """Every record of ``file``; raises :class:`PlumbError`, with ``cure``, for a line that is none."""
    records: list[Record] = []
    for item in read(file):
        if not isinstance(item, Damage):
            records.append(item)
        elif item.line:
            raise PlumbError(f"damaged record: {item.reason}", f"{item.file}:{item.line}", cure)
        else:
            raise PlumbError(f"no session file: {item.reason}", str(item.file), cure)
    return records


def lines(file: Path) -> Iterator[tuple[int, int, bytes]]:
    """Number, first byte and text of every line of ``file`` that is not blank.

    Raises OSError, also for what is not a regular file and might block its reader (a FIFO), and
    :class:`~plumbline.records.sources.Vanished` if ``file`` was removed, even if it is there again a moment later.
    """
    try:
        if not stat.S_ISREG(file.stat().st_mode) and not file.is_relative_to("/dev"):
            raise OSError(errno.EINVAL, "not a regular file")
        with file.open("rb", BUFFER) as stream:
            start = 0
            for number, line in enumerate(stream, start=1):
                if not line.isspace():
                    yield number, start, line
                start += len(line)
    except FileNotFoundError as error:
        if file.is_symlink():
            raise
        raise sources.Vanished(file) from error


def parse(file: Path, number: int, line: bytes, brief: bool = False) -> Record | Damage:
    """The record that ``line`` of ``file`` is, or why it is none; a ``brief`` one if the line has a seal."""
    try:
        sealed = model.is_sealed(line)
        record = model.decode(line, brief and sealed)
        why = "its seal is not at the end of its line" if record.seal and not sealed else record.contradiction()
        why = why or (None if sealed else record.unlike_launches())
    except ValueError as error:
        return Damage(file, number, ("" if line.endswith(b"\n") else "truncated: ") + str(error))
    return Damage(file, number, f"changed since it was measured: {why}") if why else record


def unreadable(file: Path, error: Exception) -> Damage:
    """The damage for a whole file that could not be read because of ``error``."""
    return Damage(file, 0, (error.strerror if isinstance(error, OSError) else None) or str(error))
