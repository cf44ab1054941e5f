"""Configurations and contrasts: what they measure of effects that are known exactly."""

import itertools
import math

import numpy as np
import pytest

from plumbline.extras.search.why import designs, search
from plumbline.extras.search.why.designs import effect_of
from plumbline.statistics.paired import PairedRule

SINGLE = {0: 0.1, 1: -0.02, 3: 0.3}
PAIRS = {(0, 2): 0.05, (1, 3): -0.08}


def log_of(configuration, single=SINGLE, together=PAIRS):
    found = sum(value for one, value in single.items() if configuration >> one & 1)
    return found + sum(value for group, value in together.items() if all(configuration >> one & 1 for one in group))


def effect(contrast, **truth):
    sides = [sum(weight * log_of(one, **truth) for one, weight in side) for side in (contrast.low, contrast.high)]
    assert all(sum(weight for _, weight in side) == pytest.approx(1) for side in (contrast.low, contrast.high))
    return contrast.scale * (sides[1] - sides[0])


def test_shares_add_up_where_factors_interact_in_pairs():
    shares = [effect(effect_of((one,), 4).share) for one in range(4)]
    assert sum(shares) == pytest.approx(effect(designs.whole(4)))
    assert shares[2] == pytest.approx(0.025)  # nothing alone, and half of what it makes together with factor 0


def test_putting_in_and_taking_out_tell_what_acts_together():
    assert effect(effect_of((0,), 4).put_in) == pytest.approx(0.1)
    assert effect(effect_of((0,), 4).taken_out) == pytest.approx(0.15)
    assert effect(effect_of((0,), 4).disagreement) == pytest.approx(-0.05)
    assert effect(designs.excess((0, 2))) == pytest.approx(0.05)
    assert effect(designs.excess((0, 1, 2))) == pytest.approx(0.05)


@pytest.mark.parametrize("factors", range(4, designs.MOST_CROSSED + 1))
def test_a_two_level_design_clears_main_effects_of_pairs(factors):
    configurations, contrasts = designs.crossed(factors)
    assert {0, (1 << factors) - 1} <= set(configurations)
    columns = np.array([[2 * (one >> place & 1) - 1 for place in range(factors)] for one in configurations])
    assert (columns.T @ columns == len(configurations) * np.eye(factors)).all()
    for first, second, third in itertools.combinations(range(factors), 3):  # resolution IV
        assert (columns[:, first] * columns[:, second] * columns[:, third]).sum() == 0
    for place, contrast in enumerate(contrasts):
        shares = effect(effect_of((place,), factors).share)
        assert effect(contrast) == pytest.approx(shares)


def test_margins_are_those_of_the_effect():
    rule = effect_of((0,), 3).disagreement.rule(PairedRule(0.01, 0.05))
    assert math.log1p(rule.must_detect) == pytest.approx(math.log1p(0.05) / 2)


def test_noise_decides_which_design_takes_fewer_launches():
    rule = PairedRule(0.01, 0.05)
    assert designs.launches_alone(10, 0.01, rule) < designs.launches_crossed(10, 0.01, rule)
    assert designs.launches_alone(10, 0.06, rule) > designs.launches_crossed(10, 0.06, rule)


@pytest.mark.parametrize("members", [(1, 4), (0, 5), (0, 2, 5), (1, 2, 3), (0, 1, 2, 3, 4, 5)])
def test_the_smallest_group_is_found(members):
    asked = []

    def test(part):
        asked.append(part)
        return set(members) <= set(part)

    assert search.smallest(range(6), test) == members
    assert len(asked) == len(set(asked))


def test_what_cannot_be_decided_is_not_left_out():
    assert search.smallest(range(4), lambda part: None) == (0, 1, 2, 3)
