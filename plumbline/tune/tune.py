"""From a stack to a configuration that is proven, or to "no significant gain"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from plumbline.errors import PlumbError
from plumbline.mpi.settings import Configuration, Knob
from plumbline.records.model import Record
from plumbline.stacks import manifest as manifests
from plumbline.tune import confirm, curves, inventory, race, screen
from plumbline.tune.bench import Bench
from plumbline.tune.confirm import Confirmed
from plumbline.tune.curves import Curve, Row
from plumbline.tune.race import DEFAULT, Score
from plumbline.tune.screen import Finding

#: launches of the default in the screen
SCREEN = 5
#: rounds of the race of algorithms
ALGORITHM_ROUNDS = 2
#: configurations that are confirmed, at most
TRIES = 4
#: without a profile every row counts alike
WEIGHTS: dict[Row, float] = {}


@dataclass
class Tuning:
    """What was found on the way; ``confirmed`` holds every attempt, the last one is what became of it."""

    curves: dict[str, Curve]
    findings: dict[str, list[Finding]]
    raced: list[list[Score]] = field(default_factory=list)
    confirmed: list[Confirmed] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def winner(self) -> Confirmed | None:
        """The configuration that gains and harms nothing; None: no significant gain."""
        last = self.confirmed[-1] if self.confirmed else None
        return last if last and last.gains else None


def screened(bench: Bench) -> Tuning:
    """The curves of the default under each placement, and what they show."""
    (records,) = bench.stage("screen", [DEFAULT], SCREEN)
    found, shown = {}, {}
    for record in records:
        measured = [curve for curve in curves.of_record(record) if curve is not None]
        if len(measured) < len(record.counting()):
            reason = (record.reasons or ["a launch lacks a size"])[0]
            raise PlumbError(f"the default cannot be measured: {reason}", record.variant.name, "see its launches")
        placement = record.placement.name
        ranks = record.placement.ranks_per_node * record.placement.nodes
        found[placement] = curves.median(measured)
        shown[placement] = screen.findings(measured, ranks)
    return Tuning(found, shown)


def tuned(bench: Bench) -> Tuning:
    """Screen, race, confirm."""
    found = screened(bench)
    suspects = list(dict.fromkeys(name for each in found.findings.values() for name in screen.suspects(each)))
    offered = inventory.of(manifests.load(bench.asked.stack))
    found.notes += [f"not in this version: {name}" for name in offered.lacking]
    knobs = race.chosen(race.wanted(offered.knobs, suspects, bench.asked.every), bench.asked.knobs)
    finalists = _race(bench, found, knobs)
    best = finalists[0] if finalists else Score(DEFAULT, 0.0, dict.fromkeys(next(iter(found.curves.values())), 1.0))
    _confirm(bench, found, [_with_rules(bench, found, knobs, best), *(one.configuration for one in finalists)])
    return found


def _rung(bench: Bench, found: Tuning, name: str, candidates: Sequence[Configuration], rounds: int) -> list[Score]:
    """The scores of ``candidates``, all measured together with the default."""
    unique = list(dict.fromkeys([DEFAULT, *candidates]))
    every = bench.stage(name, unique, rounds)
    default = _curves(every[0])
    scores = [
        race.score(one, _curves(records), default, WEIGHTS, _reason(records))
        for one, records in zip(unique[1:], every[1:], strict=True)
    ]
    found.raced.append(scores)
    return scores


def _curves(records: Sequence[Record]) -> list[Curve | None]:
    """The launches under all placements, one after the other."""
    return [curve for record in records for curve in curves.of_record(record)]


def _reason(records: Sequence[Record]) -> str | None:
    return next((record.reasons[0] for record in records if record.reasons), None)


def _race(bench: Bench, found: Tuning, knobs: Sequence[Knob]) -> list[Score]:
    """The finalists of the settings that are of no collective alone, best first; none if the default is as good."""
    candidates = race.general(knobs)
    best: list[Score] = []
    for number, rounds in enumerate(race.ROUNDS, 1):
        if not candidates:
            return []
        scores = _rung(bench, found, f"race {number}", candidates, rounds)
        best = race.survivors(scores)
        candidates = [one.configuration for one in best]
        if number < len(race.ROUNDS):
            candidates += race.joined(candidates[: race.LEAST])
    return [one for one in best if one.cost < 0]


def _with_rules(bench: Bench, found: Tuning, knobs: Sequence[Knob], best: Score) -> Configuration:
    """``best`` with the algorithms that win on top of it."""
    base = best.configuration
    bundles = race.bundles(knobs, base)
    if not bundles:
        return base
    scores = _rung(bench, found, "algorithms", [base, *bundles], ALGORITHM_ROUNDS)
    again = scores[0] if base != DEFAULT else best
    if not again.ratios:
        return base
    rules = tuple(race.rules(knobs, again.ratios, [one for one in scores if one.configuration != base]))
    made = Configuration(base.settings, rules)
    try:
        bench.settings(made)
    except PlumbError as error:
        found.notes.append(f"algorithms by size are left out: {error.what}")
        return base
    return made


def _confirm(bench: Bench, found: Tuning, wanted: Sequence[Configuration]) -> None:
    """Try ``wanted`` until one gains and harms nothing; a rule that harms is confined, a setting withdrawn."""
    queue = [one for one in dict.fromkeys(wanted) if one != DEFAULT]
    while queue and len(found.confirmed) < TRIES:
        one = queue.pop(0)
        result = confirm.confirm(bench, f"confirm {len(found.confirmed) + 1}", one)
        found.confirmed.append(result)
        if result.gains or result.unproven:
            return
        slower = [row for _, row in result.rows("FAIL")]
        kept = tuple(race.without(one.rules, slower, bench.asked.sizes))
        if result.harms:
            found.notes.append(f"withdrawn: {race.label(one)}: {_harm(result)}")
        if kept != one.rules and Configuration(one.settings, kept) not in queue:
            queue.insert(0, Configuration(one.settings, kept))


def _harm(result: Confirmed) -> str:
    placement, row = result.rows("INVALID", "FAIL")[0]
    return f"{row} ({placement}): {result.verdicts[placement, row].reason}"
