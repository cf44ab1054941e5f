"""What a launch leaves in /dev/shm when it does not end by itself is removed; what is somebody else's stays."""

import os
import secrets
import signal
import subprocess
import sys

import processes
import pytest

from plumbline.launch import process

#: makes a file in shared memory, maps it, and goes on as the second argument says
RANK = """
import mmap, os, signal, sys, time
with open(sys.argv[1], "w+b") as file:
    file.truncate(4096)
    held = mmap.mmap(file.fileno(), 4096)
print("mapped", flush=True)
if sys.argv[2] == "crash":
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] != "end":
    time.sleep(600)
"""


@pytest.fixture
def name():
    """A file as MPICH names them."""
    file = process.SHARED_MEMORY / f"mpich_shm_test{secrets.token_hex(4)}_0"
    yield file
    file.unlink(missing_ok=True)


def command(file, how):
    return [sys.executable, "-c", RANK, str(file), how]


def test_a_launch_ended_by_its_time_limit_leaves_nothing(name, tmp_path, monkeypatch):
    processes.limit_begins_after(monkeypatch, lambda _: processes.wait_for(tmp_path / "stdout"))
    assert process.run(command(name, "wait"), os.environ, tmp_path, 0.1).status == "timeout"
    assert (tmp_path / "stdout").read_text() == "mapped\n"
    assert not name.exists()


def test_a_launch_whose_rank_crashed_leaves_nothing(name, tmp_path):
    assert process.run(command(name, "crash"), os.environ, tmp_path, 600).status == "failed"
    assert not name.exists()


def test_an_interrupted_launch_leaves_nothing(name, tmp_path):
    code = "import os, sys; from pathlib import Path; from plumbline.launch import process\n"
    code += f"process.run({command(name, 'wait')!r}, os.environ, Path({str(tmp_path)!r}), 600)"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as driver:
        processes.wait_until(name.exists, "the file", of=driver)
        driver.send_signal(signal.SIGTERM)
        driver.wait(120)
    assert not name.exists()


def test_a_file_that_was_there_before_stays(name, tmp_path):
    name.write_bytes(b"mine")
    process.run(["false"], os.environ, tmp_path, 600)
    assert name.read_bytes() == b"mine"


@pytest.mark.parametrize("stem", ["psm_", "sem.", "mine_", "mpich_shmish_"])
def test_a_file_of_another_name_stays(stem, tmp_path):
    file = process.SHARED_MEMORY / f"{stem}{secrets.token_hex(4)}"
    try:
        process.run(["sh", "-c", f"echo mine >{file}; exit 1"], os.environ, tmp_path, 600)
        assert file.read_text() == "mine\n"
    finally:
        file.unlink()


def test_a_file_that_another_process_has_mapped_stays(name, tmp_path):
    other = name.with_name(f"{name.name}1")
    with subprocess.Popen(command(other, "wait"), stdout=subprocess.PIPE, text=True) as neighbour:
        try:
            assert neighbour.stdout is not None
            assert neighbour.stdout.readline() == "mapped\n"
            process.remove_shared({other, name})
            assert other.exists()
        finally:
            neighbour.kill()
            other.unlink()


def test_a_launch_that_ended_well_is_not_looked_at(name, tmp_path):
    assert process.run(command(name, "end"), os.environ, tmp_path, 600).status == "ok"
    assert name.exists()
