"""What /proc says of processes."""

import os
import subprocess
from pathlib import Path

import pytest

from plumbline.host import proc


def test_this_process_is_among_all():
    own = {one.pid: one for one in proc.every()}[os.getpid()]
    assert own.parent == os.getppid()
    assert own.name == Path("/proc/self/comm").read_text().strip()
    assert (own.state, own.began > 0) == ("R", True)


def test_a_child_that_nobody_waited_for_is_a_zombie():
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        seen = proc.stat(proc.PROC / str(child.pid))
        assert (seen.state, seen.parent, seen.name) == ("Z", os.getpid(), "true")
    with pytest.raises(OSError, match=str(child.pid)):
        proc.stat(proc.PROC / str(child.pid))


def test_a_name_may_hold_blanks_and_brackets(tmp_path):
    numbers = " ".join(map(str, range(4, 53)))
    for pid, name in ((7, "a) S 1 ("), (8, "caf\udce9")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / f"{pid}/stat").write_bytes(os.fsencode(f"{pid} ({name}) D {numbers}\n"))
    (tmp_path / "9").mkdir()  # it ended meanwhile
    assert sorted(proc.every(tmp_path)) == [
        proc.Stat(7, "a) S 1 (", "D", 4, 14 + 15, 22, 20, 16 + 17),
        proc.Stat(8, "caf\N{REPLACEMENT CHARACTER}", "D", 4, 14 + 15, 22, 20, 16 + 17),
    ]


def test_cpu_time_counts_all_threads_to_the_nanosecond_or_else_in_ticks(tmp_path):
    for thread in ("5", "6"):
        (tmp_path / "5/task" / thread).mkdir(parents=True)
        (tmp_path / "5/task" / thread / "schedstat").write_text("1500000 7 3\n")
    several = proc.Stat(5, "x", "S", 1, 300, 22, threads=2)
    assert proc.ran_s(tmp_path, several) == 0.003
    assert proc.ran_s(tmp_path, several._replace(threads=1)) == 300 / os.sysconf("SC_CLK_TCK")


def test_threads_of_the_kernel_are_told_from_processes():
    seen = proc.Stat(7, "kworker/1:0", "S", 2, 300, 22)
    every = (seen, seen._replace(parent=1), seen._replace(pid=2, parent=0))
    assert [item.of_kernel for item in every] == [True, False, True]
