"""Which rank is on which host, on made-up witnesses."""

import copy

import pytest
from plans import typed
from test_witness_compare import PLAN, seen
from witnesses import of_documents

from plumbline.launch.witness.compare import compare_nodes as of_structs
from plumbline.launch.witness.compare import same_host
from plumbline.mpi import Layout

ONE = {**PLAN, "placement": "pair:node", "ranks": PLAN["ranks"][:1]}


def compare_nodes(plan: dict, witnesses: list, nodes: int, per_node: int, round_robin: bool, *hosts) -> list[str]:
    layout = Layout(nodes, per_node, round_robin=round_robin)
    return of_documents(of_structs)(typed(plan), witnesses, layout, *hosts)


def ranks(hosts: list[str], plan: dict = PLAN) -> list[dict]:
    """Rank r on hosts[r], each the next local rank of its host, bound as planned."""
    found = []
    for number, host in enumerate(hosts):
        local = hosts[:number].count(host)
        item = seen(min(local, len(plan["ranks"]) - 1), host)
        found.append({**item, "rank": number, "local_rank": local, "pid": number, "root": number, "size": len(hosts)})
    return found


def reasons(hosts, nodes=2, per_node=2, round_robin=False, known=(), plan=PLAN):
    return compare_nodes(plan, ranks(hosts, plan), nodes, per_node, round_robin, hosts[0], known)


def test_blocked_and_dealt_ranks_are_verified():
    assert reasons(["n1", "n1", "n2", "n2"]) == []
    assert reasons(["n2", "n2", "n1", "n1"]) == [], "which host is the first is the launcher's choice"
    assert reasons(["n1", "n2", "n1", "n2"], round_robin=True) == []
    assert reasons(["n1", "n2"], per_node=1, plan=ONE) == []


@pytest.mark.parametrize(("hosts", "round_robin", "planned"), [
    (["n1", "n2", "n1", "n2"], False, "2 consecutive on each of 2 hosts"),
    (["n1", "n2", "n2", "n1"], False, "2 consecutive on each of 2 hosts"),
    (["n1", "n1", "n2", "n2"], True, "rank r on host r mod 2"),
])  # fmt: skip
def test_swapped_ranks_are_one_reason(hosts, round_robin, planned):
    (reason,) = reasons(hosts, round_robin=round_robin)
    assert reason.startswith(f"the rank map is not as planned ({planned}): rank")
    assert "on n1" in reason
    assert "on n2" in reason


def test_two_ranks_on_one_host():
    (reason,) = reasons(["n1", "n1"], per_node=1, plan=ONE)
    assert reason == "the rank map is not as planned (1 rank on each of 2 hosts): ranks 0-1 on n1"


def test_a_missing_host_is_named_where_its_name_is_known():
    (reason,) = reasons(["n1", "n1"], known=("n1", "n2"))
    assert reason.startswith("ranks 2-3, all of 1 of 2 nodes (n2), left no witness")
    (reason,) = reasons(["n1", "n1"])
    assert reason.startswith("ranks 2-3, all of 1 of 2 nodes, left no witness")
    (reason,) = compare_nodes(PLAN, [], 2, 2, False, "n1", ())
    assert reason.startswith("ranks 0-3, all of 2 of 2 nodes, left no witness")


def test_a_rank_that_died_alone_is_not_a_missing_host():
    found = compare_nodes(PLAN, ranks(["n1", "n1", "n2", "n2"])[:3], 2, 2, False, "n1")
    assert found == ["local rank 1 on n2 left no witness: it was killed or crashed before its exit"]


def test_more_hosts_than_asked_for():
    (reason,) = reasons(["n1", "n1", "n2", "n2", "n3", "n3"])
    assert "rank map is not as planned" in reason


def test_names_with_and_without_a_domain_are_one_host():
    assert same_host("n1", "n1.cluster")
    assert same_host("n1.cluster", "n1")
    assert not same_host("n1", "n10")
    assert not same_host("n1.a", "n1.b")
    assert reasons(["n1.site", "n1.site", "n2.site", "n2.site"], known=("n1", "n2")) == []
    (reason,) = reasons(["n1.site", "n1.site"], known=("n1", "n2"))
    assert "(n2)" in reason


def test_a_node_of_another_kind_is_one_reason_that_names_it():
    found = ranks(["n1", "n1", "n2", "n2"])
    for item in found[2:]:
        item["plan"] = copy.deepcopy(item["plan"])
        item["plan"]["cpus"] = [8, 9]
    (reason,) = compare_nodes(PLAN, found, 2, 2, False, "n1")
    assert reason.startswith("node n2 is another machine than n1")
    assert "CPUs 8-9 instead of 0-1" in reason


def test_a_thread_off_its_place_on_the_second_node_is_seen():
    found = ranks(["n1", "n1", "n2", "n2"])
    found[3]["threads"][0]["last_cpu"] = 0
    (reason,) = compare_nodes(PLAN, found, 2, 2, False, "n1")
    assert "of rank 3 on n2 last ran on CPU 0" in reason
