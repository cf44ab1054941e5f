"""The job of a screen on the bed: a result of each node by the real Slurm, and nothing beside a job.

``plumb`` itself runs here: what it would start on a login host is started on ctl, with its files in /shared.
"""

import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from test_health_bed import LINES, wait
from testbed.client import Bed

from plumbline import schedulers
from plumbline.base import paths
from plumbline.base.schemas.site import Partition, Site
from plumbline.extras.nodes import checks, model

pytestmark = pytest.mark.e2e

SHARED = Path("/shared/screen")


@dataclass(frozen=True)
class Login:
    """A login host: the bed, and a request for its nodes with the paths that it has there."""

    bed: Bed
    request: checks.CheckRequest

    def words(self, nodes: Sequence[str]) -> str:
        """What starts the checks of ``nodes``."""
        job = schedulers.Job("plumb-check", len(nodes), SHARED / "job.log", (), nodes, None, 2)
        command = checks.screen_words(self.request, SHARED / "out", None)
        (words,) = schedulers.named("slurm").on_every_node(job, command)
        return shlex.join(words)

    def results(self) -> set[str]:
        """The nodes that left a result."""
        return {file.stem for file in (self.bed.shared / "screen/out").glob("*.json")}


@pytest.fixture
def login(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> Iterator[Login]:
    """The shared folder with plumb-check, the scripts and a class without limits that could be missed."""
    here, built = bed.shared / "screen", paths.checker()
    part = Partition(name="main", scheduler="slurm", topology="x", stacks=[])
    found = Site(schema=1, name="bed", description="", hostnames=["ctl"], partitions=[part])
    request = checks.CheckRequest(found, part, [], 1, 10, 60)
    for name in ("sites", "tools", "build"):
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(SHARED / name))
    runner, made = (here / file.relative_to(SHARED) for file in (paths.checker(), request.file))
    shutil.rmtree(here, ignore_errors=True)  # of a test that was ended
    for folder in (here / "out", runner.parent, made.parent):
        folder.mkdir(parents=True)
    (here / "out").chmod(0o777)
    shutil.copy(built, runner)
    shutil.copytree(checks.HEALTH, here / "health")
    monkeypatch.setattr(checks, "HEALTH", SHARED / "health")
    made.write_text("\n".join(LINES).replace("SCHEDULER", "slurm") + "\n")
    yield Login(bed, request)
    shutil.rmtree(here)


def test_each_node_leaves_a_result(login, tmp_path, monkeypatch):
    login.bed.out("ctl", login.words(["node1", "node2"]))
    assert login.results() == {"node1", "node2"}
    monkeypatch.setenv("PLUMB_SITES", str(tmp_path / "sites"))
    monkeypatch.setattr(checks, "left_in", lambda request: login.bed.shared / "screen/out")
    assert [one.node for one in checks.absorb(login.request)] == ["node1", "node2"]
    kept = model.history(login.request.history)
    assert {one.state for one in kept} <= {"ok", "doubt"}
    assert [len(one.others) for one in kept] == [1, 1]
    assert login.results() == set()


@pytest.mark.long
def test_nothing_beside_a_job(login):
    """The node's job is seen, and a check that was asked for all the same waits for its end."""
    bed, asks = login.bed, f"sh {SHARED}/health/health.sh slurm jobs node1"
    assert bed.ssh("ctl", asks).returncode == 0
    with subprocess.Popen(["ssh", "-F", str(bed.ssh_config), "ctl", "srun -w node1 sleep 60"]) as job:
        wait(lambda: bed.ssh("ctl", asks).returncode == 1)
        late = bed.ssh("ctl", f"timeout 10 {login.words(['node1'])}")
        assert late.returncode == 124
        assert login.results() == set()
        bed.out("ctl", "scancel -w node1 -u bench")
        job.wait(60)
    assert "plumb-check" not in bed.out("ctl", "squeue -h -o %j")
