"""The tuner on curves with known truth: what the screen finds, what the race keeps, what may be confirmed."""

import itertools
import json
import math
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import samples
import stack_manifest
from gate_pairs import verdict_of
from profiled import call, profile, rank_document, sizes

from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.extras.tune import command, confirm, curves, race, report, screen, target
from plumbline.extras.tune import stages as tune
from plumbline.extras.tune.bench import TUNING, TuningBench, TuningRequest, TuningState
from plumbline.extras.tune.confirm import Confirmed
from plumbline.extras.tune.curves import BARRIER, MESSAGES, SIZES, Point, Row, TuningPlace, of_launch, rows, sweep
from plumbline.extras.tune.curves import variant as tuning_variant
from plumbline.extras.tune.knobs import Inventory, Known
from plumbline.extras.tune.race import DEFAULT
from plumbline.measure import driver, jobs, session
from plumbline.mpi.settings import Configuration, Knob, Rule, Setting

#: us a message, and bytes a us
LATENCY, RATE = 0.3, 5000.0
VECTORS = ("bcast", "reduce", "allreduce", "scan")
EAGER = Setting("eager", "65536")
CELLS, COPY = Setting("cells", "65536"), Setting("copy", "0")


def curve(draw=None, noise=0.02, **times):
    """A library that keeps every guideline between two ranks; ``times``: OPERATION_SIZE=factor."""
    found = {}
    for row in rows(SIZES):
        work = row.size * (1.0 if row.operation in VECTORS or row.operation in MESSAGES else 2.0)
        steps = {
            "pingpong": 2.2, "exchange": 2, "allreduce": 1.9, "allgather": 1.0, "scatter": 0.9, "gather": 0.9,
            "bcast": 0.9,
        }  # fmt: skip
        value = steps.get(row.operation, 1.0) * (LATENCY + work / RATE)
        value *= times.get(f"{row.operation}_{row.size}", 1.0)
        found[row] = value * math.exp(draw.gauss(0, noise) if draw else 0.0)
    found[Row(BARRIER, 0)] = 0.1
    return found


def launches(count=5, seed=1, noise=0.02, **times):
    draw = random.Random(seed)  # noqa: S311 - made-up measurements, not a secret
    return [curve(draw, noise, **times) for _ in range(count)]


def of_kind(found, kind):
    return [str(one.row) for one in found if one.kind == kind]


def test_a_library_that_keeps_the_guidelines_is_not_suspected_of_its_messages():
    found = screen.findings(launches(), 2)
    assert not [one for one in found if one.kind in ("monotony", "split", "knee")], found


@pytest.mark.parametrize(("times", "kind", "row"), [
    ({"allreduce_64": 4.0}, "monotony", "allreduce 64 B"),
    ({f"pingpong_{size}": 5.0 for size in SIZES if size >= 4096}, "split", "pingpong 4 KiB"),
    ({f"pingpong_{size}": 5.0 for size in SIZES if size >= 4096}, "knee", "pingpong 4 KiB"),
    ({"allreduce_65536": 3.0}, "mock-up", "allreduce 64 KiB"),
], ids=["hole", "twice", "eager", "mock-up"])  # fmt: skip
def test_what_is_broken_on_purpose_is_found(times, kind, row):
    assert row in of_kind(screen.findings(launches(**times), 2), kind)


def test_what_one_launch_does_not_show_is_no_finding():
    """Launches are bimodal: four with a hole and one without it are not a hole."""
    mixed = [*launches(4, allreduce_64=4.0), *launches(1)]
    assert "allreduce 64 B" not in of_kind(screen.findings(mixed, 2), "monotony")
    assert screen.findings(launches(pingpong_4096=5.0), 2)[0].row.moved_by == "p2p"


@pytest.mark.parametrize(("factors", "ranks", "against", "times"), [
    ({3: 10.0}, 3, {"against 2 ranks, times 1.5", "against 4 ranks, which are more"}, {20 / 3, 10}),
    ({4: 10.0, 5: 10.0}, 4, {"against 3 ranks, times 1.33"}, {7.5}),
    ({2: 2.0}, 2, {"against 3 ranks, which are more"}, {2.0}),
])  # fmt: skip
def test_a_number_of_ranks_that_is_slower_than_the_next_is_found(factors, ranks, against, times):
    """Other rows and numbers of ranks are as they are for all."""
    curves = {count: launches(seed=count, noise=0.01, bcast_65536=factors.get(count, 1.0)) for count in range(2, 6)}
    found = {count: list(screen.of_ranks(curves, count)) for count in curves}
    assert {one.against for one in found[ranks]} == against
    assert {str(one.row) for one in found[ranks]} == {"bcast 64 KiB"}
    assert sorted(one.factor for one in found[ranks]) == pytest.approx(sorted(times), rel=0.05)
    assert [count for count in curves if found[count]] == [ranks]


def test_a_number_of_ranks_may_be_slower_in_all_launches_but_one_or_by_as_much_as_it_is_larger():
    slow = [*launches(4, bcast_65536=10.0), *launches(1)]
    assert list(screen.of_ranks({2: launches(), 3: slow}, 3)) == []
    longer = launches(**{f"{row.operation}_{row.size}": 2.9 for row in rows(SIZES)})
    twice = {4: launches(), 8: [{**one, Row(BARRIER, 0): 0.29} for one in longer]}
    assert list(screen.of_ranks(twice, 8)) == []


def knobs():
    return [
        Knob("eager", ("8192", "65536"), "start", "intra"),
        Knob("cells", ("65536",), "start", "intra"),
        Knob("copy", ("0",), "start", "intra"),
        Knob("network", ("x",), "start", "inter"),
        Knob("bcast_algorithm", ("1", "2", "3"), "running", "both", ("bcast",)),
        Knob("alltoall_algorithm", ("1", "2"), "running", "both", ("alltoall",)),
    ]


def test_pairs_of_settings_are_candidates_and_settings_between_nodes_are_not():
    mine = race.wanted(knobs(), ["bcast"], every=False)
    candidates = race.alone(mine) + race.pairs(mine)
    assert Configuration((CELLS, COPY)) in candidates
    assert Configuration((EAGER,)) in candidates
    assert {one.name for each in candidates for one in each.settings} == {"eager", "cells", "copy"}


def test_only_suspects_are_raced_unless_all_are_asked_for():
    assert [knob.name for knob in race.wanted(knobs(), ["bcast"], every=False)][-1] == "bcast_algorithm"
    assert race.wanted(knobs(), [], every=False) == []
    assert len(race.wanted(knobs(), [], every=True)) == 5
    between = race.wanted(knobs(), [], every=True, nodes=2)
    assert [knob.name for knob in between][:2] == ["network", "bcast_algorithm"]


def test_knobs_can_be_named():
    assert [knob.name for knob in race.chosen(knobs(), ["copy"])] == ["copy"]
    assert len(race.chosen(knobs(), [])) == len(knobs())
    with pytest.raises(PlumbError, match="no knob 'cpoy' to race here") as caught:
        race.chosen(knobs(), ["cpoy"])
    assert caught.value.cure == "did you mean 'copy'?"


def test_one_launch_tries_an_algorithm_of_each_collective():
    base = Configuration((EAGER,))
    names = [[one.value for one in each.settings[1:]] for each in race.bundles(knobs(), base)]
    assert names == [["1", "1"], ["2", "2"], ["3"]]


def ranked(found):
    return [race.label(one.configuration) for one in race.survivors(found)]


def scored(setting, rounds=3, seed=1, **times):
    default, candidate = launches(rounds, seed), launches(rounds, seed + 1, **times)
    return race.score(Configuration((setting,)), candidate, default, {})


FASTER = {f"pingpong_{size}": 0.25 for size in (4096, 8192, 16384, 32768)}


def test_a_gain_that_costs_another_operation_does_not_win():
    """What triples ping-pong and costs alltoall 30 % of its time is worse than what gains less and costs nothing."""
    harm = {f"alltoall_{size}": 1.4 for size in (65536, 131072, 262144)} | {f"bcast_{1 << 20}": 1.5}
    both = scored(Setting("both", "1"), **{f"pingpong_{size}": 0.6 for size in (4096, 8192)}, **harm)
    plain = scored(EAGER, **FASTER)
    worse = scored(Setting("bad", "1"), **harm)
    assert ranked([worse, both, plain])[0] == "eager=65536"
    assert plain.cost < 0 < worse.cost


def test_an_aborted_launch_is_an_infeasible_point():
    aborted = race.score(Configuration((CELLS,)), [None], launches(1), {}, "it ended with signal 6")
    assert (aborted.cost, aborted.reason, aborted.ratios) == (math.inf, "it ended with signal 6", {})
    assert ranked([aborted, scored(EAGER, **FASTER)]) == ["eager=65536"]
    lost = race.score(Configuration((EAGER,)), launches(1), [None], {})
    assert (lost.cost, race.failed([lost, aborted])) == (math.inf, [aborted.configuration])
    assert "default" in lost.reason


def test_weights_say_what_counts():
    default, candidate = launches(3), launches(3, 2, pingpong_4096=0.25, bcast_8=2.0)
    only = race.score(DEFAULT, candidate, default, {Row("pingpong", 4096): 7.0})
    assert only.cost == pytest.approx(math.log(0.25), abs=0.05)


def test_better_settings_are_joined():
    parts = [Configuration((EAGER,)), Configuration((CELLS, COPY)), Configuration((Setting("eager", "8192"),))]
    joined = race.joined(parts)
    assert Configuration((CELLS, COPY, EAGER)) in joined
    assert all(len({one.name for one in each.settings}) == len(each.settings) for each in joined)
    swapped = race.joined([Configuration((COPY,)), Configuration((CELLS,))])
    assert swapped == [Configuration((CELLS, COPY))], "one order, or the same is raced twice"


def algorithm_scores(**factors):
    base = dict.fromkeys(rows(SIZES), 1.0)
    return [
        race.Score(
            Configuration((Setting("bcast_algorithm", value),)),
            0.0,
            base | {Row("bcast", size): ratio for size, ratio in factors.get(f"a{value}", {}).items()},
        )
        for value in "123"
    ]


def test_an_algorithm_wins_for_its_sizes_only():
    scores = algorithm_scores(a1={8: 0.5, 64: 0.6, 4096: 2.0}, a2={4096: 0.4, 1 << 20: 0.7})
    found = race.choose(knobs(), dict.fromkeys(rows(SIZES), 1.0), scores, 2)
    assert found == [Rule("bcast", *of, 2) for of in (("1", 0, 256), ("2", 4096, 8192), ("2", 1 << 20, None))]
    assert race.choose(knobs(), dict.fromkeys(rows(SIZES), 1.0), algorithm_scores(a1={8: 0.97}), 2) == []


def test_a_rule_that_harms_is_confined_to_the_other_sizes():
    whole = [Rule("bcast", "1", 0, 8192, 4), Rule("alltoall", "2", 4096, None)]
    cut = race.without(whole, [Row("bcast", 1024), Row("alltoall", 4096)], SIZES, knobs())
    assert cut == [Rule("bcast", "1", 0, 1024, 4), Rule("bcast", "1", 2048, 8192, 4), Rule("alltoall", "2", 8192, None)]
    assert race.without(whole[:1], [Row("bcast", size) for size in SIZES], SIZES, knobs()) == []
    assert race.without(whole, [], SIZES, knobs()) == whole


def test_a_collective_that_is_slower_where_no_rule_holds_loses_all_its_rules():
    chosen = [Rule("bcast", "1", 0, 64, 2), Rule("alltoall", "2", 4096, None, 2)]
    assert race.without(chosen, [Row("bcast", 1024), Row("scan", 8)], SIZES, knobs()) == chosen[1:]


@pytest.mark.parametrize(("factors", "algorithm"), [
    ({"a1": dict.fromkeys(SIZES, 0.6), "a2": dict.fromkeys(SIZES, 0.5) | {8: 9.0}}, "1"),
    ({"a1": dict.fromkeys(SIZES[:4], 0.6) | dict.fromkeys(SIZES[4:], 1.2)}, None),
    ({"a1": dict.fromkeys(SIZES, 0.97)}, None),
])  # fmt: skip
def test_an_algorithm_that_is_taken_for_all_sizes_only_has_to_win_over_all(factors, algorithm):
    whole = [Knob("bcast_algorithm", ("1", "2", "3"), "running", "both", ("bcast",), sizes="all")]
    found = race.choose(whole, dict.fromkeys(rows(SIZES), 1.0), algorithm_scores(**factors), 2)
    assert found == ([Rule("bcast", algorithm, 0, None, 2)] if algorithm else [])
    assert race.without(found, [Row("bcast", 8)], SIZES, whole) == []
    assert race.without(found, [Row("reduce", 8)], SIZES, whole) == found


def test_where_a_library_must_be_told_of_each_size_rules_have_no_gaps_and_stay_together():
    each = [Knob("bcast_algorithm", ("1", "2", "3"), "running", "both", ("bcast",), sizes="each")]
    some = dict.fromkeys(SIZES, 1.2) | dict.fromkeys(SIZES[:4], 0.6)
    scores = algorithm_scores(a1=some, a2=dict.fromkeys(SIZES, 1.01), a3=dict.fromkeys(SIZES, 1.3))
    found = race.choose(each, dict.fromkeys(rows(SIZES), 1.0), scores, 2)
    assert found == [Rule("bcast", "1", 0, SIZES[4], 2), Rule("bcast", "2", SIZES[4], None, 2)]
    assert race.without(found, [Row("bcast", 8)], SIZES, each) == []
    every = [Row("bcast", size) for size in SIZES]
    assert race.proven(found, every, every[:1], every, each) == found
    assert race.proven(found, every, [Row("scan", 8)], every, each) == []
    assert race.proven(found, every[:-1], every[:1], every, each) == [], "undecided at one size"
    worse = algorithm_scores(a1=some, a2=dict.fromkeys(SIZES, 1.3), a3=dict.fromkeys(SIZES, 1.3))
    assert race.choose(each, dict.fromkeys(rows(SIZES), 1.0), worse, 2) == []


def test_an_algorithm_of_the_barrier_is_a_rule_without_sizes():
    knob = Knob("barrier_algorithm", ("4",), "running", "both", (BARRIER,))
    one = race.Score(Configuration((Setting(knob.name, "4"),)), 0.0, {Row(BARRIER, 0): 0.5, Row("bcast", 8): 1.0})
    found = race.choose([knob], dict.fromkeys(rows(SIZES), 1.0), [one], 2)
    assert found == [Rule(BARRIER, "4", 0, None, 2)]
    assert race.without(found, [Row(BARRIER, 0)], SIZES, [knob]) == []
    assert race.proven(found, [Row(BARRIER, 0)], [Row(BARRIER, 0)], [Row(BARRIER, 0)], [knob]) == found


def test_what_is_infeasible_is_one_line_for_each_cause():
    odd = Setting("pml", "ucx")
    scores = [
        race.Score(Configuration(settings), math.inf, {}, f"abort {number}")
        for number, settings in enumerate([(EAGER, odd), (odd,), (CELLS,), (COPY, odd)])
    ]
    lines = [line for line in report.race([scores]).splitlines() if line.startswith("infeasible")]
    assert lines == ["infeasible: pml=ucx (and 2 candidates with it): abort 1", "infeasible: cells=65536: abort 2"]


def bcast_rows(*sizes):
    return [Row("bcast", size) for size in sizes]


def test_a_rule_stays_where_every_size_is_proven_and_one_gains():
    """4 KiB is undecided: both parts end behind their last measured size, and the one without a gain is left out."""
    rule = Rule("bcast", "1", 0, None, 2)
    measured = bcast_rows(8, 1024, 2048, 4096, 8192, 16384)
    tame = set(measured) - set(bcast_rows(4096))
    assert race.proven([rule], tame, bcast_rows(1024), measured, knobs()) == [Rule("bcast", "1", 0, 2049, 2)]
    both = race.proven([rule], tame, bcast_rows(1024, 8192), measured, knobs())
    assert both == [Rule("bcast", "1", 0, 2049, 2), Rule("bcast", "1", 8192, 16385, 2)]
    assert race.proven([rule], tame, [], measured, knobs()) == []
    whole = Rule("bcast", "2", 1024, 8192, 2)
    of_whole = bcast_rows(1024, 4096)
    assert race.proven([whole], of_whole, of_whole[1:], bcast_rows(512, 1024, 4096, 8192), knobs()) == [whole]


def test_what_takes_turns_in_one_process():
    start, running = (Knob("bcast_algorithm", ("1", "b", "c"), at, "both", ("bcast",)) for at in ("start", "running"))
    known = Known("bcast_algorithm", "int", "a", "a", True, "a, b", "", ("a", "b"))
    assert race.contest(start, known) is None
    assert race.contest(knobs()[0], known) is None
    contest = race.contest(running, known)
    assert contest.numbers == {"1": "1", "b": "1"}, "a word that the library lacks is left out"
    made = tuning_variant(TuningPlace("s", "p", "o", "core"), contest.setting, 3, {"x": "1"}, contest.program((8, 64)))
    assert made.arguments[:4] == ["--operation", "bcast", "--race", "bcast_algorithm=1,1"]
    assert (made.arguments[-1], made.launches, made.settings) == ("8,64", 3, {"x": "1"})
    where = {"operation": "bcast", "bytes": 64, "in_place": "no", "bcast_algorithm": 1}
    assert {"bcast_64_b": where} == {one.name: one.where for one in made.figures if one.name == "bcast_64_b"}


class FakeBench:
    """Stages of made-up launches: ``truth`` tells a configuration's factors, ``verdicts`` what the gate says.

    ``of_others``: what the gate says of the same with programs of others. ``disturbed``: numbers of launches.
    """

    disturbed = ()
    program = ()
    first = DEFAULT

    def __init__(self, truth, verdicts, of_others):
        self.request = SimpleNamespace(
            stack="s", placements=("core",), sizes=SIZES, every=False, knobs=(), counts=(), nodes=1,
            program=self.program, first=self.first,
        )  # fmt: skip
        self.truth, self.verdicts, self.seed, self.confirmed = truth, verdicts, itertools.count(), []
        self.stages, self.launched, self.of_others = [], [], of_others

    def places(self):
        return [TuningPlace("x", "y", "s", "core")]

    def settings(self, configuration):
        if any(one.name == "refused" for one in configuration.settings):
            raise PlumbError("the library has no such rule")
        return {one.name: one.value for one in configuration.settings}

    def stage(self, name, candidates, rounds):
        self.stages.append(name)
        self.launched += candidates
        return [[self.record(self.truth(one), rounds)] for one in candidates]

    def contests(self, name, contests, under, rounds):
        """A process takes the values of ``bcast_algorithm`` in turn; that of ``alltoall_algorithm`` is aborted."""
        found = []
        for one in contests:
            known = {it.name: self.ratio(under, one, value, row) for (value, row), it in one.figures(SIZES).items()}
            record = self.record({}, 0)
            record.figure = lambda name, known=known: SimpleNamespace(value=known[name])
            if one.operation == "alltoall":
                record.reasons = ["launch 0 ended with status 1"]
            found.append([record])
        return found

    def ratio(self, under, contest, value, row):
        factors = self.truth(Configuration((*under.settings, Setting(contest.setting, value)))) or {}
        return factors.get(f"{row.operation}_{row.size}", 1.0)

    def record(self, times, rounds):
        measured = launches(rounds, next(self.seed), **times) if times is not None else [None] * rounds
        return SimpleNamespace(
            curves=measured,
            counting=lambda: measured,
            launches=[SimpleNamespace(disturbed=number in self.disturbed) for number in range(rounds)],
            reasons=[] if times is not None else ["it aborted"],
            variant=SimpleNamespace(name="v"),
            placement=SimpleNamespace(name="core", ranks_per_node=2, nodes=1),
        )

    def confirm(self, _bench, name, configuration):
        self.confirmed.append(configuration)
        return Confirmed(configuration, self.judged(rows(SIZES), "start", self.verdicts(configuration)), ("session",))

    def by_others(self, _bench, name, found, benchmarks):
        measured = [row for row in rows(SIZES) if row.operation in {one.operation for one in found.gaining}]
        more = self.judged(measured, "OSU", self.of_others(found.configuration))
        return replace(found, verdicts={**found.verdicts, **more}, sessions=("session", "others"))

    def judged(self, measured, way, verdicts):
        states = {("core", Point(way, row)): verdict_of(str(row), "PASS", 19, 1.0, (0.99, 1.01)) for row in measured}
        for row, (state, ratio, *pairs) in verdicts.items():
            states["core", Point(way, row)] = verdict_of(
                str(row), state, *(pairs or [19]), ratio, (ratio * 0.9, ratio * 1.1), reason=f"{state} of {row}"
            )
        return states


@pytest.fixture
def tuned(monkeypatch):
    """Run the tuner on a library with such a truth and such verdicts; what was found and the bench."""

    def run(truth, verdicts, counts=(), mine=None, every=False, of_others=lambda one: {}):
        mine = tuple(mine or knobs()[:5])
        bench = FakeBench(truth, verdicts, of_others)
        bench.request.every = every
        bench.request.counts = counts
        monkeypatch.setattr(tune.curves, "of_record", lambda record: record.curves)
        monkeypatch.setattr(tune.confirm, "confirm", bench.confirm)
        monkeypatch.setattr(tune.confirm, "by_others", bench.by_others)
        monkeypatch.setattr(tune.manifests, "load", lambda name: stack_manifest.made(name))
        known = {knob.name: Known(knob.name, "int", "0", "0", True, "", "") for knob in mine}
        monkeypatch.setattr(tune, "inventory", lambda manifest: Inventory("", known, mine, ("gone",)))
        return tune.tuned(bench), bench

    return run


BAD_EAGER = {f"pingpong_{size}": 4.0 for size in (512, 1024, 2048, 4096)}
FASTER_BCAST = {Row("bcast", size): ("GAIN", 0.5) for size in SIZES[:3]}


def has(configuration, name):
    return any(one.name == name for one in configuration.settings)


def cured(configuration):
    return {} if has(configuration, "eager") else BAD_EAGER


def second_algorithm_wins(configuration):
    chosen = {one.value for one in configuration.settings if one.name == "bcast_algorithm"}
    return {"allreduce_64": 4.0} | {f"bcast_{size}": 0.5 if "2" in chosen else 1.0 for size in SIZES[:3]}


def test_an_algorithm_that_wins_within_a_process_is_a_rule_and_needs_no_launches_of_its_own(tuned):
    found, bench = tuned(second_algorithm_wins, lambda one: FASTER_BCAST if one.rules else {}, every=True)
    assert found.winner.configuration.rules == (Rule("bcast", "2", 0, SIZES[3], 2),)
    assert "algorithms" not in bench.stages


def test_algorithms_whose_process_fails_are_raced_by_launches(tuned):
    found, bench = tuned(lambda one: {}, lambda one: {}, mine=knobs(), every=True)
    assert "alltoall_algorithm is raced by launches: launch 0 ended with status 1" in found.notes
    assert "algorithms" in bench.stages
    names = {one.name for score in found.raced[-1] for one in score.configuration.settings}
    assert "alltoall_algorithm" in names
    assert "bcast_algorithm" not in names


def test_settings_that_were_made_bad_are_found_and_cured(tuned):
    found, _ = tuned(cured, lambda one: {Row("pingpong", 1024): ("GAIN", 0.25)})
    assert has(found.winner.configuration, "eager")
    assert report.closing(found).startswith("GAIN: pingpong of 1 KiB: 0.25 to 1.00 of the default's time; no row is ")
    assert report.gains(found.winner).splitlines()[-1].endswith("  start; OSU")
    assert "not in this version: gone" in found.notes


def test_the_sizes_of_a_gain_leave_out_the_barrier_which_has_none(tuned):
    gain = dict.fromkeys([Row("pingpong", 1024), Row("pingpong", 4096), Row("barrier", 0)], ("GAIN", 0.25))
    found, _ = tuned(cured, lambda one: gain)
    assert report.closing(found).startswith("GAIN: pingpong, barrier of 1 KiB to 4 KiB: ")
    lines = dict(line.split(maxsplit=1) for line in report.gains(found.winner).splitlines())
    assert lines["pingpong"].startswith("1 KiB, 4 KiB ")
    assert lines["barrier"][0].isdigit()


def test_two_settings_that_help_together_only_are_found(tuned):
    def truth(configuration):
        names = {one.name for one in configuration.settings}
        if names >= {"cells", "copy"}:
            return {**FASTER, "allreduce_64": 4.0}
        if "copy" in names:
            return {**{f"pingpong_{size}": 1.3 for size in SIZES}, "allreduce_64": 4.0}
        return {f"pingpong_{size}": 1.1 for size in SIZES} if "cells" in names else {"allreduce_64": 4.0}

    found, _ = tuned(truth, lambda one: {Row("pingpong", 4096): ("GAIN", 0.3)})
    assert {"cells", "copy"} <= {one.name for one in found.winner.configuration.settings}


def test_what_aborts_is_launched_once(tuned):
    """Its value is in no pair and in no union."""

    def truth(configuration):
        return None if CELLS in configuration.settings else {"allreduce_64": 4.0}

    found, bench = tuned(truth, lambda one: {})
    assert [one for one in bench.launched if CELLS in one.settings] == [Configuration((CELLS,))]
    assert any(one.reason == "it aborted" for one in found.raced[0])
    assert any(len(one.settings) == 2 for one in bench.launched), "the other pairs are raced"


@pytest.mark.parametrize(("disturbed", "said"), [((), None), ((1, 3), "2 of 5 launches were disturbed: ")])
def test_a_screen_of_a_loaded_host_says_that_the_load_may_hide_knees(tuned, monkeypatch, disturbed, said):
    monkeypatch.setattr(FakeBench, "disturbed", disturbed)
    found, _ = tuned(lambda one: {}, lambda one: {})
    lines = [line for line in report.screen(found).splitlines() if "were disturbed" in line]
    assert [line.startswith(said) for line in lines] == ([True] if said else [])


def test_a_setting_that_harms_is_withdrawn_and_the_next_is_tried(tuned):
    def verdicts(configuration):
        harm = {Row("alltoall", 65536): ("FAIL", 1.3)} if has(configuration, "eager") else {}
        return {**harm, Row("pingpong", 4096): ("GAIN", 0.3)}

    def truth(configuration):
        times = FASTER if has(configuration, "eager") else {"pingpong_4096": 0.5}
        return {"allreduce_64": 4.0, **({} if configuration == DEFAULT else times)}

    found, _ = tuned(truth, verdicts)
    withdrawn = [note for note in found.notes if note.startswith("withdrawn: ")]
    assert any("alltoall 64 KiB (start), placement core: " in note for note in withdrawn)
    assert found.winner is None or not has(found.winner.configuration, "eager")


def test_rules_are_tried_without_the_settings_that_harm_where_no_rule_is(tuned):
    """The first confirmation found gather slower, whose algorithm nobody chose."""

    def truth(configuration):
        names = {one.name: one.value for one in configuration.settings}
        algorithm = {f"bcast_{size}": 0.5 for size in SIZES} if names.get("bcast_algorithm") == "2" else {}
        eager = {f"pingpong_{size}": 0.4 for size in SIZES} if "eager" in names else {}
        return {"allreduce_64": 4.0, **algorithm, **eager}

    def verdicts(configuration):
        harmed = {Row("gather", 2048): ("FAIL", 1.14)} if configuration.settings else {}
        return harmed | ({Row("bcast", 8): ("GAIN", 0.5)} if configuration.rules else {})

    found, bench = tuned(truth, verdicts, every=True)
    assert found.winner.configuration == Configuration(rules=(Rule("bcast", "2", 0, SIZES[-1] + 1, 2),))
    assert [bool(one.settings) for one in bench.confirmed] == [True, False]


def test_rules_of_what_ran_before_a_slower_row_are_left_out(tuned):
    """Reduce has no rule; in the same process what is chosen for bcast was used before it, that for scan after it."""

    def truth(configuration):
        chosen = {one.name for one in configuration.settings if one.value == "1"}
        factors = {f"bcast_{size}": 0.5 for size in SIZES} if "bcast_algorithm" in chosen else {}
        return {"allreduce_64": 4.0} | factors | ({f"scan_{size}": 0.5 for size in SIZES} if "scan_x" in chosen else {})

    def verdicts(configuration):
        collectives = {rule.collective for rule in configuration.rules}
        harmed = {Row("reduce", 2048): ("FAIL", 1.12)} if "bcast" in collectives else {}
        return harmed | ({Row("scan", 8): ("GAIN", 0.5)} if "scan" in collectives else {})

    mine = [*knobs()[:5], Knob("scan_x", ("1",), "running", "both", ("scan",))]
    found, bench = tuned(truth, verdicts, mine=mine, every=True)
    assert found.winner.configuration == Configuration(rules=(Rule("scan", "1", 0, SIZES[-1] + 1, 2),))
    assert len(bench.confirmed) == 2


def proven(one):
    return {Row("bcast", 4096): ("GAIN", 0.5)} if any(rule.algorithm == "9" for rule in one.rules) else {}


BROUGHT = Configuration((), (Rule("bcast", "9", 4096, 8192, 2), Rule("bcast", "9", 0, None, 128)))


def test_what_another_tuning_proved_is_confirmed_first_and_nothing_is_raced(tuned, monkeypatch):
    monkeypatch.setattr(FakeBench, "first", BROUGHT)
    found, bench = tuned(lambda one: BAD_EAGER, proven)
    assert found.winner.configuration == Configuration((), BROUGHT.rules[:1])
    assert bench.stages == ["screen"]
    assert "1 rule of the file left out: none of 2 ranks" in found.notes


def test_what_gains_nothing_here_is_raced_as_usual(tuned, monkeypatch):
    monkeypatch.setattr(FakeBench, "first", Configuration((Setting("cells", "1"),)))
    found, bench = tuned(lambda one: {} if EAGER in one.settings else BAD_EAGER, lambda one: {})
    assert "race 1" in bench.stages
    assert found.confirmed[0].configuration == bench.request.first
    assert len(found.confirmed) > 1


def test_what_the_library_refuses_of_a_file_is_said(tuned, monkeypatch):
    monkeypatch.setattr(FakeBench, "first", Configuration((Setting("refused", "1"),)))
    found, bench = tuned(lambda one: BAD_EAGER, lambda one: {})
    assert "what the file has is not tried: the library has no such rule" in found.notes
    assert "race 1" in bench.stages


def test_settings_without_effect_end_without_a_gain(tuned):
    found, bench = tuned(lambda one: {"allreduce_64": 4.0}, lambda one: {})
    assert found.winner is None
    assert report.closing(found) == report.NO_GAIN
    assert len(bench.confirmed) <= tune.TRIES


@pytest.mark.parametrize(("state", "pairs"), [("INVALID", 5), ("INCONCLUSIVE", 90)])
def test_what_is_undecided_proves_nothing_and_nothing_else_is_tried(tuned, state, pairs):
    def truth(configuration):
        return {"allreduce_64": 4.0, **(FASTER if configuration != DEFAULT else {})}

    found, bench = tuned(truth, lambda one: {row: (state, 0.5, pairs) for row in rows(SIZES)})
    assert found.winner is None
    assert len(bench.confirmed) == 1
    assert report.closing(found).startswith(f"not proven: {state} of ")


def test_a_launch_that_lacks_a_row_has_no_curve():
    item = SimpleNamespace(metric="time", params={"operation": "bcast", "bytes": 8, "in_place": "no"}, value=1.0)
    launch = SimpleNamespace(verified=True, status="ok", measurements=[item])
    assert of_launch(launch, [Row("bcast", 8)]) == {Row("bcast", 8): 1.0}
    assert of_launch(launch, rows([8])) is None
    launch.verified = False
    assert of_launch(launch, [Row("bcast", 8)]) is None


def asked(**more):
    return TuningRequest("local", "default", "s", "openmpi", ("core",), (8,), 1, {"commit": "a", "stacks": {}}, **more)


@pytest.fixture
def under(monkeypatch):
    """Makes these the circumstances of now."""

    def make(**changes):
        now = {"commit": "a", "stacks": {}, **changes}
        before = {**now, "nodes": None, "environment": None}
        monkeypatch.setattr(
            session, "circumstances", lambda stacks, part=None: dict(before if part and jobs.needed(part) else now)
        )
        return now

    return make


def test_a_tuning_goes_on_with_what_it_has(tmp_path, under):
    folder = tmp_path / "work"
    under()
    TUNING.begin(folder, TuningState(asked()))
    TuningBench(folder, TUNING.load(folder), print).keep("screen", tmp_path / "x.jsonl")
    again = TuningBench(folder, TUNING.load(folder), print)
    assert again.kept("screen") == tmp_path / "x.jsonl"
    assert again.kept("race 1") is None
    assert again.request == asked()
    assert TuningBench(folder, TUNING.load(folder), print, 90.0).request == asked(minutes=90.0)
    under(commit="b")
    with pytest.raises(PlumbError, match="commit changed since this tuning began: a, now b"):
        TUNING.load(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(PlumbError, match="no tuning to resume"):
        TUNING.load(tmp_path / "empty")


def test_the_state_of_an_earlier_version_is_read(tmp_path):
    begun = {"site": "local", "partition": "default", "stack": "s", "family": "openmpi", "placements": ["core"]}
    begun |= {"sizes": [8], "seed": 1, "circumstances": {"commit": "a", "stacks": {}}}
    (tmp_path / "tune.json").write_text(json.dumps({"asked": begun, "stages": {"screen": "x.jsonl"}}))
    assert TUNING.peek(tmp_path) == TuningState(asked(), {"screen": "x.jsonl"})


def test_where_a_scheduler_hands_out_the_nodes_a_job_does_it(tmp_path, monkeypatch, under):
    partition = samples.partition(name="cpu", scheduler="slurm")
    monkeypatch.setattr(command.site, "load", lambda name: SimpleNamespace(name=name, partitions=[partition]))
    monkeypatch.setattr(command.manifests, "load", lambda name: stack_manifest.made(name, "openmpi"))
    under(nodes="login", environment="e")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    submitted = []
    monkeypatch.setattr(jobs, "run", lambda submission, say: submitted.append(submission) or 5)
    folder = tmp_path / "work"
    words = ["tune", "s", "--site", "c", "--nodes", "2", "--screen", "--output", "x.json", "--work", str(folder)]
    assert cli.main(words) == 5
    (job,) = submitted
    assert (job.partition, job.nodes, job.hosts) == (partition, 2, ())
    assert job.command[-6:] == ["tune", "--resume", str(folder), "--screen", "--output", str(Path("x.json").absolute())]
    unknown = {"commit": "a", "stacks": {}, "nodes": None, "environment": None}
    assert TUNING.peek(folder).circumstances == unknown


def test_a_dry_run_counts_launches_and_minutes(monkeypatch, capsys, refused):
    monkeypatch.setattr(command.manifests, "load", lambda name: stack_manifest.made(name, "openmpi"))
    assert cli.main(["tune", "some", "--dry-run", "--placement", "core", "--placement", "l3"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "screen: 10 launches"
    assert "no knob 'nosuch' to race here" in refused(2, "tune", "some", "--dry-run", "--knob", "nosuch")
    for more, count in (([], 5), (["--rank-counts", "2-4,8"], 20)):
        assert cli.main(["tune", "some", "--dry-run", "--screen", *more]) == 0
        assert capsys.readouterr().out.splitlines()[0] == f"screen: {count} launches"


def test_each_number_of_ranks_is_a_place_the_largest_first(tmp_path):
    asked = TuningRequest("x", "p", "s", "openmpi", ("core", "l3"), (8,), 1, {}, rank_counts=(2, 3))
    places = TuningBench(tmp_path, TuningState(asked), print).places()
    assert [place.label for place in places] == ["core, 3 ranks", "core, 2 ranks", "l3, 3 ranks", "l3, 2 ranks"]
    names = {tuning_variant(place, "default", 1, {}, sweep((8,))).name for place in places}
    assert len(names) == 4
    assert TuningPlace("x", "p", "s", "core", 2, 3).label == "core, 3 ranks a node"


def test_the_times_of_each_placement_are_shown_once():
    """Names of placements may have commas."""
    places = [TuningPlace("x", "p", "s", name, 1, count) for name in ("pair:0,1", "pair:0,2") for count in (3, 2)]
    said = report.screen(tune.Tuning({place: curve() for place in places}, {place: [] for place in places}))
    drawn = [line for line in said.splitlines() if line.startswith("time in us")]
    assert drawn == [f"time in us, placement {name}, 3 ranks, default settings" for name in ("pair:0,1", "pair:0,2")]


FINGERPRINT = {"library": "ab" * 32, "cpu": "Xeon", "kernel": "6", "ranks": 2, "placement": "core"}
PROVEN = {"tuned": {"settings": [{"name": "smsc", "value": "^cma"}]}, "fingerprint": FINGERPRINT, "family": "openmpi"}


class TestWhatAnotherTuningFound:
    def test_it_is_read_with_where_it_was_proven(self, tmp_path):
        file = tmp_path / "tune.json"
        file.write_text(json.dumps({**PROVEN, "race": []}))
        found, said = command.brought(file, stack_manifest.made("s", "openmpi"))
        assert found == Configuration((Setting("smsc", "^cma"),))
        assert said == f"{file}: proven on Xeon, 2 ranks of core, with another build of the MPI library (abababababab)"

    @pytest.mark.parametrize(("changes", "said"), [
        ({"tuned": None}, "that tuning proved no settings"),
        ({"family": "mpich"}, "settings of mpich, and stack s is openmpi"),
        ({"tuned": {"settings": 1}}, "not what plumb tune wrote: Expected `array`"),
        ({"fingerprint": {}}, "not what plumb tune wrote: Object missing required field"),
    ])  # fmt: skip
    def test_another_file_is_refused(self, tmp_path, changes, said):
        file = tmp_path / "tune.json"
        file.write_text(json.dumps({**PROVEN, **changes}))
        with pytest.raises(PlumbError, match=said):
            command.brought(file, stack_manifest.made("s", "openmpi"))

    @pytest.mark.parametrize("name", ["openmpi", "mpich", "intelmpi"])
    @pytest.mark.parametrize("tuned", [
        {"settings": [{"name": "LD_PRELOAD", "value": "/tmp/evil.so"}]},
        {"settings": [{"name": "mca_base_component_path", "value": "/tmp/evil"}]},
        {"settings": [{"name": "I_MPI_OFI_LIBRARY", "value": "evil.so"}]},
        {"settings": [{"name": "MPIR_CVAR_CH4_CMA_ENABLE", "value": "/tmp/evil"}]},
        {"settings": [{"name": "smsc", "value": "cma\nmca_base_component_path = /tmp/evil"}]},
        {"settings": [{"name": "smsc=x; touch pwned #", "value": "1"}]},
        {"rules": [{"collective": "bcast; touch pwned #", "algorithm": "1", "from_bytes": 0}]},
        {"rules": [{"collective": "bcast", "algorithm": "/tmp/evil", "from_bytes": 0}]},
    ])  # fmt: skip
    def test_what_no_tuning_writes_is_refused_by_name(self, tmp_path, name, tuned):
        file = tmp_path / "tune.json"
        file.write_text(json.dumps({**PROVEN, "tuned": tuned, "family": name}))
        with pytest.raises(PlumbError, match="not a setting that plumb tune tries: "):
            command.brought(file, stack_manifest.made("s", name))

    def test_whatever_a_tuning_proves_is_taken(self, tmp_path):
        file = tmp_path / "tune.json"
        for name in ("openmpi", "mpich", "intelmpi"):
            stack = stack_manifest.made("s", name)
            settings = [{"name": one.name, "value": value} for one in stack.family.knobs for value in one.values]
            rules = [
                {"collective": one.operations[0], "algorithm": value, "from_bytes": 0}
                for one in stack.family.knobs
                if race.is_algorithm(one)
                for value in one.values
            ]
            file.write_text(json.dumps({**PROVEN, "tuned": {"settings": settings, "rules": rules}, "family": name}))
            assert len(command.brought(file, stack)[0].settings) == len(settings)

    def test_a_file_that_is_not_there(self, tmp_path, refused, monkeypatch):
        with pytest.raises(PlumbError, match="cannot read what was tuned: No such file"):
            command.brought(tmp_path / "none", stack_manifest.made("s"))
        assert "--from begins a new tuning" in refused(2, "tune", "--from", "x", "--resume", "y")


@pytest.mark.parametrize(
    "words", ["--minutes 0", "--nodes 0", "--sizes 9", *(f"--rank-counts {n}" for n in ("1-4", "2-9999999999", "two"))]
)
def test_bad_options_are_one_line(words, refused):
    refused(2, "tune", "s", "--resume", "x")
    with pytest.raises(SystemExit):
        cli.main(["tune", "s", *words.split()])


@pytest.mark.parametrize(("state", "finished"), [("PASS", True), ("INCONCLUSIVE", False)])
def test_a_confirmation_that_proved_nothing_goes_on_when_resumed(tmp_path, monkeypatch, state, finished):
    points = [point for one in curves.kernel_launches(Configuration((EAGER,)), (8,)) for point in one.points]
    verdicts = [verdict_of(str(point), state, 17, 1.0, (0.9, 1.1), reason="disturbed") for point in points]
    monkeypatch.setattr(confirm, "_measure", lambda *args: (verdicts, "session"))
    TUNING.begin(tmp_path / "work", state := TuningState(asked()))
    bench = TuningBench(tmp_path / "work", state, print)
    found = confirm.confirm(bench, "confirm 1", Configuration((EAGER,)))
    assert bool(found.unproven) is not finished
    assert (bench.kept("confirm 1") is not None) is finished


def confirmed(**ways):
    """Verdicts of allreduce of 8 KiB, (state, ratio) by way."""
    found = {
        ("core", Point(way.replace("_", ", "), Row("allreduce", 8192))): verdict_of(
            way, state, 27, ratio, (ratio - 0.01, ratio + 0.01), reason=f"{state} by {way}"
        )
        for way, (state, ratio) in ways.items()
    }
    return Confirmed(Configuration((EAGER,)), found, ("session",))


class TestEveryProtocol:
    """What gains by one protocol and loses by another is not a gain."""

    def test_faster_by_one_and_not_slower_by_any(self):
        found = confirmed(start=("GAIN", 0.7), loop=("PASS", 1.0), OSU=("GAIN", 0.8))
        assert (found.gains, found.gaining) == (True, [Row("allreduce", 8192)])

    def test_a_row_without_a_rule_is_no_gain_of_the_rules(self):
        found = confirmed(start=("GAIN", 0.7))
        other = replace(found, configuration=Configuration(rules=(Rule("bcast", "1", 0, None, 2),)))
        assert (found.gains, other.gains) == (True, False)

    def test_slower_by_one(self):
        found = confirmed(start=("GAIN", 0.7), barrier=("GAIN", 0.7), loop=("FAIL", 1.4))
        assert (found.gains, found.gaining, found.unproven) == (False, [], None)

    @pytest.mark.parametrize("state", ["INCONCLUSIVE", "INVALID"])
    def test_undecided_by_a_program_of_others(self, state):
        found = confirmed(start=("GAIN", 0.7), barrier=("GAIN", 0.7), loop=("GAIN", 0.6), IMB=(state, 1.0))
        assert (found.gains, found.harmful) == (False, [])
        assert found.unproven == f"allreduce 8 KiB is faster by start, barrier, loop; by IMB: {state} by IMB"

    def test_the_kernel_measures_settings_by_every_protocol_and_operation(self):
        (whole,) = curves.kernel_launches(Configuration((EAGER,)), SIZES)
        assert whole.program.arguments[-4:] == ["--protocol", "all", "--in-place", "both"]
        assert {point.way for point in whole.points} == {x for w in curves.PROTOCOLS for x in (w, f"{w}, in place")}
        assert {point.row for point in whole.points} == set(rows(SIZES))
        assert len({figure.name for figure in whole.program.figures}) == len(whole.points)

    def test_a_rule_is_measured_between_and_beside_its_sizes(self):
        whole, of_rule = curves.kernel_launches(
            Configuration(rules=(Rule("bcast", "1", 8192, None, 2),)), (8, 64, 8192)
        )
        assert of_rule.program.arguments[:2] == ["--operation", "bcast"]
        assert {point.row.size for point in of_rule.points} == {4, 8, 20, 64, 724, 8192, 16384}
        ways = {point.way for point in of_rule.points}
        assert ways == set(curves.PROTOCOLS) - {"gaps"}, "MPI has no bcast in place, and no gaps in its one block"
        assert {point.way for point in whole.points} == {"start"}
        assert "bcast" not in {point.row.operation for point in whole.points}

    def test_gaps_are_measured_where_blocks_may_lie_apart(self):
        rules = tuple(Rule(name, "1", 8192, None, 2) for name in ("allgather", "allgatherv", "reduce_scatter"))
        _, *ruled = curves.kernel_launches(Configuration(rules=rules), (8, 8192))
        gaps = {point.way for one in ruled for point in one.points if point.way.startswith("gaps")}
        assert gaps == {"gaps", "gaps, in place"}
        assert {p.row.operation for one in ruled for p in one.points if p.way == "gaps"} == {"allgatherv"}

    def test_programs_of_others_that_a_stack_has(self):
        has = {"osu_allgather": {}, "osu_multi_lat": {}, "imb-mpi1": {}}
        found = curves.others(["pingpong", "allgather", "scan", "reduce_scatter"], has, {"reduce_scatter": 2})
        assert [one.name for one in found] == [
            "OSU pingpong", "IMB pingpong", "OSU allgather", "IMB allgather", "IMB reduce_scatter",
        ]  # fmt: skip
        sizes = {one.name: {point.row.size for point in one.points} for one in found}
        assert sizes["OSU allgather"] == {1 << power for power in range(2, 21)}
        assert sizes["IMB reduce_scatter"] == {1 << power for power in range(2, 20)}, "it counts the whole vector"
        assert curves.others(["allgather"], {}, {}) == []

    def test_a_rule_that_a_program_of_others_finds_slower_is_withdrawn(self, tuned):
        slower = dict.fromkeys(FASTER_BCAST, ("FAIL", 1.5))
        found, _ = tuned(
            second_algorithm_wins,
            lambda one: FASTER_BCAST if one.rules else {},
            every=True,
            of_others=lambda one: slower if one.rules else {},
        )
        assert found.winner is None
        assert report.closing(found) == report.NO_GAIN
        assert any("bcast 8 B (OSU), placement core: " in note for note in found.notes)

    def test_the_table_and_the_last_line_name_the_protocols(self, tuned):
        found, _ = tuned(
            lambda one: BAD_EAGER if one == DEFAULT else {}, lambda one: {Row("pingpong", 1024): ("GAIN", 0.25)}
        )
        lines = report.confirmed(found.confirmed[-1]).splitlines()
        assert lines[0] == "tuned / default, placement core"
        (osu,) = (line.split() for line in lines if line.startswith("pingpong") and "OSU" in line)
        assert osu == ["pingpong", "OSU", "8", "B", "to", "1", "MiB", "1.00", "to", "1.00", "14"]
        assert lines[-1] == "other operations: 211 PASS"


def profiled(**calls):
    """A profile of one rank: call -> sizes and how often."""
    of = [call(name, "collective", *(sizes(count, size, 1000) for size, count in each)) for name, each in calls.items()]
    return profile(rank_document(0, 1, of, {}))


class TestWeights:
    def test_calls_count_for_the_nearest_size_of_their_operation(self):
        made = profiled(
            Isend=[(8, 3)], Ssend=[(9, 1)], Sendrecv=[(4000, 2)], Iallreduce=[(2048, 5)], Allreduce_init=[(2048, 1)],
            Barrier=[(0, 7)], Recv=[(8, 4)], Bcast=[(0, 9)], Ibarrier=[(0, 1)],
        )  # fmt: skip
        assert target.counts(made, SIZES) == {
            Row("pingpong", 8): 4, Row("exchange", 4096): 2, Row("allreduce", 2048): 6, Row("barrier", 0): 8,
        }  # fmt: skip

    def test_a_profile_without_such_calls_is_refused_with_what_it_has(self):
        with pytest.raises(PlumbError, match=r"no call that the tuner measures \(0123456789ab\): it has Put"):
            target.counts(profiled(Put=[(8, 3)]), SIZES)

    def test_a_share_is_calls_times_time(self):
        counted = {Row("bcast", 8): 3, Row("alltoall", 8): 1, Row("gone", 8): 9}
        found = target.shares(counted, {Row("bcast", 8): 1.0, Row("alltoall", 8): 9.0})
        assert found == pytest.approx({Row("bcast", 8): 0.25, Row("alltoall", 8): 0.75})

    def test_what_the_program_does_not_do_is_neither_raced_nor_paid_for(self, tuned):
        def truth(configuration):
            return {"bcast_8": 0.5, "pingpong_4096": 3.0} if configuration.settings else {"bcast_1024": 4.0}

        found, _ = tuned(truth, lambda _: {Row("bcast", 8): ("GAIN", 0.5)}, counts=(("bcast", 8, 100),))
        assert found.weights == {Row("bcast", 8): 1.0}
        assert all(score.cost < 0 for scores in found.raced for score in scores if score.configuration.settings)


class TestForAProgram:
    """A tuning for a program of one's own: its calls say what is raced, and its figures what gains."""

    @pytest.fixture
    def of_program(self, tuned, monkeypatch):
        """Tune with such calls of the program, and such states of its figure by the settings that are tried."""

        def run(calls, states=lambda one: ("GAIN", 0.9)):
            wanted = samples.asked(name="heat %placement=core", placement="core")
            monkeypatch.setattr(FakeBench, "program", (wanted,), raising=False)
            monkeypatch.setattr(tune.target, "calls", lambda bench: calls)
            monkeypatch.setattr(FakeBench, "profiles", lambda bench: [], raising=False)

            def by_program(_bench, name, one):
                state, ratio = states(one)
                verdict = verdict_of("time", state, 19, ratio, (ratio - 0.02, ratio + 0.02), reason=f"{state} of heat")
                key = ("core", Point("heat %placement=core", Row("time", 0)))
                return Confirmed(one, {key: verdict}, ("session",), of_program=True)

            monkeypatch.setattr(FakeBench, "confirm", staticmethod(by_program))
            return tuned(lambda one: {"bcast_64": 0.5 if one.settings else 1.0}, lambda one: pytest.fail("a kernel"))

        return run

    def test_one_without_mpi_is_not_raced(self, of_program):
        found, bench = of_program(({}, 0.004))
        assert (bench.stages, found.curves) == ([], {})
        assert report.closing(found) == (
            "nothing to gain: stream_threads: 0.4 % of its time in MPI, no other cost is seen; "
            "no setting of the process is known against that"
        )

    def test_its_own_time_gains(self, of_program):
        found, bench = of_program(({Row("bcast", 64): 100}, 0.5))
        assert found.weights == {Row("bcast", 64): 1.0}
        tried = {one.name for configuration in bench.launched for one in configuration.settings}
        assert tried, "what it calls is raced although the screen found nothing"
        assert not {name for name in tried if name.startswith(("alltoall", "allreduce"))}
        assert found.winner.of_program
        assert report.closing(found) == "GAIN: heat %placement=core: time 10 % less (8.0 % to 12 %)"
        last = report.confirmed(found.winner).splitlines()[-1]
        assert last.split("  ")[0] == "heat %placement=core"
        assert "10 % less (8.0 % to 12 %)  GAIN of heat" in last

    def test_what_the_kernel_gains_alone_is_no_gain(self, of_program):
        found, _ = of_program(({Row("bcast", 64): 100}, 0.5), lambda one: ("PASS", 1.0))
        assert found.winner is None
        assert 1 <= len(found.confirmed) <= tune.TRIES
        assert report.closing(found) == report.NO_GAIN

    def test_what_is_slower_is_withdrawn_and_the_next_is_tried(self, of_program):
        tried = []

        def states(one):
            tried.append(one)
            return ("FAIL", 1.1) if len(tried) == 1 else ("INCONCLUSIVE", 0.99)

        found, _ = of_program(({Row("bcast", 64): 100}, 0.5), states)
        assert any("time (heat %placement=core), placement core: FAIL of heat" in note for note in found.notes)
        if len(found.confirmed) > 1:
            assert report.closing(found) == "not proven: INCONCLUSIVE of heat; --resume measures more pairs"


def test_the_sides_of_a_program_differ_in_the_tuned_settings_alone():
    wanted = samples.asked(name="heat %placement=core", placement="core", launches=5, settings={"a": "1"})
    rate = msgspec.structs.replace(wanted.figures[0], name="time_flop_rate", optional=True)
    wanted = msgspec.structs.replace(wanted, figures=[*wanted.figures, rate])
    bench = SimpleNamespace(
        request=SimpleNamespace(program=(wanted,)),
        settings=lambda one: {setting.name: setting.value for setting in one.settings},
    )
    ((default, faster),), keys = target.couples(bench, Configuration((EAGER,)))
    assert (default.settings, default.launches) == ({"a": "1"}, 1)
    assert faster == msgspec.structs.replace(default, settings={"a": "1", EAGER.name: EAGER.value})
    assert [figure.name for figure in faster.figures] == ["triad"], "a rate of declared work is its time again"
    assert keys == [("core", Point("heat %placement=core", Row("triad", 0)))]


def test_calls_of_a_program_are_counted_where_it_spends_time_in_mpi(monkeypatch):
    busy = profile(rank_document(0, 1, [call("Bcast", "collective", sizes(7, 64, 300_000))], {}))
    idle = profile(rank_document(0, 1, [call("Bcast", "collective", sizes(1, 8, 1_000))], {}))
    records = [SimpleNamespace(verified=True, site="local", id=name) for name in ("busy", "idle")]
    bench = SimpleNamespace(profiles=lambda: records, request=SimpleNamespace(sizes=SIZES))
    monkeypatch.setattr(target.profile_files, "of_record", lambda record: {"busy": busy, "idle": idle}[record.id])
    assert target.calls(bench) == ({Row("bcast", 64): 7}, pytest.approx(0.3, rel=0.01))
    records[1].verified, records[1].reasons = False, ["launch 0: wrong answer"]
    records[1].variant = SimpleNamespace(name="heat")
    with pytest.raises(PlumbError, match="the program cannot be profiled: launch 0: wrong answer"):
        target.calls(bench)


def test_pairs_are_shown_without_their_figures_and_the_log_of_the_gate_has_all(tmp_path, monkeypatch):
    def resume(folder, stop, say, pair):
        for start, line in (("pair    1  0/1 decided", "pair    1  0/1 decided  tune x  1.0"), ("time is short",) * 2):
            say(line)
            pair(start, line)
        say("table")
        return SimpleNamespace(verdicts=[])

    begun = SimpleNamespace(couples=[0], name="session")
    monkeypatch.setattr(confirm.setup, "begun_for", lambda *_: begun)
    monkeypatch.setattr(confirm, "circumstances", lambda stacks: {})
    monkeypatch.setattr(confirm.run, "resume", resume)
    place = tmp_path / "confirm 1"
    place.mkdir()
    for program, shown in (((), "pair    1  0/1 decided"), (("heat",), "pair    1  0/1 decided  tune x  1.0")):
        lines = []
        bench = SimpleNamespace(
            folder=tmp_path,
            say=lines.append,
            request=SimpleNamespace(minutes=1.0, program=program, seed=1, stack="s", nodes=1),
        )
        assert confirm._measure(bench, "confirm 1", [], 1) == ([], "session")
        assert lines[1:] == [shown, "time is short"]
    assert (place / "gate.out").read_text().count("table") == 2


def test_a_launch_of_a_stage_is_shown_without_the_test_and_what_disturbed_it():
    launch = SimpleNamespace(
        verified=True, start_errors=[], disturbed=True, disturbance=SimpleNamespace(short=lambda: "load 3")
    )
    record = SimpleNamespace(variant=samples.asked(test="tune", name="tune default", stack="openmpi"))
    lines = [driver._progress(record, launch, "launch 1/5", 1.0, brief) for brief in (True, False)]
    assert lines == [
        "launch 1/5  default on openmpi  1.0 s  verified",
        "launch 1/5  tune default on openmpi  1.0 s  verified (disturbed: load 3)",
    ]
