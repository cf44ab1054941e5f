"""The work that real figures of a benchmark need, compared with the work that the witnesses saw.

The limits are far below what an honest program does: they find a program that did not do the work at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from plumbline.base import group
from plumbline.base.units import US
from plumbline.host.limits import WORKING_SET
from plumbline.launch.witness.model import RankWitness
from plumbline.launch.witness.processes import everyone
from plumbline.parsers import osu
from plumbline.parsers.measurement import Measurement
from plumbline.parsers.stream import KERNEL_BYTES
from plumbline.records.model import Benchmark

#: suites whose programs are MPI programs
APPLICATION = "application"
MPI_SUITES = ("imb", "osu", "kernels", APPLICATION)
#: words by which a reason is known
WITHOUT_MPI = "never called MPI_Init"
#: bytes of arrays below which the witness need not have seen them: it counts mappings of 1 MiB and more
ARRAYS_LEAST = 16 << 20
#: fraction of a benchmark's arrays that must have been seen in large mappings: pages of freed blocks are estimates
ARRAYS_SEEN = 0.9
#: the program must have run for this fraction of the time that its figures stand for; a median stands for half
TIME_RUN = 0.5
#: fraction of the same time that the ranks together must have used a CPU, even on a crowded machine: STREAM never
#: waits, and MPI libraries poll
TIME_ON_CPU = 0.05


def shortfalls(benchmark: Benchmark, seen: Sequence[RankWitness]) -> list[str]:
    """The reasons why the witnessed processes cannot be a run of ``benchmark``; empty if none was found."""
    return [*_programs(seen), *_without_mpi(benchmark, seen), *_arrays(seen, _stream_bytes(benchmark))]


def claims(
    benchmark: Benchmark, measurements: list[Measurement], seen: Sequence[RankWitness], arguments: Sequence[str] = ()
) -> list[str]:
    """The reasons why the witnessed processes did too little to have measured ``measurements``, or used other GPUs.

    ``arguments`` are those of the benchmark. Time counts between MPI_Init and MPI_Finalize, or in the whole run.
    """
    if not seen:
        return []
    ran = max(witness.window.wall_s for witness in seen)
    used = sum(process.window.cpu_s for witness in seen for process in everyone(witness))
    if benchmark.suite == "stream":
        needed = _stream_time(measurements)
    elif benchmark.suite == "osu" and not any(word.startswith(osu.ITERATIONS_OPTIONS) for word in arguments):
        needed = _osu_time(measurements)
    else:
        needed = _longest(measurements)
    reasons = _arrays(seen, max((_working_set(item) for item in measurements), default=0) / len(seen))
    reasons += _devices(measurements, seen)
    if ran < TIME_RUN * needed:
        reasons.append(f"the figures imply {needed:.3g} s of work, but no rank ran longer than {ran:.3g} s")
    if used < TIME_ON_CPU * needed:
        reasons.append(f"the figures imply {needed:.3g} s of work, but the ranks used {used:.3g} s of CPU time")
    return reasons


def _devices(measurements: list[Measurement], seen: Sequence[RankWitness]) -> list[str]:
    """The GPUs that a kernel computed on, as their driver names them, against those that the ranks were planned for."""
    used = {str(item.params["device"]) for item in measurements if "device" in item.params}
    if not used:
        return []
    plans = [witness.plan for witness in sorted(seen, key=lambda witness: witness.rank)]
    planned = ",".join(device for plan in plans if plan for device in plan.devices or [])
    return [
        f"the driver used the GPUs {devices}, planned: {planned}" for devices in sorted(used - {planned}) if planned
    ]


def _programs(seen: Sequence[RankWitness]) -> list[str]:
    programs = sorted({witness.program for witness in seen})
    return [f"the ranks ran different programs: {', '.join(programs)}"] if len(programs) > 1 else []


def _without_mpi(benchmark: Benchmark, seen: Sequence[RankWitness]) -> list[str]:
    if benchmark.suite not in MPI_SUITES:
        return []
    silent = [witness for witness in seen if not any(process.mpi for process in everyone(witness))]
    if not silent:
        return []
    return [
        f"{len(silent)} of {len(seen)} ranks {WITHOUT_MPI}, or their MPI library is linked statically: "
        f"{silent[0].program}"
    ]


def _stream_bytes(benchmark: Benchmark) -> int:
    return 3 * 8 * int(benchmark.facts.get("array_elements", 0)) if benchmark.suite == "stream" else 0


def _working_set(measurement: Measurement) -> int:
    """Bytes of the arrays of one of our kernels on all ranks; 0 if it does not report them."""
    return int(measurement.params.get(WORKING_SET, 0))


def _arrays(seen: Sequence[RankWitness], needed: float) -> list[str]:
    """Each rank's share of the arrays, where the witness knows it."""
    held = [count for witness in seen if (count := _held(witness)) is not None]
    if needed < ARRAYS_LEAST or not held or min(held) >= ARRAYS_SEEN * needed:
        return []
    return [
        f"a rank held {min(held) / 1e6:.0f} MB in large mappings, "
        f"the benchmark's arrays are {needed / 1e6:.0f} MB a rank"
    ]


def _held(witness: RankWitness) -> int | None:
    """Bytes that a rank held in mappings of 1 MiB and more; None if not all of them were counted."""
    parts = [process.memory for process in everyone(witness)]
    if any(part.unavailable is not None or part.freed_blocks_skipped or part.untracked_mappings for part in parts):
        return None
    return sum(part.page_bytes * sum((*part.nodes.values(), *part.freed_nodes.values())) for part in parts)


def _stream_time(measurements: list[Measurement]) -> float:
    """Seconds of all executions of the kernels at the best rate that was printed."""
    return sum(
        (item.iterations or 0)
        * KERNEL_BYTES[item.metric]
        * int(item.params["array_elements"])
        * int(item.params.get("ranks", 1))
        / (item.value * 1e6)
        for item in measurements
        if item.value > 0
    )


def _osu_time(measurements: list[Measurement]) -> float:
    """Seconds of all rows of OSU's table: each size is its own loop, whose least number of iterations is known."""
    rows: dict[str, float] = {}
    for item in measurements:
        if item.unit in osu.LEAST_ITERATIONS and item.value > 0 and item.params.get("ranks") is None:
            row, size = repr(sorted(item.params.items())), int(item.params.get("bytes", 0))
            few = "bytes" not in item.params or size > osu.LARGE_BYTES
            iterations = item.iterations or osu.LEAST_ITERATIONS[item.unit][few]
            if item.unit == US:
                seconds = item.value / 1e6
            else:
                messages = int(item.params.get("window", osu.LEAST_WINDOW)) * int(item.params.get("pairs", 1))
                seconds = messages * size / (item.value * 1e6)
            rows[row] = min(rows.get(row, math.inf), seconds * iterations)
    return sum(rows.values())


def _longest(measurements: list[Measurement]) -> float:
    """Seconds of the longest row of a table: its least time, for all of its repetitions.

    Rows are not added up: several may be of the same repetitions.
    """
    rows = group(
        (repr(sorted(item.params.items())), item.value * item.iterations / 1e6)
        for item in measurements
        if item.unit == US and item.iterations
    )
    return max((min(times) for times in rows.values()), default=0.0)
