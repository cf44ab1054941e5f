"""The results folder: session files are replaced whole, read line by line, and never trusted blindly."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline import files, paths, schemas
from plumbline.errors import PlumbError
from plumbline.records import sources


@dataclass(frozen=True)
class Damage:
    """A line that could not be read: reported, while everything else is read."""

    file: Path
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


def session_file(site: str, session: str) -> Path:
    """Where the records of one session are."""
    return paths.results() / site / f"{session}.jsonl"


def write(file: Path, records: list[dict[str, Any]]) -> None:
    """Replace ``file`` by ``records``, one JSON line each.

    The new content is written beside the file, fsynced and renamed over it, so that the file is at any moment either
    the old or the new one. Raises :class:`PlumbError` (no space, no permission) with the old file untouched.
    """
    lines = [json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n" for record in records]
    try:
        files.replace(file, "".join(lines))
    except OSError as error:
        raise PlumbError(
            f"cannot write the record: {error.strerror}",
            str(file),
            "make room or permission; launches written so far are kept",
        ) from error


def read_file(file: Path) -> Iterator[dict[str, Any] | Damage]:
    """Every record of ``file``, and a :class:`Damage` for every line that is none."""
    try:
        for _, item in numbered(file):
            yield item
    except sources.Vanished:
        yield Damage(file, 0, os.strerror(errno.ENOENT))


def numbered(file: Path) -> Iterator[tuple[int, dict[str, Any] | Damage]]:
    """The same, each with the number of its line (0 for a file that cannot be read).

    Raises :class:`~plumbline.records.sources.Vanished` if ``file`` is gone, even if it is back a moment later.
    """
    try:
        with file.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield number, parse(file, number, line)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not file.is_symlink():
            raise sources.Vanished(file) from error
        yield 0, Damage(file, 0, error.strerror or str(error))


def parse(file: Path, number: int, line: bytes) -> dict[str, Any] | Damage:
    """The record that ``line`` of ``file`` is, or why it is none."""
    try:
        record = json.loads(line)
        schemas.check("record", record, f"{file}:{number}")
    except (ValueError, PlumbError) as error:
        complete = "" if line.endswith(b"\n") else "truncated: "
        return Damage(file, number, f"{complete}{error.what if isinstance(error, PlumbError) else error}")
    return record


def read_all(site: str | None = None) -> tuple[list[dict[str, Any]], list[Damage]]:
    """All records below ``results/`` (of one site, if named), oldest first, and what could not be read.

    This reads and checks every byte. For tables of many records there is :mod:`plumbline.records.query`.
    """
    return sources.steady(_read, site)


def _read(found: sources.Sources) -> tuple[list[dict[str, Any]], list[Damage]]:
    records: dict[str, dict[str, Any]] = {}
    damages: list[Damage] = []
    for file, number, item in _everything(found):
        if isinstance(item, Damage):
            damages.append(item)
        elif records.setdefault(item["id"], item) != item:
            damages.append(repeated(file, number, item["id"]))
    sources.check_present(damage.file for damage in damages)
    return sorted(records.values(), key=lambda record: (record["time"], record["id"])), damages


def repeated(file: Path, number: int, name: str) -> Damage:
    """The damage that a line is whose id another record has already; equal copies of a record are none."""
    return Damage(file, number, f"another record has the id {name} too")


def _everything(found: sources.Sources) -> Iterator[tuple[Path, int, dict[str, Any] | Damage]]:
    for file in found.sessions:
        for number, item in numbered(file):
            yield file, number, item
    if found.parts:
        from plumbline.records import parts  # not above: plumb launch needs no engine

        yield from parts.read(found)


def find(prefix: str) -> dict[str, Any]:
    """The record whose id begins with ``prefix``, or the newest for ``last``; an error if none or several do."""
    from plumbline.records import query  # not above: plumb launch needs no engine

    ids = query.ids("" if prefix == "last" else prefix)
    if not ids:
        raise PlumbError(f"no record '{prefix}'", str(paths.results()), "plumb list shows the ids")
    if prefix != "last" and len(ids) > 1:
        raise PlumbError(f"'{prefix}' begins {len(ids)} ids", ", ".join(ids[:4]), "give more of the id")
    records, damages = query.full([ids[-1]])
    if not records:
        raise PlumbError(f"the record is damaged: {damages[0].reason}", f"{damages[0].file}:{damages[0].line}")
    return records[0]
