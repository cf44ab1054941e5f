"""One launch: start → observe → parse → conclude. Each step fills in its part of the launch and its observations."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

import msgspec

from plumbline import mpi, parsers
from plumbline.base import files
from plumbline.base.errors import PlumbError
from plumbline.base.units import cpu_list
from plumbline.host import ceilings, counters
from plumbline.launch import conclusions, environment, figures, hosts, process, profile_files, program_files
from plumbline.launch.conclusions import Run
from plumbline.launch.output import BINDER, Output, Written, complaint
from plumbline.launch.prepare import APPLICATION, MPI_SUITES, Prepared
from plumbline.launch.witness import compare, disturbance, processes
from plumbline.launch.witness.model import transports_between
from plumbline.parsers.measurement import Measurement
from plumbline.records import store
from plumbline.records.launch import Disturbance, Launch
from plumbline.stacks import engines

#: how often a launch is started whose launcher starts no rank, and the seconds between
STARTS = 2
PAUSE_S = 1.0


def launch(job: Prepared, index: int, position: int, folder: Path) -> Launch:
    """Launch ``job`` once, as launch ``index`` of its variant and ``position`` of the session, in ``folder``.

    Sets the nodes of the job's record to those that the launch ran on. A launch that measured nothing because its
    launcher started no rank is started again; its ``start_errors`` say why. Raises :class:`Interrupted`, OSError when
    the launch cannot be started, and :class:`PlumbError` for a ``folder`` that Plumbline did not make.
    """
    errors: list[str] = []
    run = start(job, index, position, folder)
    while _worth_another_start(run, errors):
        errors += run.why_ended()
        time.sleep(PAUSE_S)
        run = start(job, index, position, folder)
    observe(run)
    parse(run)
    launched, reasons = run.launch, conclusions.reasons_of(run)
    if job.variant.benchmark == APPLICATION:
        reasons = conclusions.with_cures(run, reasons)
    launched.start_errors = errors
    launched.output_tail = run.output.tail() if reasons else None
    if job.variant.profiled:
        reasons += _profiled(run)
    launched.reasons, launched.verified = reasons, not reasons
    if launched.verified and launched.status == "ok":
        shutil.rmtree(folder)
    job.record.nodes = sorted({rank.host for rank in launched.ranks}) or job.record.nodes
    return launched


def _profiled(run: Run) -> list[str]:
    """Keep the profile of a launch; returns what of it could not be read."""
    job, seen = run.job, run.launch.ranks
    ranks, faults = profile_files.ranks(run.output.folder / "profile")
    work = conclusions.work_seen(run.counts, seen, job.variant)
    ceiling = ceilings.of_memory(job.plan, job.host, job.ranks.layout.nodes, job.ceilings)
    profile_files.save(job.variant.site, profile_files.profile_of(job.record, seen, ranks, job.host, work, ceiling))
    return faults


def start(job: Prepared, index: int, position: int, folder: Path) -> Run:
    """Run the program under its time limit, on one node in its turn."""
    # two launches over several nodes that wait for each other's nodes would never begin
    in_turn = job.ranks.layout.nodes == 1 and not (job.part and job.part.others)
    with hosts.turn() if in_turn else contextlib.nullcontext(list[str]()) as remarks:
        run = _start(job, index, position, folder)
        run.launch.remarks += remarks
        return run


def _start(job: Prepared, index: int, position: int, folder: Path) -> Run:
    files.make_anew(folder)
    for name in ("witness", "output", *(["profile"] if job.variant.profiled else [])):
        (folder / name).mkdir()
    for member, put in (("inputs", os.symlink), ("copy", files.copy)):
        for name, file in job.variant.context.get(member, {}).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            put(Path(file), folder / name)
    layout, written, command = job.ranks.layout, None, job.record.command
    if job.variant.parser == "application":
        rules = msgspec.convert(job.variant.context["rules"], parsers.application.Rules)
        written = Written(folder, rules, layout.nodes)
    if layout.nodes > 1 and job.record.hosts is None:
        job.record.hosts = hosts.collect(job.ranks, folder.with_name(f"{folder.name}-hosts"))
    if job.manifest.container:  # which has the folder of the launch where the record's command names it
        command = [word.replace(engines.FOLDER, str(folder.resolve())) for word in command]
    cpus, meet = job.plan.cpus, job.part.meet if job.part else None
    if job.part:  # ranks that a daemon starts do not inherit their CPUs; in a container there is no such file
        at, file = command.index("--witness"), job.part.barrier
        barrier = ["--barrier", str(file)] if file and not job.manifest.container else []
        command = [*command[:at], "--allowed", cpu_list(job.part.cpus), *barrier, *command[at:]]
    changed, stale = job.files.changes(), job.files.of_build()
    free, begin = process.shared_free(), store.now()
    meter = hosts.Meter(layout.nodes, os.environ)
    before = disturbance.snapshot(cpus)
    around = environment.at_home(job.ranks.environment, folder)
    with counters.counting() if job.variant.profiled else contextlib.nullcontext(counters.Counts()) as counts:
        ended = process.run(command, around, folder, job.variant.time_limit_s, meet=meet)
    after = disturbance.snapshot(cpus)
    spent = meter.used()
    begun = Launch(
        index=index,
        order=position,
        start=begin,
        wall_s=round(ended.wall_s, 4),
        status=ended.status,
        exit_code=ended.exit_code,
        verified=False,
        reasons=[],
        disturbed=False,
        disturbance=Disturbance(),
        measurements=[],
        remarks=list(spent.remarks),
        ranks=[],
        waiting=ended.waiting or None,
        shm_free_bytes=free,
        energy_j=spent.processors,
        gpu_energy_j=spent.gpus,
    )
    output = Output(folder, job.ranks.launcher.family)
    changed = changed or job.files.changes()
    left = {name: how for name, how in job.files.of_build().items() if name not in stale}
    return Run(job, begun, ended, output, (before, after), changed, (stale, left), counts, written)


def observe(run: Run) -> None:
    """Read the ranks' witnesses, and from them the disturbances of the launch."""
    seen, run.damaged = processes.read(run.output.folder / "witness")
    run.seen = [program_files.in_launch(witness, run.output.folder) for witness in seen]
    launch, (before, after) = run.launch, run.snapshots
    is_own = run.job.record.variant.application is not None
    others = run.job.part.others if run.job.part else frozenset[int]()
    assessed = disturbance.assess(before, after, run.seen, run.job.host, may_sleep=is_own, partner=others)
    launch.half = processes.half_seen(run.seen) if run.job.part and run.seen else None
    layout, uses_mpi = run.job.ranks.layout, run.job.record.benchmark.suite in MPI_SUITES
    family, ranks = run.job.ranks.launcher.family, layout.ranks_per_node if uses_mpi else 1
    if ranks > 1 and (short := process.shared_shortage(family, ranks, launch.shm_free_bytes)):
        assessed |= {"disturbed": True, "causes": [*assessed["causes"], *short]}
    launch.disturbance = msgspec.convert(assessed, Disturbance)
    launch.disturbed = launch.disturbance.disturbed
    launch.transports = transports_between(run.seen)
    launch.remarks += compare.excursions(run.seen) if run.job.binds in ("threads", "ranks") else []
    launch.ranks = [processes.rank_seen(item) for item in sorted(run.seen, key=lambda item: item.rank)]


def parse(run: Run) -> None:
    """Read the figures that the program printed; ``unread`` says why there are none."""
    job, launch = run.job, run.launch
    remarks: list[str] = []
    if run.ended.status == "ok" and not job.variant.profiled:
        texts = run.output.of_ranks()
        try:
            run.output.refuse_excess()
            launch.measurements = _measurements(run, texts)
            remarks = parsers.remarks(job.variant.parser, "".join(texts))
            launch.work = parsers.work(job.variant.parser, texts)
        except PlumbError as error:
            words = complaint(run.output.stderr()) if job.variant.benchmark == APPLICATION else ""
            reason = f"{error}; it printed: {words}" if words else str(error)
            if (printing := sum(bool(text.strip()) for text in texts)) > 1:
                reason += f"; {printing} of {len(texts)} ranks printed"
            if talking := ", ".join(mpi.talking(job.record.environment)):
                reason += f"; {talking} may have made a library print among the figures: leave it out"
            run.unread = [reason]
    launch.remarks = [*job.remarks, *remarks, *launch.remarks]


def _worth_another_start(run: Run, errors: list[str]) -> bool:
    """Whether to start again a launch whose launcher started no rank, without an error of the binder.

    After a time limit this is done once in a record: a job has time for one such wait, and a second is not an accident.
    """
    began = any(any((run.output.folder / name).iterdir()) for name in ("output", "witness"))
    if len(errors) + 1 >= STARTS or run.ended.status == "ok" or began or run.output.line(BINDER):
        return False
    return run.ended.status == "failed" or not any(launch.start_errors for launch in run.job.record.launches)


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
