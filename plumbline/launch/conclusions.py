"""What a launch can observe, and what may be concluded from one launch: a table of rules (:data:`RULES`).

What may be concluded from ranks that nothing of ours started is in :mod:`plumbline.launch.observed`.

A launch without a reason is verified. Each rule says which launches it is about, finds the reasons in what was observed
of one, and may have cures: what to change in plumb.yaml, or in the program, where a launch of an application is not
verified. The limits on work that figures imply are far below what an honest program does: they find a program that did
not do the work at all.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias

from plumbline import schedulers
from plumbline.base import group, paths
from plumbline.base.units import US, counted, human_bytes, percent, some
from plumbline.host import proc
from plumbline.host.ceilings import Bound
from plumbline.host.counters import Counts
from plumbline.host.limits import WORKING_SET
from plumbline.launch import environment, process, program_files
from plumbline.launch.observed import WORKED, Rule, always, worked
from plumbline.launch.output import IMPROPERLY, Output, Written
from plumbline.launch.prepare import MPI_SUITES, Prepared
from plumbline.launch.witness import disturbance, processes
from plumbline.launch.witness.compare import MISSING, MOVED, OUTSIDE, UNBOUND, compare, compare_nodes
from plumbline.launch.witness.model import RankWitness
from plumbline.launch.witness.processes import everyone
from plumbline.parsers import osu
from plumbline.parsers.measurement import Counted, Measurement, Work
from plumbline.parsers.stream import KERNEL_BYTES
from plumbline.records.launch import Launch, RankSeen, SettingsSeen
from plumbline.records.variant import Variant

#: words by which a reason is known
WITHOUT_MPI = "never called MPI_Init"
STALE, BUILD = "files of the build had been changed before this launch", "the launch changed files of the build"
#: bytes of arrays below which the witness need not have seen them: it counts mappings of 1 MiB and more
ARRAYS_LEAST = 16 << 20
#: fraction of a benchmark's arrays that must have been seen in large mappings: pages of freed blocks are estimates
ARRAYS_SEEN = 0.9
#: the program must have run for this fraction of the time that its figures stand for; a median stands for half
TIME_RUN = 0.5
#: fraction of the same time that the ranks together must have used a CPU, even on a crowded machine: STREAM never
#: waits, and MPI libraries poll
TIME_ON_CPU = 0.05
#: part of the ranks' CPU time that counters must have seen
COUNTED = 0.9
#: part of the planned CPUs' time above which a share of it is impossible, beside the resolution of their clocks
WHOLE = 1.05


@dataclass
class Run:
    """A start of ``job`` and its observations: its ``launch`` as far as it is known, and what later steps need.

    ``changed``: files that differ from those of the session; ``of_build``: before the launch and by it, from those that
    the build left; ``counts``: the processors', of a profiled launch; ``damaged``: witnesses that cannot be read;
    ``unread``: why its output cannot be.
    """

    job: Prepared
    launch: Launch
    ended: process.Ended
    output: Output
    snapshots: tuple[disturbance.Snapshot, disturbance.Snapshot]
    changed: list[str]
    of_build: tuple[dict[str, str], dict[str, str]]
    counts: Counts
    written: Written | None = None
    seen: list[RankWitness] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def why_ended(self) -> list[str]:
        """How a launch ended that did not end well."""
        if self.ended.status == "timeout":
            where = f"; waiting: {'; '.join(self.ended.waiting[:8])}" if self.ended.waiting else ""
            return [f"ended by its time limit of {self.job.variant.time_limit_s:g} s{where}"]
        if self.ended.status == "ok":
            return []
        who = "the program" if self.job.record.command[0] == str(paths.binder()) else "the launcher"
        why = self.output.cause(self.ended, self.job.variant.context.get("kernel"), who)
        memory = self._without_memory()
        return [f"{why.rstrip('.')}; {memory}" if memory else why]

    def _without_memory(self) -> str:
        """That memory ran out on this node, if the kernel ended processes for it."""
        killed = (self.snapshots[1].ended or 0) - (self.snapshots[0].ended or 0)
        if killed <= 0:
            return ""
        host = self.job.record.host
        limits = [size for size in (host["memory_bytes"], host["cgroup"]["memory_limit_bytes"]) if size]
        room = f", the node has room for {human_bytes(min(limits))}" if limits else ""
        return (
            f"memory ran out: the kernel killed {killed} of the node's processes, and the largest of this session "
            f"held {human_bytes(self.ended.peak_bytes)}{room}"
        )


Cure: TypeAlias = str | Callable[[Run], str]


def _ended_well(run: Run) -> bool:
    return run.ended.status == "ok"


def _misplaced(run: Run) -> list[str]:
    job, layout, here = run.job, run.job.ranks.layout, schedulers.host_name()
    if layout.nodes == 1:
        names = sorted({item.host for item in run.seen}) or [here]
        return compare(job.plan, run.seen, dict.fromkeys(names, layout.ranks_per_node), binds=job.binds)
    known = [item["hostname"] for item in job.record.hosts or [] if item["hostname"]]
    return compare_nodes(job.plan, run.seen, layout, here, known, binds=job.binds)


def left_by_ranks(orphans: Sequence[proc.Stat], job: Prepared) -> list[proc.Stat]:
    """The ``orphans`` that a rank may have left: over several nodes ssh is the launcher's, which may end before it."""
    remote = schedulers.REMOTE.programs if job.ranks.layout.nodes > 1 else ()
    return [orphan for orphan in orphans if orphan.name not in remote]


def _daemons(run: Run) -> list[str]:
    # the host by the name that witnesses have
    return processes.unseen_orphans(run.seen, left_by_ranks(run.ended.orphans, run.job), os.uname().nodename)


def _impossible(run: Run) -> list[str]:
    """That more CPU time was used than the ranks' windows have: then the times of their witnesses are wrong."""
    figures = run.launch.disturbance.figures
    share = max(figures.get("other_cpu_fraction", 0.0), figures.get("steal_fraction", 0.0))
    most = WHOLE + 2 * figures.get("cpu_resolution", 0.0)
    words = f"{100 * share:.0f} % of the planned CPUs' time was used: the clock of the ranks is not the kernel's"
    return [words] if share > most else []


def _libraries(run: Run) -> list[str]:
    manifest, ranks = run.job.manifest, run.job.ranks.layout.ranks
    return program_files.other_library(manifest.loads, ranks, run.seen, manifest.outside)


def _settings(run: Run) -> list[str]:
    """Settings that the ranks' MPI libraries do not have; those of the launch are set."""
    requested = run.job.settings
    run.launch.settings = SettingsSeen(requested, {}) if requested else None
    if not requested or not _ended_well(run):
        return []
    lines = [line for text in run.output.of_ranks() for line in text.splitlines()]
    family = run.job.ranks.launcher.family
    run.launch.settings, unproven = environment.compare_settings(family, requested, run.seen, lines)
    return unproven


def _unbound(run: Run) -> str:
    if run.job.binds == "itself":
        return _BY_ITSELF
    bound = [[thread.affinity for thread in worked(rank)] for rank in run.seen]
    if all(len(threads) <= 1 for threads in bound):
        return "write threads: 1 in plumb.yaml, as one thread of each rank worked"
    if any(len(cpus) == 1 for threads in bound for cpus in threads):
        return _ITSELF
    return "write binds: ranks in plumb.yaml if these are not threads of OpenMP"


def _of_build(run: Run) -> Iterator[str]:
    """The files of the build that were changed, so that not every launch starts from the same ones."""
    for words, names in zip((STALE, BUILD), run.of_build, strict=True):
        shown = [f"{name} ({how})" for name, how in names.items()]
        if shown:
            yield f"{words}: {some(shown, program_files.SHOWN)}"


def _own_copy(run: Run) -> str:
    """What to write under ``copy``: the inputs that were changed, and the program, beside which it wrote the rest."""
    context, built = run.job.variant.context, run.job.files.built
    if built is None:
        return ""
    written = [os.path.normpath(f"{built.folder}/{name}") for name in run.of_build[1]]
    begins = {name: (f"{file}/", f"{file} ") for name, file in context.get("inputs", {}).items()}
    entries = [
        name for name, begin in begins.items() if any(f"{text} ".startswith(begin) for text in (*written, *run.changed))
    ]
    program = Path(os.path.relpath(context["program"], built.folder))
    may_copy = ".." not in program.parts and not any(program.is_relative_to(entry) for entry in context.get("copy", {}))
    if beside := [text for text in written if not any(f"{text} ".startswith(begin) for begin in begins.values())]:
        entries += [str(program)] * may_copy
    if beside and not entries:
        return "let the program write in the folder where it runs: what it wrote has a path of the build"
    return f"write copy: [{', '.join(entries)}] in plumb.yaml: each launch gets files of its own" if entries else ""


_ITSELF = "if the program binds its threads, write binds: itself in plumb.yaml, and the placement that is like it"
_BY_ITSELF = "write the placement in plumb.yaml that the program binds its threads as, or binds: ranks"
_HELPERS = {
    processes.LEFT_NO_WITNESS: "if these are the program's helpers, link them dynamically, and let them end well"
}
_PLACES: dict[str, Cure] = {
    UNBOUND: _unbound,
    **_HELPERS,
    processes.BECAME: "move this work into build, or command the program itself",
    OUTSIDE: lambda run: _BY_ITSELF if run.job.binds == "itself" else _ITSELF,
    MOVED: _ITSELF,
    MISSING: "the launch ended well, so the ranks are linked statically, or ended by _exit before "
    "MPI_Finalize: link them dynamically, or let them call MPI_Finalize",
}
_WORLD: dict[str, Cure] = {
    program_files.WORLD: "build it with the stack's mpicc, mpicxx or mpifort, which come first in PATH"
}


def shortfalls(run: Run) -> list[str]:
    """The reasons why the witnessed processes cannot be a run of the benchmark; empty if none was found."""
    benchmark, seen = run.job.record.benchmark, run.seen
    programs = sorted({witness.program for witness in seen})
    reasons = [f"the ranks ran different programs: {', '.join(programs)}"] if len(programs) > 1 else []
    silent = [witness for witness in seen if not any(process.mpi for process in everyone(witness))]
    if silent and benchmark.suite in MPI_SUITES:
        static = f"or their MPI library is linked statically: {silent[0].program}"
        reasons.append(f"{len(silent)} of {len(seen)} ranks {WITHOUT_MPI}, {static}")
    elements = int(benchmark.facts.get("array_elements", 0)) if benchmark.suite == "stream" else 0
    return reasons + _arrays(seen, 3 * 8 * elements)


def claims(run: Run) -> list[str]:
    """The reasons why the witnessed processes did too little to have measured the figures, or used other GPUs.

    Time counts between MPI_Init and MPI_Finalize, or in the whole run.
    """
    suite, measurements, seen = run.job.record.benchmark.suite, run.launch.measurements, run.seen
    if not seen:
        return []
    ran = max(witness.window.wall_s for witness in seen)
    used = sum(process.window.cpu_s for witness in seen for process in everyone(witness))
    if suite == "stream":
        needed = _stream_time(measurements)
    elif suite == "osu" and not any(word.startswith(osu.ITERATIONS_OPTIONS) for word in run.job.variant.arguments):
        needed = _osu_time(measurements)
    else:
        needed = _longest(measurements)
    working_set = max((int(item.params.get(WORKING_SET, 0)) for item in measurements), default=0)  # on all ranks
    reasons = _arrays(seen, working_set / len(seen)) + _devices(measurements, seen)
    if ran < TIME_RUN * needed:
        reasons.append(f"the figures imply {needed:.3g} s of work, but no rank ran longer than {ran:.3g} s")
    if used < TIME_ON_CPU * needed:
        reasons.append(f"the figures imply {needed:.3g} s of work, but the ranks used {used:.3g} s of CPU time")
    return reasons


def _devices(measurements: list[Measurement], seen: Sequence[RankWitness]) -> list[str]:
    """The GPUs that a kernel computed on, as their driver names them, against those that the ranks were planned for."""
    used = {str(item.params["device"]) for item in measurements if "device" in item.params}
    plans = [witness.plan for witness in sorted(seen, key=lambda witness: witness.rank)]
    planned = ",".join(device for plan in plans if plan for device in plan.devices or [])
    return [
        f"the driver used the GPUs {devices}, planned: {planned}" for devices in sorted(used - {planned}) if planned
    ]


def _arrays(seen: Sequence[RankWitness], needed: float) -> list[str]:
    """Each rank's share of the arrays, where the witness knows it."""
    held = [count for witness in seen if (count := _held(witness)) is not None]
    if needed < ARRAYS_LEAST or not held or min(held) >= ARRAYS_SEEN * needed:
        return []
    arrays = f"the benchmark's arrays are {needed / 1e6:.0f} MB a rank"
    return [f"a rank held {min(held) / 1e6:.0f} MB in large mappings, {arrays}"]


def _held(witness: RankWitness) -> int | None:
    """Bytes that a rank held in mappings of 1 MiB and more; None if not all of them were counted."""
    parts = [process.memory for process in everyone(witness)]
    if any(part.unavailable is not None or part.freed_blocks_skipped or part.untracked_mappings for part in parts):
        return None
    return sum(part.page_bytes * sum((*part.nodes.values(), *part.freed_nodes.values())) for part in parts)


def _stream_time(measurements: list[Measurement]) -> float:
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


def work_seen(counts: Counts, ranks: Sequence[RankSeen], variant: Variant | None = None) -> Work:
    """The work of ``ranks`` by ``counts``, with the bytes that the plumb.yaml of ``variant`` says.

    Counts that lack most of the ranks' CPU time are not of these.
    """
    rules = variant.context.get("rules", {}).get("figures", {}).values() if variant else ()
    cpu_ns = 1e9 * sum(rank.usage["user_s"] + rank.usage["system_s"] for rank in ranks)
    is_theirs = counts.values.get("cpu_ns", 0) >= COUNTED * cpu_ns
    missing = counts.missing or ("" if is_theirs else "a daemon, a job step or another node started the ranks")
    values = {name: value for name, value in counts.values.items() if name != "cpu_ns"}
    counted = None if missing else Counted(**values, line_bytes=counts.line_bytes)
    moved = max((rule.get("bytes", 0.0) for rule in rules), default=0.0)
    return Work(flop=0, bytes=moved, counted=counted, missing=missing or None)


#: how the ranks of a launch spent their time, as the kernel counts it for everybody
Spent: TypeAlias = Mapping[str, float]


def spent(ranks: Sequence[RankSeen], work: Work | None = None, ceiling: Bound | None = None) -> Spent:
    """How at least one rank spent its time.

    ``kernel``: its part of their CPU time; ``faults``: pages that were mapped, ``rate`` of them in a second of CPU
    time, ``disk`` of them were read; ``waits``: how often a rank gave up a CPU, in a second; ``busy``: the part of the
    time of the ``threads`` that worked in which they had a CPU; ``thread_load``, ``rank_load``: the most CPU time of a
    thread of a rank, or of a rank, by the mean. ``moved``: MB/s to and from memory by their ``work``, at least, and
    ``memory``: its part of the ``ceiling``; 0 where they are not known. Where processors counted: ``instructions``,
    ``cycles`` and ``ghz``, the clock.
    """
    times = [[thread.cpu_s or 0.0 for thread in rank.threads] for rank in ranks]
    threads = [[used for used in each if used >= WORKED * max(each)] for each in times]
    sums = {key: sum(rank.usage[key] for rank in ranks) for key in ranks[0].usage}
    cpu = [rank.usage["user_s"] + rank.usage["system_s"] + 1e-9 for rank in ranks]
    wall = sum(len(each) * rank.usage["wall_s"] for each, rank in zip(threads, ranks, strict=True))
    seen = work.counted if work else None
    missed = seen.cache_misses * seen.line_bytes if seen else 0
    moved = max(work.bytes if work else 0, missed) / 1e6 / (max(rank.usage["wall_s"] for rank in ranks) + 1e-9)
    processor = {} if seen is None else {
        "instructions": seen.instructions, "cycles": seen.cycles, "ghz": seen.cycles / 1e9 / (sums["user_s"] + 1e-9),
    }  # fmt: skip
    return {
        "kernel": sums["system_s"] / sum(cpu),
        "faults": sums["minor_faults"],
        "rate": sums["minor_faults"] / sum(cpu),
        "disk": sums["major_faults"],
        "waits": sums["voluntary_switches"] / (sums["wall_s"] + 1e-9),
        "threads": max(map(len, threads)),
        "busy": sum(cpu) / (wall + 1e-9),
        "thread_load": max(max(each) * len(each) / (sum(each) + 1e-9) for each in threads),
        "rank_load": max(cpu) * len(cpu) / sum(cpu),
        "moved": moved,
        "memory": moved / ceiling.value if ceiling else 0.0,
        **processor,
    }


#: kinds of costs, which name what may be tried against them
FAULTS, CALLS, DISK, WAITS, SPINS, IDLE = "page faults", "system calls", "disk", "waits", "threads", "idle"
THREAD_LOAD, RANK_LOAD, BANDWIDTH = "load of threads", "load of ranks", "memory bandwidth"
#: what costs time beyond MPI; the least shares and rates are those from which a gain of 1 % may be in it
COSTS: tuple[Rule[Spent], ...] = (
    Rule(lambda spent: spent["kernel"] >= 0.02 and spent["rate"] >= 1000, lambda spent: [
        f"{spent['faults']:,} pages were mapped, {spent['rate']:,.0f} in a second of CPU time, "
        f"and {percent(spent['kernel'])} of the CPU time is the kernel's"
    ], {FAULTS: "memory is given back and asked for again: try an allocator that keeps it, or huge pages"}),
    Rule(lambda spent: spent["kernel"] >= 0.02 > spent["rate"] / 50_000, lambda spent: [
        f"{percent(spent['kernel'])} of the CPU time is the kernel's, with few page faults"
    ], {CALLS: "strace -c -f PROGRAM counts them"}),
    Rule(lambda spent: spent["disk"] >= 100, lambda spent: [
        f"{spent['disk']:,} pages were read from a disk"
    ], {DISK: "start it again with its files in memory, or give it more memory"}),
    Rule(lambda spent: spent["waits"] >= 1000, lambda spent: [
        f"a rank gave up its CPU {spent['waits']:,.0f} times in a second"
    ], {WAITS: "threads that sleep wake late: OMP_WAIT_POLICY=active, if each has a CPU"}),
    Rule(lambda spent: spent["busy"] < 0.9, lambda spent: [
        f"a rank has a CPU for {percent(spent['busy'])} of the time of its {counted(int(spent['threads']), 'thread')}"
    ], {IDLE: "serial parts, input and output, an uneven load, or other processes"}),
    Rule(lambda spent: spent["threads"] > 1 and spent["busy"] >= 0.9, lambda spent: [
        f"{spent['threads']} threads of a rank are busy for {percent(spent['busy'])} of the time: they work, or spin"
    ], {SPINS: "CPU time that is gone with OMP_WAIT_POLICY=passive was spinning"}),
    Rule(lambda spent: spent["thread_load"] >= 1.1, lambda spent: [
        f"the busiest thread of a rank works {spent['thread_load']:.2f} times as long as the mean of its threads"
    ], {THREAD_LOAD: "OMP_SCHEDULE=dynamic, where a loop has schedule(runtime)"}),
    Rule(lambda spent: spent["rank_load"] >= 1.1, lambda spent: [
        f"the busiest rank works {spent['rank_load']:.2f} times as long as the mean"
    ], {RANK_LOAD: "divide the work otherwise, or fewer ranks with more threads"}),
    Rule(lambda spent: spent["memory"] >= 0.5, lambda spent: [
        f"at least {percent(spent['memory'])} of what these cores reach"
    ], {BANDWIDTH: "move fewer bytes (smaller types, blocks that fit the caches), or use cores of more NUMA nodes"}),
)  # fmt: skip


def costs(ranks: Sequence[RankSeen], work: Work | None = None, ceiling: Bound | None = None) -> dict[str, str]:
    """What costs the ranks time beyond MPI, by :data:`COSTS`: kind -> evidence, and what to try."""
    seen = spent(ranks, work, ceiling) if ranks and ranks[0].usage else None
    return {
        kind: f"{kind}: {line}; {cure}"
        for rule in COSTS
        if seen and rule.condition(seen)
        for line in rule.evidence(seen)
        for kind, cure in rule.cures.items()
    }


_FAILURE: Rule[Run] = Rule(always, Run.why_ended, {IMPROPERLY: "let each rank call MPI_Finalize"})
#: in the order of the reasons: how the launch ended, the places and libraries of its ranks, their work, their figures
RULES: tuple[Rule[Run], ...] = (
    Rule(always, attrgetter("changed"), {program_files.CHANGED: _own_copy}),
    Rule(always, _of_build, {BUILD: _own_copy, STALE: "the next command builds it again"}),
    _FAILURE,
    Rule(always, _impossible),
    Rule(always, attrgetter("output.degraded")),
    Rule(always, attrgetter("damaged")),
    Rule(always, _misplaced, _PLACES),
    Rule(attrgetter("job.plan.bound"), _daemons, _HELPERS),
    Rule(always, lambda run: processes.scheduling_faults(run.seen, processes.scheduling_here())),
    Rule(always, _libraries, _WORLD),
    Rule(always, lambda run: program_files.note(run.job.record, run.seen)),
    Rule(always, _settings),
    Rule(_ended_well, shortfalls, {WITHOUT_MPI: "write mpi: false in plumb.yaml if it does not use MPI"}),
    Rule(always, attrgetter("unread")),
    Rule(lambda run: bool(run.launch.measurements) and not run.unread, claims),
)


def reasons_of(run: Run) -> list[str]:
    """The reasons why a launch is not verified, by :data:`RULES`; empty if it is."""
    return [reason for rule in RULES if rule.condition(run) for reason in rule.evidence(run)]


def with_cures(run: Run, reasons: Iterable[str]) -> list[str]:
    """``reasons`` why a launch of an application is not verified, the first of each kind with its cure.

    Where a launch failed, only the cure of its failure helps.
    """
    rules = RULES if _ended_well(run) else (_FAILURE,)
    cures = {words: cure for rule in rules for words, cure in rule.cures.items()}
    explained, known = [], {""}
    for reason in reasons:
        cure = next((cure for words, cure in cures.items() if words in reason), "")
        text = cure if isinstance(cure, str) else cure(run)
        explained.append(reason if text in known else f"{reason}; {text}")
        known.add(text)
    return explained
