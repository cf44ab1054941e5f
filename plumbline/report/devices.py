"""GPUs, network cards and NVMe drives of the nodes, and the ways between them, for a page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import msgspec

from plumbline.host.devices import Devices, facts, meanings, of_host
from plumbline.pages.blocks import Block, Piece, block, section, table
from plumbline.records.model import Record


def devices(records: Sequence[Record]) -> Block:
    """Each distinct set of devices in ``records``, with the ways between them, and the nodes that have it."""
    found: dict[bytes, tuple[list[tuple[str, ...]], Devices, set[str]]] = {}
    for host in chain.from_iterable(record.hosts or [record.host] for record in records):
        known = of_host(host)
        if known:
            rows = [facts(device, host.get("pci_links", {}).get(device.address)) for device in known.devices]
            one = found.setdefault(msgspec.json.encode((rows, known.ways)), (rows, known, set()))
            one[2].add(str(host["hostname"]))
    parts = [_drawn(*one) for one in sorted(found.values(), key=lambda one: sorted(one[2]))]
    return section(
        "devices",
        "Devices",
        "What each node has on PCI, what it is near to, and the way between each two.",
        parts,
        otherwise="The records know no GPU, network card or NVMe drive.",
    )


def _drawn(rows: list[tuple[str, ...]], known: Devices, hosts: set[str]) -> list[Piece]:
    on, labels = ", ".join(sorted(hosts)), [device.label for device in known.devices]
    ways = [(label, *words) for label, words in zip(labels, known.ways, strict=True)]
    return [
        block("heading", on),
        table(
            f"Devices of {on}",
            ("device", "address", "vendor and device", "names", "near to", "link"),
            [[text or None for text in row] for row in rows],
        ),
        len(rows) > 1
        and [
            table(f"Ways between devices of {on}", ["", *labels], ways),
            block("bullets", *(f"{word}: {meaning}" for word, meaning in meanings(known))),
        ],
    ]
