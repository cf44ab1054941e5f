"""Expectations: the value that a figure of a campaign should have, without anybody's history, and where it comes from.

:data:`RULES` is the table. A rule gives bounds: from data sheets and physics, from the site's ceilings, or from figures
of the same campaign that measure the same by other means. A figure is *slow* if its best launch is worse than a bound
by more than the rule's factor, and worse than every launch of the bound; *as expected* if it has a bound and is not
slow. Nothing is stored: records keep their verdicts, and expectations are worked out when records are shown.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Literal, NamedTuple

from plumbline.base import group, units
from plumbline.host import ceilings, limits
from plumbline.judge import agreement
from plumbline.judge.references.match import side
from plumbline.records import naming
from plumbline.records.figure import Figure
from plumbline.records.launch import kind as kind_of
from plumbline.records.model import Record
from plumbline.records.variant import PROGRAM

State = Literal["as expected", "slow", "no expectation"]
Kind = Literal["reference", "memory", "clock", "program", "library", "placement"]
#: part of the memory channels' peak that STREAM reaches on a whole host with stores past the caches, at least. Sources:
#: node health checks of Azure (70 to 78 %), ReFrame tests of CSCS (79 to 84 %), SPRAD45A of TI (74 to 78 %)
BAND = 0.70
#: bytes that STREAM counts, of those that regular stores move (a store reads its line first)
COUNTED = {"copy": 2 / 3, "scale": 2 / 3, "add": 3 / 4, "triad": 3 / 4}
#: name of a processor -> memory channels of a package, and their fastest MT/s with one module each, by data sheet: for
#: hosts whose modules nobody could read. Sources: AMD's
#: product pages of EPYC 7002, 7003, 9004 and 9005; ark.intel.com, "Max # of Memory Channels", "Maximum Memory Speed".
#: Series whose members differ in speed (Gold 6300 and 6400, Platinum 8500) are not here
CHANNELS = (
    (r"AMD EPYC 7\w\w[23](?!\d)", 8, 3200),
    (r"AMD EPYC 9\w\w4(?!\d)", 12, 4800),
    (r"AMD EPYC 9\w\w5(?!\d)", 12, 6000),
    (r"Intel.*(Platinum 81|Gold 61)\d\d(?![\dH])", 6, 2666),
    (r"Intel.*(Platinum 82|Gold 62)\d\d(?![\dHV])", 6, 2933),
    (r"Intel.*Platinum 83\d\d(?![\dH])", 8, 3200),
    (r"Intel.*Platinum 84\d\d(?![\dH])", 8, 4800),
)
#: bytes of a transfer of all of these
TRANSFER = 8
#: times worse than a bound of the machine that a figure may be, and than another library that a library may be
NEAR, FAR = 1.25, 2.0
#: hand-overs of a cache line that a short message may take: twice those of the libraries that need most of the usual
HANDOVERS = 12
#: times half a round trip of 8 bytes that an operation of two ranks with 8 bytes takes, by operation or test; and how
#: many times as long it may take
TURNS = {
    "bcast": 1, "allreduce": 2, "allgather": 2, "alltoall": 2, "exchange": 2, "imb_barrier": 1, "osu_barrier": 1,
    "deadlock_fixed": 1,
}  # fmt: skip
LONGER = 1.6
#: operations that send several messages one way at once
STREAMS = ("bw", "uniband")
#: tests in which ranks hardly talk, so that the library plays no part
COMPUTES = {"pi_sum"}
#: transports by which ranks of a node reach each other's memory
SHARED = {"shm", "cma", "sysv", "xpmem", "knem"}
#: part of its time that a library spends in the kernel, where it is the suspect
IN_KERNEL = 0.25
#: memory that nothing is expected of: how much slower it is depends on the machine
NOT_LOCAL = ("interleave", "remote")
#: times worse from which on half of the cores may be missing, where one core alone is as fast as it should be
HALF = 1.8
#: figures of a record that libraries are compared by: those that tables show
SHOWN = 2


class Bound(NamedTuple):
    """A value in the unit of the figure that it bounds, the ``worst`` that its launches support, and its origin."""

    value: float
    worst: float
    origin: str
    record: Record | None = None

    def scaled(self, factor: float, origin: str = "") -> Bound:
        """``factor`` times this bound."""
        return self._replace(value=factor * self.value, worst=factor * self.worst, origin=origin or self.origin)


@dataclass(frozen=True)
class Item:
    """A figure of a valid record; ``place`` is its position among the figures."""

    record: Record
    figure: Figure
    place: int

    @cached_property
    def value(self) -> float:
        """The median of its undisturbed launches."""
        return statistics.median(self.samples)

    @cached_property
    def samples(self) -> list[float]:
        """Those of undisturbed launches, where there are two or more."""
        return self.figure.undisturbed(self.record.counting())

    @cached_property
    def cpus(self) -> frozenset[int]:
        """The CPUs of its plan."""
        return frozenset(self.record.plan.cpus)

    @cached_property
    def mix(self) -> str | None:
        """How it loads and stores memory, if that is known."""
        wanted = next((each for each in self.record.variant.figures if each.name == self.figure.name), None)
        measured = self.record.counting()[0].find(wanted) if wanted else None
        if wanted is None or measured is None or self.record.variant.application:
            return None
        benchmark, variant = self.record.benchmark, self.record.variant
        return ceilings.mix(variant.benchmark, benchmark.suite, benchmark.built, wanted.metric, measured.params)

    def bound(self, origin: str, factor: float = 1.0) -> Bound:
        """``factor`` times this figure as the bound of another one."""
        worst = min(self.samples) if self.figure.better == "higher" else max(self.samples)
        return Bound(factor * self.value, factor * worst, origin, self.record)

    def times(self, value: float, bound: float) -> float:
        """How many times worse ``value`` is than ``bound``; 0 if either has no ratio."""
        if min(value, bound) <= 0:
            return 0.0
        return bound / value if self.figure.better == "higher" else value / bound


class Expectation(NamedTuple):
    """The state of a figure, and its origin: the bound that it is compared with, or the reason why there is none.

    It is ``times`` worse than the bound (less than 1: better), and slow from ``limit`` times on. ``kind`` is that of
    the rule, ``suspect`` what may explain a slow one.
    """

    record: Record
    figure: Figure
    state: State
    origin: str
    kind: Kind | None = None
    times: float = 0.0
    limit: float = 0.0
    suspect: str = ""

    @property
    def about(self) -> str:
        """How it stands to its bound, and what may explain it."""
        if not self.kind:
            return self.origin
        stands = f"{self.times:.1f} times worse" if self.times > 1 else "not worse"
        return f"{stands} than {self.origin}" + (f"; {self.suspect}" if self.suspect else "")


class Fault(NamedTuple):
    """Slow figures that have one explanation, in a few words and by ``worst``, the worst of them.

    Only a fault ``of_machine`` says that the machine is not fine; others are of a program, a library or a placement.
    """

    name: str
    worst: Expectation

    @property
    def short(self) -> str:
        """The name, and the suspect if there is one."""
        return f"{self.name} ({self.worst.suspect})" if self.worst.suspect else self.name

    @property
    def of_machine(self) -> bool:
        """Whether it is of the clock, the cores, the memory, or of what was usual before."""
        return self.worst.kind in ("reference", "clock", "memory")

    def __str__(self) -> str:
        worst = self.worst._replace(suspect="")
        figure = f"{worst.figure.name} {' '.join(worst.figure.shown)}"
        return f"{self.short}: {called(worst.record)} on {worst.record.stack.name}: {figure}, {worst.about}"


@dataclass(frozen=True)
class Session:
    """The figures of a campaign, by what they measure."""

    items: Sequence[Item]

    @cached_property
    def by_program(self) -> dict[object, list[Item]]:
        """By test, parameters and CPUs: the same program with other libraries, and in other builds."""
        return group((_program(item), item) for item in self.items)

    @cached_property
    def by_mix(self) -> dict[object, list[Item]]:
        """By place, and by how they load and store memory."""
        return group((_mix(item), item) for item in self.items if item.mix)

    @cached_property
    def handovers(self) -> dict[object, list[Bound]]:
        """Partition and two cores -> us of a hand-over between them: set-up's, and half of a barrier's two."""
        known = []
        for item in self.items:
            place, ceiling = (item.record.partition, item.cpus), item.figure.ceiling
            if ceiling and ceiling.method.startswith(ceilings.HANDOVER):
                worst = ceiling.value * (1 + ceiling.spread_percent / 100)
                known.append((place, Bound(ceiling.value, worst, "set-up's")))
            elif item.figure.name == "spin":
                known.append((place, item.bound("half a barrier", 1 / 2000)))
        return group(known)

    @cached_property
    def messages(self) -> dict[object, list[agreement.Claim]]:
        """Quantity, CPUs, stack and partition -> the messages that are measured there."""
        records = {item.record.id: item.record for item in self.items}.values()
        known = ((claim, record) for record in records for claim in agreement.claims(record))
        return group((_link(claim.quantity, frozenset(claim.cpus), record), claim) for claim, record in known)

    @cached_property
    def claims(self) -> dict[tuple[str, str], list[agreement.Claim]]:
        """Record and figure -> the messages of the same quantity, its own among them."""
        every = self.messages.values()
        return {(claim.record.id, name): same for same in every for claim in same for name in claim.quantity.figures}


def _link(quantity: agreement.Quantity | None, cpus: frozenset[int], record: Record) -> object:
    return quantity, cpus, record.stack.name, record.partition


def _mix(item: Item) -> object:
    return item.mix, item.record.site, item.record.partition, item.record.placement.nodes


def _program(item: Item) -> object:
    variant = item.record.variant
    params = sorted((name, repr(value)) for name, value in variant.params.items() if name != "build")
    placed = repr(item.record.placement)
    return variant.test, tuple(params), placed, item.figure.name, item.cpus, item.record.site, item.record.partition


def memory_peak(processor: str, packages: int) -> tuple[float, str] | None:
    """Peak rate of the memory of ``packages`` packages in MB/s and how it is made up; None for another processor.

    >>> memory_peak("AMD EPYC 7763 64-Core Processor", 2)
    (409600, '2 packages x 8 channels x 3200 MT/s x 8 B by data sheet')
    """
    for name, channels, rate in CHANNELS:
        if re.search(name, processor):
            method = f"{packages} packages x {channels} channels x {rate} MT/s x {TRANSFER} B by data sheet"
            return packages * channels * rate * TRANSFER, method
    return None


def _is_alone(item: Item) -> bool:
    """Whether no other rank takes part that it would wait for."""
    return len(item.record.plan.ranks) == 1 or item.record.variant.test in COMPUTES


def _sheet(item: Item, _: Session) -> Iterator[Bound]:
    """The peak of the memory channels, of a host that is used as a whole, as far as STREAM's kernels can count it."""
    host, figure = item.record.host, item.figure
    if figure.name not in COUNTED or _part_of_host(item):
        return
    peak = (figure.limit.value, figure.limit.method) if figure.limit else None
    if peak := peak or memory_peak(str(host.get("cpu")), int(host.get("packages") or 0)):
        part = BAND * (1.0 if "streaming" in (item.mix or "") else COUNTED[figure.name])
        yield Bound(part * peak[0], part * peak[0], f"{100 * part:.0f} % of {peak[1]}")


def _part_of_host(item: Item) -> str | None:
    """Why the data sheet of a whole host does not bound the figure; None if it does."""
    host = item.record.host
    if host.get("virtual") not in (None, "no", False):
        return "a virtual machine is a part of a host, which has no data sheet"
    if "cores" not in host:
        return "the record does not say how many cores the host has"
    return "no data sheet knows the bandwidth of a part of the cores" if len(item.cpus) < host["cores"] else None


def _set_up(item: Item, _: Session) -> Iterator[Bound]:
    """The ceiling of set-up, where it was measured by the same kind of work."""
    ceiling = item.figure.ceiling
    if ceiling and ceiling.measured and ceiling.method.startswith((ceilings.ALIKE, "level", "multiply")):
        spread = ceiling.value * ceiling.spread_percent / 100
        yield Bound(ceiling.value, ceiling.value - spread, f"set-up's {ceiling.method}")


def _model(item: Item, _: Session) -> Iterator[Bound]:
    """The peak of the same launches, by their instructions and clock."""
    ceiling = item.figure.ceiling
    if ceiling and not ceiling.measured and item.figure.unit == units.GFLOP_S:
        yield Bound(ceiling.value, ceiling.value, "the multiply-add peak of the same launches")


def _same_mix(item: Item, session: Session) -> Iterator[Bound]:
    """Figures of other records that load and store alike, on the same cores, or the share of more cores."""
    for peer in session.by_mix[_mix(item)] if item.mix else ():
        share = len(item.cpus) / max(1, len(peer.cpus))
        nodes, others = set(item.record.plan.memory_nodes), set(peer.record.plan.memory_nodes)
        is_near = not others or not nodes or nodes <= others
        program, compared = item.record.variant.benchmark, peer.record.variant.benchmark
        is_like = peer.figure.name == item.figure.name or compared not in (program, "daxpy")  # which moves two arrays
        if is_like and is_near and peer.record is not item.record and item.cpus <= peer.cpus:
            part = "" if share == 1 else f", its share of {len(peer.cpus)} cores"
            yield peer.bound(f"{peer.figure.name} of {called(peer.record)} on {peer.record.stack.name}{part}", share)


def _same_program(item: Item, session: Session) -> Iterator[Bound]:
    """The same program where no library plays a part, with other stacks and in other builds."""
    peers = session.by_program[_program(item)] if _is_alone(item) and item.place < SHOWN else ()
    return (peer.bound(f"the same {_built(peer)}") for peer in peers if peer.record is not item.record)


def _same_test(item: Item, session: Session) -> Iterator[Bound]:
    """The other libraries, on the same cores; how much overlaps at which size is a choice of each library."""
    is_compared = not _is_alone(item) and item.place < (1 if item.figure.unit == units.PERCENT else SHOWN)
    peers = session.by_program[_program(item)] if is_compared else ()
    return (peer.bound(name) for peer in peers if (name := peer.record.stack.name) != item.record.stack.name)


def _same_stack(item: Item, session: Session) -> Iterator[Bound]:
    """The same message by another test, and by the other build of the same test."""
    if _is_alone(item) or item.place >= SHOWN:
        return
    for peer in session.by_program[_program(item)]:
        if peer.record is not item.record and peer.record.stack.name == item.record.stack.name:
            yield peer.bound(f"the same {_built(peer)}")
    for claim in session.claims.get((item.record.id, item.figure.name), ()):
        if claim.record.variant.test != item.record.variant.test:
            worst = max(claim.samples.values) if item.figure.better == "lower" else min(claim.samples.values)
            yield Bound(claim.value, worst, f"{claim.quantity.name} of {called(claim.record)}", claim.record)


def _floor(item: Item, session: Session) -> Iterator[Bound]:
    """Two hand-overs of a cache line, for the barrier of two threads that spin."""
    for handover in session.handovers.get((item.record.partition, item.cpus), ()):
        if item.figure.name == "spin" and handover.record is not item.record:
            yield handover.scaled(2000, "2 hand-overs of a cache line")


def _short(item: Item, session: Session) -> Iterator[Bound]:
    """Hand-overs of a cache line between the same cores, for a message of one line."""
    for claim in session.claims.get((item.record.id, item.figure.name), ()):
        handovers = session.handovers.get((item.record.partition, frozenset(claim.cpus)))
        if claim.record is item.record and claim.quantity is agreement.LATENCY and handovers:
            best = min(handovers, key=attrgetter("value"))
            yield best.scaled(HANDOVERS, f"{HANDOVERS} hand-overs of a cache line")._replace(record=None)


def _turns(item: Item, session: Session) -> Iterator[Bound]:
    """Messages of the same library between the same cores, for an operation of two ranks that consists of them."""
    record, params = item.record, item.record.variant.params
    count = TURNS.get(str(params.get("operation")).lower()) or TURNS.get(record.variant.test)
    is_known = record.variant.test.startswith(("imb_", "osu_", "deadlock_")) and item.figure.name in ("time_8B", "time")
    if count and is_known and len(record.plan.ranks) == 2 and PROGRAM not in params:
        for claim in session.messages.get(_link(agreement.LATENCY, item.cpus, record), ()):
            origin = f"{units.counted(count, 'message')} of 8 B of {called(claim.record)}"
            yield Bound(count * claim.value, count * max(claim.samples.values), origin, claim.record)


def _streams(item: Item, session: Session) -> Iterator[Bound]:
    """The best bandwidth of messages one way by another test of the same library, for several at once."""
    if _one_way(item) in STREAMS:
        for peer in session.items:
            is_alike = _one_way(peer) and peer.record.variant.test != item.record.variant.test
            if is_alike and _link(None, peer.cpus, peer.record) == _link(None, item.cpus, item.record):
                yield peer.bound(f"bandwidth of {called(peer.record)}")


def _one_way(item: Item) -> str:
    """The operation whose bandwidth of messages in one direction the figure is; empty for other figures."""
    operation = str(item.record.variant.params.get("operation")).lower()
    return operation if item.figure.name == "bandwidth" and operation in (*STREAMS, "pingpong") else ""


def _sweep(item: Item, session: Session) -> Iterator[Bound]:
    """Those of the memory bandwidth of the same launches, for the rate of sweeps over memory."""
    for peer in session.items if item.figure.unit == units.MLUP_S else ():
        if peer.record is item.record and peer.figure.name == "bandwidth" and peer.value > 0:
            for bound in (*_set_up(peer, session), *_same_mix(peer, session)):
                yield bound.scaled(item.value / peer.value)


class Rule(NamedTuple):
    """What is slow if a figure is ``factor`` times worse than one of its ``bounds``, of which it may have none.

    The rule expects nothing of a figure that could be ``seen`` times slower and still not be slow; 0: it always does.
    """

    kind: Kind
    factor: float
    seen: float
    bounds: Callable[[Item, Session], Iterable[Bound]]


#: 30 % less, as a factor
LOSS = 1 / 0.7
#: what is expected of which figure: each rule that has a bound for it (docs/sites.md has them in words)
RULES = (
    Rule("memory", 1.0, LOSS, _sheet),
    Rule("memory", NEAR, LOSS, _set_up),
    Rule("memory", NEAR, LOSS, _same_mix),
    Rule("memory", NEAR, LOSS, _sweep),
    Rule("program", NEAR, LOSS, _model),
    Rule("program", NEAR, LOSS, _same_program),
    Rule("program", 1.3, LOSS, _floor),
    Rule("library", 1.4, 0, _same_stack),
    Rule("library", 1.4, FAR, _streams),
    Rule("library", FAR, 0, _same_test),
    Rule("library", 1.0, FAR, _short),
    Rule("library", LONGER, FAR, _turns),
)  # fmt: skip


def expectations(records: Iterable[Record]) -> list[Expectation]:
    """What is expected of each figure of ``records`` (those of one campaign), in their order; of valid ones only."""
    usable = [record for record in records if record.is_valid and record.counting()]
    items = [Item(record, figure, place) for record in usable for place, figure in enumerate(record.figures)]
    session = Session(items)
    return [_expect(item, session) for item in items]


def _expect(item: Item, session: Session) -> Expectation:
    record, figure = item.record, item.figure
    if figure.reference:
        edge = figure.reference.lower if figure.better == "higher" else figure.reference.upper
        state: State = "slow" if side(figure, figure.reference) == "below" else "as expected"
        times = item.times(figure.value, figure.reference.value)
        origin = f"its reference, {' '.join(units.human(figure.reference.value, figure.reference.unit))}"
        return Expectation(record, figure, state, origin, "reference", times, item.times(1 + (edge or 0), 1.0))
    if record.variant.slow_on_purpose or record.placement.memory in NOT_LOCAL:
        is_slow = record.variant.slow_on_purpose
        why = "slow on purpose" if is_slow else f"nothing is expected of {record.placement.memory} memory"
        return Expectation(record, figure, "no expectation", why)
    best = max(figure.samples) if figure.better == "higher" else min(figure.samples)
    held: list[tuple[float, Rule, Bound]] = []
    slow: list[tuple[float, Rule, Bound]] = []
    for rule in RULES:
        for bound in rule.bounds(item, session):
            times = item.times(item.value, bound.value)
            if item.times(best, bound.value) > rule.factor and item.times(best, bound.worst) > 1:
                slow.append((times, rule, bound))
            elif not rule.seen or times * rule.seen > rule.factor:
                held.append((times / rule.factor, rule, bound))
    if slow:
        times, rule, bound = max(slow, key=lambda each: each[0])
        return _slow(item, times, rule, bound)
    if not held:
        return Expectation(record, figure, "no expectation", _reason(item))
    times, rule, bound = max(held, key=lambda each: each[0])
    if times > 1:
        why = _disturbed(record) or f"launches too far apart to compare with {bound.origin}"
        return Expectation(record, figure, "no expectation", why)
    return Expectation(record, figure, "as expected", bound.origin, rule.kind, times * rule.factor, rule.factor)


def _slow(item: Item, times: float, rule: Rule, bound: Bound) -> Expectation:
    record, figure = item.record, item.figure
    if disturbed := _disturbed(record):
        return Expectation(record, figure, "no expectation", disturbed)
    kind = "clock" if figure.unit == units.GFLOP_S and bound.record is None and rule.kind == "memory" else rule.kind
    kind = "placement" if record.plan.bound is False else kind
    suspect = _placement(record) if kind == "placement" else _library(item, bound) if kind == "library" else ""
    return Expectation(record, figure, "slow", bound.origin, kind, times, rule.factor, suspect)


def _reason(item: Item) -> str:
    """Why a figure has no expectation."""
    if item.figure.name in limits.STREAM_METRICS and (part := _part_of_host(item)):
        return part
    if PROGRAM in item.record.variant.params:
        return "Python's own time is in mpi4py's port, and no other library has run it"
    return "nothing here measures the same" if _is_alone(item) else "no other library has run it"


def _disturbed(record: Record) -> str | None:
    """The disturbance, if it is of most launches."""
    return f"disturbed: {disturber([record])}" if 2 * record.disturbed_count > record.launch_count else None


def disturber(records: Iterable[Record]) -> str:
    """The most common causes of disturbance in launches that count."""
    causes = Counter(
        kind for record in records for launch in record.counting() if launch.disturbed
        for kind in {kind_of(cause) for cause in launch.disturbance.causes}
    )  # fmt: skip
    return ", ".join(kind for kind, _ in causes.most_common(2)) or "cause not known"


def _placement(record: Record) -> str:
    """Where the threads of an unbound launch ran, if they shared CPUs."""
    ran = [[thread.last_cpu for thread in rank.threads if thread.last_cpu is not None]
           for rank in record.counting()[0].ranks]  # fmt: skip
    cpus = sorted({cpu for rank in ran for cpu in rank})
    count = record.placement.threads * record.placement.ranks_per_node
    return f"{count} threads on CPU {units.some([*map(str, cpus)])}" if 0 < len(cpus) < count else ""


def _library(item: Item, bound: Bound) -> str:
    """The explanation of a slow library that its launches and those of the other one give; empty without one."""
    if bound.record is None:
        return ""
    seen, theirs = set(item.record.transports), set(bound.record.transports)
    if theirs & SHARED and not seen & SHARED:
        return f"its shared memory is off, transports: {', '.join(sorted(seen)) or 'none'}"
    here, there = _in_kernel(item.record), _in_kernel(bound.record)
    if here > IN_KERNEL and here > FAR * there:
        beside = f"{100 * there:.0f} % of {bound.record.stack.name}'s"
        return f"{100 * here:.0f} % of its time in the kernel, {beside}: waits may yield"
    return ""


def _in_kernel(record: Record) -> float:
    """Part of the CPU time of its ranks that is the kernel's."""
    used = [rank.usage for launch in record.counting() for rank in launch.ranks if rank.usage]
    total = sum(usage["user_s"] + usage["system_s"] for usage in used)
    return sum(usage["system_s"] for usage in used) / total if total else 0.0


def faults(expected: Sequence[Expectation]) -> list[Fault]:
    """What is slow: the machine's clock, cores and memory first, then references, programs, libraries, placements."""
    slow = group((each.kind, each) for each in expected if each.state == "slow")
    memory = slow.get("memory", [])
    known = {each.record.id for each in expected if each.kind == "memory"}
    of_machine = _each(memory, "slow memory")
    if 2 * len(of_machine) > len(known):
        of_machine = [Fault("slow memory in most tests", max(memory, key=attrgetter("times")))]
    if clock := slow.get("clock"):
        worst = max(clock, key=attrgetter("times"))
        cores = len(worst.record.plan.cpus)
        alone = [each.state for each in expected if each.kind == "memory" and len(each.record.plan.cpus) == 1]
        if cores > 1 and worst.times > HALF and all(state == "as expected" for state in alone):
            of_machine = [Fault(f"half of the {cores} cores are missing or shared", worst)]
        else:
            of_machine.insert(0, Fault("slow clock", worst))
    return [
        *of_machine,
        *_each(slow.get("reference", []), "below its reference"),
        *_each(slow.get("program", []), "slow {0.variant.test}"),
        *_libraries(slow.get("library", [])),
        *_each(slow.get("placement", []), "{0.stack.name} without placement"),
    ]


def _each(slow: Sequence[Expectation], name: str) -> list[Fault]:
    """A fault for each record, by the first of its figures that is slow; the worst first."""
    first = [several[0] for several in group((each.record.id, each) for each in slow).values()]
    return [Fault(name.format(each.record), each) for each in sorted(first, key=attrgetter("times"), reverse=True)]


def _libraries(slow: Sequence[Expectation]) -> list[Fault]:
    """A fault for each library, with the range of all its figures; the worst first."""
    known = []
    for stack, several in group((each.record.stack.name, each) for each in slow).items():
        suspects = Counter(each.suspect for each in several if each.suspect)
        worst = max(several, key=attrgetter("times"))
        least, most = f"{min(each.times for each in several):.1f}", f"{worst.times:.1f}"
        tests = units.counted(len({each.record.id for each in several}), "variant")
        span = f"{least} to {most}" if least != most else least
        suspect = worst.suspect or next((name for name, _ in suspects.most_common(1)), "")
        known.append(Fault(f"{stack} is slow, {span} times in {tests}", worst._replace(suspect=suspect)))
    return sorted(known, key=lambda fault: -fault.worst.times)


def called(record: Record) -> str:
    """Test and placement of a record, for people."""
    return f"{naming.name(record.variant)} ({naming.placement(record.placement)})"


def _built(item: Item) -> str:
    build = item.record.variant.params.get("build")
    return f"build {build} on {item.record.stack.name}" if build else f"on {item.record.stack.name}"
