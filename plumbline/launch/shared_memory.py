"""Files in /dev/shm that a launch leaves when it does not end by itself: removed, and only those of that launch.

They take memory that the next launches then lack. A file that a process of the launch had mapped is the launch's. Of a
launch whose processes are gone, those are that appeared meanwhile under a name that an MPI library gives.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
from collections.abc import Iterable
from pathlib import Path

from plumbline import mpi

FOLDER = Path("/dev/shm")  # noqa: S108 - where shm_open(3) puts them


def present() -> set[Path]:
    """The files of MPI libraries that are there."""
    with contextlib.suppress(OSError):
        return {file for file in FOLDER.iterdir() if any(fnmatch.fnmatch(file.name, name) for name in mpi.SHARED_FILES)}
    return set()


def mapped(pids: Iterable[int]) -> set[Path]:
    """The files that these processes have mapped; a process that has ended, or may not be looked at, has none."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines():
                path = Path(line.split(maxsplit=5)[-1])
                if path.parent == FOLDER:
                    found.add(path)
    return found


def remove(left: set[Path]) -> None:
    """Remove those of ``left`` that are this user's and that no process has mapped."""
    if not left:
        return
    used = mapped(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    for file in left - used:
        with contextlib.suppress(OSError):
            if file.stat().st_uid == os.getuid():
                file.unlink()
