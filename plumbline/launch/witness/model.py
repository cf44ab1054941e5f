"""The form of a witness: types that decode the file which ``libplumbwitness.so`` writes for each process of a rank.

CPU and node numbers are the operating system's. ``plumbline/base/schemas/witness.json`` is made from :class:`Witness`
(``tests/support/schema_files.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from plumbline.base import group
from plumbline.host.binder import Count, Index, PlannedRank
from plumbline.records.launch import LoadedFile

Seconds: TypeAlias = Annotated[float, Meta(ge=0)]
#: a number that the launcher's environment gives; -1 if it gives none
Told: TypeAlias = Annotated[int, Meta(ge=-1)]
#: member of a witness's ``transports`` that counts something -> the word for it in records
COUNTED = {"shm_bytes": "shm", "sysv_bytes": "sysv", "file_bytes": "file", "copies": "cma"}


class Start(Struct, frozen=True, gc=False, kw_only=True):
    """A process when the library was loaded: its CPUs, and how it was scheduled (sched(7), personality(2)).

    ``inherited``: attributes that it has from its parent and that differ from the kernel's defaults, in words.
    """

    affinity: list[int]
    policy: int
    nice: int
    personality: int
    inherited: list[str] = []


class Thread(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A thread at its end or that of the process. ``policy`` is that of scheduling: SCHED_OTHER is 0.

    ``migrations`` counts since MPI_Init or its start, and is absent where the kernel does not tell. ``waited_s``: what
    threads that ended had waited for a CPU, where they worked. ``away_s``: its CPU time while it was bound to CPUs that
    its rank does not have, ``away_migrations`` of the migrations were then, the last ended ``away_until_s`` after the
    window's begin.
    """

    tid: int
    name: str
    affinity: list[int]
    last_cpu: int
    migrations: int | None = None
    cpu_s: Seconds
    waited_s: Seconds | None = None
    away_s: Seconds = 0.0
    away_migrations: int = 0
    away_until_s: Seconds = 0.0
    policy: int
    nice: int


class Memory(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Pages of anonymous mappings by NUMA node: ``nodes`` those present at exit, ``freed_nodes`` estimates before.

    Mappings of which less than ``threshold_bytes`` is present are not counted. ``unavailable``: why pages are not
    known. ``grain_bytes``: the least amount that the kernel gives.
    """

    page_bytes: int
    grain_bytes: int | None = None
    threshold_bytes: int
    source: str | None = None
    nodes: dict[int, Index]
    freed_nodes: dict[int, Index]
    freed_blocks: int | None = None
    freed_blocks_skipped: int | None = None
    untracked_mappings: int | None = None
    unavailable: str | None = None


class HostWindow(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """By CPU, its time in processes and the hypervisor's; the time that some task waited for memory."""

    busy_s: dict[int, Seconds]
    steal_s: dict[int, Seconds]
    memory_stall_s: Seconds | None = None


class Window(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Between MPI_Init and MPI_Finalize, or the whole run without MPI: CPU time of the process.

    Without MPI_Init, it is the last time in which the process had MPI sessions.
    ``delay_s``: the longest time that one of its threads, which wanted a CPU for half of the window at least, waited
    for one. ``idle_s``: the least time that one of the threads that were there at the end neither ran nor waited for a
    CPU, where the kernel counts what they wait; ``sleeps``: how often the thread that ended the window gave up its CPU
    or was stopped. ``clock_s``: the time that passed on that clock which the program reads and which differs most from
    the kernel's, ``clock``; None in records of earlier versions, as ``begin_s`` is, the begin by the kernel's monotonic
    clock. ``host`` is from the first rank of a host.
    """

    begin_s: Seconds | None = None
    wall_s: Seconds
    cpu_s: Seconds
    delay_s: Seconds
    idle_s: Seconds | None = None
    sleeps: Index | None = None
    clock_s: Seconds | None = None
    clock: str = "clock_gettime"
    host: HostWindow | None = None


class Usage(Struct, frozen=True, gc=False, kw_only=True):
    """Since the program began. ``before_s``: CPU time of the process before that; ``children_s``: of ended children.

    ``unlisted_s``: of its threads that ended without being seen.
    """

    wall_s: float
    user_s: float
    system_s: float
    before_s: float
    children_s: float
    unlisted_s: float
    voluntary_switches: int
    involuntary_switches: int
    minor_faults: int
    major_faults: int


class Setting(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A setting as the MPI library had it. ``word`` is its word for a number, ``about`` its description."""

    name: str
    value: str
    word: str | None = None
    about: str


class Transports(Struct, frozen=True, gc=False, kw_only=True):
    """By what the process could reach other ranks when it called MPI_Finalize, or at its end.

    Mapped bytes of /dev/shm, of System V's shared memory and of other files, of which ``file`` is the first;
    ``present_bytes`` of its memory were present, ``huge_bytes`` of them in huge pages (0: PLUMB_WITNESS_PAGES was not
    set, or the kernel does not tell);
    ``copies``: calls of process_vm_readv and process_vm_writev that copied something, ``refused``: those
    that were not permitted;
    ``user_namespace``: as the kernel names it; ``tcp``: both ends of the first 1024 connections, this process's first,
    ``tcp_sent``: the bytes that it sent by each, -1 where the kernel does not tell; ``devices``: device files open, but
    terminals and the like. Witnesses of earlier versions count all calls as ``copies``.
    """

    shm_bytes: int
    sysv_bytes: int
    file_bytes: int
    file: str
    present_bytes: int = 0
    huge_bytes: int = 0
    copies: int
    refused: int = 0
    user_namespace: str = ""
    connections: int
    tcp: list[tuple[str, str]]
    tcp_sent: list[int] = []
    devices: list[str]


class Witness(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The account of one process of a rank, written by libplumbwitness.so at its exit.

    ``parent`` started it; ``ancestors`` are its parent at its end, the parent of that and so on; ``root`` is what
    plumb-bind became: this process, or an ancestor; 0 without plumb-bind. ``forked``: started by fork without exec.
    ``plan`` is this rank's, as plumb-bind exported it. ``device_variables`` choose GPUs, as the process had them when
    it began, or gave them to itself. ``gpu_address``: PCI address of the GPU of the thread that called MPI_Finalize,
    says the CUDA driver. ``ended``: threads that ended while the program ran, one for each binding and scheduling, with
    the CPU time of all; ``started_at_once``: the most threads that the program had at once beside its first one.
    ``personality`` is that at its end. ``modules``: its LOADEDMODULES, in jobs of users. ``mpi``: MPI_Init was called,
    says the process's own MPI library, whose file is ``mpi_library``, or MPI_Session_init. ``world``: ranks in
    MPI_COMM_WORLD, or in a session's mpi://WORLD, when it returned, where it could be asked. ``settings``: of those
    that PLUMB_WITNESS_SETTINGS names, the ones that the library knows, as it had them when MPI_Finalize was called.
    ``objects``: the program and the libraries loaded at the end.
    """

    schema: Literal[1]
    host: str
    pid: int
    parent: int
    ancestors: list[int]
    root: int
    forked: bool
    rank: Told
    local_rank: Told
    size: Told
    program: str
    plan: PlannedRank | None
    device_variables: dict[str, str] = {}
    gpu_address: str | None = None
    usage: Usage
    window: Window
    start: Start
    threads: Annotated[list[Thread], Meta(min_length=1)]
    ended: list[Thread]
    started_at_once: int | None = None
    memory: Memory
    personality: int
    modules: str = ""
    mpi: bool
    mpi_library: str | None = None
    world: Count | None = None
    settings: list[Setting] | None = None
    objects: list[LoadedFile]
    transports: Transports | None = None

    @property
    def rank_on_node(self) -> int:
        """By the launcher, else by the binder's plan, else the rank itself; 0 for one without a launcher."""
        if self.local_rank >= 0:
            return self.local_rank
        return self.plan.local_rank if self.plan else max(0, self.rank)

    @property
    def title(self) -> str:
        """Its rank and host, for people."""
        return f"rank {self.rank if self.rank >= 0 else self.rank_on_node} on {self.host}"


class RankWitness(Witness, frozen=True, gc=False, kw_only=True):
    """The process of a rank that did the work, with the rank's ``others``."""

    others: list[Witness] = []


def sent_between(witnesses: Sequence[Witness]) -> dict[str, int]:
    """The address by which the first of the ranks reached the others over TCP -> bytes, both ways.

    Connections of which no other rank has an end (those to a launcher) do not count.
    """
    seen = [item.transports for item in witnesses if item.transports]
    sent = {ends: size for transports in seen for ends, size in zip(transports.tcp, transports.tcp_sent, strict=False)}
    both = [(local, peer) for local, peer in (seen[0].tcp if seen else ()) if (peer, local) in sent]
    totals = group(
        (local.rpartition(":")[0].strip("[]"), max(0, sent[local, peer]) + max(0, sent[peer, local]))
        for local, peer in both
    )
    return {address: sum(sizes) for address, sizes in totals.items()}


def transports_between(witnesses: Sequence[Witness]) -> list[str]:
    """The words for the transports between the ranks, sorted; empty unless two witnesses at least have ``transports``.

    ``shm``: memory in /dev/shm; ``sysv``: memory of System V; ``file``: a file that is mapped and written; ``cma``:
    copies from the memory of one process to that of another; ``tcp``: a connection of which two ranks have an end
    (those to a launcher are not); any other word is a device file. A transport may be open and unused.
    """
    seen = [item.transports for item in witnesses if item.transports]
    if len(seen) < 2:
        return []
    words = {word for transports in seen for member, word in COUNTED.items() if getattr(transports, member)}
    words |= {device for transports in seen for device in transports.devices}
    ends = {pair for transports in seen for pair in transports.tcp}
    return sorted(words | ({"tcp"} if any((peer, local) in ends for local, peer in ends) else set()))
