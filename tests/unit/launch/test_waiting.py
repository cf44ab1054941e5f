"""What a launch waited for: the witness is asked by a signal and names the MPI call of every thread."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import processes
import pytest
from witness_helper import compile_c, cpus, rank_plan, start, with_mpi

from plumbline.launch import waiting


@pytest.fixture
def described(tmp_path):
    """The description of a witnessed rank 0 that hangs in the way given; it is ended afterwards."""
    running = []

    def describe(way: str) -> list[str]:
        running.append(hang(tmp_path, way))
        lines = waiting.ask([running[-1].pid], tmp_path)
        return waiting.calls(tmp_path) + lines

    yield describe
    for process in running:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("way", "line"), [
    ("recv", "rank 0 in MPI_Recv (0 from 3 tag 7)"),
    ("any", "rank 0 in MPI_Recv (0 from any tag any)"),
    ("both", "rank 0 in MPI_Sendrecv (0 to 12 tag 70000 from 0 tag 5)"),
    ("recv-thread", "rank 0 in MPI_Recv and mpi_wait_ (0 from 3 tag 7)"),
    ("thread", "rank 0 in mpi_wait_"),
    ("elsewhere", "rank 0 in no MPI call"),
])  # fmt: skip
def test_the_call_of_every_thread_is_named(described, way, line):
    first, second = described(way)
    assert first == line
    assert "main (rank 0): sleeping" in second


def test_a_process_that_does_not_listen_is_not_asked(described):
    """The signal would end it before anyone saw how it hung."""
    (only,) = described("deaf-recv")
    assert "main (rank 0): sleeping" in only


def test_a_line_of_many_ranks_names_some_of_them(tmp_path):
    for rank in range(10):
        (tmp_path / f"host.{rank}.waiting").write_text(f"{rank} 1{rank} MPI_Ssend to {(rank + 1) % 10} tag 7\n")
    (tmp_path / "host.11.waiting").write_text("11 111 MPI_Barrier\n")
    shown = ", ".join(f"{rank} to {rank + 1} tag 7" for rank in range(8))
    assert waiting.calls(tmp_path) == [f"ranks 0-9 in MPI_Ssend ({shown}, and 2 more)", "rank 11 in MPI_Barrier"]


def hang(tmp_path, way):
    """The program of ``described``, started and hanging."""
    compile_c(tmp_path, "mpi_that_waits.c", "-shared", "-fPIC", name="libmpi.so")
    program = compile_c(tmp_path, "waits_in_mpi.c", *with_mpi(tmp_path), "-pthread", name="main")
    process = start(tmp_path / "w", rank_plan([[cpus(1)[0]]]), [program, way])
    assert process.stdout.readline() == "ready\n"
    processes.wait_asleep(process.pid, threads=2 if "thread" in way else 1)  # in the call
    return process


def test_a_rank_that_its_launcher_ends_says_where_it_was(tmp_path):
    """As on another host, which nobody here can ask; it ends by the signal all the same."""
    process = hang(tmp_path, "recv-thread")
    process.terminate()
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGTERM
    assert waiting.calls(tmp_path) == ["rank 0 in MPI_Recv and mpi_wait_ (0 from 3 tag 7)"]


def test_asked_and_then_ended_is_one_answer(tmp_path):
    process = hang(tmp_path, "recv")
    waiting.ask([process.pid], tmp_path)
    process.terminate()
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGTERM
    (file,) = (tmp_path / "w").glob("*.waiting")
    assert len(file.read_text().splitlines()) == 1


def test_a_process_without_a_witness_is_described_and_lives(tmp_path):
    with subprocess.Popen(["sleep", "600"]) as process:
        processes.wait_asleep(process.pid)
        (line,) = waiting.ask([process.pid, 2**22 - 1], tmp_path)
        assert process.poll() is None
        process.kill()
    assert line.startswith(f"pid {process.pid} sleep: sleeping")


@pytest.mark.parametrize(
    "variables", [{"PALS_RANKID": "5"}, {"FLUX_TASK_RANK": "5"}, {"PMI_RANK": "5", "PMIX_RANK": "0"}]
)
def test_the_rank_of_a_process_is_known_from_every_launcher(tmp_path, variables):
    with subprocess.Popen(["sleep", "600"], env={"PATH": os.environ["PATH"], **variables}) as process:
        processes.wait_asleep(process.pid)
        (line,) = waiting.ask([process.pid], tmp_path)
        process.kill()
    assert line.startswith(f"pid {process.pid} sleep (rank 5): ")


def test_a_fork_of_a_rank_does_not_answer_in_its_name(tmp_path):
    code = "import os, time; pid = os.fork(); print(pid, flush=True) if pid else None; time.sleep(600)"
    process = start(tmp_path / "w", rank_plan([[cpus(1)[0]]]), [os.path.realpath(sys.executable), "-c", code])
    child = int(process.stdout.readline())
    try:
        processes.wait_asleep(child)
        os.kill(child, waiting.ASK)
        processes.wait_asleep(child)
        assert list((tmp_path / "w").glob("*.waiting")) == []
        assert Path(f"/proc/{child}").exists()
        waiting.ask([process.pid, child], tmp_path)
        assert len(list((tmp_path / "w").glob("*.waiting"))) == 1
    finally:
        for pid in (child, process.pid):
            os.kill(pid, signal.SIGKILL)
        process.communicate()
