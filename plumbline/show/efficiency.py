"""Work and energy of records: joules beside the work, and the model's work beside what the processors counted."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from plumbline.base import group, units
from plumbline.records import naming
from plumbline.records.launch import Launch
from plumbline.records.model import Record
from plumbline.show.columns import Column, Table
from plumbline.show.pages.blocks import Block, block, link, section


def amounts(launch: Launch) -> dict[str, float | None]:
    """Work and energy of a launch by name; None for what is not known.

    ``joules``, from its start to its end, by the processors; ``gpu_joules`` by the node's GPUs, which are in no other
    amount; ``watts`` is the mean of ``joules`` in that time. ``gflop`` and ``gbytes`` are the work by the program's
    model, of all ranks; ``per_gflop`` and ``per_gbyte`` are joules of a whole launch for each. What the processors
    counted meanwhile: ``instructions`` in 10^9, ``per_cycle``, and ``missed_gbytes``: lines that were not in the
    last-level cache.
    """
    work = launch.work
    counted = work.counted if work else None
    joules, gpu_joules = (sum(parts.values()) if parts else None for parts in (launch.energy_j, launch.gpu_energy_j))
    gflop, gbytes = (work.flop / 1e9 or None, work.bytes / 1e9 or None) if work else (None, None)
    return {
        "joules": joules,
        "watts": _quotient(joules, launch.wall_s),
        "gpu_joules": gpu_joules,
        "per_gflop": _quotient(joules, gflop),
        "per_gbyte": _quotient(joules, gbytes),
        "gflop": gflop,
        "instructions": counted.instructions / 1e9 if counted else None,
        "per_cycle": _quotient(counted.instructions, counted.cycles) if counted else None,
        "gbytes": gbytes,
        "missed_gbytes": counted.cache_misses * counted.line_bytes / 1e9 if counted and counted.line_bytes else None,
    }


def _quotient(amount: float | None, of: float | None) -> float | None:
    return amount / of if amount is not None and of else None


class Work(NamedTuple):
    """A record, medians of its amounts over the launches that count, and on a page the number of its entry."""

    record: Record
    medians: Mapping[str, float]
    entry: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether the record has energy or work."""
        return bool(self.medians.keys() & {"joules", "gpu_joules", "gflop", "gbytes"})


def of(record: Record, entry: int | None = None) -> Work:
    """Work and energy of the launches of ``record``."""
    known = group(
        (name, value) for launch in record.counting() for name, value in amounts(launch).items() if value is not None
    )
    return Work(record, {name: statistics.median(values) for name, values in known.items()}, entry)


def _amount(name: str, row: Work) -> str | None:
    return units.digits(row.medians[name]) if name in row.medians else None


#: medians over the launches
WORK = Table[Work](
    "Energy and work",
    [
        Column("test", lambda row: link(naming.name(row.record.variant), entry=row.entry), forms="page"),
        Column("stack", lambda row: row.record.stack.name, forms="page"),
        Column("placement", lambda row: naming.placement(row.record.placement), forms="page"),
        *(
            Column(title, partial(_amount, name), "number", unit)
            for title, unit, name in (
                ("energy", "J", "joules"),
                ("power", "W", "watts"),
                ("energy of GPUs", "J", "gpu_joules"),
                ("per GFlop", "J", "per_gflop"),
                ("per GB", "J", "per_gbyte"),
                ("model", "GFlop", "gflop"),
                ("instructions", "10⁹", "instructions"),
                ("a cycle", "", "per_cycle"),
                ("model", "GB", "gbytes"),
                ("not in the last cache", "GB", "missed_gbytes"),
            )
        ),
    ],
)


def text(record: Record) -> str:
    """Energy and work of ``record``, and why an amount is missing; empty where neither is known."""
    row = of(record)
    return "\n".join([WORK.text([row]), *_remarks([row])]) if row.is_known else ""


def work(usable: Sequence[tuple[Record, int]]) -> Block:
    """The section of the valid records ``usable``, each with the number of its entry, as far as the two are known."""
    every = [of(record, entry) for record, entry in usable]
    rows, remarks = [row for row in every if row.is_known], _remarks(every)
    return section(
        "work",
        "Energy and work",
        "Medians over the launches. Joules are those of the node from the start of a launch to its end, set-up "
        "included; work and counts are of what the program timed, on all ranks.",
        remarks and block("bullets", *remarks),
        rows and WORK.block(rows),
        otherwise="No test of this campaign knows its work or its energy.",
    )


def _remarks(rows: Sequence[Work]) -> list[str]:
    """Reasons for missing joules and counts, each once, and the idle powers that the records know."""
    energy = {
        *(str(row.record.host.get("energy", "")) for row in rows if "joules" not in row.medians),
        *(f"of GPUs {row.record.host.get('gpu_energy', '')}" for row in rows if "gpu_joules" not in row.medians),
    }
    works = [launch.work for row in rows for launch in row.record.counting() if launch.work]
    counts = {f"not counted: {work.missing}" for work in works if work.missing}
    idle = {
        f"idle power of {reading.host}: {reading.power_w:g} W ({reading.measured[:10]})"
        for row in rows
        if (reading := row.record.idle)
    }
    return [*(f"joules {reason}" for reason in sorted(energy) if "not read" in reason), *sorted(counts), *sorted(idle)]
