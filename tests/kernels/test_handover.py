"""``handover``: a cache line between two threads, each turn taken once."""

from __future__ import annotations

from pathlib import Path

import broken_kernel
import pytest
from kernel_stack import JsonOf, KernelStack

FEW = ("--repetitions", "3", "--json")


def test_half_a_round_trip_is_measured(kernel_stack: KernelStack, json_of: JsonOf) -> None:
    document = json_of(kernel_stack.mpirun(1, "handover", *FEW, env={"OMP_NUM_THREADS": "2"}))
    assert document["passed"], document["checks"]
    found = {item["metric"]: item for item in document["measurements"]}
    assert 0 < found["time"]["value"] <= found["mean"]["value"]
    assert {item["unit"] for item in found.values()} == {"ns"}
    assert found["time"]["samples"] == 2  # the first batch is not counted


@pytest.mark.parametrize("threads", ["1", "3"])
def test_another_number_of_threads_is_one_line(one_stack: KernelStack, threads: str) -> None:
    done = one_stack.mpirun(1, "handover", *FEW, env={"OMP_NUM_THREADS": threads})
    assert done.returncode == 2
    assert f"set OMP_NUM_THREADS to 2, not {threads}" in done.stderr


def test_turns_that_were_not_taken_are_found(one_stack: KernelStack, tmp_path: Path) -> None:
    program = broken_kernel.build(
        tmp_path, one_stack, "handover", file="handover.c",
        old="batch < repetitions; batch++) {", new="batch < repetitions - 1; batch++) {",
    )  # fmt: skip
    done = one_stack.mpirun(1, str(program), *FEW, env={"OMP_NUM_THREADS": "2"})
    assert done.returncode == 1, done.stderr
    assert "the answer is wrong: turns taken" in done.stderr
