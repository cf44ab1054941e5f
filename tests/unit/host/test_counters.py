"""Counters of the programs that a block starts: the kernel's own stand for the processor's, which few machines have."""

import errno
import os
import subprocess
import sys

import pytest

from plumbline.host import counters

WORK = [sys.executable, "-c", "sum(range(3_000_000))"]


@pytest.fixture
def root(tmp_path):
    files = {
        "proc/sys/kernel/perf_event_paranoid": "3", "proc/cpuinfo": "vendor_id : GenuineIntel",
        "sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size": "64",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_children_are_counted_from_when_they_begin_a_program_and_this_process_is_not(monkeypatch):
    """CPU time in ns and page faults; a child of the child counts too."""
    monkeypatch.setattr(counters, "EVENTS", {"cpu_ns": (1, 1), "instructions": (1, 1), "cycles": (1, 2)})
    with counters.counting() as counts:
        sum(range(3_000_000))
    if counts.missing != counters.NONE:
        pytest.skip(counts.missing)
    assert counts.values == {}  # nothing was started
    with counters.counting() as counts:
        subprocess.run(["sh", "-c", 'true; "$@"; true', "sh", *WORK], check=True)
    assert counts.values.keys() == counters.EVENTS.keys()
    spent = os.times()
    assert 10**7 < counts.values["cpu_ns"] <= 1e9 * (spent.children_user + spent.children_system + 0.1)


@pytest.mark.parametrize(("number", "why"), [
    (errno.ENOENT, "the host shows no hardware counters, as is usual in virtual machines"),
    (errno.EBUSY, "other programs use the hardware counters"),
    (errno.EACCES, "kernel.perf_event_paranoid is 3; 2 is enough"),
    (errno.ENOSYS, f"perf_event_open: {os.strerror(errno.ENOSYS)}"),
])  # fmt: skip
def test_why_nothing_is_counted_is_said(monkeypatch, root, number, why):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(counters, "opened", refuse)
    with counters.counting(root) as counts:
        pass
    assert (counts.missing, counts.values) == (why, {})


def test_a_miss_moves_a_line_where_the_event_is_of_the_last_cache(root):
    """On Intel; Linux counts other caches by this name elsewhere."""
    with counters.counting(root) as counts:
        pass
    assert counts.line_bytes == 64
    (root / "proc/cpuinfo").write_text("vendor_id : AuthenticAMD")
    with counters.counting(root) as counts:
        pass
    assert counts.line_bytes == 0
