"""GPUs, network cards and NVMe drives of a machine, the ways between them, and their PCIe links.

The binder finds them; links, with width and speed now and at best, are from sysfs, those between GPUs from drivers.
"""

from __future__ import annotations

import contextlib
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from plumbline.base.errors import PlumbError
from plumbline.base.units import cpu_list
from plumbline.host import binder, nvml
from plumbline.host.collector import Reader

#: meanings of the words between two devices; all but XGMI are those of ``nvidia-smi topo -m``. NV# stands
#: for NV1, NV2 and so on
WORDS = {
    "X": "itself",
    "NV#": "# NVLinks",
    "XGMI": "a link between GPUs",
    "PIX": "one PCIe switch at most",
    "PXB": "several PCIe switches",
    "PHB": "the host bridge",
    "NODE": "host bridges of one NUMA node",
    "SYS": "between NUMA nodes",
}

#: PCI vendor of a GPU -> the toolkit of programs for its memory
BUILT_WITH = {"10de": "cuda", "1002": "rocm"}


#: beginnings of the PCI classes of devices whose links are looked at: NVMe, network, display, accelerators
CLASSES = ("0x0108", "0x02", "0x03", "0x12")
#: those of devices that lower the speed of their link while they are idle
SAVING = ("0x03", "0x12")
#: widths that mean that the device does not know
NO_WIDTH = (0, 255)
#: the kind of a link between GPUs in the files of AMD's driver (CRAT_IOLINK_TYPE_XGMI in Linux)
XGMI = 11


class Device(Struct, frozen=True):
    """A PCI device. ``ids`` are vendor and device, ``names`` the operating system's, and the model of a GPU of NVIDIA.

    ``link_gbytes_s`` is the rate of its link in GB/s, as hwloc has it. ``sockets`` (logical indices), ``nodes`` and
    ``cpus`` (OS indices) are local to it: all of the machine's if its place is not known.
    """

    label: str
    address: str
    ids: str
    names: tuple[str, ...]
    link_gbytes_s: float | None
    sockets: tuple[int, ...]
    nodes: tuple[int, ...]
    cpus: tuple[int, ...]


class Devices(Struct, frozen=True):
    """The devices of a machine, by kind and PCI address; ``ways[i][j]`` is the word of :data:`WORDS` for i and j."""

    devices: tuple[Device, ...]
    ways: tuple[tuple[str, ...], ...]


def gpus(topology: str | Path) -> list[Device]:
    """The GPUs of a machine, by PCI address."""
    return [device for device in load(topology).devices if device.label.startswith("GPU")]


def built_with(topology: str | Path) -> str | None:
    """The toolkit of programs for the GPUs of a machine; None where it has no GPU, or one of another maker."""
    devices = gpus(topology)
    return BUILT_WITH.get(devices[0].ids.partition(":")[0]) if devices else None


def load(topology: str | Path | None = None) -> Devices:
    """The devices of an hwloc XML file; synthetic descriptions have none.

    Left out: those of this host, with the models and links that the drivers of its GPUs report.
    """
    devices = msgspec.json.decode(_binder_document(topology), type=Devices)
    if topology is not None:
        return devices
    models = {}
    with contextlib.suppress(OSError):  # the energy of GPUs says why NVML fails
        models = {gpu.address: gpu.model() for gpu in nvml.gpus()}
    named = tuple(
        replace(device, names=(*device.names, models[device.address])) if device.address in models else device
        for device in devices.devices
    )
    return joined(replace(devices, devices=named), between_gpus())


def joined(devices: Devices, words: Mapping[frozenset[str], str]) -> Devices:
    """``devices`` with these ``words`` between pairs of PCI addresses in place of those for the way by PCI."""
    addresses = [device.address for device in devices.devices]
    ways = tuple(
        tuple(words.get(frozenset((first, second)), word) for second, word in zip(addresses, row, strict=True))
        for first, row in zip(addresses, devices.ways, strict=True)
    )
    return replace(devices, ways=ways)


def _binder_document(topology: str | Path | None) -> str:
    return binder.ask(["--devices", *([] if topology is None else ["--topology", str(topology)])])


def of_host(facts: Mapping[str, Any]) -> Devices | None:
    """The devices of a host with the facts of :func:`plumbline.host.provenance.measured`; None where it has none.

    Raises :class:`PlumbError` for facts in another form.
    """
    if "devices" not in facts:
        return None
    try:
        devices = msgspec.convert(facts["devices"], Devices)
        if {len(devices.ways), *map(len, devices.ways)} - {len(devices.devices)}:
            raise ValueError("ways are not those between its devices")
    except ValueError as error:  # msgspec's too
        message = f"the devices of a host are in a form that is not known: {error}"
        raise PlumbError(message, "devices of the record's host", "read it with the version that wrote it") from None
    return devices


def document(topology: str | Path | None = None) -> dict[str, Any]:
    """The devices as JSON has them. Each of this host whose PCIe link sysfs knows has it as ``link``."""
    document = {"topology": str(topology or "this host"), **msgspec.to_builtins(load(topology))}
    here = pci_links() if topology is None else {}
    for device in document["devices"]:
        if device["address"] in here:
            device["link"] = msgspec.to_builtins(here[device["address"]])
    return document


def draw(devices: Devices, known: Mapping[str, Link | str], width: int) -> Iterator[str]:
    """The facts of each device, the ways between them as a table, and its legend; ``width`` is columns.

    ``known`` are links by PCI address, as they are or in words.
    """
    rows = [facts(device, known.get(device.address)) for device in devices.devices]
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    yield from ("  " + "".join(text.ljust(size) for text, size in zip(row, widths, strict=True)) for row in rows)
    if len(devices.devices) > 1:
        yield from _table(devices, width)


def _table(devices: Devices, width: int) -> Iterator[str]:
    labels = [device.label for device in devices.devices]
    cell = 2 + max(map(len, labels))
    per_table = max(1, (width - cell) // cell)
    for start in range(0, len(labels), per_table):
        part = slice(start, start + per_table)
        rows = [("", labels[part]), *((label, row[part]) for label, row in zip(labels, devices.ways, strict=True))]
        yield ""
        yield from ("  " + label.ljust(cell) + "".join(word.ljust(cell) for word in words) for label, words in rows)
    yield ""
    legend = "; ".join(f"{word} {meaning}" for word, meaning in meanings(devices))
    yield from textwrap.wrap(legend, width, initial_indent="  ", subsequent_indent="    ")


def meanings(devices: Devices) -> list[tuple[str, str]]:
    """The words of :data:`WORDS` that are in the ways of ``devices``, each with its meaning."""
    used = {re.sub(r"^NV\d+$", "NV#", word) for row in devices.ways for word in row}
    return [(word, meaning) for word, meaning in WORDS.items() if word in used]


def facts(device: Device, link: Link | str | None) -> tuple[str, ...]:
    """Label, address, vendor and device, names, nearest CPUs, and link of a device: as texts."""
    local = f"socket {cpu_list(device.sockets)}, NUMA node {cpu_list(device.nodes)}"
    near = local if device.cpus else "near to no usable CPU"
    rate = "" if device.link_gbytes_s is None else f"{device.link_gbytes_s:g} GB/s"
    return device.label, device.address, device.ids, " ".join(device.names), near, str(link) if link else rate


class Link(Struct, frozen=True):
    """The slowest link between a device and the processor. ``gts`` is GT/s of a lane, ``width`` lanes.

    The best is the maximum of both ends of the link. ``saves_power``: the speed may be low because the device is idle.
    """

    address: str
    gts: float
    width: int
    best_gts: float
    best_width: int
    saves_power: bool

    @property
    def fault(self) -> bool:
        """Whether it has fewer lanes than at best, or lower speed for no good reason."""
        return self.width < self.best_width or (self.gts < self.best_gts and not self.saves_power)

    def __str__(self) -> str:
        now = f"PCIe {self.gts:g} GT/s x{self.width}"
        if (self.gts, self.width) == (self.best_gts, self.best_width):
            return now
        idle = " (low at idle)" if self.saves_power and not self.fault else ""
        return f"{now} of {self.best_gts:g} GT/s x{self.best_width}{idle}"


def pci_links(root: Path = Path("/")) -> dict[str, Link]:
    """The links of this host's GPUs, network cards and NVMe drives by PCI address, those that sysfs knows."""
    reader = Reader(root)
    links = (_slowest(reader, root / folder) for folder in reader.names("sys/bus/pci/devices"))
    return {link.address: link for link in links if link}


def between_gpus(root: Path = Path("/")) -> dict[frozenset[str], str]:
    """The words for links between two GPUs of this host that are not PCIe, by the pair of PCI addresses.

    Where NVML fails there are no NVLinks; the energy of GPUs gives the reason (:func:`plumbline.host.energy.gpus`).
    """
    ends = {}
    with contextlib.suppress(OSError):
        ends = {gpu.address: gpu.nvlinks() for gpu in nvml.gpus()}
    return dict.fromkeys(xgmi(root), "XGMI") | {pair: f"NV{count}" for pair, count in nvml.nvlinks(ends).items()}


def xgmi(root: Path = Path("/")) -> frozenset[frozenset[str]]:
    """The pairs of GPUs, by PCI address, that AMD's driver says are joined directly, not by PCIe."""
    read, nodes = Reader(root), "sys/class/kfd/kfd/topology/nodes"
    addresses = {node.rsplit("/", 1)[1]: _address(_properties(read, node)) for node in read.names(nodes)}
    pairs = set()
    for file in read.names(nodes, "*/*_links/*"):
        link = _properties(read, file)
        ends = [addresses.get(str(link.get(end))) for end in ("node_from", "node_to")]
        if link.get("type") == XGMI and None not in ends:
            pairs.add(frozenset(str(end) for end in ends))
    return frozenset(pairs)


def _address(node: dict[str, int]) -> str | None:
    """The PCI address of a node of the driver; None for processors, which have no units for vectors."""
    if not node.get("simd_count") or "location_id" not in node:
        return None
    place = node["location_id"]
    return f"{node.get('domain', 0):04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7:x}"


def _properties(read: Reader, folder: str) -> dict[str, int]:
    words = (line.split() for line in (read.text(f"{folder}/properties") or "").splitlines())
    return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdecimal()}


def _slowest(read: Reader, device: Path) -> Link | None:
    kind = read.text(f"{device}/class") or ""
    if not kind.startswith(CLASSES):
        return None
    saves_power = kind.startswith(SAVING)
    # Device, port, device, port, …: each pair is the two ends of one link; a switch has its own bus between them.
    chain = [device.resolve()]
    while (chain[-1].parent / "class").exists():
        chain.append(chain[-1].parent)
    links = [
        link
        for lower, upper in zip(chain[::2], [*chain[1::2], None], strict=False)
        if (link := _link(read, device.name, lower, upper, saves_power))
    ]
    return min(links, key=lambda link: (not link.fault, link.gts * link.width), default=None)


def _link(read: Reader, address: str, lower: Path, upper: Path | None, saves_power: bool) -> Link | None:
    now = _ability(read, lower, "current")
    best = [ability for end in (lower, upper) if end is not None and (ability := _ability(read, end, "max"))]
    if now is None or not best:
        return None
    gts, width = (min(values) for values in zip(*best, strict=True))
    return Link(address, *now, gts, width, saves_power)


def _ability(read: Reader, device: Path, which: str) -> tuple[float, int] | None:
    speed = re.match(r"([0-9.]+) GT/s", read.text(f"{device}/{which}_link_speed") or "")
    width = read.number(f"{device}/{which}_link_width")
    return None if not speed or width is None or width in NO_WIDTH else (float(speed[1]), width)
