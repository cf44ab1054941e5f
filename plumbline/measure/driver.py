"""The launches of one session: one at a time, or every launch of one variant, or of several in turn.

Nothing measured depends on who called: the record is on disk after every launch.
"""

from __future__ import annotations

import contextlib
import random
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from plumbline.base import files, terminal
from plumbline.base.errors import PlumbError
from plumbline.base.programs import held_back, interruptible
from plumbline.base.units import human_seconds, time_left
from plumbline.judge.references import References
from plumbline.launch import figures, pipeline
from plumbline.launch.prepare import prepare
from plumbline.records import store
from plumbline.records.launch import Launch
from plumbline.records.model import Record, State
from plumbline.records.variant import Variant

#: the lock file in the work folder, held while launches run there
LOCK = ".plumbline.lock"


class Launches:
    """The launches of some variants, one at a time, in folders below ``folder``; each variant has its record.

    ``session`` and ``seed`` are in the records. ``kept`` says what became of earlier launches, where one cannot be
    started. Raises :class:`PlumbError` for a variant that cannot be run here.
    """

    def __init__(self, variants: Sequence[Variant], session: str, folder: Path, seed: int, kept: str) -> None:
        self.folder, self.kept = folder, kept
        self.jobs = [prepare(variant, session) for variant in variants]
        self.expected = References.load(self.jobs[0].record.site)
        for job in self.jobs:
            job.record.seed = seed

    @property
    def all_records(self) -> list[Record]:
        """The records, in the order of the variants."""
        return [job.record for job in self.jobs]

    def folder_of(self, order: int) -> Path:
        """Where launch ``order`` of the session runs."""
        return self.folder / f"launch-{order}"

    def launch(self, which: int, index: int, order: int) -> Launch:
        """Start launch ``index`` of variant ``which``; its record does not hold it yet.

        Raises :class:`PlumbError` for a program that cannot be started.
        """
        folder = self.folder_of(order)
        try:
            return pipeline.launch(self.jobs[which], index, order, folder)
        except OSError as error:
            raise PlumbError(f"a launch could not be started: {error}", str(folder), self.kept) from error

    def settle(self, which: int) -> None:
        """Update figures, reasons and verdict of a record from its launches."""
        job = self.jobs[which]
        figures.settle(job.record, job.facts, job.host, self.expected, job.ceilings)


def kept_records(file: Path, number: int, again: str) -> list[Record] | None:
    """The records of ``number`` variants that are kept in ``file``, or None if it is not there yet.

    Raises :class:`PlumbError` with the cure ``again`` for records that are damaged or were changed.
    """
    if not file.exists():
        return None
    records = store.whole(file, again)
    if not all(record.seal for record in records):
        raise PlumbError("changed since it was measured: it has no seal any more", str(file), again)
    if len(records) != number:
        raise PlumbError(f"{len(records)} records instead of {['one', 'two'][number - 1]}", str(file), again)
    if len({len(record.launches) for record in records}) > 1:
        raise PlumbError("the records do not have equally many launches", str(file), again)
    return records


class KeptLaunches(Launches):
    """Launches that can be continued: their records are in files, each written whole after each launch or pair.

    ``again`` is the cure where they cannot be continued.
    """

    def __init__(
        self, variants: Sequence[Variant], session: str, folder: Path, seed: int, kept: str, again: str
    ) -> None:
        super().__init__(variants, session, folder, seed, kept)
        self.again = again

    def records(self, file: Path, places: Sequence[int]) -> list[Record]:
        """The records of the variants at ``places``: those kept in ``file``, or new ones.

        Raises :class:`PlumbError` where a plan, command or benchmark is another one now.
        """
        chosen = [self.jobs[place] for place in places]
        for job, old in zip(chosen, kept_records(file, len(chosen), self.again) or (), strict=False):
            for name in ("plan", "command", "benchmark"):
                if getattr(old, name) != getattr(job.record, name):
                    message = f"the {name} of {old.variant.name} on {old.stack.name} is another one now"
                    raise PlumbError(message, str(self.folder), self.again)
            job.record = old
        return [job.record for job in chosen]

    def keep(self, file: Path, launches: Mapping[int, Launch]) -> None:
        """Add each of ``launches`` to the record of its variant, and write these records.

        Where that fails (a full disk) they are given up: records, which may be on another disk too, must not have a
        launch that is not found when it goes on.
        """
        records = [self.jobs[place].record for place in sorted(launches)]
        with held_back():
            for place, launch in launches.items():
                self.jobs[place].record.launches.append(launch)
                self.settle(place)
            try:
                store.write(file, records)
            except BaseException:
                for place in launches:
                    self.jobs[place].record.launches.pop()
                    self.settle(place)
                raise


def run(
    variants: Sequence[Variant],
    folder: Path,
    seed: int | None = None,
    say: Callable[[str], None] = lambda line: None,
    campaign: str | None = None,
    experiment: str | None = None,
    into: Path | None = None,
    brief: bool = False,
) -> tuple[Path, list[Record]]:
    """Run all launches of some variants, in random order if there are several, with ``folder`` as work space.

    Returns the session file and its records. ``seed`` makes the order repeatable; it is kept in the record, as are the
    ``campaign`` that the records belong to, and the ``experiment`` that they are for. The session file is among the
    site's results, or in the folder ``into``.
    ``say`` gets a line after each launch, with neither its test nor what disturbed it if ``brief``.

    Raises :class:`PlumbError` as :class:`Launches` does, for a launch folder that Plumbline did not make, and where
    another session uses ``folder``; raises :class:`Interrupted` on SIGINT, SIGTERM, SIGHUP or SIGUSR2. In every case
    the records hold the launches that finished.
    """
    conflict, cure = "another plumb launch works in this folder", "name another folder with --work, or wait"
    with files.reserved(folder / LOCK, conflict, cure), interruptible():
        session = store.new_session()
        seed = secrets.randbits(32) if seed is None else seed
        launches = Launches(variants, session, folder, seed, "launches that had finished are recorded")
        records = launches.all_records
        file = into / f"{session}.jsonl" if into else store.session_file(records[0].site, session)
        for record in records:
            record.campaign, record.experiment = campaign, experiment
        _measure(launches, schedule([record.variant.launches for record in records], seed), file, say, brief)
        return file, records


def _measure(
    launches: Launches, order: list[tuple[int, int]], file: Path, say: Callable[[str], None], brief: bool
) -> None:
    """Run the launches in ``order``; the records are in ``file`` after each."""
    records = launches.all_records
    for position in range(len(order)):
        files.refuse_foreign(launches.folder_of(position))
    store.write(file, records)
    if unknown := records[0].suite.unknown:
        say(f"the records do not name this checkout's commit: {unknown}")
    if removed := records[0].removed_variables:
        say(f"not given to the launches: {', '.join(removed)}; declare in site.yaml what they need (environment)")
    took: list[tuple[str, float]] = []
    with recording(file, records):
        for position, (which, index) in enumerate(order):
            record = records[which]
            began = time.monotonic()
            launch = launches.launch(which, index, position)
            with held_back():
                record.launches.append(launch)
                launches.settle(which)
                store.write(file, records)
            done = position + 1
            took.append((str(which), time.monotonic() - began))
            say(_progress(record, launch, f"launch {done}/{len(order)}", took[-1][1], brief))
            earlier = [previous.last_lines() for previous in record.launches[:-1]]
            if (last_lines := launch.last_lines()) and last_lines not in earlier:
                say("\n".join(f"    {line}" for line in last_lines))
            left = human_seconds(time_left(took, Counter(str(place) for place, _ in order[done:]), {}))
            terminal.progress(done, len(order), f"launches, about {left} left")
    if unseen := _unseen(records):
        say(unseen)


def schedule(launches: list[int], seed: int) -> list[tuple[int, int]]:
    """The order of launches as (variant, index) pairs: round by round, each round in an order drawn from ``seed``."""
    draw = random.Random(seed)  # noqa: S311 - an experimental design, not a secret
    order: list[tuple[int, int]] = []
    for index in range(max(launches)):
        row = [which for which, count in enumerate(launches) if index < count]
        draw.shuffle(row)
        order += [(which, index) for which in row]
    return order


@contextlib.contextmanager
def recording(file: Path, records: Sequence[Record], empty: bool = True) -> Iterator[None]:
    """Measure within this: whatever ends it, ``records`` say whether they are complete, and are in ``file``.

    Without ``empty`` only those that have launches are written.
    """
    state: State = "interrupted"
    try:
        with terminal.bar():
            yield
        state = "complete"
    finally:
        with held_back():
            for record in records:
                record.state = state
            if kept := [record for record in records if empty or record.launches]:
                store.write(file, kept)


def _unseen(records: list[Record]) -> str | None:
    """The disturbances on a virtual machine that nobody can see, once for all launches; None where none was."""
    if not records[0].host.get("virtual") or not any(record.disturbed_count for record in records):
        return None
    return "this is a virtual machine: what disturbed launches from outside of it is seen as steal alone"


def _progress(record: Record, launch: Launch, number: str, took: float, brief: bool) -> str:
    variant = record.variant
    name = variant.name.removeprefix(f"{variant.test} ") if brief else variant.name
    state = "verified" if launch.verified else f"NOT VERIFIED: {launch.reasons[0]}"
    for error in launch.start_errors:
        state += " (started twice)" if error in launch.reasons else f" (started again: {error})"
    if launch.disturbed and not brief:
        state += f" (disturbed: {launch.disturbance.short()})"
    return f"{number}  {name} on {variant.stack}  {took:.1f} s  {state}"
