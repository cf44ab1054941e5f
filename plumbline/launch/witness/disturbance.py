"""Disturbances of a launch: causes outside the measured program, never the measured value itself.

The witnesses say what each host did in the *window* in which figures are made: between MPI_Init and MPI_Finalize, or
the whole run of a program without MPI. So what a launcher does to start and end ranks is not a disturbance. Pressure,
throttling and clock are those of the driver's host alone, read right before and right after the launch.

So are other processes and kernel threads, by the kernel's own count. Where they ran is not known: a task's time counts
whichever CPU it had. Processes that began and ended meanwhile have no name any more; what they used is the time of all
CPUs less that of all others.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import socket
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from plumbline.base.units import cpu_list, numbered
from plumbline.host import proc
from plumbline.host.collector import CPUS, Reader
from plumbline.host.machine import Machine
from plumbline.launch.witness import processes
from plumbline.launch.witness.model import RankWitness, Window

#: Steal is time in which the hypervisor ran something else on our CPU. A host of our own has none at all, and a
#: campaign wants to see differences of 1 %.
STEAL_FRACTION = 0.01
#: What an idle, healthy node's daemons and kernel threads take is below 1 % of its CPUs; at 2 % a parallel program,
#: which waits for its slowest thread, begins to show it.
OTHER_CPU_FRACTION = 0.02
#: Share of the window in which a thread that wants a CPU most of the time waited for one. Alone there it waits for
#: none, and the kernel counts it in nanoseconds: this sees a competitor on one CPU of many.
DELAY_FRACTION = 0.02
#: Seconds that it may have waited in a short window: one turn of a thread of the kernel, or of a library's helper.
DELAY_S = 0.003
#: Share of the window in which all threads of a rank may be neither running nor waiting for a CPU, and seconds. MPI
#: libraries and our kernels poll; a process that is stopped (SIGSTOP, a frozen cgroup) does not.
IDLE = (0.02, 0.05)
#: Share of the window in which threads that wait for one another may each be idle.
MOST_IDLE = 0.5
#: Mean seconds of such a pause from which it is a stop. Waits that sleep (blocking modes of MPI libraries, yielding,
#: reading a file) are many and short.
STOP_S = 0.005
#: CPUs that processes of others may keep busy beside the planned ones, by what those share: cores run two hardware
#: threads at half the speed each; a NUMA node or cache is shared by many cores, of which one tenth does about 1 %;
#: elsewhere it is the clock and the power of the package that are shared.
BESIDE = {"core": 0.02, "memory": 0.10, "node": 0.50}
SHARED = {
    "core": "hardware threads of the planned cores",
    "memory": "CPUs that share a cache or memory with the planned ones",
    "node": "other CPUs of the node",
}
#: Share of the window in which some task waited for memory (swapping, reclaim): on a node with room there is none.
MEMORY_PRESSURE_FRACTION = 0.01
#: Pages of a rank that had to come from disk. A program that was not in the page cache takes tens at its start; more
#: is memory being swapped, or a start so cold that the launch is not like the others.
MAJOR_FAULTS = 100
#: seconds that a CPU's time in /proc/stat, which is counted in ticks by looking who runs then, may be off
TICKS_OFF_S = 0.04
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


@dataclass(frozen=True)
class Snapshot:
    """The state of a host at one moment; values that it does not report are None.

    ``ended``: processes that the kernel ended since it was started because memory ran out.
    """

    pressure_us: int | None = None
    load: float | None = None
    clock_mhz: float | None = None
    throttles: int | None = None
    ended: int | None = None
    time_s: float = 0.0
    host: str = ""
    look: Look = field(default_factory=Look)


def snapshot(cpus: Iterable[int], root: Path = Path("/")) -> Snapshot:
    """This host now; clock and throttling are those of ``cpus``. ``root`` is where /proc and /sys lie."""
    read, cpus = Reader(root), list(cpus)
    load = read.load()
    pressure = re.search(r"^some .*total=(\d+)$", read.text("proc/pressure/cpu") or "", re.MULTILINE)
    ended = re.search(r"^oom_kill (\d+)$", read.text("proc/vmstat") or "", re.MULTILINE)
    clocks_khz = read.clocks(cpus).values()
    throttles = read.numbers(f"{CPUS}/cpu{cpu}/thermal_throttle/core_throttle_count" for cpu in cpus)
    return Snapshot(
        pressure_us=int(pressure[1]) if pressure else None,
        load=load[0] if load else None,
        clock_mhz=sum(clocks_khz) / len(clocks_khz) / 1000 if clocks_khz else None,
        throttles=sum(throttles) if throttles else None,
        ended=int(ended[1]) if ended else None,
        time_s=time.monotonic(),
        host=socket.gethostname(),
        look=_look(read),
    )


def _look(read: Reader) -> Look:
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


def _between(before: Look, after: Look, ranks_s: float) -> Meanwhile:
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
        ended = after.busy_s - before.busy_s - max(after.own_s - before.own_s, ranks_s) - housekeeping - others
        if ended > TICKS_OFF_S * after.cpus**0.5:
            others += ended
            named.append((ended, "processes that have ended"))
    most = sorted(named, reverse=True)[:NAMED]
    return Meanwhile(housekeeping, others, [f"{name} {1000 * seconds:.0f} ms" for seconds, name in most])


def assess(
    before: Snapshot,
    after: Snapshot,
    witnesses: Sequence[RankWitness],
    machine: Machine,
    *,
    may_sleep: bool = False,
    partner: Collection[int] = (),
) -> dict[str, Any]:
    """``{"disturbed", "causes", "figures", "beside"}`` of the launch between two snapshots.

    ``machine`` says which CPUs share what; all hosts of a launch are alike. Figures are those of the host, or the rank,
    where they are worst; ``major_faults`` are those of all ranks. ``beside``: what ran most on the driver's node
    meanwhile, if the launch was disturbed. What that node's housekeeping took is not a disturbance
    (:class:`Meanwhile`); ``housekeeping_s`` and ``others_s`` are seconds of the whole launch.
    ``may_sleep``: the program may sleep by itself if it does not use MPI, as one of a user's own may.
    ``partner``: the CPUs of a launch that is measured at the same time, whose work disturbs nobody; the tasks of the
    node are not looked at then.
    """
    figures: dict[str, float] = {}
    causes: list[str] = []
    here = [witness for witness in witnesses if witness.host == after.host]
    used = sum(processes.cpu_s(process) for rank in here for process in processes.everyone(rank))
    meanwhile = Meanwhile() if partner else _between(before.look, after.look, used)
    if after.look.tasks and not partner:
        figures |= {"housekeeping_s": meanwhile.housekeeping_s, "others_s": meanwhile.others_s}
    seen = {after.host: meanwhile}
    for host in dict.fromkeys(witness.host for witness in witnesses):
        ranks = [witness for witness in witnesses if witness.host == host]
        causes += _assess_host(ranks, machine, figures, seen.get(host, Meanwhile()), partner)
    causes += _assess_driver(before, after, figures)
    causes += _assess_ranks(witnesses, figures, seen, may_sleep)
    figures = {name: round(value, 6) for name, value in figures.items()}
    named = list(meanwhile.named)
    if (steal := figures.get("steal_fraction", 0.0)) > STEAL_FRACTION:  # the guest cannot name who else had its CPU
        named.append(f"the hypervisor {_percent(steal)} (steal)")
    return {"disturbed": bool(causes), "causes": causes, "figures": figures, "beside": named if causes else []}


def _assess_host(
    ranks: list[RankWitness], machine: Machine, figures: dict[str, float], meanwhile: Meanwhile,
    partner: Collection[int],
) -> list[str]:  # fmt: skip
    window = next((rank.window for rank in ranks if rank.window.host), None)
    if window is None or window.host is None or window.wall_s <= 0:
        return []
    where, wall = f" on {ranks[0].host}", window.wall_s
    busy, stolen = window.host.busy_s, window.host.steal_s
    if not (planned := {cpu for rank in ranks if rank.plan for cpu in rank.plan.cpus} & busy.keys()):
        return []
    resolution, named = TICKS_OFF_S / wall, numbered("CPU", planned)
    figures["cpu_resolution"] = max(figures.get("cpu_resolution", 0.0), resolution)
    steal = sum(stolen[cpu] for cpu in planned) / len(planned) / wall
    others = (sum(busy[cpu] for cpu in planned) - _ranks_cpu_s(ranks)) / len(planned) / wall
    text = f"the hypervisor took {_percent(steal)} of {named} (steal)"
    share, limit = len(planned) * wall, max(OTHER_CPU_FRACTION, resolution)
    allowed = limit + meanwhile.allowed_s(limit * share) / share
    rows = [
        ("steal_fraction", steal, max(STEAL_FRACTION, resolution), text),
        ("other_cpu_fraction", others, allowed, f"other processes used {_percent(others)} of {named}"),
    ]
    for sharing, cpus in _beside(machine, planned, busy.keys() - partner).items():
        used = sum(busy[cpu] for cpu in cpus) / wall
        text = f"other processes kept {used:.2f} CPUs busy on {SHARED[sharing]}, CPUs {cpu_list(cpus)}"
        rows.append((f"busy_cpus_{sharing}", used, max(BESIDE[sharing], resolution * len(cpus) ** 0.5), text))
    if window.host.memory_stall_s is not None:
        stall = window.host.memory_stall_s / wall
        text = f"tasks waited for memory {_percent(stall)} of the time (memory pressure)"
        rows.append(("memory_pressure_fraction", stall, MEMORY_PRESSURE_FRACTION, text))
    for name, value, _, _ in rows:
        figures[name] = max(figures.get(name, 0.0), value)
    return [cause + where for _, value, limit, cause in rows if value > limit]


def _beside(machine: Machine, planned: set[int], cpus: Iterable[int]) -> dict[str, set[int]]:
    """The CPUs that are not ``planned``, each under the nearest thing that it shares with those that are."""
    memory = [cache.cpus for cache in machine.l3s] + [node.cpus for node in machine.numa_nodes]
    groups = {"core": [core.cpus for core in machine.cores], "memory": memory}
    left, nearby = set(cpus) - planned, {}
    for sharing, shared in groups.items():
        nearby[sharing] = left & {cpu for group in shared if planned & set(group) for cpu in group}
        left -= nearby[sharing]
    return {sharing: group for sharing, group in {**nearby, "node": left}.items() if group}


def _assess_driver(before: Snapshot, after: Snapshot, figures: dict[str, float]) -> list[str]:
    causes = []
    wall = after.time_s - before.time_s
    if before.pressure_us is not None and after.pressure_us is not None and wall > 0:
        # not a cause: the launcher's own processes wait for a CPU too, and a rank's wait is measured separately
        figures["cpu_pressure_fraction"] = max(0.0, (after.pressure_us - before.pressure_us) / 1e6 / wall)
    if before.throttles is not None and after.throttles is not None:
        figures["thermal_throttles"] = throttles = max(0, after.throttles - before.throttles)
        if throttles > 0:
            causes.append(f"a planned CPU was throttled for its temperature {throttles} times")
    both = {
        "clock_mhz_before": before.clock_mhz,
        "clock_mhz_after": after.clock_mhz,
        "load_before": before.load,
        "load": after.load,
    }
    figures.update({name: value for name, value in both.items() if value is not None})
    return causes


def _assess_ranks(
    witnesses: Sequence[RankWitness], figures: dict[str, float], meanwhile: Mapping[str, Meanwhile], may_sleep: bool
) -> list[str]:
    if not witnesses:
        return []
    causes = []
    figures["delay_fraction"] = max(map(_delay, witnesses))
    late = [witness for witness in witnesses if _is_late(witness.window, meanwhile.get(witness.host, Meanwhile()))]
    for witness in sorted(late, key=_delay, reverse=True):
        if not _waited_for_its_own(witness, [peer for peer in witnesses if peer.host == witness.host]):
            causes.append(f"a thread of {witness.title} waited for its CPU {_percent(_delay(witness))} of the time")
            break
    causes += _stopped([rank for rank in witnesses if rank.mpi or not may_sleep], figures)
    swapped = max(witnesses, key=lambda witness: witness.usage.major_faults)
    figures["major_faults"] = sum(witness.usage.major_faults for witness in witnesses)
    if (faults := swapped.usage.major_faults) > MAJOR_FAULTS:
        causes.append(f"{swapped.title} waited {faults} times for pages from disk (major faults)")
    return causes


def _is_late(window: Window, meanwhile: Meanwhile) -> bool:
    """Whether a thread waited for longer than an idle node's housekeeping explains."""
    limit = max(DELAY_FRACTION * window.wall_s, DELAY_S)
    return bool(window.wall_s > 0 and window.delay_s > limit + meanwhile.allowed_s(limit))


def _stopped(witnesses: Sequence[RankWitness], figures: dict[str, float]) -> list[str]:
    """The rank of which no thread ran or waited for its CPU longest, if that was in long pauses.

    Ranks that used a GPU are not looked at: calls of its driver sleep. While a process that a rank started works, the
    rank waits for it.
    """
    known = [rank for rank in witnesses if rank.window.idle_s is not None and rank.window.wall_s > 0]
    if not (ranks := [rank for rank in known if rank.gpu_address is None]):
        return []
    worst = max(ranks, key=lambda rank: _idle_s(rank) / rank.window.wall_s)
    idle, sleeps = _idle_s(worst), max(1, worst.window.sleeps or 0)
    fraction = idle / worst.window.wall_s
    figures["idle_fraction"] = fraction
    text = f"{worst.title} was stopped {_percent(fraction)} of the time: {idle:.2f} s in {sleeps} pauses, neither "
    is_stop = fraction > IDLE[0] and idle > IDLE[1] and idle / sleeps > STOP_S
    return [text + "running nor waiting for its CPU"] if is_stop else []


def _idle_s(rank: RankWitness) -> float:
    """Seconds in which no thread of a rank, nor a process that it started, ran or waited for a CPU.

    Threads that were idle in turns, as those of OpenMP that wait for one another, were so at different times: then it
    is what the CPU time of all leaves. A team that works is not idle for most of the time.
    """
    window, idle = rank.window, rank.window.idle_s or 0.0
    if idle <= MOST_IDLE * window.wall_s:
        idle = min(idle, window.wall_s - window.cpu_s - window.delay_s)
    started = sum(process.window.cpu_s for process in rank.others)
    return 0.0 if started > idle / 2 else max(0.0, idle - started)


def _waited_for_its_own(witness: RankWitness, on_its_host: Sequence[RankWitness]) -> bool:
    """Whether the launch's own threads had too few CPUs: two on one CPU by the launcher's own binding, for example.

    Then they used all of the CPUs that they had, and the time that one of them waited comes on top.
    """
    here = [peer for peer in on_its_host if processes.bound_cpus(peer) & processes.bound_cpus(witness)]
    shared = set().union(*map(processes.bound_cpus, here))
    wanted = _ranks_cpu_s(here) + witness.window.delay_s
    return bool(shared) and wanted > (1 + DELAY_FRACTION) * len(shared) * witness.window.wall_s


def _ranks_cpu_s(ranks: Iterable[RankWitness]) -> float:
    return sum(process.window.cpu_s for rank in ranks for process in processes.everyone(rank))


def _delay(witness: RankWitness) -> float:
    window = witness.window
    return float(window.delay_s / window.wall_s) if window.wall_s > 0 else 0.0


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"
