"""Every pair of cores or nodes, and exchanges that must not wait for each other.

Tags: ``quick`` (part of the five-minute campaign), ``full`` (everything), ``kernels`` (our own programs).
"""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from plumbline.measure.reframe import KernelTest, machines, node_counts

from .placements import GROUPS

WHATS = ("latency", "bandwidth")


class PairsTest(KernelTest):
    """Latency and bandwidth of all pairs: median, and the pair that is worst."""

    kernel = "pairs"
    min_ranks = 2
    threads = 1
    figures = [
        (f"{which}_{what}", f"{which}_{what}", {"class": "all"}) for what in WHATS for which in ("class", "worst")
    ]
    quick_operations = ("tournament",)
    launch_time_limit = 900.0

    @run_after("init")
    def choose_mode(self):
        """2 MiB as published."""
        self.arguments = ["--mode", self.operation, "--bandwidth-bytes", "2M"]


#: distances of two cores of a node
NEAR = ("smt", "l2", "l3", "numa", "socket", "xsocket")
#: the cores that were published with core 0, as far as there are so many
CORES = max((len(item.cores) for item in machines()), default=0)
PARTNERS = [other for other in (1, 5, 9, 11, 15, 17, 19) if other < CORES]


@rfm.simple_test
class pairs_cores(PairsTest):
    """Every pair of cores of a node, one at a time or half of the cores with the other half (experiments U2, R6).

    By distance the median of its pairs; and core 0 with those of :data:`PARTNERS` that there are.
    """

    operation = parameter(["tournament", "serial"], type=str)
    build = parameter(["stack", "abi"], type=str)
    placement = "core"
    figures = [
        *PairsTest.figures,
        *((f"{what}_{near}", f"class_{what}", {"class": f"pair:{near}"}) for what in WHATS for near in NEAR),
        *((f"{what}_0_{other}", what, {"first": 0, "second": other}) for what in WHATS for other in PARTNERS),
    ]
    #: a machine has some distances only
    optional_figures = tuple(name for name, _, _ in figures[len(PairsTest.figures) :])


@rfm.simple_test
class pairs_nodes(PairsTest):
    """Every pair of nodes, a rank on each (experiments U3, R6)."""

    operation = parameter(["tournament", "serial"], type=str)
    node_count = parameter(node_counts(), type=int)
    placement = "node"
    ranks_per_node = 1


class SaturationTest(KernelTest):
    """Bandwidth of one sender and the best of all numbers of them, and how many are needed."""

    kernel = "saturation"
    min_ranks = 2
    quick_placements = ()
    node_count = parameter([1, *node_counts()], type=int)
    figures = [(name, name, {"bytes": 1 << 20}) for name in ("best", "one", "needed")]
    #: over a slow network a window of all ranks takes seconds
    launch_time_limit = 300.0


@rfm.simple_test
class saturation_ranks(SaturationTest):
    """More and more ranks of a node send; traffic within and between nodes at once (RRZE: saturating the network)."""

    placement = "core"
    threads = 1
    figures = [*SaturationTest.figures, ("overlap", "overlap", {"bytes": 1 << 20})]
    #: between nodes only, and where they have an even number of ranks
    optional_figures = ("overlap",)


@rfm.simple_test
class saturation_threads(SaturationTest):
    """More and more threads of a rank send: a rank that fills its node, or two on one (RRZE: saturation)."""

    arguments = ["--by", "threads"]

    @run_after("init")
    def place(self):
        """Two ranks that share a node's cores, or a rank on each node."""
        self.placement, self.ranks_per_node = ("compact", 2) if self.node_count == 1 else ("node", 1)


@rfm.simple_test
class deadlock_fixed(KernelTest):
    """A ring exchange without the deadlock: in order, by Sendrecv, non-blocking (experiment D4)."""

    kernel = "deadlock"
    operation = parameter(["ring", "fixed", "nonblocking"], type=str)
    placement = parameter(GROUPS, type=str)
    quick_operations = ("fixed",)
    min_ranks = 2
    threads = 1
    figures = [("time", "time", {})]

    @run_after("init")
    def choose_mode(self):
        """The deadlocking one is not a benchmark: tests of the harness run it."""
        self.arguments = ["--mode", self.operation]
