"""Replacing a file so that at any moment it is either the old or the new one, and the SHA-256 of a file."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path


def replace(file: Path, text: str) -> None:
    """Write ``text`` beside ``file``, fsync it, rename it over ``file`` and fsync the folder.

    Raises OSError (no space, no permission) with the old file untouched and nothing left beside it.
    """
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
        sync(file.parent)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256(file: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
