"""A 3D stencil solver: ways to combine MPI and OpenMP, scaling, and temporal blocking in shared caches.

Tags: ``quick`` (part of the five-minute campaign), ``full`` (everything), ``scaling`` (curves), ``kernels`` (ours).
"""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from plumbline.measure.reframe import KernelTest, machines, node_counts

#: seconds of a launch at most: those that move much memory take longer on large nodes
MINUTES = 300.0


class JacobiTest(KernelTest):
    """What all tests of the plain solver share: its best rate and the bandwidth that limits it."""

    kernel = "jacobi"
    launch_time_limit = MINUTES
    figures = [("rate", "rate", {}), ("bandwidth", "bandwidth", {})]


@rfm.simple_test
class jacobi_modes(JacobiTest):
    """Pure MPI against vector mode and task mode by split, tasks, dynamic loop and nested region (experiment R8)."""

    #: the mode; ``pure`` uses one thread of each rank, so it belongs to ``core``
    operation = parameter(["pure", "vector", "task-split", "task-tasks", "task-dynamic", "task-nested"], type=str)
    placement = parameter(["none", "node", "core", "l3", "numa", "socket"], type=str)
    node_count = parameter([1, *node_counts()], type=int)
    quick_placements = ("node",)
    quick_operations = ("vector",)

    @run_after("init")
    def choose_mode(self):
        """Each array of the default grid is four times as large as all caches. Quick: one node."""
        if self.node_count > 1:
            self.tags -= {"quick"}
        self.arguments = ["--mode", self.operation, "--sweeps", "4"]


@rfm.simple_test
class jacobi_binding(JacobiTest):
    """One rank with a thread for each core, placed and as the launcher binds it by default (experiment S7).

    A launcher that is not told of threads may give the rank one core for all of them.
    """

    placement = parameter(["node", "none"], type=str)
    arguments = ["--mode", "vector", "--sweeps", "4"]
    ranks_per_node = 1
    quick_placements = ()

    @run_after("init")
    def fill_node(self):
        """The placement ``node`` has as many threads; for ``none`` nobody counts cores."""
        self.threads = self.threads_asked or max((len(one.cores) for one in machines()), default=1)


#: modes that are held against one another as cores or nodes grow in number
SCALED = ["pure", "vector", "task-split"]


class ScalingTest(JacobiTest):
    """Strong scaling of 480^3 points, as published, and weak scaling of 200^3 for each core."""

    scaling = parameter(["strong", "weak"], type=str)
    operation = parameter(SCALED, type=str)
    quick_placements = ()

    def choose_size(self, cores):
        """Arguments for the points of a rank that has ``cores``: a cube of as many times 200^3 in weak scaling."""
        weak = ["--size-per-rank", str(round(200 * cores ** (1 / 3)))]
        self.arguments = ["--mode", self.operation, *(["--size", "480"] if self.scaling == "strong" else weak)]


@rfm.simple_test
class jacobi_scaling(ScalingTest):
    """Pure MPI, vector mode and task mode on more and more cores; hybrid ranks have two threads (experiment R8)."""

    cores = parameter([1, 2, 4, 8, 16, 32, 64, 128], type=int)
    placement = parameter(["compact", "scatter"], type=str)

    @run_after("init")
    def choose_ranks(self):
        """The same cores and points for every mode; one core has no room for a hybrid rank. Scaling: pure, strong."""
        if (self.scaling, self.operation) == ("strong", "pure"):
            self.tags |= {"scaling"}
        self.threads = 1 if self.operation == "pure" else self.threads_asked or 2
        self.ranks_per_node = max(self.cores // self.threads, 1)
        self.choose_size(self.threads)

    @run_after("setup")
    def require_cores(self):
        """Ranks fill the cores."""
        why = f"{self.operation}: ranks of {self.threads} threads do not fill {self.cores} core(s)"
        self.skip_if(self.cores % self.threads != 0, why)


@rfm.simple_test
class jacobi_nodes(ScalingTest):
    """The solver on more and more nodes: a rank on each core, or one whose threads fill a node (experiment R8)."""

    node_count = parameter([1, *node_counts()], type=int)

    @run_after("init")
    def choose_placement(self):
        """The same points for a node, whichever way it is filled."""
        self.placement = "core" if self.operation == "pure" else "node"

    @run_after("setup")
    def choose_points(self):
        """In weak scaling the rank of a hybrid node has the points of all its cores."""
        self.choose_size(len(self.plan.ranks[0].cpus))


class TemporalTest(KernelTest):
    """Rates of the plain solver and of each scheme, and what the scheme gains in the same run.

    A scheme with relaxed synchronisation has a figure for each looseness, the least and most tiles (d_l, d_u) between
    two threads, and one for the best of them. ``caches`` are the distances that follow from the cache sizes; where
    they are among the others, that figure does not exist.
    """

    kernel = "jacobi_temporal"
    placement = "compact"
    node_count = parameter([1, *node_counts()], type=int)
    launch_time_limit = MINUTES
    looseness = ((1, 1), (1, 4))
    quick_placements = ()

    def choose_depth(self, depth):
        """Arguments and figures for passes of ``depth`` sweeps.

        Launches are repeated, so each does one solution of each kind: there are ten, on grids of four times the
        caches, and the kernel's own three of each would take three times as long.
        """
        self.arguments = ["--depth", str(depth), "--sweeps", "16", "--repetitions", "1"]
        self.figures = [("plain", "rate", {"mode": "plain"})]
        for figure in ("rate", "speedup"):
            for mode in ("wavefront", "pipelined"):
                where = {"mode": mode, "depth": depth}
                relaxed = {**where, "sync": "relaxed"}
                self.figures += [
                    (f"{figure}_{mode}_barrier", figure, {**where, "sync": "barrier"}),
                    (f"{figure}_{mode}_relaxed", figure, relaxed),
                    *(
                        (f"{figure}_{mode}_{lower}_{upper}", figure, {**relaxed, "lower": lower, "upper": upper})
                        for lower, upper in self.looseness
                    ),
                    (f"{figure}_{mode}_caches", figure, {**relaxed, "distances": "caches"}),
                ]
            self.figures.append((f"{figure}_columns", figure, {"mode": "columns", "depth": depth}))
        self.optional_figures = tuple(name for name, _, _ in self.figures if name.endswith("_caches"))


@rfm.simple_test
class jacobi_temporal(TemporalTest):
    """Temporal blocking by teams of neighbouring cores, which should share a cache (experiment R9)."""

    threads = parameter([1, 2, 4, 8], type=int)

    @run_after("init")
    def take_depth(self):
        """Eight sweeps a pass."""
        self.choose_depth(8)


@rfm.simple_test
class jacobi_depth(TemporalTest):
    """Temporal blocking by one thread on each core, by the layers of the halo (experiment R9)."""

    threads = 1
    depth = parameter([1, 2, 4, 8], type=int)

    @run_after("init")
    def take_depth(self):
        """Passes of ``depth`` sweeps."""
        self.choose_depth(self.depth)


@rfm.simple_test
class jacobi_halo_plan(KernelTest):
    """What several layers of halo gain between ranks that need not exist: a model (experiment R9)."""

    kernel = "halo_layers"
    mpi_matters = False
    placement = "core"
    ranks_per_node = 1
    threads = 1
    quick_placements = ()
    figures = [
        (f"{figure}_{edge}_{layers}", figure, {"edge": edge, "layers": layers})
        for figure in ("gain", "gain_bandwidth")
        for edge in (8, 16, 32, 64, 128, 256)
        for layers in (1, 2, 4, 8, 16, 32)
        if layers <= edge
    ]


@rfm.simple_test
class jacobi_looseness(KernelTest):
    """Temporal blocking by how far threads may drift apart: d_l is 1 tile, d_u more and more (experiment R9)."""

    kernel = "jacobi_temporal"
    placement = "compact"
    threads = parameter([2, 4, 8], type=int)
    scheme = parameter(["wavefront", "pipelined"], type=str)
    launch_time_limit = MINUTES
    quick_placements = ()
    #: d_u, the most tiles between two threads
    upper = (1, 2, 4, 8, 16, 32)

    @run_after("init")
    def choose_distances(self):
        """All threads wait for all after each tile, or each for its neighbours only."""
        lists = ["--lower", ",".join("1" for _ in self.upper), "--upper", ",".join(map(str, self.upper))]
        self.arguments = ["--scheme", self.scheme, "--sweeps", "16", "--repetitions", "1", *lists]
        relaxed = {"mode": self.scheme, "sync": "relaxed", "lower": 1}
        self.figures = [
            (f"{figure}_{name}", figure, where)
            for figure in ("rate", "speedup")
            for name, where in (
                ("barrier", {"mode": self.scheme, "sync": "barrier"}),
                *((str(upper), {**relaxed, "upper": upper}) for upper in self.upper),
            )
        ]
