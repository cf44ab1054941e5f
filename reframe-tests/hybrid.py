"""MPI from hybrid programs: calls from threads, and messages behind work.

Tags: ``quick`` (part of the five-minute campaign), ``full`` (everything), ``kernels`` (our own programs).
"""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from plumbline.measure.reframe import KernelTest, machines

from .placements import PAIRS, QUICK_PAIRS

#: bytes of the larger messages: 400,000 words of eight bytes, and 80 MiB
SMALL_BYTES, LARGE_BYTES = 3200000, 80 << 20
#: work beside a message, in percent of the message's time
WORKS = (1, 25, 50, 75, 100, 150, 200)


#: for two ranks with threads: beside each other in a node, or filling a node each (``node``)
PLACES = ["compact", "l3", "numa", "socket", "node"]


def spread(test):
    """One node and two ranks, or two nodes and one rank on each."""
    test.nodes, test.ranks_per_node = (2, 1) if test.placement == "node" else (1, 2)


#: modes whose figures a variant of ``pingpong_threads`` has
MODES = {
    "funneled": ("serial", "one"),
    "serialized": ("ordered",),
    "multiple": ("concurrent",),
    "ordered": ("ordered",),
}


@rfm.simple_test
class pingpong_threads(KernelTest):
    """One large against 16 small messages, from serial and parallel regions, by thread level (experiment T5).

    ``ordered`` is the mode of that name as the first exchange of its launches, with the time of each message. ``one``
    is from thread 0 in a parallel region.
    """

    kernel = "threaded_pingpong"
    placement = parameter(PLACES, type=str)
    min_ranks = 2
    #: the thread level, or the mode that is first
    operation = parameter(["funneled", "serialized", "multiple", "ordered"], type=str)
    quick_placements = ("compact",)
    quick_operations = ("multiple",)

    @run_after("init")
    def choose_figures(self):
        """Of the modes that the level allows; of several thread counts the best one is shown."""
        spread(self)
        if self.placement == "compact" and max((len(item.cores) for item in machines()), default=0) >= 4:
            self.threads = self.threads_asked or 2
        small = {"operation": "pingpong", "bytes": SMALL_BYTES, "messages": 16}
        self.arguments, self.figures = ["--bytes", str(SMALL_BYTES)], []
        if self.operation == "ordered":
            self.arguments += ["--mode", "ordered", "--level", "serialized", "--first"]
        else:
            self.arguments += ["--level", self.operation]
            for name, mode in (("", "serial"), ("_one", "one")):
                self.take_both(f"large{name}", {**small, "messages": 1, "mode": mode})
        for mode in MODES[self.operation]:
            self.take_both(f"16_{mode}", {**small, "mode": mode})
        if self.operation == "ordered":
            each = {**small, "operation": "message", "mode": "ordered"}
            for metric, name in (("cold_latency", "cold_message"), ("latency", "message")):
                self.figures += [(f"{name}_{n}", metric, {**each, "message": n}) for n in range(16)]
        else:
            for mode in ("serial", "one"):
                self.take_both(f"broadcast_{mode}", {"operation": "broadcast", "mode": mode})

    def take_both(self, name, where):
        """Add the median of an exchange, and the first one."""
        self.figures += [(f"time_{name}", "time", where), (f"cold_time_{name}", "cold_time", where)]


class OverlapTest(KernelTest):
    """Overlap of 80 MiB and of 1 MiB with as much work, for sending and for receiving."""

    kernel = "overlap"
    min_ranks = 2

    @run_after("init")
    def choose_figures(self):
        """One method in both directions."""
        self.arguments = ["--mode", self.operation, "--bytes", f"1M,{LARGE_BYTES}", "--repetitions", "5"]
        self.figures = [
            (f"overlap_{direction}_{name}", "overlap", {"direction": direction, "bytes": size})
            for direction in ("isend", "irecv")
            for name, size in (("80MiB", LARGE_BYTES), ("1MiB", 1 << 20))
        ]


@rfm.simple_test
class overlap_fraction(OverlapTest):
    """How much of a message a library hides by itself, or with calls of MPI_Test, by distance (experiment R5)."""

    operation = parameter(["none", "test"], type=str)
    placement = parameter(PAIRS, type=str)
    quick_placements = QUICK_PAIRS
    quick_operations = ("none",)


@rfm.simple_test
class overlap_helped(OverlapTest):
    """How much of a message is hidden with a thread for it: one that only probes, or task mode (experiment R5)."""

    operation = parameter(["thread", "task"], type=str)
    placement = parameter(PLACES, type=str)
    quick_placements = ()

    @run_after("init")
    def second_thread(self):
        """Neighbouring cores have room for the two threads that are needed; other placements fill their object."""
        spread(self)
        if self.placement == "compact":
            self.threads = self.threads_asked or 2


@rfm.simple_test
class overlap_work(KernelTest):
    """Time of 80 MiB together with more and more work, by distance (experiment R5: flat where the work is hidden)."""

    kernel = "overlap"
    min_ranks = 2
    placement = parameter(PAIRS, type=str)
    quick_placements = ()
    #: seven amounts of work in both directions, of a message that takes long over a slow network
    launch_time_limit = 300.0
    arguments = [
        *("--mode", "none", "--bytes", str(LARGE_BYTES), "--repetitions", "3"),
        *("--work", ",".join(map(str, WORKS))),
    ]
    figures = [
        (f"{figure}_{direction}_{work}", metric, {"direction": direction, "work": work})
        for figure, metric in (("time", "total"), ("work", "computation"))
        for direction in ("isend", "irecv")
        for work in WORKS
    ]
