"""One command in a job, with schedulers that are shell scripts: what is asked of them, and what becomes of it."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plumbline import jobs
from plumbline.errors import PlumbError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def scheduler(tmp_path, monkeypatch):
    """Put a program of a name and a body before all others; it writes its arguments to NAME.called."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    for variable in jobs.INSIDE.values():
        monkeypatch.delenv(variable, raising=False)

    def make(name, body):
        file = programs / name
        file.write_text(f'#!/bin/bash\nprintf "%s\\n" "$@" >{tmp_path}/{name}.called\n{body}\n')
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return tmp_path / f"{name}.called"

    return make


def job(tmp_path, scheduler="squeue", command=("true",), nodes=2, **changes):
    part = {"name": "main", "scheduler": scheduler, "access": ["--partition=main"], **changes}
    return jobs.Job(part, list(command), nodes, tmp_path / "work")


RUN_LAST = 'echo 4711; exec bash "${@: -1}"'


@pytest.mark.parametrize(
    ("name", "program", "wanted"),
    [
        ("squeue", "sbatch", ["--wait", "--nodes=2", "--ntasks-per-node=1", "--exclusive", "--partition=main"]),
        ("slurm", "sbatch", ["--wait", "--parsable"]),
        ("pbs", "qsub", ["block=true", "select=2", "place=scatter:excl", "--partition=main"]),
        ("lsf", "bsub", ["-K", "-x", "-n", "2", "span[ptile=1]"]),
        ("flux", "flux", ["alloc", "--nodes=2", "--exclusive"]),
    ],
)
def test_every_scheduler_gets_its_own_words(tmp_path, scheduler, capsys, name, program, wanted):
    called = scheduler(program, RUN_LAST)
    command = [sys.executable, "-c", "import sys; print('measured'); sys.exit(2)"]
    assert jobs.run(job(tmp_path, name, command), print) == 2
    asked = called.read_text().splitlines()
    assert [word for word in wanted if word not in asked] == []
    assert "measured\n" in capsys.readouterr().out


def test_words_of_a_command_are_not_shell(tmp_path, scheduler, capsys):
    scheduler("sbatch", RUN_LAST)
    assert jobs.run(job(tmp_path, command=["echo", "$(touch canary); `touch canary`", "a b"]), print) == 0
    assert "$(touch canary); `touch canary` a b" in capsys.readouterr().out
    assert not Path("canary").exists()


def test_the_partition_prepares_the_job(tmp_path, scheduler, capsys):
    scheduler("sbatch", RUN_LAST)
    given = job(tmp_path, command=["sh", "-c", "echo $PREPARED"], prepare=["export PREPARED=yes"])
    assert jobs.run(given, print) == 0
    assert "yes" in capsys.readouterr().out


@pytest.mark.parametrize(
    "body", ["echo 'sbatch: error: invalid partition' >&2; exit 1", "echo 'invalid partition'; exit 0"]
)
def test_a_job_that_never_ran_is_an_error(tmp_path, scheduler, monkeypatch, body):
    monkeypatch.setattr(jobs, "LATE_S", 0.1)
    scheduler("sbatch", body)
    with pytest.raises(PlumbError, match=r"did not reach its end.*invalid partition"):
        jobs.run(job(tmp_path), print)


def test_a_job_killed_on_its_node_is_no_verdict(tmp_path, scheduler, monkeypatch):
    monkeypatch.setattr(jobs, "LATE_S", 0.1)
    scheduler("sbatch", RUN_LAST)
    with pytest.raises(PlumbError, match="did not reach its end"):
        jobs.run(job(tmp_path, command=["sh", "-c", "kill -9 $PPID"]), print)


def test_without_the_scheduler_one_line_says_so(tmp_path, scheduler, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PlumbError, match="cannot submit: No such file"):
        jobs.run(job(tmp_path), print)
    with pytest.raises(PlumbError, match="cannot submit itself to sge"):
        jobs.run(job(tmp_path, "sge"), print)


def test_where_a_job_is_needed(monkeypatch):
    for variable in jobs.INSIDE.values():
        monkeypatch.delenv(variable, raising=False)
    assert not jobs.needed({"scheduler": "local"})
    assert not jobs.needed({"scheduler": "ssh"})
    assert jobs.needed({"scheduler": "squeue"})
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    assert not jobs.needed({"scheduler": "squeue"})


def test_an_interrupt_cancels_the_job(tmp_path, scheduler):
    scheduler("sbatch", "echo 4711; exec sleep 60")
    cancelled = scheduler("scancel", f"kill $(cat {tmp_path}/sbatch.pid)")
    programs = Path(os.environ["PATH"].split(os.pathsep)[0])
    (programs / "sbatch").write_text(f"#!/bin/bash\necho 4711\necho $$ >{tmp_path}/sbatch.pid\nexec sleep 60\n")
    code = (
        "import pathlib; from plumbline import jobs\n"
        f"part = {{'name': 'main', 'scheduler': 'squeue'}}\n"
        f"jobs.run(jobs.Job(part, ['true'], 1, pathlib.Path({str(tmp_path / 'work')!r})), print)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 20
    while not (tmp_path / "sbatch.pid").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    assert child.wait(20) != 0
    assert cancelled.read_text() == "4711\n"
