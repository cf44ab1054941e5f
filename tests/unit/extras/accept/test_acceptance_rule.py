"""The numbers of an acceptance test: what counts as shown, against sums over all outcomes."""

import math

import pytest

from plumbline.statistics.acceptance import AcceptanceRule, bound, shown

RULES = [
    AcceptanceRule(members, share, confidence, launches, of_launches, retests)
    for members in (1, 8, 100, 1000)
    for share in (1.0, 0.98, 0.75)
    for confidence in (0.75, 0.95, 0.99)
    for launches in (5, 8, 13, 30)
    for of_launches in (0.5, 0.9)
    for retests in (0, 1)
]


def exact(count, of, chance):
    """The probability of ``count`` or more of ``of``, as a sum over the fewer outcomes."""
    more = 2 * count > of
    outcomes = range(count, of + 1) if more else range(count)
    total = math.fsum(math.comb(of, k) * chance**k * (1 - chance) ** (of - k) for k in outcomes)
    return total if more else 1 - total


def twice(single, rule):
    return 1 - (1 - single) ** (1 + rule.retests)


@pytest.mark.parametrize("bad", [1, 2, 5])
def test_no_machine_with_too_many_bad_members_passes_more_often_than_declared(bad):
    """Whatever the number of bad members; good ones are all taken to be shown."""
    for rule in RULES:
        count = rule.allowed + bad
        if rule.meeting is None or count > rule.members:
            continue
        wrongly = twice(exact(rule.meeting, rule.launches, rule.of_launches), rule)
        assert exact(bad, count, wrongly) <= 1 - rule.confidence + 1e-12, rule
        if bad == 1:
            assert exact(1, count, wrongly) == pytest.approx(rule.buyer)


def test_a_machine_that_is_just_good_fails_no_more_often_than_declared():
    for rule in RULES:
        if rule.failing is None:
            continue
        wrongly = twice(exact(rule.missing, rule.launches, 1 - rule.of_launches), rule)
        rate = exact(rule.failing - rule.allowed, rule.members - rule.allowed, wrongly)
        assert rate == pytest.approx(rule.vendor)
        assert rate <= 1 - rule.confidence + 1e-12, rule


def test_fewer_launches_would_not_be_enough():
    for rule in RULES:
        if rule.meeting is not None and rule.meeting > 1:
            fewer = twice(exact(rule.meeting - 1, rule.launches, rule.of_launches), rule)
            assert exact(1, rule.allowed + 1, fewer) > 1 - rule.confidence
        needed = rule.launches_needed()
        assert needed is not None
        assert (rule.launches >= needed) == (rule.meeting is not None)


@pytest.mark.parametrize(
    ("of_launches", "confidence", "launches"), [(0.5, 0.95, 5), (0.9, 0.9, 22), (0.95, 0.95, 59), (0.99, 0.99, 459)]
)
def test_one_member_needs_as_many_launches_as_wilks_says(of_launches, confidence, launches):
    """Tables of one-sided nonparametric tolerance limits by the smallest value, such as NIST's."""
    assert AcceptanceRule(1, 1.0, confidence, launches, of_launches).launches_needed() == launches


def test_a_member_cannot_be_shown_and_missed():
    assert all(rule.meeting is None or rule.meeting + rule.missing > rule.launches for rule in RULES)


def test_the_bound_is_the_best_limit_that_passes():
    rule = AcceptanceRule(3, 0.6, 0.8, 6)
    members = [[1.0, 2, 3, 4, 5, 6], [7.0, 7, 7, 7, 7, 7], [2.0, 2, 2, 2, 2, 9]]
    assert (rule.allowed, rule.meeting) == (1, 6)
    bounds = [bound(row, rule, higher=True) for row in members]
    assert bounds == [1, 7, 2]
    assert shown([one for one in bounds if one is not None], rule, higher=True) == 2
    assert bound([1.0, 2], rule, higher=True) is None
    assert bound([3.0, 1, 2, 6, 5, 4], rule, higher=False) == 6


def test_what_is_found_is_found_nine_times_in_ten():
    rule = AcceptanceRule(8, 1.0, 0.95, 8)
    margin, found = rule.margin(), rule.detection_margin()
    assert margin is not None
    assert found is not None
    below = 0.5 * math.erfc(-margin / math.sqrt(2))
    assert rule.passes(below) == pytest.approx(0.9, abs=1e-4)
    assert rule.finds(0.5 * math.erfc(-found / math.sqrt(2))) == pytest.approx(0.9, abs=1e-4)
    assert AcceptanceRule(8, 1.0, 0.95, 4).margin() is None


def test_how_many_launches_would_decide():
    rule = AcceptanceRule(8, 1.0, 0.95, 8)
    more = rule.deciding(6, 8)
    assert more is not None
    again = AcceptanceRule(8, 1.0, 0.95, more)
    assert again.meeting is not None
    assert 0.75 * more >= again.meeting
    assert rule.deciding(4, 8) is None
    assert AcceptanceRule(1000, 1.0, 0.95, 8).deciding(0, 8) == AcceptanceRule(1000, 1.0, 0.95, 8).launches_failing()
