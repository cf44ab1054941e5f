"""Which rank sits where: traffic between nodes and its time, and two kernels whose answers are known.

Tags: ``quick`` (part of the five-minute campaign), ``full`` (everything), ``kernels`` (our own programs).
"""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from plumbline.measure.reframe import KernelTest, machines, node_counts

from .placements import GROUPS


class MapTest(KernelTest):
    """What tests of maps of ranks share: the maps of the launcher, on one node and on several."""

    placement = parameter(["compact", "roundrobin"], type=str)
    node_count = parameter([1, *node_counts()], type=int)
    #: over a slow network the losing map of ranks takes more than a minute
    launch_time_limit = 300.0
    min_ranks = 2
    threads = 1
    quick_placements = ()


@rfm.simple_test
class rank_ring(MapTest):
    """A ring of Sendrecv along the columns of a 2D grid of ranks, by placement and by rank map (experiment S4)."""

    kernel = "rank_ring"
    arguments = ["--bytes", "512K"]
    figures = [
        (f"{figure}_{name}", figure, {"map": word})
        for figure in ("sendrecv", "allreduce", "in_mpi", "between_nodes")
        for name, word in (("given", "given"), ("node_aware", "node-aware"))
    ]

    @run_after("init")
    def take_published_ranks(self):
        """32 ranks on 4 nodes, where nodes have room for 8; else ranks fill the nodes."""
        if self.node_count == 4 and min((len(one.cores) for one in machines()), default=0) >= 8:
            self.ranks_per_node = 8


@rfm.simple_test
class rank_map(MapTest):
    """Halo bytes between nodes and halo time of a stencil code, by rank-to-subdomain map (experiment R4)."""

    kernel = "rank_map"
    dimensions = parameter([2, 3], type=int)
    figures = [
        (f"{figure}_{name}", figure, {"map": word})
        for figure in ("time", "between_nodes")
        for name, word in (("row_major", "row-major"), ("cart", "cart"), ("node_aware", "node-aware"))
    ]

    @run_after("init")
    def ask_for_dimensions(self):
        """The grid of ranks in 2D or 3D."""
        self.arguments = ["--dimensions", str(self.dimensions)]


@rfm.simple_test
class rank_map_plan(KernelTest):
    """Halo bytes between nodes counted for ranks that need not exist: the curve of theory (experiment R4)."""

    kernel = "rank_map"
    mpi_matters = False
    placement = "core"
    ranks_per_node = 1
    threads = 1
    #: the ranks of each node that is counted
    each_node = parameter([4, 8], type=int)
    ranks = parameter([16, 32, 64, 128, 256, 512], type=int)
    quick_placements = ()
    figures = [
        (f"{figure}_{name}", figure, {"map": word})
        for figure in ("between_nodes", "busiest_node")
        for name, word in (("row_major", "row-major"), ("node_aware", "node-aware"))
    ]

    @run_after("init")
    def ask_for_plan(self):
        """Count, and exchange nothing."""
        self.arguments = ["--plan", str(self.ranks), "--ranks-per-node", str(self.each_node)]


@rfm.simple_test
class pi_sum(KernelTest):
    """Pi by ranks and threads: the simplest hybrid code, its answer known (experiment D1)."""

    kernel = "pi"
    arguments = ["--intervals", "10M"]
    placement = parameter(GROUPS, type=str)
    build = parameter(["stack", "abi"], type=str)
    quick_placements = ("core",)
    figures = [("time", "time", {})]


@rfm.simple_test
class heat1d_steps(KernelTest):
    """The 1D heat equation, its published values to 15 digits (experiment D2); ``none``: three ranks, as published."""

    kernel = "heat1d"
    placement = parameter(["core", "node", "none"], type=str)
    quick_placements = ("core",)
    figures = [("time", "time", {})]

    @run_after("init")
    def take_published_ranks(self):
        """Three ranks of one thread, on as many cores as the launcher gives them."""
        if self.placement == "none":
            self.ranks_per_node, self.threads = 3, 1
