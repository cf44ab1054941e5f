"""A live gate from its session to its verdicts, here or in a job: measuring, progress, records."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plumbline.base import units
from plumbline.base.units import counted
from plumbline.gate import live
from plumbline.gate.live import GateBench
from plumbline.gate.progress import Progress, verdicts
from plumbline.gate.setup import GATE, Session
from plumbline.judge import decide, from_records
from plumbline.measure import driver
from plumbline.measure.session import Say
from plumbline.records import notes, store
from plumbline.records.launch import Launch
from plumbline.records.model import Record, Side
from plumbline.statistics.paired import PairedRule

#: the largest number of commands that compare profiles that is shown
MOST = 5
SIDES: tuple[Side, Side] = ("baseline", "candidate")
#: makes the bench of a session; tests give another one
MakeBench = Callable[[Session, Path], GateBench]


@dataclass(frozen=True)
class GateOutcome:
    """The verdicts by ``rule``, ``facts`` of the gate as (name, text), and both records of what ``failed``.

    ``faulty`` are the sides that have a launch which is not valid. ``open`` are the series without a verdict that more
    pairs could decide.
    """

    rule: PairedRule
    verdicts: list[decide.Verdict]
    facts: list[tuple[str, str]]
    failed: list[tuple[Record, Record]] = field(default_factory=list)
    faulty: tuple[Side, ...] = ()
    open: frozenset[str] = frozenset()


def resume(
    folder: Path, stop: live.Stop, say: Say, make: MakeBench | None = None, command: str | None = None
) -> GateOutcome:
    """Continue the gate of ``folder``; raises :class:`PlumbError` if anything around it changed.

    ``command`` continues it after an interruption; None: ``plumb gate``.
    """
    folder = folder.resolve()
    with GATE.locked(folder):
        command = command or f"plumb gate --resume {shlex.quote(str(folder))}"
        return _measure(GATE.load(folder), folder, stop, say, make, command)


def _measure(
    begun: Session, folder: Path, stop: live.Stop, say: Say, make: MakeBench | None, command: str
) -> GateOutcome:
    bench = (make or live.DriverBench)(begun, folder)
    total = sum(len(couple[0].figures) for couple in begun.couples)
    contests = []
    for position in range(len(begun.couples)):
        kept = live.kept_records(folder, position)
        couple = bench.records(position, kept)
        for record, side in zip(couple, SIDES, strict=True):
            record.state, record.side = "running", side
        contests.append(live.Contest(position, couple, total, begun.terms.rule, begun.terms.by_itself))
    file = store.session_file(begun.site, begun.name)
    records = [record for contest in contests for record in contest.records]
    live.refuse_loss(file, records)
    before = sum(len(contest.launches) for contest in contests)
    say(
        f"gate {begun.name}: {begun.candidate} against {begun.baseline}, "
        f"{counted(len(contests), 'variant')}, {counted(total, 'figure')}, "
        f"seed {begun.terms.seed}{f', {before} pairs so far' if before else ''}\nfolder {folder}"
    )
    progress = Progress(contests, stop)
    last = time.monotonic()

    def after_pair(contest: live.Contest, figures: list[live.FigureState], done: int, repeated: bool) -> None:
        nonlocal last
        took, last = time.monotonic() - last, time.monotonic()
        say(progress.line(contest, figures, done, repeated, took))
        if warning := progress.warning():
            say(warning)
        progress.show()

    why: str | None = "interrupted"
    try:
        with driver.recording(file, records, empty=False):
            why = live.measure(contests, bench, folder, begun.terms.seed, after_pair, stop)
            every = ((contest, figure) for contest in contests for figure in contest.figure_states())
            undecided = {
                f"{contest.records[1].variant.name}: {figure.subject}"
                for contest, figure in every
                if not figure.decided
            }
    finally:
        if why:
            say(f"{why}: {command} goes on")
    return _judged(begun, contests, undecided, file, say)


def _judged(begun: Session, contests: list[live.Contest], undecided: set[str], file: Path, say: Say) -> GateOutcome:
    owned = [
        (contest, item)
        for contest in contests
        for item in from_records.pairs_of(contest.records[0], contest.records[1], by_itself=begun.terms.by_itself)
    ]
    decided = decide.decide([item for _, item in owned], begun.terms.rule)
    judged = list(zip((contest for contest, _ in owned), decided, strict=True))
    explain = _explaining([contest for contest, item in judged if item.state == "FAIL"])
    repeat = shlex.join([*begun.terms.command, "--seed", str(begun.terms.seed)]) if begun.terms.command else None
    say("\n" + verdicts(contests, judged))
    remarks = [*begun.notes, *_started_again(contests), *notes.before(begun.site, store.now())]
    for note in remarks:
        say(note)
    commands = [*([("repeat", repeat)] if repeat else []), *(("explain", command) for command in explain)]
    say("\n".join([f"records: {file}", *(f"{name + ':':<8} {command}" for name, command in commands)]))
    facts = [
        ("baseline", begun.baseline),
        ("candidate", begun.candidate),
        ("site", begun.site),
        *_measured([launch for contest in contests for record in contest.records for launch in record.launches]),
        ("session", begun.name),
        ("seed", str(begun.terms.seed)),
        ("records", str(file)),
        *commands,
        *(("note", note) for note in remarks),
    ]
    failed = {contest.position: contest for contest, item in judged if item.state == "FAIL"}.values()
    faulty = [side for place, side in enumerate(SIDES) if any(contest.records[place].reasons for contest in contests)]
    both = [(contest.records[0], contest.records[1]) for contest in failed]
    left = {item.subject for item in decided if item.state in ("INCONCLUSIVE", "INVALID")} & undecided
    return GateOutcome(begun.terms.rule, decided, facts, both, tuple(faulty), frozenset(left))


def _explaining(failed: Sequence[live.Contest]) -> list[str]:
    """The commands that compare profiles of both sides, for the first :data:`MOST` of ``failed`` that call MPI."""
    commands = {
        contest.position: shlex.join(["plumb", "profile", "--compare", *(record.id for record in contest.records)])
        for contest in failed
        if all(any(seen.mpi for launch in record.launches for seen in launch.ranks) for record in contest.records)
    }
    return list(commands.values())[:MOST]


def _measured(launches: Sequence[Launch]) -> list[tuple[str, str]]:
    """When the launches of a gate began, and how many of them were disturbed."""
    if not launches:
        return []
    first, last = (units.second(end(launch.start for launch in launches)) for end in (min, max))
    disturbed = sum(launch.disturbed for launch in launches)
    return [("measured", f"{first} to {last}"), ("launches", f"{len(launches)}, {disturbed} of them disturbed")]


def _started_again(contests: list[live.Contest]) -> list[str]:
    """How many launches needed a second start, and the first reason."""
    launches = [launch for contest in contests for record in contest.records for launch in record.launches]
    errors = [launch.start_errors[0] for launch in launches if launch.start_errors]
    return [f"{counted(len(errors), 'launch')} started again, the first because: {errors[0]}"] if errors else []
