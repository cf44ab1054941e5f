"""A program on a part of the node, alone and beside a neighbour on another part, as the two sides of a gate.

The neighbour is ``plumb-neighbour``, a program that keeps its CPUs busy in one way. Both are proven by their witnesses:
where they ran, and that the neighbour worked all the time.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from plumbline.base import files, paths, programs, surroundings
from plumbline.base.errors import PlumbError
from plumbline.base.units import cpu_list, percent
from plumbline.gate import duet
from plumbline.gate.commands import CommandBench
from plumbline.gate.live import Contest, GateBench
from plumbline.gate.setup import Session
from plumbline.host import machine
from plumbline.host.machine import Cpus, Machine
from plumbline.launch import hosts
from plumbline.launch.witness import processes
from plumbline.records.launch import Launch

#: the ways in which a neighbour works; the first does nothing
KINDS = ("sleeper", "compute", "memory", "cache", "messages")
#: the least part of its CPUs' time that a neighbour must have used
BUSY = 0.9


class Distance(NamedTuple):
    """The nearest part of the machine that both share, ``victim`` and ``neighbour`` being its halves."""

    shared: str
    victim: Cpus
    neighbour: Cpus


def distances(here: Machine, usable: Iterable[int]) -> list[Distance]:
    """The distances that the machine has, near ones first: hardware threads of a core, then halves that are alike.

    Raises :class:`PlumbError` where there is none.
    """
    allowed = frozenset(usable)
    cores = ([cpu for cpu in core.cpus if cpu in allowed] for core in here.cores)
    every = [Distance("core", (cpus[0],), (cpus[1],)) for cpus in cores if len(cpus) > 1][:1]
    levels = (("L3", here.l3s), ("NUMA", here.numa_nodes), ("socket", here.packages))
    parts = [(name, part.cpus) for name, level in levels for part in level]
    for name, cpus in [*parts, ("node", here.cpus)]:
        with contextlib.suppress(PlumbError):  # it has no halves that are alike
            every.append(Distance(name, *machine.halves(here, allowed.intersection(cpus))))
    nearest, first = dict[tuple[Cpus, Cpus], Distance](), dict[str, Distance]()
    for each in every:
        if nearest.setdefault(each[1:], each) is each:  # else a part inside has the same halves
            first.setdefault(each.shared, each)
    if not first:
        raise PlumbError("a neighbour needs a part of its own", here.name, "two cores or hardware threads at least")
    return list(first.values())


def named(distance: Distance, kind: str) -> str:
    """The end of a variant's name that says which neighbour its candidate has."""
    return f"%shares={distance.shared} %neighbour={kind}"


def parts_of(name: str) -> tuple[str, str]:
    """What is shared, and the kind of the neighbour, by the name of a variant or series."""
    shared, kind = (part.partition("=")[2] for part in name.partition(": ")[0].split(" ")[-2:])
    return shared, kind


def bench_of(begun: Session, folder: Path) -> GateBench:
    """The bench of the gate in ``folder``, whose candidates have the neighbour that their names say.

    Raises :class:`PlumbError` where the machine has not the same parts any more.
    """
    here, usable = machine.load(), os.sched_getaffinity(0)
    known, benches = {each.shared: each for each in distances(here, usable)}, list[GateBench]()
    places: list[tuple[Distance, str]] = []
    for couple in begun.couples:
        shared, kind = parts_of(couple[0].name)
        if shared not in known:
            raise PlumbError(f"this process has no two parts of a {shared}", here.name, "give it the CPUs of the begin")
        places.append((known[shared], kind))
        try:
            os.sched_setaffinity(0, known[shared].victim)
            benches.append((GateBench if begun.site else CommandBench)(replace(begun, couples=[couple]), folder))
        finally:
            os.sched_setaffinity(0, usable)
    bench = benches[0]
    bench.jobs = [job for each in benches for job in each.jobs]
    cache = {each: sum(part.size for part in here.last_level_caches if {*part.cpus} & {*each.neighbour})
             for each in known.values()}  # fmt: skip
    bench.rounds = partial(_pair, bench, places, cache)
    return bench


def _pair(
    bench: GateBench, places: Sequence[tuple[Distance, str]], cache: dict[Distance, int], contest: Contest, first: int,
    order: int,
) -> dict[int, Launch]:  # fmt: skip
    """Both launches of a pair, by the number of the variant: that of the baseline is alone."""
    (distance, kind), launches = places[contest.position], dict[int, Launch]()
    size = {"memory": 2, "cache": 1}.get(kind, 0) * cache[distance]
    for place, side in enumerate((first, 1 - first)):
        which = 2 * contest.position + side
        job, others = bench.jobs[which], frozenset(distance.neighbour)
        job.part = hosts.Part(distance.victim, others, None, duet.barrier_of(bench.folder, [job]))
        start = partial(bench.launch, which, len(contest.launches), order + place)
        with hosts.turn() as remarks, contextlib.ExitStack() as stack:
            beside = stack.enter_context(neighbour(kind, size, distance.neighbour, bench.folder)) if side else None
            (launch,) = duet.bound([(start, distance.victim)])
        launch.remarks += remarks
        if beside is not None:
            _prove(launch, beside, distance.neighbour, kind)
        duet.prove(launch, distance.victim, None)
        launches[which] = launch
    return launches


@contextlib.contextmanager
def neighbour(kind: str, size: int, cpus: Cpus, folder: Path) -> Iterator[list[processes.RankWitness]]:
    """A neighbour on ``cpus`` with ``size`` bytes within this block; after it the list has its witness.

    Raises :class:`PlumbError` where it cannot be started.
    """
    place, seen = folder / "neighbour", list[processes.RankWitness]()
    files.make_anew(place)

    def become() -> None:
        programs.die_with_parent()
        os.sched_setaffinity(0, cpus)
        os.environ.update({**processes.preloaded(surroundings.of_user(), place), "PLUMB_WITNESS_PID": str(os.getpid())})

    program = paths.tools() / "bin" / "plumb-neighbour"
    try:
        running = subprocess.Popen([program, kind, str(size)], stdout=subprocess.PIPE, preexec_fn=become)
    except OSError as error:
        raise PlumbError(f"no neighbour: {error.strerror}", str(program), paths.setup()) from error
    with running:
        try:
            if running.stdout is None or not running.stdout.readline():
                raise PlumbError(f"the neighbour '{kind}' ended before it worked", str(program), "is memory short?")
            yield seen
        finally:
            running.terminate()
    seen += processes.read(place)[0]


def _prove(launch: Launch, witnesses: Sequence[processes.RankWitness], cpus: Cpus, kind: str) -> None:
    """Take the verification from a launch whose neighbour was not seen on ``cpus`` all the time; idle, it disturbed."""
    if len(witnesses) != 1 or not launch.half:
        launch.reasons.append("no witness shows where and when the neighbour ran")
        return
    (seen,), (begin, end) = witnesses, launch.half.window
    if outside := {cpu for thread in (*seen.threads, *seen.ended) for cpu in thread.affinity} - set(cpus):
        launch.reasons.append(f"the neighbour could run on CPUs {cpu_list(outside)}, its part is {cpu_list(cpus)}")
    start, wall = seen.window.begin_s or 0.0, max(seen.window.wall_s, 1e-9)
    launch.half.overlap = round(max(0.0, min(end, start + wall) - max(begin, start)) / max(end - begin, 1e-9), 4)
    busy = processes.cpu_s(seen) / wall / len(cpus)
    if launch.half.overlap < duet.OVERLAP or (busy < BUSY and kind != KINDS[0]):
        cause = f"the neighbour worked for {percent(busy)} of its time, beside {percent(launch.half.overlap)} of this"
        duet.disturb(launch, cause)
