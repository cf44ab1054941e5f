"""The gate's error rates, small edition of tests/rates/simulate.py; the whole one is in docs/rates.md."""

import sys

import numpy as np
import pytest
from gate_pairs import pairs_of

from plumbline.base import paths
from plumbline.judge.decide import decide
from plumbline.statistics import paired
from plumbline.statistics.paired import Rule

sys.path.insert(0, str(paths.root() / "tests/rates"))
import simulate

SEED = 11


@pytest.mark.parametrize("model", simulate.MODELS)
def test_an_equal_candidate_is_not_called_slower(model, capsys):
    rate = simulate.measure(model, 0.0, 4000, SEED)
    with capsys.disabled():
        print("\n" + simulate.table([rate]).splitlines()[-1])
    assert rate.at_most(rate.failed) <= 0.001 * 2
    assert rate.failed == 0
    assert rate.mean_pairs <= (30 if model == "noisy" else 16)


@pytest.mark.parametrize("model", simulate.MODELS)
def test_a_slowdown_of_five_percent_is_found(model, capsys):
    rate = simulate.measure(model, 0.05, 2000, SEED)
    with capsys.disabled():
        print("\n" + simulate.table([rate]).splitlines()[-1])
    assert rate.share(rate.failed) >= 0.985
    assert rate.share(rate.passed) <= 0.01


@pytest.mark.parametrize(("model", "mean"), [("1 %", 19), ("2 %", 22.5), ("3 %", 35)])
def test_found_within_few_pairs(model, mean):
    assert simulate.measure(model, 0.05, 2000, SEED).mean_pairs <= mean


def test_too_much_noise_is_inconclusive_not_pass():
    rate = simulate.measure("6 %", 0.05, 8000, SEED)
    assert rate.at_most(rate.passed) <= 0.01
    assert rate.failed + rate.passed < 0.9 * rate.series


def test_no_false_alarm_at_the_tolerance():
    rate = simulate.measure("drift", 0.01, 4000, SEED)
    assert rate.failed <= 8


@pytest.mark.parametrize("model", simulate.MODELS)
def test_an_equal_candidate_is_not_called_faster(model):
    rates = {speedup: simulate.measure(model, speedup, 4000, SEED, Rule(gain=True)) for speedup in (0.0, -0.0099)}
    assert rates[0.0].gained == rates[0.0].failed == 0
    assert rates[-0.0099].gained <= 12  # at the tolerance 0.1 %: 13 or more come up in one of 4000 runs
    assert rates[0.0].mean_pairs <= (30 if model == "noisy" else 16)  # to ask costs no pair


@pytest.mark.parametrize("model", simulate.MODELS)
def test_a_gain_is_found(model):
    rate = simulate.measure(model, -0.2, 1000, SEED, Rule(gain=True))
    assert rate.gained >= 0.97 * rate.series
    assert simulate.measure(model, -0.2, 200, SEED).gained == 0, "only where it is asked for"


@pytest.mark.parametrize("count", simulate.FIXED)
@pytest.mark.parametrize("model", simulate.MODELS)
def test_a_fixed_number_of_pairs_errs_as_seldom(model, count):
    rates = {slowdown: simulate.measure_fixed(model, slowdown, count, 4000, SEED) for slowdown in (0.0, 0.01, 0.05)}
    assert rates[0.0].failed == 0
    assert rates[0.01].failed <= 12  # 0.1 % is 4: 13 or more come up in one of 4000 runs
    assert rates[0.05].at_most(rates[0.05].passed) <= 0.015


@pytest.mark.parametrize("item", simulate.PRINTED, ids=lambda item: item.name)
def test_few_digits_hide_no_slowdown(item):
    """Of 40 series none, but one by chance; `make rates` has more."""
    for count in (None, 90):
        assert simulate.measure_printed(item, 0.05, 40, SEED, count).passed <= 1
        assert simulate.measure_printed(item, 0.0, 40, SEED, count).failed == 0


@pytest.mark.parametrize(("value", "model"), [(0.3, "quiet"), (0.263, "2.5 %"), (1.02, "4 %"), (30.0, "noisy")])
def test_few_digits_are_judged_where_they_suffice(value, model):
    rates = {s: simulate.measure_printed(simulate.Printed(value, model), s, 40, SEED) for s in (0.0, 0.05)}
    assert rates[0.0].passed >= 36
    assert rates[0.05].failed >= 16


@pytest.mark.parametrize("count", [None, 90])
def test_printed_values_are_simulated_as_the_gate_judges_them(count):
    item = simulate.Printed(0.263, "1 %")
    values = simulate.printed(item, 0.05, 15, np.random.default_rng(SEED))
    state, used = simulate.judged(item, values, count)
    names = {paired.FAIL: "FAIL", paired.PASS: "PASS", paired.GO_ON: "INCONCLUSIVE"}
    assert len(set(state)) == 2
    for n in range(15):
        sides = values[:, n, : used[n]].tolist()
        pairs = pairs_of("s", *sides, item.better, item.steps, fixed=count is not None)
        assert decide([pairs], Rule())[0].state == names[state[n]]


@pytest.mark.parametrize(("share", "most"), [(0.02, 0), (0.2, 20)])
def test_launches_disturbed_alike_are_seldom_in_doubt(share, most):
    assert simulate.in_doubt(share, 27, 1000, SEED) <= most


@pytest.mark.parametrize("sign", [1, -1], ids=["slower", "faster"])
def test_campaigns_without_a_false_alarm(sign):
    assert simulate.campaigns(20, 100, SEED, sign) == 0


def test_the_measurement_sees_a_rule_that_errs():
    """A guard on purpose broken: with hardly any tolerance below a real 2 % the rate shows it."""
    rate = simulate.measure("quiet", 0.02, 500, SEED, Rule(0.0, 0.05))
    assert rate.share(rate.failed) > 0.2
