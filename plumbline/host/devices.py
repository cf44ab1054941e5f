"""GPUs, network cards and NVMe drives of a machine, and the ways between them. The binder finds them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from plumbline.base.errors import PlumbError
from plumbline.base.units import cpu_list
from plumbline.host import links, nvml
from plumbline.host.links import Link
from plumbline.topology import binder

#: what the words mean that stand between two devices; all but XGMI are those of ``nvidia-smi topo -m``. NV# stands
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

#: PCI vendor of a GPU -> what programs for its memory are built with
BUILT_WITH = {"10de": "cuda", "1002": "rocm"}


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
    return [one for one in load(topology).devices if one.label.startswith("GPU")]


def built_with(topology: str | Path) -> str | None:
    """What programs for the GPUs of a machine are built with; None where it has no GPU, or one of another maker."""
    found = gpus(topology)
    return BUILT_WITH.get(found[0].ids.partition(":")[0]) if found else None


def load(topology: str | Path | None = None) -> Devices:
    """The devices of an hwloc XML file; left out, of this host. Synthetic descriptions have none."""
    found = msgspec.json.decode(_asked(topology), type=Devices)
    return _told(found) if topology is None else found


def _told(found: Devices) -> Devices:
    """``found`` on this host, with what the drivers of its GPUs say."""
    return joined(named(found, _models()), links.between_gpus())


def _models() -> dict[str, str]:
    """The models of the GPUs of this host that NVML shows, by PCI address; the energy of GPUs says why it fails."""
    try:
        return {gpu.address: gpu.model() for gpu in nvml.gpus()}
    except OSError:
        return {}


def named(found: Devices, models: Mapping[str, str]) -> Devices:
    """``found`` with the ``models`` of devices by PCI address after their names."""
    known = (
        msgspec.structs.replace(device, names=(*device.names, models[device.address]))
        if device.address in models
        else device
        for device in found.devices
    )
    return msgspec.structs.replace(found, devices=tuple(known))


def joined(found: Devices, words: Mapping[frozenset[str], str]) -> Devices:
    """``found`` with these ``words`` between pairs of PCI addresses in place of those for the way by PCI."""
    addresses = [device.address for device in found.devices]
    ways = tuple(
        tuple(words.get(frozenset((one, other)), word) for other, word in zip(addresses, row, strict=True))
        for one, row in zip(addresses, found.ways, strict=True)
    )
    return msgspec.structs.replace(found, ways=ways)


def _asked(topology: str | Path | None) -> str:
    return binder.ask(["--devices", *([] if topology is None else ["--topology", str(topology)])])


def of_host(facts: Mapping[str, Any]) -> Devices | None:
    """The devices of a host with the facts of :func:`plumbline.host.provenance.measured`; None where it has none.

    Raises :class:`PlumbError` for facts in another form.
    """
    if "devices" not in facts:
        return None
    try:
        found = msgspec.convert(facts["devices"], Devices)
        if {len(found.ways), *map(len, found.ways)} - {len(found.devices)}:
            raise ValueError("ways are not those between its devices")
    except ValueError as error:  # msgspec's too
        what, where = f"the devices of a host are in a form that is not known: {error}", "devices of the record's host"
        raise PlumbError(what, where, "read it with the version that wrote it") from None
    return found


def document(topology: str | Path | None = None) -> dict[str, Any]:
    """The devices as JSON has them. Each of this host whose PCIe link sysfs knows has it as ``link``."""
    found: dict[str, Any] = msgspec.json.decode(_asked(topology))
    if topology is not None:
        return found
    found |= msgspec.to_builtins(_told(msgspec.convert(found, Devices)))
    here = links.read()
    for device in found["devices"]:
        if device["address"] in here:
            device["link"] = msgspec.to_builtins(here[device["address"]])
    return found


def draw(found: Devices, known: Mapping[str, Link | str], width: int) -> Iterator[str]:
    """What each device is, the ways between them as a table, and what its words mean; ``width`` is columns.

    ``known`` are links by PCI address, as they are or in words.
    """
    rows = [facts(device, known.get(device.address)) for device in found.devices]
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    yield from ("  " + "".join(text.ljust(size) for text, size in zip(row, widths, strict=True)) for row in rows)
    if len(found.devices) > 1:
        yield from _table(found, width)


def _table(found: Devices, width: int) -> Iterator[str]:
    labels = [device.label for device in found.devices]
    cell = 2 + max(map(len, labels))
    per_table = max(1, (width - cell) // cell)
    for start in range(0, len(labels), per_table):
        part = slice(start, start + per_table)
        rows = [("", labels[part]), *((label, row[part]) for label, row in zip(labels, found.ways, strict=True))]
        yield ""
        yield from ("  " + label.ljust(cell) + "".join(word.ljust(cell) for word in words) for label, words in rows)
    yield ""
    legend = "; ".join(f"{word} {meaning}" for word, meaning in meanings(found))
    yield from textwrap.wrap(legend, width, initial_indent="  ", subsequent_indent="    ")


def meanings(found: Devices) -> list[tuple[str, str]]:
    """The words of :data:`WORDS` that are in the ways of ``found``, each with what it means."""
    used = {re.sub(r"^NV\d+$", "NV#", word) for row in found.ways for word in row}
    return [(word, meaning) for word, meaning in WORDS.items() if word in used]


def facts(device: Device, link: Link | str | None) -> tuple[str, ...]:
    """Label, address, vendor and device, names, what it is near to, and its link: as texts."""
    near = "near to no usable CPU"
    if device.cpus:
        near = f"socket {cpu_list(device.sockets)}, NUMA node {cpu_list(device.nodes)}"
    rate = "" if device.link_gbytes_s is None else f"{device.link_gbytes_s:g} GB/s"
    known = str(link) if link else rate
    return device.label, device.address, device.ids, " ".join(device.names), near, known
