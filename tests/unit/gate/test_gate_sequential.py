"""The sequential rule against scipy, and its properties."""

import numpy as np
import pytest
from gate_pairs import pairs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from plumbline.base.errors import PlumbError
from plumbline.judge.decide import decide
from plumbline.statistics import paired
from plumbline.statistics.basic import holm
from plumbline.statistics.paired import CAP, FAIL, LOOKS, PASS, SCALE, PairedRule


def series(ratio=1.0, noise=0.01, pairs=CAP, seed=0, better="lower", name="s"):
    draw = np.random.default_rng(seed)
    baseline = 100 * np.exp(draw.normal(0, noise, pairs))
    candidate = 100 * ratio * np.exp(draw.normal(0, noise, pairs))
    return pairs_of(name, baseline.tolist(), candidate.tolist(), better)


def verdict(item, **rule):
    return decide([item], PairedRule(**rule))[0]


@pytest.mark.parametrize("n", [13, 18, 40])
def test_the_null_distribution_is_scipys(n):
    draw = np.random.default_rng(n)
    values = draw.normal(0.3, 1, n)
    sums = paired.rank_sum(np.rint(values * SCALE).astype(np.int64)[None, :])
    expected = stats.wilcoxon(values, alternative="less", method="exact")
    assert sums[0] == expected.statistic
    assert paired.null_cumulative(n)[sums[0]] == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("spending", [paired.FAIL_SPENDING, paired.PASS_SPENDING])
def test_the_looks_spend_no_more_than_the_error(spending):
    """Bonferroni: what the looks may err, as they really do with whole ranks, adds up to less than the error."""
    spent = [paired.null_cumulative(n)[paired.critical(n, spending.at(n))] for n in LOOKS]
    assert sum(spending.percents) == 100
    assert all(paired.critical(n, spending.at(n)) >= 0 for n in LOOKS)
    assert sum(spent) <= spending.error
    assert spending.at(20) == spending.at(27)


def test_thirteen_pairs_decide_only_when_all_but_the_smallest_agree():
    assert paired.critical(13, paired.FAIL_SPENDING.at(13)) == 1


@given(st.lists(st.integers(-6, 6), min_size=2, max_size=30))
def test_ties_and_zeros_never_help_a_rejection(values):
    logs = np.array([values], dtype=np.int64)
    kept = paired.rank_sum(logs)[0]
    ranks = stats.rankdata(np.abs(logs[0]))
    assert kept >= ranks[logs[0] > 0].sum()
    walsh = sum(values[i] + values[j] >= 0 for i in range(len(values)) for j in range(i, len(values)))
    assert kept == walsh


@pytest.mark.parametrize("n", LOOKS)
def test_interval_and_test_agree(n):
    logs = np.rint(np.random.default_rng(n).normal(0, 0.02, (50, n)) * SCALE).astype(np.int64)
    high = paired.estimate(logs).high
    for margin in (10_000_000, 20_000_000, 30_000_000):
        rejected = paired.rank_sum(logs - margin) <= paired.critical(n, paired.PASS_SPENDING.at(n))
        assert (rejected == (high < margin)).all()


def test_noise_is_said_in_words():
    found = verdict(series(1.03, noise=0.15))
    assert found.state == "INCONCLUSIVE"
    assert "pair noise" in found.reason
    assert "cannot be seen with 90 pairs" in found.reason


def test_a_pass_states_what_it_would_have_seen():
    for seed in range(200):
        found = verdict(series(1.0, noise=0.03, seed=seed))
        if found.state == "PASS":
            assert 0 < found.detectable <= 0.05


def test_a_pass_is_withheld_while_the_noise_hides_more_than_must_detect():
    """Far faster, but so noisy that a slowdown of 5 % could not be told from none."""
    draw = np.random.default_rng(1)
    logs = np.rint(draw.normal(-0.5, 0.2, (1, CAP)) * SCALE).astype(np.int64)
    assert paired.rank_sum(logs[:, :13] - PairedRule().detected)[0] <= paired.critical(13, paired.PASS_SPENDING.at(13))
    assert paired.decisions(logs[:, :13], np.array([13]), PairedRule()).state[0] not in (PASS, FAIL)


ratios = st.floats(0.8, 1.3)
noises = st.sampled_from([0.0, 0.001, 0.01, 0.04, 0.2])
seeds = st.integers(0, 10_000)


@settings(max_examples=60)
@given(ratios, noises, seeds, st.floats(1e-9, 1e9))
def test_units_do_not_matter(ratio, noise, seed, unit):
    item = series(ratio, noise, seed=seed)
    other = pairs_of("s", [v * unit for v in item.baseline.values], [v * unit for v in item.candidate.values], "lower")
    first, second = verdict(item), verdict(other)
    assert (first.state, first.count) == (second.state, second.count)
    assert first.ratio == pytest.approx(second.ratio)


@settings(max_examples=60)
@given(ratios, noises, seeds)
def test_swapped_sides_with_the_other_direction_are_the_same(ratio, noise, seed):
    item = series(ratio, noise, seed=seed)
    first, second = verdict(item), verdict(pairs_of("s", item.candidate.values, item.baseline.values, "higher"))
    assert (first.state, first.count, first.detectable) == (second.state, second.count, second.detectable)
    assert first.ratio == pytest.approx(1 / second.ratio)


@settings(max_examples=60)
@given(ratios, noises, seeds)
def test_never_slower_both_ways(ratio, noise, seed):
    item = series(ratio, noise, seed=seed)
    both = {verdict(item).state, verdict(pairs_of("s", item.candidate.values, item.baseline.values, "lower")).state}
    assert both != {"FAIL"}


def test_arms_swapped_in_every_other_pair_are_no_pass():
    item = series(1.2)
    places = range(CAP)
    first = [(item.candidate.values if place % 2 else item.baseline.values)[place] for place in places]
    second = [(item.baseline.values if place % 2 else item.candidate.values)[place] for place in places]
    assert verdict(pairs_of("s", first, second, "lower")).state == "INVALID"


@pytest.mark.parametrize("margins", [(0.05, 0.05), (0.05, 0.01)])
def test_margins_that_make_no_sense(margins):
    with pytest.raises(PlumbError):
        PairedRule(*margins)


def test_holm_over_the_campaign():
    """One slow series decided by 13 pairs: certain enough alone, not among 100, and again with more pairs."""
    alone = series(1.1, noise=0.002, pairs=13, name="slow")
    assert verdict(alone).state == "FAIL"
    rest = [series(seed=seed, name=f"s{seed}") for seed in range(1, 100)]
    found = decide([alone, *rest], PairedRule())[0]
    assert found.state == "INCONCLUSIVE"
    assert "Holm" in found.reason
    assert decide([series(1.1, noise=0.002, name="slow"), *rest], PairedRule())[0].state == "FAIL"


def test_holm_by_hand():
    assert holm(np.array([0.004, 0.001, 0.02]), 4, 0.01).tolist() == [False, True, False]
    assert holm(np.array([0.003, 0.001, 0.02]), 4, 0.01).tolist() == [True, True, False]


@pytest.mark.parametrize(("series", "pairs"), [(1, 13), (20, 13), (100, 19), (890, 19), (900, 27), (1605, 27)])
def test_the_fewest_pairs_that_can_claim_something_among_many_series(series, pairs):
    """Pairs that are all slower, held against Holm's first step: the next smaller look does not suffice."""
    slower = np.full((1, pairs), round(paired.SCALE))
    assert paired.least_pairs(series, 0.01) == pairs
    assert paired.evidence(slower, paired.PairedRule())[0] <= 0.01 / series
    if pairs > LOOKS[0]:
        earlier = LOOKS[LOOKS.index(pairs) - 1]
        assert paired.evidence(slower[:, :earlier], paired.PairedRule())[0] > 0.01 / series


@pytest.mark.parametrize("noise", [0.005, 0.03, 0.15])
def test_more_pairs_are_hopeless_where_digits_hide_too_much_and_not_for_noise_alone(noise):
    logs = np.rint(np.random.default_rng(1).normal(0.02, noise, 13) * paired.SCALE).astype(np.int64)
    rule = paired.PairedRule()
    assert paired.is_hopeless(logs.tobytes(), rule, round(0.08 * paired.SCALE)) == (noise < 0.1)
    assert not paired.is_hopeless(logs.tobytes(), rule, 0)
