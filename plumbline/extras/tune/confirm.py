"""The proof: fresh pairs of default and tuned by the gate, by every protocol, and by programs that are not ours.

The cost of a call depends on the way it is called. A row counts as a gain only if it certainly gains by one protocol at
least, and by every other one certainly gains, or is certainly not slower than the gate's margin. One that is undecided
by any protocol is not a gain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from plumbline.base.units import counted
from plumbline.extras.tune import curves, target
from plumbline.extras.tune.bench import TuningBench
from plumbline.extras.tune.curves import Launched, Point, Row
from plumbline.extras.tune.race import DEFAULT, holds
from plumbline.gate import live, run, setup
from plumbline.judge import decide
from plumbline.judge.pairs import read_pairs
from plumbline.measure.session import circumstances
from plumbline.mpi.settings import Configuration
from plumbline.records import store
from plumbline.records.variant import Variant
from plumbline.stacks import tuned
from plumbline.statistics.paired import LOOKS, PairedRule, least_pairs

#: a gain has to be above 1 %, a loss of more than 1 % withdraws the setting
RULE = PairedRule(gain=True)
#: seconds after which a launch of a confirmation is ended
TIME_LIMIT_S = 300
Key = tuple[str, Point]


@dataclass(frozen=True)
class Confirmed:
    """The result of the gate for a configuration: a verdict for every point under every placement.

    ``sessions`` are the gate's, that of the kernel first. ``of_program``: the verdicts are of the figures of the
    program that the tuning is for.
    """

    configuration: Configuration
    verdicts: Mapping[Key, decide.Verdict]
    sessions: tuple[str, ...]
    of_program: bool = False

    def keys(self, *states: str) -> list[Key]:
        """The placements and points whose verdict is one of ``states``."""
        return [key for key, verdict in self.verdicts.items() if verdict.state in states]

    def rows(self, *states: str) -> list[Row]:
        """The rows with such a verdict by any protocol."""
        return list(dict.fromkeys(point.row for _, point in self.keys(*states)))

    @property
    def harmful(self) -> list[Key]:
        """The keys that are certainly slower, or that the kernel cannot judge despite enough pairs."""
        foreign = (curves.OSU, curves.IMB)
        spoiled = [key for key in self.keys("INVALID") if self.verdicts[key].count >= LOOKS[0]]
        return [*(key for key in spoiled if key[1].way not in foreign), *self.keys("FAIL")]

    @cached_property
    def tame(self) -> set[Row]:
        """The rows that are GAIN or PASS by every protocol and under every placement."""
        return {point.row for _, point in self.verdicts} - set(self.rows("FAIL", "INCONCLUSIVE", "INVALID"))

    @property
    def gaining(self) -> list[Row]:
        """The rows that gain: tame, certainly faster by one protocol at least, and changed by the configuration."""
        configuration = self.configuration
        everywhere = self.of_program or configuration.settings
        changed = [
            row for row in self.rows("GAIN") if everywhere or any(holds(rule, row) for rule in configuration.rules)
        ]
        return [row for row in changed if row in self.tame]

    @property
    def gains(self) -> bool:
        """Whether a row gains by every protocol that measured it, and no row is slower."""
        return bool(self.gaining) and not self.harmful and self.configuration != DEFAULT

    @property
    def unproven(self) -> str | None:
        """Why nothing is proven: too few pairs, undecided, or a gain by some protocols only; None for a result."""
        if self.harmful or self.gains:
            return None
        faster = set(self.rows("GAIN"))
        open_keys = self.keys("INCONCLUSIVE", "INVALID")
        for placement, point in open_keys:
            if point.row in faster:
                ways = ", ".join(dict.fromkeys(gain.way for _, gain in self.keys("GAIN") if gain.row == point.row))
                reason = self.verdicts[placement, point].reason
                return f"{point.row} is faster by {ways}; by {point.way}: {reason}"
        if 2 * len(open_keys) <= len(self.verdicts):
            return None
        return Counter(self.verdicts[key].reason for key in open_keys).most_common(1)[0][0]


def confirm(bench: TuningBench, name: str, configuration: Configuration) -> Confirmed:
    """Judge ``configuration`` against the default: by the program that the tuning is for, or the kernel's protocols."""
    if bench.request.program:
        return _judged(bench, name, configuration, *target.couples(bench, configuration))
    launched = curves.kernel_launches(configuration, bench.request.sizes)
    return _judged(bench, name, configuration, *_couples(bench, configuration, launched))


def by_others(bench: TuningBench, name: str, confirmed: Confirmed, benchmarks: Mapping[str, Any]) -> Confirmed:
    """``confirmed`` with the verdicts of OSU's and IMB's programs on the operations that gain.

    ``benchmarks`` are those of the stack. Without such a program ``confirmed`` comes back as it is.
    """
    ranks = {} if bench.request.rank_counts else {rule.collective: rule.ranks for rule in confirmed.configuration.rules}
    launched = curves.others(list(dict.fromkeys(row.operation for row in confirmed.gaining)), benchmarks, ranks)
    if not launched:
        return confirmed
    more = _judged(bench, name, confirmed.configuration, *_couples(bench, confirmed.configuration, launched))
    return replace(
        confirmed, verdicts={**confirmed.verdicts, **more.verdicts}, sessions=confirmed.sessions + more.sessions
    )


Couples = Sequence[Sequence[Variant]]


def _judged(
    bench: TuningBench, name: str, configuration: Configuration, couples: Couples, keys: Sequence[Key]
) -> Confirmed:
    """The verdicts of a session of pairs, or those of the records of a finished stage; ``keys``: of each figure.

    A stage that proved nothing has not finished: a tuning that is resumed measures more of its pairs.
    """
    file = bench.kept(name)
    if file is None:
        verdicts, session_name = _measure(bench, name, couples, len(keys))
    else:
        verdicts, session_name = decide.decide(read_pairs(file), RULE), file.stem
    confirmed = Confirmed(
        configuration, dict(zip(keys, verdicts, strict=True)), (session_name,), bool(bench.request.program)
    )
    if file is None and not confirmed.unproven:
        bench.keep(name, store.session_file(bench.request.site, session_name))
    return confirmed


def _measure(bench: TuningBench, name: str, couples: Couples, series: int) -> tuple[Sequence[decide.Verdict], str]:
    folder = bench.folder / name
    request = bench.request
    terms = setup.Terms(RULE, request.seed, ("plumb", "tune", request.stack), measure_equal=True, purpose="tune")
    sides, under = (request.stack, request.stack + tuned.suffix(request.nodes)), circumstances([request.stack])
    begun = setup.begun_for(folder, store.new_session(), sides, couples, terms, under)
    least = least_pairs(series, decide.CAMPAIGN_ERROR)
    bench.say(
        f"{name}: pairs of default and tuned, {request.minutes:g} min at most; a GAIN needs "
        f"{least} pairs of each of {counted(len(begun.couples), 'program')}"
    )
    stop = live.Stop(
        request.minutes, first_fail=True, least=least, cure="without them nothing is proven: --resume goes on"
    )
    with (folder / "gate.out").open("a", encoding="utf-8") as log:
        outcome = run.resume(
            folder,
            stop,
            lambda line: print(line, file=log, flush=True),
            pair=lambda start, line: bench.say(line if request.program else start),
        )
    return outcome.verdicts, begun.name


def _couples(
    bench: TuningBench, configuration: Configuration, launched: Iterable[Launched]
) -> tuple[Couples, list[Key]]:
    """Default and tuned of each of ``launched`` under each placement, and the key of each of their figures."""
    settings = [bench.settings(side) for side in (DEFAULT, configuration)]
    placed = [(launch, place) for launch in launched for place in bench.places()]
    couples = [
        [curves.variant(place, f"confirm {launch.name}", 1, each, launch.program, TIME_LIMIT_S) for each in settings]
        for launch, place in placed
    ]
    return couples, [(place.label, point) for launch, place in placed for point in launch.points]
