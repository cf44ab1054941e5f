"""Why a curve bends, from what the launches of its points record: the kernel's account of CPU time.

Efficiency is lost in two ways and no other: threads have no CPU or nothing to do for a part of the time, or the same
work takes more CPU time. With the CPU time C and the part of the time B in which the threads had a CPU, the efficiency
of a point over another is ``(B / B0) * (C0 / C)`` (weak scaling: C by the number of threads). These are the parallel
efficiency and the computation scaling of the POP metrics, by the kernel's clock in place of counters.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from plumbline.base.units import counted
from plumbline.launch.conclusions import Spent
from plumbline.launch.observed import MOST, always

#: a step that loses less than this of the efficiency is no bend
BEND = 0.05
#: of a loss, the part above which one of the two ways is named; and of such a way, the part that a cause explains
LEAST, MAIN = 0.3, 0.6
#: the busiest thread by the mean, above which the load is uneven
UNEVEN = 1.1
#: part of the CPU time that the threads which are known one by one have, at least, to speak of them
LISTED = 0.8
#: part of what memory reaches on the same cores, from which on it bounds
SATURATED = 0.8
#: part of the time that a thread waited for its CPU, above which other work has it
WAITED = 0.1


@dataclass(frozen=True)
class Account:
    """What a point's launches spent, medians: CPU time, wall time, time that a thread waited for a CPU, in s.

    ``ghz`` is the clock of its CPUs, 0 where it is not known.
    """

    cpu_s: float
    wall_s: float
    waited_s: float
    spent: Spent
    ghz: float = 0.0

    @property
    def kernel_s(self) -> float:
        """CPU time in the kernel."""
        return self.cpu_s * self.spent["kernel"]

    @property
    def is_listed(self) -> bool:
        """Whether its threads are known one by one: not those that were joined, and those of other processes."""
        return self.spent.get("listed", 1.0) >= LISTED


@dataclass(frozen=True)
class Step:
    """A step of a curve from one number to the next; ``kept`` is the efficiency over the step."""

    before: int
    after: int
    kept: float
    old: Account
    new: Account
    weak: bool
    kind: str

    @property
    def busy(self) -> float:
        """The factor of the efficiency that is lost, or gained, as CPUs have nothing to do."""
        return (self.new.cpu_s / self.new.wall_s / self.after) / (self.old.cpu_s / self.old.wall_s / self.before)

    def part(self, factor: float) -> float:
        """The part of the loss, by logarithms, that a factor of the efficiency explains."""
        return math.log(factor) / math.log(self.kept)

    @property
    def load(self) -> float:
        """The CPU time of the busiest thread, or rank, by the mean."""
        return max(self.new.spent["thread_load"], self.new.spent["rank_load"])

    @property
    def clock(self) -> float:
        """The factor that is lost, or gained, by another clock; 1 where it is not known."""
        return self.new.ghz / self.old.ghz if self.new.ghz and self.old.ghz else 1.0

    @property
    def is_counted(self) -> bool:
        """Whether processors counted before and after it."""
        return all("cycles" in each.spent for each in (self.old, self.new))

    @property
    def instructions(self) -> float:
        """The factor that is lost, or gained, as the same work takes other instructions; 1 where they are not known."""
        old, new = self.old.spent, self.new.spent
        return _grown(self) * old["instructions"] / new["instructions"] if self.is_counted else 1.0

    @property
    def per_cycle(self) -> list[float]:
        """The instructions of a cycle before and after it; 1 where they are not known."""
        both = (self.old.spent, self.new.spent)
        return [each["instructions"] / each["cycles"] for each in both] if self.is_counted else [1.0, 1.0]

    @property
    def work(self) -> float:
        """The factor that is lost, or gained, as the same work takes another CPU time."""
        return _grown(self) * self.old.cpu_s / self.new.cpu_s


@dataclass(frozen=True)
class Cause:
    """A cause of a bend: ``holds`` for a step, whose ``evidence`` it gives, and what to try or to measure next."""

    name: str
    holds: Callable[[Step], bool]
    evidence: Callable[[Step], str]
    cure: str


def _grown(step: Step) -> float:
    return step.after / step.before if step.weak else 1.0


def _unused(step: Step) -> bool:
    return step.new.spent["workers"] <= step.old.spent["workers"]


def _in_kernel(step: Step) -> bool:
    more, in_kernel = (new - old * _grown(step) for old, new in (
        (step.old.cpu_s, step.new.cpu_s), (step.old.kernel_s, step.new.kernel_s)
    ))  # fmt: skip
    return in_kernel > MAIN * more > 0


def _serial(step: Step) -> bool:
    spent = step.new.spent
    return _uneven(step) and spent["first"] >= UNEVEN and spent["others_load"] < UNEVEN and step.kind == "threads"


def _uneven(step: Step) -> bool:
    return step.load >= UNEVEN and math.log(step.load) > -MAIN * math.log(step.busy)


_SLOWER = "instructions took more cycles: {1:.2f} of them a cycle, and {0:.2f} before"


def _is_slower(step: Step) -> bool:
    return step.part(step.per_cycle[1] / step.per_cycle[0]) > MAIN * step.part(step.work)


def _on_one_node(step: Step) -> str:
    """That threads of several NUMA nodes have their memory on one; empty if not so."""
    part = step.new.spent.get("on_one_node", 0.0)
    return f"; {part:.0%} of a rank's memory lie on one NUMA node, its threads run on several" if part >= MOST else ""


def _busiest(step: Step) -> str:
    noun = "thread" if step.kind == "threads" else "rank"
    return (
        f"CPUs were busy {step.busy:.0%} as long as before; the busiest {noun} worked {step.load:.2f} times as long "
        "as the mean"
    )


#: where CPUs have nothing to do; in the order in which they are asked: the first that holds is named
IDLE: tuple[Cause, ...] = (
    Cause("other work", lambda step: step.new.waited_s > WAITED * step.new.wall_s, lambda step: (
        f"a thread waited for its CPU for {step.new.waited_s / step.new.wall_s:.0%} of the time, which other work had"
    ), "measure again when nothing else runs"),
    Cause("load or waits", lambda step: step.kind == "threads" and not step.new.is_listed, lambda step: (
        f"CPUs were busy {step.busy:.0%} as long as before; threads that were joined, and processes, "
        "are known as a sum only"
    ), "let each measure its time"),
    Cause("not used", _unused, lambda step: (
        f"{counted(int(step.new.spent['workers']), 'thread')} worked: "
        f"this program does not use the {step.kind} that it is given"
    ), "see how it takes their number"),
    Cause("serial part", _serial, lambda step: (
        f"CPUs were busy {step.busy:.0%} as long as before; "
        f"the first thread worked {step.new.spent['first']:.2f} times "
        + ("as long as the other: serial work, or a larger share" if step.new.spent["threads"] < 3 else
           "as long as the others, which worked alike")
    ), "let all threads do what the first does alone, or give it a smaller share"),
    Cause("load", _uneven, _busiest, "divide the work more evenly: schedule(dynamic), smaller pieces"),
    Cause("load or waits", lambda step: step.load >= UNEVEN, lambda step: (
        f"{_busiest(step)}, which is a part of it only"
    ), "let each measure its time"),
    Cause("waits", always, lambda step: (
        f"CPUs were busy {step.busy:.0%} as long as before, the {step.kind} that worked evenly: they wait"
    ), "plumb profile says which calls wait"),
)  # fmt: skip
#: where the same work takes more CPU time
COSTLY: tuple[Cause, ...] = (
    Cause("copies", lambda step: step.kind != "threads" and not step.new.spent.get("mpi", 1.0), lambda step: (
        f"no rank called MPI_Init, and the same work took {1 / step.work:.2f} times the CPU time: each does all of it"
    ), "build the program with the launcher's MPI library"),
    Cause("clock", lambda step: step.part(step.clock) > MAIN * step.part(step.work), lambda step: (
        f"the clock of the CPUs fell from {step.old.ghz:.2f} to {step.new.ghz:.2f} GHz, as more of them were busy"
    ), "compare with a full node, or at a fixed clock"),
    Cause("kernel", _in_kernel, lambda step: (
        f"the same work took {1 / step.work:.2f} times the CPU time, and the kernel most of what came on top "
        f"({step.new.spent['kernel']:.0%} of all): {step.new.spent['faults']:,.0f} page faults"
    ), "try an allocator that keeps memory, or huge pages: plumb tune --for"),
    Cause("copies, or waits that poll", lambda step: step.kind == "nodes", lambda step: (
        f"the same work took {1 / step.work:.2f} times the CPU time outside the kernel, and nodes share no memory: "
        "ranks poll while they wait, or each does the work of all"
    ), "see that the program is built for this MPI library; plumb profile says which calls wait"),
    Cause("more instructions", lambda step: step.part(step.instructions) > MAIN * step.part(step.work), lambda step: (
        f"the same work took {1 / step.instructions:.2f} times the instructions: threads spin while they wait, or "
        "repeat work"
    ), "OMP_WAIT_POLICY=passive turns spinning into idle time"),
    Cause("memory bandwidth", lambda step: step.new.spent.get("memory", 0.0) >= SATURATED, lambda step: (
        f"the same work took {1 / step.work:.2f} times the CPU time, and memory moved "
        f"{step.new.spent['memory']:.0%} of what these cores reach"
    ), "move fewer bytes, or spread over more L3 caches and NUMA nodes: --placement spread"),
    Cause("memory on one NUMA node", lambda step: _is_slower(step) and _on_one_node(step) != "", lambda step: (
        f"{_SLOWER.format(*step.per_cycle)}{_on_one_node(step)}"
    ), "let each thread write first what it will read, or spread the pages: numactl -i all"),
    Cause("memory or caches", _is_slower, lambda step: _SLOWER.format(*step.per_cycle),
          "plumb campaign has the bandwidth of these cores"),
    Cause("memory, caches, clock, or spinning", always, lambda step: (
        f"the same work took {1 / step.work:.2f} times the CPU time outside the kernel: not decided between memory "
        f"bandwidth, shared caches, {'' if step.new.ghz else 'a lower clock, '}and threads that spin while they wait"
        f"{_on_one_node(step)}"
    ), "OMP_WAIT_POLICY=passive turns spinning into idle time; plumb campaign has the bandwidth of these cores"),
)  # fmt: skip


def causes(step: Step) -> list[Cause]:
    """The causes of a step's loss: one, or one of each of the two ways in which it is lost; none that is decided."""
    ways = [(step.busy, IDLE), (step.work, COSTLY)]
    lost = [every for factor, every in ways if factor < 1 - BEND and step.part(factor) > LEAST]
    return [next(each for each in every if each.holds(step)) for every in lost]


def sentence(step: Step) -> str:
    """A bend in a line: ``from 4 to 8 threads: +12 % of 100 %: load: …``."""
    gained = (step.kept * step.after / step.before - 1) / (step.after / step.before - 1)
    start = f"from {step.before} to {step.after} {step.kind}: {gained:+.0%} of +100 %"
    if not (known := causes(step)):
        parts = f"CPUs were busy {step.busy:.0%} as long as before, with {1 / step.work:.2f} times the CPU time"
        return (
            f"{start}: cause not decided: {parts} (measure again when nothing else runs; plumb doctor says what does)"
        )
    evidence = "; ".join(each.evidence(step) for each in known)
    cures = "; ".join(each.cure for each in known)
    return f"{start}: {', and '.join(each.name for each in known)}: {evidence} ({cures})"


def steps(
    counts: Sequence[int], kept: Mapping[int, float], accounts: Mapping[int, Account], weak: bool, kind: str
) -> list[Step]:
    """The steps between neighbours that both have an account; ``kept``: place -> efficiency over the place before."""
    return [
        Step(counts[before], counts[after], kept[after], accounts[before], accounts[after], weak, kind)
        for before, after in itertools.pairwise(sorted(accounts))
    ]
