"""Joules beside the work of each test, and the model's work beside what the processors counted, for a page."""

from __future__ import annotations

from collections.abc import Sequence

from plumbline.base import units
from plumbline.records import naming
from plumbline.records.model import Record
from plumbline.show.efficiency import Spent, spent, uncounted
from plumbline.show.pages.blocks import Block, block, link, number, section, table

#: the column of each median in :class:`plumbline.show.efficiency.Spent`, left out where no record has it
COLUMNS = {
    "joules": number("energy", "J"),
    "watts": number("power", "W"),
    "gpu_joules": number("energy of GPUs", "J"),
    "per_gflop": number("per GFlop", "J"),
    "per_gbyte": number("per GB", "J"),
    "gflop": number("model", "GFlop"),
    "instructions": number("instructions", "10⁹"),
    "per_cycle": number("a cycle"),
    "gbytes": number("model", "GB"),
    "missed_gbytes": number("not in the last cache", "GB"),
}


def work(usable: Sequence[tuple[Record, int]]) -> Block:
    """Work and energy of the valid records ``usable``, each with the number of its entry, as far as they are known.

    Above the table: reasons for missing joules and counts, each once, and the idle powers that the records know.
    """
    costs = [(record, entry, spent(record)) for record, entry in usable]
    known = [
        item for item in costs if (item[2].joules, item[2].gpu_joules, item[2].gflop, item[2].gbytes) != (None,) * 4
    ]
    names = [name for name in COLUMNS if any(getattr(item, name) is not None for _, _, item in known)]
    rows = [
        [
            link(naming.name(record.variant), entry=entry),
            record.stack.name,
            naming.placement(record.placement),
            *(None if (value := getattr(item, name)) is None else units.digits(value) for name in names),
        ]
        for record, entry, item in known
    ]
    idle = {
        f"idle power of {reading.host}: {reading.power_w:g} W ({reading.measured[:10]})"
        for record, _ in usable
        if (reading := record.idle)
    }
    reasons = [*_missing(costs), *sorted(idle)]
    return section(
        "work",
        "Energy and work",
        "Medians over the launches. Joules are those of the node from the start of a launch to its end, set-up "
        "included; work and counts are of what the program timed, on all ranks.",
        reasons and block("bullets", *reasons),
        rows and table("Energy and work", ["test", "stack", "placement", *(COLUMNS[name] for name in names)], rows),
        otherwise="No test of this campaign knows its work or its energy.",
    )


def _missing(costs: Sequence[tuple[Record, int, Spent]]) -> list[str]:
    energy = {str(record.host.get("energy", "")) for record, _, item in costs if item.joules is None}
    counts = {f"not counted: {why}" for record, _, _ in costs if (why := uncounted(record))}
    energy |= {f"of GPUs {why}" for record, _, item in costs if item.gpu_joules is None and (why := _of_gpus(record))}
    return [*(f"joules {reason}" for reason in sorted(energy) if "not read" in reason), *sorted(counts)]


def _of_gpus(record: Record) -> str:
    """The counters of its GPUs, or why there are none; empty where NVML shows no GPU."""
    return str(record.host.get("gpu_energy", ""))
