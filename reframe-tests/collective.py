"""Collective operations from a common start to the last exit. The tests of OSU and IMB time loops of the same ones.

Tags: ``full`` (everything), ``kernels`` (our own programs); the quick campaign has the loops.
"""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from plumbline.host import machine
from plumbline.measure.reframe import KernelTest, machines, node_counts

from .placements import PAIRS

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

    operation = parameter(["bcast", *IN_PLACE], type=str)
    placement = parameter(["core", "l3", "numa", "socket"], type=str)


@rfm.simple_test
class collective_ranks(CollectiveTest):
    """More and more ranks of a node, close together, every call behind a barrier (experiment D5)."""

    operation = parameter(["bcast", "reduce", "allreduce", "gather", "scatter", "alltoall"], type=str)
    rank_count = parameter([count for count in machine.node_threads(machines()) if count > 1] or [2], type=int)
    placement = parameter(["compact"], type=str)

    @run_after("init")
    def choose_ranks(self):
        """One thread each, on cores one after the other; a common start is too much to ask of a full node."""
        self.ranks_per_node = self.rank_count
        self.arguments = [*self.arguments, "--protocol", "barrier"]


@rfm.simple_test
class collective_algorithms(KernelTest):
    """A line of messages against a binomial tree, in turn in the same run, by number of ranks (experiment S2)."""

    kernel = "collective"
    operation = parameter(["bcast", "reduce"], type=str)
    rank_count = parameter([count for count in machine.node_threads(machines()) if count > 1] or [2], type=int)
    placement = parameter(["compact"], type=str)
    threads = 1
    min_ranks = 2
    quick_placements = ()

    @run_after("init")
    def choose_ranks(self):
        """On cores one after the other."""
        self.ranks_per_node = self.rank_count

    def suit_stack(self):
        """The library's own names for both, and 0 for its own choice."""
        family = self.require_family("linear_and_tree")
        knob = next(knob for knob in family.knobs if knob.operations == (self.operation,))
        line, tree = family.linear_and_tree[self.operation]
        self.library_settings = {one.name: one.value for one in knob.needs}
        self.arguments = ["--operation", self.operation, "--race", f"{knob.name}={line},{tree}", "--bytes", "8,64K"]
        self.arguments += ["--protocol", "barrier"]
        self.figures = [
            (f"{name}_{size}", "time", {"bytes": count, knob.name: int(value)})
            for size, count in (("8B", 8), ("64KiB", 1 << 16))
            for name, value in (("linear", line), ("tree", tree), ("library", "0"))
        ]


@rfm.simple_test
class collective_nodes(CollectiveTest):
    """Collectives over nodes, every call from a common start by synchronised clocks (experiment D5)."""

    operation = parameter(["bcast", "allreduce", "allgather", "alltoall"], type=str)
    placement = parameter(["core", "node", "roundrobin"], type=str)
    node_count = parameter(node_counts(), type=int)
    #: over a slow network a call of the largest messages takes seconds, and a size has at least seven
    launch_time_limit = 300.0


@rfm.simple_test
class collective_eager(KernelTest):
    """A message there and back by size, where all sizes, some or none are above the eager threshold (experiment S1)."""

    kernel = "collective"
    #: bytes; the library's own threshold is where its record says
    eager = parameter(["default", "1024", "65536"], type=str)
    placement = parameter(PAIRS[:-1], type=str)
    threads = 1
    quick_placements = ()
    sizes = tuple(1 << power for power in range(9, 16))

    def suit_stack(self):
        """The library's own name of the threshold."""
        family = self.require_family("eager_limit")
        self.library_settings = {} if self.eager == "default" else {family.eager_limit: self.eager}
        self.arguments = ["--operation", "pingpong", "--bytes", ",".join(map(str, self.sizes))]
        self.figures = [(f"time_{size}", "time", {"bytes": size}) for size in self.sizes]


@rfm.simple_test
class collective_barrier(KernelTest):
    """Barrier over all ranks of a placement, from a common start (experiments D5, R7)."""

    kernel = "collective"
    arguments = ["--operation", "barrier"]
    placement = parameter(["core", "l3", "numa", "socket"], type=str)
    min_ranks = 2
    threads = 1
    quick_placements = ()
    figures = [("time", "time", {})]

    @run_after("init")
    def say_operation(self):
        """The record says which operation its figure is of."""
        self.context = {**self.context, "benchmark": "collective_barrier"}
