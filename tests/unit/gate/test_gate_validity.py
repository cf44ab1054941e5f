"""Series that cannot be judged, and degenerate ones that can."""

import math

import numpy as np
import pytest
from gate_pairs import pairs_of, values_of
from hypothesis import given, settings
from hypothesis import strategies as st
from test_gate_sequential import series

from plumbline.base.errors import PlumbError
from plumbline.base.verdicts import worst
from plumbline.judge import from_csv
from plumbline.judge.decide import decide
from plumbline.statistics.paired import PairedRule


def one(item):
    return decide([item], PairedRule())[0]


def constant(baseline, candidate, step, better="lower"):
    return one(pairs_of("s", [baseline] * 90, [candidate] * 90, better, (step, step)))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 0.0, -1.0, None])
@pytest.mark.parametrize("place", [0, 50, 89])
@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_one_bad_value_anywhere_is_invalid(bad, place, side):
    item = series()
    columns = {"baseline": list(item.baseline.values), "candidate": list(item.candidate.values)}
    assert one(item).state == "PASS"
    columns[side][place] = bad
    found = one(pairs_of("s", **columns, better="lower"))
    assert found.state == "INVALID"
    assert found.reason


@settings(max_examples=100)
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=20),
    st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=20),
)
def test_nothing_added_makes_an_invalid_series_pass(baseline, candidate):
    good = series()
    spoiled = [*baseline, math.nan, *good.baseline.values], [*candidate, 1.0, *good.candidate.values]
    assert one(pairs_of("s", *spoiled, "lower")).state == "INVALID"


def test_too_few_and_unequal():
    assert "12 pairs" in one(series(pairs=12)).reason
    baseline, candidate = values_of(series())
    assert "89 values of the baseline" in one(pairs_of("s", baseline[1:], candidate, "lower")).reason
    assert one(pairs_of("s", [], [], "lower")).state == "INVALID"


def test_no_series_is_an_error_and_a_name_twice_is_invalid():
    with pytest.raises(PlumbError, match="0 series"):
        decide([], PairedRule())
    assert worst([]) == "INVALID"
    assert [item.state for item in decide([series(), series(seed=1)], PairedRule())] == ["INVALID", "INVALID"]


def test_the_same_numbers_twice_and_another_unit():
    item = series()
    assert "listed twice" in one(pairs_of("s", item.baseline.values, item.baseline.values, "lower")).reason
    faster = one(pairs_of("s", item.baseline.values, [value / 1000 for value in item.candidate.values], "lower"))
    assert faster.state == "INVALID"
    assert "another unit" in faster.reason


def test_constants_are_judged_as_far_as_their_step_lets():
    assert constant(100.0, 100.0, 0.1).state == "PASS"
    assert constant(100.0, 100.0, 0.1).detectable == pytest.approx(0.001, rel=0.01)
    assert constant(100.0, 105.0, 0.1).state == "FAIL"
    assert constant(0.23, 0.24, 0.01).state == "INCONCLUSIVE"
    found = constant(2.0, 2.0, 1.0)
    assert found.state == "INCONCLUSIVE"
    assert "step" in found.reason


def test_rounded_timers_with_noise_over_several_steps_are_judged():
    columns = [[round(value) for value in side] for side in values_of(series(noise=0.02))]
    rounded = pairs_of("s", *columns, "lower", (1.0, 1.0))
    assert one(rounded).state == "PASS"


def test_the_worst_verdict_is_the_campaigns():
    order = ["PASS", "INCONCLUSIVE", "FAIL", "INVALID"]
    assert worst(order) == "INVALID"
    assert worst(order[:3]) == "FAIL"
    assert worst(order[:2]) == "INCONCLUSIVE"


def undecided(candidate_ratio, noise, pairs=13, is_fixed=False):
    columns = values_of(series(candidate_ratio, noise, pairs=pairs, seed=4))
    return one(pairs_of("s", *columns, "lower", fixed=is_fixed))


def test_an_interval_beyond_the_tolerance_says_what_a_fail_needs():
    found = undecided(1.05, 0.025)
    assert found.state == "INCONCLUSIVE"
    assert found.interval[0] > 1.01
    assert "slower than 1.0 % with 99 % certainty" in found.reason
    assert found.reason.endswith("but a FAIL needs 99.9 %: the next look is at 19 pairs")
    given = undecided(1.05, 0.025, is_fixed=True)
    assert given.interval[0] > 1.01
    assert given.reason.endswith("but a FAIL needs 99.9 %: 13 pairs are too few for it")


def test_each_side_has_a_step_of_its_own():
    """0.23 is anything from 0.225 to 0.235, also where the other side has four decimals."""
    baseline, candidate = [0.23] * 90, [round(0.2364 + 0.0002 * (n % 7), 4) for n in range(90)]
    found = one(pairs_of("s", baseline, candidate, "lower", (0.01, 0.0001)))
    assert found.state == "INCONCLUSIVE"
    assert "few digits" in found.reason
    assert one(pairs_of("s", baseline, candidate, "lower", (0.0001, 0.0001))).state == "FAIL"


def test_the_interval_has_what_the_digits_hide():
    """LULESH prints 1.4 (s) for 1.35 to 1.45: equal medians of 1.4 and 1.5 may be one of 1.07."""
    found = one(pairs_of("s", [1.4] * 60 + [1.5] * 30, [1.5] * 70 + [1.4] * 20, "lower", (0.1, 0.1)))
    assert found.interval[0] < 1.0 < 1.06 < found.interval[1]


def test_a_sum_of_printed_numbers_is_known_to_all_their_steps(tmp_path):
    """Three phases of 0.155 s, printed with two decimals and added up: the candidate is exactly 5 % slower."""
    random = np.random.default_rng(1)
    lines = ["series,baseline,candidate"]
    for _ in range(90):
        sides = [sum(round(level * random.normal(1, 0.005), 2) for _ in range(3)) for level in (0.155, 0.16275)]
        lines.append(",".join(["sum", *map(repr, sides)]))
    (tmp_path / "sum.csv").write_text("\n".join(lines))
    (verdict,) = decide(from_csv.pairs(tmp_path / "sum.csv", "lower"), PairedRule())
    assert (verdict.state, "few digits" in verdict.reason) == ("INCONCLUSIVE", True)
