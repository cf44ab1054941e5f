"""Counters of energy that the kernel gives as events of its device ``power`` (perf_event_open, RAPL).

They need no root where ``kernel.perf_event_paranoid`` is 0 or less, unlike the files of powercap since Linux 5.10.
Source: perf_event_open(2); Linux, Documentation/ABI/testing/sysfs-bus-event_source-devices-events.
"""

from __future__ import annotations

import ctypes
import io
import itertools
import os
import platform
import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from plumbline.topology.text import cpu_ranges

#: number of the system call, by machine; it has no function in the C library
CALLS = {"x86_64": 298, "aarch64": 241, "ppc64le": 319}
#: PERF_FLAG_FD_CLOEXEC
CLOSE_ON_EXEC = 8
#: event -> what it counts; the others are parts of a package
EVENTS = {"energy-pkg": "{}", "energy-ram": "dram of {}"}


class _Attributes(ctypes.Structure):
    """``struct perf_event_attr`` in its first version, of 64 bytes."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("config", ctypes.c_uint64),
        ("unused", ctypes.c_uint64 * 6),
    )


class Event:
    """An open event of one package, which counts from when it was opened until it is no longer referred to."""

    def __init__(self, kind: int, config: int, cpu: int, microjoules: Fraction) -> None:
        """``microjoules``: what one count stands for. Raises OSError if the kernel refuses."""
        attributes = _Attributes(type=kind, size=ctypes.sizeof(_Attributes), config=config)
        library = ctypes.CDLL(None, use_errno=True)
        call = CALLS.get(platform.machine())
        if call is None:
            raise OSError(f"perf_event_open is not known on {platform.machine()}")
        opened = library.syscall(ctypes.c_long(call), ctypes.byref(attributes), -1, cpu, -1, CLOSE_ON_EXEC)
        if opened < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._file = io.FileIO(opened)
        self._microjoules = microjoules

    def read(self) -> int:
        """Microjoules since it was opened."""
        return int(int.from_bytes(self._file.read(8) or b"", "little") * self._microjoules)


def events(root: Path) -> Iterator[tuple[str, Event]]:
    """The events of all packages and of their memory, with names as powercap has them; none without the device.

    Raises OSError if the kernel refuses one, ValueError if a file of sysfs is not as documented.
    """
    device = root / "sys/bus/event_source/devices/power"
    if not device.is_dir():
        return
    kind = int(_word(device / "type"))
    for event, label in EVENTS.items():
        file = device / "events" / event
        if not file.exists():
            continue
        config = re.fullmatch("event=(0x[0-9a-f]+)", _word(file))
        if config is None or _word(device / f"events/{event}.unit") != "Joules":
            raise ValueError(f"{file} is not an event in joules")
        microjoules = Fraction(_word(device / f"events/{event}.scale")) * 1_000_000
        for cpu, package in _packages(root, _word(device / "cpumask")).items():
            yield label.format(package), Event(kind, int(config[1], 16), cpu, microjoules)


def _packages(root: Path, cpus: str) -> dict[int, str]:
    """The package that each of ``cpus`` (such as ``0,64``) speaks for; a die, where there are several in a package."""
    places = {}
    for cpu in itertools.chain.from_iterable(cpu_ranges(cpus)):
        folder = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
        places[cpu] = (f"package-{_word(folder / 'physical_package_id')}", folder / "die_id")
    alone = Counter(package for package, _ in places.values())
    return {
        cpu: package if alone[package] == 1 else f"{package}-die-{_word(die)}" for cpu, (package, die) in places.items()
    }


def _word(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip()
