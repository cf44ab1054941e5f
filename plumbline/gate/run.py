"""A live gate from its session to its verdicts, here or in a job: measuring, progress, records."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from plumbline.base import units
from plumbline.base.units import counted
from plumbline.gate import duet, live
from plumbline.gate.commands import CommandBench
from plumbline.gate.live import GateBench
from plumbline.gate.progress import Progress, verdicts
from plumbline.gate.setup import GATE, Session
from plumbline.judge import decide
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
    folder: Path,
    stop: live.Stop,
    say: Say,
    make: MakeBench | None = None,
    command: str | None = None,
    pair: Callable[[str, str], None] = lambda start, line: None,
) -> GateOutcome:
    """Continue the gate of ``folder``; raises :class:`PlumbError` if anything around it changed.

    ``command`` continues it after an interruption; None: ``plumb gate``. ``pair`` gets the start of each pair's line
    and the whole line, and so the warning that the time is too short.
    """
    folder = folder.resolve()
    with GATE.locked(folder):
        command = command or f"plumb gate --resume {shlex.quote(str(folder))}"
        return _measure(GATE.load(folder), folder, stop, say, make, command, pair)


def _measure(
    begun: Session,
    folder: Path,
    stop: live.Stop,
    say: Say,
    make: MakeBench | None,
    command: str,
    pair: Callable[[str, str], None],
) -> GateOutcome:
    begun, bench = duet.bench_of(begun, folder, make or (live.GateBench if begun.site else CommandBench), say)
    in_turn = begun.terms.order == "turns"  # else they are no figures of a machine
    grown = begun.terms.grown
    total = sum(len(couple[0].figures) for couple in begun.couples) + len(grown[1:])
    contests = []
    for position in range(len(begun.couples)):
        couple = bench.couple(position)
        for record, side in zip(couple, SIDES, strict=True):
            record.state, record.side, record.experiment = "running", side, begun.terms.purpose
        contests.append(live.Contest(position, couple, total, begun.terms.rule, begun.terms.by_itself))
    for contest, times in zip(contests[1:], grown[1:], strict=False):
        contest.base, contest.grown = contests[0], times
        contests[0].followers.append(contest)
    file = store.session_file(begun.site, begun.name) if begun.site and in_turn else folder / "records.jsonl"
    records = [record for contest in contests for record in contest.records]
    live.refuse_loss(file, records)
    before = sum(len(contest.launches) for contest in contests)
    say(
        f"gate {begun.name}: {begun.candidate} against {begun.baseline}, "
        f"{counted(len(contests), 'variant')}, {counted(total, 'figure')}, "
        f"seed {begun.terms.seed}{f', {before} pairs so far' if before else ''}\nfolder {folder}"
    )
    remarks = []
    for contest in contests:
        if not (begun.terms.measure_equal or contest.launches):
            contest.same, more = bench.same(contest.position)
            remarks += more
    begun = replace(begun, notes=[*begun.notes, *dict.fromkeys(remarks)])
    progress = Progress(contests, stop)
    last = time.monotonic()

    def after_pair(contest: live.Contest, figures: list[live.FigureState], done: int, repeated: bool) -> None:
        nonlocal last
        took, last = time.monotonic() - last, time.monotonic()
        start, line = progress.line(contest, figures, done, repeated, took)
        warning = progress.warning()
        warnings = [
            *([warning] if warning else []),
            *(decide.too_coarse(contest.pairs("running"), contest.rule) if len(contest.launches) == 1 else []),
        ]
        for brief, whole in ((start, line), *zip(warnings, warnings, strict=True)):
            say(whole)
            pair(brief, whole)
        progress.show()

    why: str | None = "interrupted"
    try:
        with driver.recording(file, records, empty=False):
            why = live.measure(contests, bench, begun.terms.seed, after_pair, stop)
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
    owned = [(contest, item) for contest in contests for item in contest.pairs()]
    decided = decide.decide([item for _, item in owned], begun.terms.rule)
    judged = list(zip((contest for contest, _ in owned), decided, strict=True))
    launches = [launch for contest in contests for record in contest.records for launch in record.launches]
    # of two commands, or a duet, nothing else finds the records
    in_results = begun.site and begun.terms.order == "turns"
    failures = (contest for contest, item in judged if item.state == "FAIL" and in_results)
    failed = list({contest.position: contest for contest in failures}.values())
    errors = [launch.start_errors[0] for launch in launches if launch.start_errors]
    again = [f"{counted(len(errors), 'launch')} started again, the first because: {errors[0]}"] if errors else []
    remarks = [*begun.notes, *again, *notes.before(begun.site, store.now())]
    commands = _commands(begun, failed)
    say("\n" + verdicts(contests, judged))
    for note in remarks:
        say(note)
    say(
        "\n".join(
            [*([f"records: {file}"] if launches else []), *(f"{name + ':':<8} {command}" for name, command in commands)]
        )
    )
    facts = [
        ("baseline", begun.baseline),
        ("candidate", begun.candidate),
        ("site", begun.site) if begun.site else ("host", owned[0][0].records[0].nodes[0]),
        *_measured_when(launches),
        ("session", begun.name),
        ("seed", str(begun.terms.seed)),
        *([("records", str(file))] if launches else []),
        *commands,
        *(("note", note) for note in remarks),
    ]
    return GateOutcome(
        begun.terms.rule,
        decided,
        facts,
        failed=[(contest.records[0], contest.records[1]) for contest in failed],
        faulty=tuple(
            side
            for place, side in enumerate(SIDES)
            if any(contest.records[place].reasons for contest in contests if not contest.same)
        ),
        open=frozenset({item.subject for item in decided if item.state in ("INCONCLUSIVE", "INVALID")} & undecided),
    )


def _commands(begun: Session, failed: Sequence[live.Contest]) -> list[tuple[str, str]]:
    """The command that repeats the gate, and those that compare profiles of both sides of :data:`MOST` that use MPI."""
    repeat = [*begun.terms.command, "--seed", str(begun.terms.seed)] if begun.terms.command else []
    explain = [
        ["plumb", "profile", "--compare", *(record.id for record in contest.records)]
        for contest in failed
        if all(any(seen.mpi for launch in record.launches for seen in launch.ranks) for record in contest.records)
    ]
    named = [*([("repeat", repeat)] if repeat else []), *(("explain", words) for words in explain[:MOST])]
    return [(name, shlex.join(words)) for name, words in named]


def _measured_when(launches: Sequence[Launch]) -> list[tuple[str, str]]:
    """When the launches of a gate began, and how many of them were disturbed."""
    if not launches:
        return []
    first, last = (units.second(end(launch.start for launch in launches)) for end in (min, max))
    disturbed = sum(launch.disturbed for launch in launches)
    return [("measured", f"{first} to {last}"), ("launches", f"{len(launches)}, {disturbed} of them disturbed")]
