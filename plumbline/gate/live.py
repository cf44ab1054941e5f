"""The measuring of a live gate: which pair is next, when a variant is decided, which pairs are measured again.

Everything random comes from the recorded seed and from counts, so that a resumed gate continues as if it had not
been interrupted. A :class:`GateBench` starts programs; tests put another one in its place. In the gate's folder
``pairs/N.jsonl`` has the two records of variant N.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from plumbline.base.errors import PlumbError
from plumbline.base.verdicts import EXIT
from plumbline.gate import same
from plumbline.gate.setup import Session
from plumbline.judge import decide, disturbed, slowing
from plumbline.judge.pairs import Column, Pairs, efficiency, pairs_of_records
from plumbline.judge.statement import Statement
from plumbline.measure import driver
from plumbline.records import store
from plumbline.records.launch import Launch
from plumbline.records.model import Record
from plumbline.statistics import Floats, paired
from plumbline.statistics.paired import CAP, LOOKS, PairedRule

#: the cure for what cannot be continued
AGAIN = "start a new gate"
#: the name of the series of a point of a curve
EFFICIENCY = "efficiency"


def pairs_file(folder: Path, position: int) -> Path:
    """Where the two records of variant ``position`` are."""
    return folder / "pairs" / f"{position}.jsonl"


def kept_records(folder: Path, position: int) -> list[Record] | None:
    """The two records of variant ``position``, or None if it has no pair yet."""
    return driver.kept_records(pairs_file(folder, position), 2, AGAIN)


def refuse_loss(results: Path, records: Iterable[Record]) -> None:
    """Raise :class:`PlumbError` unless ``records`` hold every launch of ``results``, which they will replace."""
    held = {record.id: record.launches for record in records}
    for item in store.whole(results, "move it away, or start a new gate") if results.exists() else ():
        if held.get(item.id, [])[: len(item.launches)] != item.launches:
            raise PlumbError(
                "the results of this gate have launches that its folder has not",
                str(results),
                "bring the folder's pairs back, or start a new gate",
            )


class GateBench(driver.KeptLaunches):
    """The launches of a gate: variant 2 N is the baseline of couple N, variant 2 N + 1 its candidate.

    ``rounds`` makes a pair of a contest, by the side that is first and the order of its launches; None: in turn.
    """

    rounds: Callable[[Contest, int, int], dict[int, Launch]] | None = None

    def __init__(self, begun: Session, folder: Path) -> None:
        every = [variant for couple in begun.couples for variant in couple]
        kept = f"the pairs before it are kept: plumb gate --resume {folder}"
        super().__init__(every, begun.name, folder, begun.terms.seed, kept, AGAIN)

    def couple(self, position: int) -> list[Record]:
        """Both records of a couple, new ones or those from before an interruption."""
        return self.records(pairs_file(self.folder, position), (2 * position, 2 * position + 1))

    def same(self, position: int) -> tuple[bool, list[str]]:
        """Whether both sides of a couple are the same program, and notes on that."""
        first, second = self.jobs[2 * position : 2 * position + 2]
        return same.compare(first, second, self.folder / "looked-at")

    def program(self, which: int) -> str:
        """A hash of all that a launch depends on; raises :class:`same.Unseen`."""
        seen = same.looked_at(self.jobs[which], self.folder / "looked-at")
        return hashlib.sha256(repr([same.circumstances(self.jobs[which]), *sorted(seen.items())]).encode()).hexdigest()

    def launch(self, which: int, index: int, order: int) -> Launch:
        """Start one launch; raises :class:`PlumbError` for a program that cannot be started, or on other nodes."""
        record, before = self.jobs[which].record, self.jobs[which].record.nodes
        launch = super().launch(which, index, order)
        if record.launches and record.nodes != before:
            message = f"ran on {', '.join(record.nodes)}, before on {', '.join(before)}"
            record.nodes = before
            raise PlumbError(message, record.variant.name, "a gate stays on its nodes: start a new one")
        return launch


@dataclass(frozen=True, kw_only=True)
class FigureState(Statement):
    """How one figure stands: ``ratio`` is candidate / baseline, with its interval from the first look on.

    ``state`` is a verdict, or ``open``, or ``slower`` or ``faster``: a FAIL or a GAIN that needs more pairs to hold
    among all series of the gate. ``certain``: it is a FAIL that holds whatever the other series show. ``reason`` says
    why a figure is still open whose interval lies wholly beyond the tolerance, or why there is no verdict for it.
    """

    certain: bool = False

    @property
    def decided(self) -> bool:
        """Whether more pairs would not change the state."""
        return self.state in EXIT


@dataclass
class Contest:
    """One variant on both sides; ``by_itself`` claims that the candidate disturbs itself.

    ``same``: both are the same program, and no pair is measured. ``base``: the point of a scaling curve over which the
    efficiency of this one is judged, whose number is ``grown`` times as large; the base has its ``followers``.
    """

    position: int
    records: list[Record]
    total: int
    rule: PairedRule
    by_itself: bool = False
    same: bool = False
    base: Contest | None = None
    grown: float = 1.0
    followers: list[Contest] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of the variant."""
        return self.records[0].variant.name

    @property
    def series(self) -> list[str]:
        """The names of what is judged: its figures, and its efficiency."""
        names = [figure.name for figure in self.records[0].variant.figures]
        return [*names, EFFICIENCY] if self.base else names

    @property
    def launches(self) -> list[tuple[Launch, Launch]]:
        """Its pairs in order, those included that were measured again."""
        baseline, candidate = self.records
        return list(zip(baseline.launches, candidate.launches, strict=True))

    @property
    def is_new(self) -> bool:
        """Whether no pair counts yet."""
        return not self.same and not self.kept and all(launch.verified for pair in self.launches for launch in pair)

    @property
    def replaced(self) -> int:
        """Pairs that were measured again."""
        return sum(baseline.superseded for baseline, _ in self.launches)

    @property
    def kept(self) -> int:
        """Pairs that count."""
        return len(self.launches) - self.replaced

    def figure_states(self) -> list[FigureState]:
        """How each of its figures stands among the ``total`` of the gate."""
        if self.is_new:
            return [FigureState(name, "open", 0) for name in self.series]
        every = self.pairs("running")
        if waits := self.base is not None and self.base.is_new:
            del every[-1]
        known = [figure_state(pairs, self.rule, self.total) for pairs in every]
        return [*known, FigureState(EFFICIENCY, "open", 0)] if waits else known

    def is_open(self, figures: Sequence[FigureState]) -> bool:
        """Whether more pairs may decide one of its ``figures``, or an efficiency over it."""
        efficiencies = (each.figure_states()[-1] for each in self.followers)
        return not all(figure.decided for figure in (*figures, *efficiencies))

    def pairs(self, state: str = "complete") -> list[Pairs]:
        """The pairs of each of its figures; ``state`` is that of the records."""
        if self.same:
            names = (f"{self.name}: {name}" for name in self.series)
            return [Pairs(name, Column([]), Column([]), "lower", same=True) for name in names]
        every = pairs_of_records(self.records[0], self.records[1], state, self.by_itself)
        if self.base:
            every.append(efficiency(f"{self.name}: {EFFICIENCY}", every[0], self.base.pairs(state)[0], self.grown))
        return every


#: the states of what was decided: where it holds whatever the other series say, and before
STATES = {paired.PASS: ("PASS", "PASS"), paired.FAIL: ("FAIL", "slower"), paired.GAIN: ("GAIN", "faster")}


def figure_state(pairs: Pairs, rule: PairedRule, total: int) -> FigureState:
    """How the figure of ``pairs`` stands among the ``total`` of all that are measured."""
    name, kept = pairs.name.rpartition(": ")[2], len(pairs.baseline.values)
    values = (*pairs.baseline.values, *pairs.candidate.values)
    if not (values or pairs.faults or pairs.same):
        return FigureState(name, "open", 0)
    if pairs.same:
        return FigureState(name, "PASS", kept, reason=decide.SAME)
    if pairs.faults or not all(np.isfinite(value) and value > 0 for value in values):
        return FigureState(name, "INVALID", kept)
    [now] = decide.standing([pairs], rule)
    is_bounded = pairs.slowing.high < slowing.UNKNOWN
    interval = now.interval if now.pairs >= LOOKS[0] and is_bounded else None
    holds = now.p * total <= decide.CAMPAIGN_ERROR
    is_last, after = kept >= CAP, decide.next_look(now.pairs)
    state, reason = "INCONCLUSIVE" if now.doubt or is_last or now.is_hopeless else "open", now.doubt
    if not now.doubt and now.state != paired.GO_ON:
        state = STATES[now.state][0 if holds or is_last else 1]
    elif not now.doubt and now.pairs >= LOOKS[0] and not is_bounded:
        reason = slowing.TOO_FEW
    elif not now.doubt and interval and after and now.bounds[0] > now.rule.tolerated:
        reason = f"{decide.FAIL_NEEDS}, the next look is at {after}"
    is_certain = not now.doubt and now.state == paired.FAIL and holds
    return FigureState(name, state, now.pairs, now.ratio, interval, reason=reason, certain=is_certain)


#: first pairs after which a search gives up if each was disturbed
RESTLESS = 3
#: called after each pair: its contest, how the figures stand, pairs in all, and whether this one is measured again
AfterPair = Callable[[Contest, list[FigureState], int, bool], None]


@dataclass(frozen=True)
class Stop:
    """When a gate ends before all is decided: after ``minutes``, or (``first_fail``) with the first certain FAIL.

    Such a FAIL waits for the first look at all other series: one without a look is INVALID, which is worse.
    Every verdict that is wanted needs ``least`` pairs of its variant; ``cure``: where the time is too short for them.
    ``restless``: it ends after so many first pairs of a variant that are :func:`hopeless`; 0: never. ``first``: it ends
    after so many pairs of each variant that count; 0: never.
    """

    minutes: float | None = None
    first_fail: bool = False
    least: int = LOOKS[0]
    restless: int = 0
    first: int = 0
    cure: str = "those with fewer are INVALID: give more minutes, or name fewer tests (--test)"


def measure(contests: Sequence[Contest], bench: GateBench, seed: int, after_pair: AfterPair, stop: Stop) -> str | None:
    """Measure pairs until every contest is decided, or until ``stop``; returns why it stopped early, or None.

    The contest with the fewest pairs is next, among equals in an order drawn from ``seed``. ``after_pair`` is called
    after each.
    """
    began = time.monotonic()
    standing = [(contest, contest.figure_states()) for contest in contests]
    failed = any(figure.certain for _, figures in standing for figure in figures)
    first = {item.position: len(item.launches) + stop.restless for item in contests if stop.restless}
    undecided = {item.position: item for item, figures in standing if item.is_open(figures)}
    done = sum(len(contest.launches) for contest in contests)
    while undecided:
        if stop.minutes is not None and time.monotonic() >= began + 60 * stop.minutes:
            return "time is up"
        if stop.first_fail and failed and all(contest.kept >= LOOKS[0] for contest in undecided.values()):
            return "a figure failed"
        if stop.first and all(contest.kept >= stop.first for contest in undecided.values()):
            return None
        contest = min(undecided.values(), key=lambda item: (len(item.launches), _draw(seed, item, "round")))
        repeated = pair(contest, bench, seed, done)
        done += 1
        figures = contest.figure_states()
        if not contest.is_open(figures):
            del undecided[contest.position]
        failed = failed or any(figure.certain for figure in figures)
        after_pair(contest, figures, done, repeated)
        if len(contest.launches) == first.get(contest.position) and _is_hopeless(contest, stop.restless):
            return f"the first {stop.restless} pairs were disturbed, so this host cannot decide now"
    return None


def _is_hopeless(contest: Contest, count: int) -> bool:
    pairs = contest.launches[-count:]
    values = [
        [[side.measurement(figure).value if side.verified else 0.0 for side in pair] for pair in pairs]
        for figure in contest.records[0].variant.figures
        if not figure.optional
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.diff(np.log(values), axis=-1)[..., 0]
    return hopeless([any(launch.disturbed for launch in pair) for pair in pairs], logs, contest.rule)


def hopeless(disturbed: Iterable[bool], logs: Floats, rule: PairedRule) -> bool:
    """Whether more pairs are of no use: each of these was disturbed, and no figure differs far in all of them.

    ``logs``: log ratios (figures, pairs).
    """
    far = decide.FAR * rule.detected / paired.SCALE
    return all(disturbed) and not bool(((logs > far).all(axis=1) | (logs < -far).all(axis=1)).any())


def _draw(seed: int, contest: Contest, purpose: str) -> float:
    """Between 0 and 1; the same for the same seed, contest and number of its pairs."""
    # an experimental design, not a secret
    return random.Random(f"{seed}/{purpose}/{contest.position}/{len(contest.launches)}").random()  # noqa: S311


def pair(contest: Contest, bench: GateBench, seed: int, done: int) -> bool:
    """Measure a pair of ``contest``; True if it is to be measured again."""
    index = len(contest.launches)
    first = int(_draw(seed, contest, "pair") < 0.5)
    baseline = 2 * contest.position
    if bench.rounds:
        launches = bench.rounds(contest, first, 2 * done)
    else:
        sides = enumerate((first, 1 - first))
        launches = {baseline + side: bench.launch(baseline + side, index, 2 * done + place) for place, side in sides}
    both = launches[baseline], launches[baseline + 1]
    repeated = disturbed.is_pair_due(both, contest.kept, contest.replaced)
    for launch in both:
        launch.superseded = repeated
    bench.keep(pairs_file(bench.folder, contest.position), launches)
    return repeated
