"""How often two commits are compared until a gate decides."""

import math
from types import SimpleNamespace

import msgspec
import pytest

from plumbline.extras.search.bisect import bench
from plumbline.extras.search.bisect.search import ATTEMPTS, Comparison, decided

FAIL = Comparison(baseline="a", candidate="b", tolerance=0.005, must_detect=0.02, state="FAIL", launches=26)


def undecided(ratio: float, half: float, *, in_doubt: bool = False) -> Comparison:
    """A gate of 90 pairs whose interval has ``half`` on both sides of its ratio."""
    return msgspec.structs.replace(
        FAIL,
        state="INCONCLUSIVE",
        launches=180,
        ratio=ratio,
        interval=(ratio * math.exp(-half), ratio * math.exp(half)),
        in_doubt=in_doubt,
    )


def passed(ratio: float) -> Comparison:
    return msgspec.structs.replace(FAIL, state="PASS", ratio=ratio, interval=(ratio / 1.015, ratio * 1.015))


@pytest.mark.parametrize(
    ("gates", "ends", "launches"),
    [
        ([FAIL], False, 26),
        ([undecided(1.01, 0.015), FAIL], False, 206),
        ([undecided(1.01, 0.015)] * ATTEMPTS, False, 180 * ATTEMPTS),
        ([undecided(1.01, 0.0245), FAIL], False, 206),
        ([undecided(1.01, 0.03)], False, 180),
        ([undecided(1.01, 0.03, in_doubt=True), FAIL], False, 206),
        ([undecided(1.011, 0.015), FAIL], True, 206),
        ([undecided(1.005, 0.015)], True, 180),
        ([undecided(1.005, 0.015, in_doubt=True), FAIL], True, 206),
        ([passed(1.008), FAIL], True, 52),
        ([passed(1.008), passed(1.002)], True, 52),
        ([passed(1.002)], True, 26),
        ([passed(1.008)], False, 26),
    ],
    ids=[
        "decided at once",
        "the second decides",
        "none decides",
        "noise hides little more than is looked for",
        "noise hides far more than is looked for",
        "disturbance left it open",
        "ends that nearly differ",
        "ends that hardly differ",
        "ends that were disturbed",
        "ends that nearly differ and passed",
        "ends that nearly differ at first",
        "ends that hardly differ and passed",
        "a commit that passed",
    ],
)
def test_an_open_gate_is_measured_again_where_that_may_decide(gates, ends, launches):
    asked = []

    def gate(attempt):
        asked.append(attempt)
        return gates[attempt]

    made = decided(gate, ends=ends)
    assert (made.state, made.launches) == (gates[-1].state, launches)
    assert asked == list(range(len(gates)))


def test_a_gate_that_could_not_be_measured_is_not_repeated():
    broken = msgspec.structs.replace(FAIL, state="INVALID", launches=0, unusable=("b",))
    assert decided(lambda _: broken) == broken


def test_a_second_gate_of_the_same_two_is_another_one_after_a_resumption_too(tmp_path):
    kept = [passed(1.008), FAIL]
    begun = bench.BisectionBench(tmp_path, SimpleNamespace(request=None, comparisons=kept), print)
    assert begun.compare("a", "b", FAIL.rule) is kept[0]
    assert begun.compare("a", "b", FAIL.rule, again=True) is kept[1]
