"""Something else runs beside a launch: it is flagged, with the cause, whoever competes and wherever."""

import os
import signal
import time
from contextlib import contextmanager

import pytest
from witness_helper import MPI, compile_c, cpus, only, rank_plan, run, with_mpi
from witnesses import of_documents

from plumbline.host import machine
from plumbline.launch.witness import disturbance


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("phases")
    compile_c(folder, MPI, "-shared", "-fPIC", name="libmpi.so")
    return compile_c(folder, "works_in_phases.c", *with_mpi(folder), name="phases")


@contextmanager
def competitor(cpu, share=1.0):
    """A process that takes ``share`` of ``cpu``, in turns of 10 ms, or all that it can get."""
    pid = os.fork()
    if pid == 0:
        os.sched_setaffinity(0, {cpu})
        while True:
            begin = time.process_time()
            while share == 1.0 or time.process_time() - begin < share / 100:
                pass
            time.sleep((1 - share) / 100)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def launch(folder, program, cpu, *hundredths):
    status, stderr = run(folder, rank_plan([[cpu]]), [program, *hundredths])
    assert (status, stderr) == (0, "")
    return only(folder)


def test_the_window_is_what_lies_between_init_and_finalize(tmp_path, program):
    seen = launch(tmp_path / "w", program, cpus(1)[0], 20, 10, 20)
    assert seen["usage"]["user_s"] + seen["usage"]["system_s"] >= 0.5
    assert 0.1 <= seen["window"]["cpu_s"] < 0.2
    assert seen["window"]["wall_s"] < seen["usage"]["wall_s"]
    assert {str(cpu) for cpu in cpus(1)} <= seen["window"]["host"]["busy_s"].keys()


def test_a_competitor_on_the_planned_cpu(tmp_path, program):
    (cpu,) = cpus(1)
    with competitor(cpu):
        seen = launch(tmp_path / "w", program, cpu, 0, 30, 0)
    now = disturbance.snapshot([cpu])
    causes = of_documents(disturbance.assess)(now, now, [seen], machine.load())["causes"]
    assert any("a thread of rank 0" in cause and "waited for its CPU" in cause for cause in causes), causes
    assert any("other processes used" in cause and f"of CPU {cpu}" in cause for cause in causes), causes


def test_a_competitor_on_another_cpu_of_the_node(tmp_path, program):
    cpu, other = cpus(2)
    with competitor(other):
        seen = launch(tmp_path / "w", program, cpu, 0, 60, 0)
    now = disturbance.snapshot([cpu])
    causes = of_documents(disturbance.assess)(now, now, [seen], machine.load())["causes"]
    assert any("CPUs busy on" in cause for cause in causes), causes


def test_a_small_competitor_is_not_taken_for_the_nodes_housekeeping(tmp_path, program):
    """It is named, by the kernel's count of its time, and flagged whatever the node's own threads did meanwhile."""
    (cpu,) = cpus(1)
    with competitor(cpu, 0.1):
        before = disturbance.snapshot([cpu])
        seen = launch(tmp_path / "w", program, cpu, 0, 100, 0)
        found = of_documents(disturbance.assess)(before, disturbance.snapshot([cpu]), [seen], machine.load())
    assert found["disturbed"], found
    assert found["figures"]["others_s"] >= 0.05
    assert found["beside"], found
