"""Plan against witness: each way not to be verified, with the reason that a person reads."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from witness_helper import compare
from witnesses import of_documents

from plumbline.host.proc import Stat
from plumbline.launch.witness import processes

unseen_orphans = of_documents(processes.unseen_orphans)

PLAN = {
    "placement": "compact",
    "threads": 2,
    "memory": "local",
    "topology": "this host",
    "ranks": [
        {"local_rank": 0, "cpus": [0, 1], "places": [[0], [1]], "mem": {"policy": "bind", "nodes": [0]}},
        {"local_rank": 1, "cpus": [4, 5], "places": [[4], [5]], "mem": {"policy": "bind", "nodes": [1]}},
    ],
}


def thread(tid, affinity, last_cpu=None, name="worker"):
    return {"tid": tid, "name": name, "affinity": affinity, "last_cpu": affinity[0] if last_cpu is None else last_cpu}


def usage(cpu_s):
    return {"user_s": cpu_s, "system_s": 0.0, "before_s": 0.0, "children_s": 0.0, "unlisted_s": 0.0}


def seen(rank, host="n1", first=0):
    """The witness of a rank that did exactly what was planned."""
    planned = PLAN["ranks"][rank]
    return {
        "schema": 1,
        "host": host,
        "pid": 100 + rank,
        "root": 100 + rank,
        "mpi": True,
        "others": [],
        "ended": [],
        "rank": first + rank,
        "local_rank": rank,
        "size": 2,
        "program": "stream",
        "plan": copy.deepcopy(planned),
        "start": {"affinity": planned["cpus"]},
        "threads": [thread(100 + 10 * rank + i, place) for i, place in enumerate(planned["places"])],
        "memory": {
            "page_bytes": 4096,
            "threshold_bytes": 1 << 20,
            "nodes": {str(planned["mem"]["nodes"][0]): 5000},
            "freed_nodes": {},
        },
        "usage": usage(1.0),
    }


@pytest.fixture
def pair():
    return [seen(0), seen(1)]


def reason(plan, witnesses, ranks=2):
    """The one reason why not."""
    found = compare(plan, witnesses, ranks)
    assert len(found) == 1, found
    return found[0]


def test_a_launch_as_planned_is_verified(pair):
    assert compare(PLAN, pair, 2) == []
    assert compare(PLAN, pair, {"n1": 2}) == []


def test_fewer_ranks_than_the_plan_has_room_for_are_verified(pair):
    pair[0]["size"] = 1
    assert compare(PLAN, pair[:1], 1) == []


def test_two_hosts_are_verified_each_by_its_own_ranks(pair):
    second = [seen(0, "n2", 2), seen(1, "n2", 2)]
    assert compare(PLAN, pair + second, {"n1": 2, "n2": 2}) == []
    assert reason(PLAN, pair + second[:1], {"n1": 2, "n2": 2}) == (
        "local rank 1 on n2 left no witness: it was killed or crashed before its exit"
    )


def test_threads_that_need_not_be_bound_one_by_one_stay_on_the_cpus_of_their_rank(pair):
    for witness, cpus in zip(pair, ([0, 1], [4, 5]), strict=True):
        witness["threads"] = [thread(10, cpus), thread(11, cpus)]
    assert len(compare(PLAN, pair, 2)) == 4
    assert compare(PLAN, pair, 2, binds="ranks") == []
    pair[0]["threads"].append(thread(12, [0, 1, 2]))
    (found,) = compare(PLAN, pair, 2, binds="ranks")
    assert found == "thread 12 (worker) of rank 0 on n1 may run on CPUs 0-2, outside the rank's CPUs 0-1"


def bound_by_itself(rank, *threads, ended=()):
    """The witness of a program that binds itself: started on all CPUs, with CPU time of each thread."""
    found = seen(rank)
    found["plan"] |= {"cpus": list(range(8)), "places": [], "mem": {"policy": "none", "nodes": []}}
    found["start"] = {"affinity": list(range(8))}
    found["threads"] = [thread(10 + i, cpus) | {"cpu_s": cpu_s} for i, (cpus, cpu_s) in enumerate(threads)]
    found["ended"] = [thread(90 + i, cpus) | {"cpu_s": 0.5} for i, cpus in enumerate(ended)]
    return found


EVERY = list(range(8))


def test_a_program_that_binds_itself_is_compared_with_the_placement():
    second = bound_by_itself(1, ([4], 0.5), ([5], 0.5))
    moved = bound_by_itself(0, ([0], 0.5), (EVERY, 0.001), ended=[[1]])
    moved["threads"][0]["migrations"] = 3
    assert compare(PLAN, [moved, second], 2, binds="itself") == []
    assert "was started with another plan" in str(compare(PLAN, [moved, second], 2))
    ((found,), (left, other)) = (
        compare(PLAN, [bound_by_itself(0, *threads), second], 2, binds="itself")
        for threads in ([([0], 0.5), ([0], 0.5)], [([0], 0.5), (EVERY, 0.5)])
    )
    assert found == "thread place 1 of rank 0 on n1 should be on CPU 1, but no thread is bound there; threads are on: 0"
    assert left == found.removesuffix("0") + "0; 0-7"
    assert other == "thread 11 (worker) of rank 0 on n1 may run on CPUs 0-7, outside the rank's CPUs 0-1"


def test_a_program_that_binds_itself_was_not_bound_by_plumb_bind(pair):
    found = [text.partition(":")[0] for text in compare(PLAN, pair, 2, binds="itself")]
    assert found == [f"rank {i} on n1 was started with another plan" for i in (0, 1)]


@pytest.mark.parametrize(
    ("policy", "nodes", "as_planned"),
    [("bind", [1], 1), ("bind", [0, 1], 1), ("bind", [2], 0), ("bind", [], 0), ("interleave", [1], 0)],
)
def test_local_memory_of_the_control_is_beside_the_cpus_that_its_launcher_left_it(pair, policy, nodes, as_planned):
    free = copy.deepcopy(PLAN) | {"placement": "none"}
    free["ranks"][1] |= {"cpus": EVERY, "places": [], "mem": {"policy": policy, "nodes": [0, 1]}}
    pair[1]["plan"] |= {"places": [], "mem": {"policy": policy, "nodes": nodes}}
    assert ("rank 1 on n1 was started with another plan" not in str(compare(free, pair, 2))) == as_planned


def test_pages_of_the_control_are_where_its_own_cpus_are(pair):
    free = copy.deepcopy(PLAN) | {"placement": "none"}
    for rank in free["ranks"]:
        rank |= {"cpus": EVERY, "places": [], "mem": {"policy": "bind", "nodes": [0, 1]}}
    for witness in pair:
        witness["plan"]["places"] = []
    pair[0]["memory"]["nodes"]["1"] = 2
    (reason_seen,) = compare(free, pair, 2)
    assert reason_seen == "2 of 5002 pages of rank 0 on n1 lie on memory node 1, planned: node 0"


def test_no_witness_at_all():
    assert "no rank left a witness" in reason(PLAN, [], 2)
    (all_of_them,) = compare(PLAN, [], {"n1": 2})
    assert all_of_them == "local ranks 0-1 on n1 left no witness: they were killed or crashed before their exit"


def test_more_ranks_than_started(pair):
    assert "rank 1 on n1 left a witness, but only 1 ranks were to run there" in compare(PLAN, pair, {"n1": 1})


SPOILED = {
    "killed": (lambda pair: pair.pop(0), "local rank 0 on n1 left no witness"),
    "twice": (lambda pair: pair.append({**seen(1), "pid": 999, "root": 999}), "left 2 witnesses"),
    "nobody asked for": (
        lambda pair: pair.append(seen(0, "n9", 2)),
        "rank 2 on n9 left a witness, but no rank was to run there",
    ),
    "another plan": (
        lambda pair: pair[1]["plan"].update(cpus=[6, 7]),
        "rank 1 on n1 was started with another plan: cpus 6-7 instead of 4-5",
    ),
    "no plan": (lambda pair: pair[0].update(plan=None), "not started through plumb-bind"),
    "a place without a thread": (
        lambda pair: pair[1]["threads"][1].update(affinity=[4], last_cpu=4),
        "thread place 1 of rank 1 on n1 should be on CPU 5, but no thread is bound there; threads are on: 4",
    ),
    "a thread twice": (lambda pair: pair[0].update(threads=[thread(1, [0]), thread(1, [1])]), "should be on CPU 0"),
    "a helper thread outside": (
        lambda pair: pair[0]["threads"].append(thread(77, [0, 1, 2, 3], 1, "async")),
        "thread 77 (async) of rank 0 on n1 may run on CPUs 0-3, outside the rank's CPUs 0-1",
    ),
    "off its CPUs": (lambda pair: pair[0]["threads"][0].update(last_cpu=7), "last ran on CPU 7, but is bound to 0"),
    "one page": (
        lambda pair: pair[0]["memory"]["nodes"].update({"1": 1}),
        "1 of 5001 pages of rank 0 on n1 lie on memory node 1, planned: node 0",
    ),
    "freed pages": (lambda pair: pair[0]["memory"].update(freed_nodes={"3": 64}), "64 of 5064 pages"),
    "unknown memory": (
        lambda pair: pair[0]["memory"].update(nodes={}, unavailable="numa_maps: gone"),
        "memory of rank 0 on n1 is not proven: numa_maps: gone",
    ),
}


@pytest.mark.parametrize("how", SPOILED)
def test_each_fault_is_one_reason(pair, how):
    spoil, said = SPOILED[how]
    spoil(pair)
    assert said in reason(PLAN, pair, {"n1": 2})


def test_more_ranks_than_planned(pair):
    assert "local rank 2 on n1 is not in the plan" in reason(PLAN, pair, 3)


def test_a_program_without_a_launcher_is_rank_0():
    alone = seen(0)
    alone.update(rank=-1, local_rank=-1, size=-1)
    assert compare(PLAN, [alone], 1) == []


def test_threads_that_may_float_inside_the_rank_fill_no_place(pair):
    for item in pair[1]["threads"]:
        item["affinity"] = [4, 5]
    found = compare(PLAN, pair, 2)
    assert len(found) == 2
    assert found[0].endswith("threads are on: 4-5")


def test_two_places_on_the_same_cpus_need_two_threads(pair):
    plan = copy.deepcopy(PLAN)
    plan["ranks"][0].update(places=[[0, 1], [0, 1]])
    pair[0]["plan"] = plan["ranks"][0]
    pair[0]["threads"] = [thread(1, [0, 1])]
    assert "thread place 1" in reason(plan, pair)
    pair[0]["threads"].append(thread(2, [0, 1]))
    assert compare(plan, pair, 2) == []


def test_a_thousand_stray_threads_are_a_handful_of_reasons(pair):
    pair[0]["threads"] += [thread(1000 + i, [9]) for i in range(1000)]
    found = compare(PLAN, pair, 2)
    assert len(found) == 5
    assert "996 more" in found[-1]


def test_a_thread_that_left_its_one_cpu_and_came_back():
    plan = copy.deepcopy(PLAN)
    plan["ranks"] = [{**plan["ranks"][0], "cpus": [0], "places": [[0]]}]
    alone = {**seen(0), "plan": plan["ranks"][0], "size": 1, "threads": [{**thread(1, [0]), "migrations": 2}]}
    assert reason(plan, [alone], 1) == (
        "thread 1 (worker) of rank 0 on n1 was moved between CPUs 2 times, although its rank has CPU 0 alone"
    )
    alone["threads"][0]["migrations"] = 0
    assert compare(plan, [alone], 1) == []


@pytest.mark.parametrize(
    ("away_s", "until_s", "words"),
    [(0.0099, 0.9, ""), (0.0101, 0.9, "used 0.010100 s of CPU time outside the rank's"), (0.001, 1.1, "until 1.100 s")],
)
def test_excursions_are_bounded_by_their_time_and_stay_at_the_begin(pair, away_s, until_s, words):
    left = {"away_s": away_s, "away_migrations": 8, "away_until_s": until_s, "cpu_s": 20.0}
    pair[0]["threads"][0] |= left
    pair[0]["window"] = {"wall_s": 10.0, "cpu_s": 10.0, "delay_s": 0}
    found = compare(PLAN, pair, 2)
    assert len(found) == bool(words)
    assert words in str(found)


def test_threads_of_a_rank_with_several_cpus_are_moved_to_their_places(pair):
    pair[0]["threads"][1]["migrations"] = 1
    assert compare(PLAN, pair, 2) == []


def test_no_large_memory_is_nothing_to_object_to(pair):
    pair[0]["memory"]["nodes"] = {}
    assert compare(PLAN, pair, 2) == []


def with_memory(policy, nodes, pages, **more):
    plan = copy.deepcopy(PLAN)
    plan["ranks"] = [{**plan["ranks"][0], "mem": {"policy": policy, "nodes": nodes}}]
    item = seen(0)
    item["size"] = 1
    item["plan"] = plan["ranks"][0]
    item["memory"]["nodes"] = {str(node): count for node, count in pages.items()}
    item["memory"].update(more)
    return compare(plan, [item], 1)


def test_interleaved_memory():
    assert with_memory("interleave", [0, 1], {0: 1000, 1: 1100}) == []
    assert with_memory("interleave", [0, 1], {0: 10}) == [], "too few pages to say"
    assert with_memory("interleave", [0, 1], {0: 800, 1: 200}) == [], "below 1024 pages nothing is said"
    for pages, said in (
        ({0: 2000, 1: 300}, "node 1 holds 300 of 2300 pages, an even share would be 1150"),
        ({0: 2000}, "node 1 holds 0 of"),
        ({0: 1000, 1: 1000, 2: 4}, "lie on memory node 2"),
    ):
        assert said in with_memory("interleave", [0, 1], pages)[0]


def test_interleaving_is_judged_in_grains():
    huge = 2 << 20
    assert with_memory("interleave", [0, 1], {0: 3 * 512}, grain_bytes=huge) == [], "three huge pages"
    assert with_memory("interleave", [0, 1], {0: 64 * 512}, grain_bytes=huge) != []


def test_no_policy_no_memory_check():
    assert with_memory("none", [], {0: 1, 7: 9}) == []
    assert with_memory("none", [], {}, unavailable="no numa") == []


def test_the_control_demands_presence_only():
    plan = copy.deepcopy(PLAN)
    plan["ranks"] = [{**plan["ranks"][0], "places": [], "mem": {"policy": "none", "nodes": []}}]
    item = seen(0)
    item["size"] = 1
    item["plan"] = plan["ranks"][0]
    item["threads"] = [thread(1, [0, 1, 2, 3, 4, 5, 6, 7], 7)]
    assert compare(plan, [item], 1) == []
    assert len(compare(plan, [], {"n1": 1})) == 1


@given(
    moved=st.integers(0, 1),
    which=st.integers(0, 1),
    affinity=st.lists(st.integers(0, 8), min_size=1, max_size=4, unique=True),
)
def test_no_other_binding_than_the_planned_is_verified(moved, which, affinity):
    pair = [seen(0), seen(1)]
    item = pair[moved]["threads"][which]
    planned = item["affinity"]
    item["affinity"] = sorted(affinity)
    item["last_cpu"] = item["affinity"][0]
    assert (compare(PLAN, pair, 2) == []) == (item["affinity"] == planned)


class TestOrphans:
    """Processes that lost their parents: the launcher's own, and daemons of ranks."""

    @staticmethod
    def rank(pid, ancestors, cpu_s=1.0, **changes):
        return {**seen(0), "pid": pid, "ancestors": ancestors, "usage": usage(cpu_s), **changes}

    def test_of_the_launcher(self):
        """A proxy that the rank descends from, whose time has that of the rank in it."""
        proxy = Stat(40, "proxy", "Z", 1, 100, 5, children_ticks=900)
        assert unseen_orphans([self.rank(100, [40, 1])], [proxy], "n1") == []

    def test_that_nobody_saw(self):
        (reason,) = unseen_orphans([self.rank(100, [40])], [Stat(41, "daemon", "Z", 1, 30, 5, children_ticks=20)], "n1")
        assert reason == "daemons that the ranks left on n1 used 0.50 s of CPU time and left no witness: daemon"

    def test_that_left_a_document_with_their_children(self):
        daemon = self.rank(41, [1], 0.3, root=100)
        child = self.rank(42, [41], 0.2, root=100)
        found = [{**self.rank(100, [40]), "others": [daemon, child]}]
        assert unseen_orphans(found, [Stat(41, "daemon", "Z", 1, 30, 5, children_ticks=20)], "n1") == []

    def test_on_another_host(self):
        """Numbers of processes are of one host."""
        found = [self.rank(41, [40], host="n2"), self.rank(100, [40])]
        assert len(unseen_orphans(found, [Stat(41, "daemon", "Z", 1, 50, 5)], "n1")) == 1
