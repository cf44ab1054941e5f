"""The GPUs of this host by NVIDIA's management library (NVML): their models, links between them, energy.

It comes with the driver and is opened when it is asked, so nothing here needs a GPU or a toolkit. Links were never read
from GPUs: the tests open a library of their own, which follows NVML's reference.
"""

from __future__ import annotations

import ctypes
import functools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

LIBRARY = "libnvidia-ml.so.1"
#: NVML_NVLINK_MAX_LINKS, and NVML_FEATURE_ENABLED of a link that is up
MOST_LINKS, UP = 18, 1
#: NVML_DEVICE_NAME_V2_BUFFER_SIZE
NAME_BYTES = 96


class _PciInfo(ctypes.Structure):
    """nvmlPciInfo_t."""

    _fields_ = (
        ("legacy", ctypes.c_char * 16),
        ("domain", ctypes.c_uint),
        ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("ids", ctypes.c_uint),
        ("subsystem", ctypes.c_uint),
        ("text", ctypes.c_char * 32),
    )

    @property
    def address(self) -> str:
        """As sysfs writes it; GPUs and NVSwitches are function 0."""
        return f"{self.domain:04x}:{self.bus:02x}:{self.device:02x}.0"


@dataclass(frozen=True)
class Gpu:
    """A GPU by its PCI address."""

    address: str
    _library: ctypes.CDLL
    _handle: ctypes.c_void_p

    def model(self) -> str:
        """Such as ``NVIDIA H200``; raises OSError where NVML fails."""
        name = ctypes.create_string_buffer(NAME_BYTES)
        self._must("nvmlDeviceGetName", name, NAME_BYTES)
        return name.value.decode("utf-8", "replace")

    def microjoules(self) -> int:
        """Energy in uJ since the driver was loaded; raises OSError where the GPU does not count it (before Volta)."""
        millijoules = ctypes.c_ulonglong()
        self._must("nvmlDeviceGetTotalEnergyConsumption", ctypes.byref(millijoules))
        return 1000 * millijoules.value

    def nvlinks(self) -> Counter[str]:
        """How many NVLinks are up, by the PCI address of their other end: a GPU, or an NVSwitch."""
        counts: Counter[str] = Counter()
        for link in range(MOST_LINKS):
            state, end = ctypes.c_int(), _PciInfo()
            if self._ask("nvmlDeviceGetNvLinkState", link, ctypes.byref(state)) or state.value != UP:
                continue  # a GPU with fewer links, or a link that is down
            if not self._ask("nvmlDeviceGetNvLinkRemotePciInfo_v2", link, ctypes.byref(end)):
                counts[end.address] += 1
        return counts

    def _ask(self, function: str, *arguments: object) -> int:
        return int(getattr(self._library, function)(self._handle, *arguments))

    def _must(self, function: str, *arguments: object) -> None:
        _check(self._library, self._ask(function, *arguments), f"GPU {self.address}")


def gpus() -> tuple[Gpu, ...]:
    """The GPUs that NVML shows; none where the library is not there. Raises OSError where it fails."""
    library = _opened(LIBRARY)
    if library is None:
        return ()
    count = ctypes.c_uint()
    _check(library, library.nvmlDeviceGetCount_v2(ctypes.byref(count)), "number of GPUs")
    devices = []
    for number in range(count.value):
        handle, place = ctypes.c_void_p(), _PciInfo()
        _check(library, library.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(handle)), f"GPU {number}")
        _check(library, library.nvmlDeviceGetPciInfo_v3(handle, ctypes.byref(place)), f"GPU {number}")
        devices.append(Gpu(place.address, library, handle))
    return tuple(devices)


def nvlinks(ends: Mapping[str, Counter[str]]) -> dict[frozenset[str], int]:
    """How many NVLinks join two GPUs, where any do; ``ends`` are :meth:`Gpu.nvlinks` by the GPU's own address.

    Two GPUs with links to one NVSwitch are joined by these too: by as many as the GPU with fewer has there.
    """
    counts = {}
    for first, second in combinations(ends, 2):
        switches = (ends[first].keys() & ends[second].keys()) - ends.keys()
        count = ends[first][second] + sum(min(ends[first][switch], ends[second][switch]) for switch in switches)
        if count:
            counts[frozenset((first, second))] = count
    return counts


@functools.cache
def _opened(name: str) -> ctypes.CDLL | None:
    """The library ``name``, opened once in a process and kept open; None where this host has none."""
    try:
        library = ctypes.CDLL(name)
    except OSError:  # no driver of NVIDIA on this host
        return None
    library.nvmlErrorString.restype = ctypes.c_char_p
    _check(library, library.nvmlInit_v2(), LIBRARY)
    return library


def _check(library: ctypes.CDLL, status: int, label: str) -> None:
    if status:
        raise OSError(f"NVML: {label}: {library.nvmlErrorString(status).decode()}")
