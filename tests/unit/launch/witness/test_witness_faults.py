"""Faults for real: each must come out unverified, with a reason that a person understands."""

import os
import subprocess
import sys

import pytest
from witness_helper import (
    MPI,
    PROGRAMS,
    compare,
    compile_c,
    cpus,
    library,
    node_plan,
    only,
    rank_plan,
    run,
    start,
    with_mpi,
)
from witnesses import read

IDLE = """
#include <unistd.h>
int main(void) { usleep(50000); return 0; }
"""
WAIT = """
#include <stdio.h>
#include <unistd.h>
int main(void) { puts("up"); fflush(stdout); getchar(); return 0; }
"""
SLEEPS_IN_MPI = """
#include <unistd.h>
int MPI_Init(int *, char ***), MPI_Finalize(void);
int main(void) { return MPI_Init(NULL, NULL) + usleep(50000) + MPI_Finalize(); }
"""


@pytest.fixture
def two():
    first, second = cpus(2)
    return first, second


def test_taskset_behind_the_binders_back(tmp_path, two):
    first, second = two
    plan = rank_plan([[first]])
    program = compile_c(tmp_path, IDLE)
    assert run(tmp_path / "w", plan, ["taskset", "-c", second, program]) == (0, "")
    seen = only(tmp_path / "w")
    reasons = compare(node_plan(plan), [seen], 1)
    name = f"rank 0 on {os.uname().nodename}"
    assert reasons[0] == (
        f"thread place 0 of {name} should be on CPU {first}, but no thread is bound there; threads are on: {second}"
    )
    assert f"may run on CPU {second}, outside the rank's CPU {first}" in reasons[1]


def test_taskset_on_a_running_rank(tmp_path, two):
    first, second = two
    plan = rank_plan([[first]])
    process = start(tmp_path / "w", plan, [compile_c(tmp_path, WAIT)], stdin=subprocess.PIPE)
    assert process.stdout.readline() == "up\n"
    os.sched_setaffinity(process.pid, [second])
    process.communicate("go\n", timeout=120)
    assert process.returncode == 0
    reasons = compare(node_plan(plan), [only(tmp_path / "w")], 1)
    assert any("should be on CPU" in reason for reason in reasons), reasons


def test_widening_the_mask_is_no_less_a_fault(tmp_path, two):
    first, second = two
    plan = rank_plan([[first]])
    program = compile_c(tmp_path, IDLE)
    run(tmp_path / "w", plan, ["taskset", "-c", f"{first},{second}", program])
    reasons = compare(node_plan(plan), [only(tmp_path / "w")], 1)
    assert "no thread is bound there" in reasons[0]
    assert "outside the rank's CPU" in reasons[1]
    assert all("was moved between CPUs" in reason for reason in reasons[2:]), "the kernel may move it, or not"


@pytest.mark.parametrize("language", ["c", "python"])
def test_a_program_that_binds_itself_again(tmp_path, two, language):
    first, second = two
    plan = rank_plan([[first]])
    if language == "c":
        command = [compile_c(tmp_path, "rebinds.c"), second]
    else:
        command = [sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{second}])"]
    assert run(tmp_path / "w", plan, command) == (0, "")
    reasons = compare(node_plan(plan), [only(tmp_path / "w")], 1)
    assert f"should be on CPU {first}" in reasons[0]
    assert f"threads are on: {second}" in reasons[0]


def test_a_launcher_that_binds_every_rank_to_the_same_cpu(tmp_path, two):
    """Two ranks, each with its plan; the launcher's own binding puts both on the first CPU."""
    first, second = two
    plans = [rank_plan([[first]], local_rank=0), rank_plan([[second]], local_rank=1)]
    program = compile_c(tmp_path, IDLE)
    for plan in plans:
        assert run(tmp_path / "w", plan, ["taskset", "-c", first, program]) == (0, "")
    found, faults = read(tmp_path / "w")
    assert faults == []
    reasons = compare(node_plan(*plans), found, 2)
    assert len(reasons) == 2
    assert all(f"rank 1 on {os.uname().nodename}" in reason for reason in reasons)


def test_memory_on_another_node(tmp_path):
    """The pages are real; on a host of one node it is the plan that names a node where they do not lie."""
    cpu = cpus(1)[0]
    plan = rank_plan([[cpu]], nodes=[97])
    program = compile_c(tmp_path, "frees_a_buffer.c", "-fno-builtin")
    assert run(tmp_path / "w", plan, [program]) == (0, "")
    (reason,) = compare(node_plan(plan), [only(tmp_path / "w")], 1)
    assert reason.endswith("planned: node 97")
    assert f"pages of rank 0 on {os.uname().nodename} lie on memory node" in reason


def clock(function, right):
    """What compiles a clock that tells the right time for the first calls."""
    return PROGRAMS / "clock_of_a_tool.c", f"-DFUNCTION={function}", f"-DRIGHT={right}"


@pytest.mark.parametrize("how", ["preloaded", "linked"])
@pytest.mark.parametrize("function", ["MPI_Wtime", "mpi_wtime_", "omp_get_wtime"])
def test_a_tool_with_a_clock_of_its_own(tmp_path, function, how):
    """That of a tool counts, wherever it is, from the first call on or later; a right one is no fault."""
    plan, path = rank_plan([[cpus(1)[0]]]), with_mpi(tmp_path)
    compile_c(tmp_path, MPI, *clock(function, 99), "-shared", "-fPIC", name="libmpi.so")
    for right, faults in ((0, 1), (1, 1), (99, 0)):
        tool, folder = clock(function, right), tmp_path / str(right)
        program = compile_c(tmp_path, SLEEPS_IN_MPI, *(tool if how == "linked" else ()), *path)
        own = compile_c(tmp_path, "", *(tool if how == "preloaded" else ()), "-shared", "-fPIC", name="libtool.so")
        assert run(folder, plan, [program], (), f"{library()}:{own}") == (0, "")
        reasons = compare(node_plan(plan), [only(folder)], 1)
        assert len(reasons) == faults, reasons
        assert all(f" read a clock that is not the kernel's: by {function}, " in reason for reason in reasons)
