"""Pairs whose number was fixed: all of them count; and what changes in their middle."""

import math

import numpy as np
import pytest
from gate_pairs import pairs_of, records_of
from test_gate_sequential import series

from plumbline.commands import cli
from plumbline.judge.decide import decide
from plumbline.judge.pairs import pairs_of_records
from plumbline.records import model
from plumbline.statistics import paired
from plumbline.statistics.paired import FAIL, PASS, SCALE, PairedRule


def judged(*candidate, noise=0.01, seed=3, is_fixed=True):
    """The verdict of pairs whose candidate is slower by these (ratio, pairs) one after the other."""
    ratios = np.concatenate([np.full(count, ratio) for ratio, count in candidate])
    draw = np.random.default_rng(seed)
    baseline, other = (100 * np.exp(draw.normal(0, noise, ratios.size)) for _ in range(2))
    pairs = pairs_of("s", baseline.tolist(), (other * ratios).tolist(), "lower", fixed=is_fixed)
    return decide([pairs], PairedRule())[0]


def test_thirteen_equal_pairs_do_not_hide_the_rest(tmp_path, capsys):
    found = judged((1.0, 13), (2.0, 77), noise=0.02)
    assert (found.state, found.count) == ("FAIL", 90)
    rows = [f"a,{10 + 0.01 * (n % 7)},{10 + 0.01 * (n % 5) + (10 if n >= 13 else 0)}" for n in range(90)]
    file = tmp_path / "pairs.csv"
    file.write_text("series,baseline,candidate\n" + "\n".join(rows) + "\n")
    assert cli.main(["gate", "--pairs", str(file), "--better", "lower"]) == 2
    assert "over the first 13: something changed meanwhile" in capsys.readouterr().out


def test_pairs_beyond_ninety_count_too():
    assert judged((1.0, 90), (1.2, 910)).state == "INCONCLUSIVE"
    assert judged((1.2, 1000)).state == "FAIL"
    assert judged((1.0, 2000)).state == "PASS"
    assert judged((1.0, 2000)).count == 2000


@pytest.mark.parametrize("slow", [13, 20, 27])
def test_a_slow_end_or_beginning_is_neither_pass_nor_fail(slow):
    for found in (judged((1.0, 90 - slow), (2.0, slow)), judged((2.0, slow), (1.0, 90 - slow))):
        assert found.state == "INCONCLUSIVE"
    assert "over the last 13: something changed meanwhile" in judged((1.0, 77), (2.0, 13)).reason


def test_what_follows_a_decision_of_a_live_gate_may_contradict_it():
    """A variant of two figures is measured until both are decided."""
    assert judged((1.0, 13), is_fixed=False).state == "PASS"
    found = judged((1.0, 13), (2.0, 77), is_fixed=False)
    assert found.state == "INCONCLUSIVE"
    assert "something changed meanwhile" in found.reason


def test_a_few_bursts_contradict_nothing():
    item = series(1.0)
    burst = [value * (2 if 20 <= place < 26 else 1) for place, value in enumerate(item.candidate.values)]
    assert decide([pairs_of("s", item.baseline.values, burst, "lower", fixed=True)], PairedRule())[0].state == "PASS"


def test_a_part_contradicts_only_what_no_one_slowdown_explains():
    """3 % is above the tolerance and below must-detect: PASS of one part and FAIL of another both hold."""
    logs = np.rint(np.random.default_rng(1).normal(math.log(1.03), 0.001, (1, 90)) * SCALE).astype(np.int64)
    for state in (PASS, FAIL):
        assert paired.contradicting(logs, np.array([state]), PairedRule(), np.array([0])).tolist() == [0]


@pytest.mark.parametrize("error", [0.001, 0.01, 2.5e-4])
def test_beyond_the_exact_distribution_nothing_is_rejected_that_it_would_keep(error, monkeypatch):
    exact = {n: paired.critical(n, error) for n in (100, 300, 500)}
    monkeypatch.setattr(paired, "EXACT", 50)
    for n, critical in exact.items():
        approximate = paired.critical(n, error)
        assert critical - n * n / 500 <= approximate <= critical
        p = paired.cumulative(n, np.array([approximate, approximate + 1]))
        assert p[0] <= error < p[1]


def test_walsh_averages_are_the_same_searched_for(monkeypatch):
    values = np.random.default_rng(5).integers(-50, 50, (3, 40))
    places = (0, 17, 400, 401, 819)
    listed = paired.walsh_averages(values, places)
    monkeypatch.setattr(paired, "_LISTED", 10)
    assert paired.walsh_averages(values, places).tolist() == listed.tolist()


def test_interval_and_test_agree_for_a_fixed_number():
    logs = np.rint(np.random.default_rng(2).normal(0, 0.02, (50, 41)) * SCALE).astype(np.int64)
    high = paired.estimate(logs, paired.FIXED).high
    for margin in (5_000_000, 10_000_000, 15_000_000):
        rejected = paired.certainly_below(logs, np.full(50, margin), paired.FIXED.passing)
        assert (rejected == (high < margin)).all()


@pytest.mark.parametrize(("is_gate", "used"), [(False, 40), (True, 13)])
def test_records_say_whether_their_number_was_fixed(is_gate, used):
    both = records_of(*(1e4 * np.exp(np.random.default_rng(1).normal(0, 0.002, (2, 40)))).round(6))
    if is_gate:
        both[0]["side"], both[1]["side"] = "baseline", "candidate"
    (found,) = decide(pairs_of_records(*map(model.convert, both)), PairedRule())
    assert (found.state, found.count) == ("PASS", used)
