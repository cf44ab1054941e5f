"""What is wrong with the places of ranks without any plan: a table of rules (:data:`UNPLANNED`), as launches have one.

A rule is silent on a host of which it is not known which CPUs the command may use and how they lie.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from plumbline import mpi
from plumbline.base import group
from plumbline.base.units import counted, cpu_list, human_bytes, numbered
from plumbline.host.machine import Machine
from plumbline.launch.witness import processes
from plumbline.launch.witness.model import RankWitness, Thread, Witness
from plumbline.mpi import ways

Subject = TypeVar("Subject")
#: a thread that used less of the busiest thread's CPU time did not do the work: MPI libraries have threads of their own
WORKED = 0.1
#: seconds within which times are not told from one another: a tick of a kernel that counts in 1/100 s
TICK = 0.01
#: Threads meet if they want more CPUs at once than this multiple of those that they have: by what they used, on
#: hardware threads too, and waited for. Those that take turns, as Python's do, want one.
MORE = 1.05
#: part of a rank's memory, and bytes, from which on it matters where its pages lie
FAR, FAR_BYTES = 0.1, 16 << 20
#: bytes from which on the channels of several NUMA nodes matter, or the way by which ranks of a host send
LARGE = 256 << 20
#: part of such memory that is as good as all of it
MOST = 0.9


@dataclass(frozen=True)
class Rule(Generic[Subject]):
    """For subjects that fulfil ``condition``, ``evidence`` gives the reasons, ``cures`` words of one -> its cure."""

    condition: Callable[[Subject], bool]
    evidence: Callable[[Subject], Iterable[str]]
    cures: Mapping[str, str | Callable[[Subject], str]] = field(default_factory=dict)


def always(_: object) -> bool:
    """The condition that every subject fulfils."""
    return True


class Team(NamedTuple):
    """The threads of a process that did its work: how many, their CPUs and cores, CPUs ``wanted`` on average."""

    rank: RankWitness
    process: Witness
    threads: int
    cpus: frozenset[int]
    cores: frozenset[int]
    wanted: float

    @property
    def pages(self) -> Counter[int]:
        """The bytes of the process by NUMA node."""
        memory = self.process.memory
        pages = Counter(memory.nodes) + Counter(memory.freed_nodes)
        return Counter({node: count * memory.page_bytes for node, count in pages.items()})


def worked(process: Witness) -> list[Thread]:
    """The threads of the process that did its work."""
    threads = [*process.threads, *process.ended]
    most = max(thread.cpu_s for thread in threads)
    return [thread for thread in threads if thread.cpu_s >= WORKED * most]


def at_once(rank: RankWitness, others: Iterable[Witness], ends: Mapping[str, float]) -> list[Witness]:
    """The process of ``rank``, and those of the ``others`` that ran at the same time as it and one another.

    ``ends``: when ``HOST.PID`` ended, in seconds on one clock for all of a host.
    """
    together: list[Witness] = [rank]
    for process in sorted(others, key=processes.cpu_s, reverse=True):
        if all(_met(process, each, ends) for each in together):
            together.append(process)
    return together


def _met(first: Witness, second: Witness, ends: Mapping[str, float]) -> bool:
    spans = [(ends.get(f"{each.host}.{each.pid}", 0.0), each.usage.wall_s) for each in (first, second)]
    common = min(end for end, _ in spans) - max(end - wall for end, wall in spans)
    return common > WORKED * min(wall for _, wall in spans) + TICK


@dataclass(frozen=True)
class Host:
    """The ranks of a command on a host. ``allowed``: the CPUs that it may use there; ``bound``: they are to be bound.

    ``launchers``: their names. ``together``: host and number of a rank's process -> it and those that worked with it.
    ``gpus``: PCI address of a GPU -> the CPUs beside it. ``planned``: the command is compared with a plan. ``fabric``:
    devices of InfiniBand that could be used; ``sent``: of all hosts, as :func:`sent_by_tcp` has it.
    """

    name: str
    ranks: Sequence[RankWitness]
    machine: Machine
    allowed: frozenset[int]
    bound: bool = True
    launchers: Sequence[str] = ()
    together: Mapping[tuple[str, int], Sequence[Witness]] = field(default_factory=dict)
    gpus: Mapping[str, frozenset[int]] = field(default_factory=dict)
    planned: bool = False
    fabric: Sequence[str] = ()
    sent: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def words(self, of: str = "binding") -> str:
        """What binds the ranks, or makes them even over NUMA nodes (``even``), in the words of their launcher."""
        known = " or ".join(dict.fromkeys(getattr(mpi.WORDS[name], of) for name in self.launchers))
        most = max(map(sum, group((team.rank.pid, team.threads) for team in self.teams).values()))
        return known.replace("THREADS", str(most)) or f"{counted(most, 'core')} for {counted(most, 'thread')}"

    def cores(self, cpus: Iterable[int]) -> frozenset[int]:
        """The cores of ``cpus``, each by its first CPU."""
        first = {cpu: core.cpus[0] for core in self.machine.cores for cpu in core.cpus}
        return frozenset(first.get(cpu, cpu) for cpu in cpus)

    def nodes(self, cpus: Iterable[int]) -> set[int]:
        """The NUMA nodes of ``cpus``."""
        return {home.index for cpu in cpus if (home := self.machine.home_node(cpu))}

    @cached_property
    def teams(self) -> list[Team]:
        """The working threads of each process that worked."""
        every = ((rank, self.together.get((rank.host, rank.pid), [rank])) for rank in self.ranks)
        return [self._team(rank, each, together) for rank, together in every for each in together]

    def _team(self, rank: RankWitness, process: Witness, together: Sequence[Witness]) -> Team:
        threads, window = worked(process), process.window
        ended = [thread for thread in threads if thread in process.ended]
        alive = len(threads) - len(ended)
        # of ended threads with one binding there is one entry; the first thread may have waited for them
        count = max(alive, process.started_at_once or 1 if ended else 0)
        cpus = frozenset(cpu for thread in threads for cpu in thread.affinity)
        # a process that waits for another of its rank wants no CPU meanwhile
        wall_s = max(each.window.wall_s for each in together)
        waited = alive * window.delay_s + sum(thread.waited_s or 0 for thread in ended)
        return Team(rank, process, count, cpus, self.cores(cpus), (window.cpu_s + waited) / max(wall_s, 1e-9))

    def those(self, teams: Iterable[Team]) -> str:
        """The ranks of ``teams`` for people."""
        names = {(team.rank.rank, Path(team.process.program).name) for team in teams}
        numbers = {number for number, _ in names}
        programs = sorted({program for _, program in names})
        return f"{', '.join(programs) if min(numbers) < 0 else numbered('rank', numbers)} on {self.name}"


def _shared(host: Host) -> Iterator[str]:
    """Of ranks that have cores in common, those with more threads than cores, while other cores have nothing to do."""
    groups: list[list[Team]] = []
    for team in host.teams:
        touching = [each for each in groups if any(member.cores & team.cores for member in each)]
        groups = [each for each in groups if each not in touching] + [[*itertools.chain(*touching), team]]
    free = host.cores(host.allowed).difference(*(team.cores for team in host.teams))
    for teams in groups if free else ():
        cores = frozenset(core for team in teams for core in team.cores)
        cpus = frozenset(cpu for team in teams for cpu in team.cpus)
        threads = sum(team.threads for team in teams)
        wanted = sum(team.wanted for team in teams)
        if len({team.rank.pid for team in teams}) > len(cores) or (threads > len(cores) and wanted > MORE * len(cores)):
            on = f"{counted(len(cores), 'core')} ({numbered('CPU', cpus)}), while no rank uses {numbered('CPU', free)}"
            yield f"{counted(threads, 'thread')} of {host.those(teams)} share {on}"


def _short(host: Host) -> list[str]:
    threads = sum(team.threads for team in host.teams)
    if threads <= len(host.allowed) or sum(team.wanted for team in host.teams) <= MORE * len(host.allowed):
        return []
    cpus = f"{counted(len(host.allowed), 'CPU')} ({cpu_list(host.allowed)})"
    return [f"{counted(threads, 'thread')} of {host.those(host.teams)} worked on {cpus}, all that the command may use"]


def _unbound(host: Host) -> list[str]:
    several = len(host.ranks) > 1 or len(host.nodes(host.allowed)) > 1
    cores = len(host.cores(host.allowed))
    ranks = (team for team in host.teams if several and team.process is team.rank)
    free = [team for team in ranks if host.allowed <= team.cpus and team.threads < cores]
    if not free:
        return []
    moves = sum(thread.migrations or 0 for team in free for thread in team.rank.threads)
    moved = f"; threads moved {counted(moves, 'time')}" if moves else ""
    return [f"{host.those(free)} may run on every CPU of the command ({cpu_list(host.allowed)}): no binding{moved}"]


def _far(host: Host) -> Iterator[str]:
    homes = host.nodes(host.machine.cpus)
    for team in host.teams:
        near, pages = host.nodes(team.cpus), team.pages
        far = {node: count for node, count in pages.items() if near and node in homes - near}
        size, total = sum(far.values()), sum(pages.values())
        if size >= max(FAR * total, FAR_BYTES):
            lies = f"{human_bytes(size)} ({size / total:.0%}) of {host.those([team])}"
            yield f"{lies} lie on {numbered('NUMA node', far)}, its threads run on {numbered('node', near)}"


def _free(host: Host) -> bool:
    return not host.planned


def _one_sided(host: Host) -> Iterator[str]:
    """Of ranks whose threads are bound on several NUMA nodes, those with their memory on one."""
    for team in host.teams:
        pages, near = team.pages, host.nodes(team.cpus)
        node, size = max(pages.items(), key=lambda item: item[1], default=(-1, 0))
        stay = all(len(host.nodes(thread.affinity)) == 1 for thread in worked(team.process))
        if stay and node in near and len(near) > 1 and size >= max(MOST * pages.total(), LARGE):
            lies = f"{human_bytes(size)} ({size / pages.total():.0%}) of {host.those([team])} lie on NUMA node {node}"
            yield f"{lies}, its threads run on {numbered('node', near)}: other memory channels are idle"


def _uneven(host: Host) -> list[str]:
    """Ranks with much memory that crowd on some NUMA nodes, while others of equal size have room for one more."""
    room = group((min(host.nodes([core]), default=-1), core) for core in host.cores(host.allowed))
    places = [host.nodes(team.cpus) for team in host.teams]
    ranks = Counter(node for nodes in places for node in nodes)
    crowded, sparse = max(room, key=ranks.__getitem__), min(room, key=ranks.__getitem__)
    free = len(set(room[sparse]).difference(*(team.cores for team in host.teams)))
    alike = len(set(map(len, room.values()))) == 1 and all(len(nodes) == 1 for nodes in places)
    much = sum(team.pages.total() for team in host.teams) >= LARGE
    fits = free >= max(team.threads for team in host.teams)
    if not (alike and much and fits and ranks[crowded] - ranks[sparse] > 1):
        return []
    there = f"{ranks[sparse]} on node {sparse} with {counted(free, 'unused core')}"
    return [f"{ranks[crowded]} of {counted(len(places), 'rank')} on {host.name} run on NUMA node {crowded}, {there}"]


def sent_by_tcp(ranks: Iterable[RankWitness]) -> dict[tuple[str, str], int]:
    """Both ends of each connection of ranks with MPI, the rank's own first -> the bytes that it sent by it."""
    seen = [rank.transports for rank in ranks if rank.mpi and rank.transports]
    return {ends: max(0, size) for each in seen for ends, size in zip(each.tcp, each.tcp_sent, strict=False)}


def _by_tcp(host: Host) -> list[str]:
    sent = sent_by_tcp(host.ranks)
    size = sum(sent[local, peer] for local, peer in sent if (peer, local) in sent)
    between = f"the ranks on {host.name} sent one another {human_bytes(size)} by TCP"
    return [f"{between}, not by shared memory"] if size >= LARGE else []


def _past_fabric(host: Host) -> list[str]:
    sent = sent_by_tcp(host.ranks)
    size = sum(sent[local, peer] for local, peer in sent if (peer, local) in host.sent and (peer, local) not in sent)
    between = f"the ranks on {host.name} sent those on other hosts {human_bytes(size)} by TCP"
    return [f"{between}, not by InfiniBand ({', '.join(host.fabric)})"] if host.fabric and size >= LARGE else []


def _far_gpu(host: Host) -> Iterator[str]:
    for team in host.teams:
        address = team.process.gpu_address or ""
        near = host.gpus.get(address.lower()[-12:], frozenset())
        if near and not near & team.cpus:
            gpu = f"GPU {address} of {host.those([team])} is beside {numbered('CPU', near)}"
            yield f"{gpu}, its threads run on {numbered('CPU', team.cpus)}"


#: kinds of what is wrong
SHARED, SHORT, UNBOUND, FAR_MEMORY = "shared cores", "too few CPUs", "no binding", "far memory"
ONE_SIDED, UNEVEN, BY_TCP, FAR_GPU = "memory on one NUMA node", "uneven NUMA nodes", "TCP inside a node", "far GPU"
PAST_FABRIC = "TCP beside InfiniBand"


def _switches(way: str) -> str:
    """The variables by which a way of messages is turned off."""
    every = (each for family in mpi.TABLE.values() for each in family.switches)
    return ", ".join(dict.fromkeys(each.variable for each in every if each.way == way))


#: of the ranks on each host; the words of a cure are its kind
UNPLANNED: tuple[Rule[Host], ...] = (
    Rule(always, _shared, {SHARED: lambda host: f"give each thread a core: {host.words()}"}),
    Rule(always, _short, {SHORT: "ask the scheduler for a CPU per thread, or start fewer threads (OMP_NUM_THREADS)"}),
    Rule(attrgetter("bound"), _unbound, {
        UNBOUND: lambda host: f"bind the ranks: {host.words()}; and threads: OMP_PLACES=cores OMP_PROC_BIND=close"
    }),
    Rule(always, _far, {
        FAR_MEMORY: "let each thread write first what it will read, or take local memory: numactl -l PROGRAM"
    }),
    Rule(_free, _one_sided, {
        ONE_SIDED: "let each thread write first what it will read, or spread the pages: numactl -i all PROGRAM"
    }),
    Rule(_free, _uneven, {UNEVEN: lambda host: f"spread the ranks over the NUMA nodes: {host.words('even')}"}),
    Rule(_free, _by_tcp, {BY_TCP: f"let MPI use shared memory, which these turn off: {_switches(ways.SHARED)}"}),
    Rule(_free, _past_fabric, {
        PAST_FABRIC: f"let MPI use InfiniBand ({ways.WAYS[ways.INFINIBAND].build}), "
        f"which these turn off: {_switches(ways.INFINIBAND)}"
    }),
    Rule(_free, _far_gpu, {FAR_GPU: "bind each rank beside its GPU: plumb-bind --placement gpu"}),
)  # fmt: skip


class Finding(NamedTuple):
    """What is wrong on a host, by a rule of :data:`UNPLANNED`."""

    kind: str
    reason: str
    cure: str
    host: str = ""


def findings(host: Host) -> list[Finding]:
    """What is wrong with the places of the ranks of ``host``."""
    return [
        Finding(kind, reason, cure if isinstance(cure, str) else cure(host), host.name)
        for rule in UNPLANNED
        if rule.condition(host)
        for reason in rule.evidence(host)
        for kind, cure in rule.cures.items()
    ]
