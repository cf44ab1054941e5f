"""Joules that the processors and GPUs of this node used, by the counters that it shows. Nothing is estimated.

The counters are the node's: they include the energy of other processes.
"""

from __future__ import annotations

import io
import math
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

from plumbline.base.units import cpu_ranges
from plumbline.host import nvml
from plumbline.host.collector import CPUS, Reader
from plumbline.host.counters import opened

#: the highest power of a package, in W: a launch in which a counter may have wrapped twice at it has no energy
MOST_W = 2000
#: event of perf -> the part that it counts; the others are parts of a package
EVENTS = {"energy-pkg": "{}", "energy-ram": "dram of {}"}


@dataclass(frozen=True)
class Counter:
    """A counter of microjoules; ``wraps`` is its end, after which it begins again, None where it never does.

    ``read`` raises OSError or ValueError where it does not show a number.
    """

    name: str
    read: Callable[[], int]
    wraps: int | None


@dataclass(frozen=True)
class Meter:
    """The counters of the node's processors (and of their memory, if it is counted apart), or those of its GPUs.

    ``missing`` is why there are none.
    """

    source: str
    counters: tuple[Counter, ...] = ()
    missing: str | None = None

    def read(self) -> tuple[int, ...]:
        """The present values of the counters. Raises OSError or ValueError where one of them shows no number."""
        return tuple(counter.read() for counter in self.counters)

    def __str__(self) -> str:
        if self.missing:
            return f"not read: {self.missing}"
        return f"{self.source}: {', '.join(counter.name for counter in self.counters)}"


def find(root: Path = Path("/")) -> Meter:
    """The counters of this node: RAPL of powercap, else of perf, else those of the driver ``amd_energy``."""
    refused = []
    for source, counters in (("powercap", _powercap), ("perf", _perf), ("amd_energy", _amd_energy)):
        try:
            meter = Meter(source, tuple(counters(Reader(root))))
            meter.read()
        except PermissionError as error:
            refused.append(f"only root may read {error.filename}" if error.filename else f"{source}: {error.strerror}")
        except (OSError, ValueError) as error:
            refused.append(f"{source}: {error}")
        else:
            if meter.counters:
                return meter
    none = "no counter of energy in /sys/class/powercap, none of perf, none of amd_energy in /sys/class/hwmon"
    return Meter("none", missing="; ".join(refused) or none)


def gpus() -> Meter | None:
    """The counters of this node's GPUs, by NVML; None where there is no NVML, or it shows no GPU."""
    try:
        devices = nvml.gpus()
        meter = Meter("NVML", tuple(Counter(gpu.address, gpu.microjoules, None) for gpu in devices))
        meter.read()
    except OSError as error:
        return Meter("NVML", missing=str(error))
    return meter if devices else None


@dataclass(frozen=True)
class Reading:
    """The counters of ``meter`` at ``time``, in s of the monotonic clock; None: they could not be read."""

    meter: Meter
    values: tuple[int, ...] | None
    time: float

    @classmethod
    def now(cls, meter: Meter) -> Reading:
        """The present values of the counters of ``meter``."""
        try:
            return cls(meter, meter.read(), time.monotonic())
        except (OSError, ValueError):  # a counter that was there when the meter was made
            return cls(meter, None, time.monotonic())

    def until(self, later: Reading) -> dict[str, float] | None:
        """Joules by counter until ``later``; None if one could not be read, or may have wrapped more than once."""
        if self.values is None or later.values is None:
            return None
        joules = {}
        for counter, first, last in zip(self.meter.counters, self.values, later.values, strict=True):
            range_j = math.inf if counter.wraps is None else counter.wraps / 1e6
            if (later.time - self.time) * MOST_W > range_j or (last < first and counter.wraps is None):
                return None
            joules[counter.name] = (last - first) / 1e6 + (range_j if last < first else 0)
        return joules or None


def idle(meter: Meter, seconds: float) -> float | None:
    """The power by the counters of ``meter`` in W, over ``seconds`` in which this process sleeps; None without them."""
    first = Reading.now(meter)
    if first.values is None:
        return None
    time.sleep(seconds)
    last = Reading.now(meter)
    joules = first.until(last)
    return sum(joules.values()) / (last.time - first.time) if joules else None


def _powercap(read: Reader) -> Iterator[Counter]:
    """Each package, and its memory. The other zones are parts of a package, or count one a second time."""
    base = "sys/class/powercap"
    for package in read.names(base, "intel-rapl:*"):
        package_name = read.text(f"{package}/name") or ""
        if not package_name.startswith("package"):
            continue
        below = f"{package.rsplit('/', 1)[1]}:*"
        zones = [package, *read.names(base, below), *read.names(package, below)]
        for zone in {zone.rsplit("/", 1)[1]: zone for zone in zones}.values():
            name = read.text(f"{zone}/name") or ""
            if zone == package or name == "dram":
                label = name if zone == package else f"{name} of {package_name}"
                counter = partial(read.count, f"{zone}/energy_uj")
                yield Counter(label, counter, read.count(f"{zone}/max_energy_range_uj"))


def _perf(read: Reader) -> Iterator[Counter]:
    """The kernel's events (RAPL) of all packages and of their memory, with names as powercap has them.

    They need no root where ``kernel.perf_event_paranoid`` is 0 or less, unlike the files of powercap since Linux 5.10.
    Source: perf_event_open(2); Linux, Documentation/ABI/testing/sysfs-bus-event_source-devices-events. Raises OSError
    if the kernel refuses one, ValueError if a file of sysfs is not as documented.
    """
    device = "sys/bus/event_source/devices/power"
    for name, label in EVENTS.items():
        file = f"{device}/events/{name}"
        if read.text(file) is None:
            continue
        config = re.fullmatch("event=(0x[0-9a-f]+)", read.content(file))
        if config is None or read.content(f"{file}.unit") != "Joules":
            raise ValueError(f"{read.root / file} is not an event in joules")
        microjoules = Fraction(read.content(f"{file}.scale")) * 1_000_000
        for cpu, package in _packages(read, read.content(f"{device}/cpumask")).items():
            event = opened(read.count(f"{device}/type"), int(config[1], 16), -1, cpu)
            yield Counter(label.format(package), partial(_microjoules, event, microjoules), None)


def _microjoules(event: io.FileIO, of_one: Fraction) -> int:
    """Since ``event``, each of whose counts is ``of_one``, was opened; it counts until nobody refers to it."""
    return int(int.from_bytes(event.read(8) or b"", "little") * of_one)


def _packages(read: Reader, cpus: str) -> dict[int, str]:
    """The package that each of ``cpus`` (such as ``0,64``) speaks for; a die, where there are several in a package."""
    folders = {cpu: f"{CPUS}/cpu{cpu}/topology" for part in cpu_ranges(cpus) for cpu in part}
    packages = {cpu: f"package-{read.content(f'{folder}/physical_package_id')}" for cpu, folder in folders.items()}
    names = list(packages.values())
    return {
        cpu: name if names.count(name) == 1 else f"{name}-die-{read.content(f'{folders[cpu]}/die_id')}"
        for cpu, name in packages.items()
    }


def _amd_energy(read: Reader) -> Iterator[Counter]:
    for folder in read.names("sys/class/hwmon", "hwmon*"):
        for file in read.names(folder, "energy*_label") if read.text(f"{folder}/name") == "amd_energy" else ():
            label = read.text(file) or ""
            if label.startswith("Esocket"):
                counter = partial(read.count, file.replace("_label", "_input"))
                yield Counter(f"socket {int(label.removeprefix('Esocket'))}", counter, None)
