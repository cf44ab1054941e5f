"""A search from its beginning to its answer, here or in a job: the ends against one another, then the factors.

In its folder ``records/N.jsonl`` has the record of configuration N; the index of a launch is the number of its round.
A search that is repeated takes the same way, and starts only what is missing.
"""

from __future__ import annotations

import math
import shlex
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msgspec import structs

from plumbline import site
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Partition
from plumbline.base.units import Better, counted, human_seconds
from plumbline.extras.search.why import designs
from plumbline.extras.search.why.model import WHY, Ends, WhyRequest
from plumbline.extras.search.why.search import ACTS, Attribution, Named, Rounds, Search, Seen
from plumbline.gate import live, setup
from plumbline.gate import run as gates
from plumbline.host import change
from plumbline.host.change import Host
from plumbline.judge import disturbed
from plumbline.judge.decide import Verdict
from plumbline.judge.pairs import log_ratios
from plumbline.measure import session
from plumbline.measure.driver import KeptLaunches
from plumbline.measure.session import Say
from plumbline.records import query, store
from plumbline.records.launch import Launch
from plumbline.records.model import Record
from plumbline.statistics import paired
from plumbline.statistics.paired import CAP, PairedRule

#: noise of one launch (a log ratio) that a plan assumes
USUAL_NOISE = 0.02
#: the cure for what cannot be continued
AGAIN = "start a new search"
#: of the folder of a search, the gate of its ends
ENDS = "ends"


@dataclass(frozen=True)
class WhyOutcome:
    """The end of a search: ``ends`` is the verdict of the figure at its ends, B against A.

    ``attribution`` is None where the ends do not differ for certain. ``others`` are the other figures of
    the ends that differ. ``reasons`` say why configurations failed. ``records`` are all that were measured.
    """

    request: WhyRequest
    ends: Verdict
    attribution: Attribution | None
    others: list[Verdict]
    reasons: dict[int, str]
    records: list[Record]

    @property
    def figure(self) -> str:
        """The figure that was followed."""
        return self.ends.subject.rpartition(": ")[2]

    @property
    def better(self) -> Better:
        """Which values of the figure are better."""
        return self.ends.pairs.better

    @property
    def launches(self) -> list[Launch]:
        """All launches, those of the ends included."""
        return [launch for record in self.records for launch in record.launches]


class ConfigurationBench:
    """The configurations of the search of ``folder``; ``figure`` is the name of the figure that is followed.

    ``minutes``: no round begins after so many, None for no limit. ``host`` is where settings of the host are changed.
    """

    def __init__(
        self, folder: Path, request: WhyRequest, figure: str, say: Say, host: Host, minutes: float | None = None
    ) -> None:
        self.folder, self.request, self.say, self.host = folder, request, say, host
        self.reasons: dict[int, str] = {}
        self._figure = next(wanted for wanted in request.ends.first.figures if wanted.name == figure)
        self._launches: dict[int, KeptLaunches] = {}
        self._ends = None if minutes is None else time.monotonic() + 60 * minutes
        self._order = sum(len(record.launches) for record in self.records())

    def _file(self, configuration: int) -> Path:
        return self.folder / "records" / f"{configuration}.jsonl"

    def stop(self) -> str | None:
        """Why no further round may begin, or None."""
        return "time is up" if self._ends is not None and time.monotonic() > self._ends else None

    def records(self) -> list[Record]:
        """The records of all configurations."""
        files = sorted((self.folder / "records").glob("*.jsonl"))
        return [record for file in files for record in store.whole(file, AGAIN)]

    def launch(self, configuration: int, number: int) -> Seen | None:
        """The figure of the launch of ``configuration`` in round ``number``, started unless it was before.

        A launch that was disturbed is started again, within the limits of the gate. None: it failed, and
        :attr:`reasons` says why. Raises :class:`PlumbError` where A or B cannot be measured.
        """
        try:
            launches = self._prepared(configuration)
        except PlumbError as error:
            self._fail(configuration, error)
            return None
        [record] = launches.all_records
        before = (each for each in record.launches if each.index == number and not each.superseded)
        launch = next(before, None) or self._started(configuration, launches, number)
        try:
            if not launch.verified or launch.status != "ok":
                raise PlumbError((launch.reasons or ["it failed"])[0], f"launch {launch.order}")
            measurement = launch.measurement(self._figure)
        except PlumbError as error:
            self._fail(configuration, error)
            return None
        return Seen(measurement.value, launch.disturbed, measurement.step)

    def _fail(self, configuration: int, error: PlumbError) -> None:
        name = self.request.ends.mixture(configuration)
        if configuration in (0, (1 << len(self.request.ends.factors)) - 1):
            raise PlumbError(f"{name} cannot be measured: {error.message}", error.where, error.cure) from error
        self.reasons[configuration] = error.message
        self.say(f"left out: {name}: {error.message}")

    def _prepared(self, configuration: int) -> KeptLaunches:
        """The configuration, with the launches that it had before."""
        if configuration not in self._launches:
            self.host.set(self.request.ends.host(configuration))
            kept = f"what was measured before is kept: plumb why --resume {self.folder}"
            request, variant = self.request, self.request.ends.variant(configuration)
            launches = KeptLaunches([variant], request.session, self.folder, request.seed, kept, AGAIN)
            launches.records(self._file(configuration), [0])
            self._launches[configuration] = launches
        return self._launches[configuration]

    def _started(self, configuration: int, launches: KeptLaunches, number: int) -> Launch:
        self.host.set(self.request.ends.host(configuration))
        [record] = launches.all_records
        while True:
            launch = launches.launch(0, number, self._order)
            self._order += 1
            kept = len(record.counting())
            launch.superseded = disturbed.is_due(launch.verified, launch.disturbed, kept, len(record.launches) - kept)
            launches.keep(self._file(configuration), {0: launch})
            if not launch.superseded:
                return launch


def begin(
    folder: Path, ends: Ends, rule: PairedRule, seed: int, figure: str | None, order: setup.Order = "turns"
) -> None:
    """Begin a search in ``folder``, and measure nothing.

    Raises :class:`PlumbError` for a figure that is not there, and for two settings of the host at the same time.
    """
    if order != "turns" and any(factor.kind == "host" for factor in ends.factors):
        raise PlumbError("both sides at once have the same host settings", "plumb why --order", "leave it, or --root")
    known = [wanted.name for wanted in ends.first.figures if not wanted.optional]
    if figure and figure not in known:
        raise PlumbError(
            f"'{figure}' is not a figure of {ends.first.name}", "plumb why --figure", f"it has {', '.join(known)}"
        )
    stacks = sorted({variant.stack for variant in (ends.first, ends.second, *ends.bases.values())})
    WHY.begin(
        folder,
        WhyRequest(
            session=store.new_session(),
            ends=ends,
            tolerance=rule.tolerance,
            must_detect=rule.must_detect,
            seed=seed,
            circumstances=session.circumstances(stacks, partition_of(ends)),
            figure=figure,
            order=order,
        ),
    )


def partition_of(ends: Ends) -> Partition:
    """The partition that a search is measured on."""
    return site.partition(site.load(ends.first.site), ends.first.partition)


def plan(ends: Ends, rule: PairedRule) -> str:
    """How many launches and minutes a search takes about, at the usual noise."""
    number = len(ends.factors)
    at_ends = 2 * designs.rounds_needed(math.sqrt(2) * USUAL_NOISE, rule)
    if number == 1:
        return f"about {at_ends} launches: the only factor is measured with the ends\n{_minutes(ends, at_ends)}"
    effects = designs.launches_alone(number, USUAL_NOISE, rule)
    return (
        f"about {at_ends} launches of the ends and {effects} of {counted(number, 'factor')}, where one launch scatters "
        f"by {100 * USUAL_NOISE:g} %; at most {2 * CAP} and {CAP * len(designs.alone_configurations(number))}\n"
        f"{_minutes(ends, at_ends + effects)}"
    )


def _minutes(ends: Ends, launches: int) -> str:
    """About how long so many launches take: as those of the records that the ends are, else of 3 s each."""
    known = [launch.wall_s for record_id in ends.ids for launch in query.find(record_id).launches]
    seconds = statistics.median(known) if known else session.USUAL_LAUNCH_S
    why = f"as the launches of {' and '.join(ends.ids)}" if known else "if a launch takes as long"
    return f"about {human_seconds(launches * seconds)} of launches of {seconds:.1f} s, {why}"


def resume(folder: Path, minutes: float | None, say: Say) -> WhyOutcome:
    """Continue the search of ``folder``; raises :class:`PlumbError` if anything around it changed.

    ``minutes`` are those of the ends and of all rounds together.
    """
    folder, begun = folder.resolve(), time.monotonic()
    with WHY.locked(folder), change.changing() as host:
        request = WHY.load(folder)
        ends, others = _compare_ends(folder, request, host, minutes, say)
        request.figure = ends.subject.rpartition(": ")[2]
        WHY.save(folder, request)
        left = None if minutes is None else max(0.0, minutes - (time.monotonic() - begun) / 60)
        bench = ConfigurationBench(folder, request, request.figure, say, host, left)
        attribution = _search(request, ends, bench, say) if ends.state in ACTS else None
        records = [*(live.kept_records(folder / ENDS, 0) or []), *bench.records()]
        return WhyOutcome(request, ends, attribution, others, bench.reasons, records)


class _BenchOfEnds(live.GateBench):
    """The ends' launches, each with the settings of the host that it needs."""

    def __init__(self, begun: setup.Session, folder: Path, request: WhyRequest, host: Host) -> None:
        self._host = host
        self._wanted = [request.ends.host(configuration) for configuration in (0, (1 << len(request.ends.factors)) - 1)]
        super().__init__(begun, folder)

    def launch(self, which: int, index: int, order: int) -> Launch:
        """Start one launch."""
        self._host.set(self._wanted[which])
        return super().launch(which, index, order)


def _compare_ends(
    folder: Path, request: WhyRequest, host: Host, minutes: float | None, say: Say
) -> tuple[Verdict, list[Verdict]]:
    """The verdict of the figure that is followed, B against A as they were, and those of the others that differ."""
    place = folder / ENDS
    both = [
        structs.replace(variant, figures=[each for each in variant.figures if request.figure in (None, each.name)])
        for variant in (request.ends.first, request.ends.second)
    ]
    terms = setup.Terms(request.rule, request.seed, measure_equal=True, purpose="why", order=request.order)
    setup.begun_for(place, request.session, request.ends.labels, [both], terms, dict(request.circumstances))
    say(f"the ends: {request.ends.labels[1]} (B) against {request.ends.labels[0]} (A)")
    outcome = gates.resume(
        place,
        live.Stop(minutes, restless=live.RESTLESS),
        say,
        lambda begun, where: _BenchOfEnds(begun, where, request, host),
        f"plumb why --resume {shlex.quote(str(folder))}",
    )
    comparable = [
        verdict for verdict in outcome.verdicts if verdict.state != "INVALID" or verdict.subject in outcome.open
    ]
    if not comparable:
        first = outcome.verdicts[0]
        raise PlumbError(f"the ends cannot be compared: {first.subject}: {first.reason}", str(place), "plumb show last")
    worst = max(
        comparable,
        key=lambda verdict: (verdict.state == "FAIL", verdict.state == "GAIN", abs(math.log(verdict.ratio or 1))),
    )
    return worst, [verdict for verdict in comparable if verdict is not worst and verdict.state in ACTS]


def _search(request: WhyRequest, ends: Verdict, bench: ConfigurationBench, say: Say) -> Attribution:
    factors = len(request.ends.factors)
    if factors == 1:  # the ends differ in nothing else
        return Attribution(ends, [Named((0,), ends, ends, ends)], "the ends alone")
    opposite: dict[Better, Better] = {"lower": "higher", "higher": "lower"}
    better = ends.pairs.better if ends.state == "FAIL" else opposite[ends.pairs.better]
    say("")

    def after(number: int, states: dict[str, live.FigureState], launches: int) -> None:
        done = sum(state.decided for state in states.values())
        say(f"round {number + 1:>3}  {launches:>3} launches  {done:>2} of {len(states)} decided")

    logs = log_ratios(*ends.pairs.counting, ends.pairs.better)[None, :]
    noise = float(paired.noise(logs)[0]) / paired.SCALE / math.sqrt(2)  # of one launch, as the pairs of the ends show
    rounds = Rounds(bench, better, request.rule, request.seed, after)
    return Search(factors, rounds, noise if np.isfinite(noise) and noise > 0 else USUAL_NOISE, say).run()


def broken(outcome: WhyOutcome) -> Iterable[str]:
    """The configurations that failed, with the reasons."""
    return (
        f"{outcome.request.ends.mixture(configuration)}: {why}"
        for configuration, why in sorted(outcome.reasons.items())
    )
