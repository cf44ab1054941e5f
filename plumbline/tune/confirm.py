"""The proof: fresh pairs of default and tuned by the gate, by every protocol, and by programs that are not ours.

What a call costs depends on how it is called. A row counts as a gain only if it certainly gains by one protocol at
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
from plumbline.gate import live, progress, rules, run, setup
from plumbline.judge import decide, from_records
from plumbline.measure.session import circumstances
from plumbline.mpi.settings import Configuration
from plumbline.records import store
from plumbline.records.variant import Variant
from plumbline.stacks import tuned
from plumbline.statistics.paired import LOOKS, Rule, least_pairs
from plumbline.tune import curves, own, programs
from plumbline.tune.bench import Bench
from plumbline.tune.curves import Row
from plumbline.tune.programs import Launched, Point
from plumbline.tune.race import DEFAULT
from plumbline.tune.rules import holds

#: a gain has to be above 1 %, a loss of more than 1 % withdraws the setting
RULE = Rule(gain=True)
#: seconds after which a launch of a confirmation is ended
TIME_LIMIT_S = 300
Key = tuple[str, Point]


@dataclass(frozen=True)
class Confirmed:
    """The result of the gate for a configuration: a verdict for every point under every placement.

    ``sessions`` are the gate's, that of the kernel first. ``own``: the verdicts are of the figures of a program that
    the tuning is for.
    """

    configuration: Configuration
    verdicts: Mapping[Key, decide.Verdict]
    sessions: tuple[str, ...]
    own: bool = False

    def keys(self, *states: str) -> list[Key]:
        """The placements and points whose verdict is one of ``states``."""
        return [key for key, verdict in self.verdicts.items() if verdict.state in states]

    def rows(self, *states: str) -> list[Row]:
        """The rows with such a verdict by any protocol."""
        return list(dict.fromkeys(point.row for _, point in self.keys(*states)))

    @property
    def harmful(self) -> list[Key]:
        """What is certainly slower, or cannot be judged by the kernel although there were pairs enough."""
        foreign = (programs.OSU, programs.IMB)
        spoiled = [key for key in self.keys("INVALID") if self.verdicts[key].count >= LOOKS[0]]
        return [*(key for key in spoiled if key[1].way not in foreign), *self.keys("FAIL")]

    @cached_property
    def tame(self) -> set[Row]:
        """The rows that are GAIN or PASS by every protocol and under every placement."""
        return {point.row for _, point in self.verdicts} - set(self.rows("FAIL", "INCONCLUSIVE", "INVALID"))

    @property
    def gaining(self) -> list[Row]:
        """The rows that gain: tame, certainly faster by one protocol at least, and changed by the configuration."""
        one = self.configuration
        everywhere = self.own or one.settings
        changed = [row for row in self.rows("GAIN") if everywhere or any(holds(rule, row) for rule in one.rules)]
        return [row for row in changed if row in self.tame]

    @property
    def gains(self) -> bool:
        """Whether it is worth having: something gains by every protocol that measured it, and nothing is slower."""
        return bool(self.gaining) and not self.harmful and self.configuration != DEFAULT

    @property
    def unproven(self) -> str | None:
        """Why nothing can be said: too few pairs, undecided, or a gain by some protocols only; None if it can."""
        if self.harmful or self.gains:
            return None
        faster = set(self.rows("GAIN"))
        open_keys = self.keys("INCONCLUSIVE", "INVALID")
        for placement, point in open_keys:
            if point.row in faster:
                ways = ", ".join(dict.fromkeys(one.way for _, one in self.keys("GAIN") if one.row == point.row))
                reason = self.verdicts[placement, point].reason
                return f"{point.row} is faster by {ways}; by {point.way}: {reason}"
        if 2 * len(open_keys) <= len(self.verdicts):
            return None
        return Counter(self.verdicts[key].reason for key in open_keys).most_common(1)[0][0]


def confirm(bench: Bench, name: str, configuration: Configuration) -> Confirmed:
    """Judge ``configuration`` against the default with pairs of the kernel, by every protocol."""
    sizes = bench.asked.sizes
    return _judged(bench, name, configuration, *_couples(bench, configuration, programs.own(configuration, sizes)))


def by_program(bench: Bench, name: str, configuration: Configuration) -> Confirmed:
    """Judge ``configuration`` against the default by the figures of the program that the tuning is for."""
    return replace(_judged(bench, name, configuration, *own.couples(bench, configuration)), own=True)


def by_others(bench: Bench, name: str, found: Confirmed, benchmarks: Mapping[str, Any]) -> Confirmed:
    """``found`` with the verdicts of OSU's and IMB's programs on the operations that gain.

    ``benchmarks`` are those of the stack. Without such a program ``found`` comes back as it is.
    """
    ranks = {} if bench.asked.rank_counts else {rule.collective: rule.ranks for rule in found.configuration.rules}
    launched = programs.others(list(dict.fromkeys(row.operation for row in found.gaining)), benchmarks, ranks)
    if not launched:
        return found
    more = _judged(bench, name, found.configuration, *_couples(bench, found.configuration, launched))
    return replace(found, verdicts={**found.verdicts, **more.verdicts}, sessions=found.sessions + more.sessions)


Couples = Sequence[Sequence[Variant]]


def _judged(bench: Bench, name: str, configuration: Configuration, couples: Couples, keys: Sequence[Key]) -> Confirmed:
    """The verdicts of a session of pairs, or those of the records of a finished stage; ``keys``: of each figure.

    A stage that proved nothing has not finished: a tuning that is resumed measures more of its pairs.
    """
    file = bench.kept(name)
    if file is None:
        verdicts, session_name = _measure(bench, name, couples, len(keys))
    else:
        verdicts, session_name = decide.decide(from_records.read(file), RULE), file.stem
    found = Confirmed(configuration, dict(zip(keys, verdicts, strict=True)), (session_name,))
    if file is None and not found.unproven:
        bench.keep(name, store.session_file(bench.asked.site, session_name))
    return found


def _measure(bench: Bench, name: str, couples: Couples, series: int) -> tuple[Sequence[decide.Verdict], str]:
    folder = bench.folder / name
    if not (folder / setup.GATE.file).exists():
        setup.GATE.begin(folder, _session(bench, couples))
    begun = setup.GATE.peek(folder)
    log = (folder / "gate.out").open("a", encoding="utf-8")
    with log:

        def say(line: str) -> None:
            print(line, file=log, flush=True)
            if line.startswith("pair "):  # the rest of the line has every figure
                bench.say(line.partition("  tune ")[0].rstrip())
            elif line.startswith(progress.TOO_SHORT):
                bench.say(line)

        least = least_pairs(series, decide.CAMPAIGN_ERROR)
        bench.say(
            f"{name}: pairs of default and tuned, {bench.asked.minutes:g} min at most; a GAIN needs "
            f"{least} pairs of each of {counted(len(begun.couples), 'program')}"
        )
        stop = live.Stop(
            bench.asked.minutes, first_fail=True, least=least, cure="without them nothing is proven: --resume goes on"
        )
        outcome = run.resume(folder, stop, say)
    return outcome.verdicts, begun.name


def _couples(bench: Bench, configuration: Configuration, launched: Iterable[Launched]) -> tuple[Couples, list[Key]]:
    """Default and tuned of each of ``launched`` under each placement, and what each of their figures is of."""
    settings = [bench.settings(one) for one in (DEFAULT, configuration)]
    couples, keys = [], []
    for one in launched:
        for place in bench.places():
            label = f"confirm {one.name}"
            couples.append([curves.variant_of(place, label, 1, each, one.program, TIME_LIMIT_S) for each in settings])
            keys += [(place.label, point) for point in one.points]
    return couples, keys


def _session(bench: Bench, couples: Couples) -> setup.Session:
    asked = bench.asked
    settled = [[rules.settle(variant, [], "", RULE) for variant in couple] for couple in couples]
    terms = setup.Terms(RULE, asked.seed, ("plumb", "tune", asked.stack))
    candidate = asked.stack + tuned.suffix(asked.nodes)
    return setup.Session(store.new_session(), asked.stack, candidate, settled, terms, circumstances([asked.stack]))
