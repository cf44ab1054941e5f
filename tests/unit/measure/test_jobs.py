"""One command in a job, with schedulers that are shell scripts: what is asked of them, and what becomes of it."""

import os
import stat
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import samples

from plumbline.base.errors import PlumbError
from plumbline.measure import jobs

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def scheduler(tmp_path, monkeypatch):
    """Put a program of a name and a body before all others; it writes its arguments to NAME.called."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)

    def make(name, body):
        file = programs / name
        file.write_text(f'#!/bin/bash\nprintf "%s\\n" "$@" >{tmp_path}/{name}.called\n{body}\n')
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return tmp_path / f"{name}.called"

    return make


def job(tmp_path, scheduler="squeue", command=("true",), nodes=2, **changes):
    part = samples.partition(**{"name": "main", "scheduler": scheduler, "access": ["--partition=main"], **changes})
    return jobs.Submission(part, list(command), nodes, tmp_path / "work")


RUN_LAST = 'echo 4711; exec bash "${@: -1}"'


@pytest.mark.parametrize(("name", "program", "wanted"), [
    ("squeue", "sbatch", ["--wait", "--nodes=2", "--ntasks-per-node=1", "--exclusive", "--partition=main"]),
    ("slurm", "sbatch", ["--wait", "--parsable"]),
    ("pbs", "qsub", ["block=true", "select=2", "place=scatter:excl", "--partition=main"]),
    ("lsf", "bsub", ["-K", "-x", "-n", "2", "span[ptile=1]"]),
    ("sge", "qsub", ["-sync", "y", "-pe", "mpi", "128", "-r", "n", "-w", "e"]),
])  # fmt: skip
def test_every_scheduler_gets_its_own_words(tmp_path, scheduler, capsys, name, program, wanted):
    called = scheduler(program, RUN_LAST)
    command = [sys.executable, "-c", "import sys; print('measured'); sys.exit(2)"]
    access = {"access": ["-pe mpi 64"]} if name == "sge" else {}
    assert jobs.run(job(tmp_path, name, command, **access), print) == 2
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


def test_grid_engine_needs_a_parallel_environment_for_several_nodes(tmp_path, scheduler):
    called = scheduler("qsub", RUN_LAST)
    with pytest.raises(PlumbError, match="a job of 2 nodes needs a parallel environment"):
        jobs.run(job(tmp_path, "sge"), print)
    assert not called.exists()
    assert jobs.run(job(tmp_path, "sge", nodes=1), print) == 0


def test_flux_prints_an_id_and_is_asked_for_the_end(tmp_path, scheduler):
    called = scheduler(
        "flux", f'case $1 in batch) echo f2UM6; bash "${{@: -1}}";; *) echo "$@" >{tmp_path}/followed;; esac'
    )
    assert jobs.run(job(tmp_path, "flux"), print) == 0
    assert called.read_text().splitlines() == ["job", "status", "f2UM6"]
    assert (tmp_path / "followed").read_text() == "job status f2UM6\n"


def test_where_a_job_is_needed(monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert not jobs.needed(samples.partition())
    assert not jobs.needed(samples.partition(scheduler="ssh"))
    assert jobs.needed(samples.partition(scheduler="squeue"))
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    assert not jobs.needed(samples.partition(scheduler="squeue"))


def test_a_job_that_cannot_be_cancelled_is_named(tmp_path, scheduler, monkeypatch):
    """And the interrupt still ends all there is."""
    scheduler("sbatch", "echo 4711; exec sleep 60")
    scheduler("scancel", "echo 'scancel: error: Access denied' >&2; exit 1")
    monkeypatch.setattr(jobs, "CANCEL_S", 0.1)
    told = []

    def say(line):
        told.append(line)

    def interrupt(*_):
        while "4711" not in (tmp_path / "work" / "submit.out").read_text():
            time.sleep(0.02)
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "_wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        jobs.run(job(tmp_path), say)
    assert told[-1] == (
        "job 4711 could not be cancelled: scancel failed: scancel: error: Access denied (exit status 1): scancel 4711"
    )


@pytest.mark.parametrize("given", ["-A bench", "--account=bench"])
def test_options_of_a_partition_are_words(tmp_path, scheduler, given):
    called = scheduler("sbatch", RUN_LAST)
    assert jobs.run(job(tmp_path, access=[given]), print) == 0
    assert set(given.split()) <= set(called.read_text().splitlines())


def test_a_margin_is_handed_on_in_the_form_that_is_read():
    both = SimpleNamespace(tolerance=0.6, must_detect=0.07, minutes=0.5)
    words = jobs.options(both, "tolerance", "must_detect", "minutes")
    assert words == ["--tolerance", "60%", "--must-detect", "7%", "--minutes", "0.5"]
