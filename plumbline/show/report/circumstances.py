"""Machines, their devices, stacks and programs of a campaign, for a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from plumbline.base import units
from plumbline.host.devices import Devices, facts, meanings, of_host
from plumbline.records.model import Record
from plumbline.show.pages.blocks import Block, Piece, block, column, section, table
from plumbline.show.record import plain


def circumstances(shared: Mapping[str, Sequence[Any]]) -> Block:
    """The hosts and programs of the measurements: ``shared`` are the common parts of the records of a page."""
    return section(
        "circumstances",
        "Circumstances",
        "What the figures were measured on and with.",
        block("heading", units.counted(len(shared["host"]), "host state")),
        hosts(shared["host"]),
        block("heading", "Stacks"),
        table(
            "Stacks",
            ("stack", "MPI", "provider", "compiler", column("manifest sha256", "code"), column("sources", "notes")),
            [
                (
                    stack["name"],
                    f"{stack['mpi']['family']} {stack['mpi']['version']}",
                    stack["provider"],
                    " ".join(units.dashed(stack["compiler"].get(name)) for name in ("name", "version")),
                    stack["sha256"][:12],
                    block(
                        "folded",
                        block("bullets", *map(plain, stack["sources"]), plain=True),
                        title=units.counted(len(stack["sources"]), "source"),
                    ),
                )
                for stack in shared["stack"]
            ],
        ),
        block("heading", "Benchmarks"),
        table(
            "Benchmarks",
            ("suite", "version", "program", column("sha256", "code"), column("built", "notes")),
            dict.fromkeys(  # the same program may have been built for several stacks
                (
                    benchmark["suite"],
                    benchmark["version"],
                    str(benchmark["file"]).rpartition("/")[2],
                    benchmark["sha256"][:12],
                    benchmark["built"],
                )
                for benchmark in shared["benchmark"]
            ),
        ),
        block("heading", "Suite"),
        block("bullets", *shared["suite"], plain=True),
    )


def hosts(states: Sequence[Mapping[str, Any]]) -> Block:
    """A column for each of the ``states`` of hosts; facts in which they differ come first and are marked."""
    names = dict.fromkeys(name for state in states for name in state)
    differing = {name for name in names if any(state.get(name) != states[0].get(name) for state in states)}
    titles = [
        f"{state.get('hostname') or 'host'}{f' ({place})' if len(states) > 1 else ''}"
        for place, state in enumerate(states, 1)
    ]
    rows = [
        [
            ("≠ " if name in differing else "") + name.replace("_", " "),
            *(plain(state.get(name)) for state in states),
        ]
        for name in sorted(names, key=lambda name: name not in differing)
    ]
    return table("States of the hosts", ["fact", *(column(title, "notes") for title in titles)], rows)


def devices(records: Sequence[Record]) -> Block:
    """Each distinct set of devices in ``records``, with the ways between them, and the nodes that have it."""
    distinct: dict[bytes, tuple[list[tuple[str, ...]], Devices, set[str]]] = {}
    for host in chain.from_iterable(record.hosts or [record.host] for record in records):
        known = of_host(host)
        if known:
            rows = [facts(device, host.get("pci_links", {}).get(device.address)) for device in known.devices]
            device_set = distinct.setdefault(msgspec.json.encode((rows, known.ways)), (rows, known, set()))
            device_set[2].add(str(host["hostname"]))
    return section(
        "devices",
        "Devices",
        "What each node has on PCI, what it is near to, and the way between each two.",
        [_drawn(*each) for each in sorted(distinct.values(), key=lambda each: sorted(each[2]))],
        otherwise="The records know no GPU, network card or NVMe drive.",
    )


def _drawn(rows: list[tuple[str, ...]], known: Devices, hosts: set[str]) -> list[Piece]:
    on, labels = ", ".join(sorted(hosts)), [device.label for device in known.devices]
    return [
        block("heading", on),
        table(
            f"Devices of {on}",
            ("device", "address", "vendor and device", "names", "near to", "link"),
            [[text or None for text in row] for row in rows],
        ),
        len(rows) > 1
        and [
            table(
                f"Ways between devices of {on}",
                ["", *labels],
                [(label, *words) for label, words in zip(labels, known.ways, strict=True)],
            ),
            block("bullets", *(f"{word}: {meaning}" for word, meaning in meanings(known))),
        ],
    ]
