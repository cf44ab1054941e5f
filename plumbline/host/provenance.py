"""The facts and settings of a host, for every record and for ``plumb doctor``.

Nothing is guessed: a fact that cannot be read is None. All files are looked up below ``root``, so that tests can
describe machines nobody has here.
"""

from __future__ import annotations

import hashlib
import json
import resource
import socket
from pathlib import Path
from typing import Any

import msgspec

from plumbline import mpi
from plumbline.base import files
from plumbline.host import devices, energy
from plumbline.host.collector import FIRMWARE, Node, Reader

#: facts of a host that change figures: where one of them changes, figures before and after are not of one series
SETTINGS = ("kernel", "microcode", "governor", "turbo", "smt", "thp", "numa_balancing", "gpu_driver")
#: facts of the document of a host, in addition to its knobs, that a record has
COMMON = ("machine", "kernel", "virtual", "smt", "load", "cpus_online", "cgroup", "memory_bytes")


def collect(root: Path = Path("/")) -> dict[str, Any]:
    """Facts of this host: hardware, kernel, firmware, the knobs that change figures, cgroup limits, load."""
    reader = Reader(root)
    node, settings = Node(reader), _settings(root)
    driver = node.gpu_driver()
    pci_links = {address: str(link) for address, link in devices.pci_links(root).items()}
    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return {
        "hostname": socket.gethostname(),
        "cpu": reader.cpuinfo("model name"),
        "microcode": reader.cpuinfo("microcode"),
        "firmware": reader.joined(*(f"sys/class/dmi/id/bios_{name}" for name in ("vendor", "version", "date"))),
        "product": reader.joined(*FIRMWARE),
        **node.counts(),
        **recorded(node.common()),
        "kernel_command_line": reader.text("proc/cmdline"),
        "stack_bytes": None if stack == resource.RLIM_INFINITY else stack,
        "energy": str(energy.find(root)),
        **({"gpu_driver": driver} if driver else {}),
        **({"pci_links": pci_links} if pci_links else {}),
        **({"mpi_settings": settings} if settings else {}),
    }


def recorded(document: dict[str, Any]) -> dict[str, Any]:
    """The facts in the ``document`` of a host that its records have; no limit of locked memory is None in them."""
    knobs = {name: value for name, value in document["knobs"].items() if name != "perf_event_paranoid"}
    if knobs["memlock_bytes"] == "unlimited":
        knobs["memlock_bytes"] = None
    return {name: document[name] for name in COMMON} | knobs


def measured() -> dict[str, Any]:
    """The facts of this host that a record has: those of :func:`collect`, and of its devices where it has some."""
    machine_devices, gpus = devices.load(), energy.gpus()
    return {
        **collect(),
        **({"devices": msgspec.to_builtins(machine_devices)} if machine_devices.devices else {}),
        **({"gpu_energy": str(gpus)} if gpus else {}),
    }


def _settings(root: Path) -> dict[str, str]:
    """The settings files that MPI libraries read on every host, with the first digits of their SHA-256."""
    digests = {}
    for file in sorted({file for pattern in mpi.HOST_SETTINGS for file in root.glob(pattern) if file.is_file()}):
        try:
            digests[str(file)] = files.sha256(file)[:12]
        except OSError as error:  # the launches of this user cannot read it either
            digests[str(file)] = error.strerror or str(error)
    return digests


def fingerprint(host: dict[str, Any]) -> str:
    """Eight hexadecimal digits of the :data:`SETTINGS` of ``host``, which are facts as :func:`collect` gives them."""
    # hosts without GPUs keep the digits that they had before their driver was a fact
    values = [host.get(name) for name in SETTINGS if name != "gpu_driver" or host.get(name) is not None]
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:8]
