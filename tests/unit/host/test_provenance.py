"""Facts of a host are read, or absent; never guessed."""

from pathlib import Path

import pytest
from node_facts import node

from plumbline.base import schemas
from plumbline.commands import sites
from plumbline.host import collector, provenance
from plumbline.host.collector import Reader
from plumbline.site.nodes.findings import examine, examine_node
from plumbline.site.nodes.model import Node


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def test_an_empty_machine_has_no_facts(tmp_path):
    host = provenance.collect(tmp_path)
    known = {"hostname", "machine", "kernel", "cgroup", "memlock_bytes", "stack_bytes", "energy"}
    assert {key for key, value in host.items() if value is not None} - known == set()


def test_knobs_are_read(tmp_path):
    tree(
        tmp_path,
        {
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
            "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
            "sys/devices/system/cpu/intel_pstate/no_turbo": "0\n",
            "sys/devices/system/cpu/smt/active": "1\n",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
            "proc/sys/kernel/numa_balancing": "1\n",
            "proc/loadavg": "3.50 1.00 0.50 1/100 1234\n",
            "proc/cpuinfo": "processor\t: 0\nmodel name\t: A CPU\nmicrocode\t: 0x42\nflags\t: fpu hypervisor\n",
            "proc/meminfo": "MemTotal:  1000 kB\n",
        },
    )
    host = provenance.collect(tmp_path)
    assert host["governor"] == "performance, powersave"
    assert (host["turbo"], host["smt"], host["numa_balancing"]) == (True, True, True)
    assert host["thp"] == "madvise"
    assert host["load"] == [3.5, 1.0, 0.5]
    assert (host["cpu"], host["microcode"], host["virtual"]) == ("A CPU", "0x42", "yes")
    assert host["memory_bytes"] == 1024000


OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build  (root@host)  Thu Mar 27\n"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 2023\nGCC version:  gcc 12\n"


@pytest.mark.parametrize(("files", "driver"), [
    ({"sys/module/nvidia/version": "580.159.04\n", "proc/driver/nvidia/version": OPEN}, "nvidia 580.159.04"),
    ({"sys/module/amdgpu/version": "6.10.5\n"}, "amdgpu 6.10.5"),
    ({"proc/driver/nvidia/version": OPEN}, "nvidia 570.124.06"),
    ({"proc/driver/nvidia/version": CLOSED}, "nvidia 535.129.03"),
    ({"proc/driver/nvidia/version": "something else\n"}, None),
])  # fmt: skip
def test_the_driver_of_gpus_begins_a_series(tmp_path, files, driver):
    without = provenance.collect(tree(tmp_path / "without", {"proc/loadavg": "0 0 0 1/1 1\n"}))
    host = provenance.collect(tree(tmp_path / "with", {**files, "proc/loadavg": "0 0 0 1/1 1\n"}))
    assert host.get("gpu_driver") == driver == collector.collect("n1", tmp_path, root=tmp_path / "with")["gpu_driver"]
    assert "gpu_driver" not in without
    assert provenance.fingerprint({"kernel": "6.1"}) == "ee09e16c", "hosts without GPUs keep their series"
    assert (provenance.fingerprint(host) != provenance.fingerprint(without)) is (driver is not None)


def test_a_record_has_the_facts_of_the_document_of_its_host(tmp_path):
    files = {
        "proc/loadavg": "3.50 1.00 0.50 1/100 1234\n",
        "proc/meminfo": "MemTotal:  1000 kB\n",
        "proc/sys/kernel/perf_event_paranoid": "2\n",
        "sys/devices/system/cpu/online": "0-3\n",
    }
    document = collector.collect("n1", tmp_path, root=tree(tmp_path, files))
    host = provenance.collect(tmp_path)
    assert host.items() >= provenance.recorded(document).items()
    assert (host["load"], host["memory_bytes"], host["cpus_online"]) == ([3.5, 1.0, 0.5], 1024000, "0-3")
    assert document["knobs"]["perf_event_paranoid"] == 2
    assert "perf_event_paranoid" not in host


@pytest.mark.parametrize(("files", "quota", "limit"), [
    ({"proc/self/cgroup": "0::/job\n", "sys/fs/cgroup/job/cpu.max": "150000 100000\n"}, 1.5, None),
    ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "1000000\n"}, None, 1000000),
    (
        {
            "proc/self/cgroup": "1:cpu:/job\n",
            "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "50000\n",
            "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
        },
        0.5,
        None,
    ),
    ({"proc/self/cgroup": "0::/job\n", "sys/fs/cgroup/job/cpu.max": "max 100000\n"}, None, None),
])  # fmt: skip
def test_cgroup_limits_of_both_versions(tmp_path, files, quota, limit):
    found = Reader(tree(tmp_path, files)).cgroup()
    assert (found["cpu_quota"], found["memory_limit_bytes"]) == (quota, limit)


GOOD = {
    "governor": "performance", "turbo": False, "thp": "always", "numa_balancing": False, "smt": False,
    "load": [0.0, 0.0, 0.0],
    "memlock_bytes": None, "shm_bytes": 1 << 40, "virtual": None, "clocksource": "tsc", "memory_bytes": 1 << 40,
    "cgroup": {"cpu_quota": None, "memory_limit_bytes": None},
}  # fmt: skip


def findings(**changes):
    found = examine({**GOOD, **changes}, which=lambda name: f"/usr/bin/{name}")
    return {finding.name: finding for finding in found}


def test_a_good_host_has_nothing_to_mend():
    own = {"tool plumb-bind", "tool libplumbwitness.so"}
    assert [name for name, finding in findings().items() if finding.bad and name not in own] == []


@pytest.mark.parametrize(("change", "name"), [
    ({"governor": "powersave"}, "frequency governor"),
    ({"turbo": True}, "turbo"),
    ({"thp": "never"}, "transparent huge pages"),
    ({"numa_balancing": True}, "automatic NUMA balancing"),
    ({"load": [500.0, 0.0, 0.0]}, "load"),
    ({"memlock_bytes": 8 << 20}, "locked memory"),
    ({"shm_bytes": 64 << 10}, "shared memory (/dev/shm)"),
    ({"clocksource": "hpet"}, "clock source"),
    ({"cgroup": {"cpu_quota": 1.5, "memory_limit_bytes": None}}, "CPU quota of the cgroup"),
    ({"cgroup": {"cpu_quota": None, "memory_limit_bytes": 1 << 30}}, "memory limit of the cgroup"),
])  # fmt: skip
def test_every_fault_is_found_with_effect_and_cure(change, name):
    finding = findings(**change)[name]
    assert finding.bad is True
    assert finding.effect
    assert finding.cure


def test_a_virtual_machine_is_a_fact_what_cannot_be_read_is_said_and_missing_tools_are_named():
    finding = findings(virtual="KVM")["virtual machine"]
    assert (finding.bad, finding.seen) == (False, "KVM: compare figures only with those of this machine")
    assert findings(governor=None)["frequency governor"].bad is None
    assert {item.name: item.bad for item in examine(GOOD, which=lambda name: None)}["tool gcc"] is True


def test_the_report_is_one_screen_with_the_count_last():
    lines = sites.report(examine(GOOD, which=lambda name: None)).splitlines()
    assert len(lines) <= 24
    assert "to fix" in lines[-1]


def test_little_shared_memory_of_a_node_is_found_and_facts_of_earlier_versions_do_not_tell():
    def shared(**knobs):
        facts = node("a1", knobs=knobs)
        if not knobs:
            del facts["knobs"]["shm_bytes"]
        found = examine_node(schemas.convert("node", facts, Node, "here"))
        return next(item for item in found if item.name == "shared memory (/dev/shm)").bad

    assert [shared(shm_bytes=64 << 10), shared(shm_bytes=1 << 40), shared()] == [True, False, None]


def test_the_collector_tells_the_size_of_shared_memory():
    assert Reader().size("dev/shm") == provenance.collect()["shm_bytes"] > 0
