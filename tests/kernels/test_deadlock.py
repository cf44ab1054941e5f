"""``deadlock``: three exchanges that end, and one that the harness ends and describes (experiment D4)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import broken_kernel
import pytest
from kernel_stack import JsonOf, KernelStack


@pytest.mark.parametrize("mode", ["ring", "fixed", "nonblocking"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_the_others_end_with_the_right_values(
    kernel_stack: KernelStack, json_of: JsonOf, mode: str, ranks: int
) -> None:
    document = json_of(kernel_stack.mpirun(ranks, "deadlock", "--mode", mode, "--repetitions", "3", "--json"))
    assert document["passed"]
    (found,) = document["measurements"]
    assert found["params"] == {"mode": mode, "ranks": ranks}


def test_a_value_of_another_rank_fails_the_check(one_stack: KernelStack, tmp_path: Path) -> None:
    program = broken_kernel.build(
        tmp_path, one_stack, "deadlock", file="deadlock.c",
        old="wrong += got != value_of(left, exchange);", new="wrong += got != value_of(right, exchange);",
    )  # fmt: skip
    done = one_stack.mpirun(3, str(program), "--repetitions", "3")
    assert done.returncode == 1
    assert "the answer is wrong: values that are not the left neighbour's" in done.stderr


def asked(mode: str, limit_s: float) -> dict[str, Any]:
    """A variant of two ranks."""
    figures = [{"name": "time", "metric": "time", "where": {}}]
    arguments = ["--mode", mode, "--repetitions", "3", "--json"]
    return {"arguments": arguments, "figures": figures, "ranks_per_node": 2, "time_limit_s": limit_s}


@pytest.mark.e2e
def test_the_record_of_a_hung_job_names_ranks_call_and_peer(
    kernel_stack: KernelStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("two cores are needed")
    for limit_s in (4, 16, 60):  # a busy machine may still start the ranks when the time is over
        record = kernel_stack.record(tmp_path / str(limit_s), monkeypatch, "deadlock", **asked("blocking", limit_s))
        (hung,) = record["launches"]
        assert hung["status"] == "timeout"
        if not any("MPI_Init" in line for line in hung["waiting"]):
            break
    assert hung["waiting"][0] == "ranks 0-1 in MPI_Ssend (0 to 1 tag 7, 1 to 0 tag 7)"
    said = f"ended by its time limit of {limit_s} s; waiting: {hung['waiting'][0]}"
    assert any(said in reason for reason in record["reasons"])
    assert record["figures"] == []
    left = [cwd for cwd in Path("/proc").glob("[0-9]*/cwd") if str(tmp_path) in folder_of(cwd)]
    assert left == []


def folder_of(cwd: Path) -> str:
    """The working folder of a process; nothing if it has ended."""
    try:
        return str(cwd.readlink())
    except OSError:
        return ""


@pytest.mark.e2e
def test_the_fixed_exchange_is_a_verified_record(
    one_stack: KernelStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("two cores are needed")
    record = one_stack.record(tmp_path, monkeypatch, "deadlock", **asked("fixed", 30))
    assert record["reasons"] == []
    assert record["verified"] is True
    assert record["figures"][0]["value"] > 0
    assert json.dumps(record).count("MPI_Ssend") == 0
