"""Every pair of cores or nodes, and exchanges that must not wait for each other.

Tags: ``quick`` (part of the five-minute campaign), ``full`` (everything).
"""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from plumbline.rfm import KernelTest, node_counts

from .placements import GROUPS


class PairsTest(KernelTest):
    """Latency and bandwidth of all pairs: median, and the pair that is worst."""

    kernel = "pairs"
    min_ranks = 2
    threads = 1
    figures = [
        (f"{which}_{what}", f"{which}_{what}", {"class": "all"})
        for what in ("latency", "bandwidth")
        for which in ("class", "worst")
    ]
    quick_operations = ("tournament",)
    launch_time_limit = 900.0

    @run_after("init")
    def choose_mode(self):
        """2 MiB as published. Few repetitions of them: a node with many cores has thousands of pairs."""
        self.arguments = ["--mode", self.operation, "--bandwidth-bytes", "2M", "--bandwidth-trips", "2"]
        self.arguments += ["--batches", "5"]


@rfm.simple_test
class pairs_cores(PairsTest):
    """Every pair of cores of a node, one at a time or half of the cores with the other half (experiments U2, R6)."""

    operation = parameter(["tournament", "serial"])
    build = parameter(["stack", "abi"])
    placement = "core"


@rfm.simple_test
class pairs_nodes(PairsTest):
    """Every pair of nodes, a rank on each (experiments U3, R6)."""

    operation = parameter(["tournament", "serial"])
    node_count = parameter(node_counts())
    placement = "node"
    ranks_per_node = 1


@rfm.simple_test
class deadlock_fixed(KernelTest):
    """A ring exchange without the deadlock: in order, by Sendrecv, non-blocking (experiment D4)."""

    kernel = "deadlock"
    operation = parameter(["ring", "fixed", "nonblocking"])
    placement = parameter(GROUPS)
    quick_operations = ("fixed",)
    min_ranks = 2
    threads = 1
    figures = [("time", "time", {})]

    @run_after("init")
    def choose_mode(self):
        """The deadlocking one is no benchmark: tests of the harness run it."""
        self.arguments = ["--mode", self.operation]
