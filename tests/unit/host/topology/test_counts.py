"""Thread counts and memory policies that a test's parameters are made from."""

from plumbline.base import paths
from plumbline.host.topology import counts, machine

RANGER = machine.load(paths.root() / "tests/data/topologies/ranger-4x4.xml")
UNKNOWN = machine.load("package:2 group:2 [numa] core:4 pu:1")


def test_memory_is_remote_by_the_distance_table_else_every_node_is_tried():
    assert RANGER.distances
    assert counts.memories([RANGER]) == ["local", "interleave", "remote"]
    assert not UNKNOWN.distances
    assert counts.memories([UNKNOWN]) == ["local", "interleave", "node:0", "node:1", "node:2", "node:3"]
    assert counts.memories([RANGER, UNKNOWN])[2:] == ["remote", "node:0", "node:1", "node:2", "node:3"]
    assert counts.memories([]) == ["local", "interleave"]


def test_memory_is_far_where_other_cpus_have_it():
    assert counts.is_far([RANGER], 0, "remote")
    assert counts.is_far([RANGER], 0, "node:1")
    assert not any(counts.is_far([RANGER], 0, near) for near in ("local", "interleave", "node:0"))


def test_memory_without_cpus_of_its_own_is_not_far():
    beside = machine.load(paths.root() / "tests/data/topologies/memory-only-node.xml")
    (without,) = {node.index for node in beside.numa_nodes} - set(counts.cpu_nodes([beside]))
    assert not counts.is_far([beside], 0, f"node:{without}")


def test_memory_is_not_asked_of_nodes_without_any():
    empty = machine.load(paths.root() / "tests/data/topologies/numa-without-memory.xml")
    assert counts.memory_nodes([empty]) == [0, 2]
    assert counts.cpu_nodes([empty]) == [0, 1, 2, 3]
    without_sizes = machine.load("package:2 [numa(memory=0)] core:2 pu:1")
    assert counts.memory_nodes([without_sizes]) == [0, 1]


def test_ranks_have_one_thread_or_fill_the_node():
    assert counts.rank_threads([RANGER], 4) == [1, 4]
    assert counts.rank_threads([RANGER, UNKNOWN], 2) == [1, 8]
    assert counts.rank_threads([RANGER], 32) == counts.rank_threads([], 4) == [1]
