"""Counting the calls of sched_yield between MPI_Init_thread and MPI_Finalize, and what plumb doctor makes of them."""

import os
import subprocess
from dataclasses import replace

import pytest
import stack_manifest
from witness_helper import compile_c

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.extras.fabric import audit, doctor


@pytest.fixture
def counted(tmp_path):
    """The count of a program that yields so often between the two calls, with these variables."""
    library = compile_c(tmp_path, "mpi_that_yields.c", "-shared", "-fPIC", name="libmpi.so")
    program = compile_c(tmp_path, "yields.c", str(library), f"-Wl,-rpath,{tmp_path}")

    def count(times, **variables):
        folder = tmp_path / "yields"
        folder.mkdir(exist_ok=True)
        own = {"LD_PRELOAD": str(paths.library("yields")), "PLUMB_YIELDS_DIR": str(folder), **variables}
        subprocess.run([program, str(times)], env={**os.environ, **own}, check=True)
        (file,) = folder.iterdir()
        return int(file.read_text())

    return count


@pytest.mark.parametrize("times", [0, 1, 1000])
def test_what_lies_between_the_two_calls_is_counted(counted, times):
    assert counted(times) == times


def test_calls_that_return_at_once_are_counted_too(counted):
    assert counted(1000, PLUMB_YIELDS_SPIN="1") == 1000


class TestDoctor:
    @pytest.mark.parametrize(("found", "bad", "seen"), [
        (doctor.Yields(0.0, 0.6, None), False, "0.0 an exchange"),
        (doctor.Yields(0.2, 0.6, 0.6), False, "0.2 an exchange"),
        (doctor.Yields(70.4, 1.33, 0.83), True, "70 calls of sched_yield an exchange of 16 B"),
    ])  # fmt: skip
    def test_a_call_an_exchange_is_too_many(self, monkeypatch, found, bad, seen):
        monkeypatch.setattr(doctor, "measure_yields", lambda document: found)
        finding, latency = doctor.examine_costs([stack_manifest.made("mpich")])
        assert (finding.name, finding.bad, finding.seen) == ("yields of mpich", bad, seen)
        assert (latency.name, latency.bad) == ("latency of mpich", False)
        assert ("1.33 us, 0.83 us where the CPU is kept" in finding.effect) == bad

    def test_what_cannot_be_measured_is_said(self, monkeypatch):
        def fail(document):
            raise PlumbError("two ranks of mpich cannot be started: no room", "kernel", "cure")

        monkeypatch.setattr(doctor, "measure_yields", fail)
        (finding,) = doctor.examine_costs([stack_manifest.made("mpich")])
        assert finding.bad is None
        assert finding.seen == "not readable: two ranks of mpich cannot be started: no room"

    @pytest.mark.parametrize(("times", "bad"), [(1.9, False), (7.0, True)])
    def test_a_latency_far_from_that_of_another_library_is_a_finding(self, monkeypatch, times, bad):
        took = {"mpich": 0.28 * times, "openmpi": 0.28}
        monkeypatch.setattr(doctor, "measure_yields", lambda stack: doctor.Yields(0.0, took[stack.name], None))
        _, slow, _, fast = doctor.examine_costs([stack_manifest.made(name) for name in took])
        assert (slow.name, slow.bad, fast.bad) == ("latency of mpich", bad, False)
        assert slow.effect == f"{times} times that of openmpi on the same two cores"

    def test_what_stacks_use_is_part_of_it(self, monkeypatch):
        use = audit.Use(name="CMA", seen="no", bad=True, stack="mpich", between="ranks of a node", could="yes")
        rows = [use, replace(use, name=audit.HUGE), replace(use, could=audit.NOT_HERE)]
        monkeypatch.setattr(doctor.manifest, "load_all", list)
        monkeypatch.setattr(audit, "of_stacks", lambda *_, over: rows if over == 1 else [])
        assert [(one.name, one.bad) for one in doctor.examine_libraries()] == [("CMA of mpich", True)]

    def test_a_partition_that_is_reached_by_jobs_is_not_readable_here(self, monkeypatch):
        monkeypatch.setattr(doctor.manifest, "load_all", list)
        monkeypatch.setattr(doctor.jobs, "needed", lambda _: True)
        (found,) = doctor.examine_libraries()
        assert found.bad is None
        assert "reached by jobs: plumb stack check --run" in found.seen
