"""Counters of the kernel and the processors (perf_event_open(2)), and what they count of programs that are started."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import io
import os
import platform
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from plumbline.base import programs
from plumbline.host.collector import CPUS, Reader

#: number of the system call, by machine; it has no function in the C library
CALLS = {"x86_64": 298, "aarch64": 241, "ppc64le": 319}
#: PERF_FLAG_FD_CLOEXEC
CLOSE_ON_EXEC = 8
#: name -> type and number of an event; ``cpu_ns`` is the kernel's, and says whose work was counted. The first three
#: are above 0
EVENTS = {"instructions": (0, 1), "cycles": (0, 0), "cpu_ns": (1, 1), "cache_misses": (0, 3)}
#: disabled, inherit, exclude_kernel, exclude_hv, enable_on_exec: children in user mode, from when they start a program
OF_CHILDREN = 1 << 0 | 1 << 1 | 1 << 5 | 1 << 6 | 1 << 12
#: PERF_FORMAT_TOTAL_TIME_ENABLED and _RUNNING, which differ where a counter had to share the hardware
TIMES = 3
NONE = "the host shows no hardware counters, as is usual in virtual machines"
#: error -> why nothing is counted
WHY = {**dict.fromkeys((errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP), NONE),
       errno.EBUSY: "other programs use the hardware counters"}  # fmt: skip


class _Attributes(ctypes.Structure):
    """``struct perf_event_attr`` in its first version, of 64 bytes."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("config", ctypes.c_uint64),
        ("samples", ctypes.c_uint64 * 2),
        ("read_format", ctypes.c_uint64),
        ("flags", ctypes.c_uint64),
        ("unused", ctypes.c_uint64 * 2),
    )


def opened(kind: int, config: int, process: int, cpu: int, flags: int = 0, read_format: int = 0) -> io.FileIO:
    """An event of ``process`` (-1: all, 0: this thread) on ``cpu`` (-1: any). Raises OSError if the kernel refuses."""
    attributes = _Attributes(
        type=kind, size=ctypes.sizeof(_Attributes), config=config, read_format=read_format, flags=flags
    )
    if (call := CALLS.get(platform.machine())) is None:
        raise OSError(errno.ENOSYS, f"perf_event_open is not known on {platform.machine()}")
    file = programs.LIBC.syscall(ctypes.c_long(call), ctypes.byref(attributes), process, cpu, -1, CLOSE_ON_EXEC)
    if file < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return io.FileIO(file)


@dataclass
class Counts:
    """What was counted, by the names of :data:`EVENTS`; else ``missing`` says why it was not.

    ``line_bytes``: what a cache miss moves from memory at least, in bytes; 0 where such a miss is not one of the
    last-level cache, as with the events that Linux has for processors of others than Intel.
    """

    values: dict[str, int] = field(default_factory=dict)
    missing: str = ""
    line_bytes: int = 0


@contextlib.contextmanager
def counting(root: Path = Path("/")) -> Iterator[Counts]:
    """Count the programs that this thread starts in the block, with all their children on this node, until its end.

    A counter that had to share the hardware has an estimate, which does not count.
    """
    counts, read = Counts(), Reader(root)
    with contextlib.ExitStack() as stack:
        try:
            events = [stack.enter_context(opened(*event, 0, -1, OF_CHILDREN, TIMES)) for event in EVENTS.values()]
        except OSError as error:
            events, counts.missing = [], _why(error, read)
        yield counts
        seen = [struct.unpack("=3Q", file.read(24) or bytes(24)) for file in events]
        if any(running < enabled for _, enabled, running in seen):
            counts.missing = WHY[errno.EBUSY]
        elif all(value for value, _, _ in seen[:3]):
            counts.values = {name: value for name, (value, _, _) in zip(EVENTS, seen, strict=False)}
        else:  # as some virtual machines count
            counts.missing = NONE
    if "GenuineIntel" in (read.text("proc/cpuinfo") or ""):
        counts.line_bytes = read.number(f"{CPUS}/cpu0/cache/index0/coherency_line_size") or 0


def _why(error: OSError, read: Reader) -> str:
    level = read.number("proc/sys/kernel/perf_event_paranoid") or 0
    if error.errno in (errno.EACCES, errno.EPERM) and level > 2:
        return f"kernel.perf_event_paranoid is {level}; 2 is enough"
    return WHY.get(error.errno or 0, f"perf_event_open: {error.strerror}")
