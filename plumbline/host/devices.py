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
from plumbline.host.topology import binder

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
    """The devices of an hwloc XML file; left out, of this host. Synthetic descriptions have none."""
    devices = msgspec.json.decode(_binder_document(topology), type=Devices)
    return _with_drivers(devices) if topology is None else devices


def _with_drivers(devices: Devices) -> Devices:
    """``devices`` of this host, with the models and links that the drivers of its GPUs report."""
    return joined(named(devices, _models()), links.between_gpus())


def _models() -> dict[str, str]:
    """The models of the GPUs of this host that NVML shows, by PCI address; the energy of GPUs says why it fails."""
    try:
        return {gpu.address: gpu.model() for gpu in nvml.gpus()}
    except OSError:
        return {}


def named(devices: Devices, models: Mapping[str, str]) -> Devices:
    """``devices`` with the ``models`` of devices by PCI address after their names."""
    known = (
        msgspec.structs.replace(device, names=(*device.names, models[device.address]))
        if device.address in models
        else device
        for device in devices.devices
    )
    return msgspec.structs.replace(devices, devices=tuple(known))


def joined(devices: Devices, words: Mapping[frozenset[str], str]) -> Devices:
    """``devices`` with these ``words`` between pairs of PCI addresses in place of those for the way by PCI."""
    addresses = [device.address for device in devices.devices]
    ways = tuple(
        tuple(words.get(frozenset((first, second)), word) for second, word in zip(addresses, row, strict=True))
        for first, row in zip(addresses, devices.ways, strict=True)
    )
    return msgspec.structs.replace(devices, ways=ways)


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
        message, where = (
            f"the devices of a host are in a form that is not known: {error}",
            "devices of the record's host",
        )
        raise PlumbError(message, where, "read it with the version that wrote it") from None
    return devices


def document(topology: str | Path | None = None) -> dict[str, Any]:
    """The devices as JSON has them. Each of this host whose PCIe link sysfs knows has it as ``link``."""
    document: dict[str, Any] = msgspec.json.decode(_binder_document(topology))
    if topology is not None:
        return document
    document |= msgspec.to_builtins(_with_drivers(msgspec.convert(document, Devices)))
    here = links.read()
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
    near = "near to no usable CPU"
    if device.cpus:
        near = f"socket {cpu_list(device.sockets)}, NUMA node {cpu_list(device.nodes)}"
    rate = "" if device.link_gbytes_s is None else f"{device.link_gbytes_s:g} GB/s"
    known = str(link) if link else rate
    return device.label, device.address, device.ids, " ".join(device.names), near, known
