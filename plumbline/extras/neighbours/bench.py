"""A program on a part of the node, alone and beside a neighbour on another part, as the two sides of a gate.

The neighbour is ``plumb-neighbour``, a program that keeps its CPUs busy in one way. Both are proven by their witnesses:
where they ran, and that the neighbour worked all the time.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from plumbline.base.errors import PlumbError
from plumbline.gate import duet
from plumbline.gate.commands import CommandBench
from plumbline.gate.live import Contest, GateBench
from plumbline.gate.setup import Session
from plumbline.host import machine
from plumbline.host.machine import Cpus, Machine
from plumbline.launch import hosts
from plumbline.launch.neighbour import neighbour
from plumbline.records.launch import Launch


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
    bench.rounds = partial(_pair, bench, places, here)
    return bench


def _pair(
    bench: GateBench, places: Sequence[tuple[Distance, str]], here: Machine, contest: Contest, first: int,
    order: int,
) -> dict[int, Launch]:  # fmt: skip
    """Both launches of a pair, by the number of the variant: that of the baseline is alone."""
    (distance, kind), launches = places[contest.position], dict[int, Launch]()
    for place, side in enumerate((first, 1 - first)):
        which = 2 * contest.position + side
        bench.jobs[which].part = hosts.Part(distance.victim, frozenset(distance.neighbour))
        start = partial(bench.launch, which, len(contest.launches), order + place)
        with hosts.turn() as remarks, contextlib.ExitStack() as stack:
            idle = stack.enter_context(neighbour(kind, here, distance.neighbour, bench.folder)) if side else []
            (launch,) = duet.bound([(start, distance.victim)])
        launch.remarks += remarks
        for cause in idle:
            duet.disturb(launch, cause)
        duet.prove(launch, distance.victim, None)
        launches[which] = launch
    return launches
