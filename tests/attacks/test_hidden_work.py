"""Work that the plan does not show, and ranks that are scheduled otherwise: each is found."""

# ruff: noqa: F811 - fixtures are imported

import json
import os
import signal
import time
from pathlib import Path

import processes
import pytest
from msgspec.structs import replace
from odd_stack import STREAM_OUTPUT, Bench, bench, results  # noqa: F401 - fixtures
from witness_helper import MPI, Rank, compile_c, cpus, only, rank_plan, run, start, with_mpi
from witnesses import of_documents, typed

from plumbline.host import machine
from plumbline.launch.prepare import OWN
from plumbline.launch.witness import disturbance
from plumbline.launch.witness.processes import scheduling_at_start, scheduling_faults, scheduling_here
from plumbline.measure import driver
from plumbline.records.launch import Scheduling, kind
from plumbline.stacks import manifest

#: a real MPI program
REAL = """
#include <mpi.h>
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    return MPI_Finalize();
}
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A folder with the programs ``threads`` and ``phase``."""
    folder = tmp_path_factory.mktemp("programs")
    compile_c(folder, MPI, "-shared", "-fPIC", name="libmpi.so")
    compile_c(folder, "unlisted_threads.c", "-pthread", name="threads")
    compile_c(folder, "works_or_waits.c", "-pthread", *with_mpi(folder), name="phase")
    return folder


@pytest.fixture
def rank(tmp_path):
    return Rank(tmp_path)


def linked(bench, source, stack):
    """``source`` built for the MPI library of an installed stack."""
    file = bench.folder / "installed" / stack / manifest.FILE
    if not file.is_file():
        pytest.skip(f"stack {stack} is not installed: make setup")
    document = json.loads(file.read_text())
    library = Path(document["loads"]["library"])
    search = ("-I", f"{document['prefix']}/include", f"-Wl,-rpath,{library.parent}")
    return compile_c(bench.folder, source, *search, str(library), name="real")


class TestThreads:
    """CPU time of threads that nobody lists."""

    @pytest.mark.parametrize("way", ["clone", "exit"])
    def test_one_that_ended_unseen(self, rank, programs, way):
        (reason,) = rank.reasons(programs / "threads", way, 40)
        assert reason.startswith(f"threads of rank 0 on {os.uname().nodename} used 0.")
        assert reason.endswith("s of CPU time and ended unseen: it is unknown where they ran")

    def test_one_that_ended_as_a_thread(self, rank, programs):
        assert rank.reasons(programs / "threads", "return", 40) == []
        (ended,) = rank.seen[0]["ended"]
        assert ended["cpu_s"] >= 0.4

    def test_little_work_is_allowed(self, rank, programs):
        assert rank.reasons(programs / "threads", "exit", 2) == []


class TestScheduling:
    """Nice value, policy and personality."""

    @pytest.mark.parametrize(("wrapper", "words"), [
        (["nice", "-n", "5"], "SCHED_OTHER, nice 5, personality 0x0"),
        (["chrt", "--idle", "0"], "SCHED_IDLE, nice 0, personality 0x0"),
        (["setarch", "-R"], "SCHED_OTHER, nice 0, personality 0x40000"),
    ], ids=["nice", "idle", "personality"])  # fmt: skip
    def test_a_wrapper_that_changes_it(self, rank, programs, wrapper, words):
        driver = Scheduling(policy="SCHED_OTHER", nice=0, personality=0)
        if scheduling_here() != driver:
            pytest.skip("not run: the tests run with another priority or personality themselves")
        assert rank.reasons(*wrapper, programs / "phase", 1, 0) == []
        (reason,) = scheduling_faults(list(map(typed, rank.seen)), driver)
        assert reason == f"rank 0 on {os.uname().nodename} began with {words}; plumb itself has {driver}"

    def test_a_change_in_the_middle(self, rank, programs):
        driver = scheduling_here()
        assert rank.reasons(programs / "phase", 1, 0, driver.nice + 3) == []
        (reason,) = scheduling_faults(list(map(typed, rank.seen)), driver)
        assert f"had a thread with {driver.policy}, nice {driver.nice + 3}, " in reason
        assert reason.endswith(f" at its end; plumb itself has {driver}")

    def test_what_was_inherited(self, rank, programs):
        assert rank.reasons(programs / "phase", 1, 0) == []
        assert scheduling_faults(list(map(typed, rank.seen)), scheduling_here()) == []
        assert replace(scheduling_at_start(typed(rank.seen[0])), inherited="") == scheduling_here()


class TestStopped:
    """A rank that is stopped now and then, as batch systems suspend jobs."""

    @staticmethod
    def causes(seen, **options):
        now = disturbance.snapshot([0])
        found = of_documents(disturbance.assess)(now, now, [seen], machine.load(), **options)["causes"]
        return [cause for cause in found if kind(cause) == "ranks that were stopped"]

    def test_nine_tenths_of_the_time(self, tmp_path, programs):
        (cpu,) = cpus(1)
        process = start(tmp_path / "w", rank_plan([[cpu]]), [programs / "phase", 6, -1])
        stat = Path(f"/proc/{process.pid}/stat")
        for _ in range(6):
            processes.wait_until(lambda: " T " in stat.read_text(), "it stops itself", of=process)
            time.sleep(0.09)
            process.send_signal(signal.SIGCONT)
        assert process.communicate() == ("", "")
        (cause,) = self.causes(only(tmp_path / "w"))
        assert cause.startswith(f"rank 0 on {os.uname().nodename} was stopped ")
        assert cause.endswith(" pauses, neither running nor waiting for its CPU")
        assert self.causes({**only(tmp_path / "w"), "gpu_address": "0000:01:00.0"}) == []  # its driver's calls sleep

    @pytest.mark.parametrize("pieces", [0, 500], ids=["polls", "sleeps"])
    def test_one_that_polls_and_one_that_sleeps_shortly_are_not(self, tmp_path, programs, pieces):
        (cpu,) = cpus(1)
        assert run(tmp_path / "w", rank_plan([[cpu]]), [programs / "phase", 30, pieces]) == (0, "")
        seen = only(tmp_path / "w")
        assert self.causes(seen) == []
        assert (seen["window"]["idle_s"] > 0.1) is (pieces > 0)

    def test_threads_that_are_idle_in_turns_are_not(self):
        """Two threads, each idle for 0.4 s of 2 s while the other one runs; then both for 1.2 s."""
        window = {"wall_s": 2.0, "cpu_s": 3.2, "delay_s": 0.0, "idle_s": 0.4, "sleeps": 20}
        seen = {"mpi": True, "window": window}
        assert self.causes(seen) == []
        assert len(self.causes({**seen, "window": {**window, "cpu_s": 1.6, "idle_s": 1.2}})) == 1

    def test_one_that_waits_for_a_process_that_it_started_is_not(self):
        """A rank that forks a child onto its CPU and sleeps until that has ended."""
        window = {"wall_s": 2.0, "cpu_s": 0.02, "delay_s": 0.0, "idle_s": 1.9, "sleeps": 3}
        alone = {"mpi": True, "window": window}
        child = {"window": {"wall_s": 1.8, "cpu_s": 1.8, "delay_s": 0.0}}
        assert len(self.causes(alone)) == 1
        assert self.causes({**alone, "others": [child]}) == []

    @pytest.mark.parametrize(("may_sleep", "causes"), [(False, 1), (True, 0)], ids=["suite", "own"])
    def test_a_program_without_mpi_that_was_stopped(self, may_sleep, causes):
        """STREAM does not sleep by itself; whether a program of one's own does, nobody knows."""
        window = {"wall_s": 10.4, "cpu_s": 1.0, "delay_s": 0.0, "idle_s": 9.3, "sleeps": 40}
        assert len(self.causes({"mpi": False, "window": window}, may_sleep=may_sleep)) == causes

    def test_one_that_waits_for_its_own_thread_is_not(self, tmp_path, programs):
        (cpu,) = cpus(1)
        command = [programs / "phase", 30, 20000, os.nice(0), "team"]
        assert run(tmp_path / "alone", rank_plan([[cpu]]), command[:3]) == (0, "")
        assert len(self.causes(only(tmp_path / "alone"))) == 1
        assert run(tmp_path / "team", rank_plan([[cpu]]), command) == (0, "")
        assert self.causes(only(tmp_path / "team")) == []


class TestLaunch:
    """The same against the whole driver, with real launchers and libraries."""

    pytestmark = pytest.mark.e2e

    @staticmethod
    def record(bench, **changes):
        return driver.run([bench.variant(**changes)], bench.folder / "work")[1][0]

    @pytest.mark.parametrize("ending", ["os.kill(os.getpid(), 9)", "os._exit(0)", "sys.exit()"])
    def test_a_daemon_that_a_rank_leaves(self, bench, ending):
        """One that leaves a witness is known, and was on the rank's CPUs."""
        code = "import os, sys, time\nread, write = os.pipe()\nif os.fork() == 0:\n    os.setsid()\n"
        code += f"    if os.fork() > 0: os._exit(0)\n    while time.process_time() < 0.6: pass\n    {ending}\n"
        code += f"os.close(write)\nos.wait()\nos.read(read, 1)  # until the daemon has ended\n{STREAM_OUTPUT}"
        bench.stack(code)
        reasons = self.record(bench).reasons
        if "kill" not in ending:
            assert reasons == []
        else:
            (reason,) = reasons
            assert "daemons that the ranks left on" in reason
            assert "s of CPU time and left no witness: python" in reason

    @pytest.mark.parametrize("built", ["openmpi", "mpich"])
    def test_a_program_that_was_built_for_another_library(self, bench, built):
        program = linked(bench, REAL, built)
        changes = {"benchmark": OWN, "parser": "none", "figures": [], "profiled": True, "placement": "pair:0,1"}
        changes["context"] = {"program": str(program), "command": [str(program)]}
        (bench.folder / "stacks").mkdir()
        (bench.folder / "stacks" / "mpich").symlink_to(bench.folder / "installed" / "mpich")
        found = self.record(bench, stack="mpich", ranks_per_node=2, **changes)
        stack = manifest.load("mpich").loads.library
        assert [seen.mpi_library == stack for seen in found.launches[0].ranks] == [built == "mpich"] * 2
        if built == "mpich":
            assert found.reasons == []
            assert [seen.world for seen in found.launches[0].ranks] == [2, 2]
        else:
            (reason,) = found.reasons
            assert "MPI_COMM_WORLD has 1 rank, planned: 2; the program was built for another MPI library" in reason
            assert reason.endswith(f"/libmpi.so.40, the stack's is {stack}")
