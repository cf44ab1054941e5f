"""PCIe links with their width and speed, now and at best, from sysfs; and links between GPUs, from their drivers."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from plumbline.host import nvml
from plumbline.host.collector import Reader

#: beginnings of the PCI classes of devices whose links are looked at: NVMe, network, display, accelerators
CLASSES = ("0x0108", "0x02", "0x03", "0x12")
#: those of devices that lower the speed of their link while they are idle
SAVING = ("0x03", "0x12")
#: widths that mean that the device does not know
NO_WIDTH = (0, 255)
#: the kind of a link between GPUs in the files of AMD's driver (CRAT_IOLINK_TYPE_XGMI in Linux)
XGMI = 11


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


def read(root: Path = Path("/")) -> dict[str, Link]:
    """The links of this host's GPUs, network cards and NVMe drives by PCI address, those that sysfs knows."""
    reader = Reader(root)
    links = (_slowest(reader, root / folder) for folder in reader.names("sys/bus/pci/devices"))
    return {link.address: link for link in links if link}


def between_gpus(root: Path = Path("/")) -> dict[frozenset[str], str]:
    """The words for links between two GPUs of this host that are not PCIe, by the pair of PCI addresses.

    Where NVML fails there are no NVLinks; the energy of GPUs gives the reason (:func:`plumbline.host.energy.gpus`).
    """
    try:
        ends = {gpu.address: gpu.nvlinks() for gpu in nvml.gpus()}
    except OSError:
        ends = {}
    bonded = {pair: f"NV{count}" for pair, count in nvml.nvlinks(ends).items()}
    return dict.fromkeys(xgmi(root), "XGMI") | bonded


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
