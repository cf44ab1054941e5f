"""A live gate from its two sides to its verdicts: variants, rules, measuring, records."""

from __future__ import annotations

import contextlib
import secrets
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from plumbline import jobs, paths, site
from plumbline.errors import PlumbError
from plumbline.gate import judge, live, records_source, rules, session, sides, variants
from plumbline.gate.progress import Progress, verdicts
from plumbline.gate.sequential import Rule
from plumbline.gate.session import Session
from plumbline.gate.validity import Series
from plumbline.launch import driver
from plumbline.launch.process import Interrupted
from plumbline.records import store
from plumbline.units import counted

Say = Callable[[str], None]
#: makes the bench of a session; tests give another one
MakeBench = Callable[[Session, Path], live.Bench]


@dataclass(frozen=True)
class Wanted:
    """What was asked for; ``repeat`` is the command without seed and folder."""

    baseline: str
    candidate: str
    stack: str | None = None
    tests: str | None = None
    site: str | None = None
    rules: Path | None = None
    default: Rule = field(default_factory=Rule)
    common: bool = False
    seed: int | None = None
    folder: Path | None = None
    repeat: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """Verdicts and what they are of, and what is told beside them as (name, text)."""

    series: list[Series]
    verdicts: list[judge.Verdict]
    facts: list[tuple[str, str]]


def prepare(wanted: Wanted, say: Say, build: sides.Build | None = None) -> Path:
    """Begin a gate and measure nothing; returns its folder, for :func:`resume` or :func:`in_job`.

    Raises :class:`PlumbError` when a side cannot be measured here.
    """
    both = (
        sides.resolve("baseline", wanted.baseline, wanted.stack),
        sides.resolve("candidate", wanted.candidate, wanted.stack),
    )
    name = driver.new_session()
    folder = (wanted.folder or paths.build() / "gate" / name).resolve()
    with session.locked(folder), live.interruptible():
        session.refuse_used(folder)
        manifests = [sides.make(side, build) for side in both]
        say("variants: a dry run of ReFrame")
        listing = variants.list_variants(
            list(dict.fromkeys(side.stack for side in both)), wanted.tests, wanted.site, folder
        )
        couples, notes = pair_up(listing, both, manifests, wanted.common)
        entries, where = rules.load(wanted.rules, couples[0][0]["site"])
        couples = [[rules.settle(variant, entries, where, wanted.default) for variant in couple] for couple in couples]
        begun = compose(name, both, couples, notes, wanted)
        if jobs.needed(_partition(begun)):
            begun = replace(begun, circumstances=session.before_a_job(begun.circumstances))
        session.save(folder, begun)
    return folder


def partition(folder: Path) -> dict[str, Any]:
    """The partition of ``site.yaml`` that the gate of ``folder`` is measured on."""
    return _partition(session.peek(folder))


def _partition(begun: Session) -> dict[str, Any]:
    first = begun.couples[0][0]
    return site.partition(site.load(first["site"]), first["partition"])


def in_job(folder: Path, options: list[str], say: Say) -> int:
    """Measure the gate of ``folder`` in a job of its partition, which goes on with it; returns the gate's exit status.

    ``options`` are those of ``plumb gate --resume``. A gate that has pairs gets the nodes that they were measured on.
    """
    begun = session.peek(folder)
    nodes = max(couple[0]["nodes"] for couple in begun.couples)
    program = str(Path(sys.executable).parent / "plumb")
    command = [program, "gate", "--resume", str(folder), *options]
    part = _partition(begun)
    nodelist = begun.circumstances["nodes"] if part["scheduler"] in ("slurm", "squeue") else None
    job = jobs.Job(part, command, nodes, folder.resolve(), nodelist or "")
    with live.interruptible():
        return jobs.run(job, say)


def compose(
    name: str,
    both: tuple[sides.Side, sides.Side],
    couples: list[list[dict[str, Any]]],
    notes: list[str],
    wanted: Wanted,
) -> Session:
    """A new gate of ``couples`` (baseline's and candidate's variant, with margins), under the circumstances of now."""
    measured = [side.measured for side in both]
    return Session(
        name=name,
        site=couples[0][0]["site"],
        seed=secrets.randbits(32) if wanted.seed is None else wanted.seed,
        baseline=measured[0],
        candidate=measured[1],
        couples=couples,
        notes=notes,
        command=list(wanted.repeat),
        circumstances=session.circumstances(sorted(set(measured))),
    )


def begin(begun: Session, folder: Path, stop: live.Stop, say: Say, make: MakeBench | None = None) -> Outcome:
    """Write the state of a new gate and measure it."""
    session.save(folder, begun)
    return _measure(begun, folder, stop, say, make)


def resume(folder: Path, stop: live.Stop, say: Say, make: MakeBench | None = None) -> Outcome:
    """Go on with the gate of ``folder``; raises :class:`PlumbError` if anything around it changed."""
    folder = folder.resolve()
    with session.locked(folder), live.interruptible():
        return _measure(session.load(folder), folder, stop, say, make)


def pair_up(
    listing: variants.Listing,
    both: tuple[sides.Side, sides.Side],
    manifests: list[dict[str, Any]],
    common: bool,
) -> tuple[list[list[dict[str, Any]]], list[str]]:
    """The variants of both sides, and what is not compared. What only the candidate cannot run is an error.

    ``common`` says that losing a benchmark is known and no fault.
    """
    offered = [
        {
            name: {**variant, "stack": side.measured}
            for name, variant in listing.of(side.stack).items()
            if variant["benchmark"] in manifest["benchmarks"]
        }
        for side, manifest in zip(both, manifests, strict=True)
    ]
    lost = sorted(offered[0].keys() - offered[1].keys())
    if lost and not common:
        skipped = listing.skips.get(both[1].stack, {})
        why = skipped.get(lost[0], f"stack {both[1].measured} has no {offered[0][lost[0]]['benchmark']}")
        what = f"{both[1].measured} cannot run {len(lost)} of the {len(offered[0])} variants of {both[0].measured}"
        cure = "select others with --tests, or add --common to compare what both can run"
        raise PlumbError(f"{what}, such as {lost[0]}", why, cure)
    names = [name for name in offered[0] if name in offered[1]]
    notes = [f"not compared: {name} (only {both[0].measured} can run it)" for name in lost]
    if both[0].stack == both[1].stack and (both[0].commit or both[1].commit):
        same = [name for name in names if _suite(manifests[0], offered[0][name]) != sides.KERNELS]
        names = [name for name in names if name not in same]
        if same:
            notes.append(f"not compared: {len(same)} variants whose program is the stack's on both sides")
    if not names:
        raise PlumbError("0 variants that both sides can run", "plumb gate", "nothing measured is not a PASS")
    parts = sorted({offered[0][name]["partition"] for name in names})
    if len(parts) > 1:
        raise PlumbError(f"variants of partitions {', '.join(parts)}", "plumb gate", "choose: --site SITE:PARTITION")
    new = sorted(offered[1].keys() - offered[0].keys())
    notes += [f"not compared: {name} (only {both[1].measured} can run it)" for name in new]
    neither = {
        name: why
        for name, why in listing.skips.get(both[0].stack, {}).items()
        if name in listing.skips.get(both[1].stack, {})
    }
    notes += [f"skipped {count:>3} x {why}" for why, count in Counter(neither.values()).most_common()]
    return [[offered[0][name], offered[1][name]] for name in names], notes


def _suite(manifest: dict[str, Any], variant: dict[str, Any]) -> str:
    return str(manifest["benchmarks"][variant["benchmark"]]["suite"])


def _measure(begun: Session, folder: Path, stop: live.Stop, say: Say, make: MakeBench | None) -> Outcome:
    bench = (make or _driver_bench)(begun, folder)
    total = sum(len(couple[0]["figures"]) for couple in begun.couples)
    contests = []
    for position in range(len(begun.couples)):
        found = session.read_pairs(folder, position)
        for record in found or []:
            record["state"] = "running"
        contests.append(live.Contest(position, bench.records(position, found), total))
    before = sum(len(contest.launches) for contest in contests)
    say(
        f"gate {begun.name}: {begun.candidate} against {begun.baseline}, "
        f"{counted(len(contests), 'variant')}, {counted(total, 'figure')}, "
        f"seed {begun.seed}{f', {before} pairs so far' if before else ''}\nfolder {folder}"
    )
    progress = Progress(contests)
    last = time.monotonic()

    def told(contest: live.Contest, metrics: list[live.Metric], done: int, repeated: bool) -> None:
        nonlocal last
        took, last = time.monotonic() - last, time.monotonic()
        say(progress.line(contest, metrics, done, repeated, took))

    file = store.session_file(begun.site, begun.name)
    try:
        why = live.measure(contests, bench, folder, begun.seed, told, stop)
    except (Interrupted, PlumbError):
        if any(contest.launches for contest in contests):
            live.finish(contests, file, "interrupted")
        say(f"interrupted: plumb gate --resume {shlex.quote(str(folder))} goes on")
        raise
    live.finish(contests, file, "complete")
    with contextlib.suppress(OSError):
        (folder / "launches").rmdir()  # unless a launch failed: its output is there
    if why:
        say(f"{why}: plumb gate --resume {shlex.quote(str(folder))} goes on")
    return _judged(begun, contests, file, say)


def _driver_bench(begun: Session, folder: Path) -> live.Bench:
    return live.DriverBench(begun.couples, begun.name, begun.seed, begun.site, folder)


def _judged(begun: Session, contests: list[live.Contest], file: Path, say: Say) -> Outcome:
    series = [item for contest in contests for item in records_source.pair(contest.records[0], contest.records[1])]
    found = judge.judge(series, Rule())
    repeat = shlex.join([*begun.command, "--seed", str(begun.seed)])
    say("\n" + verdicts(contests, found))
    for note in begun.notes:
        say(note)
    say(f"records: {file}\nrepeat:  {repeat}")
    facts = [
        ("baseline", begun.baseline),
        ("candidate", begun.candidate),
        ("session", begun.name),
        ("seed", str(begun.seed)),
        ("records", str(file)),
        ("repeat", repeat),
        *(("note", note) for note in begun.notes),
    ]
    return Outcome(series, found, facts)
