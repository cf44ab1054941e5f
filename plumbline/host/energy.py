"""Joules that the processors and GPUs of this node used, by the counters that it shows. Nothing is estimated.

The counters are the node's: what other processes did meanwhile is in them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from plumbline.host import nvml, perf_energy

#: the highest power of a package, in W: a launch in which a counter may have wrapped twice at it has no energy
MOST_W = 2000


@dataclass(frozen=True)
class Counter:
    """A counter of microjoules; ``wraps`` is what it counts to before it begins again, None where it never does.

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
        """What the counters show now. Raises OSError or ValueError where one of them does not show a number."""
        return tuple(counter.read() for counter in self.counters)

    def __str__(self) -> str:
        return (
            f"not read: {self.missing}"
            if self.missing
            else f"{self.source}: " + ", ".join(counter.name for counter in self.counters)
        )


def find(root: Path = Path("/")) -> Meter:
    """The counters of this node: RAPL of powercap, else of perf, else those of the driver ``amd_energy``."""
    refused = []
    for source, counters in (("powercap", _powercap), ("perf", _perf), ("amd_energy", _amd_energy)):
        try:
            meter = Meter(source, tuple(counters(root)))
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
        found = nvml.gpus()
        meter = Meter("NVML", tuple(Counter(gpu.address, gpu.microjoules, None) for gpu in found))
        meter.read()
    except OSError as error:
        return Meter("NVML", missing=str(error))
    return meter if found else None


@dataclass(frozen=True)
class Reading:
    """What the counters of ``meter`` showed at ``time``, in s of the monotonic clock; None: they could not be read."""

    meter: Meter
    values: tuple[int, ...] | None
    time: float

    @classmethod
    def now(cls, meter: Meter) -> Reading:
        """What the counters of ``meter`` show now."""
        try:
            return cls(meter, meter.read(), time.monotonic())
        except (OSError, ValueError):  # a counter that was there when the meter was made
            return cls(meter, None, time.monotonic())

    def until(self, later: Reading) -> dict[str, float] | None:
        """Joules by counter until ``later``; None if one could not be read, or may have wrapped more than once."""
        if self.values is None or later.values is None:
            return None
        found = {}
        for counter, first, last in zip(self.meter.counters, self.values, later.values, strict=True):
            range_j = math.inf if counter.wraps is None else counter.wraps / 1e6
            if (later.time - self.time) * MOST_W > range_j or (last < first and counter.wraps is None):
                return None
            found[counter.name] = (last - first) / 1e6 + (range_j if last < first else 0)
        return found or None


def idle(meter: Meter, seconds: float) -> float | None:
    """The power by the counters of ``meter`` in W, over ``seconds`` in which this process sleeps; None without them."""
    first = Reading.now(meter)
    if first.values is None:
        return None
    time.sleep(seconds)
    last = Reading.now(meter)
    joules = first.until(last)
    return sum(joules.values()) / (last.time - first.time) if joules else None


def _powercap(root: Path) -> Iterator[Counter]:
    """Each package, and its memory. The other zones are parts of a package, or count one a second time."""
    base = root / "sys/class/powercap"
    for package in sorted(base.glob("intel-rapl:*")):
        if not _word(package / "name").startswith("package"):
            continue
        zones = [package, *sorted(base.glob(f"{package.name}:*")), *sorted(package.glob(f"{package.name}:*"))]
        for zone in {zone.name: zone for zone in zones}.values():
            name = _word(zone / "name")
            if zone == package or name == "dram":
                label = name if zone == package else f"{name} of {_word(package / 'name')}"
                yield Counter(label, partial(_number, zone / "energy_uj"), int(_word(zone / "max_energy_range_uj")))


def _perf(root: Path) -> Iterator[Counter]:
    for name, event in perf_energy.events(root):
        yield Counter(name, event.read, None)


def _amd_energy(root: Path) -> Iterator[Counter]:
    for folder in sorted((root / "sys/class/hwmon").glob("hwmon*")):
        for label in sorted(folder.glob("energy*_label")) if _word(folder / "name") == "amd_energy" else ():
            if _word(label).startswith("Esocket"):
                number = _word(label).removeprefix("Esocket")
                file = label.with_name(label.name.replace("label", "input"))
                yield Counter(f"socket {int(number)}", partial(_number, file), None)


def _number(file: Path) -> int:
    return int(file.read_text(encoding="ascii"))


def _word(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip() if file.exists() else ""
