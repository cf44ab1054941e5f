"""Both sides of a gate at the same time, each on half of the node's cores (``--order duet``).

A round takes the place of a pair: both sides run side by side, then with the halves swapped, and, until it is known how
much they slow one another (:mod:`plumbline.judge.slowing`), each alone. What disturbs the host at that time meets both
sides, and divides out of their ratio. Each side is launched by a child of this process that is bound to its half, so
that launcher, binder and program get no other CPUs.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO

import msgspec
import numpy as np
from msgspec import structs

from plumbline.base import programs
from plumbline.base.errors import PlumbError
from plumbline.base.units import cpu_list, percent
from plumbline.gate import live
from plumbline.gate.live import Contest, GateBench
from plumbline.gate.setup import GATE, Order, Session
from plumbline.host import machine
from plumbline.host.machine import Cpus
from plumbline.judge import slowing
from plumbline.judge.slowing import IN_TURN
from plumbline.launch import hosts
from plumbline.measure.session import Say
from plumbline.parsers.measurement import Measurement, step_of
from plumbline.records.launch import Disturbance, Launch
from plumbline.records.variant import WantedFigure
from plumbline.statistics.paired import CAP, LOOKS, SCALE, PairedRule

#: the least part of the shorter window in which both sides must have run
OVERLAP = 0.9
#: rounds by which an order is chosen; of pairs with a noise (standard deviation of the log ratio) of n times the log of
#: must-detect, a verdict needs (PAIRS n)² (tests/rates/simulate.py)
TRIAL, PAIRS = 3, 4.5
#: seconds that a side waits for the start of the other one
PATIENCE_S = 60.0
#: what a child sends that was ended
NOTHING = msgspec.msgpack.encode({})


class _Outcome(msgspec.Struct):
    """The launch of a child, or message, place and cure of its error."""

    launch: Launch | None = None
    error: tuple[str, str | None, str | None] = ("a launch was interrupted", None, None)


@dataclass(frozen=True)
class Duet:
    """The rounds of a gate in ``folder``; the jobs of each of ``benches`` were planned on its half."""

    folder: Path
    halves: tuple[Cpus, Cpus]
    benches: tuple[GateBench, GateBench]

    def round(self, contest: Contest, first: int, order: int) -> dict[int, Launch]:
        """Both launches of a round, by the number of the variant; ``first`` is the side that begins on the first half.

        The launches ``order`` and ``order`` + 1 of the session. A round ends with the first part that is not verified.
        """
        parts: tuple[list[Launch], list[Launch]] = ([], [])
        sides, index = (first, 1 - first), len(contest.launches)
        starts = [dict(zip(each, (0, 1), strict=True)) for each in (sides, sides[::-1])]
        if needs_alone(contest):
            starts += [{side: index % 2} for side in sides]
        for places in starts:
            for side, launch in zip(places, self._together(contest, places, index, order), strict=True):
                parts[side].append(launch)
            if not all(launch.verified for launches in parts for launch in launches):
                break
        return {2 * contest.position + side: folded(parts[side]) for side in (0, 1)}

    def _together(self, contest: Contest, places: Mapping[int, int], index: int, order: int) -> list[Launch]:
        """One launch of each side of ``places``, on the half that it names; of a single one alone."""
        jobs = [self.benches[half].jobs[2 * contest.position + side] for side, half in places.items()]
        ends, starts, is_duet = socket.socketpair(), list[tuple[Callable[[], Launch], Cpus]](), len(jobs) > 1
        if barrier := self.folder / "barrier" if is_duet else None:
            barrier.write_bytes(struct.pack("=II", sum(len(job.record.plan.ranks) for job in jobs), 0))
        for (side, half), job, end in zip(places.items(), jobs, ends, strict=False):
            others = frozenset(self.halves[1 - half] if is_duet else ())
            job.part = hosts.Part(self.halves[half], others, partial(_meet, end) if is_duet else None, barrier)
            start = partial(self.benches[half].launch, 2 * contest.position + side, index, order + side)
            starts.append((start, self.halves[half]))
        with hosts.turn() if is_duet else contextlib.nullcontext(list[str]()) as remarks:
            launches = bound(starts, ends)
        for launch, half in zip(launches, places.values(), strict=True):
            launch.remarks += remarks
            prove(launch, self.halves[half], next((each for each in launches if each is not launch), None))
        return launches


def bound(starts: Sequence[tuple[Callable[[], Launch], Cpus]], ends: Sequence[socket.socket] = ()) -> list[Launch]:
    """The launches that each of ``starts`` makes at the same time, in a child that is bound to its CPUs.

    Each child has one of ``ends``. Raises the :class:`PlumbError` of a child.
    """
    running = list[tuple[int, IO[bytes]]]()
    try:
        for place, (start, cpus) in enumerate(starts):
            running.append(_child(start, cpus, [*ends[:place], *ends[place + 1 :]]))
        for end in ends:
            end.close()
        every = [msgspec.msgpack.decode(stream.read() or NOTHING, type=_Outcome) for _, stream in running]
    finally:
        for pid, stream in running:
            stream.close()
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
    if error := next((outcome.error for outcome in every if not outcome.launch), None):
        raise PlumbError(*error)
    return [outcome.launch for outcome in every if outcome.launch]


def _meet(end: socket.socket) -> None:
    """Wait until the other side is here too; where it never comes, the overlap of the windows shows it."""
    with contextlib.suppress(OSError):
        end.settimeout(PATIENCE_S)
        end.send(b"x", socket.MSG_NOSIGNAL)
        end.recv(1)


def _child(start: Callable[[], Launch], cpus: Cpus, foreign: Sequence[socket.socket]) -> tuple[int, IO[bytes]]:
    """A child, bound to ``cpus``, that makes a launch; returns its number and the file to read its outcome from."""
    reader, writer = os.pipe()
    if pid := os.fork():
        os.close(writer)
        return pid, os.fdopen(reader, "rb")
    try:
        programs.die_with_parent()
        for end in foreign:
            end.close()
        os.sched_setaffinity(0, cpus)
        with os.fdopen(writer, "wb") as out:
            out.write(msgspec.msgpack.encode(_outcome(start)))
    finally:
        os._exit(0)


def _outcome(start: Callable[[], Launch]) -> _Outcome:
    try:
        return _Outcome(start())
    except PlumbError as error:
        return _Outcome(error=(error.message, error.where, error.cure))
    except Exception as error:
        return _Outcome(error=(f"a launch ended without a result: {error!r}", None, None))


def prove(launch: Launch, cpus: Cpus, partner: Launch | None) -> None:
    """Take its verification from a launch that was not seen on ``cpus``; at another time, it was disturbed."""
    if launch.unproven or not launch.ranks:
        launch.reasons.append(f"no witness shows when and where it ran: {IN_TURN}")
    for rank in launch.ranks:
        if outside := {cpu for thread in rank.threads for cpu in thread.affinity} - set(cpus):
            launch.reasons.append(f"a thread could run on CPUs {cpu_list(outside)}, its part is {cpu_list(cpus)}")
    launch.verified = not launch.reasons
    if partner:  # the node's counters do not tell the sides apart
        launch.energy_j = launch.gpu_energy_j = None
    if partner and launch.half and partner.half:
        (begin, end), (start, last) = launch.half.window, partner.half.window
        shorter = max(min(end - begin, last - start), 1e-9)
        launch.half.overlap = round(max(0.0, min(end, last) - max(begin, start)) / shorter, 4)
        if launch.half.overlap < OVERLAP:
            disturb(
                launch, f"both sides ran at the same time for {100 * launch.half.overlap:.0f} % of the shorter window"
            )


def disturb(launch: Launch, cause: str) -> None:
    """Add a cause to what disturbed ``launch``."""
    causes = [*launch.disturbance.causes, cause]
    launch.disturbance = structs.replace(launch.disturbance, disturbed=True, causes=causes)
    launch.disturbed = True


def folded(parts: Sequence[Launch]) -> Launch:
    """The launch that stands for the ``parts`` of a round: geometric means of both orders, by halves.

    It is disturbed only by what does not divide out.
    """
    causes = [cause for part in parts[:2] if not slowing.divides_out(part) for cause in part.disturbance.causes]
    return structs.replace(
        next((part for part in parts if part.status != "ok"), parts[0]),
        wall_s=sum(part.wall_s for part in parts),
        verified=all(part.verified for part in parts),
        reasons=list(dict.fromkeys(reason for part in parts for reason in part.reasons)),
        disturbed=bool(causes),
        disturbance=Disturbance(disturbed=bool(causes), causes=list(dict.fromkeys(causes))),
        measurements=_means(*(part.measurements for part in parts[:2])) if len(parts) > 1 else parts[0].measurements,
        half=None,
        parts=list(parts),
    )


def _means(first: Sequence[Measurement], second: Sequence[Measurement]) -> list[Measurement]:
    known = {(item.metric, repr(item.params)): item for item in second}
    both = [(item, known[key]) for item in first if (key := (item.metric, repr(item.params))) in known]
    return [
        structs.replace(item, value=_mean(item.value, twin.value), step=step_of([item, twin])) for item, twin in both
    ]


def _mean(first: float, second: float) -> float:
    """The geometric mean; the smaller one if that is no positive number, which is a fault of the series."""
    least = min(first, second)
    return math.sqrt(first) * math.sqrt(second) if least > 0 else least


def needs_alone(contest: Contest) -> bool:
    """Whether it is not known yet how much the sides slow one another, as far as the verdict needs it."""
    if contest.kept < slowing.FEWEST:
        return True
    limits = ((item.slowing.high, item.judged_by(contest.rule)) for item in contest.pairs("running"))
    return any(slowing.ENOUGH * high > rule.detected for high, rule in limits)


def choice(launches: Sequence[tuple[Launch, Launch]], figure: WantedFigure, rule: PairedRule) -> tuple[Order, str]:
    """The order that decides a ``figure`` in less time, by these rounds of both sides, and why.

    Launches of a round that were on the same half, at different times, are pairs in turn.
    """

    def logs(parts: Sequence[Launch]) -> list[float]:
        return [math.log(part.measurement(figure).value) for part in parts]

    every = [side for pair in launches for side in pair]
    if bad := next((reason for side in every for reason in side.reasons), ""):
        return "turns", bad
    if min(getattr(part.find(figure), "value", 0.0) for side in every for part in side.parts) <= 0:
        return "turns", f"{figure.name} is not always a positive number"
    baseline, candidate = np.array([[logs(slowing.by_half(side)) for side in pair] for pair in launches]).swapaxes(0, 1)
    in_turn, on_halves = candidate - baseline, (candidate + baseline) / 2
    rounds = np.stack([in_turn.mean(axis=1), np.diff(on_halves)[:, 0]], axis=1)
    noises = [float(np.sqrt(part.var(axis=0, ddof=1).mean())) for part in (in_turn, rounds)]
    slowed = [slowing.slowed(side, partial(slowing.own_time, wanted=figure)) for side in every]
    beside = max(0.0, float(np.median(slowed)))
    turns, duets = (min(max(LOOKS[0], (PAIRS * noise * SCALE / rule.detected) ** 2), 2 * CAP) for noise in noises)
    is_free = beside * SCALE < rule.detected or min(slowed) < 0  # three rounds tell it roughly
    is_duet = is_free and slowing.FEWEST + duets < turns  # the first rounds take twice as long
    words = f"{figure.name} varies by {percent(noises[0])} in turn, by {percent(noises[1])} side by side"
    return "duet" if is_duet else "turns", f"{words}, where both slow one another by {percent(beside)}"


def bench_of(
    begun: Session, folder: Path, make: Callable[[Session, Path], GateBench], say: Say
) -> tuple[Session, GateBench]:
    """The gate in ``folder`` with its order, which ``auto`` leaves to the first rounds, and the bench for it.

    They are of the first variant whose programs differ. A duet goes on from them; for pairs in turn they are kept as
    ``trial.jsonl``.
    """
    terms, order, place = begun.terms, begun.terms.order, 0
    if order == "turns":
        return begun, make(begun, folder)
    try:
        bench = duet(partial(make, begun, folder), folder)
        if order == "auto" and not terms.measure_equal:
            while place < len(begun.couples) - 1 and bench.same(place)[0]:
                place += 1
        contest = Contest(place, bench.couple(place), 1, terms.rule)
    except PlumbError as error:
        if order == "duet":
            raise
        order, why = "turns", str(error)
    if order == "auto" and (terms.measure_equal or contest.launches or not bench.same(place)[0]):
        while len(contest.launches) < TRIAL and all(side.verified for both in contest.launches for side in both):
            live.pair(contest, bench, terms.seed, len(contest.launches))
        figure = next(item for item in contest.records[0].variant.figures if not item.optional)
        order, why = choice(contest.launches, figure, terms.rule)
    if order == terms.order:
        return begun, bench
    say(f"order: {order}: {why}")
    begun = replace(begun, terms=replace(terms, order=order), notes=[*begun.notes, f"order {order}: {why}"])
    if order == "turns":
        if (rounds := live.pairs_file(folder, place)).exists():
            rounds.replace(folder / "trial.jsonl")
        bench = make(begun, folder)
    GATE.save(folder, begun)
    return begun, bench


def duet(make: Callable[[], GateBench], folder: Path) -> GateBench:
    """The bench that ``make`` makes, for rounds; raises :class:`PlumbError` where launch or machine have no halves."""
    usable = os.sched_getaffinity(0)
    halves = machine.halves(machine.load(), usable)
    benches = []
    try:
        for half in halves:
            os.sched_setaffinity(0, half)
            benches.append(make())
    finally:
        os.sched_setaffinity(0, usable)
    for variant in (job.record.variant for job in benches[0].jobs if job.record.variant.nodes > 1):
        raise PlumbError(f"a launch on {variant.nodes} nodes has no half of one", variant.name, IN_TURN)
    benches[0].rounds = Duet(folder, halves, (benches[0], benches[1])).round
    return benches[0]
