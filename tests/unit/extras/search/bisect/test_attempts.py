"""How often two commits are compared until a gate decides."""

import math
from types import SimpleNamespace

import msgspec
import pytest

from plumbline.extras.search.bisect import bench
from plumbline.extras.search.bisect.search import ATTEMPTS, Comparison, decided

FAIL = Comparison(baseline="a", candidate="b", tolerance=0.005, must_detect=0.02, state="FAIL", launches=26)


def undecided(ratio, half, *, in_doubt=False):
    """A gate of 90 pairs whose interval has ``half`` on both sides of its ratio."""
    return msgspec.structs.replace(
        FAIL, state="INCONCLUSIVE", launches=180, ratio=ratio,
        interval=(ratio * math.exp(-half), ratio * math.exp(half)), in_doubt=in_doubt,
    )  # fmt: skip


def passed(ratio):
    return msgspec.structs.replace(FAIL, state="PASS", ratio=ratio, interval=(ratio / 1.015, ratio * 1.015))


GATES = {
    "decided at once": ([FAIL], False, 26),
    "the second decides": ([undecided(1.01, 0.015), FAIL], False, 206),
    "none decides": ([undecided(1.01, 0.015)] * ATTEMPTS, False, 180 * ATTEMPTS),
    "noise hides little more than is looked for": ([undecided(1.01, 0.0245), FAIL], False, 206),
    "noise hides far more than is looked for": ([undecided(1.01, 0.03)], False, 180),
    "disturbance left it open": ([undecided(1.01, 0.03, in_doubt=True), FAIL], False, 206),
    "ends that nearly differ": ([undecided(1.011, 0.015), FAIL], True, 206),
    "ends that hardly differ": ([undecided(1.005, 0.015)], True, 180),
    "ends that were disturbed": ([undecided(1.005, 0.015, in_doubt=True), FAIL], True, 206),
    "ends that nearly differ and passed": ([passed(1.008), FAIL], True, 52),
    "ends that nearly differ at first": ([passed(1.008), passed(1.002)], True, 52),
    "ends that hardly differ and passed": ([passed(1.002)], True, 26),
    "a commit that passed": ([passed(1.008)], False, 26),
}


@pytest.mark.parametrize(("gates", "ends", "launches"), GATES.values(), ids=GATES)
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
