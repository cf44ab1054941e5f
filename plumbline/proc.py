"""The processes of a host, as /proc describes them (proc_pid_stat(5))."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")


class Stat(NamedTuple):
    """A process. ``state`` is the kernel's letter, ``cpu_ticks`` its user and system time in clock ticks.

    ``began`` is in clock ticks since boot: no other process of that host has the same ``pid`` and ``began``.
    """

    pid: int
    name: str
    state: str
    parent: int
    cpu_ticks: int
    began: int


def stat(folder: Path) -> Stat:
    """The process that has ``folder`` in /proc; raises OSError if it has ended."""
    # the name may hold anything, blanks and brackets too
    head, _, rest = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")
    values = rest.split()
    if len(values) < 20:
        raise ProcessLookupError(f"{folder} is of no process")
    name = head.partition("(")[2]
    return Stat(int(folder.name), name, values[0], int(values[1]), int(values[11]) + int(values[12]), int(values[19]))


def every(proc: Path = PROC) -> Iterator[Stat]:
    """All processes that this user may see; those that end meanwhile are left out."""
    for folder in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield stat(folder)
