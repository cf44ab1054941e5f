"""Work and energy of a record's launches: joules beside the work, the work beside the counts of the processors."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from plumbline.base import units
from plumbline.parsers.measurement import Counted
from plumbline.records.launch import Launch
from plumbline.records.model import Record


@dataclass(frozen=True)
class Spent:
    """Medians over the launches that count; None where no launch has them.

    ``joules`` of a launch, from its start to its end, by the processors; ``gpu_joules`` by the node's GPUs, which are
    in no other figure here; ``watts`` is the mean of ``joules`` in that time. ``gflop`` and ``gbytes``
    are the work by the program's model, of all ranks; ``per_gflop`` and ``per_gbyte`` are joules of a whole launch for
    each. What the processors counted meanwhile: ``instructions`` in 10^9, ``per_cycle``, and ``missed_gbytes``: lines
    that were not in the last-level cache.
    """

    joules: float | None
    gpu_joules: float | None
    watts: float | None
    per_gflop: float | None
    per_gbyte: float | None
    gflop: float | None
    gbytes: float | None
    instructions: float | None
    per_cycle: float | None
    missed_gbytes: float | None


def spent(record: Record) -> Spent:
    """Work and energy of the launches of ``record``."""

    def median(value: Callable[[Launch], float | None]) -> float | None:
        amounts = [amount for launch in record.counting() if (amount := value(launch)) is not None]
        return statistics.median(amounts) if amounts else None

    return Spent(
        joules=median(_joules),
        gpu_joules=median(lambda launch: _sum(launch.gpu_energy_j)),
        watts=median(lambda launch: _ratio(_joules(launch), launch.wall_s)),
        per_gflop=median(lambda launch: _ratio(_joules(launch), _gflop(launch))),
        per_gbyte=median(lambda launch: _ratio(_joules(launch), _gbytes(launch))),
        gflop=median(_gflop),
        gbytes=median(_gbytes),
        instructions=median(lambda launch: seen.instructions / 1e9 if (seen := _counted(launch)) else None),
        per_cycle=median(lambda launch: _ratio(seen.instructions, seen.cycles) if (seen := _counted(launch)) else None),
        missed_gbytes=median(_missed),
    )


def uncounted(record: Record) -> str | None:
    """Why the work of ``record`` was not counted by the processors; None where it was, or has no model."""
    return next((launch.work.missing for launch in record.counting() if launch.work and launch.work.missing), None)


def text(record: Record) -> str:
    """Energy and work of ``record``, a line each; empty where neither is known."""
    usage = spent(record)
    return "\n".join(f"{name:<10} {line}" for name, line in (_energy(record, usage), _work(record, usage)) if line)


def _energy(record: Record, usage: Spent) -> tuple[str, str]:
    of_gpus = _with_units((usage.gpu_joules, "J a launch by all GPUs of the node"))
    if usage.joules is None or usage.watts is None:
        return "energy", "".join(of_gpus)
    idle = f", idle {record.idle.power_w:g} W ({record.idle.host}, {record.idle.measured[:10]})" if record.idle else ""
    parts = [f"{_number(usage.joules)} J a launch, {_number(usage.watts)} W{idle}"]
    parts += _with_units((usage.per_gflop, "J per GFlop"), (usage.per_gbyte, "J per GB"))
    parts += of_gpus
    return "energy", "; ".join(parts)


def _work(record: Record, usage: Spent) -> tuple[str, str]:
    model = ", ".join(_with_units((usage.gflop, "GFlop"), (usage.gbytes, "GB")))
    if not model:
        return "work", ""
    counts = _with_units(
        (usage.instructions, "billion instructions"),
        (usage.per_cycle, "a cycle"),
        (usage.missed_gbytes, "GB not in the last cache"),
    )
    why = uncounted(record)
    counted = f"counted: {', '.join(counts)}" if counts else f"not counted: {why}" if why else ""
    return "work", "; ".join(filter(None, [f"{model} by the model", counted]))


def _with_units(*values: tuple[float | None, str]) -> list[str]:
    return [f"{_number(value)} {unit}" for value, unit in values if value is not None]


def _number(value: float) -> str:
    return f"{units.significant(value, 4):g}"


def _joules(launch: Launch) -> float | None:
    return _sum(launch.energy_j)


def _sum(joules: dict[str, float] | None) -> float | None:
    return sum(joules.values()) if joules else None


def _gflop(launch: Launch) -> float | None:
    return launch.work.flop / 1e9 if launch.work and launch.work.flop else None


def _gbytes(launch: Launch) -> float | None:
    return launch.work.bytes / 1e9 if launch.work and launch.work.bytes else None


def _counted(launch: Launch) -> Counted | None:
    return launch.work.counted if launch.work else None


def _missed(launch: Launch) -> float | None:
    seen = _counted(launch)
    return seen.cache_misses * seen.line_bytes / 1e9 if seen and seen.line_bytes else None


def _ratio(amount: float | None, of: float | None) -> float | None:
    return amount / of if amount is not None and of else None
