"""STREAM: bandwidth by thread count, rank placement and memory node.

Tags: ``quick`` (part of the five-minute campaign), ``full`` (everything), ``scaling`` (curves), ``stream``.
"""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from plumbline.host import machine
from plumbline.measure.reframe import PlumbTest, machines


class StreamTest(PlumbTest):
    """What all STREAM tests share: the program and its four rates."""

    benchmark = "stream"
    parser = "stream"
    #: the arrays grow with the caches: 6 GB for 480 MB of caches, over which two busy CPUs go 20 times in over a minute
    launch_time_limit = 300.0
    figures = [(kernel, kernel, {}) for kernel in ("triad", "copy", "scale", "add")]
    tags = {"stream", "full"}


@rfm.simple_test
class stream_threads(StreamTest):
    """One rank, more and more threads, unpinned against pinned (experiment R2: pinning removes the spread)."""

    placement = parameter(["none", "compact", "spread"], type=str)
    threads = parameter(machine.node_threads(machines()), type=int)
    ranks_per_node = 1
    quick_placements = ("none", "compact")

    @run_after("init")
    def keep_quick_short(self):
        """Quick: the largest thread count, unpinned under every launcher and pinned; full: all; scaling: pinned."""
        self.mpi_matters = self.placement == "none"
        if not self.mpi_matters:
            self.tags |= {"scaling"}
        if self.threads != max(machine.node_threads(machines())):
            self.tags -= {"quick"}


@rfm.simple_test
class stream_numa(StreamTest):
    """One rank on NUMA node ``cpu_node`` with its memory on ``memory_node`` (experiments U1, T1: local against far)."""

    cpu_node = parameter(machine.cpu_nodes(machines()), type=int)
    memory_node = parameter(machine.memory_nodes(machines()), type=int)
    threads = parameter(machine.numa_threads(machines()), type=int)
    mpi_matters = False
    quick_placements = ()

    @run_after("init")
    def place(self):
        """Quick: one thread on the first node, with its own memory and with every other node's."""
        self.placement, self.memory = f"numa:{self.cpu_node}", f"node:{self.memory_node}"
        self.slow_on_purpose = machine.is_far(machines(), self.cpu_node, self.memory)
        if self.threads == 1 and self.cpu_node == min(machine.cpu_nodes(machines())):
            self.tags |= {"quick"}


@rfm.simple_test
class stream_ranks(StreamTest):
    """A rank per object, its threads filling it; the ranks' rates are added (experiments T3, R3).

    ``node`` and ``spread`` have one rank with a thread on each core, in core order and dealt over the sockets in turn.
    ``ways:4`` has four ranks: on two sockets, two on each.
    """

    placement = parameter(["numa", "core", "l3", "socket", "ways:4", "node", "smt", "spread"], type=str)
    memory = parameter(["local", "interleave", "remote"], type=str)
    mpi_matters = False
    quick_placements = ("numa", "core")

    @run_after("init")
    def keep_quick_short(self):
        """Quick: local memory only."""
        self.ranks_per_node = int(self.placement == "spread")
        self.slow_on_purpose = self.memory == "remote"
        if self.memory != "local":
            self.tags -= {"quick"}
