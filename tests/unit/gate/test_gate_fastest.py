"""On which stack a program is fastest, from the verdicts of gates."""

from collections.abc import Sequence

import pytest
from gate_pairs import pairs_of

from plumbline.gate import fastest
from plumbline.judge.decide import Verdict

BETTER = {"time": "lower", "rate": "higher"}


def verdict(name: str, state: str, ratio: float | None = None, reason: str | None = None) -> Verdict:
    return Verdict(name, state, 13, ratio=ratio, reason=reason, pairs=pairs_of(name, [], [], BETTER[name]))


def found(stacks: Sequence[str], gates: dict[str, Sequence[Verdict]]) -> tuple[list[str], int, list[str]]:
    """The words of each line of the table, the exit status, the gates that were made."""
    made: list[str] = []

    def compare(first: str, second: str) -> Sequence[Verdict]:
        made.append(f"{first} {second}")
        return gates[made[-1]]

    places, status = fastest.find(stacks, compare)
    return [" ".join(line.split()) for line in fastest.text(stacks, places).splitlines()], status, made


def test_times_and_rates_say_who_is_slower():
    gates = {"a b": [verdict("time", "FAIL", 1.25), verdict("rate", "GAIN", 1.5)]}
    lines, status, _ = found("ab", gates)
    assert lines[2:] == [
        "time a b 25 % slower than a",
        "rate b a 50 % slower than b",
        "",
        "2 figures: fastest is a in 1, b in 1, none alone in 0",
    ]
    assert status == 0


def test_equal_stacks_are_both_the_fastest():
    lines, status, _ = found("ab", {"a b": [verdict("time", "PASS", 1.0)]})
    assert lines[2] == "time a or b no difference between the first"
    assert (lines[-1], status) == ("1 figure: fastest is a in 0, b in 0, none alone in 1", 0)


@pytest.mark.parametrize(("state", "status"), [("INCONCLUSIVE", 2), ("INVALID", 3)])
def test_what_is_not_decided_is_said(state, status):
    gates = {"a b": [verdict("time", state, reason="disturbed")], "a c": [verdict("time", "FAIL", 1.1)]}
    lines, code, _ = found("abc", gates)
    assert (lines[2], code) == (f"time a or b c 10 % slower than a; {state}: disturbed", status)


def test_a_doubt_about_a_stack_that_is_beaten_does_not_count():
    gates = {
        "a b": [verdict("time", "INCONCLUSIVE", reason="disturbed")],
        "a c": [verdict("time", "GAIN", 0.5)],
        "b c": [verdict("time", "GAIN", 0.8)],
    }
    lines, _, _ = found("abc", gates)
    assert lines[2] == "time c a 100 % slower than c; b 25 % slower than c"


def test_a_stack_that_is_slower_everywhere_is_not_measured_again():
    gates = {
        "a b": [verdict("time", "FAIL", 1.25), verdict("rate", "FAIL", 0.5)],
        "a c": [verdict("time", "PASS", 1.0), verdict("rate", "GAIN", 1.1)],
    }
    lines, _, made = found("abc", gates)
    assert made == ["a b", "a c"]
    assert lines[2:4] == [
        "time a or c b 25 % slower than a; no difference between the first",
        "rate c a 10 % slower than c; b 100 % slower than a",
    ]
