"""ReFrame's jobs under Flux: what is asked for, and what is made of the answers that Flux 0.88 gave."""

import json
import time

import fake_scheduler
import pytest
from reframe.core.backends import getscheduler
from reframe.core.exceptions import JobError, JobSchedulerError
from reframe.core.schedulers import JobScheduler

from plumbline import schedulers

TOLD = json.loads((fake_scheduler.DATA / "flux" / "recorded.json").read_text(encoding="utf-8"))


def answer(words):
    """The recorded answer of ``flux jobs`` for the jobs ``words``, with the ids in it."""
    (found,) = (item["stdout"] for item in TOLD if item["command"].endswith(f"{{exception.note}}' {words}"))
    return found, [line.split("|")[0] for line in found.splitlines()]


@pytest.fixture
def backend(monkeypatch):
    monkeypatch.setattr(JobScheduler, "get_option", lambda *_: 60)
    return getscheduler(schedulers.named("flux").reframe_backend())()


@pytest.fixture
def flux(tmp_path, monkeypatch):
    """A flux that prints a text, and notes its words."""

    def prints(text):
        (tmp_path / "text").write_text(text, encoding="utf-8")
        program = tmp_path / "flux"
        program.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/asked\ncat {tmp_path}/text\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return tmp_path / "asked"

    return prints


def job(backend, tmp_path, job_id=None, **changes):
    made = backend.make_job("a test", workdir=str(tmp_path / "it's"), sched_access=["--queue=main"])
    made.num_tasks, made.num_tasks_per_node, made.time_limit = 3, 1, 360
    made._jobid, made._submit_time = job_id, time.time()
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def test_whole_nodes_are_asked_for_and_an_end_that_the_driver_knows(backend, tmp_path):
    lines = backend.emit_preamble(job(backend, tmp_path))
    assert {"#flux: --nodes=3", "#flux: --exclusive", "#flux: --queue=main"} <= set(lines)
    assert "#flux: '--job-name=a test'" in lines
    assert {"#flux: --time-limit=360s", "#flux: --signal=SIGTERM@20s"} <= set(lines)
    short = backend.emit_preamble(job(backend, tmp_path, time_limit=30))
    assert "#flux: --signal=SIGTERM@15s" in short  # not before the job begins


def test_the_id_is_a_line_of_fluxs_own_form(backend, tmp_path, flux):
    asked = flux("Welcome 4711\nƒ5xmoPST9\n")
    made = job(backend, tmp_path)
    backend.submit(made)
    assert made.jobid == "f5xmoPST9"  # as flux jobs prints it in every locale
    assert asked.read_text() == "batch a test.sh\n"
    flux("Welcome 4711\n")
    with pytest.raises(JobSchedulerError, match="printed no job id"):
        backend.submit(job(backend, tmp_path))


def test_the_states_of_jobs(backend, tmp_path, flux):
    text, ids = answer("RUNNING WAITING fABC")
    flux(text)
    running, waiting, unknown = (job(backend, tmp_path, one) for one in (*ids, "fABC"))
    backend.poll(running, None, waiting, unknown)
    assert [one.state for one in (running, waiting, unknown)] == ["RUN", "SCHED", "INACTIVE"]
    assert [backend.finished(one) for one in (running, waiting, unknown)] == [False, False, True]
    text, ids = answer("JOB CANCELLED")
    flux(text)
    ended, cancelled = (job(backend, tmp_path, one) for one in ids)
    backend.poll(ended, cancelled)
    assert [one.exitcode for one in (ended, cancelled)] == [0, 137]
    assert [one.exception for one in (ended, cancelled)] == [None, None]


def test_what_flux_ended_has_failed_in_its_words(backend, tmp_path, flux):
    text, ids = answer("IMPOSSIBLE TIMEOUT")
    flux(text)
    impossible, late = (job(backend, tmp_path, one) for one in ids)
    backend.poll(impossible, late)
    assert backend.finished(impossible)
    assert backend.finished(late)
    assert "need 9 exclusive node(s), only 2 eligible" in str(impossible.exception)
    assert "resource allocation expired" in str(late.exception)


def test_a_job_that_waits_too_long_is_cancelled(backend, tmp_path, flux):
    text, ids = answer("RUNNING WAITING fABC")
    asked = flux(text)
    running, waiting = (job(backend, tmp_path, one, max_pending_time=5, _submit_time=time.time() - 6) for one in ids)
    backend.poll(running, waiting)
    assert asked.read_text().splitlines()[-1] == f"cancel {ids[1]}"
    assert isinstance(waiting.exception, JobError)
    assert running.exception is None
    assert not backend.finished(waiting)  # until Flux says so
