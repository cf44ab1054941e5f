"""The best hybrid code against the best pure MPI code: an interval that knows that both were chosen."""

import math

import numpy as np
import pieces
import pytest
import reports

from plumbline.judge import hybrid
from plumbline.records.model import convert
from plumbline.show.compare import NOTHING
from plumbline.show.compare import hybrids_text as text
from plumbline.show.report.data import document
from plumbline.statistics import unpaired


def test_place_0_is_from_the_worst_to_the_best_pair():
    assert unpaired.ratios([2.0, 8.0], [4.0, 1.0], 0) == (0.5, 8.0)


def test_the_bounds_are_the_ordered_ratios():
    """5 against 5 values: the smallest of the 25 ratios is a lower bound with error 1/252."""
    one, other = [10.0, 11, 12, 13, 14], [5.0, 5.5, 6, 6.5, 7]
    assert unpaired.best_ratio([one], [other], error=2 / 252) == (pytest.approx(10 / 7), pytest.approx(14 / 5))
    assert unpaired.best_ratio([one], [other], error=1.9 / 252) == (0.0, math.inf)


@pytest.mark.parametrize(("first", "second"), [(1, 1), (5, 1), (1, 4), (6, 3)])
def test_one_value_less_than_needed_gives_no_interval(first, second):
    def interval(count):
        things = [[1.0 + place / 100 for place in range(count)]]
        return unpaired.best_ratio(things * first, things * second)

    count = unpaired.values_needed(first, second)
    low, high = interval(count)
    assert 0 < low <= 1 <= high < math.inf
    low, high = interval(count - 1)
    assert low == 0 or high == math.inf


def test_the_ratio_of_the_true_bests_is_in_the_interval():
    """Six hybrid codes and three pure ones, all equally fast: the luckiest of each is picked, and nobody wins."""
    dice, wrong = np.random.default_rng(1), 0
    for _ in range(400):
        first, second = (dice.normal(100, 5, (count, 7)).tolist() for count in (6, 3))
        low, high = unpaired.best_ratio(first, second)
        wrong += not low <= 1 <= high
    assert wrong <= 400 * unpaired.ERROR


def measured(operation, placement, threads, values, **changes):
    """A record of a mode of the stencil."""
    return convert(reports.solver(operation, placement, threads, values) | changes)


SLOW, MIDDLE, FAST = ([base + step for step in range(7)] for base in (1000.0, 1100.0, 1300.0))


@pytest.mark.parametrize(("pure", "vector", "task", "said"), [
    (MIDDLE, SLOW, FAST, "hybrid wins"),
    (FAST, SLOW, MIDDLE, "pure MPI wins"),
    (FAST, SLOW, FAST, "no difference seen"),
    (MIDDLE[:3], SLOW[:3], FAST[:3], "too few launches: -S launches=5"),
])  # fmt: skip
def test_the_best_of_each_kind_is_compared(pure, vector, task, said):
    items = [
        measured("pure", "core", 1, pure),
        measured("pure", "node", 8, SLOW),  # one rank, which uses one thread of eight: no hybrid code
        measured("vector", "node", 8, vector),
        measured("task-split", "node", 8, task),
    ]
    (found,) = hybrid.verdicts(items)
    assert (found.pure.id, found.hybrid.id) == (items[0].id, items[3].id)
    assert found.explanation == said
    assert found.ratio == task[len(task) // 2] / pure[len(pure) // 2]
    *_, closing = text([found]).splitlines()
    assert closing == f"1 {found.state}"


@pytest.mark.parametrize(("percent", "said"), [(20, "no difference seen"), (30, "pure MPI wins")])
def test_codes_of_different_sessions_must_differ_by_more(percent, said):
    """What differs between sessions is in no interval of launches."""
    faster = [value * (1 + percent / 100) for value in SLOW]
    pure, vector = measured("pure", "core", 1, faster), measured("vector", "node", 8, SLOW)
    assert hybrid.verdicts([pure, vector])[0].state == "pure MPI wins"
    pure.session = "another"
    assert hybrid.verdicts([pure, vector])[0].state == said


def test_notes_tell_sessions_apart_and_disturbed_launches():
    items = [measured("pure", "core", 1, FAST), measured("vector", "node", 8, SLOW)]
    assert hybrid.notes(hybrid.verdicts(items)) == [hybrid.MEANING]
    items[0].session, items[0].launches[0].disturbed = "another", True
    meaning, apart, disturbed = hybrid.notes(hybrid.verdicts(items))
    assert (meaning, apart) == (hybrid.MEANING, hybrid.APART)
    count = sum(item.launch_count for item in items)
    assert disturbed.startswith(f"1 of {count} launches were disturbed")


def test_times_are_better_when_lower():
    items = [measured("pure", "core", 1, FAST), measured("vector", "node", 8, SLOW)]
    for item in items:
        item.figures[0].better = "lower"
    assert hybrid.verdicts(items)[0].state == "hybrid wins"


def test_only_one_problem_on_the_same_nodes_is_compared():
    pure, vector = measured("pure", "core", 1, FAST), measured("vector", "node", 8, SLOW)
    vector.variant.params["node_count"] = 2
    assert hybrid.verdicts([pure, vector]) == []
    assert text([]) == NOTHING


def test_the_newest_record_of_a_variant_counts_and_an_invalid_one_never():
    old = measured("vector", "node", 8, FAST, time="2026-01-01T00:00:00.000Z")
    new = measured("vector", "node", 8, SLOW, time="2026-02-01T00:00:00.000Z")
    bad = measured("task-split", "node", 8, FAST, verified=False, verdict="invalid", reasons=["moved"])
    (found,) = hybrid.verdicts([new, old, bad, measured("pure", "core", 1, MIDDLE)])
    assert found.hybrid.id == new.id
    assert found.state == "pure MPI wins"


def test_the_report_has_the_verdict():
    items = [measured("pure", "core", 1, MIDDLE), measured("vector", "node", 8, FAST)]
    found = document("local", items)
    shown = pieces.section(found, "hybrids")
    (row,) = pieces.rows(shown)
    hybrid, pure = (found["entries"][one["entry"]]["id"] for one in pieces.blocks(shown, "link"))
    assert (hybrid, pure) == (items[1].id, items[0].id)
    assert (row[6], row[2]) == ("hybrid wins", "vector node 1x8 local 1303 MLUP/s")
    (finding,) = [
        item
        for item in pieces.blocks(pieces.section(found, "findings"), "link")
        if "the best hybrid code (vector node 1x8 local) is 1.181 [" in pieces.text(item)
    ]
    assert found["entries"][finding["entry"]]["id"] == items[1].id
    assert "Not measured" in pieces.text(pieces.section(document("local", items[:1]), "hybrids"))


def of_program(threads, values, commit="a" * 40):
    """A record of a program of plumb.yaml, which has no mode."""
    document = reports.solver("any", "core" if threads == 1 else "numa", threads, values)
    params = {"placement": document["placement"]["name"], "threads": threads}
    state = {"name": "heat", "program": "heat", "commit": commit}
    document["variant"] |= {"params": params, "name": f"heat %threads={threads}", "application": state}
    return convert(document)


def test_threads_of_a_program_of_ones_own_are_compared_commit_by_commit():
    one, two = of_program(1, MIDDLE), of_program(4, FAST)
    (found,) = hybrid.verdicts([one, two])
    assert (found.state, found.pure.id, found.hybrid.id) == ("hybrid wins", one.id, two.id)
    assert hybrid.how(found.hybrid).startswith("numa ")
    assert hybrid.verdicts([of_program(1, MIDDLE, "b" * 40), two]) == []
    assert hybrid.verdicts([one]) == []
