"""However a session of launches ends, what was measured is in its records, and nothing of others is lost."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from types import SimpleNamespace

import msgspec
import processes
import pytest
import samples

from plumbline.base.errors import PlumbError
from plumbline.base.programs import Interrupted
from plumbline.measure import driver
from plumbline.records import model, store
from plumbline.records.launch import Launch
from plumbline.records.model import Record

LAUNCHES = 3


def a_job(variant, name):
    record = model.convert(samples.record(session=name, variant=model.document(variant), launches=[], state="running"))
    return SimpleNamespace(record=record, variant=record.variant, facts={}, host=None, ceilings=None)


class Session:
    """A session of launches that measure nothing; calling it runs one whose second launch does what is given."""

    def __init__(self, folder, patch):
        self.folder = folder
        self.patch = patch
        patch.setattr(driver, "prepare", a_job)
        patch.setattr(driver.figures, "settle", lambda *_: None)

    def __call__(self, second):
        def launch(_, index, order, folder):
            if index == 1:
                second()
            return msgspec.convert(samples.launch(order, 5.0), Launch)

        self.patch.setattr(driver.pipeline, "launch", launch)
        driver.run([samples.asked(launches=LAUNCHES)], self.folder / "work", seed=1)

    @property
    def left(self):
        """State and number of launches of the records on the disk."""
        (file,) = (self.folder / "results" / "local").glob("*.jsonl")
        return [(item.state, len(item.launches)) for item in store.read(file) if isinstance(item, Record)]


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("PLUMB_SITES", str(tmp_path / "sites"))
    return Session(tmp_path, monkeypatch)


def fail(error):
    def act(*_):
        raise error

    return act


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_an_interrupted_record(session, number):
    before = signal.getsignal(number)
    with pytest.raises(Interrupted):
        session(lambda: signal.raise_signal(number))
    assert session.left == [("interrupted", 1)]
    assert signal.getsignal(number) == before


def test_a_hang_up_that_is_ignored_stays_ignored(session):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        session(lambda: signal.raise_signal(signal.SIGHUP))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert session.left == [("complete", LAUNCHES)]


@pytest.mark.parametrize(("error", "shown"), [
    (OSError(28, "No space left on device"), PlumbError),
    (PlumbError("a node is gone"), PlumbError),
    (KeyError("what nobody expected"), KeyError),
    (RecursionError(), RecursionError),
    (MemoryError(), MemoryError),
    (KeyboardInterrupt(), KeyboardInterrupt),
    (SystemExit(1), SystemExit),
], ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else value.__name__)  # fmt: skip
def test_any_error_leaves_an_interrupted_record(session, error, shown):
    with pytest.raises(shown):
        session(fail(error))
    assert session.left == [("interrupted", 1)]


def test_an_error_after_the_measurement_loses_no_launch(session):
    with pytest.raises(ZeroDivisionError):
        session(lambda: session.patch.setattr(driver.figures, "settle", fail(ZeroDivisionError("limits"))))
    assert session.left == [("interrupted", 2)]


def test_a_program_that_cannot_be_started_is_one_line(session):
    with pytest.raises(PlumbError, match="a launch could not be started"):
        session(fail(FileNotFoundError(2, "No such file", "mpirun")))


def test_two_sessions_in_one_folder_are_one_line(session, tmp_path):
    def second():
        with pytest.raises(PlumbError, match="another plumb launch works in this folder"):
            driver.run([samples.asked()], tmp_path / "work")

    session(second)
    assert session.left == [("complete", LAUNCHES)]


def test_a_folder_that_cannot_be_written_is_one_line(session, tmp_path):
    (tmp_path / "work").write_text("a file")
    with pytest.raises(PlumbError, match="cannot write"):
        driver.run([samples.asked()], tmp_path / "work")


@pytest.mark.parametrize("name", ["launch-0", "launch-2"])
@pytest.mark.parametrize("what", ["folder", "file", "link"])
def test_a_foreign_folder_of_a_launch_stays(session, tmp_path, name, what):
    work, target = tmp_path / "work", tmp_path / "mine"
    work.mkdir()
    target.mkdir()
    (target / "thesis.txt").write_text("mine")
    place = work / name
    if what == "folder":
        target.rename(place)
    elif what == "file":
        place.write_text("mine")
    else:
        place.symlink_to(target)
    with pytest.raises(PlumbError, match="was not made by Plumbline"):
        driver.run([samples.asked(launches=LAUNCHES)], work)
    kept = place if what == "file" else place / "thesis.txt"
    assert kept.read_text() == "mine"


#: a driver in a job's script: told to end, it needs some time, and then leaves a file
DRIVER = """
import signal, sys, time
from pathlib import Path
from plumbline.launch import process
process.leave_group()
def end(*_):
    time.sleep(0.5)
    Path("ended").write_text("in its own time")
    sys.exit()
signal.signal(signal.SIGTERM, end)
Path("began").write_text("yes")
time.sleep(600)
"""


def test_a_cancelled_job_has_time_to_write_its_record(tmp_path):
    """As ReFrame cancels a job on this host: the group gets SIGTERM, and SIGKILL as soon as the job's shell is gone."""
    script = f"{shlex.join([sys.executable, '-c', DRIVER])}\necho more\n"
    with subprocess.Popen(["bash", "-c", script], cwd=tmp_path, start_new_session=True) as shell:
        processes.wait_for(tmp_path / "began", of=shell)
        os.killpg(shell.pid, signal.SIGTERM)
        shell.wait(120)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
    processes.wait_for(tmp_path / "ended")
