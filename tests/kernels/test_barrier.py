"""``barrier``: every kind lets nobody through before all have come (experiment R7)."""

from pathlib import Path

import pytest

KINDS = {"pthread", "openmp", "spin", "dissemination", "hierarchical"}
FEW = ("--samples", "3", "--iterations", "3")


def test_every_kind_and_thread_count(one_stack):
    """More threads than CPUs, too: then those that wait must yield."""
    document = one_stack.json(1, "barrier", *FEW, "--threads", "2,3,7", "--spins", "50")
    rows = {(item["params"]["kernel"], item["params"]["threads"]) for item in document["measurements"]}
    assert rows == {(kind, threads) for kind in KINDS for threads in (2, 3, 7)}
    assert len(document["checks"]) == len(rows)
    assert all(item["value"] > 0 for item in document["measurements"])


def test_cycles_are_ticks_of_the_counter(kernel_stack):
    document = kernel_stack.json(1, "barrier", *FEW, "--kernel", "spin", threads=2)
    figures = {item["metric"]: item for item in document["measurements"]}
    assert figures["time"]["params"]["threads"] == 2
    if document["timer"]["source"] != "tsc":
        pytest.skip(f"the counter here is {document['timer']['source']}: no cycles")
    assert figures["time"]["value"] == pytest.approx(figures["cycles"]["value"] * document["timer"]["ns_per_tick"])


@pytest.mark.parametrize(("program", "runtime"), [("barrier", "libgomp"), ("barrier_iomp5", "libiomp5")])
def test_the_openmp_library_that_ran_is_named(kernel_stack, program, runtime):
    if not (kernel_stack.programs / program).exists():
        assert not (Path(kernel_stack.manifest.prefix) / "lib" / f"{runtime}.so").exists()
        return
    document = kernel_stack.json(1, program, *FEW, "--threads", "2")
    assert {item["params"]["runtime"] for item in document["measurements"]} == {runtime}


def test_all_threads_of_the_rank_are_the_last_count(one_stack):
    document = one_stack.json(2, "barrier", *FEW, "--kernel", "openmp", threads=5)
    assert [item["params"]["threads"] for item in document["measurements"] if item["metric"] == "time"] == [2, 4, 5]
