"""Collective operations from a common start to the last exit. The tests of OSU and IMB time loops of the same ones.

Tags: ``full`` (everything), ``kernels`` (our own programs); the quick campaign has the loops.
"""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from plumbline.reframe import KernelTest, node_counts

#: operations that MPI has in place, too
IN_PLACE = [
    "reduce", "allreduce", "scan", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv",
    "alltoall", "alltoallv", "reduce_scatter", "reduce_scatter_block",
]  # fmt: skip
SIZES = (("8B", 8), ("1MiB", 1 << 20))


class CollectiveTest(KernelTest):
    """Time of 8 bytes and of 1 MiB, without and with ``MPI_IN_PLACE``."""

    kernel = "collective"
    min_ranks = 2
    threads = 1
    quick_placements = ()

    @run_after("init")
    def choose_operation(self):
        """The record says which operation its curves are of."""
        self.arguments = ["--operation", self.operation, "--in-place", "both"]
        self.context = {**self.context, "benchmark": f"collective_{self.operation}"}
        ways = [("time", "no"), ("in_place", "yes")] if self.operation in IN_PLACE else [("time", "no")]
        self.figures = [
            (f"{name}_{size}", "time", {"bytes": count, "in_place": way}) for name, way in ways for size, count in SIZES
        ]


@rfm.simple_test
class collective_start(CollectiveTest):
    """All ranks of a placement, one thread each, every call from a common start (experiment D5)."""

    operation = parameter(["bcast", *IN_PLACE])
    placement = parameter(["core", "l3", "numa", "socket"])


@rfm.simple_test
class collective_nodes(CollectiveTest):
    """Collectives over nodes, every call from a common start by synchronised clocks (experiment D5)."""

    operation = parameter(["bcast", "allreduce", "allgather", "alltoall"])
    placement = parameter(["core", "node", "roundrobin"])
    node_count = parameter(node_counts())
    #: over a slow network a call of the largest messages takes seconds, and a size has at least seven
    launch_time_limit = 300.0


@rfm.simple_test
class collective_barrier(KernelTest):
    """Barrier over all ranks of a placement, from a common start (experiments D5, R7)."""

    kernel = "collective"
    arguments = ["--operation", "barrier"]
    placement = parameter(["core", "l3", "numa", "socket"])
    min_ranks = 2
    threads = 1
    quick_placements = ()
    figures = [("time", "time", {})]

    @run_after("init")
    def say_operation(self):
        """The record says which operation its figure is of."""
        self.context = {**self.context, "benchmark": "collective_barrier"}
