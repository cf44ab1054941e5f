"""Which variants are one job on a machine."""

import pytest
import samples

from plumbline.base import paths
from plumbline.host.binder import resolve
from plumbline.measure.reframe import tests

TOPOLOGY = paths.root() / "tests/data/topologies/ulysses-2x10.xml"


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    monkeypatch.setattr(tests, "_first_of_job", {})


def equal(placement, *, nodes=1, memory=None, arguments=(), **params):
    """What is said of a variant of one rank."""
    where = {"placement": placement, **({"memory": memory} if memory else {})}
    asked = {"name": f"{placement} {params}", "placement": placement, "memory": memory, "nodes": nodes}
    variant = samples.asked(**asked, arguments=list(arguments), params={**where, **params})
    plan = resolve(placement, topology=TOPOLOGY, ranks=1, threads=params.get("threads"), memory=memory)
    return tests.equal_to(variant, plan)


def test_the_words_that_differ_are_said():
    assert equal("compact", threads=1) == ""
    assert equal("spread", threads=1) == "placement=compact"
    assert equal("scatter", threads=1) == "placement=compact"


def test_another_plan_is_another_job():
    assert equal("compact", threads=2) == equal("spread", threads=2) == equal("none", threads=2) == ""


def test_the_same_variant_may_come_again():
    assert [equal("compact", threads=1) for _ in range(3)] == ["", "", ""]


def test_other_parameters_and_arguments_make_another_job():
    assert equal("compact", threads=1) == equal("spread", threads=1, size=5) == ""
    assert equal("spread", threads=1, arguments=["--mode", "pure"]) == ""


def test_pages_are_part_of_the_plan():
    assert equal("numa:0", threads=1, memory="local") == ""
    assert equal("numa:0", threads=1, memory="node:1") == ""
    assert equal("numa:0", threads=1, memory="node:0") == "memory=local"


def test_the_map_of_ranks_counts_on_several_nodes_only():
    assert equal("compact", threads=1) == ""
    assert equal("roundrobin", threads=1) == "placement=compact"
    assert equal("compact", threads=1, nodes=2) == equal("roundrobin", threads=1, nodes=2) == ""
