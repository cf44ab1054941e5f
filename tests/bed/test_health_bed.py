"""The health check on the bed, started by Slurm itself: a full /dev/shm, somebody else's note, jobs, the epilog.

All nodes share the CPUs of this machine, so the class has no limit that a figure could miss.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from processes import ended, succeeded
from testbed import inventory
from testbed.client import Bed

from plumbline.base import paths

pytestmark = pytest.mark.e2e

FOLDER = "/usr/local/lib/plumbline"
CONF = "/etc/slurm/slurm.conf"
LINES = (
    *("plumb-class 1", "name bed", "made 2026-11-25", "rate 1e-05", "tolerance 0.05", "cpu 0 0"),
    *("member node1", "member node2", f"jobs {FOLDER}/health.sh SCHEDULER jobs", "room /dev/shm 1e6"),
    *("budget 10 1", "limit 10 fma 1e-9 1e-9 1e-9 0.1", "end"),
)
#: a small file system over the node's own, which keeps its size for the tests that follow
FILL = "mount -t tmpfs -o size=2m full /dev/shm && head -c 3000000 /dev/zero >/dev/shm/left; test -s /dev/shm/left"
EMPTY = "! grep -q '^full /dev/shm ' /proc/mounts || umount /dev/shm"


def wait(true: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(1)


def run_playbook(
    name: str, hosts: Iterable[str], folder: Path, variables: Mapping[str, object]
) -> subprocess.CompletedProcess[str]:
    """The playbook ``name`` as root on ``hosts`` of the bed; its inventory is written to ``folder``."""
    nodes = {host: {"ansible_user": "root"} for host in hosts}
    file = folder / "hosts.yml"
    file.write_text(yaml.safe_dump({"plumb_nodes": {"hosts": nodes, "vars": inventory.connection()}}))
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", str(file), f"playbooks/{name}"]
    environment = {**os.environ, "ANSIBLE_CONFIG": str(paths.root() / "ansible.cfg"), "ANSIBLE_FORCE_COLOR": "0"}
    return ended([*command, "-e", json.dumps(variables)], cwd=paths.root(), env=environment)


def play(bed: Bed, folder: Path, scheduler: str = "slurm", **given: object) -> subprocess.CompletedProcess[str]:
    """The playbook health.yml on all hosts of the bed that need it."""
    (folder / "node.class").write_text("\n".join(LINES).replace("SCHEDULER", scheduler) + "\n")
    own = {
        "plumb_health_scheduler": scheduler, "plumb_health_class": str(folder / "node.class"),
        "plumb_health_interval": 5, "plumb_health_every": 0, "plumb_health_seconds": 10,
        "plumb_health_runner": str(paths.checker()), **given,
    }  # fmt: skip
    return run_playbook("health.yml", (*(("ctl",) if scheduler == "slurm" else ()), *bed.nodes), folder, own)


def unchanged(done: subprocess.CompletedProcess[str]) -> None:
    """Assert that a play went through and changed nothing."""
    assert done.returncode == 0, done.stdout + done.stderr
    assert " changed=0 " in done.stdout.splitlines()[-2], done.stdout


def state(bed: Bed, node: str) -> str:
    """The node's state and reason in Slurm."""
    return bed.out("ctl", f"sinfo -h -N -n {node} -o '%T|%E'").splitlines()[0]


def checks(bed: Bed, node: str) -> str:
    """When the last check of a node ended."""
    return bed.ssh(f"root@{node}", "stat -c %y /run/plumb-check/last").stdout


def another(bed: Bed) -> None:
    """Wait until Slurm has had every node checked two times more."""
    for _ in range(2):
        before = {node: checks(bed, node) for node in bed.nodes}
        wait(lambda before=before: all(checks(bed, node) not in ("", before[node]) for node in before))  # type: ignore[misc]


@pytest.fixture(scope="module")
def healthy(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Bed, Path]]:
    """The bed with health checks every five seconds, which are taken away at the end."""
    folder = tmp_path_factory.mktemp("health")
    before = bed.out("root@ctl", f"cat {CONF}")
    try:
        done = succeeded(play(bed, folder))
        yield bed, folder
    finally:
        for node in bed.nodes:
            bed.ssh(f"root@{node}", EMPTY)
        done = play(bed, folder, plumb_health_state="absent")
        for node in bed.nodes:
            bed.ssh("root@ctl", f"scontrol update nodename={node} state=resume")
    assert done.returncode == 0, done.stdout + done.stderr
    assert bed.out("root@ctl", f"cat {CONF}") == before
    assert bed.out("root@node1", f"ls -d {FOLDER} /run/plumb-check 2>&1 || true").count("No such file") == 2


@pytest.mark.long
def test_a_second_play_changes_nothing(healthy):
    unchanged(play(*healthy))


def test_slurm_starts_it_and_healthy_nodes_stay(healthy):
    bed, _ = healthy
    another(bed)
    for node in bed.nodes:
        assert state(bed, node).startswith("idle"), state(bed, node)


def test_a_full_shared_memory_is_drained_and_taken_back(healthy):
    bed, _ = healthy
    bed.out("root@node2", FILL)
    wait(lambda: state(bed, "node2").startswith("drained|plumb-check: /dev/shm has "))
    assert state(bed, "node1").startswith("idle")
    bed.out("root@node2", EMPTY)
    wait(lambda: state(bed, "node2").startswith("idle"))


@pytest.mark.long
def test_a_note_of_somebody_else_stays(healthy):
    """HealthCheckNodeState=IDLE calls no drained node: this calls it, as an epilog would."""
    bed, _ = healthy
    bed.out("root@ctl", "scontrol update nodename=node2 state=drain reason='DIMM is replaced'")
    for line in (FILL, EMPTY):
        bed.out("root@node2", line)
        for _ in range(2):
            bed.out("root@node2", f"SLURMD_NODENAME=node2 {FOLDER}/check")
        assert "DIMM is replaced" in state(bed, "node2")
    bed.out("root@ctl", "scontrol update nodename=node2 state=resume")


@pytest.mark.long
def test_beside_a_job_nothing_is_measured(healthy):
    bed, _ = healthy
    line = f"{FOLDER}/plumb-check --class {FOLDER}/node.class --seconds 10 --node node1 --form json"
    with subprocess.Popen(["ssh", "-F", str(bed.ssh_config), "ctl", "srun -w node1 sleep 60"]) as job:
        wait(lambda: "RUNNING" in bed.out("ctl", "squeue -h -w node1 -o %T"))
        found = json.loads(bed.out("root@node1", line))
        told = json.loads(bed.out("root@node1", f"{line} --beside-jobs"))
        bed.out("ctl", "scancel -w node1 -u bench")
        job.wait(60)
    assert (found["state"], found["rounds"]) == ("busy", 0)
    assert told["rounds"] == 1


@pytest.mark.long
def test_as_an_epilog(healthy):
    """The job that ends is not a job any more."""
    bed, _ = healthy
    note = "/run/epilog-said"
    script = f"#!/bin/sh\\n{FOLDER}/plumb-check --class {FOLDER}/node.class --seconds 10 --form json >{note}\\n"
    try:
        for host in ("ctl", *bed.nodes):
            bed.out(f"root@{host}", f"printf '{script}' >/etc/slurm/epilog; chmod 755 /etc/slurm/epilog")
            bed.out(f"root@{host}", f"echo Epilog=/etc/slurm/epilog >>{CONF}")
        bed.out("root@ctl", "scontrol reconfigure")
        bed.out("ctl", "srun -w node1 true")
        wait(lambda: bed.ssh("root@node1", f"test -s {note}").returncode == 0)
        assert json.loads(bed.out("root@node1", f"cat {note}"))["rounds"] == 1
    finally:
        for host in ("ctl", *bed.nodes):
            bed.ssh(f"root@{host}", f"sed -i /^Epilog=/d {CONF}; rm -f /etc/slurm/epilog {note}")
        bed.ssh("root@ctl", "scontrol reconfigure")


@pytest.mark.long
def test_the_sites_own_health_check_stays(bed, tmp_path):
    try:
        bed.out("root@node1", f"echo HealthCheckProgram=/usr/sbin/nhc >>{CONF}")
        done = play(bed, tmp_path)
        assert done.returncode != 0
        assert "slurm.conf names another health check, which stays: " in done.stdout
        assert bed.out("root@node1", f"tail -n 1 {CONF}") == "HealthCheckProgram=/usr/sbin/nhc\n"
    finally:
        bed.ssh("root@node1", f"sed -i /usr.sbin.nhc/d {CONF}")
        play(bed, tmp_path, plumb_health_state="absent")


@pytest.mark.long
def test_flux_gets_the_check_among_its_scripts_after_jobs(bed, tmp_path):
    """``flux`` here answers as Flux 0.88 does; what Flux made of the script was seen by hand (docs/health.md)."""
    folder, program = "/etc/flux/system", "/usr/local/bin/flux"
    script = f"{folder}/housekeeping.d/50-plumb-check"
    answers = '#!/bin/sh\\n[ "$*" = "config get job-manager.housekeeping" ] && echo {}\\n'
    own = f"mkdir -p {folder} && printf '#!/bin/sh\\n' >{folder}/housekeeping && chmod 755 {folder}/housekeeping"
    try:
        for node in bed.nodes:
            bed.out(f"root@{node}", f"printf '{answers}' >{program} && chmod 755 {program}")
        bed.out("root@node1", own)
        done = play(bed, tmp_path, "flux")
        assert done.returncode != 0
        assert "housekeeping is there, so Flux does not run what is in housekeeping.d" in done.stdout
        assert bed.ssh("root@node1", f"ls -d {FOLDER}").returncode != 0, "nothing is put where Flux would not run it"
        bed.out("root@node1", f"rm {folder}/housekeeping")
        done = succeeded(play(bed, tmp_path, "flux"))
        assert bed.out("root@node1", f"readlink {script}") == f"{FOLDER}/check\n"
    finally:
        done = play(bed, tmp_path, "flux", plumb_health_state="absent")
        left = [bed.ssh(f"root@{node}", f"rm -f {program}; ls -d {script} {FOLDER}").stdout for node in bed.nodes]
        for node in bed.nodes:
            bed.ssh(f"root@{node}", f"rm -rf {folder}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert left == ["", ""]
