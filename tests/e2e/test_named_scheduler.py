"""A scheduler that this machine has: from the facts of two nodes to a report, and what goes wrong there.

For schedulers that are not on the test bed. Run it on a login host, in a checkout that the nodes see at the same path:

``PLUMB_TEST_SCHEDULER``  its name, such as ``pbs``
``PLUMB_TEST_HOSTS``      two of its nodes, ``n1,n2``; ssh reaches them without a password, to look for what is left
``PLUMB_TEST_ACCESS``     an option of every job, such as ``-q workq`` (default: none)
``PLUMB_TEST_SITE``       further options of ``plumb site init``, such as ``--env UCX_TLS=tcp,self``
``PLUMB_TEST_FAULT``      a command that takes the network from a node (``COMMAND cut n2``) and gives it back (``heal``)
"""

import json
import os
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import own_site
import processes
import pytest
import stored
import yaml
from processes import ended, succeeded

from plumbline import schedulers
from plumbline.base import paths
from plumbline.base.errors import PlumbError

pytestmark = pytest.mark.e2e

PLUMB = str(Path(sys.executable).parent / "plumb")
#: one over two nodes, two on one
TESTS = "osu_pair.*operation=bw.*placement=pair:node|osu_barrier.*placement=core|pi_sum.*placement=core.*build=stack"
#: every core of both nodes, ranks in the order of the nodes and dealt in turn
FULL = "osu_nodes.*operation=bcast.*placement=(core|roundrobin).*node_count=2"
LONG = ["campaign", "--", "-n", "osu_pair.*operation=bw.*placement=pair:node", "-p", "mpich", "-S", "launches=200"]
LONG += ["-S", "launch_time_limit=300"]  # its job ends before a launch does
#: what lists the jobs that have not ended, and nothing else
QUEUES = {"pbs": ["qstat"], "flux": ["flux", "jobs", "-n"]}
#: options that cannot be fulfilled, and the scheduler's words for it
REFUSED = {
    "pbs": [("-q nowhere", "Unknown queue"), ("-l nonsense=1", "Unknown resource")],
    "flux": [("--queue=nowhere", "nowhere"), ("--nonsense=1", "nonsense")],
}


@dataclass(frozen=True)
class Cluster:
    """A site of this scheduler in folders of its own."""

    name: str
    hosts: list[str]
    access: list[str]
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Where its records and its site are."""
        own = {f"PLUMB_{name.upper()}": str(self.folder / name) for name in ("results", "sites")}
        return {**os.environ, **own}

    def plumb(self, *words: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        """A plumb command."""
        return ended([PLUMB, *words], env=self.environment, timeout=timeout)

    def options(self, *more: str) -> list[str]:
        """The access options, for the commands that are given the scheduler by name."""
        return [f"--scheduler={self.name}", *(f"--access={option}" for option in (*self.access, *more))]

    def records(self) -> list[dict[str, Any]]:
        """All of them."""
        return [item for file in sorted((self.folder / "results").rglob("*.jsonl")) for item in stored.read_file(file)]

    def left(self) -> list[str]:
        """Jobs in the queue, and processes of ours on the nodes."""
        queue = subprocess.run(QUEUES[self.name], capture_output=True, text=True, check=True).stdout.splitlines()
        look = f"pgrep -af {shlex.quote(f'{self.folder}|share/osu/osu_')}"
        for host in self.hosts:
            words = ["bash", "-c", look] if host == socket.gethostname() else ["ssh", "-oBatchMode=yes", host, look]
            queue += [
                f"{host}: {line}"
                for line in ended(words).stdout.splitlines()
                if "pgrep" not in line and "pytest" not in line
            ]
        return queue

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """A plumb command in a process of its own."""
        return subprocess.Popen(
            [PLUMB, *words], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """The scheduler that the variables name, with folders that its nodes see."""
    name = os.environ.get("PLUMB_TEST_SCHEDULER", "")
    if name not in QUEUES:
        pytest.skip(f"not run: PLUMB_TEST_SCHEDULER names none of {', '.join(QUEUES)}")
    hosts = os.environ.get("PLUMB_TEST_HOSTS", "").split(",")
    if len(set(hosts)) != 2:
        pytest.skip("not run: PLUMB_TEST_HOSTS names no two nodes")
    access = os.environ.get("PLUMB_TEST_ACCESS", "")
    try:
        known = {node.name for node in schedulers.nodes(schedulers.named(name), None) if node.usable}
    except PlumbError as error:
        pytest.skip(f"not run: {name} does not answer: {error}")
    if not known.issuperset(hosts):
        pytest.skip(f"not run: of {', '.join(hosts)} {name} offers {', '.join(known & set(hosts)) or 'none'}")
    folder = paths.build() / f"test-scheduler-{secrets.token_hex(4)}"
    (folder / "sites").mkdir(parents=True)
    shutil.copy(paths.root() / "site-configs" / "settings.py", folder / "sites")
    try:
        yield Cluster(name, hosts, [access] if access else [], folder)
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def onboarded(cluster: Cluster) -> Cluster:
    """With a site of the facts of both nodes, which one job brought."""
    facts = cluster.folder / "facts"
    nodes = [f"--node={host}" for host in cluster.hosts]
    done = succeeded(cluster.plumb("nodes", "facts", *cluster.options(), *nodes, str(facts)))
    assert "2 of 2 nodes answered" in done.stdout
    words = [f"--site=other{cluster.name}", "--partition=main", *cluster.options(), "--nodes=2", f"--facts={facts}"]
    done = succeeded(cluster.plumb("site", "init", *words, *shlex.split(os.environ.get("PLUMB_TEST_SITE", ""))))
    return cluster


def test_the_nodes_are_named_with_their_states(cluster):
    done = succeeded(cluster.plumb("nodes", "states", *cluster.options()))
    for host in cluster.hosts:
        assert re.search(rf"^{host} +\S+ +yes", done.stdout, re.MULTILINE), done.stdout


def test_a_campaign_measures_on_one_node_and_on_two(onboarded):
    succeeded(onboarded.plumb("campaign", "--", "-n", TESTS, "-S", "launches=1", "-S", "launch_time_limit=300"))
    found = onboarded.records()
    assert {item["variant"]["test"] for item in found} == {"osu_pair", "osu_barrier", "pi_sum"}
    assert all(item["verified"] for item in found)
    over = [item for item in found if item["variant"]["test"] == "osu_pair"]
    site = yaml.safe_load((onboarded.folder / f"sites/other{onboarded.name}/site.yaml").read_text())
    assert {item["stack"]["name"] for item in over} == set(site["partitions"][0]["stacks"])
    for item in over:
        assert sorted(item["nodes"]) == sorted(onboarded.hosts)
        assert [host["hostname"] for host in item["hosts"]] == item["nodes"]
    assert {node for item in found for node in item["nodes"]} <= set(onboarded.hosts)


def hosts_of_ranks(record: dict[str, Any]) -> list[str]:
    """Where each rank of its only launch was, by the witness."""
    ranks = record["launches"][0]["ranks"]
    return [rank["host"] for rank in sorted(ranks, key=lambda rank: rank["rank"])]


def test_every_core_of_two_nodes_has_a_rank(onboarded):
    before = len(onboarded.records())
    words = ["-n", FULL, "-p", "openmpi", "-S", "launches=1", "-S", "launch_time_limit=300"]
    succeeded(onboarded.plumb("campaign", "--profile", "full", "--", *words, timeout=900))
    both = {item["variant"]["params"]["placement"]: item for item in onboarded.records()[before:]}
    assert both.keys() == {"core", "roundrobin"}
    for item in both.values():
        assert item["verified"], item["reasons"]
        assert sorted(item["nodes"]) == sorted(onboarded.hosts)
    first, second = (hosts_of_ranks(both[name]) for name in ("core", "roundrobin"))
    assert first == sorted(first, key=first.index)
    assert second == [second[rank % 2] for rank in range(len(second))]
    assert sorted(first) == sorted(second)


def test_a_gate_submits_itself(onboarded):
    work = onboarded.folder / "gate"
    words = ["gate", "--measure-equal", "--baseline=mpich", "--candidate=mpich"]
    words.append("--test=pi_sum.*placement=core.*build=stack")
    done = onboarded.plumb(*words, "--minutes=0.3", f"--work={work}", f"--json={work}.json")
    assert done.returncode in (0, 1, 2, 3), done.stdout + done.stderr
    assert "job: " in done.stdout
    assert json.loads(Path(f"{work}.json").read_text()), done.stdout
    newest = max(onboarded.records(), key=lambda item: item["time"])
    assert newest["nodes"][0] in onboarded.hosts


def test_ceilings_are_measured_by_a_job(onboarded):
    succeeded(onboarded.plumb("site", "measure", "--partition=main", timeout=900))
    (file,) = (onboarded.folder / "sites").rglob("ceilings.yaml")
    assert yaml.safe_load(file.read_text(encoding="utf-8"))


def test_stacks_are_audited_by_a_job_over_both_nodes(onboarded):
    done = onboarded.plumb("stack", "check", "--run", "--partition=main", "--nodes=2", "--json")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert {line["between"] for line in lines} == {"ranks of a node", "nodes"}, done.stdout + done.stderr
    (network,) = {line["seen"] for line in lines if (line["stack"], line["name"]) == ("openmpi", "TCP")}
    assert "by TCP" in network


def test_its_records_become_references_and_a_report(onboarded):
    for _ in range(2):
        succeeded(onboarded.plumb("campaign", "--", "-n", "pi_sum.*placement=core.*build=stack", "-S", "launches=1"))
    done = onboarded.plumb("calibrate", "--test=pi_sum", "--min-sessions=2")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert re.search(r"^(written|refused): ", done.stdout, re.MULTILINE), done.stdout
    page = onboarded.folder / "report.html"
    done = succeeded(onboarded.plumb("report", f"--output={page}"))
    assert page.stat().st_size > 1000


def test_an_interrupt_leaves_no_job_and_no_process(onboarded):
    before = len(onboarded.records())
    with onboarded.begin(*LONG) as child:
        processes.wait_until(lambda: sum("osu_bw" in line for line in onboarded.left()) >= 2, onboarded.left, of=child)
        child.send_signal(signal.SIGINT)
        output = child.communicate(timeout=300)[0]
    assert child.returncode == 130, output
    processes.wait_until(lambda: onboarded.left() == [], onboarded.left)
    assert [item["state"] for item in onboarded.records()[before:]] == ["interrupted"]


def test_a_job_that_its_scheduler_ends_is_a_failure_with_the_reason(onboarded):
    file = onboarded.folder / f"sites/other{onboarded.name}/site.yaml"
    text = file.read_text()
    own_site.change(onboarded.folder / "sites", site=f"other{onboarded.name}", max_job_s=60)
    try:
        done = onboarded.plumb(*LONG)
    finally:
        file.write_text(text)
    assert done.returncode == 1, done.stdout + done.stderr
    # a scheduler that asks first has the launches recorded that had finished
    why = "plumb: interrupted by SIGTERM|the job ended before its launches"
    assert re.search(rf"^failed osu_pair .* on mpich \(main\): ({why})", done.stdout, re.MULTILINE), done.stdout
    processes.wait_until(lambda: onboarded.left() == [], onboarded.left)


def test_a_node_that_is_cut_off_fails_its_case_and_leaves_no_job(onboarded):
    fault = os.environ.get("PLUMB_TEST_FAULT")
    if not fault:
        pytest.skip("not run: PLUMB_TEST_FAULT names no command that takes the network from a node")
    less = {"launches=200": "launches=3", "launch_time_limit=300": "launch_time_limit=40"}
    words = [less.get(word, word) for word in LONG]
    with onboarded.begin(*words) as child:
        processes.wait_until(lambda: sum("osu_bw" in line for line in onboarded.left()) >= 2, onboarded.left, of=child)
        subprocess.run([fault, "cut", onboarded.hosts[1]], check=True)
        try:
            output = child.communicate(timeout=600)[0]
        finally:
            subprocess.run([fault, "heal", onboarded.hosts[1]], check=True)
    assert child.returncode == 1, output
    assert re.search(r"^failed osu_pair .* on mpich \(main\): \S", output, re.MULTILINE), output
    queue = QUEUES[onboarded.name]
    processes.wait_until(
        lambda: subprocess.run(queue, capture_output=True, check=True).stdout.strip() == b"", onboarded.left
    )


def test_what_cannot_be_fulfilled_is_one_line_and_leaves_no_job(cluster):
    for option, words in REFUSED[cluster.name]:
        folder = cluster.folder / "wrong"
        done = cluster.plumb("nodes", "facts", *cluster.options(option), "--nodes=1", str(folder), timeout=300)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stdout + done.stderr
        assert words in done.stderr
    assert cluster.left() == []


def test_more_nodes_than_there_are_is_one_line_and_leaves_no_job(cluster):
    """What waits for what cannot come is ended at the limit."""
    words = ["--nodes=999", str(cluster.folder / "many"), "--time-limit=10"]
    done = cluster.plumb("nodes", "facts", *cluster.options(), *words, timeout=300)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stdout + done.stderr
    processes.wait_until(lambda: cluster.left() == [], cluster.left)
