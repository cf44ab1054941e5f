"""Values that repeat in more digits than a measurement can, and how often a measurement would be refused for it."""

import numpy as np
import pytest
from scipy import special

from plumbline.base.digits import repeated

EQUAL = 1234.56789


@pytest.mark.parametrize(("values", "refused"), [
    ([EQUAL] * 5, True),
    ([EQUAL] * 3, True),
    ([EQUAL] * 2, False),
    ([EQUAL] * 4 + [EQUAL + 1], True),  # what a first launch has kept
    ([EQUAL] * 3 + [EQUAL + 1], False),
    ([EQUAL] * 3 + [EQUAL + 1] * 2, False),
    ([1.4] * 50, False),
    ([0.0] * 50, False),
    ([1234.0] * 100, False),
    ([0.05123456] * 5, True),
    ([5.123456e-8] * 5, True),
])  # fmt: skip
def test_what_repeats_in_more_digits_than_a_measurement_can_is_refused(values, refused):
    assert repeated([(values, 0.0)]) == ([0] if refused else [])


def test_a_known_step_counts_and_not_the_digits_of_arithmetic():
    assert repeated([([714.2857142857143] * 5, 51.0)]) == [], "a rate in a time of 1.4 s"
    assert repeated([([0.15000000000000002] * 50, 0.03)]) == [], "a sum of three times of 0.05 s"


def test_a_fixed_figure_is_refused_beside_one_that_varies():
    varying = [1.234567, 1.236512, 1.233999, 1.240001, 1.235551]
    assert repeated([(varying, 0.0), ([EQUAL] * 5, 0.0)]) == [1]


def shares(noise: float, shift: float) -> np.ndarray:
    """How often normal values are printed as each step, of a standard deviation and a mean in steps."""
    reach = int(8 * noise) + 3
    return np.diff(special.ndtr((np.arange(-reach, reach + 2) - 0.5 - shift) / noise))


def refused(noise: float, launches: int, value: int, shift: float) -> float:
    """How often launches that measure ``value`` steps with this noise, a fraction of it, are refused."""
    whole = bool(repeated([([value] * launches, 1.0)]))
    but_one = bool(repeated([([value] * (launches - 1) + [value + 1], 1.0)]))
    if not whole:  # all but one is less evidence
        return 0.0
    share = shares(noise * value, shift)
    return float(np.sum(share**launches + but_one * launches * share ** (launches - 1) * (1 - share)))


@pytest.mark.parametrize(("noise", "most"), [(1e-2, 1e-13), (1e-3, 1e-9), (1e-4, 1e-7)])
def test_an_honest_figure_is_hardly_ever_refused(noise, most):
    """The rates in docs/trust.md; all values from 1 to 10^6 steps, or to those that 3 launches need, and 3 to 100."""
    values = [round(10 ** (place / 8)) for place in range(8 * 7 + 1)]
    rates = [
        refused(noise, launches, value, shift)
        for launches in (3, 4, 5, 6, 8, 10, 20, 50, 100)
        for value in values
        if noise * value <= 10_000
        for shift in (0.0, 0.5)
    ]
    assert 0 < max(rates) <= most


def test_the_steadiest_measurement_is_assumed_to_vary_by_a_ten_thousandth():
    assert refused(1e-5, 100, 12589, 0.0) > 0.9
