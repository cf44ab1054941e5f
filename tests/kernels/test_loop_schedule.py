"""``loop_schedule``: every schedule does the whole loop, and too many threads are remarked (after SDSC)."""

import json
import os

import broken_kernel
import pytest
from kernel_stack import made_up

FEW = ("--iterations", "100", "--work", "3", "--repetitions", "2", "--chunks", "1,7", "--json")


def test_a_row_for_each_load_schedule_and_chunk(kernel_stack):
    document = kernel_stack.json(2, "loop_schedule", *FEW, threads=3)
    ratios = [item["params"] for item in document["measurements"] if item["metric"] == "ratio"]
    found = [(row["load"], row["schedule"], row["chunk"]) for row in ratios]
    kinds = [("static", 0), *((kind, chunk) for kind in ("static", "dynamic", "guided") for chunk in (1, 7))]
    assert found == [(load, *kind) for load in ("even", "ramp") for kind in kinds]


@pytest.mark.parametrize("bound", [{}, {"OMP_PROC_BIND": "close", "OMP_PLACES": "threads"}], ids=["free", "bound"])
@pytest.mark.parametrize("more", [0, 1])
def test_more_threads_than_cpus_are_remarked(one_stack, more, bound):
    cpus = len(os.sched_getaffinity(0))
    threads = {"OMP_NUM_THREADS": str(cpus + more)}
    document = one_stack.json(1, "loop_schedule", *FEW, env=threads | bound)
    line = f"oversubscribed: {cpus + 1} threads on {cpus} CPUs wait for each other's time slices"
    assert document["remarks"] == [line] * more


def test_a_host_with_more_cpus_than_a_small_set_holds(one_stack, tmp_path):
    """No thread is one too many, and the CPUs of each thread are all reported."""
    fake = made_up(tmp_path / "libaffinity.so", "fake_affinity.c")
    command = ["/usr/bin/env", f"LD_PRELOAD={fake}", str(one_stack.programs / "loop_schedule"), *FEW]
    document = one_stack.json(1, *command, threads=2)
    assert document["remarks"] == []
    cpus = ",".join(str(cpu) for cpu in range(0, 2000, 2))
    assert document["binding"][0]["cpus"] == f"{cpus} {cpus}"


def test_a_sum_of_another_loop_fails_the_check(one_stack, tmp_path):
    program = broken_kernel.build(
        tmp_path, one_stack, "loop_schedule", file="loop_schedule.c",
        old="return sum;", new="return sum + (threads > 1);",
    )  # fmt: skip
    done = one_stack.mpirun(1, str(program), *FEW, threads=2)
    assert done.returncode == 1, done.stderr
    assert "the answer is wrong: the sum over all iterations" in done.stderr
    both = one_stack.mpirun(2, str(program), *FEW, threads=2)
    errors = [json.loads(one.stdout)["checks"][0]["error"] for one in (done, both)]
    assert errors[1] == 2 * errors[0] > 0  # those of all ranks
