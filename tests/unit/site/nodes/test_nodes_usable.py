"""Nodes that are out of work lower what tests may ask for, and are named."""

import pytest
import samples

from plumbline import schedulers
from plumbline.base.errors import PlumbError
from plumbline.measure.reframe import campaign
from plumbline.schedulers import Node
from plumbline.site.nodes import choice


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 4), ("2", 2), ("9", 4), ("cpu=1", 1), ("gpu=1", 4), ("gpu=1,cpu=3", 3), ("cpu=0", 0), ("3,cpu=2", 2)],
)
def test_the_variable_can_only_lower(text, expected):
    assert choice.limit("cpu", 4, text) == expected


@pytest.mark.parametrize("text", ["0", "-1", "two", "cpu=", "cpu=-1", "1.5", "²"])
def test_what_is_no_number_is_one_line(text):
    with pytest.raises(PlumbError, match="not a number of nodes"):
        choice.limit("cpu", 4, text)


@pytest.fixture
def cluster(monkeypatch):
    asked = []

    def answer(scheduler, queue, hosts, access):
        asked.append((scheduler.name, queue))
        idle = [Node(name, "idle", True) for name in ("node1", "node3")]
        return [*idle, Node("node2", "drained", False, "memory errors")]

    monkeypatch.setattr(schedulers, "nodes", answer)
    return asked


def site(nodes, scheduler="squeue"):
    part = {"name": "cpu", "scheduler": scheduler, "access": ["--partition=main"], "nodes": nodes}
    return samples.site(part, {"name": "login"})


def test_nodes_out_of_work_are_named_and_tests_of_more_are_skipped(cluster):
    counts, lines = choice.survey(site(3))
    assert counts == {"cpu": 2}
    assert lines == [
        "node2 is drained: memory errors",
        "partition cpu: 2 of 3 nodes can be used; tests of more are skipped",
    ]
    assert cluster == [("squeue", "main")]


def test_of_hosts_that_are_named_those_that_do_not_answer_lower_it_too(monkeypatch):
    part = {"name": "cpu", "scheduler": "ssh", "hosts": ["n1", "n2"]}
    states = {"n1": Node("n1", "reachable", True), "n2": Node("n2", "unreachable", False, "No route to host")}
    monkeypatch.setattr(schedulers, "nodes", lambda scheduler, queue, hosts, access: [states[name] for name in hosts])
    counts, (line, _) = choice.survey(samples.site(part))
    assert (counts, line) == ({"cpu": 1}, "n2 is unreachable: No route to host")


def test_where_enough_are_left_only_the_node_is_named(cluster):
    assert choice.survey(site(2)) == ({}, ["node2 is drained: memory errors"])


def test_a_site_without_a_scheduler_is_not_asked(cluster):
    assert choice.survey(site(3, "local")) == ({}, [])
    assert cluster == []


def test_a_campaign_hands_it_to_reframe_unless_somebody_said_otherwise(cluster, capsys):
    assert campaign._nodes_now(site(3), []) == ["-S", "max_nodes=cpu=2"]
    assert "node2 is drained" in capsys.readouterr().out
    assert campaign._nodes_now(site(3), ["-S", "max_nodes=1"]) == []
    assert campaign._nodes_now(None, []) == []


def test_a_scheduler_that_was_just_started_is_asked_again(monkeypatch):
    answers = [[Node("node1", "unknown", False)], [Node("node1", "unknown*", False)], [Node("node1", "idle", True)]]
    monkeypatch.setattr(schedulers, "nodes", lambda scheduler, queue, hosts, access: answers.pop(0))
    monkeypatch.setattr(choice, "PATIENCE", (6, 0.0))
    assert choice.survey(site(1)) == ({}, [])
    assert answers == []
