"""Raising the bed and taking it down, beside one that may be up."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from testbed import command, host, image

pytestmark = [pytest.mark.e2e, pytest.mark.long]

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What lifecycle.py saw, with its own network, mounts and cgroups."""
    problem = host.obstacle()
    if problem:
        pytest.skip(problem)
    with command.locked():
        host.provide()
        image.unpacked("slurm")  # there is no way to a registry in there
    line = [str(HERE / "apart"), sys.executable, str(HERE / "lifecycle.py")]
    build = tmp_path_factory.mktemp("build")
    environment = {**os.environ, "PLUMB_BUILD": str(build)}
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            output, errors = process.communicate(timeout=1200)
        except BaseException:  # an interrupt too: it removes what it has made
            process.terminate()
            process.communicate()
            raise
    assert process.returncode == 0, errors
    told: dict[str, object] = json.loads(output)
    return told


@pytest.mark.parametrize("moment", ["down after interrupt", "down after crash"])
def test_down_leaves_nothing(seen, moment):
    before, after = dict(seen["before"]), dict(seen[moment])
    # others may end a mount meanwhile
    assert set(after.pop("mounts")) <= set(before.pop("mounts"))
    assert after == before


def test_what_was_left_by_an_interrupt_and_a_kill_was_something(seen):
    for moment, status in (("interrupted", 130), ("killed", -9)):
        there = seen[moment]
        assert there["status"] == status, there
        assert there["left"]["processes"], there
        assert any("plumb-bed" in mount for mount in there["left"]["mounts"]), there


def test_four_nodes_take_64_ranks_when_slurm_is_told_so(seen):
    assert sorted(seen["ranks"]) == sorted(["node1", "node2", "node3", "node4"] * 16)


def test_no_way_out_when_none_is_wanted(seen):
    assert seen["route"] == ""
    assert seen["up"]["ip_forward"] == seen["before"]["ip_forward"]
    assert seen["up"]["nft"] == []
    assert "default via 10.77.0.1" in seen["route again"]


def test_a_bed_that_is_up_is_changed_in_place(seen):
    assert seen["kept"]
    assert seen["removed"]
    assert any("tbf" in line and "100Mbit" in line for line in seen["shape"])
