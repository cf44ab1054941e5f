"""Facts about this host that can be read without guessing."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from plumbline import paths
from plumbline.errors import PlumbError
from plumbline.site import kernel

VIRTUAL = ("qemu", "kvm", "vmware", "virtualbox", "xen", "amazon ec2", "google", "bochs", "hyper-v", "virtual")


def hostname_pattern() -> str:
    """A regular expression that matches exactly this host's name."""
    return f"^{re.escape(socket.gethostname())}$"


def topology() -> str:
    """This machine as hwloc XML, by the binder or else by ``lstopo-no-graphics``."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "topology.xml"
        commands = []
        if paths.binder().exists():
            commands.append([str(paths.binder()), "--export-topology", str(file)])
        lstopo = shutil.which("lstopo-no-graphics")
        if lstopo:
            commands.append([lstopo, "--of", "xml", "--force", str(file)])
        reason = "neither plumb-bind nor lstopo-no-graphics is there"
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0 and file.is_file() and "<topology" in file.read_text(encoding="utf-8"):
                return without_serials(file.read_text(encoding="utf-8"))
            reason = (done.stderr.strip().splitlines() or [f"{command[0]}: exit status {done.returncode}"])[-1]
    raise PlumbError(f"cannot capture the topology: {reason}", "plumb site init", "build the tools first: make setup")


def without_serials(xml: str) -> str:
    """``xml`` without serial numbers and UUIDs, which hwloc adds for root and which no site wants to publish."""
    return re.sub(r"^ *<info name=\"DMI\w*(?:Serial|UUID|AssetTag)\"[^>]*/>\n", "", xml, flags=re.MULTILINE)


def memory() -> dict[str, Any]:
    """Memory channels and their rate from the firmware's tables; empty unless they can be read and say so.

    Needs root, ``dmidecode`` and real hardware: the tables of a virtual machine describe nothing.
    """
    if os.geteuid() != 0 or shutil.which("dmidecode") is None or is_virtual():
        return {}
    done = subprocess.run(["dmidecode", "--type", "17"], capture_output=True, text=True, check=False)
    return parse_dmidecode(done.stdout) if done.returncode == 0 else {}


def known() -> dict[str, Any]:
    """Everything that can be read of this host for its physical limits."""
    return {**memory(), **kernel.core(), **kernel.links()}


def is_virtual(product: Path = Path("/sys/class/dmi/id")) -> bool:
    """Whether this is a virtual machine; also when it cannot be told."""
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        name = " ".join((product / entry).read_text(encoding="utf-8") for entry in ("sys_vendor", "product_name"))
    except OSError:
        return True
    return " hypervisor" in cpuinfo or any(word in name.lower() for word in VIRTUAL)


def parse_dmidecode(text: str) -> dict[str, Any]:
    """Facts from ``dmidecode --type 17``; each populated module has lines such as

    ``Locator: P0 CHANNEL A`` / ``Configured Memory Speed: 4800 MT/s`` / ``Data Width: 64 bits``

    Only told when every populated module has the same rate and its locators name socket and channel.
    """
    rates, widths, channels = set(), set(), set()
    for block in re.split(r"\n\s*\n", text):
        fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in block.splitlines())}
        size = fields.get("Size", "")
        if "Memory Device" not in block or not size or size.startswith(("No Module", "0 ", "Unknown")):
            continue
        rates.add(fields.get("Configured Memory Speed") or fields.get("Configured Clock Speed", ""))
        widths.add(fields.get("Data Width", ""))
        places = f"{fields.get('Locator', '')} {fields.get('Bank Locator', '')}"
        named = re.search(
            r"(?:P|CPU|PROC|NODE)\s*_?(\d+)[ _-]*(?:CHANNEL|CH|DIMM)?[ _-]*([A-Z])\d*", places, re.IGNORECASE
        )
        channels.add((named[1], named[2].upper()) if named else None)
    found: dict[str, Any] = {}
    rate = re.fullmatch(r"(\d+) MT/s", rates.pop()) if len(rates) == 1 else None
    width = re.fullmatch(r"(\d+) bits", widths.pop()) if len(widths) == 1 else None
    if rate and int(rate[1]):
        found["memory_mts"] = int(rate[1])
    if width and int(width[1]) >= 8:
        found["memory_bytes_per_transfer"] = int(width[1]) // 8
    if channels and None not in channels:
        sockets = [
            sum(1 for item in channels if item and item[0] == socket_) for socket_ in {c[0] for c in channels if c}
        ]
        if len(set(sockets)) == 1:
            found["memory_channels_per_package"] = sockets[0]
    return found
