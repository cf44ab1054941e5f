"""What a host is and how it is set, for every record and for ``plumb doctor``.

Nothing is guessed: a fact that cannot be read is None. All files are looked up below ``root``, so that tests can
describe machines nobody has here.
"""

from __future__ import annotations

import os
import platform
import resource
import socket
from pathlib import Path
from typing import Any


def collect(root: Path = Path("/")) -> dict[str, Any]:
    """Facts of this host: hardware, kernel, firmware, the knobs that change figures, cgroup limits, load."""
    reader = Reader(root)
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
        "memlock_bytes": _limit(resource.RLIMIT_MEMLOCK),
        "stack_bytes": _limit(resource.RLIMIT_STACK),
        "memory_bytes": reader.memory(),
    }


def _joined(*parts: str | None) -> str | None:
    return " ".join(part for part in parts if part) or None


def _limit(which: int) -> int | None:
    """The soft limit in bytes; None means unlimited."""
    soft = resource.getrlimit(which)[0]
    return None if soft == resource.RLIM_INFINITY else soft


class Reader:
    """Small files of /proc and /sys below a root folder; what cannot be read is None."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def text(self, path: str) -> str | None:
        """The file's content without surrounding white space."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace").strip() or None
        except OSError:
            return None

    def number(self, path: str) -> int | None:
        """The file's content as a whole number."""
        text = self.text(path)
        try:
            return None if text is None else int(text)
        except ValueError:
            return None

    def flag(self, path: str) -> bool | None:
        """True unless the number in the file is 0."""
        value = self.number(path)
        return None if value is None else value != 0

    def selected(self, path: str) -> str | None:
        """The choice in brackets of files like ``always [madvise] never``."""
        words = (self.text(path) or "").split()
        return next((word.strip("[]") for word in words if word.startswith("[")), None)

    def same(self, folder: str, pattern: str) -> str | None:
        """The common content of all files that match, or all different ones joined by commas."""
        files = sorted((self.root / folder).glob(pattern))
        found = {text for file in files if (text := self.text(str(file.relative_to(self.root)))) is not None}
        return ", ".join(sorted(found)) or None

    def cpuinfo(self, key: str) -> str | None:
        """The first value of ``key`` in /proc/cpuinfo."""
        for line in (self.text("proc/cpuinfo") or "").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == key:
                return value.strip()
        return None

    def virtual(self) -> str | None:
        """Name of the hypervisor, ``yes`` if only the CPU flag tells, None on bare metal."""
        kind = self.text("sys/hypervisor/type")
        if kind:
            return kind
        vendor = (self.text("sys/class/dmi/id/sys_vendor") or "").lower()
        for name in ("qemu", "vmware", "xen", "microsoft", "amazon", "google", "innotek"):
            if name in vendor:
                return name
        return "yes" if " hypervisor" in f" {self.cpuinfo('flags') or ''}" else None

    def turbo(self) -> bool | None:
        """Whether the clock may rise above nominal (intel_pstate or the generic boost switch)."""
        no_turbo = self.flag("sys/devices/system/cpu/intel_pstate/no_turbo")
        if no_turbo is not None:
            return not no_turbo
        return self.flag("sys/devices/system/cpu/cpufreq/boost")

    def smt(self) -> bool | None:
        """Whether two hardware threads share a core."""
        return self.flag("sys/devices/system/cpu/smt/active")

    def load(self) -> list[float] | None:
        """1, 5 and 15 minute load."""
        words = (self.text("proc/loadavg") or "").split()
        return [float(word) for word in words[:3]] if len(words) >= 3 else None

    def memory(self) -> int | None:
        """Bytes of memory the kernel manages."""
        for line in (self.text("proc/meminfo") or "").splitlines():
            if line.startswith("MemTotal:"):
                return int(line.split()[1]) * 1024
        return None

    def cgroup(self) -> dict[str, Any]:
        """CPU quota (in CPUs), memory limit (bytes) and allowed CPUs of this process, whichever version serves them."""
        found: dict[str, Any] = {"cpu_quota": None, "memory_limit_bytes": None, "cpus_allowed": None}
        for line in (self.text("proc/self/status") or "").splitlines():
            if line.startswith("Cpus_allowed_list:"):
                found["cpus_allowed"] = line.split()[1]
        for folder in self._cgroup_folders():
            quota = (self.text(f"{folder}/cpu.max") or "").split()
            if len(quota) == 2 and quota[0] != "max":
                found["cpu_quota"] = int(quota[0]) / int(quota[1])
            period = self.number(f"{folder}/cpu.cfs_period_us")
            slice_us = self.number(f"{folder}/cpu.cfs_quota_us")
            if period and slice_us and slice_us > 0:
                found["cpu_quota"] = slice_us / period
            for name in ("memory.max", "memory.limit_in_bytes"):
                limit = self.number(f"{folder}/{name}")
                if limit is not None and limit < 1 << 60:
                    found["memory_limit_bytes"] = limit
        return found

    def _cgroup_folders(self) -> list[str]:
        """The folder of this process in every hierarchy, and its ancestors: a limit of a parent binds too."""
        folders: list[str] = []
        for line in (self.text("proc/self/cgroup") or "").splitlines():
            controllers, _, path = line.partition(":")[2].partition(":")
            base = (
                f"sys/fs/cgroup/{controllers}"
                if controllers and not controllers.startswith("name=")
                else "sys/fs/cgroup"
            )
            parts = [part for part in path.split("/") if part and part != ".."]
            folders += ["/".join([base, *parts[:length]]) for length in range(len(parts) + 1)]
        return folders


def host_name() -> str:
    """This host as records name it."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()
