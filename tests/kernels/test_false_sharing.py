"""``false_sharing``: counters at every distance add up (experiment D3)."""

from __future__ import annotations

from pathlib import Path

import broken_kernel
import pytest
from kernel_stack import JsonOf, KernelStack

FEW = ("--increments", "2000", "--repetitions", "2", "--json")


def test_every_padding_and_mode(kernel_stack: KernelStack, json_of: JsonOf) -> None:
    document = json_of(kernel_stack.mpirun(2, "false_sharing", *FEW, env={"OMP_NUM_THREADS": "3"}))
    assert document["passed"], document["checks"]
    figures: dict[str, dict[tuple[str, int], float]] = {}
    for item in document["measurements"]:
        place = item["params"]["mode"], item["params"]["padding"]
        figures.setdefault(item["metric"], {})[place] = item["value"]
    assert set(figures["time"]) == {(m, p) for m in ("plain", "atomic", "own") for p in (8, 16, 32, 64, 128, 256)}
    for (mode, padding), time in figures["time"].items():
        assert figures["ratio"][mode, padding] == pytest.approx(time / figures["time"][mode, 256])


def test_threads_that_share_a_counter_are_found(one_stack: KernelStack, tmp_path: Path) -> None:
    program = broken_kernel.build(
        tmp_path, one_stack, "false_sharing", file="false_sharing.c",
        old="(size_t)thread * padding;", new="(size_t)(thread / 2) * padding;",
    )  # fmt: skip
    done = one_stack.mpirun(1, str(program), *FEW, env={"OMP_NUM_THREADS": "2"})
    assert done.returncode == 1, done.stderr
    assert "the answer is wrong: plain counters" in done.stderr
