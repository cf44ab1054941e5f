"""Disturbance: from what witnesses say and fake /proc and /sys trees, and once from this host."""

import dataclasses
import json

import msgspec
import pytest
import samples
from witnesses import of_documents

from plumbline.host import machine
from plumbline.launch.witness import disturbance
from plumbline.measure import driver
from plumbline.records import model
from plumbline.records.launch import Disturbance

WALL = 10.0
#: two packages of two cores with two hardware threads each: CPUs 0-3 and 4-7
MACHINE = machine.load("package:2 numa:1 l3:1 core:2 pu:2")


def tree(root, cpus=4, pressure=None, load="0.50", clock=None, throttles=None):
    """A host's /proc and /sys with the same counters on every CPU."""
    (root / "proc").mkdir(parents=True, exist_ok=True)
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


def snap(root, at=0.0, **facts):
    """A snapshot of a fake tree, taken ``at`` seconds."""
    return dataclasses.replace(disturbance.snapshot([0, 1, 2, 3], tree(root, **facts)), time_s=at)


def host(busy=None, steal=None, stall=0.0):
    """What the first rank of a host of eight CPUs saw: seconds by CPU, 0 where nothing is said."""
    return {
        "busy_s": {str(cpu): (busy or {}).get(cpu, 0.0) for cpu in range(8)},
        "steal_s": {str(cpu): (steal or {}).get(cpu, 0.0) for cpu in range(8)},
        "memory_stall_s": stall,
    }


def rank(number=0, cpus=(0,), cpu=0.0, delay=0.0, major=0, wall=WALL, name="n1", seen=None, others=(), bound=None):
    window = {"wall_s": wall, "cpu_s": cpu, "delay_s": delay}
    return {
        "host": name,
        "rank": number,
        "plan": {"cpus": list(cpus)},
        "threads": [{"name": "x", "affinity": list(bound or cpus), "last_cpu": 0}],
        "usage": {"major_faults": major, "user_s": cpu, "system_s": 0.0},
        "window": {**window, "host": seen} if seen else window,
        "others": list(others),
    }


QUIET = disturbance.Snapshot()


def judge(*witnesses, before=QUIET, after=QUIET, partner=()):
    found = of_documents(disturbance.assess)(before, after, list(witnesses), MACHINE, partner=partner)
    assert found["disturbed"] == bool(found["causes"])
    json.dumps(found, allow_nan=False)
    return found


def test_processes_that_the_kernel_ended_for_want_of_memory_are_counted(tmp_path):
    assert snap(tmp_path).ended is None
    (tmp_path / "proc" / "vmstat").write_text("nr_free_pages 12\noom_kill 3\n")
    assert snap(tmp_path, at=1).ended == 3


def test_a_quiet_host(tmp_path):
    before = snap(tmp_path, pressure=1000, clock=2400000, throttles=4)
    after = snap(tmp_path, at=10, pressure=2000, clock=3000000, throttles=4, load="1.50")
    ranks = [rank(cpu=9.95, seen=host({0: 10, 2: 9.96})), rank(1, cpus=[2], cpu=9.95, delay=0.01)]
    found = judge(*ranks, before=before, after=after)
    assert found["causes"] == []
    assert found["figures"] == {
        "cpu_resolution": 0.004,
        "steal_fraction": 0.0,
        "other_cpu_fraction": 0.003,
        "busy_cpus_core": 0.0,
        "busy_cpus_node": 0.0,
        "memory_pressure_fraction": 0.0,
        "cpu_pressure_fraction": 0.0001,
        "thermal_throttles": 0,
        "clock_mhz_before": 2400.0,
        "clock_mhz_after": 3000.0,
        "load_before": 0.5,
        "load": 1.5,
        "delay_fraction": 0.001,
        "major_faults": 0,
    }


def test_steal_of_planned_cpus():
    assert judge(rank(seen=host(steal={3: 5})))["causes"] == []
    found = judge(rank(cpus=[0, 1], seen=host(steal={0: 1.0})))
    assert found["figures"]["steal_fraction"] == 0.05
    assert found["causes"] == ["the hypervisor took 5.0 % of CPUs 0-1 (steal) on n1"]


def test_other_processes_on_planned_cpus():
    found = judge(rank(cpus=[0], cpu=10, seen=host({0: 10, 1: 10})), rank(1, cpus=[1], cpu=4))
    assert found["figures"]["other_cpu_fraction"] == 0.3
    assert found["causes"] == ["other processes used 30.0 % of CPUs 0-1 on n1"]


def test_a_competitor_on_one_cpu_of_many_is_seen_by_the_thread_that_waits():
    quiet = [rank(number, cpus=[number], cpu=9.5) for number in range(1, 8)]
    found = judge(rank(cpu=9.5, delay=0.5, seen=host(dict.fromkeys(range(8), 9.5) | {0: 10})), *quiet)
    assert found["causes"] == ["a thread of rank 0 on n1 waited for its CPU 5.0 % of the time"]


@pytest.mark.parametrize(("cpu", "busy", "cause"), [
    (1, 0.1, None),
    (1, 0.3, "0.03 CPUs busy on hardware threads of the planned cores, CPUs 1"),
    (2, 0.9, None),
    (2, 1.5, "0.15 CPUs busy on CPUs that share a cache or memory with the planned ones, CPUs 2-3"),
    (5, 4.0, None),
    (5, 6.0, "0.60 CPUs busy on other CPUs of the node, CPUs 4-7"),
])  # fmt: skip
def test_what_others_do_beside_the_planned_cpus_counts_by_what_is_shared(cpu, busy, cause):
    causes = judge(rank(cpu=10, seen=host({0: 10, cpu: busy})))["causes"]
    assert causes == ([f"other processes kept {cause} on n1"] if cause else [])


def test_the_other_side_of_a_duet_disturbs_nobody():
    seen = rank(cpu=10, seen=host({0: 10, 2: 10, 5: 6.0}))
    assert len(judge(seen)["causes"]) == 2
    assert judge(seen, partner=(2, 3))["causes"] == [
        "other processes kept 0.60 CPUs busy on other CPUs of the node, CPUs 4-7 on n1"
    ]


@pytest.mark.parametrize(
    ("ranks", "cause"),
    [
        ([], None),
        ([rank(cpu=10, seen=host({0: 10})), rank(1, name="n2", cpu=5, seen=host({0: 10}))],
         "other processes used 50.0 % of CPU 0 on n2"),
        ([rank(cpu=4, seen=host({0: 10}), others=[{"window": {"cpu_s": 6.0}}])], None),  # all processes of the rank
        ([rank(seen=host(stall=0.5))], "tasks waited for memory 5.0 % of the time (memory pressure) on n1"),
        ([rank(wall=0.0, seen=host({0: 5}))], None),  # a window without length
        ([rank(wall=0.05, delay=0.0029)], None),  # one turn of the kernel's scheduler
        ([rank(wall=0.05, delay=0.0031)], "a thread of rank 0 on n1 waited for its CPU 6.2 % of the time"),
        ([rank(major=20)], None),
        ([rank(major=2000)], "rank 0 on n1 waited 2000 times for pages from disk (major faults)"),
        # Open MPI binds a rank of two threads to one core; or two ranks run on one CPU: they wait for each other
        ([rank(cpus=[0, 1], bound=[0], cpu=9.9, delay=4.9)], None),
        ([rank(bound=[0], cpu=5, delay=4.9), rank(1, cpus=[1], bound=[0], cpu=4.9, delay=5)], None),
    ],
)  # fmt: skip
def test_what_counts_as_a_cause(ranks, cause):
    assert judge(*ranks)["causes"] == ([cause] if cause else [])


def with_tasks(root, busy=None, **tasks):
    """A look at a host that has been up for 1000 s: ``name=(ms of CPU time, age in s, parent)``, ``busy``: all in s."""
    tree(root)
    if busy is not None:
        (root / "proc/stat").write_text(
            f"cpu  {busy * 100:.0f} 0 0 9999 0 0\ncpu0 {busy * 100:.0f} 0 0 9999 0 0\nintr 1\n"
        )
    (root / "proc/uptime").write_text("1000.00 900.00\n")
    for pid, (name, (ms, age, parent)) in enumerate(tasks.items(), 100):
        (root / f"proc/{pid}").mkdir(parents=True)
        rest = ["S", str(parent), *["0"] * 9, str(ms // 10), "0", *["0"] * 4, "1", "0", str(100 * (1000 - age))]
        (root / f"proc/{pid}/stat").write_text(f"{pid} (a) {name}) {' '.join(rest)}\n")
        (root / f"proc/{pid}/schedstat").write_text(f"{ms * 1000000} 0 1\n")
    return dataclasses.replace(disturbance.snapshot([0], root), host="n1")


def test_who_ran_meanwhile_is_named(tmp_path):
    """The most CPU time first, kernel threads in brackets; what began and goes on is not of a launch that has ended."""
    before = with_tasks(tmp_path / "before", daemon=(100, 900, 1), idle=(70, 900, 1), kdamond=(10, 900, 2))
    daemons = {"daemon": (150, 900, 1), "idle": (70, 900, 1), "kdamond": (38, 900, 2)}
    after = with_tasks(tmp_path / "after", **daemons, newcomer=(40, 1, 1))
    assert judge(before=before, after=after)["beside"] == []
    named = ["a) daemon 50 ms", "a) newcomer 40 ms", "[a) kdamond] 28 ms"]
    found = judge(rank(major=2000), before=before, after=after)
    assert found["beside"] == named
    assert (found["figures"]["housekeeping_s"], found["figures"]["others_s"]) == (0.078, 0.04)
    stolen = judge(rank(seen=host(steal={0: 0.5})), before=before, after=after)
    assert stolen["beside"] == [*named, "the hypervisor 5.0 % (steal)"]


@pytest.mark.parametrize(("ran", "age", "waited", "flagged"), [
    (18, 900, 0.028, False),  # a kernel thread goes through the node's memory every few seconds
    (0, 900, 0.028, True),  # nobody is known who ran
    (18, 900, 0.040, True),  # it explains 18 of 40 ms, and 22 are more than 2 %
    (60, 900, 0.060, True),  # more than one turn
    (18, 1, 0.028, True),  # a competitor that takes 2 % of a CPU ever since it began
])  # fmt: skip
def test_one_turn_of_the_nodes_housekeeping_is_not_a_disturbance(tmp_path, ran, age, waited, flagged):
    before = with_tasks(tmp_path / "before", kdamond=(20, age, 2))
    after = with_tasks(tmp_path / "after", kdamond=(20 + ran, age, 2))
    found = judge(rank(wall=1.0, cpu=0.95, delay=waited, seen=host({0: 1.0})), before=before, after=after)
    assert found["disturbed"] == flagged, found
    elsewhere = judge(rank(wall=1.0, cpu=0.95, delay=waited, name="n2"), before=before, after=after)
    assert elsewhere["disturbed"], "of another node nothing is known"


@pytest.mark.parametrize(("competitor", "flagged"), [(0, False), (15, False), (25, True)])
def test_housekeeping_excuses_no_competitor(tmp_path, competitor, flagged):
    """A process that takes 2 % of the CPU is flagged, whatever the kernel's threads did meanwhile."""
    before = with_tasks(tmp_path / "before", kdamond=(20, 900, 2), other=(5000, 100, 1))
    after = with_tasks(tmp_path / "after", kdamond=(45, 900, 2), other=(5000 + competitor, 100, 1))
    assert judge(rank(wall=1.0, cpu=0.95, delay=0.035), before=before, after=after)["disturbed"] == flagged
    used = rank(wall=4.0, cpu=3.895, seen=host({0: 4.0}))
    assert judge(used, before=before, after=after)["disturbed"] is False
    many = with_tasks(tmp_path / "many", kdamond=(45, 900, 2), other=(5090, 100, 1))
    assert judge(used, before=before, after=many)["causes"] == ["other processes used 2.6 % of CPU 0 on n1"]


def test_processes_that_began_and_ended_meanwhile_are_told_by_their_time(tmp_path):
    """The time of the CPU is 0.97 s of the rank, 0.02 s of a kernel thread, 0.1 s of nobody who is still there."""
    before = with_tasks(tmp_path / "before", busy=50.0, kdamond=(20, 900, 2))
    after = with_tasks(tmp_path / "after", busy=51.09, kdamond=(40, 900, 2))
    before, after = (dataclasses.replace(one, look=dataclasses.replace(one.look, own_s=0.0)) for one in (before, after))
    found = judge(rank(wall=1.0, cpu=0.97, delay=0.03), before=before, after=after)
    assert found["beside"] == ["processes that have ended 100 ms", "[a) kdamond] 20 ms"]
    known = judge(rank(wall=1.1, cpu=1.05, delay=0.03), before=before, after=after)
    assert known["causes"] == []


def test_what_a_guest_cannot_see_is_told_once_for_all_launches():
    records = [model.convert(samples.record()) for _ in range(2)]
    records[0].host["virtual"] = "kvm"
    records[1].launches[0].disturbed = True
    assert driver._unseen(records).startswith("this is a virtual machine: what disturbed launches from outside of it")
    records[0].host["virtual"] = None
    assert driver._unseen(records) is None
    records[0].host["virtual"], records[1].launches[0].disturbed = "kvm", False
    assert driver._unseen(records) is None


def test_the_short_cause_names_who(tmp_path):
    before = with_tasks(tmp_path / "before", unzip=(0, 900, 1))
    after = with_tasks(tmp_path / "after", unzip=(657, 900, 1))
    ranks = rank(wall=1.0, cpu=0.68, delay=0.32, major=2000, seen=host({0: 1.0, 2: 0.5}))
    long = "other processes used 32.0 % of CPU 0 on n1 (and 3 more); a) unzip 657 ms"
    assert msgspec.convert(judge(ranks, before=before, after=after), Disturbance).short() == long
    waited = msgspec.convert(judge(rank(wall=1.0, delay=0.32)), Disturbance)
    assert waited.short() == "rank 0 on n1 waited for its CPU 32.0 %"
    assert msgspec.convert(judge(), Disturbance).short() == ""


def test_nothing_is_flagged_below_the_ticks_resolution():
    """One tick more on a CPU within 0.1 s is 10 % of it, and proves nothing."""
    found = judge(rank(wall=0.1, seen=host({0: 0.01, 1: 0.01, 5: 0.01}, steal={0: 0.01})))
    assert found["figures"]["cpu_resolution"] == 0.4
    assert found["figures"]["steal_fraction"] == 0.1
    assert found["causes"] == []


@pytest.mark.parametrize("bound", [[0], [0, 1]])
def test_a_thread_that_waits_for_another_process_is_disturbed(bound):
    one, two = rank(bound=bound, cpu=9.5, delay=0.5), rank(1, cpus=[1], bound=[1, *bound], cpu=9.9)
    (cause,) = judge(one, two)["causes"]
    assert cause == "a thread of rank 0 on n1 waited for its CPU 5.0 % of the time"


def test_throttling(tmp_path):
    before, after = snap(tmp_path, throttles=1), snap(tmp_path, at=1, throttles=2)
    found = judge(before=before, after=after)
    assert found["causes"] == ["a planned CPU was throttled for its temperature 4 times"]


def test_clock_and_cpu_pressure_are_figures_and_no_cause(tmp_path):
    before = snap(tmp_path, clock=3000000, pressure=0)
    found = judge(before=before, after=snap(tmp_path, at=10, clock=800000, pressure=5_000_000))
    assert found["causes"] == []
    assert found["figures"]["cpu_pressure_fraction"] == 0.5


def test_a_host_that_tells_nothing(tmp_path):
    bare = disturbance.snapshot([0, 1], tmp_path / "empty")
    found = judge(rank(seen={"busy_s": {}, "steal_s": {}}), before=bare, after=bare)
    assert found["disturbed"] is False
    assert set(found["figures"]) == {"delay_fraction", "major_faults"}


@pytest.mark.parametrize("text", ["", "\x00\xff", "some total=x"])
def test_odd_files_are_no_crash(tmp_path, text):
    (tmp_path / "proc/pressure").mkdir(parents=True)
    for name in ("loadavg", "pressure/cpu"):
        (tmp_path / "proc" / name).write_text(text, encoding="latin-1")
    seen = disturbance.snapshot([0], tmp_path)
    assert (seen.pressure_us, seen.load) == (None, None)


def test_this_host_is_readable():
    before = disturbance.snapshot([0])
    after = disturbance.snapshot([0])
    assert before.load is not None
    assert after.time_s > before.time_s
