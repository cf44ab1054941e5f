"""Who else ran on the driver's node during a launch: processes and kernel threads, by the kernel's own count.

Where they ran is not known: a task's time counts whichever CPU it had.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from plumbline import proc

#: Share of a CPU, since it began, below which a task is the node's own *housekeeping*: kernel threads and daemons
#: that run for some milliseconds now and then, in every launch alike.
HOUSEKEEPING_SHARE = 0.01
#: Seconds of a launch that may be lost to housekeeping: one turn of a kernel thread that goes through the node's
#: memory (18 ms were seen) and of a daemon (7 ms). Whatever takes more is not the usual.
HOUSEKEEPING_S = 0.025
#: tasks that are named, at most, and the seconds that they ran, at least
NAMED = 3
NAMED_S = 0.001


class Task(NamedTuple):
    """A process with all its threads, or a kernel thread: its CPU time, and the share of a CPU since it began."""

    name: str
    ran_s: float
    share: float


#: by process id and start time
Tasks = Mapping[tuple[int, int], Task]


@dataclass(frozen=True)
class Meanwhile:
    """Seconds of CPU time of housekeeping and of all other tasks, and the tasks that ran most."""

    housekeeping_s: float = 0.0
    others_s: float = 0.0
    named: list[str] = field(default_factory=list)

    def allowed_s(self, limit_s: float) -> float:
        """How much of a lost time is housekeeping; none where tasks that are not ran for longer than ``limit_s``."""
        return min(self.housekeeping_s, HOUSEKEEPING_S) if self.others_s <= limit_s else 0.0


def tasks(base: Path) -> Tasks:
    """All tasks that this user may see, but for this process. ``base`` is where proc lies."""
    ticks = os.sysconf("SC_CLK_TCK")
    uptime = 0.0
    with contextlib.suppress(OSError, ValueError, IndexError):
        uptime = float((base / "proc/uptime").read_text(encoding="ascii").split()[0])
    seen = {}
    for one in proc.every(base / "proc"):
        if one.pid != os.getpid():
            ran, age = proc.ran_s(base / "proc", one), uptime - one.began / ticks
            seen[one.pid, one.began] = Task(
                f"[{one.name}]" if one.of_kernel else one.name, ran, ran / age if age > 0 else 1.0
            )
    return seen


def between(before: Tasks, after: Tasks) -> Meanwhile:
    """What ran between two looks; the launch has ended, so that a task which began meanwhile is not of it."""
    ran = [
        (task.ran_s - (before[key].ran_s if key in before else 0.0), task.name, before.get(key, task).share)
        for key, task in after.items()
    ]
    housekeeping = sum(seconds for seconds, _, share in ran if share < HOUSEKEEPING_SHARE)
    named = [f"{name} {1000 * seconds:.0f} ms" for seconds, name, _ in sorted(ran, reverse=True) if seconds >= NAMED_S]
    return Meanwhile(housekeeping, sum(seconds for seconds, _, _ in ran) - housekeeping, named[:NAMED])
