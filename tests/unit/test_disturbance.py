"""Disturbance: from fake /proc and /sys trees, and once from this host."""

from __future__ import annotations

import dataclasses
import json
import time

import pytest

from plumbline.witness import disturbance

WALL = 10.0


def tree(root, cpus=4, busy=0, steal=0, pressure=None, load="0.50", clock=None, throttles=None):
    """A host's /proc and /sys with the same counters on every CPU."""
    (root / "proc").mkdir(parents=True, exist_ok=True)
    rows = [f"cpu{cpu} {busy} 0 0 1000 5 7 9 {steal} 0 0" for cpu in range(cpus)]
    (root / "proc/stat").write_text("\n".join(["cpu  1 2 3 4 5 6 7 8 9 10", *rows, "intr 1 2 3", "ctxt 99"]) + "\n")
    (root / "proc/loadavg").write_text(f"{load} 0.40 0.30 1/99 1234\n")
    if pressure is not None:
        (root / "proc/pressure").mkdir(exist_ok=True)
        (root / "proc/pressure/cpu").write_text(
            f"some avg10=0.00 avg60=0.00 avg300=0.00 total={pressure}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
        )
    for cpu in range(cpus):
        base = root / f"sys/devices/system/cpu/cpu{cpu}"
        if clock is not None:
            (base / "cpufreq").mkdir(parents=True, exist_ok=True)
            (base / "cpufreq/scaling_cur_freq").write_text(f"{clock}\n")
        if throttles is not None:
            (base / "thermal_throttle").mkdir(parents=True, exist_ok=True)
            (base / "thermal_throttle/core_throttle_count").write_text(f"{throttles}\n")
    return root


def snap(root, cpus=None, **facts):
    """A snapshot of a fake tree, without this test's own CPU time in it."""
    seen = disturbance.snapshot(cpus, tree(root, **facts))
    return dataclasses.replace(seen, own_cpu_s=0.0, children_cpu_s=0.0, ticks_per_s=100)


def rank(user=0.0, system=0.0, involuntary=0, major=0, wall=WALL, number=0, host="n1", threads=1):
    return {
        "host": host,
        "rank": number,
        "threads": [{"tid": 100 + i} for i in range(threads)],
        "usage": {
            "wall_s": wall,
            "user_s": user,
            "system_s": system,
            "voluntary_switches": 0,
            "involuntary_switches": involuntary,
            "minor_faults": 0,
            "major_faults": major,
        },
    }


def judge(before, after, witnesses=(), cpus=(0, 1), wall=WALL):
    found = disturbance.assess(before, after, list(witnesses), list(cpus), wall, host="n1")
    assert found["disturbed"] == bool(found["causes"])
    json.dumps(found, allow_nan=False)
    return found


def test_a_quiet_host(tmp_path):
    before = snap(tmp_path, busy=100, steal=3, pressure=1000, clock=2400000, throttles=4)
    after = snap(tmp_path, busy=1090, steal=3, pressure=2000, clock=3000000, throttles=4, load="1.50")
    found = judge(before, after, [rank(user=9.9), rank(user=9.9, number=1)])
    assert found["causes"] == []
    assert found["figures"] == {
        "steal_fraction": 0.0,
        "cpu_resolution": 0.002,
        "other_cpu_fraction": 0.0,
        "cpu_pressure_fraction": 0.0001,
        "thermal_throttles": 0,
        "clock_mhz_before": 2400.0,
        "clock_mhz_after": 3000.0,
        "load_before": 0.5,
        "load": 1.5,
        "involuntary_switches_per_s": 0.0,
        "major_faults": 0,
    }


def test_steal(tmp_path):
    found = judge(snap(tmp_path, steal=0), snap(tmp_path, steal=50), [rank()])
    assert found["figures"]["steal_fraction"] == 0.05
    assert found["causes"] == ["the hypervisor took 5.0 % of CPUs 0-1 (steal)"]


def test_only_the_planned_cpus_count(tmp_path):
    before, after = snap(tmp_path), snap(tmp_path)
    after.cpus[3] = disturbance.Ticks(busy=1000, steal=1000)
    assert judge(before, after, [rank()], cpus=[0, 1])["causes"] == []
    assert len(judge(before, after, [rank()], cpus=[3])["causes"]) == 2


def test_other_processes(tmp_path):
    found = judge(snap(tmp_path), snap(tmp_path, busy=1000), [rank(user=9, system=1), rank(user=4, number=1)])
    assert found["figures"]["other_cpu_fraction"] == 0.3
    assert found["causes"] == ["other processes used 30.0 % of CPUs 0-1"]


def test_the_launcher_is_part_of_the_job(tmp_path):
    before = snap(tmp_path)
    after = dataclasses.replace(snap(tmp_path, busy=1000), children_cpu_s=19.0, own_cpu_s=1.0)
    assert judge(before, after, [rank(user=9), rank(user=9, number=1)])["causes"] == []


def test_ranks_on_other_hosts_explain_nothing_here(tmp_path):
    found = judge(snap(tmp_path), snap(tmp_path, busy=1000), [rank(user=10), rank(user=10, host="n2")])
    assert found["causes"] == ["other processes used 50.0 % of CPUs 0-1"]


def test_without_witnesses_busy_cpus_accuse_nobody(tmp_path):
    found = judge(snap(tmp_path), snap(tmp_path, busy=1000))
    assert found["causes"] == []
    assert "other_cpu_fraction" not in found["figures"]


def test_nothing_is_flagged_below_the_ticks_resolution(tmp_path):
    """One tick more on each of two CPUs within 0.1 s is 10 % of it, and proves nothing."""
    found = judge(snap(tmp_path), snap(tmp_path, busy=1, steal=1), [rank(wall=0.1)], wall=0.1)
    assert found["figures"]["cpu_resolution"] == 0.2
    assert found["figures"]["steal_fraction"] == 0.1
    assert found["causes"] == []


def test_pressure(tmp_path):
    found = judge(snap(tmp_path, pressure=0), snap(tmp_path, pressure=5_000_000))
    assert found["causes"] == ["tasks waited for a CPU 50.0 % of the time (CPU pressure)"]


def test_preemptions_are_a_rate_per_thread(tmp_path):
    before, after = snap(tmp_path), snap(tmp_path)
    assert judge(before, after, [rank(involuntary=1000, threads=4)])["causes"] == []
    found = judge(before, after, [rank(involuntary=10), rank(involuntary=1500, number=7)])
    assert found["causes"] == ["threads of rank 7 on n1 were preempted 150 times a second"]
    assert judge(before, after, [rank(involuntary=100, wall=0.2)])["causes"] == [], "too short for a rate"


def test_major_faults(tmp_path):
    before, after = snap(tmp_path), snap(tmp_path)
    assert judge(before, after, [rank(major=20)])["causes"] == []
    assert judge(before, after, [rank(major=2000)])["causes"] == [
        "rank 0 on n1 waited 2000 times for pages from disk (major faults)"
    ]


def test_throttling(tmp_path):
    found = judge(snap(tmp_path, throttles=1), snap(tmp_path, throttles=2), cpus=[0])
    assert found["causes"] == ["a planned CPU was throttled for its temperature 4 times"]


def test_the_clock_alone_is_a_figure_and_no_cause(tmp_path):
    assert judge(snap(tmp_path, clock=3000000), snap(tmp_path, clock=800000))["causes"] == []


def test_a_host_that_tells_nothing(tmp_path):
    bare = disturbance.snapshot([0, 1], tmp_path / "empty")
    found = disturbance.assess(bare, bare, [rank()], [0, 1], WALL, host="n1")
    assert found["disturbed"] is False
    assert set(found["figures"]) == {"involuntary_switches_per_s", "major_faults"}


@pytest.mark.parametrize("text", ["", "cpu0", "cpu0 a b c d e f g h", "\x00\xff", "cpu0 1 2 3\n", "some total=x"])
def test_odd_files_are_no_crash(tmp_path, text):
    (tmp_path / "proc/pressure").mkdir(parents=True)
    for name in ("stat", "loadavg", "pressure/cpu"):
        (tmp_path / "proc" / name).write_text(text, encoding="latin-1")
    seen = disturbance.snapshot(None, tmp_path)
    assert seen.cpus == {}
    assert seen.pressure_us is None


def test_a_short_or_empty_wall_is_no_division_by_zero(tmp_path):
    before, after = snap(tmp_path, pressure=0), snap(tmp_path, busy=5, pressure=9)
    assert judge(before, after, [rank(wall=0.0)], wall=0.0)["causes"] == []


def test_this_host_is_readable():
    before = disturbance.snapshot()
    time.sleep(0.05)
    after = disturbance.snapshot()
    assert before.cpus
    assert after.time_s > before.time_s
    found = disturbance.assess(before, after, [], None, after.time_s - before.time_s)
    assert 0 <= found["figures"]["steal_fraction"] <= 1
