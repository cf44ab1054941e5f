"""OSU Micro-Benchmarks: point-to-point by the distance of the two ranks, collectives by placement.

The programs' own defaults for sizes and iterations are kept, so that the C suite and its port to Python run from the
same lines. A stack without OSU's programs has the port, whose variants have the parameter ``program=mpi4py``.
Tags: ``quick`` (part of the five-minute campaign), ``full`` (everything), ``osu``.
"""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from plumbline.measure.reframe import PlumbTest, node_counts
from plumbline.records.variant import of_program

from .placements import GPU_PAIRS, GROUPS, PAIRS, PUBLISHED_GPU_PAIRS, QUICK_PAIRS


class OsuTest(PlumbTest):
    """What all OSU tests share. A test names its ``operation``."""

    parser = "osu"
    tags = {"osu", "full"}
    min_ranks = 2

    @run_after("init")
    def compose(self):
        """The manifest has every OSU program under its own name."""
        self.benchmark = f"osu_{self.operation}"
        self.context = {"benchmark": self.benchmark, "last_bytes": self.last_bytes}

    def variant(self):
        """Named by its program where that is the port."""
        versions = self.stack_facts["benchmarks"] or {}
        return of_program(super().variant(), versions.get(self.benchmark, ""))


class TransferTest(OsuTest):
    """Time of 8 bytes and of 4 MiB, or the best bandwidth, which of both ways is their sum."""

    last_bytes = 1 << 22

    @run_after("init")
    def choose_figures(self):
        """What the operation's name says that it measures."""
        self.context = {**self.context, "directions": 2 if "bibw" in self.operation else 1}
        times = [("time_8B", "latency", {"bytes": 8}), ("time_4MiB", "latency", {"bytes": 1 << 22})]
        self.figures = times if "latency" in self.operation else [("bandwidth", "bandwidth", {})]


@rfm.simple_test
class osu_pair(TransferTest):
    """Two ranks by their distance: latency, bandwidth one way and both ways (experiments R6, U2, U3, D7)."""

    operation = parameter(["latency", "bw", "bibw"], type=str)
    placement = parameter(PAIRS, type=str)
    quick_placements = QUICK_PAIRS


@rfm.simple_test
class osu_device(TransferTest):
    """Two ranks, each with a GPU, or both with the same: messages from and to GPU and host (experiment D7).

    ``H H`` on the same cores is what messages take that stay on the host. A C suite built for the GPUs is needed.
    """

    operation = parameter(["latency", "bw", "bibw"], type=str)
    placement = parameter([*GPU_PAIRS, *PUBLISHED_GPU_PAIRS], type=str)
    buffers = parameter(["D D", "D H", "H D", "H H"], type=str)
    on_devices = True
    ranks_per_node = 2
    threads = 1
    quick_placements = ()

    @run_after("init")
    def name_buffers(self):
        """The parser compares the buffers of the output with those asked for."""
        self.context = {**self.context, "buffers": self.buffers}

    def suit_stack(self):
        """Buffers are those of the GPUs that the programs were built for."""
        self.arguments = ["-d", self.accelerator, *self.buffers.split()]


@rfm.simple_test
class osu_device_nodes(osu_device):
    """Two ranks on two nodes, each with the same GPU of its node, near to it or on another socket (experiment D7)."""

    placement = parameter(["gpu:0", "gpu:far:0", "gpu:2", "gpu:far:2"], type=str, inherit_params=False)
    node_count = parameter(node_counts()[:1], type=int)
    ranks_per_node = 1
    launch_time_limit = 300.0


@rfm.simple_test
class osu_multi_pair(OsuTest):
    """Half of the ranks with the other half, all at once (experiment R6 under load)."""

    operation = "multi_lat"
    placement = parameter(GROUPS, type=str)
    quick_placements = ()
    threads = 1
    last_bytes = 1 << 22
    figures = [("time_8B", "latency", {"bytes": 8}), ("time_4MiB", "latency", {"bytes": 1 << 22})]


@rfm.simple_test
class osu_message_rate(OsuTest):
    """Half of the ranks send windows of messages to the other half: bandwidth and messages a second (RRZE: saturation).

    A program of the C suite; the kernel ``saturation`` says how many ranks or threads it takes.
    """

    operation = "mbw_mr"
    placement = parameter(GROUPS, type=str)
    quick_placements = ()
    threads = 1
    last_bytes = 1 << 22
    figures = [("bandwidth", "bandwidth", {}), ("rate_8B", "message_rate", {"bytes": 8})]


@rfm.simple_test
class osu_collective(OsuTest):
    """All ranks of a placement, one thread each: time of 8 bytes and of the largest message (experiment D5).

    The port to Python has no reductions: they are skipped with it (:class:`collective_start` has them).
    """

    operation = parameter(
        ["bcast", "allgather", "alltoall", "alltoallv", "gather", "scatter", "reduce", "allreduce", "reduce_scatter"],
        type=str,
    )
    placement = parameter(GROUPS, type=str)
    quick_operations = ("bcast", "allgather", "alltoall")
    threads = 1
    last_bytes = 1 << 20
    figures = [("time_8B", "latency", {"bytes": 8}), ("time_1MiB", "latency", {"bytes": 1 << 20})]


@rfm.simple_test
class osu_nodes(OsuTest):
    """Collectives over nodes, a rank a core or a node: time of 8 bytes and of the largest message (experiment D5)."""

    operation = parameter(["bcast", "allgather", "alltoall"], type=str)
    placement = parameter(["core", "node", "roundrobin"], type=str)
    node_count = parameter(node_counts(), type=int)
    threads = 1
    quick_placements = ()
    last_bytes = 1 << 20
    figures = [("time_8B", "latency", {"bytes": 8}), ("time_1MiB", "latency", {"bytes": 1 << 20})]


@rfm.simple_test
class osu_barrier(OsuTest):
    """Barrier over all ranks of a placement (experiments D5, R7)."""

    operation = "barrier"
    placement = parameter(GROUPS, type=str)
    threads = 1
    last_bytes = 0
    figures = [("time", "latency", {})]


@rfm.simple_test
class osu_persistent(TransferTest):
    """Two ranks that start one persistent request again and again (experiment R6; a program of the C suite)."""

    operation = parameter(["latency_persistent", "bw_persistent", "bibw_persistent"], type=str)
    placement = parameter(PAIRS, type=str)
    quick_placements = ()


@rfm.simple_test
class osu_one_sided(TransferTest):
    """One-sided transfers and atomic operations of two ranks by their distance (experiment R6; of the C suite)."""

    operation = parameter(
        ["put_latency", "get_latency", "acc_latency", "get_acc_latency", "put_bw", "get_bw", "put_bibw"], type=str
    )
    placement = parameter(PAIRS, type=str)
    quick_placements = ()


@rfm.simple_test
class osu_atomic(OsuTest):
    """One operand fetched and changed in the other rank's window, by distance (a program of the C suite)."""

    operation = parameter(["fop_latency", "cas_latency"], type=str)
    placement = parameter(PAIRS, type=str)
    quick_placements = ()
    last_bytes = 0
    figures = [("time", "latency", {})]


@rfm.simple_test
class osu_overlap(OsuTest):
    """Non-blocking collectives beside computation: how much is hidden (experiment R5; programs of the C suite)."""

    operation = parameter(
        ["ibcast", "igather", "iscatter", "iallgather", "ialltoall", "ialltoallv", "ireduce", "iallreduce", "ibarrier"],
        type=str,
    )
    placement = parameter(GROUPS, type=str)
    quick_placements = ()
    threads = 1
    last_bytes = 1 << 20

    @run_after("init")
    def choose_figures(self):
        """Of the largest message; ibarrier's table has no message sizes."""
        where = {} if self.operation == "ibarrier" else {"bytes": self.last_bytes}
        self.figures = [("overlap", "overlap", where), ("time", "time_pure", where)]


@rfm.simple_test
class osu_neighbour(OsuTest):
    """Exchanges of each rank with those beside it in a ring, from three ranks on (experiment S4; of the C suite)."""

    operation = parameter(
        ["neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv"], type=str
    )
    placement = parameter(GROUPS, type=str)
    quick_placements = ()
    threads = 1
    min_ranks = 3
    last_bytes = 1 << 20
    figures = [("time_8B", "latency", {"bytes": 8}), ("time_1MiB", "latency", {"bytes": 1 << 20})]


@rfm.simple_test
class osu_start(OsuTest):
    """Time of MPI_Init by the number of ranks, in whole milliseconds (a program of the C suite)."""

    operation = "init"
    placement = parameter(GROUPS, type=str)
    quick_placements = ()
    threads = 1
    last_bytes = 0
    figures = [("time", "time_avg", {}), ("time_longest", "time_max", {})]
