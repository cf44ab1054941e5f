"""The witnessed process is not the one that works: each way must come out unverified, with a reason for a person."""

# ruff: noqa: F811 - fixtures are imported

import os
import sys
from pathlib import Path

import pytest
from odd_stack import STREAM_OUTPUT, Bench, bench, results  # noqa: F401 - fixtures
from witness_helper import MPI, Rank, compile_c, run, with_mpi
from witnesses import read

from plumbline.measure import driver


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A folder with the programs ``work``, ``static``, ``parent`` and ``excursions``."""
    folder = tmp_path_factory.mktemp("programs")
    compile_c(folder, MPI, "-shared", "-fPIC", name="libmpi.so")
    compile_c(folder, "works.c", *with_mpi(folder), name="work")
    compile_c(folder, "works.c", "-DALONE", "-static", name="static")
    compile_c(folder, "starts_a_child.c", name="parent")
    compile_c(folder, "excursions.c", "-pthread", name="excursions")
    return folder


@pytest.fixture
def rank(tmp_path):
    return Rank(tmp_path)


@pytest.mark.parametrize("mpi", [(), ("mpi",)], ids=["serial", "mpi"])
@pytest.mark.parametrize("kind", ["bash", "python", "c"])
def test_a_wrapper_that_moves_the_program_is_not_verified(rank, programs, kind, mpi):
    words = ["taskset", "-c", rank.other, programs / "work", 20, *mpi]
    command = [programs / "parent", *words] if kind == "c" else [rank.wrapper(kind, words, replace=False)]
    reasons = rank.reasons(*command)
    assert f"should be on CPU {rank.own}, but no thread is bound there; threads are on: {rank.other}" in reasons[0]
    assert rank.seen[0]["program"] == str(programs / "work")


@pytest.mark.parametrize("kind", ["bash", "python"])
def test_a_wrapper_that_is_replaced_by_the_program_is_verified(rank, programs, kind):
    assert rank.reasons(rank.wrapper(kind, [programs / "work", 20, "mpi"], replace=True)) == []
    assert (rank.seen[0]["program"], rank.seen[0]["mpi"]) == (str(programs / "work"), True)


@pytest.mark.parametrize("kind", ["bash", "python"])
def test_a_wrapper_that_waits_for_the_program_is_verified_where_it_was_planned(rank, programs, kind):
    assert rank.reasons(rank.wrapper(kind, [programs / "work", 20, "mpi"], replace=False)) == []
    assert rank.seen[0]["program"] == str(programs / "work")
    assert len(rank.seen[0]["others"]) == 1


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_a_shell_that_leaves_no_witness_is_told_what_to_do(rank, programs, shell):
    run(rank.folder / "w", rank.plan, [shell, "-c", f"{programs}/work 5; kill -9 $$"])
    seen, (fault,) = read(rank.folder / "w")
    assert seen == []
    assert f"started {programs}/work and ended without a witness of its own" in fault
    assert "must end in 'exec PROGRAM'" in fault


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_a_shell_that_ends_by_exit_alone_is_verified(rank, programs, shell):
    """As dash always does."""
    assert rank.reasons(shell, "-c", f"{programs}/work 5; exit 0") == []


@pytest.mark.parametrize("way", ["cleared", "static"])
def test_a_child_without_the_library_is_missed_by_its_cpu_time(rank, programs, way):
    words = ["env", "-u", "LD_PRELOAD", programs / "work", 50] if way == "cleared" else [programs / "static", 50]
    (reason,) = rank.reasons(programs / "parent", *words)
    assert "started used 0.5" in reason
    assert reason.endswith("s of CPU time and left no witness: it is unknown where they ran")


def test_a_child_that_calls_itself_a_rank_is_one_too_many(rank, programs):
    command = f"PLUMB_WITNESS_PID=$$; exec {programs}/work 20"
    reasons = rank.reasons("bash", "-c", f"taskset -c {rank.other} bash -c '{command}'; exit 0")
    assert f"local rank 0 on {os.uname().nodename} left 2 witnesses instead of one" in reasons


def test_a_program_without_the_library_is_missed(rank, programs):
    reasons = rank.reasons("env", "-u", "LD_PRELOAD", programs / "work", 1)
    host = os.uname().nodename
    assert reasons == [f"local rank 0 on {host} left no witness: it was killed or crashed before its exit"]


@pytest.mark.parametrize("way", ["child", "child-_exit", "child-call"])
def test_a_forked_child_that_works_elsewhere_is_found(rank, programs, way):
    (reason,) = rank.reasons(programs / "excursions", rank.other, rank.other, way, 1, 400_000, 0, 60)
    if way == "child-call":
        assert "left no witness" in reason
    else:
        assert f"s of CPU time outside its CPUs {rank.own}: excursions (process" in reason


@pytest.mark.parametrize(("where", "words"), [
    ("own", ("child", 1, 400_000, 0, 30)), ("own", ("pthread", 1, 0, 0, 0)),
    ("other", ("child", 1, 0, 0, 20)),  # a helper that uses next to nothing
])  # fmt: skip
def test_a_child_or_a_thread_that_stays_is_verified(rank, programs, where, words):
    cpu = getattr(rank, where)
    assert rank.reasons(programs / "excursions", cpu, cpu, *words) == []


def test_two_mpi_programs_are_no_rank(rank, programs):
    (reason,) = rank.reasons("bash", "-c", f"{programs}/work 2 mpi; {programs}/work 3 mpi; exit 0")
    assert reason.startswith(f"2 processes of rank 0 on {os.uname().nodename} called MPI_Init: work (process")


def test_work_before_the_program_is_found(rank, programs):
    code = f"import os, time\nwhile time.process_time() < 3.5: pass\nos.execv('{programs}/work', ['work', '1'])"
    (reason,) = rank.reasons(sys.executable, "-c", code)
    assert "s of CPU time before it became work (process" in reason


def test_work_that_moved_and_came_back_is_found(rank, programs):
    """Where the kernel counts how often a thread changed its CPU."""
    if "nr_migrations" not in Path("/proc/self/sched").read_text():
        pytest.skip("not run: this kernel does not count migrations")
    (reason,) = rank.reasons(programs / "excursions", rank.other, rank.own, "raw", 1, 0, 0, 40)
    assert f"was moved between CPUs 2 times, although its rank has CPU {rank.own} alone" in reason


@pytest.mark.parametrize("way", ["libc", *(pytest.param(way, marks=pytest.mark.long) for way in ("pthread", "child"))])
def test_short_looks_at_other_cpus_are_verified_and_kept(rank, programs, way):
    """As hwloc and GROMACS have them at their start: 5 of 20 us in 2 s, of which 2 ms are tolerated."""
    assert rank.reasons(programs / "excursions", rank.other, rank.own, way, 5, 20, 0, 200) == []
    (witness,) = rank.seen
    tasks = [*witness["threads"], *witness["ended"], *(task for each in witness["others"] for task in each["threads"])]
    assert sum(task.get("away_migrations", 0) for task in tasks) == 10
    assert 1e-4 <= sum(task.get("away_s", 0) for task in tasks) < 2e-3


@pytest.mark.parametrize(("attack", "words"), [
    (("libc", 1, 40_000, 0, 40), "outside the rank's CPU"),  # really worked elsewhere
    (("libc", 400, 100, 0, 40), "outside the rank's CPU"),  # many short ones
    (("pthread", 1, 40_000, 0, 40), "outside the rank's CPU"),  # in a thread that ended
    (("child", 1, 80_000, 0, 40), "outside its CPUs"),
    (("raw-leave", 1, 20, 10, 30), " CPU"),  # nobody saw it leave: all its time counts, and its migration
    (("libc", 1, 20, 20, 20), "that may be in the measured part"),
])  # fmt: skip
def test_a_thread_that_worked_elsewhere_is_refused(rank, programs, attack, words):
    assert words in str(rank.reasons(programs / "excursions", rank.other, rank.own, *attack))


@pytest.mark.parametrize("way", ["pthread", "pthread-exit"])
def test_a_thread_that_ended_elsewhere_is_found(rank, programs, way):
    (reason,) = rank.reasons(programs / "excursions", rank.other, rank.other, way, 1, 0, 0, 0)
    assert f"(excursions) of rank 0 on {os.uname().nodename} may run on CPU {rank.other}, outside" in reason


class TestLaunch:
    """The same against the whole driver, with real launchers."""

    pytestmark = pytest.mark.e2e

    @staticmethod
    def record(bench, code, **changes):
        bench.stack(code)
        return driver.run([bench.variant(**changes)], bench.folder / "work")[1][0]

    def test_a_wrapper_that_moves_its_program(self, bench):
        program = "import time\nwhile time.process_time() < 0.2: pass\n" + STREAM_OUTPUT
        code = "import subprocess, sys\n"
        code += f"sys.exit(subprocess.call(['taskset', '-c', '0', sys.executable, '-c', {program!r}]))"
        found = self.record(bench, code, placement="pair:0,1", ranks_per_node=2)
        assert (found.verified, found.figures) == (False, [])
        assert any("thread place 0 of rank 1" in reason and "threads are on: 0" in reason for reason in found.reasons)

    def test_what_else_ran_is_in_the_record(self, bench):
        code = f"import subprocess\nfor _ in range(3): subprocess.call(['true'])\n{STREAM_OUTPUT}"
        found = self.record(bench, code)
        assert found.reasons == []
        ((other,),) = [rank.others for rank in found.launches[0].ranks]
        assert (Path(other.program).name, other.processes) == ("true", 3)

    def test_a_text_that_is_printed_in_no_time_with_no_page(self, bench):
        (reason,) = self.record(bench, STREAM_OUTPUT.replace("arrays = ", "# ")).reasons
        assert reason.startswith("launch 0: a rank held ")
        assert reason.endswith(" MB in large mappings, the benchmark's arrays are 24 MB a rank")

    def test_rates_that_the_time_was_too_short_for(self, bench):
        reasons = self.record(bench, STREAM_OUTPUT.replace("executed 2 times", "executed 90000 times")).reasons
        assert "the figures imply 360 s of work, but no rank ran longer than" in reasons[0]
        assert "the figures imply 360 s of work, but the ranks used" in reasons[1]
