"""Memory on NUMA machines: who touches it, where it lies, how it is streamed.

Tags: ``quick`` (part of the five-minute campaign), ``full`` (everything), ``scaling`` (curves), ``kernels`` (ours).
"""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from plumbline.host import machine
from plumbline.measure.reframe import KernelTest, machines


class DaxpyTest(KernelTest):
    """Bandwidth of y = y + a x on vectors of four times the caches, which a busy machine takes minutes to walk over."""

    kernel = "daxpy"
    mpi_matters = False
    launch_time_limit = 300.0


@rfm.simple_test
class daxpy_numa(DaxpyTest):
    """A serial daxpy on every CPU node under every memory policy (experiment T1: local best, far worst)."""

    cpu_node = parameter(machine.cpu_nodes(machines()), type=int)
    memory = parameter(machine.memories(machines()), type=str)
    threads = 1
    arguments = ["--touch", "thread"]
    figures = [("daxpy", "bandwidth", {})]
    quick_placements = ()

    @run_after("init")
    def place(self):
        """One thread on the node."""
        self.placement = f"numa:{self.cpu_node}"
        self.slow_on_purpose = machine.is_far(machines(), self.cpu_node, self.memory)


@rfm.simple_test
class daxpy_touch(DaxpyTest):
    """Arrays touched by the master thread against each thread (experiment T2: the ratio is the loss)."""

    placement = parameter(["node", "numa:0", "spread"], type=str)
    memory = "firsttouch"
    ranks_per_node = 1
    arguments = ["--repetitions", "5"]
    figures = [
        ("thread", "bandwidth", {"touch": "thread"}),
        ("master", "bandwidth", {"touch": "master"}),
        ("first_touch_ratio", "first_touch_ratio", {"touch": "thread"}),
    ]
    quick_placements = ("node",)

    @run_after("init")
    def spread_four(self):
        """As published: four threads, on as many sockets as there are."""
        if self.placement == "spread":
            self.threads = self.threads_asked or 4


@rfm.simple_test
class daxpy_ranks(DaxpyTest):
    """Four ranks, one thread each or filling the node, by placement and memory (experiment T3: over sockets wins).

    ``ways:4`` is before those that are equal to it on a node of four sockets: the first one is measured.
    """

    placement = parameter(["none", "ways:4", "compact", "scatter"], type=str)
    memory = parameter(["firsttouch", "local", "interleave"], type=str)
    threads = parameter(machine.rank_threads(machines(), 4), type=int)
    ranks_per_node = 4
    arguments = ["--touch", "thread"]
    figures = [("daxpy", "bandwidth", {})]
    quick_placements = ()


@rfm.simple_test
class daxpy_threads(DaxpyTest):
    """One rank, more and more threads, each of which touches its own part."""

    placement = parameter(["compact", "spread"], type=str)
    threads = parameter(machine.node_threads(machines()), type=int)
    ranks_per_node = 1
    arguments = ["--touch", "thread", "--repetitions", "5"]
    figures = [("daxpy", "bandwidth", {})]
    quick_placements = ()
    tags = {"kernels", "scaling"}


@rfm.simple_test
class gpu_memory_copies(KernelTest):
    """Copies between host and GPU, by ranks beside their GPUs or on the wrong socket, and the GPU's own memory."""

    kernel = "gpu_memory"
    mpi_matters = False
    placement = parameter(["gpu", "gpu:far"], type=str)
    threads = 1
    arguments = ["--bytes", "256M", "--least", "64K"]
    figures = [
        ("in", "bandwidth", {"way": "in", "memory": "pinned", "bytes": 256 << 20}),
        ("out", "bandwidth", {"way": "out", "memory": "pinned", "bytes": 256 << 20}),
        ("both", "bandwidth", {"way": "both", "memory": "pinned", "bytes": 256 << 20}),
        *(
            (f"{way}_{name}", "bandwidth", {"way": way, "memory": "pinned", "bytes": size})
            for way in ("in", "out")
            for name, size in (("64KiB", 64 << 10), ("1MiB", 1 << 20), ("16MiB", 16 << 20))
        ),
        ("in_pageable", "bandwidth", {"way": "in", "memory": "pageable"}),
        ("out_pageable", "bandwidth", {"way": "out", "memory": "pageable"}),
        ("time_4B", "time", {"way": "in", "bytes": 4}),
        ("time_start", "time", {"way": "start"}),
        ("triad", "bandwidth", {"way": "triad", "level": "memory"}),
    ]
    quick_placements = ()


@rfm.simple_test
class membw_numa(KernelTest):
    """Nine kernels, stores through the cache and past it, by CPU node and memory node (experiment U1)."""

    kernel = "membw"
    mpi_matters = False
    cpu_node = parameter(machine.cpu_nodes(machines()), type=int)
    memory_node = parameter(machine.memory_nodes(machines()), type=int)
    threads = parameter(machine.numa_threads(machines()), type=int)
    figures = [
        *((name, "bandwidth", {"kernel": name}) for name in ("triad", "copy", "scale", "add", "daxpy", "triad5")),
        *((name, "bandwidth", {"kernel": name}) for name in ("store", "load", "sum")),
        ("triad_regular", "bandwidth", {"kernel": "triad", "mode": "regular"}),
    ]
    quick_placements = ()

    @run_after("init")
    def place(self):
        """A thread count on one CPU node, the pages on one memory node."""
        self.placement, self.memory = f"numa:{self.cpu_node}", f"node:{self.memory_node}"
        self.slow_on_purpose = machine.is_far(machines(), self.cpu_node, self.memory)


@rfm.simple_test
class membw_triad(KernelTest):
    """Triad of all ranks together, by placement; ``triad_regular`` without streaming stores."""

    kernel = "membw"
    mpi_matters = False
    placement = parameter(["none", "node", "core", "numa", "socket"], type=str)
    arguments = ["--kernels", "triad", "--repetitions", "10"]
    figures = [
        ("triad", "bandwidth", {"kernel": "triad"}),
        ("triad_regular", "bandwidth", {"kernel": "triad", "mode": "regular"}),
    ]
    quick_placements = ("node",)


@rfm.simple_test
class membw_saturation(KernelTest):
    """How many threads saturate the memory of an L3 cache, a NUMA node and a socket: all of them against the first."""

    kernel = "membw"
    mpi_matters = False
    placement = parameter(["l3", "numa", "socket"], type=str)
    arguments = ["--kernels", "triad", "--stores", "regular", "--repetitions", "10", "--alone"]
    figures = [("saturation", "saturation", {}), ("triad", "bandwidth", {})]
    quick_placements = ()
    tags = {"kernels", "scaling"}
