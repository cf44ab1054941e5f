"""Joules beside the work of each test, and the model's work beside what the processors counted, for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from plumbline.records.model import Record
from plumbline.views.spent import spent, uncounted


def work(usable: Sequence[tuple[Record, int]]) -> dict[str, Any]:
    """Work and energy of the valid records ``usable``, each with the number of its entry, as far as they are known.

    ``rows`` are medians over the launches (:class:`plumbline.views.spent.Spent`) with the ``entry``; ``idle`` has the
    idle powers that the records know, ``missing`` why there are no joules or no counts, each reason once.
    """
    found = [(record, number, spent(record)) for record, number in usable]
    rows = [
        {"entry": number, **asdict(item)}
        for _, number, item in found
        if (item.joules, item.gpu_joules, item.gflop, item.gbytes) != (None, None, None, None)
    ]
    idle = {f"{one.host}: {one.power_w:g} W ({one.measured[:10]})" for record, _ in usable if (one := record.idle)}
    energy = {str(record.host.get("energy", "")) for record, _, item in found if item.joules is None}
    counts = {f"not counted: {why}" for record, _ in usable if (why := uncounted(record))}
    energy |= {f"of GPUs {why}" for record, _, item in found if item.gpu_joules is None and (why := _of_gpus(record))}
    unread = [f"joules {reason}" for reason in sorted(energy) if "not read" in reason]
    return {"rows": rows, "idle": sorted(idle), "missing": [*unread, *sorted(counts)]}


def _of_gpus(record: Record) -> str:
    """The counters of its GPUs, or why there are none; empty where NVML shows no GPU."""
    return str(record.host.get("gpu_energy", ""))
