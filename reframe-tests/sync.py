"""What threads of a rank pay for waiting on each other, and for sharing cache lines.

Tags: ``quick`` (part of the five-minute campaign), ``full`` (everything), ``scaling`` (curves), ``kernels`` (ours).
"""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from plumbline.host import machine
from plumbline.measure.reframe import KernelTest, machines

from .placements import PAIRS

#: two threads of one rank, at every distance that a node has
THREAD_PAIRS = PAIRS[:-1]
KINDS = ("spin", "openmp", "pthread", "dissemination", "hierarchical")


class BarrierTest(KernelTest):
    """What the barrier tests share: a time of each kind, and the same in cycles where the counter counts them."""

    kernel = "barrier"
    mpi_matters = False
    ranks_per_node = 1
    optional_figures = tuple(f"{kind}_cycles" for kind in KINDS)
    quick_placements = ()

    @run_after("init")
    def choose_team(self):
        """All threads of the rank; without that, the kernel also times smaller teams."""
        self.arguments = [*self.arguments, "--threads", str(self.threads)]
        self.figures = [(kind, "time", {"kernel": kind}) for kind in KINDS]
        self.figures += [(f"{kind}_cycles", "cycles", {"kernel": kind}) for kind in KINDS]


@rfm.simple_test
class barrier_pair(BarrierTest):
    """Two threads by their distance (experiment R7: where they sit decides, and the kind of barrier)."""

    placement = parameter(THREAD_PAIRS, type=str)
    threads = 2
    quick_placements = tuple(THREAD_PAIRS[2:])


@rfm.simple_test
class barrier_threads(BarrierTest):
    """More and more threads, close together and far apart."""

    tags = {"kernels", "full", "scaling"}
    placement = parameter(["compact", "spread"], type=str)
    threads = parameter([count for count in machine.node_threads(machines()) if count > 1] or [2], type=int)
    arguments = ["--samples", "50"]


@rfm.simple_test
class barrier_runtime(BarrierTest):
    """One program on gcc's OpenMP library and on that of Intel and LLVM, where the stack has it (experiment R7)."""

    runtime = parameter(["libgomp", "libiomp5"], type=str)
    placement = parameter(THREAD_PAIRS, type=str)
    threads = 2
    arguments = ["--kernel", "openmp"]
    optional_figures = ("cycles",)

    @run_after("init")
    def choose_library(self):
        """One build for each library; a figure counts only if that library ran."""
        if self.runtime == "libiomp5":
            self.benchmark = "barrier_iomp5"
        self.figures = [(metric, metric, {"runtime": self.runtime}) for metric in ("time", "cycles")]


@rfm.simple_test
class sharing_pair(KernelTest):
    """Counters of two threads on one cache line against lines of their own, by distance (experiment D3)."""

    kernel = "false_sharing"
    mpi_matters = False
    placement = parameter(THREAD_PAIRS, type=str)
    threads = 2
    ranks_per_node = 1
    figures = [
        ("shared", "time", {"mode": "atomic", "padding": 8}),
        ("aligned", "time", {"mode": "atomic", "padding": 64}),
        ("padded", "time", {"mode": "atomic", "padding": 256}),
        ("plain_shared", "time", {"mode": "plain", "padding": 8}),
        ("plain_aligned", "time", {"mode": "plain", "padding": 64}),
        ("plain_padded", "time", {"mode": "plain", "padding": 256}),
        ("plain_own", "time", {"mode": "own", "padding": 8}),
        ("ratio", "ratio", {"mode": "atomic", "padding": 8}),
        ("ratio_plain", "ratio", {"mode": "plain", "padding": 8}),
    ]
    quick_placements = tuple(THREAD_PAIRS[2:])


@rfm.simple_test
class loop_schedules(KernelTest):
    """Static, dynamic and guided loops; under ``none`` two ranks have a thread for each core, each (after SDSC).

    That is what the default thread count gives to the ranks of a node. The record says that it oversubscribes.
    """

    kernel = "loop_schedule"
    mpi_matters = False
    placement = parameter(["node", "none"], type=str)
    figures = [
        (f"{schedule}_{chunk}_{load}", "ratio", {"schedule": schedule, "chunk": chunk, "load": load})
        for load in ("even", "ramp")
        for schedule, chunk in (("static", 0), ("dynamic", 1), ("dynamic", 64), ("guided", 1))
    ]
    quick_placements = ()
    #: threads that share CPUs wait for time slices in each of some hundred loops
    launch_time_limit = 300.0

    @run_after("init")
    def oversubscribe(self):
        """More threads than cores, on any partition."""
        if self.placement == "none":
            self.ranks_per_node, self.threads = 2, max((len(item.cores) for item in machines()), default=1)
