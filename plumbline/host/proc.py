"""The processes of a host, as /proc describes them (proc_pid_stat(5))."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")


class Stat(NamedTuple):
    """A process. ``state`` is the kernel's letter, ``cpu_ticks`` its user and system time in clock ticks.

    ``children_ticks`` is that of its children that ended and were waited for. ``began`` is in clock ticks since boot:
    no other process of that host has the same ``pid`` and ``began``. ``threads`` is their number.
    """

    pid: int
    name: str
    state: str
    parent: int
    cpu_ticks: int
    began: int
    threads: int = 1
    children_ticks: int = 0

    @property
    def of_kernel(self) -> bool:
        """Whether it is a thread of the kernel: they all begin below process 2."""
        return 2 in (self.pid, self.parent)

    @property
    def cpu_s(self) -> float:
        """CPU seconds of the process and of its ended children."""
        return (self.cpu_ticks + self.children_ticks) / os.sysconf("SC_CLK_TCK")


def stat(folder: Path) -> Stat:
    """The process that has ``folder`` in /proc; raises OSError if it has ended."""
    # the name may hold anything, blanks and brackets too
    head, _, rest = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")
    values = rest.split()
    if len(values) < 20:
        raise ProcessLookupError(f"{folder} is of no process")
    user, system, user_of_children, system_of_children = map(int, values[11:15])
    return Stat(
        int(folder.name),
        head.partition("(")[2],
        values[0],
        int(values[1]),
        user + system,
        int(values[19]),
        int(values[17]),
        user_of_children + system_of_children,
    )


def in_foreground() -> bool:
    """Whether a terminal sends the signals of its keys to the process group of this process."""
    values = (PROC / "self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return int(values[5]) == os.getpgrp()


def every(proc: Path = PROC) -> Iterator[Stat]:
    """All processes that this user may see; those that end meanwhile are left out."""
    for folder in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield stat(folder)


def ran_s(proc: Path, process: Stat) -> float:
    """CPU time in s of all threads of ``process``, to the nanosecond where the kernel counts so, else in ticks."""
    base = proc / str(process.pid)
    try:
        files = [base] if process.threads == 1 else [*(base / "task").iterdir()]
        return sum(int((file / "schedstat").read_text(encoding="ascii").split()[0]) for file in files) / 1e9
    except (OSError, ValueError, IndexError):  # it ended, or the kernel keeps no such count
        return process.cpu_ticks / os.sysconf("SC_CLK_TCK")


def environments() -> Iterator[tuple[Stat, list[bytes]]]:
    """Each process that this one may look into, and the variables that its program began with."""
    for folder in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            yield stat(folder), (folder / "environ").read_bytes().split(b"\0")
