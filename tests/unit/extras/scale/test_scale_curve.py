"""Scaling curves with planted laws: intervals, the law that is named, and why a curve bends."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from plumbline.base.errors import PlumbError
from plumbline.extras.scale import bends, curve, measured, shown
from plumbline.extras.scale.bends import Account, Step
from plumbline.extras.scale.curve import Curve
from plumbline.extras.scale.measured import Scaling
from plumbline.parsers.application import FigureRule

sys.path.insert(0, str(Path(__file__).parents[3] / "rates"))
from scaling import COUNTS, LAWS, N, planted


@pytest.mark.parametrize("name", LAWS)
def test_intervals_hold_the_planted_efficiency_and_parameters(name: str) -> None:
    """95 % intervals of efficiency; parameters' in 99 %, if the right law is named; a curve without a law has none."""
    times, parameters = LAWS[name]
    inside, counted, covered, named = 0, 0, 0, 0
    for seed in range(40):
        known = planted(name, 0.01, 8, seed)
        for place in range(1, len(COUNTS)):
            each, truth = known.efficiency(place), times[0] / (times[place] * N[place])
            inside += each.low <= truth <= each.high
            counted += 1
        law, why = known.law()
        assert law is None or parameters, law
        assert law or "refused" in why
        if law:
            named += law.parameters.keys() == parameters.keys()
            covered += all(law.parameters[key].low <= parameters[key] <= law.parameters[key].high for key in parameters)
    assert inside >= 0.9 * counted
    assert named >= (38 if parameters else 0)
    assert covered >= (38 if parameters else 0)


def test_rates_and_weak_scaling_have_speedups_too() -> None:
    values = np.array([[10.0] * 3, [18.0] * 3])
    assert Curve((1, 2), values, rates=True).speedup(1).value == pytest.approx(1.8)
    slower = Curve((1, 2), np.array([[1.0] * 3, [1.25] * 3]), weak=True)
    assert (slower.speedup(1).value, slower.efficiency(1).value) == pytest.approx((1.6, 0.8))


def test_a_point_without_values_is_a_hole() -> None:
    """Nothing is interpolated; without the first point the next one is the base."""
    values = np.array([[np.nan] * 3, [1.0, 1.01, 0.99], [0.5, 0.51, 0.5]])
    known = Curve((1, 2, 4), values)
    assert (known.measured, known.base) == ([1, 2], 1)
    assert known.efficiency(2).value == pytest.approx(0.99, abs=0.02)
    assert known.law() == (None, "a law needs three points and three rounds of all of them")


def test_the_best_numbers_say_what_is_not_decided() -> None:
    known = planted("saturated at 8", 0.03, 6, 1)
    least, open_places = curve.fastest(known)
    assert least == 3
    assert set(open_places) <= {3, 4, 5, 6}
    largest, _ = curve.most_efficient(planted("saturated at 8", 0.005, 6, 1), 0.7)
    assert COUNTS[largest or 0] == 8
    assert curve.most_efficient(planted("saturated at 8", 0.005, 6, 1), 1.2) == (None, [])


SPENT = {
    "kernel": 0.0,
    "faults": 0.0,
    "threads": 4,
    **dict.fromkeys(("thread_load", "rank_load", "first", "others_load"), 1.0),
}


def step(cpu: float, wall: float, waited: float = 0.0, weak: bool = False, **spent: float) -> Step:
    """From 2 threads that worked 4 s on 2 CPUs each to 4 threads."""
    old = Account(8.0, 4.0, 0.0, {**SPENT, "threads": 2})
    grown = 2.0 if weak else 1.0
    return Step(2, 4, 4.0 / 2 / wall * grown, old, Account(cpu, wall, waited, {**SPENT, **spent}), weak, "threads")


@pytest.mark.parametrize(
    ("planted_step", "name"),
    [
        (step(8.0, 3.0, thread_load=1.5), "load"),
        (step(8.0, 3.0, thread_load=1.5, first=2.0), "serial part"),
        (step(8.0, 3.0, thread_load=1.5, first=1.5, others_load=1.3), "load"),
        (step(8.0, 3.0), "waits"),
        (step(8.0, 3.0, waited=1.0), "other work"),
        (step(8.0, 4.0, threads=2), "threads not used"),
        (step(8.0, 4.0, threads=2, listed=0.1), "load or waits"),
        (step(12.0, 3.0), "memory, caches, clock, or spinning"),
        (step(12.0, 3.0, kernel=0.33, faults=250_000), "kernel"),
        (step(24.0, 6.0, weak=True), "memory, caches, clock, or spinning"),
    ],
)
def test_the_account_of_cpu_time_names_the_cause(planted_step: Step, name: str) -> None:
    known = bends.cause(planted_step)
    assert known is not None
    assert known.name == name
    assert bends.sentence(planted_step).startswith("from 2 to 4 threads: +")
    assert f"of +100 %: {name}: " in bends.sentence(planted_step)


@pytest.mark.parametrize(
    "launch",
    [
        '"place": 2, "round": 0',
        '"place": -1, "round": 0',
        '"place": 0, "round": 9',
        '"place": 0, "round": 0, "value": 0.0',
    ],
)
def test_launches_that_were_not_measured_are_one_line(tmp_path: Path, launch: str) -> None:
    scaling = Scaling(
        name="x", kind="threads", counts=[1, 2], commands=[["x"]] * 2, placement="", weak=False, rule=FigureRule(),
        minutes=1.0, rounds=3, seed=1, circumstances={},
    )  # fmt: skip
    (tmp_path / measured.FILE).write_text(f"[{{{launch}}}]")
    with pytest.raises(PlumbError, match="not the launches of a scaling"):
        measured.kept(tmp_path, scaling)


def test_two_causes_at_once_are_not_decided() -> None:
    """Half is idle time, half is dearer work."""
    both = step(10.0, 3.1)
    assert bends.cause(both) is None
    assert "not decided: CPUs busy × 0.81, work per CPU time × 0.80" in bends.sentence(both)


def test_two_rounds_have_no_interval() -> None:
    known = Curve((1, 2), np.array([[1.0, 1.1], [0.6, 0.61]]))
    assert shown._interval(known.efficiency(1)) == f"{known.efficiency(1).value:.2f}"
