"""Thread counts and memory policies that a test's parameters are made from."""

from plumbline.base import paths
from plumbline.host import machine

RANGER = machine.load(paths.root() / "tests/data/topologies/ranger-4x4.xml")
UNKNOWN = machine.load("package:2 group:2 [numa] core:4 pu:1")


def test_memory_is_remote_by_the_distance_table_else_every_node_is_tried():
    assert RANGER.distances
    assert machine.memories([RANGER]) == ["local", "interleave", "remote"]
    assert not UNKNOWN.distances
    assert machine.memories([UNKNOWN]) == ["local", "interleave", "node:0", "node:1", "node:2", "node:3"]
    assert machine.memories([RANGER, UNKNOWN])[2:] == ["remote", "node:0", "node:1", "node:2", "node:3"]
    assert machine.memories([]) == ["local", "interleave"]


def test_memory_is_far_where_other_cpus_have_it():
    assert machine.is_far([RANGER], 0, "remote")
    assert machine.is_far([RANGER], 0, "node:1")
    assert not any(machine.is_far([RANGER], 0, near) for near in ("local", "interleave", "node:0"))


def test_memory_without_cpus_of_its_own_is_not_far():
    beside = machine.load(paths.root() / "tests/data/topologies/memory-only-node.xml")
    (without,) = {node.index for node in beside.numa_nodes} - set(machine.cpu_nodes([beside]))
    assert not machine.is_far([beside], 0, f"node:{without}")


def test_memory_is_not_asked_of_nodes_without_any():
    empty = machine.load(paths.root() / "tests/data/topologies/numa-without-memory.xml")
    assert machine.memory_nodes([empty]) == [0, 2]
    assert machine.cpu_nodes([empty]) == [0, 1, 2, 3]
    without_sizes = machine.load("package:2 [numa(memory=0)] core:2 pu:1")
    assert machine.memory_nodes([without_sizes]) == [0, 1]


def test_ranks_have_one_thread_or_fill_the_node():
    assert machine.rank_threads([RANGER], 4) == [1, 4]
    assert machine.rank_threads([RANGER, UNKNOWN], 2) == [1, 8]
    assert machine.rank_threads([RANGER], 32) == machine.rank_threads([], 4) == [1]
