"""``loop_schedule``: every schedule does the whole loop, and too many threads are remarked (after SDSC)."""

from __future__ import annotations

import os
from pathlib import Path

import broken_kernel
import pytest
from kernel_stack import JsonOf, KernelStack

FEW = ("--iterations", "100", "--work", "3", "--repetitions", "2", "--chunks", "1,7", "--json")


def test_a_row_for_each_load_schedule_and_chunk(kernel_stack: KernelStack, json_of: JsonOf) -> None:
    document = json_of(kernel_stack.mpirun(2, "loop_schedule", *FEW, env={"OMP_NUM_THREADS": "3"}))
    assert document["passed"], document["checks"]
    ratios = [item["params"] for item in document["measurements"] if item["metric"] == "ratio"]
    found = [(row["load"], row["schedule"], row["chunk"]) for row in ratios]
    kinds = [("static", 0), *((kind, chunk) for kind in ("static", "dynamic", "guided") for chunk in (1, 7))]
    assert found == [(load, *kind) for load in ("even", "ramp") for kind in kinds]


@pytest.mark.parametrize("more", [0, 1])
def test_more_threads_than_cpus_are_remarked(one_stack: KernelStack, json_of: JsonOf, more: int) -> None:
    cpus = len(os.sched_getaffinity(0))
    threads = {"OMP_NUM_THREADS": str(cpus + more)}
    document = json_of(one_stack.mpirun(1, "loop_schedule", *FEW, env=threads))
    line = f"oversubscribed: {cpus + 1} threads on {cpus} CPUs wait for each other's time slices"
    assert document["remarks"] == [line] * more


def test_a_sum_of_another_loop_fails_the_check(one_stack: KernelStack, tmp_path: Path) -> None:
    program = broken_kernel.build(
        tmp_path, one_stack, "loop_schedule", file="loop_schedule.c",
        old="return sum;", new="return sum + (threads > 1);",
    )  # fmt: skip
    done = one_stack.mpirun(1, str(program), *FEW, env={"OMP_NUM_THREADS": "2"})
    assert done.returncode == 1, done.stderr
    assert "the answer is wrong: the sum over all iterations" in done.stderr


def test_bad_input_is_one_line(one_stack: KernelStack) -> None:
    done = one_stack.mpirun(1, "loop_schedule", "--chunks", "0")
    said = [text for text in done.stderr.splitlines() if text.startswith("loop_schedule: ")]
    assert (done.returncode, len(said)) == (2, 1), done.stderr
    assert "--chunks" in said[0]
