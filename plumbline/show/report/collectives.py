"""Collective operations: three ways to time them, side by side for the same operation, ranks and stack."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from plumbline.base import group, units
from plumbline.judge.samples import of_launches
from plumbline.parsers.measurement import Measurement
from plumbline.records import naming
from plumbline.records.model import Record
from plumbline.records.variant import PROGRAM
from plumbline.show.columns import Column, Table
from plumbline.show.pages.blocks import Block, Piece, absent, block, choice, link, section
from plumbline.show.report.curves import SIZE

#: operation, stack, partition, placement and bytes of a row
Key: TypeAlias = tuple[str, str, str, str, int]
#: the kernel
KERNEL = "collective"
#: way of timing -> the time that it measures
WAYS = {
    KERNEL: "collective (common start): each call from a start that all ranks have in common to the exit of the last "
    "rank; median over the calls, with its 95 % interval.",
    "osu": "OSU: each rank times its own call behind a barrier; mean over calls and ranks.",
    "osu port": "OSU (port to Python): calls one after the other with nothing between them; time of the loop on rank 0 "
    "divided by the calls. Python's own time is in it; where the root leaves early, calls overlap.",
    "imb": "IMB: each rank times its own call behind a barrier; mean over calls and ranks.",
}
#: metric of each suite -> column of the table; the comparison is of ``time``
METRICS = {
    KERNEL: {
        "time": "time",
        "time_low": "low",
        "time_high": "high",
        "invalid": "invalid",
        "clock_error": "clock_error",
    },
    "osu": {"latency": "time"},
    "imb": {"time_avg": "time"},
}


def collectives(usable: Sequence[tuple[Record, int]]) -> Block:
    """The comparison for the valid records ``usable``, each with the number of its entry: a table for each operation.

    A row is for a place and size of the kernel: medians over the launches, in us. The newest record of each counts.
    """
    rows: dict[Key, dict[str, tuple[int, dict[str, float]]]] = {}
    ways: dict[Key, set[str]] = {}
    for record, entry in sorted(usable, key=lambda item: (item[0].time, item[0].id)):
        suite, operation = _operation(record)
        for (size, in_place), cell in _cells(record, METRICS.get(suite, {})).items():
            # comparable records have the library, the nodes' partition, and the places of the ranks in common
            key = (operation, record.stack.name, record.partition, naming.placement(record.placement), size)
            rows.setdefault(key, {})["in_place" if in_place else suite] = entry, cell
            ways.setdefault(key, set()).add("osu port" if PROGRAM in record.variant.params else suite)
    compared = sorted(key for key, row in rows.items() if KERNEL in row)
    met = {way for key in compared for way in ways[key]}
    tables = {
        operation: Table(f"{operation}: median over the launches", TIMES).block([Timed(key, rows[key]) for key in keys])
        for operation, keys in itertools.groupby(compared, key=lambda key: key[0])
    }
    return section(
        "collectives",
        "Collectives",
        "The same operation by each way of timing it. They measure different things: none is a bound of another.",
        met and block("bullets", *(text for way, text in WAYS.items() if way in met)),
        tables and choice("Operation", [(operation, [shown]) for operation, shown in tables.items()]),
        otherwise=absent("reframe -c reframe-tests -r -n collective_start"),
    )


class Timed(NamedTuple):
    """A size of an operation at a place, with the entry and the medians of each way of timing it."""

    key: Key
    by_way: dict[str, tuple[int, dict[str, float]]]

    def ours(self, name: str) -> str:
        """A median of the kernel."""
        return units.digits(self.by_way[KERNEL][1][name])

    def time(self, way: str) -> Piece:
        """The time by a way, which opens its record; None where it was not measured."""
        entry, cell = self.by_way.get(way, (None, {}))
        return link(units.digits(cell["time"]), entry=entry) if cell else None


TIMES: list[Column[Timed]] = [
    Column("size", lambda row: units.human_bytes(row.key[-1]) if row.key[-1] else None, "number"),
    Column("stack", lambda row: row.key[1]),
    Column("placement", lambda row: row.key[3]),
    Column("common start", lambda row: row.time(KERNEL), "number", "us"),
    Column("interval", lambda row: f"{row.ours('low')} … {row.ours('high')}", "number", "us"),
    Column("in place", lambda row: row.time("in_place"), "number", "us"),
    Column("OSU", lambda row: row.time("osu"), "number", "us"),
    Column("IMB", lambda row: row.time("imb"), "number", "us"),
    Column("invalid", lambda row: row.ours("invalid"), "number", "%"),
    Column("clock error", lambda row: row.ours("clock_error"), "number", "us"),
]


def _operation(record: Record) -> tuple[str, str]:
    """The suite, ``collective`` for our kernel, and the operation as the kernel names it."""
    name = str(record.variant.context.get("benchmark", ""))
    suite = KERNEL if name.startswith(f"{KERNEL}_") else record.benchmark.suite
    return suite, name.removeprefix(f"{suite}_").lower()


def _cells(record: Record, names: dict[str, str]) -> dict[tuple[int, bool], dict[str, float]]:
    """Medians over the launches by ``names``, for each size (0: there is none), without and with MPI_IN_PLACE."""

    def key(item: Measurement) -> tuple[tuple[int, bool], str] | None:
        cell = int(item.params.get(SIZE, 0)), item.params.get("in_place") == "yes"
        return (cell, names[item.metric]) if item.metric in names else None

    medians = [(*of, statistics.median(samples.values)) for of, samples in of_launches(record, key).items()]
    return {
        cell: dict(values) for cell, values in group((cell, (name, value)) for cell, name, value in medians).items()
    }
