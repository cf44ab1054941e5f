"""Collective operations: three ways to time them, side by side for the same operation, ranks and stack."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from plumbline.records.model import Record
from plumbline.report.curves import SIZE, measurements
from plumbline.views import summary

#: the kernel, and how the version of the OSU benchmarks' port to Python begins
KERNEL = "collective"
PORT = "mpi4py"
#: what each way of timing measures
WAYS = {
    KERNEL: "collective (common start): each call from a start that all ranks have in common to the exit of the last "
    "rank; median over the calls, with its 95 % interval.",
    "osu": "OSU: each rank times its own call behind a barrier; mean over calls and ranks.",
    "osu port": "OSU (port to Python): calls one after the other with nothing between them; time of the loop on rank 0 "
    "divided by the calls. Python's own time is in it; where the root leaves early, calls overlap.",
    "imb": "IMB: each rank times its own call behind a barrier; mean over calls and ranks.",
}
#: metric of each suite to what the table calls it; ``time`` is what is compared
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


def collectives(usable: Sequence[tuple[Record, int]]) -> dict[str, Any] | None:
    """The comparison for the valid records ``usable``, each with the number of its entry; None without the kernel's.

    ``ways`` says what is measured, ``rows`` has an element for each operation, place and size of the kernel: ``found``
    maps ``collective``, ``in_place``, ``osu`` and ``imb`` to ``{"entry", "time"}``, medians over the launches in us;
    the kernel's also have ``low``, ``high``, ``invalid`` (%) and ``clock_error``. The newest record of each counts.
    """
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    ways: dict[tuple[Any, ...], set[str]] = {}
    for record, number in sorted(usable, key=lambda item: (item[0].time, item[0].id)):
        suite, operation = _operation(record)
        for (size, in_place), cell in _cells(record, METRICS.get(suite, {})).items():
            key = (operation, *_place(record), size)
            rows.setdefault(key, {})["in_place" if in_place else suite] = {"entry": number, **cell}
            ways.setdefault(key, set()).add(_way(record, suite))
    names = ("operation", "stack", "partition", "placed", "bytes")
    compared = sorted(key for key, row in rows.items() if KERNEL in row)
    met = {way for key in compared for way in ways[key]}
    found = [{**dict(zip(names, key, strict=True)), "found": rows[key]} for key in compared]
    return {"ways": [text for way, text in WAYS.items() if way in met], "rows": found} if found else None


def _operation(record: Record) -> tuple[str, str]:
    """The suite, ``collective`` for our kernel, and the operation as the kernel names it."""
    name = str(record.variant.context.get("benchmark", ""))
    suite = KERNEL if name.startswith(f"{KERNEL}_") else record.benchmark.suite
    return suite, name.removeprefix(f"{suite}_").lower()


def _place(record: Record) -> tuple[str, str, str]:
    """What must be alike: the library, the nodes' partition, and where the ranks were."""
    return record.stack.name, record.partition, summary.placement(record.placement)


def _way(record: Record, suite: str) -> str:
    return "osu port" if suite == "osu" and record.benchmark.version.startswith(PORT) else suite


def _cells(record: Record, names: dict[str, str]) -> dict[tuple[int, bool], dict[str, float]]:
    """Medians over the launches by ``names``, for each size (0: there is none), without and with MPI_IN_PLACE."""
    samples: dict[tuple[int, bool], dict[str, list[float]]] = {}
    for _, item in measurements(record):
        if item.metric in names:
            key = (int(item.params.get(SIZE, 0)), item.params.get("in_place") == "yes")
            samples.setdefault(key, {}).setdefault(names[item.metric], []).append(item.value)
    return {key: {name: statistics.median(values) for name, values in cell.items()} for key, cell in samples.items()}
