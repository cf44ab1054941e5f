"""Grid Engine, and hosts without a scheduler: from onboarding to a gate on the bed, and what goes wrong.

Each is raised on the hosts that are up, and onboarded into the checkout of the one before: stacks are not built again,
but facts, site and campaigns are its own. What differs from Slurm is looked at here; the rest is in test_onboarding.py.
"""

import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import parallel
import pytest
import test_health_bed as health
import yaml
from processes import succeeded
from test_onboarding import KEPT, play, plumb, records, summary, wait
from testbed import layout
from testbed.client import Bed

pytestmark = pytest.mark.e2e

NAMES = ("sge", "ssh")
#: one over two nodes, two on one
TESTS = (
    "(imb_pair.*operation=PingPong.*placement=pair:node|osu_barrier.*placement=core"
    "|pi_sum.*placement=core.*build=stack)"
)
LONG = "campaign --test 'osu_pair.*operation=bw.*placement=pair:node' -- -p mpich -S launches=60"
ROOT = "/shared/plumbline"


@dataclass(frozen=True)
class Cluster:
    """The bed with a scheduler, and what its onboarding said."""

    bed: Bed
    name: str
    onboarded: subprocess.CompletedProcess[str]

    @property
    def site(self) -> str:
        """Its site."""
        return f"bed{self.name}"

    def results(self) -> list[dict[str, Any]]:
        """All its records."""
        return records(self.bed.shared / "plumbline/results" / self.site)

    def begin(self, line: str) -> subprocess.Popen[str]:
        """A plumb command that has begun."""
        words = ["ssh", "-F", str(self.bed.ssh_config), "ctl", f"cd {ROOT} && exec .venv/bin/plumb {line}"]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def measuring(self) -> bool:
        """Whether ranks of OSU run on both nodes."""
        return all(self.bed.ssh(node, "pgrep -f share/osu/osu_").returncode == 0 for node in self.bed.nodes)

    def left(self) -> str:
        """Jobs in the queue, and processes of ours on the compute nodes."""
        queue = self.bed.out("ctl", "qstat") if self.name == "sge" else ""
        found = [self.bed.ssh(node, "pgrep -u bench -af 'plumb|osu_|mpiexec|hydra'").stdout for node in self.bed.nodes]
        # pgrep is started by a shell that has its words
        return queue + "".join(line for text in found for line in text.splitlines() if "pgrep" not in line)


@pytest.fixture(scope="module")
def borrowed(bed: Bed) -> Iterator[Bed]:
    """The bed, with what was onboarded with Slurm; it has Slurm again at the end, unless it ends with the tests."""
    bed.out("ctl", f"[ ! -d {KEPT} ] || {{ rm -rf {ROOT} && mv {KEPT} {ROOT}; }}")
    yield bed
    if os.environ.get("PLUMB_KEEP_BED") or not parallel.RAISED.exists():
        succeeded(bed.call("up", "--scheduler", "slurm"))


@pytest.fixture(scope="module", params=[NAMES[0], pytest.param(NAMES[1], marks=pytest.mark.long)])
def cluster(borrowed: Bed, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The bed with a scheduler, onboarded with one stack."""
    name, bed = request.param, borrowed
    succeeded(bed.call("up", "--scheduler", name))
    bed.out("ctl", f"rm -rf {ROOT}/site-configs/bed* {ROOT}/build/nodes {ROOT}/build/onboard")
    given = {
        "plumb_site": f"bed{name}",
        "plumb_stacks": ["mpich"],
        "plumb_smoke_options": ["-n", TESTS, "-p", "mpich", "-S", "launches=1"],
        "plumb_calibrate_sessions": 2,
        "plumb_calibrate_options": ["-n", "osu_barrier.*placement=core", "-p", "mpich", "-S", "launches=1"],
    }
    # the audit takes a job more, and calibration several campaigns
    without = ["--skip-tags", "audit,calibrate"] if request.config.option.markexpr == "not long" else []
    try:
        yield Cluster(bed, name, play(bed, "onboard", *without, **given))
    finally:
        bed.ssh("ctl", f"pkill -u bench -f {ROOT}/.venv; rm -rf {ROOT}/site-configs/bed{name}")


def test_onboarding_measures_on_one_node_and_on_two(cluster):
    done = cluster.onboarded
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
    assert summary(done)[1] == 0
    site = yaml.safe_load((layout.state() / f"site-configs/{cluster.site}/site.yaml").read_text())
    (part,) = site["partitions"]
    assert part["scheduler"] == cluster.name
    assert part["description"].startswith("2 like nodes")
    assert part.get("max_job_s") == (3600 if cluster.name == "sge" else None)
    first = [item for item in cluster.results() if not item["reasons"]]
    assert {item["variant"]["test"] for item in first} >= {"imb_pair", "osu_barrier", "pi_sum"}
    assert all(item["verified"] for item in cluster.results())
    (over,) = [item for item in first if item["variant"]["test"] == "imb_pair"]
    assert [host["hostname"] for host in over["hosts"]] == over["nodes"] == cluster.bed.nodes[:2]
    assert (layout.state() / f"results/{cluster.site}/report.html").is_file()


def test_a_gate_runs_on_a_compute_node(cluster):
    tests = "--test 'osu_barrier.*placement=core' --minutes 0.15 --output build/gate.json"
    done = plumb(cluster.bed, f"gate --measure-equal --baseline mpich --candidate mpich {tests}", 240)
    assert done.returncode in (0, 1, 2, 3), done.stdout[-3000:] + done.stderr
    assert ("job: qsub -sync y" in done.stdout) == (cluster.name == "sge")
    assert json.loads((cluster.bed.shared / "plumbline/build/gate.json").read_text())
    newest = max(cluster.results(), key=lambda item: item["time"])
    assert newest["nodes"][0] in cluster.bed.nodes, newest["nodes"]


@pytest.mark.long
def test_an_interrupt_leaves_no_job_and_no_process(cluster):
    with cluster.begin(LONG) as child:
        wait(cluster.measuring, 60)
        cluster.bed.out("ctl", "pkill -INT -u bench -f '^[^ ]*python[^ ]* [^ ]*bin/plumb campaign'")
        output = child.communicate(timeout=90)[0]
    assert child.returncode == 130, output
    wait(lambda: cluster.left() == "", 30)
    wait(lambda: max(cluster.results(), key=lambda item: item["time"])["state"] == "interrupted", 10)


@pytest.mark.parametrize("how", ["deleted", pytest.param("time limit", marks=pytest.mark.long)])
def test_a_job_that_its_scheduler_ends_is_a_failure_with_the_reason(cluster, how):
    """The warning before SIGKILL is the same, but the least time limit of a site is a minute."""
    if cluster.name == "ssh":
        pytest.skip("without a scheduler a job has no time limit but those of its launches")
    site = f"{ROOT}/site-configs/{cluster.site}/site.yaml"
    if how == "time limit":
        cluster.bed.out("ctl", f"sed -i 's/max_job_s: 3600/max_job_s: 60/' {site}")
    try:
        with cluster.begin(LONG) as child:
            if how == "deleted":
                wait(cluster.measuring, 60)
                cluster.bed.out("ctl", "qdel -u bench")
            output = child.communicate(timeout=300)[0]
    finally:
        cluster.bed.out("ctl", f"sed -i 's/max_job_s: 60/max_job_s: 3600/' {site}")
    assert child.returncode == 1, output[-3000:]
    reason = r"^failed osu_pair .* on mpich \(main\): plumb: interrupted by SIGUSR2: "
    assert re.search(reason, output, re.MULTILINE), output
    assert re.search(r"^\d+ variants?, .*, 1 invalid", output, re.MULTILINE), output
    wait(lambda: cluster.left() == "", 30)


def bad(bed: Bed, node: str) -> str:
    """What Grid Engine knows of a node from the load sensor: ``0`` or ``1``; empty as long as it knows nothing."""
    found = re.search(r"plumb_bad=(\d)", bed.out("ctl", f"qhost -F plumb_bad -h {node}"))
    return found[1] if found else ""


def configuration(bed: Bed) -> list[str]:
    """The queue, and what the nodes have of their own."""
    return [
        bed.out("root@ctl", "qconf -sq main"),
        *(bed.ssh("root@ctl", f"qconf -sconf {one}").stdout for one in bed.nodes),
    ]


@pytest.fixture
def sensors(cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    """A load sensor on each node, which is taken away at the end."""
    before = configuration(cluster.bed)
    given = {"plumb_health_queues": ["main"]}
    try:
        done = succeeded(health.play(cluster.bed, tmp_path, "sge", **given))
        health.unchanged(health.play(cluster.bed, tmp_path, "sge", **given))
        yield tmp_path
    finally:
        cluster.bed.ssh("root@node2", health.EMPTY)
        done = health.play(cluster.bed, tmp_path, "sge", **given, plumb_health_state="absent")
    assert done.returncode == 0, done.stdout + done.stderr
    assert configuration(cluster.bed) == before


@pytest.mark.long
@pytest.mark.parametrize("cluster", ["sge"], indirect=True)
def test_a_bad_node_gets_no_job_until_it_is_well(cluster, sensors):
    bed = cluster.bed
    for node in bed.nodes:
        wait(lambda node=node: bad(bed, node) == "0", 120)
    bed.out("root@node2", health.FILL)
    wait(lambda: bad(bed, "node2") == "1", 120)
    wait(lambda: bed.out("ctl", "qstat -f -q main@node2").splitlines()[2].split()[-1] == "a", 60)
    assert bad(bed, "node1") == "0"
    line = "qsub -sync y -b y -j y -o /dev/null -l hostname=node2 /bin/true"
    with subprocess.Popen(["ssh", "-F", str(bed.ssh_config), "ctl", line]) as job:
        wait(lambda: " qw " in bed.out("ctl", "qstat"), 30)
        time.sleep(10)  # the scheduler looks every two seconds
        assert " qw " in bed.out("ctl", "qstat")
        bed.out("root@node2", health.EMPTY)
        assert job.wait(120) == 0
    assert bad(bed, "node2") == "0"


@pytest.mark.parametrize(("access", "what"), [
    pytest.param(["-q nowhere"], "unknown queue", marks=pytest.mark.long),
    (["-q main", "-pe nowhere 2"], 'parallel environment "nowhere" does not exist'),
    pytest.param(["-q main", "-l h_rt=2:00:00"], "no suitable queues", marks=pytest.mark.long),
    pytest.param(["-q main", "-pe mpi 9999"], "no suitable queues", marks=pytest.mark.long),
])  # fmt: skip
def test_what_grid_engine_cannot_do_is_one_line_and_leaves_no_job(cluster, access, what):
    if cluster.name != "sge":
        pytest.skip("of Grid Engine")
    options = " ".join(f"--access={shlex.quote(option)}" for option in access)
    done = plumb(cluster.bed, f"nodes facts --scheduler sge {options} --node node1 /shared/wrong")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stdout + done.stderr
    assert what in done.stderr
    assert cluster.left() == ""


def test_a_host_whose_key_is_not_known_is_one_line(cluster):
    if cluster.name != "ssh":
        pytest.skip("of ssh")
    cluster.bed.out("root@ctl", "echo '10.77.0.11 stranger' >>/etc/hosts")
    done = plumb(cluster.bed, "nodes states --scheduler ssh --hosts node1,stranger")
    assert re.search(r"^stranger +unreachable +no +Host key verification failed", done.stdout, re.MULTILINE), (
        done.stdout
    )
    assert done.stdout.splitlines()[-1] == "1 of 2 nodes can be used"


def test_offboarding_leaves_nothing(cluster):
    if cluster.name != NAMES[-1]:
        pytest.skip("the next scheduler uses the same checkout")
    succeeded(play(cluster.bed, "offboard", confirm=cluster.site, plumb_site=cluster.site))
    assert not (cluster.bed.shared / "plumbline").exists()
