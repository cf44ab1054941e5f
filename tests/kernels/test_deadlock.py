"""``deadlock``: three exchanges that end, and one that the harness ends and describes (experiment D4)."""

import json
import os
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize("mode", ["ring", "fixed", "nonblocking"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_the_others_end_with_the_right_values(kernel_stack, mode, ranks):
    document = kernel_stack.json(ranks, "deadlock", "--mode", mode, "--repetitions", "3")
    (found,) = document["measurements"]
    assert found["params"] == {"mode": mode, "ranks": ranks}


def asked(mode: str, limit_s: float) -> dict[str, Any]:
    """A variant of two ranks."""
    arguments = ["--mode", mode, "--repetitions", "3", "--json"]
    return {"arguments": arguments, "ranks_per_node": 2, "time_limit_s": limit_s}


@pytest.mark.e2e
def test_the_record_of_a_hung_job_names_ranks_call_and_peer(kernel_stack, tmp_path, monkeypatch):
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
def test_the_fixed_exchange_is_a_verified_record(one_stack, tmp_path, monkeypatch):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("two cores are needed")
    record = one_stack.record(tmp_path, monkeypatch, "deadlock", **asked("fixed", 30))
    assert record["reasons"] == []
    assert record["verified"] is True
    assert record["figures"][0]["value"] > 0
    assert json.dumps(record).count("MPI_Ssend") == 0
