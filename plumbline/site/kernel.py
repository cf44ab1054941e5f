"""Facts that the kernel tells anyone, for physical limits: clock, vector registers, network links."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

#: flag of /proc/cpuinfo -> bits of a vector register, widest first; SVE's width is no flag, so it gives no fact
VECTORS = (("avx512f", 512), ("avx", 256), ("sse2", 128), ("sve", None), ("asimd", 128))


def core(cpuinfo: Path = Path("/proc/cpuinfo"), cpus: Path = Path("/sys/devices/system/cpu")) -> dict[str, Any]:
    """Highest clock of a core (cpufreq) and width of its vector registers (CPU flags); what is not told is absent.

    How many multiply-add units a core has is written nowhere on a host: people declare ``fma_units``.
    """
    found: dict[str, Any] = {}
    clock = _highest_clock(cpus)
    if clock:
        found["core_ghz"] = clock / 1e6
    try:
        text = cpuinfo.read_text(encoding="utf-8")
    except OSError:
        return found
    flags = {word for line in re.findall(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE) for word in line.split()}
    width = next((bits for flag, bits in VECTORS if flag in flags), None)
    return found if width is None else {**found, "simd_bits": width}


def links(infiniband: Path = Path("/sys/class/infiniband"), net: Path = Path("/sys/class/net")) -> dict[str, Any]:
    """Rate of all active links together: of the InfiniBand ports, or else of the network cards.

    Absent if one of them does not tell its rate: the sum of the others would be too low a limit.
    """
    ports = [port for port in infiniband.glob("*/ports/*") if _word(port / "state").endswith("ACTIVE")]
    if ports:
        told = [re.match(r"([\d.]+) Gb/sec", _word(port / "rate")) for port in ports]
        gbits = [float(rate[1]) for rate in told if rate]
    else:
        ports = [card for card in net.glob("*") if (card / "device").exists() and _word(card / "operstate") == "up"]
        gbits = [int(speed) / 1000 for card in ports if (speed := _word(card / "speed")).isdecimal()]
    return {"link_gbit": sum(gbits)} if len(gbits) == len(ports) and sum(gbits) > 0 else {}


def _highest_clock(cpus: Path) -> int | None:
    """kHz, boost included. The driver acpi-cpufreq does not count boost: it is believed only where boost is off."""
    clocks = []
    for folder in cpus.glob("cpu[0-9]*/cpufreq"):
        driver, clock = _word(folder / "scaling_driver"), _word(folder / "cpuinfo_max_freq")
        if driver == "acpi-cpufreq" and _word(cpus / "cpufreq" / "boost") != "0":
            return None
        if clock.isdecimal() and int(clock) > 0:
            clocks.append(int(clock))
    return max(clocks, default=None)


def _word(file: Path) -> str:
    """What stands in a file of sysfs; empty if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
