"""The measuring of a live gate: which pair is next, when a variant is decided, what is measured again.

Everything random comes from the recorded seed and from counts, so that an interrupted gate goes on as if it had not
been. :class:`Bench` is what starts programs; tests put another one in its place.
"""

from __future__ import annotations

import contextlib
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from plumbline.errors import PlumbError
from plumbline.gate import again, judge, records_source, sequential, session
from plumbline.gate.sequential import CAP, LOOKS, Rule
from plumbline.gate.session import Record
from plumbline.gate.validity import Series
from plumbline.launch import driver, figures
from plumbline.launch.process import Interrupted
from plumbline.records import store
from plumbline.references import References

#: a FAIL that is this certain for each of n series (p x n) survives Holm's procedure whatever the others do
CAMPAIGN_ERROR = 0.01
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Bench(Protocol):
    """Starts launches. Sides are 0 (baseline) and 1 (candidate), variants are known by their position."""

    def records(self, position: int, found: list[Record] | None) -> list[Record]:
        """Both sides' records, new ones or those ``found`` from before an interruption."""

    def launch(self, position: int, side: int, index: int, order: int) -> Record:
        """The record's element of one launch."""

    def settle(self, position: int) -> None:
        """Bring what follows from the launches of both records up to date."""


class DriverBench:
    """The launch driver, in this process: inside a job or on the local node."""

    def __init__(self, couples: list[list[dict[str, Any]]], name: str, seed: int, site: str, folder: Path) -> None:
        self.folder = folder
        self.seed = seed
        self.expected = References.load(site)
        self.jobs = [[driver.prepare(variant, name) for variant in couple] for couple in couples]

    def records(self, position: int, found: list[Record] | None) -> list[Record]:
        """See :class:`Bench`; refuses records whose plan or command is another one now."""
        jobs = self.jobs[position]
        for job, old in zip(jobs, found or [], strict=False):
            for key in ("plan", "command", "benchmark"):
                if old[key] != job.record[key]:
                    what = f"the {key} of {old['variant']['name']} on {old['stack']['name']} is another one now"
                    raise PlumbError(what, str(self.folder), "start a new gate")
            job.record = old
        for job in jobs:
            job.record["environment"]["PLUMB_SEED"] = str(self.seed)
        return [job.record for job in jobs]

    def launch(self, position: int, side: int, index: int, order: int) -> Record:
        """See :class:`Bench`; a program that cannot be started is an error."""
        job = self.jobs[position][side]
        nodes = job.record["nodes"] if job.record["launches"] else None
        folder = self.folder / "launches" / f"launch-{order}"
        try:
            found = driver.launch_once(job, index, order, folder)
        except OSError as error:
            cure = f"the pairs before it are kept: plumb gate --resume {self.folder}"
            raise PlumbError(f"a launch could not be started: {error}", str(folder), cure) from error
        if nodes is not None and job.record["nodes"] != nodes:
            what = f"ran on {', '.join(job.record['nodes'])}, before on {', '.join(nodes)}"
            raise PlumbError(what, job.variant["name"], "a gate stays on its nodes: start a new one")
        return found

    def settle(self, position: int) -> None:
        """See :class:`Bench`."""
        for job in self.jobs[position]:
            figures.settle(job.record, job.facts, job.host, self.expected)


@dataclass(frozen=True)
class Metric:
    """How one figure stands: ``ratio`` is candidate / baseline, with its interval from the first look on.

    ``state`` is a verdict, or ``open``, or ``slower``: a FAIL that needs more pairs to hold among so many series.
    ``certain`` is a FAIL that holds whatever the other series do.
    """

    name: str
    pairs: int
    ratio: float | None
    interval: tuple[float, float] | None
    state: str
    certain: bool = False

    @property
    def decided(self) -> bool:
        """Whether more pairs would not change the state."""
        return self.state in judge.EXIT


@dataclass
class Contest:
    """One variant on both sides."""

    position: int
    records: list[Record]
    total: int

    @property
    def name(self) -> str:
        """The variant's."""
        return str(self.records[0]["variant"]["name"])

    @property
    def launches(self) -> list[tuple[Record, Record]]:
        """Its pairs in order, those included that were measured again."""
        return list(zip(*(record["launches"] for record in self.records), strict=True))

    @property
    def aside(self) -> int:
        """Pairs that were measured again."""
        return sum(again.superseded(baseline) for baseline, _ in self.launches)

    @property
    def kept(self) -> int:
        """Pairs that count."""
        return len(self.launches) - self.aside

    def metrics(self) -> list[Metric]:
        """How each of its figures stands among the ``total`` of the gate."""
        if not self.kept and all(launch["verified"] for pair in self.launches for launch in pair):
            return [Metric(item["name"], 0, None, None, "open") for item in self.records[0]["variant"]["figures"]]
        series = records_source.pair(self.records[0], self.records[1], "running")
        return [_metric(item, self.kept, self.total) for item in series]

    def open(self) -> bool:
        """Whether it needs another pair."""
        return not all(metric.decided for metric in self.metrics())


def _metric(series: Series, kept: int, total: int) -> Metric:
    name = series.name.rpartition(": ")[2]
    values = (*series.baseline, *series.candidate)
    if series.faults or not all(np.isfinite(value) and value > 0 for value in values):
        return Metric(name, kept, None, None, "INVALID")
    found = judge.standing([series], Rule())
    used = int(found.pairs[0])
    estimates = sequential.estimate(found.logs[:, :used])
    ratio = judge.ratios(series, float(estimates.centre[0]))[0]
    low, high = sorted(judge.ratios(series, float(estimates.low[0]), float(estimates.high[0])))
    state = int(found.state[0])
    certain = state == sequential.FAIL and bool(found.p[0] * total <= CAMPAIGN_ERROR)
    interval = (low, high) if used >= LOOKS[0] else None
    return Metric(name, used, ratio, interval, _state(state, certain, kept), certain)


def _state(state: int, certain: bool, kept: int) -> str:
    if state == sequential.PASS:
        return "PASS"
    if state == sequential.FAIL and (certain or kept >= CAP):
        return "FAIL"
    if kept >= CAP:
        return "INCONCLUSIVE"
    return "slower" if state == sequential.FAIL else "open"


Told = Callable[[Contest, list[Metric], int, bool], None]


@dataclass(frozen=True)
class Stop:
    """When a gate ends before all is decided: after ``minutes``; with the first FAIL that is certain, or neither.

    The FAIL waits for the first look at all others: what is not looked at is INVALID, which is worse.
    """

    minutes: float | None = None
    first_fail: bool = False


def measure(contests: Sequence[Contest], bench: Bench, folder: Path, seed: int, told: Told, stop: Stop) -> str | None:
    """Measure pairs until every contest is decided, or until ``stop``: then why.

    The contest with the fewest pairs is next, among equals in an order drawn from ``seed``. ``told`` is called after
    each pair with how its figures stand, the number of pairs in all and whether this one is measured again.
    """
    began = time.monotonic()
    standing = [(contest, contest.metrics()) for contest in contests]
    failed = any(metric.certain for _, metrics in standing for metric in metrics)
    undecided = {item.position: item for item, metrics in standing if not all(metric.decided for metric in metrics)}
    done = sum(len(contest.launches) for contest in contests)
    while undecided:
        if stop.minutes is not None and time.monotonic() >= began + 60 * stop.minutes:
            return "time is up"
        if stop.first_fail and failed and all(contest.kept >= LOOKS[0] for contest in undecided.values()):
            return "a figure failed"
        contest = min(undecided.values(), key=lambda item: (len(item.launches), _draw(seed, item, "round")))
        repeated = _pair(contest, bench, seed, done)
        done += 1
        with undisturbed():
            store.write(session.pairs_file(folder, contest.position), contest.records)
        metrics = contest.metrics()
        if all(metric.decided for metric in metrics):
            del undecided[contest.position]
        failed = failed or any(metric.certain for metric in metrics)
        told(contest, metrics, done, repeated)
    return None


def _draw(seed: int, contest: Contest, what: str) -> float:
    """Between 0 and 1; the same for the same seed, contest and number of its pairs."""
    text = f"{seed}/{what}/{contest.position}/{len(contest.launches)}"
    return random.Random(text).random()  # noqa: S311 - an experimental design, not a secret


def _pair(contest: Contest, bench: Bench, seed: int, done: int) -> bool:
    """Measure a pair of ``contest``; True if it is to be measured again."""
    index = len(contest.launches)
    first = int(_draw(seed, contest, "pair") < 0.5)
    found: dict[int, Record] = {}
    for place, side in enumerate((first, 1 - first)):
        found[side] = bench.launch(contest.position, side, index, 2 * done + place)
    repeated = again.due(found[0], found[1], contest.kept, contest.aside)
    for side, record in enumerate(contest.records):
        if repeated:
            found[side]["superseded"] = True
        record["launches"].append(found[side])
    bench.settle(contest.position)
    return repeated


def finish(contests: Sequence[Contest], file: Path, state: str) -> None:
    """Close all records and write them to the results as one session, in the order of the variants."""
    with undisturbed():
        for contest in contests:
            for record in contest.records:
                record["state"] = state
        store.write(file, [record for contest in contests for record in contest.records if contest.launches])


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Hold signals back while files are written."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Between launches too, SIGINT, SIGTERM and SIGHUP raise :class:`Interrupted`."""

    def stop(number: int, _: object) -> None:
        raise Interrupted(number)

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
