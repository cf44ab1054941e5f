"""Other processes and kernel threads on the driver's node during a launch, by the kernel's own count.

Where they ran is not known: a task's time counts whichever CPU it had. Processes that began and ended meanwhile have no
name any more; what they used is the time of all CPUs less that of all others.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from plumbline.host import proc
from plumbline.host.collector import Reader

#: Share of a CPU, since it began, below which a task is the node's own *housekeeping*: kernel threads and daemons
#: that run for some milliseconds now and then, in every launch alike.
HOUSEKEEPING_SHARE = 0.01
#: Seconds of a launch that may be lost to housekeeping: one turn of a kernel thread that goes through the node's
#: memory (18 ms were seen) and of a daemon (7 ms). Whatever takes more is not the usual.
HOUSEKEEPING_S = 0.025
#: tasks that are named, at most, and the seconds that they ran, at least
NAMED = 3
NAMED_S = 0.001
#: seconds that a CPU's time, counted in ticks by looking who runs then, may be off
TICKS_OFF_S = 0.04


class Task(NamedTuple):
    """A process with all its threads, or a kernel thread: its CPU time, and the share of a CPU since it began."""

    name: str
    ran_s: float
    share: float


@dataclass(frozen=True)
class Look:
    """All tasks by process id and start time, and CPU time in seconds: of all CPUs, of this process and its children.

    ``busy_s`` is counted in ticks, and None where the kernel does not tell.
    """

    tasks: Mapping[tuple[int, int], Task] = field(default_factory=dict)
    busy_s: float | None = None
    own_s: float = 0.0
    cpus: int = 1


@dataclass(frozen=True)
class Meanwhile:
    """Seconds of CPU time of housekeeping and of all other tasks, and the tasks that ran most."""

    housekeeping_s: float = 0.0
    others_s: float = 0.0
    named: list[str] = field(default_factory=list)

    def allowed_s(self, limit_s: float) -> float:
        """How much of a lost time is housekeeping; none where tasks that are not ran for longer than ``limit_s``."""
        return min(self.housekeeping_s, HOUSEKEEPING_S) if self.others_s <= limit_s else 0.0


def look(read: Reader) -> Look:
    """All tasks that this user may see, but for this process."""
    ticks, uptime, busy, cpus = os.sysconf("SC_CLK_TCK"), 0.0, None, 1
    with contextlib.suppress(OSError, ValueError, IndexError):
        uptime = float(read.content("proc/uptime").split()[0])
        lines = [line.split() for line in read.content("proc/stat").splitlines()]
        cpus = sum(line[0].startswith("cpu") for line in lines) - 1
        busy = sum(map(int, lines[0][1:4])) / ticks
    seen = {}
    for process in proc.every(read.root / "proc"):
        if process.pid != os.getpid():
            ran, age = proc.ran_s(read.root / "proc", process), uptime - process.began / ticks
            name = f"[{process.name}]" if process.of_kernel else process.name
            seen[process.pid, process.began] = Task(name, ran, ran / age if age > 0 else 1.0)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Look(seen, busy, sum(usage.ru_utime + usage.ru_stime for usage in used), cpus)


def between(before: Look, after: Look, ranks_s: float) -> Meanwhile:
    """The processes that ran between two looks; the launch, whose ranks here used ``ranks_s``, has ended.

    So a task that began meanwhile and continues is not part of it. Ranks need not be children of this process.
    """
    ran = [
        (task.ran_s - (before.tasks[key].ran_s if key in before.tasks else 0.0), task.name, before.tasks.get(key, task))
        for key, task in after.tasks.items()
    ]
    housekeeping = sum(seconds for seconds, _, task in ran if task.share < HOUSEKEEPING_SHARE)
    others = sum(seconds for seconds, _, _ in ran) - housekeeping
    named = [(seconds, name) for seconds, name, _ in ran if seconds >= NAMED_S]
    if before.busy_s is not None and after.busy_s is not None:
        launched = max(after.own_s - before.own_s, ranks_s)
        ended = after.busy_s - before.busy_s - launched - housekeeping - others
        if ended > TICKS_OFF_S * after.cpus**0.5:
            others += ended
            named.append((ended, "processes that have ended"))
    return Meanwhile(
        housekeeping,
        others,
        [f"{name} {1000 * seconds:.0f} ms" for seconds, name in sorted(named, reverse=True)[:NAMED]],
    )
