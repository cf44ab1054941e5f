"""A launch ends with everything it started, in time, and keeps its output."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import processes
import pytest

from plumbline.host import proc
from plumbline.launch import conclusions, process

#: starts a grandchild in a session of its own, as launcher daemons do, and writes its pid
DAEMON = (
    "import subprocess,sys,time; p=subprocess.Popen(['sleep','600'],start_new_session=True); print(p.pid,flush=True);"
)
#: seconds that no launch here takes
LONG = 600


@pytest.fixture
def late(tmp_path, monkeypatch):
    """The time limit of a launch begins when the process sleeps whose number it printed."""
    printed = tmp_path / "stdout"
    processes.limit_begins_after(monkeypatch, lambda _: processes.wait_asleep(int(processes.wait_for(printed))))


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_output_and_status_are_kept(tmp_path):
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    ended = process.run(python(code), os.environ, tmp_path, LONG)
    assert (ended.status, ended.exit_code) == ("failed", 3)
    assert [(tmp_path / name).read_text() for name in ("stdout", "stderr")] == ["out\n", "err\n"]


def test_a_hanging_launch_is_ended_with_its_daemons_and_says_what_it_waited_for(tmp_path, late):
    ended = process.run(python(DAEMON + "time.sleep(600)"), os.environ, tmp_path, 0.2)
    assert ended.status == "timeout"
    assert ended.wall_s >= 0.2
    assert any("sleep" in line and "sleeping" in line for line in ended.waiting)
    assert not processes.runs(int((tmp_path / "stdout").read_text()))


def test_a_launch_that_ignores_sigterm_is_killed(tmp_path, late):
    code = "import signal,time,os; signal.signal(15, signal.SIG_IGN); print(os.getpid(), flush=True); time.sleep(600)"
    ended = process.run(python(code), os.environ, tmp_path, 0.2)
    assert ended.status == "timeout"
    assert not processes.runs(int((tmp_path / "stdout").read_text()))


def test_what_a_finished_launcher_left_running_is_ended(tmp_path):
    ended = process.run(python(DAEMON), os.environ, tmp_path, LONG)
    assert (ended.status, ended.exit_code) == ("ok", 0)
    assert not processes.runs(int((tmp_path / "stdout").read_text()))


@contextlib.contextmanager
def driver(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A launch in a process of its own, which ends with the number of the signal that interrupted it."""
    code = f"""
import os, sys
from pathlib import Path
from plumbline.launch import process
try:
    process.run([sys.executable, "-c", {DAEMON + "time.sleep(600)"!r}], os.environ, Path({str(tmp_path)!r}), {LONG})
except process.Interrupted as error:
    sys.exit(error.signum)
"""
    with subprocess.Popen(python(code), stdout=subprocess.PIPE) as child:
        processes.wait_for(tmp_path / "stdout", of=child)
        yield child


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR2])
def test_a_signal_ends_the_launch_and_is_reported(tmp_path, signum):
    """Run in a process of its own: the signal must reach the driver, not pytest."""
    with driver(tmp_path) as child:
        child.send_signal(signum)
        assert child.wait(timeout=120) == signum
    assert not processes.runs(int((tmp_path / "stdout").read_text()))


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGUSR2])
def test_a_signal_that_comes_when_the_launcher_has_just_ended_is_not_lost(tmp_path, monkeypatch, signum):
    """Grid Engine signals both, and the launcher ended first."""
    end_tree = process._end_tree

    def end_late(*arguments):
        end_tree(*arguments)
        os.kill(os.getpid(), signum)

    monkeypatch.setattr(process, "_end_tree", end_late)
    with pytest.raises(process.Interrupted, match=signum.name):
        process.run(python("pass"), os.environ, tmp_path, LONG)


def test_a_launch_whose_output_nobody_reads_any_more_ends_as_at_the_end_of_its_terminal(tmp_path):
    """That is all that a command hears when the ssh that started it is gone."""
    with driver(tmp_path) as child:
        assert child.stdout is not None
        child.stdout.close()
        assert child.wait(timeout=120) == signal.SIGHUP
    assert not processes.runs(int((tmp_path / "stdout").read_text()))


@pytest.mark.parametrize(("status", "ends"), [(0, False), (1, True)])
def test_a_rank_that_is_not_below_the_driver_ends_with_a_launch_that_failed(tmp_path, status, ends):
    """As under Grid Engine, whose daemon starts the proxies of launchers. Others go on."""
    own, other = tmp_path / "launch-1", tmp_path / "launch-10"
    own.mkdir()
    waits = [sys.executable, "-c", "import time; time.sleep(600)"]
    strays = [
        subprocess.Popen(waits, env={"PLUMB_WITNESS_DIR": f"{own}/witness"}),
        subprocess.Popen(waits, env={"PLUMB_WITNESS_DIR": f"{other}/witness"}),
        subprocess.Popen([*waits, f"{own}/stdout"], env={"PWD": str(own)}),  # somebody looks at the launch
    ]
    try:
        launch = (
            f"process.run([sys.executable, '-c', 'raise SystemExit({status})'], os.environ, Path({str(own)!r}), {LONG})"
        )
        code = f"import os, sys; from pathlib import Path; from plumbline.launch import process; {launch}"
        subprocess.run(python(code), check=True)
        assert [one.poll() is None for one in strays] == [not ends, True, True]
    finally:
        for one in strays:
            one.kill()
            one.wait()


def test_a_killed_driver_takes_the_launcher_with_it(tmp_path):
    code = f"""
import os, sys
from pathlib import Path
from plumbline.launch import process
process.run([sys.executable, "-c", "import os,time; print(os.getpid(), flush=True); time.sleep(600)"],
            os.environ, Path({str(tmp_path)!r}), {LONG})
"""
    with subprocess.Popen(python(code)) as driver:
        pid = int(processes.wait_for(tmp_path / "stdout", of=driver))
        driver.kill()
    processes.wait_until(lambda: not processes.runs(pid), "the end of the launcher")


def test_a_missing_program_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        process.run(["no-such-program"], os.environ, tmp_path, LONG)


def test_who_waits_for_an_end_neither_reaps_nor_waits_longer():
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        process.sleep_until_end(child.pid, 0.01)
        assert child.poll() is None
        os.kill(child.pid, signal.SIGKILL)
        process.sleep_until_end(child.pid, None)
        assert os.waitpid(child.pid, os.WNOHANG)[0] == child.pid
    with pytest.raises(ProcessLookupError):
        process.sleep_until_end(child.pid, None)


def test_processes_that_the_caller_had_before_are_not_the_launchs(tmp_path):
    earlier = subprocess.Popen([sys.executable, "-c", "pass"])
    processes.wait_until(lambda: not processes.runs(earlier.pid), "the end of a process")
    late = "import os, sys; os.fork() or os.setsid() or os.fork() or os._exit(0)"
    ended = process.run([sys.executable, "-c", late], os.environ, tmp_path, LONG)
    assert earlier.pid not in [one.pid for one in ended.orphans]
    assert ended.orphans
    earlier.wait()


@pytest.mark.parametrize(("nodes", "left"), [(1, ["ssh", "daemon"]), (2, ["daemon"])])
def test_over_nodes_ssh_is_the_launchers(nodes, left):
    """Open MPI's launcher may end before the ssh by which it started a node: no rank left that."""
    job = SimpleNamespace(ranks=SimpleNamespace(layout=SimpleNamespace(nodes=nodes)))
    orphans = [proc.Stat(40 + place, name, "Z", 1, 30, 5) for place, name in enumerate(("ssh", "daemon"))]
    assert [orphan.name for orphan in conclusions.left_by_ranks(orphans, job)] == left
