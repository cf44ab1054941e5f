"""``barrier``: every kind lets nobody through before all have come (experiment R7)."""

from __future__ import annotations

from pathlib import Path

import broken_kernel
import pytest
from kernel_stack import JsonOf, KernelStack

KINDS = {"pthread", "openmp", "spin", "dissemination", "hierarchical"}
FEW = ("--samples", "3", "--iterations", "3", "--json")


def test_every_kind_and_thread_count(one_stack: KernelStack, json_of: JsonOf) -> None:
    """More threads than CPUs, too: then those that wait must yield."""
    document = json_of(one_stack.mpirun(1, "barrier", *FEW, "--threads", "2,3,7", "--spins", "50"))
    assert document["passed"], document["checks"]
    rows = {(item["params"]["kernel"], item["params"]["threads"]) for item in document["measurements"]}
    assert rows == {(kind, threads) for kind in KINDS for threads in (2, 3, 7)}
    assert len(document["checks"]) == len(rows)
    assert all(item["value"] > 0 for item in document["measurements"])


def test_cycles_are_ticks_of_the_counter(kernel_stack: KernelStack, json_of: JsonOf) -> None:
    document = json_of(kernel_stack.mpirun(1, "barrier", *FEW, "--kernel", "spin", env={"OMP_NUM_THREADS": "2"}))
    figures = {item["metric"]: item for item in document["measurements"]}
    assert figures["time"]["params"]["threads"] == 2
    if document["timer"]["source"] != "tsc":
        pytest.skip(f"the counter here is {document['timer']['source']}: no cycles")
    assert figures["time"]["value"] == pytest.approx(figures["cycles"]["value"] * document["timer"]["ns_per_tick"])


@pytest.mark.parametrize(("program", "runtime"), [("barrier", "libgomp"), ("barrier_iomp5", "libiomp5")])
def test_the_openmp_library_that_ran_is_named(
    kernel_stack: KernelStack, json_of: JsonOf, program: str, runtime: str
) -> None:
    if not (kernel_stack.programs / program).exists():
        assert not (Path(kernel_stack.manifest.prefix) / "lib" / f"{runtime}.so").exists()
        return
    document = json_of(kernel_stack.mpirun(1, program, *FEW, "--threads", "2"))
    assert document["passed"], document["checks"]
    assert {item["params"]["runtime"] for item in document["measurements"]} == {runtime}


def test_all_threads_of_the_rank_are_the_last_count(one_stack: KernelStack, json_of: JsonOf) -> None:
    document = json_of(one_stack.mpirun(2, "barrier", *FEW, "--kernel", "openmp", env={"OMP_NUM_THREADS": "5"}))
    assert [item["params"]["threads"] for item in document["measurements"] if item["metric"] == "time"] == [2, 4, 5]


FAULTS = {
    # Those that come early do not wait: a wrong count could also leave one waiting for ever.
    "spin": ("await(&team->all.sense, sense, team->spins);", ";"),
    "hierarchical": ("await(&near->sense, sense, team->spins);", ""),
    "dissemination": ("(int round = 0; round < team->rounds;", "(int round = 1; round < team->rounds;"),
    "pthread": ("pthread_barrier_wait(&team->pthread);", ""),
    "openmp": ("#pragma omp barrier\n", ""),
}  # fmt: skip


@pytest.mark.parametrize("kind", FAULTS)
def test_a_barrier_that_opens_early_is_found(one_stack: KernelStack, tmp_path: Path, kind: str) -> None:
    old, new = FAULTS[kind]
    program = broken_kernel.build(tmp_path, one_stack, "barrier", file="barrier_kinds.c", old=old, new=new)
    done = one_stack.mpirun(1, str(program), *FEW, "--kernel", kind, "--threads", "3", "--spins", "50")
    assert done.returncode == 1, done.stderr
    assert f"barrier: the answer is wrong: {kind}, 3 threads: passed before all had come" in done.stderr
