"""Each way of messages: whether this node offers it, whether the library used it, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Partition
from plumbline.extras.fabric import causes, smoke
from plumbline.extras.fabric.causes import MULTI, NOT_THERE, THREADLESS, Case, Why
from plumbline.extras.fabric.smoke import Smoke
from plumbline.host import devices
from plumbline.measure.session import passing_folder
from plumbline.mpi import ways
from plumbline.show.columns import Column, Table
from plumbline.site.nodes import collection, findings
from plumbline.site.nodes.findings import NodeFinding
from plumbline.site.nodes.model import Node
from plumbline.stacks.manifest import Manifest

HUGE, GPU, THREADS, MESSAGES = "huge pages", "GPU direct", "threads in UCX", "messages"
NOT_HERE = "no"
VERDICTS = {True: "MISSED", None: "not known", False: "ok"}


@dataclass(frozen=True, kw_only=True)
class Use(NodeFinding):
    """One way, its ``name``, between ranks of a node or of two: the means that ``could`` be used, those ``seen``.

    ``why`` has the causes of a missed way, which ``effect`` and ``cure`` sum up.
    """

    stack: str
    between: str
    could: str
    why: tuple[Why, ...] = ()

    @property
    def verdict(self) -> str:
        """For people; ``-`` where the node lacks the way."""
        return VERDICTS[self.bad] if self.seen else "-"

    @property
    def of_stack(self) -> NodeFinding:
        """As ``plumb doctor`` lists it."""
        return NodeFinding(f"{self.name} of {self.stack}", self.seen, self.bad, self.effect, self.cure)


def of_stacks(stacks: Sequence[Manifest], site: str, partition: Partition, over: int) -> list[Use]:
    """The ways that each of ``stacks`` uses here; of one that cannot be launched, the reason."""
    uses: list[Use] = []
    with passing_folder("stack-check") as folder:
        facts = collection.here(folder)
        for stack in stacks:
            place = folder / stack.name
            place.mkdir()
            try:
                uses += audit(stack, site, partition, over, facts, place)
            except PlumbError as error:  # the other stacks are judged all the same
                why = Why("no launch", error.message, error.cure or "")
                uses.append(Use(
                    name=MESSAGES, seen="cannot be started", bad=True, effect=error.message, stack=stack.name,
                    cure=error.cure or "plumb stack check", between="ranks", could="yes", why=(why,),
                ))  # fmt: skip
    return uses


def audit(stack: Manifest, site: str, partition: Partition, over: int, facts: Node, folder: Path) -> list[Use]:
    """Launch two ranks on this node, and over two nodes if ``over`` is 2, and judge every way.

    Raises :class:`PlumbError` for a stack that cannot be launched.
    """
    runs = [smoke.run(stack, site, partition, count, folder) for count in range(1, over + 1)]
    judges = [Judge(stack, facts, ran, smoke.sources(stack, partition, ran)) for ran in runs]
    across = judges[1].between_nodes() if over == 2 else judges[0].untried()
    return [*judges[0].of_node(), *judges[0].dropped(), *across]


class Judge:
    """Judges the ways of one smoke."""

    def __init__(self, stack: Manifest, facts: Node, ran: Smoke, settings: dict[str, tuple[str, str]]) -> None:
        self.stack, self.facts, self.ran, self.settings = stack, facts, ran, settings
        self.doctor = {finding.name: finding for finding in findings.examine_node(facts)}
        self.between = "ranks of a node" if ran.nodes == 1 else "nodes"
        self.words = ways.reported(ran.lines)

    def case(self, way: str) -> Case:
        """The case of a way that was not used."""
        return Case(way, self.stack, self.facts, self.ran, self.settings, self.doctor)

    def of_node(self) -> Iterator[Use]:
        """Shared memory, the ways of a single copy, huge pages and GPU direct."""
        if self.ran.failed:
            yield self._failed((ways.SHARED, *ways.SINGLE_COPY, ways.TCP))
            return
        mapped = any(rank.shm_bytes or rank.sysv_bytes or rank.file_bytes for rank in self.ran.transports)
        shared = mapped and not self.ran.by_tcp
        seen = self._figures() if shared else f"no: {', '.join(self._by_tcp()) or 'not mapped'}"
        yield self._use(ways.SHARED, "yes", shared, seen)
        yield from self._single_copies(shared)
        yield self._huge_pages()
        yield from self._gpus()

    def _huge_pages(self) -> Use:
        """How much of the ranks' memory is in huge pages; whether more would be of use, nothing here tells."""
        knobs = self.facts.knobs
        could = f"transparent: {knobs.thp}; {knobs.huge_pages or 0} reserved"
        if not (present := sum(rank.present_bytes for rank in self.ran.transports)):
            return self._row(HUGE, could, "the kernel does not tell", None)
        huge = sum(rank.huge_bytes for rank in self.ran.transports)
        seen = f"{huge / 1e6:.0f} of {present / 1e6:.0f} MB of the ranks at MPI_Finalize"
        return self._row(HUGE, could, seen, None if not huge and (knobs.thp != "never" or knobs.huge_pages) else False)

    def _single_copies(self, shared: bool) -> Iterator[Use]:
        """A large message needs one of them; a device that somebody has put on the node is to be used."""
        opened = {way: bool(self.ran.opened(ways.WAYS[way].devices)) for way in (ways.XPMEM, ways.KNEM)}
        by_device = [way for way, is_open in opened.items() if is_open and not self.ran.copied_once]
        used = by_device[:1] or ([ways.CMA] if self.ran.copied_once else [])
        there = {ways.XPMEM: self.facts.knobs.xpmem, ways.KNEM: self.facts.knobs.knem, ways.CMA: True}
        for way in ways.SINGLE_COPY:
            device = ways.WAYS[way].devices or "yes"
            if there[way] is not True:
                yield self._row(way, NOT_HERE, "", False)
            elif way in used:
                yield self._use(way, device, True, "large messages are copied once")
            elif not self.stack.family.single_copy:
                yield self._row(way, device, "not by this library: its large messages are copied twice", False)
            elif not shared:
                yield self._row(way, device, "needs shared memory", None)
            elif way == ways.CMA and used:
                yield self._row(way, device, f"{used[0]} is used", False)
            else:
                yield self._use(way, device, False, "large messages are copied twice")

    def between_nodes(self) -> Iterator[Use]:
        """The networks with an active port, and TCP."""
        active = causes.fabrics(self.facts)
        if self.ran.failed:
            yield self._failed((ways.TCP, *active))
            return
        spoken = {way: [word for word in self.words if ways.is_of(word, way)] for way in active}
        opened = {way: self.ran.opened(ways.WAYS[way].devices) for way in active if not self.ran.by_tcp}
        used = {way: [*spoken[way], *opened.get(way, [])] for way in active}
        for way in ways.FABRICS:
            if way not in active:
                yield self._row(way, causes.inactive(self.facts, way) or NOT_HERE, "", False)
            elif used[way] or any(used.values()):
                others = ", ".join(network for network, words in used.items() if words)
                yield self._use(way, active[way], True, ", ".join(used[way]) or f"{others} is used")
            else:
                yield self._use(way, active[way], False, ", ".join(self._by_tcp()) or "not used")
        yield from self._tcp(bool(any(used.values())))
        yield from self._threads(active)

    def untried(self) -> Iterator[Use]:
        """Of one node: whether the library can use the active ports at all."""
        self.between = "nodes"
        active = causes.fabrics(self.facts)
        for way, ports in active.items():
            case = self.case(way)
            unable = set(case.able) <= set(case.broken)
            why = [reason for reason in causes.of(case) if reason.cause != NOT_THERE[1] or unable]
            yield self._row(way, ports, "cannot be" if why else "not tried: one node", True if why else None, why)
        yield from self._threads(active)

    def dropped(self) -> Iterator[Use]:
        """Variables of this shell that programs get which people start themselves, and these launches do not."""
        for name, value in sorted(self.ran.refused.items()):
            switches = (switch for switch in self.stack.family.switches if switch.variable == name)
            if off := sorted({switch.way for switch in switches if switch.is_off(value)}):
                yield self._row(
                    f"{name} of this shell", "", f"{name}={value}", None,
                    [Why("not given to these launches", f"turns {', '.join(off)} off", f"unset {name}")],
                )  # fmt: skip

    def _tcp(self, otherwise: bool) -> Iterator[Use]:
        cards = [
            f"{name} {speed / 1000:g} Gbit/s" if speed else name for name, _, speed in causes.interfaces(self.facts)
        ]
        why = causes.of(self.case(ways.TCP)) if self.ran.by_tcp else []
        seen = ", ".join(self._by_tcp()) or ("not needed" if otherwise else "not seen")
        seen += f", {figures}" if (figures := self._figures()) and self.ran.by_tcp else ""
        yield self._row(ways.TCP, ", ".join(cards[1:]) or NOT_HERE, seen, bool(why), why)

    def _threads(self, active: Sequence[str] | dict[str, str]) -> Iterator[Use]:
        """Programs with threads go by TCP where the library leaves out a UCX that was not built for them."""
        level = causes.threads_of_ucx(self.case(ways.INFINIBAND)) if self.stack.family.needs_threads_of_ucx else None
        if level is not None:
            is_bad = level != MULTI and bool({ways.INFINIBAND, ways.ROCE} & set(active))
            why = [Why(THREADLESS.name, "programs with MPI_THREAD_MULTIPLE go by TCP", THREADLESS.cure)]
            yield self._row(THREADS, "yes", "yes" if level == MULTI else "no", is_bad, why if is_bad else [])

    def _gpus(self) -> Iterator[Use]:
        makers = {devices.BUILT_WITH.get((gpu.vendor or "").removeprefix("0x")) for gpu in self.facts.gpus} - {None}
        if not makers:
            yield self._row(GPU, NOT_HERE, "", False)
            return
        wanted = ", ".join(sorted(map(str, makers)))
        supported = seen = self.stack.accelerator or "no"
        if "cuda" in makers and (variables := self.stack.family.gpu_buffers(self.stack.mpi.version)):
            is_set = all(self.settings.get(name, ("", ""))[0] == value for name, value in variables.items())
            words = " ".join(f"{name}={value}" for name, value in variables.items())
            supported, seen = "cuda", f"cuda: {words}{'' if is_set else ' for programs that need it'}"
        is_bad = supported not in makers
        why = [Why(NOT_THERE[0], f"the MPI library takes no memory of {wanted}", f"a build with {wanted}")]
        yield self._row(GPU, wanted, seen, is_bad, why if is_bad else [])

    def _by_tcp(self) -> list[str]:
        names = {address: name for name, address, _ in causes.interfaces(self.facts)}
        return [f"{size / 1e6:.0f} MB by TCP, {names.get(at, at)}" for at, size in self.ran.by_tcp.items()]

    def _figures(self) -> str:
        figures = self.ran.figures
        return f"{figures['latency']:.2f} us, {figures['bandwidth']:.0f} MB/s" if figures else ""

    def _failed(self, of: Sequence[str]) -> Use:
        reasons = [reason for way in of for reason in causes.of(self.case(way)) if reason.cause not in NOT_THERE]
        return self._row(MESSAGES, "yes", self.ran.failed, True, list(dict.fromkeys(reasons)))

    def _use(self, way: str, could: str, used: bool, seen: str) -> Use:
        return self._row(way, could, seen, not used, [] if used else causes.of(self.case(way)))

    def _row(self, name: str, could: str, seen: str, bad: bool | None, why: Sequence[Why] = ()) -> Use:
        reasons = why or (
            [Why("no cause is known", seen, "report it with plumb stack check --run --json")] if bad else []
        )
        return Use(
            name=name, seen=seen, bad=bad, stack=self.stack.name, between=self.between, could=could, why=tuple(reasons),
            effect="; ".join(f"{reason.cause}: {reason.seen}" for reason in reasons),
            cure="; ".join(dict.fromkeys(reason.cure for reason in reasons)),
        )  # fmt: skip


USES = Table[Use](
    "Ways",
    [
        Column("stack", lambda use: use.stack),
        Column("between", lambda use: use.between),
        Column("way", lambda use: use.name),
        Column("could be used", lambda use: use.could),
        Column("used", lambda use: use.seen),
        Column("verdict", lambda use: use.verdict),
    ],
    whole=True,
)


def text(uses: Sequence[Use]) -> str:
    """A row for each way, then a line for each that was missed."""
    lines = [f"{use.stack}: {use.name}: {why}" for use in uses for why in use.why]
    missed = sum(use.bad is True for use in uses)
    last = f"{missed} of {len(uses)} missed" if missed else "nothing that could be used is missed"
    return "\n".join([USES.text(uses), "", *lines, *([""] if lines else []), last])
