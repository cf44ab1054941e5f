"""One launch: start → observe → prove → parse. Each step fills in its part of the launch and returns its reasons.

A launch without a reason is verified.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from plumbline import mpi, parsers, schedulers
from plumbline.base import files, group
from plumbline.base.errors import PlumbError
from plumbline.base.units import human_bytes
from plumbline.host import proc
from plumbline.launch import (
    cause,
    cures,
    environment,
    figures,
    hosts,
    joules,
    plausible,
    process,
    program_files,
    settings,
    shared_memory,
    turns,
    witness,
)
from plumbline.launch.output import BINDER, Output
from plumbline.launch.prepare import APPLICATION, Prepared
from plumbline.launch.profiles import read as read_profiles
from plumbline.launch.witness import disturbance, processes, scheduling
from plumbline.launch.witness.compare_nodes import compare_nodes
from plumbline.launch.witness.model import RankWitness, transports_between
from plumbline.launch.written import Written
from plumbline.parsers.measurement import Measurement
from plumbline.records import store
from plumbline.records.launch import Disturbance, Launch, RankSeen, SettingsSeen
from plumbline.stacks import engines

#: how often a launch is started whose launcher starts no rank, and the seconds between
STARTS = 2
PAUSE_S = 1.0


@dataclass
class Run:
    """A start of ``job``: its ``launch`` as far as it is known, and results of a step that later steps need."""

    job: Prepared
    launch: Launch
    ended: process.Ended
    output: Output
    snapshots: tuple[disturbance.Snapshot, disturbance.Snapshot]
    written: Written | None = None
    seen: list[RankWitness] = field(default_factory=list)

    def why_ended(self) -> list[str]:
        """How a launch ended that did not end well."""
        if self.ended.status == "timeout":
            where = f"; waiting: {'; '.join(self.ended.waiting[:8])}" if self.ended.waiting else ""
            return [f"ended by its time limit of {self.job.variant.time_limit_s:g} s{where}"]
        if self.ended.status == "ok":
            return []
        why = self.output.cause(self.ended, self.job.variant.context.get("kernel"))
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


def launch(job: Prepared, index: int, position: int, folder: Path) -> Launch:
    """Launch ``job`` once, as launch ``index`` of its variant and ``position`` of the session, in ``folder``.

    Sets the nodes of the job's record to those that the launch ran on. A launch that measured nothing because its
    launcher started no rank is started again; its ``start_errors`` say why. Raises :class:`Interrupted`, OSError when
    the launch cannot be started, and :class:`PlumbError` for a ``folder`` that Plumbline did not make.
    """
    errors: list[str] = []
    run, reasons = start(job, index, position, folder)
    while _worth_another_start(run, errors):
        errors += run.why_ended()
        time.sleep(PAUSE_S)
        run, reasons = start(job, index, position, folder)
    reasons += [*observe(run), *prove(run), *parse(run)]
    launched = run.launch
    if job.variant.benchmark == APPLICATION:
        reasons = cures.added(reasons, run.seen, job.binds, ended_well=run.ended.status == "ok")
    launched.start_errors = errors
    launched.output_tail = run.output.tail() if reasons else None
    if job.variant.profiled:
        reasons += _keep_profile(run, folder)
    launched.reasons, launched.verified = reasons, not reasons
    if launched.verified and launched.status == "ok":
        shutil.rmtree(folder)
    job.record.nodes = sorted({rank.host for rank in launched.ranks}) or job.record.nodes
    return launched


def start(job: Prepared, index: int, position: int, folder: Path) -> tuple[Run, list[str]]:
    """Run the program under its time limit, on one node in its turn. Reasons: files that changed, and how it ended."""
    if job.ranks.layout.nodes > 1:  # two launches that wait for each other's nodes would never begin
        return _start(job, index, position, folder)
    with turns.held() as remarks:
        run, reasons = _start(job, index, position, folder)
        run.launch.remarks += remarks
        return run, reasons


def _start(job: Prepared, index: int, position: int, folder: Path) -> tuple[Run, list[str]]:
    files.make_anew(folder)
    for name in ("witness", "output", *(["profile"] if job.variant.profiled else [])):
        (folder / name).mkdir()
    for name, file in job.variant.context.get("inputs", {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(file)
    layout, written = job.ranks.layout, None
    if job.variant.parser == "application":
        rules = msgspec.convert(job.variant.context["rules"], parsers.application.Rules)
        written = Written(folder, rules, layout.nodes)
    if layout.nodes > 1 and job.record.hosts is None:
        job.record.hosts = hosts.collect(job.ranks, folder.with_name(f"{folder.name}-hosts"))
    cpus = job.plan.cpus
    changed = job.files.changes()
    free, begin = shared_memory.free(), store.now()
    meter = joules.Meter(layout.nodes, os.environ)
    before = disturbance.snapshot(cpus)
    around = environment.at_home(job.ranks.environment, folder)
    ended = process.run(_command(job, folder), around, folder, job.variant.time_limit_s)
    after = disturbance.snapshot(cpus)
    spent = meter.used()
    begun = Launch(
        index=index,
        order=position,
        start=begin,
        wall_s=round(ended.wall_s, 4),
        status=ended.status,
        verified=False,
        reasons=[],
        disturbed=False,
        disturbance=Disturbance(),
        measurements=[],
        ranks=[],
    )
    begun.exit_code, begun.waiting, begun.shm_free_bytes = ended.exit_code, ended.waiting or None, free
    begun.energy_j, begun.gpu_energy_j, begun.remarks = spent.processors, spent.gpus, list(spent.remarks)
    run = Run(job, begun, ended, Output(folder, job.ranks.launcher.family), (before, after), written)
    return run, [*(changed or job.files.changes()), *run.why_ended(), *run.output.degraded()]


def _command(job: Prepared, folder: Path) -> list[str]:
    """The record's command, with the folder of the launch where a container gets it."""
    if not job.manifest.container:
        return job.record.command
    return [word.replace(engines.FOLDER, str(folder.resolve())) for word in job.record.command]


def observe(run: Run) -> list[str]:
    """Read the ranks' witnesses and their disturbances. Reasons: witnesses that are missing or damaged."""
    run.seen, reasons = witness.read(run.output.folder / "witness")
    launch, (before, after) = run.launch, run.snapshots
    is_own = run.job.record.variant.application is not None
    assessed = msgspec.convert(disturbance.assess(before, after, run.seen, run.job.host, may_sleep=is_own), Disturbance)
    if short := _without_room(run.job, launch.shm_free_bytes):
        assessed = msgspec.structs.replace(assessed, disturbed=True, causes=[*assessed.causes, *short])
    launch.disturbed, launch.disturbance = assessed.disturbed, assessed
    launch.transports = transports_between(run.seen)
    launch.ranks = [_rank(item) for item in sorted(run.seen, key=lambda item: item.rank)]
    return reasons


def left_by_ranks(orphans: Sequence[proc.Stat], job: Prepared) -> list[proc.Stat]:
    """The ``orphans`` that a rank may have left: over several nodes ssh is the launcher's, which may end before it."""
    remote = schedulers.REMOTE.programs if job.ranks.layout.nodes > 1 else ()
    return [orphan for orphan in orphans if orphan.name not in remote]


def prove(run: Run) -> list[str]:
    """Reasons: places, scheduling, libraries, settings or work of the ranks that are not those that were asked for."""
    job, seen = run.job, run.seen
    here = os.uname().nodename  # as witnesses name it
    reasons = [
        *_misplaced(job, seen),
        *(processes.unseen_orphans(seen, left_by_ranks(run.ended.orphans, job), here) if job.plan.bound else []),
        *scheduling.faults(seen, scheduling.of_this_process()),
        *program_files.other_library(job.manifest.loads, job.ranks.layout.ranks, seen, job.manifest.outside),
        *program_files.note(job.record, seen),
    ]
    run.launch.settings = SettingsSeen(job.settings, {}) if job.settings else None
    if run.ended.status != "ok":
        return reasons
    if job.settings:
        lines = [line for text in run.output.of_ranks() for line in text.splitlines()]
        run.launch.settings, unproven = settings.compare(job.ranks.launcher.family, job.settings, seen, lines)
        reasons += unproven
    return reasons + plausible.shortfalls(job.record.benchmark, seen)


def parse(run: Run) -> list[str]:
    """Read the figures that the program printed. Reasons: output without them, or figures that it cannot have."""
    job, launch = run.job, run.launch
    remarks: list[str] = []
    reasons: list[str] = []
    if run.ended.status == "ok" and not job.variant.profiled:
        texts = run.output.of_ranks()
        try:
            run.output.refuse_excess()
            launch.measurements = _measurements(run, texts)
            remarks = parsers.remarks(job.variant.parser, "".join(texts))
            launch.work = parsers.work(job.variant.parser, texts)
            reasons = plausible.claims(job.record.benchmark, launch.measurements, run.seen, job.variant.arguments)
        except PlumbError as error:
            words = run.output.complaint() if job.variant.benchmark == APPLICATION else ""
            talking = ", ".join(mpi.talking(job.record.environment))
            reasons = [f"{error}; it printed: {words}" if words else str(error)]
            if talking:
                reasons[0] += f"; {talking} may have made a library print among the figures: leave it out"
    launch.remarks = [*job.remarks, *remarks, *launch.remarks]
    return reasons


def _keep_profile(run: Run, folder: Path) -> list[str]:
    """Write the profile beside the record. Reasons: unreadable files."""
    job = run.job
    rank_profiles, faults = read_profiles.ranks(folder / "profile")
    read_profiles.save(
        job.variant.site, read_profiles.profile_of(job.record, run.launch.ranks, rank_profiles, job.host)
    )
    return faults


def _worth_another_start(run: Run, errors: list[str]) -> bool:
    """Whether to start again a launch whose launcher started no rank, without an error of the binder.

    After a time limit this is done once in a record: a job has time for one such wait, and a second is not an accident.
    """
    if len(errors) + 1 >= STARTS or not cause.never_began(run.ended, run.output.folder) or run.output.line(BINDER):
        return False
    return run.ended.status == "failed" or not any(launch.start_errors for launch in run.job.record.launches)


def _rank(witness: RankWitness) -> RankSeen:
    """The rank of a witness. Its other processes are summed up by program: a wrapper may start hundreds of them."""
    others = group((item.program, processes.cpu_s(item)) for item in witness.others)
    summed = [
        {"program": program, "processes": len(times), "cpu_s": round(sum(times), 6)}
        for program, times in sorted(others.items())
    ]
    fields = msgspec.to_builtins(witness, str_keys=True)
    return msgspec.convert({**fields, "others": summed, "scheduling": scheduling.at_start(witness)}, RankSeen)


def _without_room(job: Prepared, free_bytes: int | None) -> list[str]:
    """Why the MPI library had too little shared memory on this node, if the benchmark uses it."""
    ranks = job.ranks.layout.ranks_per_node
    if job.record.benchmark.suite not in plausible.MPI_SUITES or ranks == 1:
        return []
    return shared_memory.shortage(job.ranks.launcher.family, ranks, free_bytes)


def _misplaced(job: Prepared, seen: list[RankWitness]) -> list[str]:
    """Why the witnesses do not prove the plan: on one node, or on each of several by the map of ranks to nodes."""
    here = schedulers.host_name()
    layout = job.ranks.layout
    if layout.nodes == 1:
        names = sorted({item.host for item in seen}) or [here]
        return witness.compare(job.plan, seen, dict.fromkeys(names, layout.ranks_per_node), binds=job.binds)
    known = tuple(item["hostname"] for item in job.record.hosts or [] if item["hostname"])
    spread = (layout.nodes, layout.ranks_per_node, layout.round_robin)
    return compare_nodes(job.plan, seen, *spread, here, known, binds=job.binds)


def _measurements(run: Run, texts: list[str]) -> list[Measurement]:
    """Measurements of one launch. Each rank of STREAM, which has no MPI, prints its own table; their rates add up."""
    job = run.job
    kind, context = job.variant.parser, dict(job.variant.context)
    if kind == "stream":
        benchmark = job.record.benchmark
        figures.check_stream_rule(benchmark, job.host)
        context |= {"threads": job.plan.threads, "array_elements": benchmark.facts["array_elements"]}
        return parsers.stream.combine([parsers.parse(kind, text, context) for text in texts])
    if kind == "kernel":
        context["threads"] = job.plan.threads
    if kind == "application":
        context["wall_s"] = max((witness.window.wall_s for witness in run.seen), default=None)
        context["files"] = run.written.texts() if run.written else {}
        context |= {"launch_s": run.launch.wall_s, "workers": job.ranks.layout.ranks * job.plan.threads}
    return parsers.parse(kind, "".join(texts), {**context, "ranks": job.ranks.layout.ranks})
