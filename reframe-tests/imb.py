"""Intel MPI Benchmarks: point-to-point by distance of the ranks, collectives by placement, -NBC, -RMA, -P2P and -MT.

Iteration counts depend on the message size only. IMB's own policy also gives fewer iterations to a size that takes
longer than 10 s; the limit is set to 1000 s, so that this does not apply.
Tags: ``quick`` (part of the five-minute campaign), ``full`` (everything), ``imb``.
"""

import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from plumbline.measure.reframe import PlumbTest, node_counts
from plumbline.stacks.manifest import imb_arguments

from .placements import GPU_PAIRS, GROUPS, PAIRS, PUBLISHED_PAIRS, QUICK_PAIRS, SIZES

#: operations whose bandwidth adds up what goes both ways
BOTH_WAYS = (
    *("Sendrecv", "Exchange", "Biband", "Bidir_put", "Bidir_get", "Birandom", "Corandom", "SendRecv_Replace"),
    "Stencil2D",
)


class ImbTest(PlumbTest):
    """What all IMB tests share. A test names its ``operation``."""

    benchmark = "imb-mpi1"
    parser = "imb"
    tags = {"imb", "full"}
    min_ranks = 2
    #: largest message of the curve in bytes
    largest = variable(int, value=1 << 22)
    #: messages per size, volume in MB
    count = variable(str, value="2000,80")

    @run_after("init")
    def compose(self):
        """All ranks take part (-npmin); sizes 0, 1, 2, 4, … up to the largest."""
        self.arguments = imb_arguments(self.operation, self.largest, self.count)
        self.context = {"benchmark": self.operation, "last_bytes": self.largest}
        if self.operation in BOTH_WAYS:
            self.context |= {"directions": 2}


@rfm.simple_test
class imb_pair(ImbTest):
    """Two ranks by their distance: time of 8 bytes and best bandwidth (experiments R6, U2, U3)."""

    operation = parameter(["PingPong", "PingPing", "Sendrecv", "Exchange"], type=str)
    placement = parameter(PAIRS, type=str)
    quick_placements = QUICK_PAIRS
    quick_operations = ("PingPong", "Exchange")

    @run_after("init")
    def choose_figures(self):
        """PingPong and PingPing print one time, Sendrecv and Exchange minimum, maximum and average over the ranks."""
        time = "latency" if self.operation.startswith("Ping") else "time_avg"
        self.figures = [("time_8B", time, {"bytes": 8}), ("bandwidth", "bandwidth", {})]


@rfm.simple_test
class imb_sizes(ImbTest):
    """PingPong by message size and distance of the two ranks (experiments R6, U2, U3: the curves)."""

    operation = "PingPong"
    placement = parameter([*PAIRS, *PUBLISHED_PAIRS], type=str)
    quick_placements = ()
    figures = [
        *((f"time_{size}", "latency", {"bytes": size}) for size in (1, 16, 128, 1024, 2048)),
        *((f"bandwidth_{size}", "bandwidth", {"bytes": size}) for size in sorted({*SIZES, 1 << 17, 1 << 19, 1 << 21})),
    ]


@rfm.simple_test
class imb_window(ImbTest):
    """Windows of 64 messages one way or both ways: best bandwidth and rate of 8-byte messages (experiment R6)."""

    operation = parameter(["Uniband", "Biband"], type=str)
    placement = parameter(PAIRS, type=str)
    quick_placements = QUICK_PAIRS
    quick_operations = ("Uniband",)
    figures = [("bandwidth", "bandwidth", {}), ("rate_8B", "message_rate", {"bytes": 8})]
    largest = 1 << 18
    count = "50,2"


@rfm.simple_test
class imb_collective(ImbTest):
    """All ranks of a placement, one thread each: time of 8 bytes and of the largest message (experiment D5)."""

    operation = parameter(
        [
            *("Bcast", "Allreduce", "Reduce", "Allgather", "Alltoall"),
            *("Allgatherv", "Alltoallv", "Gather", "Gatherv", "Scatter", "Scatterv"),
            # the last is the library's sum, without messages
            *("Reduce_scatter", "Reduce_scatter_block", "Reduce_local"),
        ],
        type=str,
    )
    placement = parameter(GROUPS, type=str)
    quick_operations = ("Bcast", "Allreduce", "Alltoall")
    threads = 1
    largest = 1 << 20
    figures = [("time_8B", "time_avg", {"bytes": 8}), ("time_1MiB", "time_avg", {"bytes": 1 << 20})]


@rfm.simple_test
class imb_barrier(ImbTest):
    """Barrier over all ranks of a placement (experiments D5, R7)."""

    operation = "Barrier"
    placement = parameter(GROUPS, type=str)
    threads = 1
    figures = [("time", "time_avg", {})]

    @run_after("init")
    def no_sizes(self):
        """Barrier's table has no message sizes."""
        self.context = {"benchmark": self.operation}


@rfm.simple_test
class imb_nodes(ImbTest):
    """Collectives over nodes, a rank a core or a node: time of 8 bytes and of the largest message (experiment D5)."""

    operation = parameter(["Bcast", "Allreduce", "Alltoall"], type=str)
    placement = parameter(["core", "node", "roundrobin"], type=str)
    node_count = parameter(node_counts(), type=int)
    threads = 1
    quick_placements = ()
    largest = 1 << 20
    figures = [("time_8B", "time_avg", {"bytes": 8}), ("time_1MiB", "time_avg", {"bytes": 1 << 20})]


@rfm.simple_test
class imb_nbc(ImbTest):
    """Non-blocking collectives beside computation: how much of the communication is hidden (experiment R5)."""

    benchmark = "imb-nbc"
    operation = parameter(
        [
            *("Ibcast", "Iallreduce", "Ireduce", "Iallgather", "Ialltoall", "Ibarrier"),
            *("Iallgatherv", "Ialltoallv", "Igather", "Igatherv", "Iscatter", "Iscatterv", "Ireduce_scatter"),
        ],
        type=str,
    )
    placement = parameter(GROUPS, type=str)
    threads = 1
    quick_placements = ()
    largest = 1 << 20

    @run_after("init")
    def choose_figures(self):
        """Ibarrier's table has no message sizes."""
        where = {} if self.operation == "Ibarrier" else {"bytes": self.largest}
        self.figures = [("overlap", "overlap", where), ("time", "time_pure", where)]
        if self.operation == "Ibarrier":
            self.context = {"benchmark": self.operation}


@rfm.simple_test
class imb_rma(ImbTest):
    """One-sided transfers between two ranks by their distance (experiment R6 for put and get)."""

    benchmark = "imb-rma"
    operation = parameter(
        ["Unidir_put", "Unidir_get", "Bidir_put", "Bidir_get", "Accumulate", "Get_accumulate"], type=str
    )
    placement = parameter(PAIRS, type=str)
    quick_placements = ()
    figures = [
        ("time_8B", "latency", {"bytes": 8, "mode": "non-aggregate"}),
        ("bandwidth", "bandwidth", {"mode": "non-aggregate"}),
    ]


@rfm.simple_test
class imb_rma_group(ImbTest):
    """One-sided transfers among all ranks of a placement: one rank to all, all to all, and with the neighbours."""

    benchmark = "imb-rma"
    operation = parameter(
        ["One_put_all", "One_get_all", "All_put_all", "All_get_all", "Exchange_put", "Exchange_get"], type=str
    )
    placement = parameter(GROUPS, type=str)
    threads = 1
    quick_placements = ()
    largest = 1 << 20

    @run_after("init")
    def choose_figures(self):
        """Where one rank is timed the table has one time, else minimum, maximum and average over the ranks."""
        time = "latency" if self.operation.startswith("One") else "time_avg"
        self.figures = [("time_8B", time, {"bytes": 8}), ("time_1MiB", time, {"bytes": self.largest})]


@rfm.simple_test
class imb_passive(ImbTest):
    """Whether a put ends without help: its time while the target waits in a barrier, and while it computes."""

    benchmark = "imb-rma"
    operation = "Truly_passive_put"
    placement = parameter(PAIRS, type=str)
    quick_placements = ()
    figures = [
        ("time_8B", "time_pure", {"bytes": 8}),
        ("time_8B_computing", "time_overall", {"bytes": 8}),
        ("time_256KiB_computing", "time_overall", {"bytes": 1 << 18}),
    ]
    largest = 1 << 18
    count = "100,4"


@rfm.simple_test
class imb_atomic(ImbTest):
    """Atomic operations of one rank on the memory of another, by their distance."""

    benchmark = "imb-rma"
    operation = parameter(["Fetch_and_op", "Compare_and_swap"], type=str)
    placement = parameter(PAIRS, type=str)
    quick_placements = ()
    figures = [("time", "latency", {"mode": "non-aggregate"})]

    @run_after("init")
    def no_sizes(self):
        """The size of the operand is fixed in the program."""
        self.context = {"benchmark": self.operation}


@rfm.simple_test
class imb_p2p(ImbTest):
    """Messages between pairs that change at random, or in place: bandwidth, and rate of 8-byte messages."""

    benchmark = "imb-p2p"
    operation = parameter(["Unirandom", "Birandom", "Corandom", "SendRecv_Replace"], type=str)
    placement = parameter(GROUPS, type=str)
    threads = 1
    quick_placements = ()
    figures = [("bandwidth", "bandwidth", {}), ("rate_8B", "message_rate", {"bytes": 8})]
    largest = 1 << 20


@rfm.simple_test
class imb_stencil(imb_p2p):
    """Exchange of each rank with its four neighbours in a plane (Stencil3D takes too odd numbers of ranks)."""

    operation = parameter(["Stencil2D"], type=str, inherit_params=False)

    @run_after("setup")
    def require_plane(self):
        """IMB makes a plane of at least 2 x 2 of all ranks, which needs a divisor."""
        ranks = self.nodes * len(self.plan.ranks)
        prime = all(ranks % divisor for divisor in range(2, ranks))
        self.skip_if(prime, f"{self.placement}: {ranks} ranks make no plane of at least 2 x 2")


@rfm.simple_test
class imb_mt(ImbTest):
    """Multi-threaded point-to-point, ranks of one thread or filling a NUMA node or package (experiment T5)."""

    benchmark = "imb-mt"
    operation = parameter(["PingPongMT", "SendRecvMT", "ExchangeMT", "UniBandMT", "BiBandMT"], type=str)
    placement = parameter(["core", "numa", "socket"], type=str)
    quick_placements = ()
    figures = [("bandwidth", "bandwidth", {})]


@rfm.simple_test
class imb_device(ImbTest):
    """Two ranks, each with a GPU, or both with the same: messages from GPU or pinned host memory (experiment D7)."""

    benchmark = "imb-mpi1-gpu"
    operation = parameter(["PingPong", "Sendrecv"], type=str)
    placement = parameter(GPU_PAIRS, type=str)
    buffers = parameter(["device", "host"], type=str)
    ranks_per_node = 2
    threads = 1
    quick_placements = ()
    benchmark_environment = {"I_MPI_OFFLOAD": "1"}

    @run_after("init")
    def choose_figures(self):
        """Times of three sizes, which show from where on the two kinds of buffers differ."""
        self.arguments += ["-mem_alloc_type", self.buffers]
        time = "latency" if self.operation == "PingPong" else "time_avg"
        sizes = (("8B", 8), ("64KiB", 1 << 16), ("4MiB", 1 << 22))
        self.figures = [(f"time_{name}", time, {"bytes": size}) for name, size in sizes]
