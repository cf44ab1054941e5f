"""The test bed: its parts without root, then the cluster itself, its faults and what it leaves behind."""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from testbed import access, cgroups, command, host, image, inventory, layout, registry, schedulers, slurm
from testbed import bed as beds

HERE = Path(__file__).parent


# ---- without root


@pytest.mark.parametrize("wrong", [
    *({"nodes": 0}, {"nodes": 7}, {"flavor": "../fresh"}, {"shape": "1gbit; reboot"}, {"shape": "fast"}),
    *({"fake_topology": f"Sockets=2{text}"} for text in ("", " CoresPerSocket=8 ThreadsPerCore=1\nSlurmUser=root")),
])  # fmt: skip
def test_wrong_options_are_refused(wrong):
    with pytest.raises(host.BedError):
        layout.Settings(**wrong)  # type: ignore[arg-type]


def test_hosts_have_names_and_addresses_of_their_own():
    hosts = layout.Settings(nodes=4).hosts()
    assert [node.name for node in hosts] == ["ctl", "node1", "node2", "node3", "node4"]
    assert len({node.address for node in hosts}) == 5
    assert all(len(node.link) <= 15 for node in hosts)  # the kernel takes no longer names of links


def test_what_is_not_a_compute_node_is_named_with_those_that_are():
    with pytest.raises(host.BedError, match="node1, node2"):
        layout.Settings().node("ctl")


def test_an_image_is_named_after_what_is_in_it(monkeypatch):
    name = image.key("slurm", "bookworm")
    assert re.fullmatch(r"slurm-bookworm-[0-9a-f]{12}", name)
    assert image.key("slurm", "trixie") != name
    monkeypatch.setitem(image.FLAVORS, "slurm", image.FLAVORS["slurm"] + " zsh")
    assert image.key("slurm", "bookworm") != name


def test_the_fresh_image_has_nothing_that_onboarding_installs():
    fresh = set(image.FLAVORS["fresh"].split())
    assert not fresh & {"gcc", "make", "cmake", "git", "python3-venv", "slurm-wlm", "munge", "hwloc-nox", "numactl"}
    assert fresh < set(image.FLAVORS["slurm"].split())


@pytest.mark.parametrize(("text", "cpus"), [("0-3", [0, 1, 2, 3]), ("0", [0]), ("0,2-3\n", [0, 2, 3]), ("\n", [])])
def test_cpu_lists(text, cpus):
    assert cgroups.expand(text) == cpus


def test_only_hierarchies_that_can_be_written_to_count():
    mounts = (
        "tmpfs /sys/fs/cgroup tmpfs ro 0 0\n"
        "cgroup /sys/fs/cgroup/cpuset cgroup rw,nosuid,cpuset 0 0\n"
        "cgroup /sys/fs/cgroup/memory cgroup ro,nosuid,memory 0 0\n"
        "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,nosuid 0 0\n"
        "cgroup /elsewhere/pids cgroup rw,pids 0 0\n"
    )
    root = Path("/sys/fs/cgroup")
    assert cgroups.parse(mounts) == {"cpuset": root / "cpuset", "unified": root / "unified"}
    assert cgroups.parse("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n") == {"unified": root}


def test_only_what_package_tools_need_is_handed_to_nodes():
    handed = {"PIP_CERT": str(registry.BUNDLE), "https_proxy": "http://proxy:3128"}
    kept = {"PIP_FIND_LINKS": "/a/folder/of/this/host", "HOME": "/root", "AWS_SECRET_ACCESS_KEY": "secret"}
    assert registry.variables({**handed, **kept, "PIP_TIMEOUT": "60\nLD_PRELOAD=x"}) == handed


def test_the_inventory_is_that_of_a_site(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_BUILD", str(tmp_path / "with blank"))
    group = yaml.safe_load(inventory.site(layout.Settings(nodes=3)))["plumb_login"]
    assert group["hosts"] == {"ctl": {"ansible_host": "10.77.0.10", "ansible_user": "bench"}}
    assert group["vars"]["plumb_root"] == "/shared/plumbline"
    assert group["vars"]["plumb_keep"] == f"{tmp_path}/with blank/bed"
    (partition,) = group["vars"]["plumb_partitions"]
    assert (partition["scheduler"], partition["nodes"]) == ("squeue", 3)
    assert group["vars"]["ansible_ssh_common_args"] == f"-F '{tmp_path}/with blank/bed/ssh/config'"


def test_the_playbook_is_told_of_fake_topology_and_narrowed_nodes(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_BUILD", str(tmp_path))
    (tmp_path / "bed").mkdir()
    layout.reserve({"node2": layout.Narrowed(kept="0", reserved="1-3")})
    fake = "Sockets=2 CoresPerSocket=8 ThreadsPerCore=1"
    told = yaml.safe_load(inventory.own(layout.Settings(fake_topology=fake)))
    assert set(told["bed_compute"]["hosts"]) == {"node1", "node2"}
    assert told["all"]["vars"]["bed_slurm_fake_topology"] == fake
    assert told["all"]["vars"]["bed_slurm_reserved_cpus"] == {"node2": "1-3"}


def test_options_not_given_stay_as_they_were(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_BUILD", str(tmp_path))

    def asked(*options: str) -> layout.Settings:
        parsed: argparse.Namespace = command.parser().parse_args(["up", *options])
        return command.wanted(parsed)

    assert asked() == layout.Settings()
    (tmp_path / "bed").mkdir()
    layout.save(layout.Settings(nodes=3, shape="1gbit", route=False))
    assert asked("--nodes", "4") == layout.Settings(nodes=4, shape="1gbit", route=False)
    assert asked("--shape", "none", "--route") == layout.Settings(nodes=3)


def test_a_spoilt_state_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_BUILD", str(tmp_path))
    (tmp_path / "bed").mkdir()
    (tmp_path / "bed/settings.json").write_text('{"nodes":')
    with pytest.raises(host.BedError, match="bed down"):
        layout.load()


def test_without_root_the_bed_says_so(monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert command.main(["up"]) == 2
    assert capsys.readouterr().err == "bed: the bed needs root\n"


def test_without_cgroups_the_bed_says_so(monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(host, "os_release", lambda: {"ID": "debian"})
    monkeypatch.setattr(host.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(cgroups, "hierarchies", dict)
    assert command.main(["up"]) == 2
    assert "cgroups" in capsys.readouterr().err


def test_another_checkouts_bed_is_not_touched(tmp_path, monkeypatch):
    monkeypatch.setattr(beds, "RUN", tmp_path)
    monkeypatch.setattr(cgroups, "processes", lambda: {1})
    (tmp_path / "owner").write_text("/other/build/bed\n")
    for act in (beds.down, lambda: beds.up(layout.Settings())):
        with pytest.raises(host.BedError, match="/other/build/bed"):
            act()


def test_a_missing_program_and_a_failing_one_are_one_line_each():
    with pytest.raises(host.BedError, match="no-such-program is not installed"):
        host.run(["no-such-program"])
    with pytest.raises(host.BedError, match="ended with 3: gone wrong"):
        host.run([sys.executable, "-c", "import sys; print('gone wrong', file=sys.stderr); sys.exit(3)"])
    with pytest.raises(host.BedError, match="no end after"):
        host.run([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.2)


# ---- the cluster


def test_all_hosts_are_booted(bed):
    for node in bed.settings.hosts():
        assert bed.out(f"root@{node.name}", "systemctl is-system-running; hostname").split() == ["running", node.name]


def test_the_bed_goes_before_other_work(bed):
    weights = [top / cgroups.NAME / "cpu.shares" for top in cgroups.hierarchies().values()]
    found = [int(file.read_text()) for file in weights if file.exists()]
    if not found:
        pytest.skip("this host has no cpu hierarchy of cgroup v1")
    assert found == [cgroups.SHARES]


def test_a_job_runs_on_two_hosts(bed):
    assert sorted(bed.out("ctl", "srun --nodes=2 hostname").split()) == bed.nodes[:2]


def test_tasks_are_bound_to_cpus_of_their_own(bed):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this host has one CPU")
    seen = bed.out("ctl", "srun --exclusive -N1 -n2 --cpu-bind=cores grep Cpus_allowed_list /proc/self/status")
    assert len(set(seen.splitlines())) == 2


def test_users_have_what_they_should(bed):
    assert bed.out("bench@ctl", "sudo --non-interactive id -u; id -u").split() == ["0", "1000"]
    assert bed.ssh("guest@ctl", "sudo --non-interactive true").returncode != 0
    name = f"bed-test-{os.getpid()}"
    bed.out("bench@ctl", f"touch /shared/{name} && ssh {bed.nodes[1]} rm /shared/{name}")
    assert bed.ssh("guest@ctl", f"touch /shared/{name}").returncode != 0


def test_unknown_host_keys_are_refused(bed, tmp_path):
    empty = tmp_path / "known_hosts"
    empty.touch()
    line = ["ssh", "-F", str(bed.ssh_config), "-o", f"UserKnownHostsFile={empty}", "ctl", "true"]
    assert subprocess.run(line, capture_output=True, check=False, timeout=60).returncode == 255
    for file in bed.ssh_config.parent.iterdir():
        assert file.stat().st_mode & 0o077 == 0, file


@pytest.mark.long
def test_making_slurm_again_changes_nothing(bed):
    summary = re.findall(r"^(\w+): ok=\d+ changed=(\d+) failed=(\d+)", schedulers.make(bed.settings), re.MULTILINE)
    assert summary == [(node.name, "0", "0") for node in bed.settings.hosts()]


# ---- faults


@pytest.mark.parametrize(
    ("kind", "state"), [pytest.param("drain", "drained", marks=pytest.mark.long), ("node-down", "down")]
)
def test_a_node_out_of_work_comes_back(bed, fault, kind, state):
    fault(kind, "node2")
    assert slurm.states()["node2"].rstrip("*") == state
    assert slurm.states()["node1"] == "idle"
    assert bed.call("heal", "node2").returncode == 0
    assert slurm.states()["node2"] in slurm.READY


def test_a_node_without_power_is_silent_and_comes_back(bed, fault):
    fault("kill", "node2")
    assert cgroups.processes("node2") == set()
    assert not access.answers("node2")
    assert bed.call("status").returncode == 1
    assert bed.call("heal", "node2").returncode == 0
    assert "node2" in bed.out("ctl", "srun --nodes=1 --nodelist=node2 hostname")


@pytest.mark.long
def test_a_full_file_system_takes_no_byte_more(bed, fault):
    name = f"/shared/bed-test-{os.getpid()}"
    fault("full")
    refused = bed.ssh("ctl", f"echo some text > {name}")
    assert "No space left on device" in refused.stderr
    assert bed.call("heal").returncode == 0
    bed.out("ctl", f"echo some text > {name} && rm {name}")


@pytest.mark.long
def test_a_slow_link_is_slow_both_ways(bed, fault):
    megabytes, rate = 8, 40e6 / 8  # the link's rate in bytes per second
    line = f"head -c {megabytes}000000 /dev/zero"
    fault("slow-link", "node2", "40mbit")
    for way in (f"{line} | ssh node2 'cat >/dev/null'", f"ssh node2 '{line}' >/dev/null"):
        started = time.monotonic()
        bed.out("ctl", way)
        # a bound, not a measurement: only the burst of 256 kB may be faster
        assert time.monotonic() - started > 0.8 * (megabytes * 1e6 - 256e3) / rate


@pytest.mark.long
def test_a_competitor_works_only_while_jobs_of_its_node_do(bed, fault):
    def used(seconds: int, job: str) -> int:
        """CPU time of the competitor on CPU 0, in ticks, over some seconds or a job."""
        pid = bed.out("root@node2", "systemctl show --property=MainPID --value bed-hog-0").strip()
        line = f"cut -d' ' -f14,15 /proc/{pid}/stat"
        before = sum(map(int, bed.out("root@node2", line).split()))
        bed.out("ctl", job or f"sleep {seconds}")
        return sum(map(int, bed.out("root@node2", line).split())) - before

    fault("slow-node", "node2")
    idle = used(2, "")
    busy = used(2, "srun --exclusive --nodelist=node2 sleep 2")
    elsewhere = used(2, "srun --exclusive --nodelist=node1 sleep 2")
    assert busy > 4 * max(idle, elsewhere, 1)


@pytest.mark.long
def test_a_node_with_fewer_cpus(bed, fault):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this host has one CPU")

    def cpus() -> dict[str, int]:
        line = "srun --exclusive --nodes=2 sh -c 'echo $(hostname) $(nproc)'"
        return {name: int(count) for name, count in map(str.split, bed.out("ctl", line).splitlines())}

    whole = cpus()
    assert whole["node1"] == whole["node2"]
    fault("topology", "node2")
    assert cpus() == {"node1": whole["node1"], "node2": 1}
    assert bed.call("heal", "node2").returncode == 0
    assert cpus() == whole


@pytest.mark.long
def test_the_controllers_daemon_starts_anew(bed, fault):
    line = "systemctl show --property=MainPID --value slurmctld"
    before = bed.out("root@ctl", line)
    fault("slurmctld")
    assert bed.out("root@ctl", line) != before
    slurm.resume(bed.nodes)


def test_unknown_faults_and_nodes_are_refused(bed):
    for arguments in (["fault", "drain", "ctl"], ["fault", "kill", "node9"], ["fault", "slow-link", "node1", "1 gbit"]):
        done = bed.call(*arguments)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert bed.call("status").returncode == 0
