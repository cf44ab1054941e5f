"""A search from its beginning to its answer, here or in a job: the ends against one another, then the factors."""

from __future__ import annotations

import math
import shlex
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from msgspec import structs

from plumbline import site
from plumbline.base.errors import PlumbError
from plumbline.base.units import Better, counted
from plumbline.gate import live, rules, setup
from plumbline.gate import run as gates
from plumbline.host import change
from plumbline.host.change import Host
from plumbline.judge.decide import Verdict
from plumbline.judge.pairs import log_ratios
from plumbline.measure import jobs, session
from plumbline.measure.session import Say
from plumbline.records import query, store
from plumbline.records.launch import Launch
from plumbline.records.model import Record
from plumbline.records.variant import Variant
from plumbline.schemas.site import Partition
from plumbline.statistics import paired
from plumbline.statistics.paired import CAP, Rule
from plumbline.why import designs
from plumbline.why.bench import Bench
from plumbline.why.model import WHY, Asked, Ends
from plumbline.why.rounds import Rounds
from plumbline.why.search import ACTS, Found, Named, Search

#: noise of one launch (a log ratio) that a plan assumes
USUAL_NOISE = 0.02
#: of the folder of a search, the gate of its ends
ENDS = "ends"


@dataclass(frozen=True)
class Outcome:
    """What a search ended with: ``ends`` is the verdict of the figure at its ends, B against A.

    ``found`` is None where the ends do not differ for certain. ``others`` are the ends' other figures that differ.
    ``reasons`` say why configurations failed. ``records`` are all that were measured.
    """

    asked: Asked
    ends: Verdict
    found: Found | None
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


def begin(folder: Path, ends: Ends, rule: Rule, seed: int, figure: str | None) -> None:
    """Begin a search in ``folder``, and measure nothing. Raises :class:`PlumbError` for a figure that is not there."""
    known = [one.name for one in ends.first.figures if not one.optional]
    if figure and figure not in known:
        raise PlumbError(
            f"'{figure}' is not a figure of {ends.first.name}", "plumb why --figure", f"it has {', '.join(known)}"
        )
    under = session.circumstances(sorted({one.stack for one in (ends.first, ends.second, *ends.bases.values())}))
    if jobs.needed(partition_of(ends)):
        under = session.before_a_job(under)
    WHY.begin(
        folder,
        Asked(
            session=store.new_session(),
            ends=ends,
            tolerance=rule.tolerance,
            must_detect=rule.must_detect,
            seed=seed,
            circumstances=under,
            figure=figure,
        ),
    )


def partition_of(ends: Ends) -> Partition:
    """The partition that a search is measured on."""
    return site.partition(site.load(ends.first.site), ends.first.partition)


def plan(ends: Ends, rule: Rule) -> str:
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
    known = [launch.wall_s for one in ends.ids for launch in query.find(one).launches]
    seconds = statistics.median(known) if known else session.USUAL_LAUNCH_S
    why = f"as the launches of {' and '.join(ends.ids)}" if known else "if a launch takes as long"
    return f"about {launches * seconds / 60:.0f} min of launches of {seconds:.1f} s, {why}"


def resume(folder: Path, minutes: float | None, say: Say) -> Outcome:
    """Continue the search of ``folder``; raises :class:`PlumbError` if anything around it changed.

    ``minutes`` are those of the ends and of all rounds together.
    """
    folder, begun = folder.resolve(), time.monotonic()
    with WHY.locked(folder), change.changing() as host:
        asked = WHY.load(folder)
        ends, others = _compare_ends(folder, asked, host, minutes, say)
        asked.figure = ends.subject.rpartition(": ")[2]
        WHY.save(folder, asked)
        left = None if minutes is None else max(0.0, minutes - (time.monotonic() - begun) / 60)
        bench = Bench(folder, asked, asked.figure, say, host, left)
        found = _search(asked, ends, bench, say) if ends.state in ACTS else None
        records = [*_records_of_ends(folder), *bench.records()]
        return Outcome(asked, ends, found, others, bench.reasons, records)


def _records_of_ends(folder: Path) -> list[Record]:
    return live.kept_records(folder / ENDS, 0) or []


class _BenchOfEnds(live.DriverBench):
    """The ends' launches, each with the settings of the host that it needs."""

    def __init__(self, begun: setup.Session, folder: Path, asked: Asked, host: Host) -> None:
        self._host = host
        self._wanted = [asked.ends.host(one) for one in (0, (1 << len(asked.ends.factors)) - 1)]
        super().__init__(begun, folder)

    def launch(self, which: int, index: int, order: int) -> Launch:
        """Start one launch."""
        self._host.set(self._wanted[which])
        return super().launch(which, index, order)


def _compare_ends(
    folder: Path, asked: Asked, host: Host, minutes: float | None, say: Say
) -> tuple[Verdict, list[Verdict]]:
    """The verdict of the figure that is followed, B against A as they were, and those of the others that differ."""
    place = folder / ENDS
    if not (place / setup.GATE.file).exists():
        both = [
            rules.settle(_only(one, asked.figure), [], "", asked.rule) for one in (asked.ends.first, asked.ends.second)
        ]
        terms = setup.Terms(asked.rule, asked.seed)
        under = dict(asked.circumstances)
        setup.GATE.begin(place, setup.Session(asked.session, *asked.ends.labels, [both], terms, under))
    say(f"the ends: {asked.ends.labels[1]} (B) against {asked.ends.labels[0]} (A)")
    outcome = gates.resume(
        place,
        live.Stop(minutes),
        say,
        lambda begun, where: _BenchOfEnds(begun, where, asked, host),
        f"plumb why --resume {shlex.quote(str(folder))}",
    )
    found = [one for one in outcome.verdicts if one.state != "INVALID" or one.subject in outcome.open]
    if not found:
        first = outcome.verdicts[0]
        raise PlumbError(f"the ends cannot be compared: {first.subject}: {first.reason}", str(place), "plumb show last")
    worst = max(found, key=lambda one: (one.state == "FAIL", one.state == "GAIN", abs(math.log(one.ratio or 1))))
    return worst, [one for one in found if one is not worst and one.state in ACTS]


def _only(variant: Variant, figure: str | None) -> Variant:
    kept = [one for one in variant.figures if figure in (None, one.name)]
    return structs.replace(variant, figures=kept)


def noise_of(ends: Verdict) -> float:
    """The noise of one launch (a log ratio), as the pairs of the ends show it."""
    logs = log_ratios(*ends.pairs.counting, ends.pairs.better)[None, :]
    return float(paired.noise(logs)[0]) / paired.SCALE / math.sqrt(2)


def _search(asked: Asked, ends: Verdict, bench: Bench, say: Say) -> Found:
    factors = len(asked.ends.factors)
    if factors == 1:  # the ends differ in nothing else
        return Found(ends, [Named((0,), ends, ends, ends)], "the ends alone")
    worse_is_b = ends.state == "FAIL"
    opposite: dict[Better, Better] = {"lower": "higher", "higher": "lower"}
    better = ends.pairs.better if worse_is_b else opposite[ends.pairs.better]
    say("")

    def after(number: int, states: dict[str, live.FigureState], launches: int) -> None:
        done = sum(one.decided for one in states.values())
        say(f"round {number + 1:>3}  {launches:>3} launches  {done:>2} of {len(states)} decided")

    rounds = Rounds(bench, better, replace(asked.rule, gain=True), asked.seed, after)
    noise = noise_of(ends)
    return Search(factors, rounds, noise if np.isfinite(noise) and noise > 0 else USUAL_NOISE, say).run()


def broken(outcome: Outcome) -> Iterable[str]:
    """The configurations that failed, with the reasons."""
    return (f"{outcome.asked.ends.mixture(one)}: {why}" for one, why in sorted(outcome.reasons.items()))
