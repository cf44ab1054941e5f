"""``jacobi_temporal``: the same bits as ``jacobi`` for all schemes, depths, ranks and threads (experiment R9)."""

import itertools
from typing import Any

import pytest
from jacobi_split import Split, hybrid, outcome
from kernel_stack import KernelStack

SIZE = "19,26,31"
SMALL = ("--size", SIZE, "--sweeps", "7", "--repetitions", "1")


def rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Parameters of the rows."""
    return [item["params"] for item in document["measurements"] if item["metric"] == "rate"]


def plain_outcome(stack: KernelStack, boundary: str) -> str:
    """What ``jacobi`` finds, on one rank."""
    return outcome(stack.json(1, "jacobi", *SMALL, "--boundary", boundary, "--mode", "pure"))


@pytest.mark.parametrize(("boundary", "cases"), [
    pytest.param("periodic", [(1, 3, 8), (2, 2, 3), (4, 1, 2), (5, 3, 4)], marks=pytest.mark.long),
    ("fixed", [(1, 1, 8), (2, 3, 7), (3, 2, 5), (5, 1, 1)]),
])  # fmt: skip
def test_same_bits_as_jacobi_for_all_ranks_threads_and_depths(one_stack, boundary, cases):
    expected = plain_outcome(one_stack, boundary)
    for ranks, threads, depth in cases:
        options = ["--boundary", boundary, "--depth", str(depth), "--tile", "5,2"]
        document = one_stack.json(ranks, "jacobi_temporal", *SMALL, *options, env=hybrid(threads))
        assert [check["what"] for check in document["checks"]][-1] == "same bits as the serial solver"
        kinds = [(row["mode"], row["sync"], row["lower"], row["upper"]) for row in rows(document)]
        assert kinds[0] == ("plain", "none", 0, 0)
        stages = {(mode, sync) for mode in ("wavefront", "pipelined") for sync in ("barrier", "relaxed")}
        assert {kind[:2] for kind in kinds[1:]} == {*stages, ("columns", "relaxed")}
        assert ("pipelined", "relaxed", 1, 4) in kinds
        sources = {(row["mode"], row["lower"], row["upper"]): row["distances"] for row in rows(document)}
        assert (sources["plain", 0, 0], sources["pipelined", 1, 4]) == ("none", "given")
        assert set(sources.values()) <= {"none", "given", "caches"}
        assert outcome(document) == expected


def test_stages_have_all_levels_in_order(tmp_path):
    split = Split(tmp_path)
    for levels, threads in itertools.product(range(1, 33), repeat=2):
        stages = [split.levels(levels, threads, stage) for stage in range(threads)]
        assert [level for stage in stages for level in stage] == list(range(1, levels + 1))
        if levels >= threads > 1:
            assert 1 <= len(stages[0]) <= min(map(len, stages[1:]))


@pytest.mark.parametrize(
    "depth", [pytest.param(depth, marks=() if depth in (1, 2, 5, 8) else pytest.mark.long) for depth in range(1, 9)]
)
def test_every_depth_of_halo(one_stack, depth):
    options = ["--depth", str(depth), "--scheme", "pipelined", "--sync", "barrier", "--tile", "3,1"]
    document = one_stack.json(2, "jacobi_temporal", *SMALL, *options)
    assert {row["depth"] for row in rows(document)} == {1, depth}


def test_every_stack_computes_the_same(kernel_stack):
    options = ["--depth", "4", "--halos", "blocking", "--lower", "1,2,3,3", "--upper", "1,2,9,9", "--sync", "relaxed"]
    document = kernel_stack.json(2, "jacobi_temporal", *SMALL, *options, env=hybrid(2))
    found = [(row["lower"], row["upper"]) for row in rows(document) if row["mode"] == "wavefront"]
    assert found == [(1, 1), (2, 2), (3, 9)]  # each once
    assert outcome(document) == plain_outcome(kernel_stack, "periodic")


def test_the_speedup_is_the_ratio_of_the_rates(one_stack):
    found = one_stack.json(1, "jacobi_temporal", *SMALL)["measurements"]
    rates = [item["value"] for item in found if item["metric"] == "rate"]
    speedups = [item["value"] for item in found if item["metric"] == "speedup"]
    assert speedups == pytest.approx([rate / rates[0] for rate in rates], rel=1e-6)
