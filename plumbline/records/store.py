"""The results folder: session files are replaced whole, read line by line, and never trusted blindly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline import files, paths, schemas
from plumbline.errors import PlumbError


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
        with file.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield _parse(file, number, line)
    except OSError as error:
        yield Damage(file, 0, error.strerror or str(error))


def _parse(file: Path, number: int, line: bytes) -> dict[str, Any] | Damage:
    try:
        record = json.loads(line)
        schemas.check("record", record, f"{file}:{number}")
    except (ValueError, PlumbError) as error:
        complete = "" if line.endswith(b"\n") else "truncated: "
        return Damage(file, number, f"{complete}{error.what if isinstance(error, PlumbError) else error}")
    return record


def read_all(site: str | None = None) -> tuple[list[dict[str, Any]], list[Damage]]:
    """All records below ``results/`` (of one site, if named), oldest first, and what could not be read."""
    folder = paths.results() / site if site else paths.results()
    records: list[dict[str, Any]] = []
    damages: list[Damage] = []
    for file in sorted(folder.rglob("*.jsonl")):
        for item in read_file(file):
            if isinstance(item, Damage):
                damages.append(item)
            else:
                records.append(item)
    records.sort(key=lambda record: (record["time"], record["id"]))
    return records, damages


def find(prefix: str) -> dict[str, Any]:
    """The record whose id begins with ``prefix``, or the newest for ``last``; an error if none or several do."""
    records, _ = read_all()
    if prefix == "last" and records:
        return records[-1]
    matches = [record for record in records if record["id"].startswith(prefix)]
    if not matches:
        raise PlumbError(f"no record '{prefix}'", str(paths.results()), "plumb list shows the ids")
    if len(matches) > 1:
        some = ", ".join(record["id"] for record in matches[:4])
        raise PlumbError(f"'{prefix}' begins {len(matches)} ids", some, "give more of the id")
    return matches[0]
