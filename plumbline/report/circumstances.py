"""Machines, stacks and programs of a campaign, for a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plumbline.base import units
from plumbline.pages.blocks import Block, block, column, section, table


def circumstances(shared: Mapping[str, Sequence[Any]]) -> Block:
    """What figures were measured on and with: ``shared`` are the parts that the records of a page have in common."""
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
                    one["name"],
                    f"{one['mpi']['family']} {one['mpi']['version']}",
                    one["provider"],
                    " ".join(str(one["compiler"].get(name, "–")) for name in ("name", "version")),
                    one["sha256"][:12],
                    block(
                        "folded",
                        block("bullets", *(block("plain", value=source) for source in one["sources"]), plain=True),
                        title=units.counted(len(one["sources"]), "source"),
                    ),
                )
                for one in shared["stack"]
            ],
        ),
        block("heading", "Benchmarks"),
        table(
            "Benchmarks",
            ("suite", "version", "program", column("sha256", "code"), column("built", "notes")),
            dict.fromkeys(  # the same program may have been built for several stacks
                (one["suite"], one["version"], str(one["file"]).rpartition("/")[2], one["sha256"][:12], one["built"])
                for one in shared["benchmark"]
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
            *(block("plain", value=state.get(name)) for state in states),
        ]
        for name in sorted(names, key=lambda name: name not in differing)
    ]
    return table("States of the hosts", ["fact", *(column(title, "notes") for title in titles)], rows)
