"""Jobs on nodes that were chosen: by name, or in turn."""

import subprocess
import sys
from pathlib import Path

import pytest
import samples

from plumbline import schedulers
from plumbline.base.errors import PlumbError
from plumbline.measure.reframe import campaign, settings
from plumbline.schedulers import Node
from plumbline.site.nodes import choice

CPU = {"name": "cpu", "scheduler": "squeue", "access": ["--partition=main"]}
GPU = {"name": "gpu", "scheduler": "squeue", "access": ["--partition=acc"]}
SSH = {"name": "bare", "scheduler": "ssh", "hosts": ["a1", "a2", "a3"]}


@pytest.fixture(autouse=True)
def cluster(monkeypatch):
    nodes = {
        "main": [Node("node1", "idle", True), Node("node2", "down", False), Node("node3", "mixed", True)],
        "acc": [Node("gpu1", "idle", True), Node("gpu2", "idle", True)],
        None: [Node(name, "up", True) for name in SSH["hosts"]],
    }
    monkeypatch.setattr(schedulers, "nodes", lambda scheduler, queue, hosts, access: nodes[queue])


def a_site(*parts):
    return samples.site(*parts, name="newton")


@pytest.mark.parametrize(
    ("asked", "nodes"), [("1/2", "node1 gpu1"), ("2/2", "node3 gpu2"), ("3/2", "node1 gpu1"), ("5/1", "node1 gpu1")]
)
def test_turns_go_over_the_nodes_that_can_be_used(asked, nodes):
    assert list(choice.turn(a_site(CPU, GPU), asked).values()) == nodes.split()


def test_more_nodes_than_there_are_is_an_error():
    with pytest.raises(PlumbError, match=r"2 nodes can be used \(node\[1,3\]\), not 3") as error:
        choice.turn(a_site(CPU), "1/3")
    assert "partition cpu" in str(error.value)


@pytest.mark.parametrize("asked", ["", "0/2", "2", "1/0", "-1/2", "a/b", "1/2/3", "1 /2"])
def test_what_is_no_turn_is_one_line(asked):
    with pytest.raises(PlumbError, match="is not a turn"):
        choice.turn(a_site(CPU), asked)


def test_nodes_by_name():
    assert choice.explicit(a_site(CPU), ["node3"]) == {"cpu": "node3"}
    assert choice.explicit(a_site(CPU, GPU), ["gpu=gpu2", "cpu=node1"]) == {"gpu": "gpu2", "cpu": "node1"}


@pytest.mark.parametrize(("given", "said"), [
    ("node1", "names no partition"),
    ("tpu=node1", "no partition 'tpu'"),
    ("cpu=node2", "node2 cannot be used"),
    ("cpu=x; touch y", "cannot be used"),
])  # fmt: skip
def test_wrong_nodes_are_one_line(given, said):
    with pytest.raises(PlumbError, match=said):
        choice.explicit(a_site(CPU, GPU), [given])


@pytest.mark.parametrize("scheduler", ["pbs", "lsf", "flux", "sge", "local"])
def test_schedulers_that_cannot_be_told_say_so(scheduler):
    with pytest.raises(PlumbError, match="cannot be put on a node"):
        choice.explicit(a_site({**CPU, "scheduler": scheduler}), ["node1"])


def for_reframe(part, chosen):
    node = choice.pinned(part["name"], chosen)
    return schedulers.named(part["scheduler"]).reframe_partition([], part.get("hosts", []), node)


def test_jobs_get_the_node():
    chosen = {"PLUMB_PIN_JOBS": "cpu=node3,bare=a2"}
    assert for_reframe(CPU, chosen)["access"] == ["--no-requeue", "--nodelist=node3"]
    assert for_reframe(GPU, chosen)["access"] == ["--no-requeue"]
    assert for_reframe(SSH, chosen)["sched_options"]["ssh_hosts"] == ["a2", "a1", "a3"]
    assert for_reframe(CPU, {})["access"] == ["--no-requeue"]
    assert for_reframe(SSH, {})["sched_options"]["ssh_hosts"] == SSH["hosts"]


@pytest.mark.parametrize("text", ["node1", "cpu=-x", "cpu=a b", "cpu="])
def test_a_variable_that_is_wrong_is_one_line(text):
    with pytest.raises(PlumbError, match=r"is not PARTITION=NODE|cannot be a host name"):
        choice.pinned("cpu", {"PLUMB_PIN_JOBS": text})


def test_reframe_is_told(monkeypatch):
    monkeypatch.setenv("PLUMB_PIN_JOBS", "cpu=node3,bare=a2")
    both = [settings._partition(found, part) for found in [a_site(CPU, SSH)] for part in found.partitions]
    assert both[0]["access"] == ["--no-requeue", "--partition=main", "--nodelist=node3"]
    assert both[1]["access"][0] == "#host=a2"
    assert both[1]["sched_options"] == {"ssh_hosts": ["a2", "a1", "a3"]}


def test_a_campaign_says_where_it_runs(capsys):
    here = a_site(CPU, GPU)
    assert campaign._nodes_chosen(here, [], "2/2") == {"PLUMB_PIN_JOBS": "cpu=node3,gpu=gpu2"}
    assert capsys.readouterr().out == "partition cpu: jobs run on node3\npartition gpu: jobs run on gpu2\n"
    with pytest.raises(PlumbError, match="no site claims this host"):
        campaign._nodes_chosen(None, ["node1"], None)
    assert campaign._nodes_chosen(here, [], None) == {}


def test_one_of_both_is_enough():
    command = [str(Path(sys.executable).parent / "plumb"), "campaign", "--node", "a", "--turn", "1/2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done
    assert "not allowed with" in done.stderr
