"""From a stack to a configuration that is proven, or to "no significant gain"."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from plumbline.base.errors import PlumbError
from plumbline.base.units import counted, percent
from plumbline.extras.tune import confirm, curves, process, race, screen, target
from plumbline.extras.tune.bench import TuningBench
from plumbline.extras.tune.confirm import Confirmed
from plumbline.extras.tune.curves import Curve, Row, TuningPlace
from plumbline.extras.tune.knobs import Inventory, inventory
from plumbline.extras.tune.race import DEFAULT, Score
from plumbline.extras.tune.screen import CurveFinding
from plumbline.launch import conclusions
from plumbline.mpi.settings import Configuration, Knob, Rule, Setting
from plumbline.records.model import Record
from plumbline.stacks import manifest as manifests

#: launches of the default in the screen
SCREEN = 5
#: rounds of the race of algorithms: the median of three bears one launch that stands out
ALGORITHM_ROUNDS = 3
#: configurations that are confirmed, at most
TRIES = 4
#: the same of settings of the process, which must seem to save so much in the race
PROCESS_TRIES, WORTH = 2, 0.01


@dataclass
class Tuning:
    """The results so far; ``confirmed`` holds every attempt, the last of which is the result.

    ``weights``: the share of each row in a program's time; empty without a profile, when all rows count alike.
    ``curves``, ``findings`` and ``disturbed`` (how many launches of the screen were, and of how many) are by place,
    ``ranks`` the numbers of all ranks there. ``process``: the settings of the process that gain. ``idle``: why there is
    nothing to tune, or empty.
    """

    curves: dict[TuningPlace, Curve]
    findings: dict[TuningPlace, list[CurveFinding]]
    raced: list[list[Score]] = field(default_factory=list)
    confirmed: list[Confirmed] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    weights: dict[Row, float] = field(default_factory=dict)
    disturbed: dict[TuningPlace, tuple[int, int]] = field(default_factory=dict)
    ranks: set[int] = field(default_factory=set)
    process: Confirmed | None = None
    idle: str = ""

    @property
    def winner(self) -> Confirmed | None:
        """The configuration that gains and harms nothing; None: no significant gain."""
        last = self.confirmed[-1] if self.confirmed else None
        return last if last and last.gains else self.process


def screened(bench: TuningBench, before: Tuning | None = None) -> Tuning:
    """The tuning ``before`` with the curves of the default at each place, and their findings.

    Raises :class:`PlumbError` if a launch of the default cannot be used.
    """
    (records,) = bench.stage("screen", [DEFAULT], SCREEN)
    placed = dict(zip(bench.places(), records, strict=True))
    measured: dict[TuningPlace, list[Curve]] = {}
    for place, record in placed.items():
        measured[place] = [curve for curve in curves.of_record(record) if curve is not None]
        if len(measured[place]) < len(record.counting()):
            reason = (record.reasons or ["a launch lacks a size"])[0]
            raise PlumbError(f"the default cannot be measured: {reason}", record.variant.name, "see its launches")
    ranks = {place: _ranks(record) for place, record in placed.items()}
    by_ranks = {
        place: {ranks[other]: each for other, each in measured.items() if other.placement == place.placement}
        for place in measured
    }
    return replace(
        before or Tuning({}, {}),
        idle="",
        curves={place: curves.median(mine) for place, mine in measured.items()},
        findings={
            place: screen.worst_first(
                [*screen.findings(mine, ranks[place]), *screen.of_ranks(by_ranks[place], ranks[place])]
            )
            for place, mine in measured.items()
        },
        disturbed={
            place: (sum(launch.disturbed for launch in record.launches), len(record.launches))
            for place, record in placed.items()
        },
        ranks=set(ranks.values()),
    )


def tuned(bench: TuningBench) -> Tuning:
    """Screen, race and confirm; raises :class:`PlumbError` as :func:`screened` does, and for an unknown knob."""
    calls_made: Mapping[Row, int] = {Row(operation, size): count for operation, size, count in bench.request.counts}
    before = Tuning({}, {})
    if bench.request.program:
        calls_made, share = target.calls(bench)
        before = of_process(bench, share)
        if not calls_made or (before.confirmed and before.confirmed[-1].unproven):
            return before
    tuning = screened(bench, before)
    suspects = list(dict.fromkeys(finding.row.moved_by for each in tuning.findings.values() for finding in each))
    if calls_made:
        tuning.weights = target.shares(calls_made, next(iter(tuning.curves.values())))
        used = {row.moved_by for row in calls_made}
        suspects = sorted(used) if bench.request.program else [name for name in suspects if name in used]
    stack = manifests.load(bench.request.stack)
    offered = inventory(stack)
    tuning.notes += [f"not in this version: {name}" for name in offered.lacking]
    if bench.request.first != DEFAULT:
        _confirm(bench, tuning, offered.knobs, _usable(bench, tuning, bench.request.first), stack.benchmarks)
        if tuning.winner or (tuning.confirmed and tuning.confirmed[-1].unproven):
            return tuning
    knobs = race.chosen(
        race.wanted(offered.knobs, suspects, bench.request.every, bench.request.nodes), bench.request.knobs
    )
    raced, finalists = race.rungs(
        knobs, lambda name, tried, rounds: _scores(_measured(bench.stage, name, tried, rounds), tuning.weights)
    )
    tuning.raced += raced
    best = finalists[0] if finalists else Score(DEFAULT, 0.0, dict.fromkeys(next(iter(tuning.curves.values())), 1.0))
    base = best.configuration
    chosen, left = _in_process(bench, tuning, knobs, offered, base)
    with_rules = Configuration(base.settings, (*chosen, *_by_launches(bench, tuning, left, best)))
    if not _is_accepted(bench, tuning, with_rules, "algorithms by size are left out"):
        with_rules = base
    _confirm(bench, tuning, knobs, [with_rules, *(score.configuration for score in finalists)], stack.benchmarks)
    return tuning


def of_process(bench: TuningBench, share: float) -> Tuning:
    """The race of the settings of the process, chosen by the costs of the program; later steps have the winner.

    ``share``: the largest share of time that a rank spends in MPI.
    """
    program = bench.request.program
    seen = [conclusions.costs(record.launches[-1].ranks) for record in bench.profiles()]
    costs = {kind: line for each in seen for kind, line in each.items()}
    tuning, knobs = Tuning({}, {}, notes=list(costs.values())), process.knobs(costs, program)
    tuning.raced, finalists = race.rungs(
        knobs,
        lambda name, tried, rounds: _scores(_measured(bench.programs, name, tried, rounds), {}, target.curves_of),
        "process",
    )
    tuning.confirmed = prove(finalists, lambda number, each: confirm.confirm(bench, f"process, pairs {number}", each))
    seen_costs = ", ".join([f"{percent(share)} of its time in MPI", *(costs or ["no other cost is seen"])])
    tuning.idle = f"nothing to gain: {program[0].test}: {seen_costs}; "
    if tuning.raced:
        least = min((score.mean for score in race.ranked(tuning.raced[-1])), default=math.inf)
        proof = "the gate saw no gain" if tuning.confirmed else f"a gain must be more than {percent(WORTH)}"
        tuning.idle += f"of {counted(len(race.alone(knobs)), 'setting')} of the process the best took {least:.3f} "
        tuning.idle += f"of the default's time in the race, {proof}"
    else:
        tuning.idle += "no setting of the process is known against that"
    if tuning.winner:
        tuning.process = tuning.winner
        chosen = process.settings(tuning.process.configuration)
        program = tuple(process.applied(each, chosen) for each in program)
        bench.request = msgspec.structs.replace(bench.request, program=program)
    return tuning


def prove(finalists: Sequence[Score], confirmed: Callable[[int, Configuration], Confirmed]) -> list[Confirmed]:
    """The verdicts on finalists that seem to save more than the gate tolerates, until one gains or is undecided."""
    verdicts: list[Confirmed] = []
    for number, score in enumerate([each for each in finalists if each.cost < -WORTH][:PROCESS_TRIES], 1):
        verdicts.append(confirmed(number, score.configuration))
        if verdicts[-1].gains or verdicts[-1].unproven:
            break
    return verdicts


def _usable(bench: TuningBench, tuning: Tuning, brought: Configuration) -> list[Configuration]:
    """``brought`` from another tuning without rules of other numbers of ranks; nothing if the library refuses it."""
    rules_here = tuple(rule for rule in brought.rules if rule.ranks in (None, *tuning.ranks))
    if lost := len(brought.rules) - len(rules_here):
        ranks = ", ".join(map(str, sorted(tuning.ranks)))
        tuning.notes.append(f"{counted(lost, 'rule')} of the file left out: none of {ranks} ranks")
    configuration = Configuration(brought.settings, rules_here)
    return [configuration] if _is_accepted(bench, tuning, configuration, "what the file has is not tried") else []


def _is_accepted(bench: TuningBench, tuning: Tuning, configuration: Configuration, otherwise: str) -> bool:
    """Whether the library can be given ``configuration``; a note says ``otherwise``."""
    try:
        bench.settings(configuration)
    except PlumbError as error:
        tuning.notes.append(f"{otherwise}: {error.message}")
        return False
    return True


Measured = Mapping[Configuration, Sequence[Record]]


def _measured(
    stage: Callable[[str, Sequence[Configuration], int], list[list[Record]]],
    name: str,
    candidates: Sequence[Configuration],
    rounds: int,
) -> Measured:
    """The records of the default and of ``candidates``, of each under all placements."""
    unique = list(dict.fromkeys([DEFAULT, *candidates]))
    return dict(zip(unique, stage(name, unique, rounds), strict=True))


def _scores(
    measured: Measured,
    weights: Mapping[Row, float],
    read: Callable[[Record], list[Curve | None]] | None = None,
) -> list[Score]:
    """The scores of all that was measured but the default; ``read`` gives the curves of a record."""
    curves_of = read or curves.of_record
    # the launches under all placements, one after the other
    launched = {
        each: [curve for record in records for curve in curves_of(record)] for each, records in measured.items()
    }
    return [
        race.score(configuration, candidate, launched[DEFAULT], weights, _reason(measured[configuration]))
        for configuration, candidate in launched.items()
        if configuration != DEFAULT
    ]


def _ranks(record: Record) -> int:
    return record.placement.ranks_per_node * record.placement.nodes


def _reason(records: Sequence[Record]) -> str | None:
    return next((record.reasons[0] for record in records if record.reasons), None)


def _in_process(
    bench: TuningBench, tuning: Tuning, knobs: Sequence[Knob], offered: Inventory, base: Configuration
) -> tuple[list[Rule], list[Knob]]:
    """Rules of the algorithms that can be changed in a process, and the knobs that are left: fixed, or it failed."""
    left = list(knobs)
    contests = [(knob, candidate) for knob in knobs if (candidate := race.contest(knob, offered.settings[knob.name]))]
    if not contests:
        return [], left
    needs = dict.fromkeys(need for knob, _ in contests for need in knob.needs)
    under = Configuration(tuple(dict.fromkeys((*base.settings, *needs))))
    every = bench.contests("algorithms in one process", [contest for _, contest in contests], under, ALGORITHM_ROUNDS)
    chosen: list[Rule] = []
    raced: list[Score] = []
    for (knob, contest), records in zip(contests, every, strict=True):
        if reason := _reason(records):
            tuning.notes.append(f"{knob.name} is raced by launches: {reason}")
            continue
        left.remove(knob)
        for ranks in sorted(set(map(_ranks, records))):
            ratios = contest.ratios([record for record in records if _ranks(record) == ranks], bench.request.sizes)
            scores = [
                race.score(Configuration((Setting(knob.name, value),)), [each], [dict.fromkeys(each, 1.0)], {})
                for value, each in ratios.items()
            ]
            raced += scores
            chosen += race.choose([knob], dict.fromkeys(scores[0].ratios, 1.0), scores, ranks)
    tuning.raced.append(raced)
    return chosen, left


def _by_launches(bench: TuningBench, tuning: Tuning, knobs: Sequence[Knob], best: Score) -> list[Rule]:
    base = best.configuration
    bundles = race.bundles(knobs, base)
    if not bundles:
        return []
    measured = _measured(bench.stage, "algorithms", [base, *bundles], ALGORITHM_ROUNDS)
    tuning.raced.append(_scores(measured, tuning.weights))
    chosen: list[Rule] = []
    for ranks in sorted(set(map(_ranks, measured[DEFAULT]))):  # sizes of some collectives are those of all ranks
        of_ranks = {each: [item for item in records if _ranks(item) == ranks] for each, records in measured.items()}
        scores = {score.configuration: score for score in _scores(of_ranks, tuning.weights)}
        known = scores.pop(base).ratios if base in scores else dict.fromkeys(best.ratios, 1.0)
        if known:
            chosen += race.choose(knobs, known, list(scores.values()), ranks)
    return chosen


def _confirm(
    bench: TuningBench,
    tuning: Tuning,
    knobs: Sequence[Knob],
    wanted: Sequence[Configuration],
    benchmarks: Mapping[str, Any],
) -> None:
    """Try ``wanted`` until one gains and harms nothing; a rule that harms is confined, a setting withdrawn.

    A gain by every protocol of the kernel is tried by OSU's and IMB's programs, if ``benchmarks`` has any. Where a
    program decides, which the tuning is for, nothing is confined.
    Where a row is slower that has no rule, the settings are the cause: the rules are tried without them. If there are
    no settings, the cause ran before that row in the same process: only the rules of collectives that run
    after it stay.
    """
    queue = [configuration for configuration in dict.fromkeys(wanted) if configuration != DEFAULT]
    most = len(tuning.confirmed) + TRIES
    while queue and len(tuning.confirmed) < most:
        name = f"confirm {len(tuning.confirmed) + 1}"
        candidate = queue.pop(0)
        result = _proven(confirm.confirm(bench, name, candidate), tuning, knobs)
        if result.gains and not result.of_program:
            result = _proven(confirm.by_others(bench, f"{name} by others", result, benchmarks), tuning, knobs)
        tuning.confirmed.append(result)
        if result.gains or result.unproven:
            return
        if result.harmful:
            placement, point = result.harmful[0]
            reason = result.verdicts[placement, point].reason
            tuning.notes.append(f"withdrawn: {race.label(candidate)}: {point}, placement {placement}: {reason}")
        if result.of_program:
            continue
        slower = result.rows("FAIL")
        kept = tuple(
            race.without(candidate.rules, slower, sorted({point.row.size for _, point in result.verdicts}), knobs)
        )
        blamed = {row.operation for row in slower} - {rule.collective for rule in candidate.rules}
        if blamed and not candidate.settings:
            kept = race.after(kept, blamed)
        following = Configuration(() if blamed and kept else candidate.settings, kept)
        if following not in (DEFAULT, candidate, *queue):
            queue.insert(0, following)


def _proven(result: Confirmed, tuning: Tuning, knobs: Sequence[Knob]) -> Confirmed:
    """``result`` without the rules, and sizes of rules, that are not proven: there the library's own choice stays."""
    configuration = result.configuration
    kept = tuple(
        race.proven(
            configuration.rules, result.tame, result.gaining, [point.row for _, point in result.verdicts], knobs
        )
    )
    if not result.gains or result.of_program or kept == configuration.rules:
        return result
    tuning.notes.append(
        f"rules confined to what every protocol proves: {race.label(Configuration(rules=configuration.rules))} "
        f"to {race.label(Configuration(rules=kept)) if kept else 'none'}"
    )
    return replace(result, configuration=Configuration(configuration.settings, kept))
