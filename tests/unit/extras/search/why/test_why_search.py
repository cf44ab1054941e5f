"""Searches on simulated launches: what they name, and what they do with what fails. `make rates` has their errors."""

import sys
from pathlib import Path

import numpy as np
import pytest

from plumbline.extras.search.why import designs
from plumbline.extras.search.why.search import Rounds, Search, Seen
from plumbline.statistics.paired import PairedRule

sys.path.insert(0, str(Path(__file__).parents[4] / "rates"))
import why  # the simulation that makes the table of the documentation
from promises import Promises

TRUTHS = {truth.name: truth for truth in why.TRUTHS}


@pytest.mark.parametrize(("truth", "noise", "launches"), [
    ("none acts", 0.05, 312),
    ("one, 5 %", 0.01, 370),
    ("one 20 % slower, one 10 % faster", 0.01, 354),
    ("a pair, 20 %, and one, 10 %", 0.01, 494),
    ("three together, 30 %", 0.01, 727),
])  # fmt: skip
def test_causes_are_named_and_nothing_else_is(truth, noise, launches):
    assert why.search(TRUTHS[truth], noise, 0) == (TRUTHS[truth].causes, launches)


def test_what_lies_between_the_margins_is_named_in_some_searches():
    named = [why.search(TRUTHS["one, 3 %"], 0.01, seed) for seed in range(2)]
    assert named == [(set(), 342), ({(3,)}, 310)]


def test_what_the_rates_promise():
    between, acts = TRUTHS["one, 3 %"], TRUTHS["one, 5 %"]
    promises = Promises()
    why.keep(acts, 0.01, why.Count(searches=400, wrong=11, found=360), promises)
    why.keep(between, 0.01, why.Count(searches=400), promises)
    assert promises.broken == []
    why.keep(acts, 0.01, why.Count(searches=400, wrong=12, found=359), promises)
    why.keep(between, 0.01, why.Count(searches=400, wrong=12), promises)
    assert len(promises.broken) == 3


class Bench(why.Simulated):
    """The simulation, with configurations that fail, launches that are disturbed, and an end."""

    def __init__(self, truth, fails=(), disturbed=lambda configuration: False, rounds=None):
        super().__init__(truth, 0.01, np.random.default_rng(1))
        self.fails, self.disturbed, self.rounds = fails, disturbed, rounds
        self.started = []

    def launch(self, configuration, number):
        self.started.append((number, configuration))
        if configuration in self.fails:
            return None
        return super().launch(configuration, number)._replace(disturbed=self.disturbed(configuration))

    def stop(self):
        last = self.started[-1][0] if self.started else 0
        return "time is up" if self.rounds is not None and last + 1 >= self.rounds else None


def found(bench, factors=5, noise=0.01, better="lower"):
    return Search(factors, Rounds(bench, better, PairedRule(0.01, 0.05, gain=True), 1), noise, lambda line: None).run()


def names(found):
    return {one.members: one.share.state for one in found.named if one.acts}


ONE = why.Truth("one", {2: why.slower(0.2)})


def test_a_factor_that_fails_in_one_end_is_measured_in_the_other():
    said = found(Bench(ONE, fails=[1 << 2]))
    assert names(said) == {(2,): "FAIL"}
    [cause] = [one for one in said.named if one.acts]
    assert cause.put_in is None
    assert cause.taken_out.ratio == pytest.approx(1.2, rel=0.02)


def test_a_factor_that_fails_in_both_is_said_and_the_others_are_found():
    said = found(Bench(ONE, fails=[1, 0b11110]))
    assert names(said) == {(2,): "FAIL"}
    assert [one.members for one in said.named if one.share is None] == [(0,)]


def test_what_fails_is_tried_once():
    bench = Bench(ONE, fails=[1, 1 << 2])
    found(bench)
    assert sum(configuration == 1 for _, configuration in bench.started) == 1


def test_a_two_level_design_that_fails_is_given_up():
    configurations, _ = designs.crossed(8)
    bench = Bench(ONE, fails=[next(one for one in configurations if one.bit_count() == 4)])
    said = found(bench, factors=8, noise=0.08)
    assert names(said) == {(2,): "FAIL"}
    assert "two-level" not in said.design


def test_each_round_starts_every_configuration_once_in_another_order():
    bench = Bench(ONE)
    found(bench)
    rounds = [[one for number, one in bench.started if number == wanted] for wanted in range(13)]
    assert all(sorted(one) == sorted(rounds[0]) for one in rounds)
    assert len({tuple(one) for one in rounds}) > 10
    again = Bench(ONE)
    found(again)
    assert again.started == bench.started


def test_when_time_is_up_nothing_is_named_before_it_is_certain():
    said = found(Bench(ONE, rounds=6))
    assert said.stopped
    assert names(said) == {}


def test_launches_that_are_mostly_disturbed_name_nothing():
    said = found(Bench(ONE, disturbed=lambda configuration: configuration == 1 << 2))
    assert names(said) == {}
    assert "disturbed" in next(one for one in said.named if one.members == (2,)).share.reason


def test_a_step_that_is_declared_is_that_of_the_pairs():
    contrast = designs.Contrast(((0, 1.0),), ((1, 1.0),))
    seen = {0: {0: Seen(1.5), 1: Seen(1.5)}, 1: {0: Seen(1.25), 1: Seen(1.5, step=0.1)}}
    rounds = Rounds(None, "lower", PairedRule(0.01, 0.05, gain=True), 1, seen=seen)
    assert rounds.pairs("a", contrast).baseline.step == 0.1
    seen[1][1] = Seen(1.5)
    assert rounds.pairs("a", contrast).baseline.step == 0.01


def test_a_gain_is_found_with_the_direction_turned():
    faster = why.Truth("faster", {2: -why.slower(0.2)})
    said = found(Bench(faster), better="higher")
    assert names(said) == {(2,): "FAIL"}
    assert said.whole.ratio == pytest.approx(1 / 1.2, rel=0.02)


def test_values_that_cannot_be_compared_are_failures():
    class Zero(Bench):
        def launch(self, configuration, number):
            seen = super().launch(configuration, number)
            return Seen(0.0) if configuration == 1 else seen

    [first, *_] = found(Zero(ONE)).named
    assert (first.members, first.put_in) == ((0,), None)
