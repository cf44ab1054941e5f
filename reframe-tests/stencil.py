"""A 3D stencil solver: ways to combine MPI and OpenMP, scaling, and temporal blocking in shared caches.

Tags: ``quick`` (part of the five-minute campaign), ``full`` (everything), ``kernels`` (our own programs).
"""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from plumbline.rfm import KernelTest, node_counts

#: launches that move much memory take longer on large nodes
MINUTES = 300.0


class JacobiTest(KernelTest):
    """What all tests of the plain solver share: its best rate and the bandwidth that limits it."""

    kernel = "jacobi"
    launch_time_limit = MINUTES
    figures = [("rate", "rate", {}), ("bandwidth", "bandwidth", {})]


@rfm.simple_test
class jacobi_modes(JacobiTest):
    """Pure MPI against vector mode and task mode by split, tasks and dynamic loop (experiment R8)."""

    #: the mode; ``pure`` uses one thread of each rank, so it belongs to ``core``
    operation = parameter(["pure", "vector", "task-split", "task-tasks", "task-dynamic"])
    placement = parameter(["none", "node", "core", "l3", "numa", "socket"])
    node_count = parameter([1, *node_counts()])
    quick_placements = ("node",)
    quick_operations = ("vector",)

    @run_after("init")
    def choose_mode(self):
        """Each array of the default grid is four times as large as all caches. Quick: one node."""
        if self.node_count > 1:
            self.tags -= {"quick"}
        self.arguments = ["--mode", self.operation, "--sweeps", "4"]


@rfm.simple_test
class jacobi_scaling(JacobiTest):
    """Strong and weak scaling of pure MPI over more and more cores (experiment R8)."""

    scaling = parameter(["strong", "weak"])
    ranks = parameter([1, 2, 4, 8, 16, 32, 64, 128])
    placement = parameter(["compact", "scatter"])
    threads = 1
    quick_placements = ()

    @run_after("init")
    def choose_size(self):
        """480^3 points as published, or 200^3 for each rank."""
        self.ranks_per_node = self.ranks
        size = ["--size", "480"] if self.scaling == "strong" else ["--size-per-rank", "200"]
        self.arguments = ["--mode", "pure", *size]


@rfm.simple_test
class jacobi_nodes(JacobiTest):
    """Strong and weak scaling over more and more nodes, a rank a core or its threads filling a node (experiment R8)."""

    scaling = parameter(["strong", "weak"])
    placement = parameter(["core", "node"])
    node_count = parameter([1, *node_counts()])
    quick_placements = ()

    @run_after("init")
    def choose_size(self):
        """480^3 points as published, or 200^3 for each rank."""
        mode = "pure" if self.placement == "core" else "vector"
        size = ["--size", "480"] if self.scaling == "strong" else ["--size-per-rank", "200"]
        self.arguments = ["--mode", mode, *size]


class TemporalTest(KernelTest):
    """Rates of the plain solver and of each scheme, and what the scheme gains in the same run."""

    kernel = "jacobi_temporal"
    placement = "compact"
    node_count = parameter([1, *node_counts()])
    launch_time_limit = MINUTES
    figures = [
        ("plain", "rate", {"mode": "plain"}),
        *(
            (f"{figure}_{mode}_{sync}", figure, {"mode": mode, "sync": sync})
            for mode in ("wavefront", "pipelined")
            for sync in ("barrier", "relaxed")
            for figure in ("rate", "speedup")
        ),
        *((f"{figure}_columns", figure, {"mode": "columns"}) for figure in ("rate", "speedup")),
    ]
    quick_placements = ()


@rfm.simple_test
class jacobi_temporal(TemporalTest):
    """Temporal blocking by teams of neighbouring cores, which should share a cache (experiment R9)."""

    threads = parameter([1, 2, 4, 8])
    arguments = ["--depth", "8", "--sweeps", "16"]


@rfm.simple_test
class jacobi_depth(TemporalTest):
    """Temporal blocking by one thread on each core, by the layers of the halo (experiment R9)."""

    threads = 1
    depth = parameter([1, 2, 4, 8])

    @run_after("init")
    def choose_depth(self):
        """As many sweeps for each depth."""
        self.arguments = ["--depth", str(self.depth), "--sweeps", "16"]
