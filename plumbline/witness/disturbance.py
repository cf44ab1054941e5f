"""What disturbed a launch: causes outside the measured program, never the measured value itself.

The host is looked at right before and right after; the witnesses say what the measured processes suffered. The job
itself (launcher, binder, ranks, and the driver that looks) is not a disturbance.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plumbline.witness.text import numbered

#: Steal is time in which the hypervisor ran something else on our CPU. A host of our own has none at all, and a
#: campaign wants to see differences of 1 %.
STEAL_FRACTION = 0.01
#: What an idle, healthy node's daemons and kernel threads take is below 1 % of its CPUs; at 2 % a parallel program,
#: which waits for its slowest thread, begins to show it.
OTHER_CPU_FRACTION = 0.02
#: Share of the time in which some runnable task had to wait for a CPU, anywhere on the host. The job's own helper
#: threads and its start make a few percent of it; with one busy competitor it is near 1.
CPU_PRESSURE_FRACTION = 0.20
#: A thread alone on its CPU is preempted a few times a second, by kernel threads. A competitor shares the CPU in slices
#: of about 3 ms: 100 to 300 preemptions a second.
INVOLUNTARY_SWITCHES_PER_S = 50.0
#: A shorter run has no rate: the handful of preemptions at its start would be one.
SHORTEST_RATED_S = 0.5
#: Pages of a rank that had to come from disk. A program that was not in the page cache takes tens at its start; more
#: is memory being swapped, or a start so cold that the launch is not like the others.
MAJOR_FAULTS = 100
#: /proc/stat counts in ticks, and each CPU's count may be one tick off at either end.
TICKS_OFF = 2


@dataclass(frozen=True)
class Ticks:
    """Counters of one CPU in clock ticks."""

    busy: int
    steal: int


@dataclass(frozen=True)
class Snapshot:
    """The host at one moment; what it does not tell is ``None`` or absent."""

    cpus: dict[int, Ticks] = field(default_factory=dict)
    pressure_us: int | None = None
    load: float | None = None
    clock_mhz: float | None = None
    throttles: int | None = None
    own_cpu_s: float = 0.0
    children_cpu_s: float = 0.0
    ticks_per_s: int = 100
    time_s: float = 0.0


def snapshot(cpus: Iterable[int] | None = None, root: str | Path = "/") -> Snapshot:
    """The host now; ``cpus`` limits the CPU counters to the planned ones. ``root`` is where /proc and /sys lie."""
    base = Path(root)
    wanted = None if cpus is None else set(cpus)
    ticks = {cpu: value for cpu, value in _stat(base).items() if wanted is None or cpu in wanted}
    used = os.times()
    return Snapshot(
        cpus=ticks,
        pressure_us=_pressure(base),
        load=_load(base),
        clock_mhz=_clock(base, ticks),
        throttles=_throttles(base, ticks),
        own_cpu_s=used.user + used.system,
        children_cpu_s=used.children_user + used.children_system,
        ticks_per_s=os.sysconf("SC_CLK_TCK"),
        time_s=time.monotonic(),
    )


def assess(
    before: Snapshot,
    after: Snapshot,
    witnesses: list[dict[str, Any]],
    cpus: Iterable[int] | None,
    wall_s: float,
    host: str | None = None,
) -> dict[str, Any]:
    """``{"disturbed", "causes", "figures"}`` of the launch between two snapshots.

    Host figures are this host's (``host``, by default this one's name); the witnesses of every host are looked at for
    preemptions and faults.
    """
    planned = set(before.cpus) & set(after.cpus)
    if cpus is not None:
        planned &= set(cpus)
    figures: dict[str, float] = {}
    causes = _assess_cpus(before, after, _local(witnesses, host), planned, wall_s, figures)
    causes += _assess_host(before, after, wall_s, figures)
    causes += _assess_witnesses(witnesses, figures)
    return {"disturbed": bool(causes), "causes": causes, "figures": figures}


def _local(witnesses: list[dict[str, Any]], host: str | None) -> list[dict[str, Any]]:
    here = os.uname().nodename if host is None else host
    return [witness for witness in witnesses if witness["host"] == here]


def _assess_cpus(
    before: Snapshot,
    after: Snapshot,
    witnesses: list[dict[str, Any]],
    planned: set[int],
    wall_s: float,
    figures: dict[str, float],
) -> list[str]:
    if not planned or wall_s <= 0:
        return []
    causes = []
    capacity = len(planned) * wall_s
    resolution = TICKS_OFF / before.ticks_per_s / wall_s
    steal = sum(after.cpus[cpu].steal - before.cpus[cpu].steal for cpu in planned) / before.ticks_per_s / capacity
    figures["steal_fraction"] = _rounded(max(0.0, steal))
    figures["cpu_resolution"] = _rounded(resolution)
    if steal > max(STEAL_FRACTION, resolution):
        causes.append(f"the hypervisor took {_percent(steal)} of {numbered('CPU', planned)} (steal)")
    if witnesses:
        busy = sum(after.cpus[cpu].busy - before.cpus[cpu].busy for cpu in planned) / before.ticks_per_s
        other = (busy - _job_cpu(before, after, witnesses)) / capacity
        figures["other_cpu_fraction"] = _rounded(max(0.0, other))
        if other > max(OTHER_CPU_FRACTION, resolution):
            causes.append(f"other processes used {_percent(other)} of {numbered('CPU', planned)}")
    return causes


def _job_cpu(before: Snapshot, after: Snapshot, witnesses: list[dict[str, Any]]) -> float:
    """CPU seconds of the job on this host.

    This process's ended children include the launcher and, unless a scheduler's daemon started them, the ranks: the
    larger of the two accounts is the job's.
    """
    ranks = sum(witness["usage"]["user_s"] + witness["usage"]["system_s"] for witness in witnesses)
    own = after.own_cpu_s - before.own_cpu_s
    return float(max(ranks, after.children_cpu_s - before.children_cpu_s) + own)


def _assess_host(before: Snapshot, after: Snapshot, wall_s: float, figures: dict[str, float]) -> list[str]:
    causes = []
    if before.pressure_us is not None and after.pressure_us is not None and wall_s > 0:
        pressure = max(0.0, (after.pressure_us - before.pressure_us) / 1e6 / wall_s)
        figures["cpu_pressure_fraction"] = _rounded(pressure)
        if pressure > CPU_PRESSURE_FRACTION:
            causes.append(f"tasks waited for a CPU {_percent(min(pressure, 1.0))} of the time (CPU pressure)")
    if before.throttles is not None and after.throttles is not None:
        throttles = max(0, after.throttles - before.throttles)
        figures["thermal_throttles"] = throttles
        if throttles > 0:
            causes.append(f"a planned CPU was throttled for its temperature {throttles} times")
    for name, value in (
        ("clock_mhz_before", before.clock_mhz),
        ("clock_mhz_after", after.clock_mhz),
        ("load_before", before.load),
        ("load", after.load),
    ):
        if value is not None:
            figures[name] = _rounded(value)
    return causes


def _assess_witnesses(witnesses: list[dict[str, Any]], figures: dict[str, float]) -> list[str]:
    if not witnesses:
        return []
    causes = []
    rate, preempted = max(((_preemptions(witness), _name(witness)) for witness in witnesses), key=lambda pair: pair[0])
    figures["involuntary_switches_per_s"] = _rounded(rate)
    if rate > INVOLUNTARY_SWITCHES_PER_S:
        causes.append(f"threads of {preempted} were preempted {rate:.0f} times a second")
    faults, swapped = max(
        ((witness["usage"]["major_faults"], _name(witness)) for witness in witnesses), key=lambda pair: pair[0]
    )
    figures["major_faults"] = sum(witness["usage"]["major_faults"] for witness in witnesses)
    if faults > MAJOR_FAULTS:
        causes.append(f"{swapped} waited {faults:.0f} times for pages from disk (major faults)")
    return causes


def _preemptions(witness: dict[str, Any]) -> float:
    """Involuntary context switches per second and thread; 0 for a run too short to have a rate."""
    usage = witness["usage"]
    if usage["wall_s"] < SHORTEST_RATED_S:
        return 0.0
    threads = len({thread["tid"] for thread in witness["threads"]})
    return float(usage["involuntary_switches"] / usage["wall_s"] / max(1, threads))


def _name(witness: dict[str, Any]) -> str:
    return f"rank {witness['rank'] if witness['rank'] >= 0 else 0} on {witness['host']}"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"


def _rounded(value: float) -> float:
    return round(value, 6)


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None


def _number(file: Path) -> int | None:
    text = _text(file)
    try:
        return None if text is None else int(text.strip())
    except ValueError:
        return None


def _stat(base: Path) -> dict[int, Ticks]:
    """``cpu3 user nice system idle iowait irq softirq steal guest guest_nice``, in ticks.

    Interrupts are not numbered as busy: what they serve is mostly the job's own traffic.
    """
    found: dict[int, Ticks] = {}
    for line in (_text(base / "proc/stat") or "").splitlines():
        words = line.split()
        if len(words) < 5 or not words[0].startswith("cpu") or not words[0][3:].isdigit():
            continue
        try:
            counts = [int(word) for word in words[1:]]
        except ValueError:
            continue
        found[int(words[0][3:])] = Ticks(busy=sum(counts[:3]), steal=counts[7] if len(counts) > 7 else 0)
    return found


def _pressure(base: Path) -> int | None:
    """``some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`` (microseconds)."""
    for line in (_text(base / "proc/pressure/cpu") or "").splitlines():
        words = line.split()
        if words and words[0] == "some" and words[-1].startswith("total="):
            digits = words[-1].removeprefix("total=")
            return int(digits) if digits.isdigit() else None
    return None


def _load(base: Path) -> float | None:
    words = (_text(base / "proc/loadavg") or "").split()
    try:
        return float(words[0]) if words else None
    except ValueError:
        return None


def _clock(base: Path, cpus: Iterable[int]) -> float | None:
    """Mean clock of the CPUs whose governor tells it."""
    files = (base / f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq" for cpu in cpus)
    known = [value for value in map(_number, files) if value is not None]
    return sum(known) / len(known) / 1000 if known else None


def _throttles(base: Path, cpus: Iterable[int]) -> int | None:
    """Times that the CPUs slowed down for their temperature, since boot."""
    files = (base / f"sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count" for cpu in cpus)
    known = [value for value in map(_number, files) if value is not None]
    return sum(known) if known else None
