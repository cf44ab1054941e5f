"""What is wrong without a plan: each rule on machines of every kind, and where it is silent."""

from dataclasses import replace

import pytest
from witnesses import typed

from plumbline.base import paths
from plumbline.host import machine
from plumbline.launch.observed import SHARED, UNPLANNED, Host, findings, sent_by_tcp

TOPOLOGIES = paths.root() / "tests/data/topologies"
#: 2 sockets of 4 cores, CPUs 0-3 and 4-7; the cores' second hardware threads are 8-11 and 12-15
NEHALEM = machine.load(TOPOLOGIES / "rrze-nehalem.xml")
WHOLE = range(16)


def rank(number, *bound, delay=0.0, cpu=1.0, pages=None, **more):
    """A rank whose threads are bound to these CPUs; ``delay``: what its busiest waited in the second that it ran."""
    threads = [{"tid": 10 + place, "affinity": list(on), "cpu_s": 1} for place, on in enumerate(bound)]
    return typed({
        "rank": number, "local_rank": number, "size": 4, "threads": threads, "memory": {"nodes": pages or {}},
        "window": {"wall_s": 1, "cpu_s": cpu, "delay_s": delay}, **more,
    })  # fmt: skip


def reasons(*ranks, allowed=WHOLE, bound=True, on=NEHALEM):
    host = Host("n1", ranks, on, frozenset(allowed), bound)
    return [reason for rule in UNPLANNED if rule.condition(host) for reason in rule.evidence(host)]


RIGHT = {
    "one": [rank(0, [0])],
    "cores": [rank(number, [number, number + 8]) for number in range(4)],
    "pinned threads": [rank(0, [0], [1], [2], [3]), rank(1, [4], [5], [6], [7])],
    "floating in a socket": [rank(number, *[range(4 * number, 4 * number + 4)] * 4) for number in range(2)],
    "helpers": [rank(0, [0]), rank(1, [1])],
    "taking turns": [rank(0, [0], [0], cpu=1.0)],
    "taking turns beside others' work": [rank(0, *[[0, 1]] * 4, cpu=0.5, delay=0.1)],
    "threads one after the other": [rank(0, [0], ended=[{"tid": 99}], started_at_once=1)],
}


@pytest.mark.parametrize("ranks", RIGHT.values(), ids=RIGHT)
def test_right_ones_have_no_reason(ranks):
    assert reasons(*ranks) == []


def test_threads_that_wait_for_one_another_while_others_idle():
    (reason,) = reasons(rank(3, [0], [0, 8], delay=0.5))
    assert reason == "2 threads of rank 3 on n1 share 1 core (CPUs 0,8), while no rank uses CPUs 1-7"


def test_hardware_threads_where_cores_are_free():
    (reason,) = reasons(rank(0, [0], [8], cpu=1.9))
    assert "2 threads of rank 0 on n1 share 1 core (CPUs 0,8)" in reason


def test_threads_that_have_ended_count_by_how_many_were_there_at_once():
    def workers(waited):
        ended = [{"tid": 11, "affinity": [0], "cpu_s": 0.9, "waited_s": waited}]
        return rank(0, threads=[{"affinity": [0], "cpu_s": 0}], ended=ended, started_at_once=3)

    assert "3 threads" in reasons(workers(0.9))[0]
    assert reasons(workers(0.01)) == []


def test_processes_of_a_rank_meet_if_they_wait_for_a_cpu_and_not_for_one_another():
    def judged(delay):
        child = rank(0, [0], cpu=0.9, pid=11, window={"wall_s": 0.9, "cpu_s": 0.9, "delay_s": delay})
        parent = rank(0, [0], cpu=0.1, delay=delay)
        host = Host("n1", [parent], NEHALEM, frozenset(WHOLE), together={("n1", 10): [parent, child]})
        return [reason for rule in UNPLANNED for reason in rule.evidence(host)]

    assert judged(0.0) == []
    assert "2 threads of rank 0 on n1 share 1 core (CPU 0)" in judged(0.3)[0]


def test_two_ranks_on_a_core_need_not_work_to_be_wrong():
    (reason,) = reasons(rank(0, [0]), rank(1, [8]), rank(2, [1]))
    assert reason == "2 threads of ranks 0-1 on n1 share 1 core (CPUs 0,8), while no rank uses CPUs 2-7"


def test_fewer_cpus_than_threads_is_the_allocation_s_fault_where_all_are_used():
    (reason,) = reasons(rank(0, *[[0, 1]] * 4, delay=0.5, cpu=2), allowed=[0, 1])
    assert reason == "4 threads of rank 0 on n1 worked on 2 CPUs (0-1), all that the command may use"
    assert reasons(rank(0, *[[0, 1]] * 4, cpu=0.1), allowed=[0, 1]) == [], "they sleep"


def test_unbound_where_it_matters():
    free = [rank(number, WHOLE) for number in range(2)]
    assert reasons(*free) == ["ranks 0-1 on n1 may run on every CPU of the command (0-15): no binding"]
    assert reasons(*free, bound=False) == [], "the control is to be unbound"
    assert "CPUs" not in "".join(reasons(rank(0, [0, 1]), allowed=[0, 1])), "a program alone on a socket"


def test_memory_far_from_all_threads():
    (reason,) = reasons(rank(0, [0], pages={0: 1 << 10, 1: 1 << 16}))
    assert reason == "256 MiB (98%) of rank 0 on n1 lie on NUMA node 1, its threads run on node 0"
    assert reasons(rank(0, [0], pages={0: 1 << 16, 1: 1 << 11})) == [], "a little of it"
    assert reasons(rank(0, [0], pages={1: 1 << 10})) == [], "too little to matter"


def test_memory_beside_no_cpu_is_not_far():
    on = machine.load(TOPOLOGIES / "xeon-max-2x56-hbm.xml")
    homes = {home.index for cpu in on.cpus if (home := on.home_node(cpu))}
    (other,) = [node.index for node in on.numa_nodes if node.index not in homes][:1]
    assert reasons(rank(0, [0], pages={other: 1 << 16}), allowed=on.cpus, on=on) == []


def test_a_cure_is_in_the_launcher_s_words():
    host = Host("n1", [rank(0, [0], [0], delay=0.5)], NEHALEM, frozenset(WHOLE), launchers=("prterun",))
    assert UNPLANNED[0].cures[SHARED](host) == "give each thread a core: mpirun --map-by slot:PE=2 --bind-to core"


LARGE = 1 << 17  # pages of 4 KiB: 512 MiB


def test_threads_of_two_nodes_with_their_memory_on_one():
    pinned = [[core] for core in range(8)]
    (reason,) = reasons(rank(0, *pinned, pages={0: LARGE, 1: 99}))
    assert "of rank 0 on n1 lie on NUMA node 0, its threads run on nodes 0-1: other memory channels are idle" in reason
    assert reasons(rank(0, *pinned, pages={0: LARGE, 1: LARGE})) == [], "spread"
    assert reasons(rank(0, *pinned, pages={0: 1 << 12})) == [], "too little to matter"


def test_ranks_that_crowd_on_a_node():
    (reason,) = reasons(*(rank(number, [number], pages={0: LARGE}) for number in range(3)))
    assert reason == "3 of 3 ranks on n1 run on NUMA node 0, 0 on node 1 with 4 unused cores"
    assert reasons(*(rank(number, [number]) for number in range(3))) == [], "without memory it is a choice"
    assert reasons(*(rank(number, [number], pages={0: LARGE}) for number in range(3)), allowed=range(4)) == []


def test_large_messages_by_tcp_inside_a_host():
    def sends(number, size):
        ends = [("a:1", "a:2"), ("a:2", "a:1")][number]
        none = dict.fromkeys(("shm_bytes", "sysv_bytes", "file_bytes", "copies"), 0)
        more = {**none, "file": "", "connections": 1, "devices": []}
        return rank(number, [number], mpi=True, transports={**more, "tcp": [ends], "tcp_sent": [size]})

    (reason,) = reasons(sends(0, 1 << 29), sends(1, 0))
    assert reason == "the ranks on n1 sent one another 512 MiB by TCP, not by shared memory"
    assert reasons(sends(0, 1 << 20), sends(1, 1 << 20)) == [], "what a start needs"
    host = Host("n1", [sends(0, 1 << 29)], NEHALEM, frozenset(WHOLE), fabric=["mlx5_0"])
    assert findings(host) == [], "to whom is not known"
    (finding,) = findings(replace(host, sent=sent_by_tcp([sends(0, 1 << 29), sends(1, 0)])))
    assert finding.reason == "the ranks on n1 sent those on other hosts 512 MiB by TCP, not by InfiniBand (mlx5_0)"
    assert findings(replace(host, fabric=[], sent=sent_by_tcp([sends(1, 0)]))) == []


def test_a_gpu_far_from_its_rank_and_a_plan_that_wants_it():
    ranks = [rank(0, [0], gpu_address="00000000:41:00.0")]
    host = Host("n1", ranks, NEHALEM, frozenset(WHOLE), gpus={"0000:41:00.0": frozenset(range(4, 8))})
    (finding,) = findings(host)
    assert finding.reason == "GPU 00000000:41:00.0 of rank 0 on n1 is beside CPUs 4-7, its threads run on CPU 0"
    assert findings(replace(host, planned=True)) == []
    assert findings(replace(host, gpus={"0000:41:00.0": frozenset(range(4))})) == []
