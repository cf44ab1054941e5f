"""One launch: started under its time limit, looked at from inside and outside, verified and parsed."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path

import msgspec

from plumbline import files, mpi, parsers, profiles, schedulers, witness
from plumbline.errors import PlumbError
from plumbline.launch import cause, environment, figures, hosts, joules, loaded, process, settings, shared_memory, work
from plumbline.launch.prepare import Prepared
from plumbline.records import store
from plumbline.records.model import Disturbance, Launch, Measurement, RankSeen, SettingsSeen, Work
from plumbline.witness import disturbance, processes, scheduling
from plumbline.witness.compare_nodes import compare_nodes
from plumbline.witness.model import RankWitness, transports_between

#: characters of a failed launch's output that its record keeps
TAIL = 2000
#: how often a launch is started whose launcher starts no rank, and the seconds between
STARTS = 2
PAUSE_S = 1.0
#: how the binder begins its errors
BINDER = "plumb-bind: "


def launch(job: Prepared, index: int, position: int, folder: Path) -> Launch:
    """Start ``job`` once, as launch ``index`` of its variant and ``position`` of the session, in ``folder``.

    Sets the nodes of the job's record to those that the launch ran on. A launch that measured nothing because its
    launcher started no rank is started again; its ``start_errors`` say why. Raises :class:`Interrupted`, OSError when
    the launch cannot be started, and :class:`PlumbError` for a ``folder`` that Plumbline did not make.
    """
    errors: list[str] = []
    found = _launch(job, index, position, folder, errors)
    while found is None:
        time.sleep(PAUSE_S)
        found = _launch(job, index, position, folder, errors)
    return found


def _launch(job: Prepared, index: int, position: int, folder: Path, errors: list[str]) -> Launch | None:
    """Make one attempt; None, with the reason added to ``errors``, if the launch is to be started again."""
    files.make_anew(folder)
    for name in ("witness", "output"):
        (folder / name).mkdir()
    if job.variant.profiled:
        (folder / "profile").mkdir()
    record = job.record
    if job.layout.nodes > 1 and record.hosts is None:
        about = folder.with_name(f"{folder.name}-hosts")
        record.hosts = hosts.collect(job.launcher, job.layout, job.exported, job.environment, about)
    cpus = job.plan.cpus
    changed = job.files.changes()
    room = shared_memory.free()
    start = store.now()
    meter = joules.Meter(job.layout.nodes, os.environ)
    before = disturbance.snapshot(cpus)
    ended = process.run(job.command, environment.at_home(job.environment, folder), folder, job.variant.time_limit_s)
    after = disturbance.snapshot(cpus)
    spent = meter.used()
    if _worth_another_start(job, ended, folder, errors):
        errors += _ending(job, ended, folder)
        return None
    seen, reasons = witness.read(folder / "witness")
    here = os.uname().nodename  # as witnesses name it
    disturbed = msgspec.convert(disturbance.assess(before, after, seen, job.host), Disturbance)
    if short := _without_room(job, room):
        disturbed = msgspec.structs.replace(disturbed, disturbed=True, causes=[*disturbed.causes, *short])
    changed = changed or job.files.changes()
    reasons = [
        *changed,
        *_ending(job, ended, folder),
        *_degraded(job, folder),
        *reasons,
        *_compare(job, seen),
        *(processes.unseen_orphans(seen, ended.orphans, here) if job.plan.bound else []),
        *scheduling.faults(seen, scheduling.own()),
        *loaded.other_library(job.loads, job.layout.ranks, seen),
        *loaded.note(record, seen),
    ]
    measurements: list[Measurement] = []
    remarks: list[str] = []
    did: Work | None = None
    had = SettingsSeen(job.settings, {}) if job.settings else None
    if ended.status == "ok":
        if job.settings:
            lines = [line for text in _outputs(folder) for line in text.splitlines()]
            had, unproven = settings.compare(job.launcher.family, job.settings, seen, lines)
            reasons += unproven
        reasons += work.shortfalls(record.benchmark, seen)
    if ended.status == "ok" and not job.variant.profiled:
        try:
            measurements = _parse(job, folder)
            printed = _printed(job, folder)
            remarks = parsers.remarks(job.variant.parser, "".join(printed))
            did = msgspec.convert(parsers.work(job.variant.parser, printed), Work | None)
            reasons += work.claims(record.benchmark, measurements, seen, job.variant.arguments)
        except PlumbError as error:
            reasons.append(str(error))
    found = Launch(
        index=index,
        order=position,
        start=start,
        wall_s=round(ended.wall_s, 4),
        status=ended.status,
        exit_code=ended.exit_code,
        verified=not reasons,
        reasons=reasons,
        disturbed=disturbed.disturbed,
        shm_free_bytes=room,
        energy_j=spent.processors,
        gpu_energy_j=spent.gpus,
        work=did,
        transports=transports_between(seen),
        disturbance=disturbed,
        measurements=measurements,
        remarks=[*job.remarks, *remarks, *spent.remarks],
        settings=had,
        ranks=[_seen(item) for item in sorted(seen, key=lambda item: item.rank)],
        output_tail=_tail(folder) if reasons else None,
        waiting=ended.waiting or None,
        start_errors=errors,
    )
    if job.variant.profiled:
        _keep_profile(job, found, folder)
    if found.verified and found.status == "ok":
        shutil.rmtree(folder)
    record.nodes = sorted({rank.host for rank in found.ranks}) or record.nodes
    return found


def _keep_profile(job: Prepared, launch: Launch, folder: Path) -> None:
    """Write the profile beside the record; what could not be read makes the launch unverified."""
    found, faults = profiles.read.ranks(folder / "profile")
    if faults:
        launch.verified = False
        launch.reasons += faults
    profiles.read.save(job.variant.site, profiles.read.profile_of(job.record, launch.ranks, found, job.host))


def _worth_another_start(job: Prepared, ended: process.Ended, folder: Path, errors: list[str]) -> bool:
    """Whether to start again a launch whose launcher started no rank, without an error of the binder.

    After a time limit this is done once in a record: a job has time for one such wait, and a second is no accident.
    """
    if len(errors) + 1 >= STARTS or not cause.never_began(ended, folder) or _line(folder, BINDER):
        return False
    return ended.status == "failed" or not any(launch.start_errors for launch in job.record.launches)


def _seen(witness: RankWitness) -> RankSeen:
    """The rank of a witness. Its other processes are summed up by program: a wrapper may start hundreds of them."""
    others: dict[str, list[float]] = {}
    for item in witness.others:
        others.setdefault(item.program, []).append(processes.cpu_s(item))
    found = [
        {"program": program, "processes": len(times), "cpu_s": round(sum(times), 6)}
        for program, times in sorted(others.items())
    ]
    said = msgspec.to_builtins(witness, str_keys=True)
    return msgspec.convert({**said, "others": found, "scheduling": scheduling.at_start(witness)}, RankSeen)


def _ending(job: Prepared, ended: process.Ended, folder: Path) -> list[str]:
    if ended.status == "timeout":
        waiting = f"; waiting: {'; '.join(ended.waiting[:8])}" if ended.waiting else ""
        return [f"ended by its time limit of {job.variant.time_limit_s:g} s{waiting}"]
    if ended.status == "failed":
        return [_refused(job, folder) or cause.of(ended, _texts(folder))]
    return []


def _without_room(job: Prepared, free_bytes: int | None) -> list[str]:
    """Why the MPI library had too little shared memory on this node, if the benchmark uses it."""
    ranks = job.layout.ranks_per_node
    if job.record.benchmark.suite not in work.MPI_SUITES or ranks == 1:
        return []
    return shared_memory.shortage(job.launcher.family, ranks, free_bytes)


def _degraded(job: Prepared, folder: Path) -> list[str]:
    """The MPI library's own report that it does without something and is slower for it."""
    lines = process.printed(folder / "stderr").splitlines()
    for pattern in job.launcher.family.degraded:
        if found := next((line for line in lines if re.match(pattern, line)), None):
            return [f"{job.launcher.family.name} reports: {found.strip()}"]
    return []


def _refused(job: Prepared, folder: Path) -> str | None:
    """The error line of plumb-bind (too few CPUs, for example), of our kernel or of a scheduler's launcher."""
    kernel = job.variant.context.get("kernel")
    return _line(folder, BINDER, *([f"{kernel}: "] if kernel else []), *mpi.ERRORS)


def _line(folder: Path, *names: str) -> str | None:
    """The first line of stderr that contains one of ``names``, from the name on; earlier names have priority."""
    lines = process.printed(folder / "stderr").splitlines()
    return next((line[line.index(name) :] for name in names for line in lines if name in line), None)


def _compare(job: Prepared, seen: list[RankWitness]) -> list[str]:
    """Why the witnesses do not prove the plan: on one node, or on each of several by the map of ranks to nodes."""
    here = schedulers.host_name()
    layout = job.layout
    if layout.nodes == 1:
        found = sorted({item.host for item in seen}) or [here]
        return witness.compare(job.plan, seen, dict.fromkeys(found, layout.ranks_per_node))
    known = tuple(item["hostname"] for item in job.record.hosts or [] if item["hostname"])
    spread = (layout.nodes, layout.ranks_per_node, layout.round_robin)
    return compare_nodes(job.plan, seen, *spread, here, known)


def _parse(job: Prepared, folder: Path) -> list[Measurement]:
    """Measurements of one launch. STREAM is no MPI program: each rank prints its own table, and their rates add up."""
    kind, context = job.variant.parser, dict(job.variant.context)
    texts = _printed(job, folder)
    if kind == "stream":
        benchmark = job.record.benchmark
        figures.check_stream_rule(benchmark, job.host)
        context |= {"threads": job.plan.threads, "array_elements": benchmark.facts["array_elements"]}
        return parsers.stream.combine([parsers.parse(kind, text, context) for text in texts])
    if kind == "kernel":
        context["threads"] = job.plan.threads
    return parsers.parse(kind, "".join(texts), {**context, "ranks": job.layout.ranks})


def _tail(folder: Path) -> str:
    """The end of all output, from the begin of a line on."""
    whole = "\n".join(text for text in _texts(folder) if text)
    return whole if len(whole) <= TAIL else whole[-TAIL:].partition("\n")[2] or whole[-TAIL:]


def _texts(folder: Path) -> list[str]:
    """What the ranks printed, and then the launcher."""
    last = [folder / name for name in ("stdout", "stderr")]
    return _outputs(folder) + [process.printed(file) for file in last]


def _printed(job: Prepared, folder: Path) -> list[str]:
    """What the benchmark printed in each rank, without what the MPI library says when it starts."""
    texts, startup = _outputs(folder), job.launcher.family.startup
    if not job.settings or startup is None:
        return texts
    return ["".join(line for line in text.splitlines(True) if not re.match(startup, line)) for text in texts]


def _outputs(folder: Path) -> list[str]:
    """What each rank printed."""
    files_of_ranks = sorted((folder / "output").iterdir())
    return [process.printed(file) for file in files_of_ranks]
