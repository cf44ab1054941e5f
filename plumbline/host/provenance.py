"""What a host is and how it is set, for every record and for ``plumb doctor``.

Nothing is guessed: a fact that cannot be read is None. All files are looked up below ``root``, so that tests can
describe machines nobody has here.
"""

from __future__ import annotations

import hashlib
import json
import platform
import resource
import socket
from pathlib import Path
from typing import Any

import msgspec

from plumbline import files, mpi
from plumbline.host import devices, energy, links
from plumbline.host.collector import Reader

#: facts of a host that change figures: where one of them changes, figures before and after are not of one series
SETTINGS = ("kernel", "microcode", "governor", "turbo", "smt", "thp", "numa_balancing")


def collect(root: Path = Path("/")) -> dict[str, Any]:
    """Facts of this host: hardware, kernel, firmware, the knobs that change figures, cgroup limits, load."""
    reader = Reader(root)
    settings = _settings(root)
    found = {address: str(link) for address, link in links.read(root).items()}
    return {
        "hostname": socket.gethostname(),
        "machine": platform.machine(),
        "kernel": platform.release(),
        "cpu": reader.cpuinfo("model name"),
        "microcode": reader.cpuinfo("microcode"),
        "virtual": reader.virtual(),
        "firmware": _joined(
            reader.text("sys/class/dmi/id/bios_vendor"),
            reader.text("sys/class/dmi/id/bios_version"),
            reader.text("sys/class/dmi/id/bios_date"),
        ),
        "product": _joined(reader.text("sys/class/dmi/id/sys_vendor"), reader.text("sys/class/dmi/id/product_name")),
        "governor": reader.same("sys/devices/system/cpu", "cpu[0-9]*/cpufreq/scaling_governor"),
        "frequency_driver": reader.same("sys/devices/system/cpu", "cpu[0-9]*/cpufreq/scaling_driver"),
        "turbo": reader.turbo(),
        "smt": reader.smt(),
        "thp": reader.selected("sys/kernel/mm/transparent_hugepage/enabled"),
        "thp_defrag": reader.selected("sys/kernel/mm/transparent_hugepage/defrag"),
        "numa_balancing": reader.flag("proc/sys/kernel/numa_balancing"),
        "zone_reclaim": reader.number("proc/sys/vm/zone_reclaim_mode"),
        "swappiness": reader.number("proc/sys/vm/swappiness"),
        "clocksource": reader.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "kernel_command_line": reader.text("proc/cmdline"),
        "load": reader.load(),
        "cpus_online": reader.text("sys/devices/system/cpu/online"),
        "cgroup": reader.cgroup(),
        "shm_bytes": reader.size("dev/shm"),
        "memlock_bytes": _limit(resource.RLIMIT_MEMLOCK),
        "stack_bytes": _limit(resource.RLIMIT_STACK),
        "memory_bytes": reader.memory(),
        "energy": str(energy.find(root)),
        **({"pci_links": found} if found else {}),
        **({"mpi_settings": settings} if settings else {}),
    }


def measured() -> dict[str, Any]:
    """The facts of this host that a record has: those of :func:`collect`, and of its devices where it has some."""
    found, gpus = devices.load(), energy.gpus()
    return {
        **collect(),
        **({"devices": msgspec.to_builtins(found)} if found.devices else {}),
        **({"gpu_energy": str(gpus)} if gpus else {}),
    }


def _settings(root: Path) -> dict[str, str]:
    """The settings files that MPI libraries read on every host, with the first digits of their SHA-256."""
    found = {}
    for file in sorted({file for pattern in mpi.HOST_SETTINGS for file in root.glob(pattern) if file.is_file()}):
        try:
            found[str(file)] = files.sha256(file)[:12]
        except OSError as error:  # the launches of this user cannot read it either
            found[str(file)] = error.strerror or str(error)
    return found


def fingerprint(host: dict[str, Any]) -> str:
    """Eight hexadecimal digits of the :data:`SETTINGS` of ``host``, which are facts as :func:`collect` gives them."""
    text = json.dumps([host.get(name) for name in SETTINGS])
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _joined(*parts: str | None) -> str | None:
    return " ".join(part for part in parts if part) or None


def _limit(which: int) -> int | None:
    """The soft limit in bytes; None means unlimited."""
    soft = resource.getrlimit(which)[0]
    return None if soft == resource.RLIM_INFINITY else soft
