"""Shared memory: whether /dev/shm has room for a launch, and the files there of one that had to be ended.

Such files are removed, because the next launches would lack their memory, and only those of that launch. A file that a
process of the launch had mapped belongs to the launch. If its processes are gone, files that appeared since it began,
under a name that an MPI library gives, belong to it.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
from collections.abc import Iterable
from pathlib import Path

from plumbline import mpi

FOLDER = Path("/dev/shm")  # noqa: S108 - where shm_open(3) puts them


def free(folder: Path = FOLDER) -> int | None:
    """Bytes that are free in ``folder``; None where there is no such file system."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


def shortage(family: mpi.Family, ranks: int, free_bytes: int | None) -> list[str]:
    """Why ``ranks`` ranks of a node may run slower than they could; empty where there is room."""
    wanted = family.shared_memory[0] + ranks * family.shared_memory[1]
    if free_bytes is None or free_bytes >= wanted:
        return []
    return [f"{FOLDER} has {free_bytes >> 10} KiB free, {ranks} ranks of {family.name} want {wanted >> 10} KiB"]


def present() -> set[Path]:
    """The files of MPI libraries in /dev/shm."""
    with contextlib.suppress(OSError):
        return {file for file in FOLDER.iterdir() if any(fnmatch.fnmatch(file.name, name) for name in mpi.SHARED_FILES)}
    return set()


def mapped(pids: Iterable[int]) -> set[Path]:
    """The files that these processes have mapped; a process that has ended, or may not be looked at, has none."""
    files = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines():
                path = Path(line.split(maxsplit=5)[-1])
                if path.parent == FOLDER:
                    files.add(path)
    return files


def remove(left: set[Path]) -> None:
    """Remove those of ``left`` that are this user's and that no process has mapped."""
    if not left:
        return
    used = mapped(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    for file in left - used:
        with contextlib.suppress(OSError):
            if file.stat().st_uid == os.getuid():
                file.unlink()
