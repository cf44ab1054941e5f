"""Why a library does not use a way that a node has: one table, each entry with its evidence and its cure.

Faults of the node itself are in the table of ``plumb doctor`` (:mod:`plumbline.site.nodes.findings`).
"""

from __future__ import annotations

import fcntl
import mmap
import os
import re
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from plumbline.base import group
from plumbline.extras.fabric.smoke import Smoke
from plumbline.mpi import ways
from plumbline.site.nodes import findings
from plumbline.site.nodes.findings import NodeFinding
from plumbline.site.nodes.model import Node
from plumbline.stacks import libraries
from plumbline.stacks import manifest as manifests
from plumbline.stacks.manifest import Manifest

#: asks UCX whether several threads of a program may call it: 2 (UCS_THREAD_MODE_MULTI of ucp/api/ucp.h)
_THREADS = """
import ctypes, sys
class Attributes(ctypes.Structure):
    _fields_ = [("mask", ctypes.c_uint64), ("level", ctypes.c_int)]
found = Attributes(1, -1)
ctypes.CDLL(sys.argv[1]).ucp_lib_query(ctypes.byref(found))
print(found.level)
"""
MULTI = 2
#: asks for the address of a network interface
_SIOCGIFADDR = 0x8915
_SHARED = re.compile(r"\.so(?:\.[\d.]+)?$")
#: the C library has the calls by which others copy, and the witness counts them
_OTHERS = re.compile(r"libc[.-]|libplumb")
#: the message of Open MPI where UCX does not work for a program with MPI_THREAD_MULTIPLE
NO_THREADS = "does not support MPI_THREAD_MULTIPLE"
#: messages of libraries and the system about a peer that does not answer
_UNREACHED = (
    "No route to host",
    "Connection refused",
    "Connection timed out",
    "Network is unreachable",
    "from an IP address that is unexpected",
    "dropped inbound connection",
    "failed to TCP connect",
)


@dataclass(frozen=True)
class Case:
    """A ``way`` that was not used in ``smoke``; ``settings`` are those of :func:`.smoke.sources`."""

    way: str
    stack: Manifest
    node: Node
    smoke: Smoke
    settings: Mapping[str, tuple[str, str]]
    doctor: Mapping[str, NodeFinding]

    @cached_property
    def files(self) -> list[Path]:
        """The library, its parts, the files that ranks loaded, and the plugins of UCX and libfabric beside that."""
        loaded = {Path(library.path) for rank in self.smoke.seen for library in rank.objects}
        recorded = {Path(name) for name in (self.stack.loads or manifests.NOT_RECORDED).files}
        beside = {
            plugin
            for file in loaded | recorded
            if file.name.startswith(("libuct.", "libfabric."))
            for pattern in ("ucx/*.so*", "libfabric/*.so*")
            for plugin in file.parent.glob(pattern)
        }
        shared = (
            file for file in loaded | recorded | beside if _SHARED.search(file.name) and not _OTHERS.match(file.name)
        )
        return sorted(file for file in shared if file.is_file())

    @cached_property
    def able(self) -> list[Path]:
        """The files that can use the way."""
        mark = ways.WAYS[self.way].mark if self.way in ways.WAYS else b""
        return [file for file in self.files if mark and _has(file, mark)]

    @cached_property
    def broken(self) -> dict[Path, list[str]]:
        """Those of them that cannot be loaded -> the libraries that they lack."""
        variables = {"PATH": os.environ.get("PATH", os.defpath), **manifests.environment(self.stack, os.environ)}
        needs = {file: libraries.linked(str(file), variables).items() for file in self.able}
        missing = {file: [name for name, path in needed if path is None] for file, needed in needs.items()}
        return {file: names for file, names in missing.items() if names}


@dataclass(frozen=True)
class Cause:
    """``seen`` returns the evidence of the cause, nothing where it is absent; None: ``plumb doctor`` examines it.

    ``cure`` may have ``{build}``, how a library is built with the way, and ``{interface}``, its setting for that.
    Without one, the cure is that of ``plumb doctor``, which knows the cause by this ``name``.
    """

    name: str
    ways: tuple[str, ...]
    seen: Callable[[Case], Iterable[str]] | None = None
    cure: str = ""

    def evidence(self, case: Case) -> Iterable[str]:
        """The evidence in ``case``."""
        if self.seen is not None:
            return self.seen(case)
        finding = case.doctor.get(self.name)
        return [finding.seen] if finding and finding.bad else []


def _turned_off(case: Case) -> Iterator[str]:
    for switch in case.stack.family.switches:
        value, where = case.settings.get(switch.variable, ("", ""))
        if switch.way == case.way and value and switch.is_off(value):
            yield f"{switch.variable}={value} ({where})"


def _not_built(case: Case) -> list[str]:
    is_absent = case.way in ways.WAYS and not case.able
    return [f"none of its {len(case.files)} libraries has {ways.WAYS[case.way].mark.decode()}"] if is_absent else []


def _apart(case: Case) -> list[str]:
    spaces = {rank.user_namespace for rank in case.smoke.transports} - {""}
    return [f"the ranks are in {len(spaces)} user namespaces"] if len(spaces) > 1 else []


def _refused(case: Case) -> Iterator[str]:
    if count := sum(rank.refused for rank in case.smoke.transports):
        yield f"the kernel refused {count} copies"
    elif any("process_vm_readv failed" in line or "CAP_SYS_PTRACE" in line for line in case.smoke.lines):
        yield "the library says that the kernel refused a copy"


def _closed(case: Case) -> Iterator[str]:
    prefix = Path(ways.WAYS[case.way].devices)
    folder, begins = (prefix, "uverbs") if prefix.name == "infiniband" else (prefix.parent, prefix.name)
    devices = sorted(folder.glob(f"{begins}*")) if folder.is_dir() else []
    if closed := [str(file) for file in devices if not os.access(file, os.R_OK | os.W_OK)]:
        yield f"{', '.join(closed)} may not be opened"
    elif not devices:
        yield f"there is no {prefix.parent if folder != prefix else prefix}/{begins}*"


def _other_interface(case: Case) -> Iterator[str]:
    known = {address: (name, speed) for name, address, speed in interfaces(case.node)}
    best = max((speed or 0 for _, speed in known.values()), default=0)
    for address in case.smoke.by_tcp:
        name, speed = known.get(address, (address, None))
        if speed and 2 * speed <= best:
            faster = next(card for card, rate in known.values() if rate == best)
            yield f"messages go by {name}, {speed / 1000:g} Gbit/s; {faster} has {best / 1000:g} Gbit/s"


def _not_reached(case: Case) -> Iterator[str]:
    texts = [case.smoke.failed, *case.smoke.lines]
    if case.smoke.failed and (line := next((text for word in _UNREACHED for text in texts if word in text), None)):
        yield line.strip()
    elif case.smoke.late and case.smoke.nodes > 1:
        yield case.smoke.failed


#: the causes by which a library cannot use a way, whatever it is told
NOT_THERE = ("provider not built", "plugin without its library")
THREADLESS = Cause(
    "UCX without threads", (ways.INFINIBAND, ways.ROCE),
    lambda case: [f"the library says that UCX {NO_THREADS}" for line in case.smoke.lines if NO_THREADS in line][:1],
    "UCX --enable-mt (Spack: ucx +thread_multiple)",
)  # fmt: skip
CAUSES = (
    Cause("turned off by a setting", (*ways.WAYS, ways.SHARED), _turned_off, "take it out there"),
    Cause(NOT_THERE[0], tuple(ways.WAYS), _not_built, "a build with it ({build}), or the site's own module"),
    Cause(
        NOT_THERE[1], tuple(ways.WAYS),
        lambda case: [f"{file.name} lacks {', '.join(missing)}" for file, missing in case.broken.items()],
        "install the package with the library on all nodes",
    ),
    THREADLESS,
    Cause(
        "ranks in user namespaces of their own", (*ways.SINGLE_COPY, ways.SHARED), _apart,
        "one container for all ranks of a node, not one for each; setuid Apptainer makes no user namespace",
    ),
    Cause(findings.PTRACE, (ways.CMA,)),
    Cause(
        "copies refused by the kernel", (ways.CMA,), _refused,
        "a container needs --cap-add=SYS_PTRACE, or a seccomp profile that allows process_vm_readv",
    ),
    Cause(
        "device closed to this user", ways.FABRICS, _closed,
        "open the device file to users (udev), or give it to the container",
    ),
    Cause(findings.LOCKED, ways.FABRICS),
    Cause(findings.SHM, (ways.SHARED,)),
    Cause("slower interface", (ways.TCP,), _other_interface, "{interface} names the faster one"),
    Cause(
        "peer not reached: firewall or wrong interface", (ways.TCP,), _not_reached,
        "let the nodes' firewall pass all TCP ports between them, and name the common interface by {interface}",
    ),
    Cause(
        "too slow beside other work", (ways.SHARED, ways.TCP),
        lambda case: [case.smoke.beside] if case.smoke.late and case.smoke.beside else [],
        "run the check on nodes without other work",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Why:
    """A cause of :data:`CAUSES` that is there: its name, its evidence, its cure."""

    cause: str
    seen: str
    cure: str

    def __str__(self) -> str:
        return f"{self.cause}: {self.seen}: {self.cure}"


def of(case: Case) -> list[Why]:
    """All causes of :data:`CAUSES` that are there."""
    build = ways.WAYS[case.way].build if case.way in ways.WAYS else ""
    interface = case.stack.family.interface
    return [
        Why(cause.name, seen, cause.cure.format(build=build, interface=interface) or case.doctor[cause.name].cure)
        for cause in CAUSES
        if case.way in cause.ways
        for seen in cause.evidence(case)
    ]


def threads_of_ucx(case: Case) -> int | None:
    """The level of threads that the stack's UCX was built for, :data:`MULTI` for any; None without UCX."""
    if (library := next((file for file in case.files if file.name.startswith("libucp.so")), None)) is None:
        return None
    command = [sys.executable, "-I", "-c", _THREADS, str(library)]
    done = subprocess.run(command, env=manifests.around(case.stack), capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else None


@cache
def _has(file: Path, mark: bytes) -> bool:
    with file.open("rb") as stream:
        if not os.fstat(stream.fileno()).st_size:
            return False
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(mark) >= 0


def fabrics(node: Node) -> dict[str, str]:
    """Network of a fabric with an active port -> its ports: ``mlx5_0 port 1, 200 Gbit/s``."""
    ports = [
        (
            _network(adapter.name, port.link_layer),
            f"{adapter.name} port {port.port}" + (f", {port.rate_gbit:g} Gbit/s" if port.rate_gbit else ""),
        )
        for adapter in node.hcas
        for port in adapter.ports
        if port.state == "ACTIVE"
    ]
    up = [card for card in node.nics if card.state == "up"]
    cards = [(ways.SLINGSHOT, card.name) for card in up if (card.driver or "").startswith("cxi")]
    return {way: "; ".join(texts) for way, texts in group([*ports, *cards]).items()}


def inactive(node: Node, way: str) -> str:
    """The ports of a network that are there and not active, with their states."""
    return "; ".join(
        f"{adapter.name} port {port.port} is {port.state}"
        for adapter in node.hcas
        for port in adapter.ports
        if port.state != "ACTIVE" and _network(adapter.name, port.link_layer) == way
    )


def _network(adapter: str, link_layer: str | None) -> str:
    if adapter.startswith("hfi"):
        return ways.OMNIPATH
    return ways.ROCE if link_layer == "Ethernet" else ways.INFINIBAND


def interfaces(node: Node) -> Iterator[tuple[str, str, int | None]]:
    """Name, IPv4 address of this host and Mbit/s of the network cards that are up, and of the loopback."""
    yield "lo", "127.0.0.1", None
    up = [(card, address(card.name)) for card in node.nics if card.state != "down"]
    yield from ((card.name, known, card.speed_mbit) for card, known in up if known)


def address(interface: str) -> str | None:
    """Its IPv4 address, by netdevice(7); None where it has none. Facts have none: addresses are not published."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            response = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", interface.encode()[:15]))
        except OSError:
            return None
    return socket.inet_ntoa(response[20:24])
