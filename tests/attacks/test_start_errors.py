"""Launches that fail: the reason names the cause; one that did not begin is started again once, which is recorded."""

import os
from pathlib import Path
from types import SimpleNamespace

import msgspec
import processes
import pytest
import samples
import stack_manifest

from plumbline.launch import hosts, pipeline
from plumbline.launch.output import cause_of, complaint
from plumbline.launch.process import Ended
from plumbline.mpi import TABLE, Layout
from plumbline.records import model
from plumbline.show import record as show


class NoChanges:
    built = None

    def changes(self):
        return []

    def of_build(self):
        return {}


def job(script, folder):
    """A job of one rank whose launcher is a shell script; ``$COUNT`` is a file that it may count in."""
    record = model.convert(samples.record(launches=[], state="running", command=["sh", "-c", script]))
    return SimpleNamespace(
        record=record,
        variant=msgspec.structs.replace(record.variant, time_limit_s=0.5),
        plan=msgspec.structs.replace(record.plan, bound=True),
        manifest=stack_manifest.made(),
        host=SimpleNamespace(last_level_cache_bytes=1),
        ranks=hosts.Ranks(
            SimpleNamespace(family=TABLE["mpich"]),
            Layout(1, 1),
            (),
            {"PATH": os.environ["PATH"], "COUNT": str(folder / "count")},
        ),
        settings={},
        remarks=[],
        binds="threads",
        files=NoChanges(),
        part=None,
    )


def until_it_sleeps_or_ends(child):
    name = Path(f"/proc/{child.pid}/comm")
    processes.wait_until(lambda: name.read_text() == "sleep\n" or not processes.runs(child.pid), name.read_text)


@pytest.fixture
def launch(tmp_path, monkeypatch):
    """Runs a script as a launch; ``starts`` says how often it was started. Only one that sleeps reaches its limit."""
    monkeypatch.setattr(pipeline, "PAUSE_S", 0.0)
    processes.limit_begins_after(monkeypatch, until_it_sleeps_or_ends)

    def run(script, earlier=None):
        made = job('echo x >>"$COUNT"; ' + script, tmp_path)
        made.record.launches += [earlier] if earlier else []
        found = pipeline.launch(made, 0, 0, tmp_path / "launch-0")
        return found, (tmp_path / "count").read_text().count("x")

    return run


def test_a_launcher_that_fails_at_once_is_started_again_and_the_record_says_so(launch):
    once_only = 'test "$(wc -l <"$COUNT")" -gt 1 || { echo "bind: Address already in use" >&2; exit 7; }'
    found, starts = launch(once_only)
    assert (starts, found.status) == (2, "ok")
    assert found.start_errors == ["the launcher ended with exit status 7: bind: Address already in use"]
    record = model.convert(samples.record())
    record.launches = [found]
    assert "started again: the launcher ended with exit status 7" in show.text(record)
    assert model.decode(model.encode([record]).encode()).launches[0].start_errors == found.start_errors


def test_a_launcher_that_fails_twice_is_an_invalid_launch(launch):
    found, starts = launch("echo 'no route' >&2; exit 3")
    assert (starts, found.status, found.verified) == (2, "failed", False)
    assert found.reasons[0] == "the launcher ended with exit status 3: no route"
    assert len(found.start_errors) == 1


def test_a_launcher_that_waits_in_vain_is_started_again_once_in_a_session(launch):
    hangs_once = 'test "$(wc -l <"$COUNT")" -gt 1 || exec sleep 600'
    found, starts = launch(hangs_once)
    assert (starts, found.status) == (2, "ok")
    assert found.start_errors[0].startswith("ended by its time limit of 0.5 s")
    second, starts = launch("exec sleep 600", found)
    assert (starts, second.status, second.start_errors) == (3, "timeout", [])


@pytest.mark.parametrize("script", [
    "touch output/0; exit 1", "touch output/0; exec sleep 600", "echo 5.0 >output/0; kill -SEGV $$",
    "touch witness/h.1.json; exit 1", "echo 'plumb-bind: 3 ranks asked, there is room for 2' >&2; exit 2",
    "exit 0",
])  # fmt: skip
def test_a_launch_that_began_or_was_refused_is_not_repeated(launch, script):
    found, starts = launch(script)
    assert starts == 1
    assert found.start_errors == []


CAUSES = [
    (["starting", "shm_open: No space left on device", "BAD TERMINATION", "EXIT CODE: 7"],
     "shm_open: No space left on device"),
    (["It appears as if there is not enough space for /dev/shm/x", "exit"],
     "It appears as if there is not enough space for"),
    (["x", "./p: error while loading shared libraries: libmpi.so: cannot open shared object file"], "./p: error while"),
    (["ssh: connect to host n2 port 22: Connection refused", "error: lost n2"], "ssh: connect to host n2"),
    (["error: first", "error: the summary", "----"], "error: the summary"),
    (["======", "=   BAD TERMINATION OF ONE", "=   EXIT CODE: 9", "====="], "EXIT CODE: 9"),
    (["hello", "", "   "], "hello"),
    (["slurmstepd: error: Detected 1 oom_kill event. Some of the step tasks have been OOM Killed."],
     "slurmstepd: error"),
    (["bash: line 1: mpirun: command not found"], "bash: line 1: mpirun"),
    (["fork: retry: Resource temporarily unavailable"], "fork: retry"),
    (["prte: opening /home/x: Stale file handle"], "prte: opening"),
    (["YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Hangup (signal 1)", "Please see the FAQ page"],
     "YOUR APPLICA"),
    (["=   KILLED BY SIGNAL: 9 (Killed)", "=====", "a lattice of side 7"], "a lattice of side 7"),
    (["Caught signal 11 (Segmentation fault: address not mapped)"], "Caught signal 11"),
]  # fmt: skip

RULE = 74 * "-"
#: as prterun of Open MPI 5 prints it where a core is missing (without its further advice)
SLOTS = f"""{RULE}
There are not enough slots available in the system to satisfy the 4
slots that were requested by the application:

  /opt/plumb-bind

Either request fewer procs for your application, or make more slots
available for use.

Alternatively, you can use the --map-by :OVERSUBSCRIBE option to ignore the
number of available slots when deciding the number of processes to
launch.
{RULE}
"""
#: the same where a rank ends with an error
ENDED = f"""{RULE}
prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated. The first process to do so was:

   Process name: [prterun-vm-26784@1,1]
   Exit code:    1
{RULE}
"""
#: the same where a rank was killed, and where one ended without MPI_Finalize (without its further advice)
KILLED = f"""{RULE}
prterun noticed that process rank 0 with PID 2620 on node vm exited on
signal 9 (Killed).
{RULE}
"""
IMPROPER = f"""{RULE}
prterun has exited due to process rank 0 with PID 2348 on node vm
exiting improperly. There are three reasons this could occur:

1. this process did not call "init" before exiting, but others in
the job did.
{RULE}
"""
TRACEBACK = """Traceback (most recent call last):
  File "pi_mpi.py", line 1, in <module>
    from mpi4py import MPI
ModuleNotFoundError: No module named 'mpi4py'
"""
OUTPUTS = [
    ([TRACEBACK + ENDED], "ModuleNotFoundError: No module named 'mpi4py'"),
    ([TRACEBACK + TRACEBACK], "ModuleNotFoundError: No module named 'mpi4py'"),
    (["step 1\n", "", ENDED], "step 1"),
    (["", ENDED],
     "prterun detected that one or more processes exited with non-zero status, thus causing the job to be "),
    (
        ["step 1\n" + SLOTS],
        "There are not enough slots available in the system to satisfy the 4 slots that were requested by the "
        "application: /opt/plumb-bind",
    ),
    (["open: No space left on device\n", ENDED], "open: No space left on device"),
    (["step 1\n", IMPROPER], "prterun has exited due to process rank 0 with PID 2348 on node vm exiting improperly"),
    ([SLOTS.removesuffix(f"{RULE}\n")], "There are not enough slots available"),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "wanted"), OUTPUTS)
def test_a_launchers_message_is_told_whole_and_after_the_programs_own_error(texts, wanted, tmp_path):
    shown = cause_of(Ended("failed", 1, 1.0), texts, tmp_path / "absent")
    assert shown.startswith(f"the launcher ended with exit status 1: {wanted}")
    assert len(shown) < 250


def test_a_failed_launch_shows_its_last_ten_lines_once(launch):
    found, _ = launch("for i in $(seq 1 700); do echo line $i; done; echo; echo ----; exit 3")
    assert found.output_tail.startswith("line "), "no fragment of a line"
    assert found.last_lines() == [f"line {number}" for number in range(691, 701)]
    record = model.convert(samples.record())
    record.launches = [found, found]
    assert show.text(record).count("launch 0 printed last:\n    line 691\n") == 1
    fine, _ = launch("echo fine")
    assert fine.last_lines() == []


@pytest.mark.parametrize(("lines", "wanted"), CAUSES)
def test_the_reason_names_the_cause(lines, wanted, tmp_path):
    shown = cause_of(Ended("failed", 7, 1.0), ["\n".join(lines)], tmp_path / "absent", who="the program")
    assert shown.startswith(f"the program ended with exit status 7: {wanted}")
    assert len(shown) < 300


@pytest.mark.parametrize(("status", "texts", "wanted"), [
    (137, ["residual error: 1e-9\n", KILLED], "exited on signal 9 (Killed)."),
    (9, ["residual error: 1e-9\n", "EXIT STRING: Killed (signal 9)\nsee the FAQ\n"], "EXIT STRING: Killed (signal 9)"),
    (1, ["residual error: 1e-9\n", KILLED], "residual error: 1e-9"),
])  # fmt: skip
def test_a_rank_that_was_killed_has_no_words_of_its_own(status, texts, wanted, tmp_path):
    assert cause_of(Ended("failed", status, 1.0), texts, tmp_path / "absent").endswith(wanted)


@pytest.mark.parametrize(("text", "wanted"), [
    ("Warning: slow\nError: first\n  Error: the solver diverged\nbye\n", "Error: the solver diverged"),
    ("open x: No such file or directory\nError: first\n", "open x: No such file or directory"),
    ("step 1\n\nbye\n", ""),
    (f"error {'word ' * 90}\n", f"error {'word ' * 38}…"),
])  # fmt: skip
def test_what_a_program_complains_of_on_standard_error(text, wanted):
    assert complaint(text.splitlines()) == wanted


def test_nothing_said_is_nothing_invented(tmp_path):
    assert cause_of(Ended("failed", -9, 1.0), ["", "\n--\n"], tmp_path / "absent") == "the launcher ended with signal 9"


def test_a_full_shared_memory_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=16, f_frsize=4096))
    shown = cause_of(Ended("failed", 7, 1.0), ["EXIT CODE: 7"], tmp_path)
    assert shown == f"the launcher ended with exit status 7: EXIT CODE: 7; {tmp_path} has 64 KiB left"


@pytest.mark.parametrize(("status", "text"), [
    (132, "prterun noticed that process rank 1 with PID 7 on node n2 exited on signal 4 (Illegal instruction)."),
    (4, "=   EXIT CODE: 4\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Illegal instruction (signal 4)"),
    (-4, ""),
])  # fmt: skip
def test_an_illegal_instruction_says_what_to_compile_for(tmp_path, status, text):
    """The other nodes of a job are not asked before the launch what their processors have."""
    shown = cause_of(Ended("failed", status, 1.0), [text], tmp_path / "absent")
    assert shown.endswith("compiled for another processor than that of a node: PLUMB_CPU, or -march of your build")
