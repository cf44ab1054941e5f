"""Profiles: what the ranks of a launch spent in MPI, as ``libplumbprofile.so`` wrote it; and the sums of a profile.

The types decode the files of the ranks, and the file that is kept beside a record
(:mod:`plumbline.launch.profile_files`). Times are in nanoseconds, sizes in bytes, ranks those of MPI_COMM_WORLD.
``plumbline/base/schemas/profile.json`` is made from :class:`Printed` (``tests/support/schema_files.py``).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from msgspec import Struct

from plumbline.host.ceilings import Bound
from plumbline.parsers.measurement import Work

Key = TypeVar("Key")
Role = Literal[
    "other", "send", "receive", "exchange", "collective", "neighbour", "put", "get", "start", "wait"
]  # fmt: skip


class Sizes(Struct, frozen=True, gc=False, kw_only=True):
    """The calls of one name whose sizes lie between the same powers of two.

    The size of a call is what this rank gives in it, or asks for: elements times the size of their type. ``completed``
    requests took ``completion_ns`` from the call until they were found done; ``waited_ns`` passed in the barrier before
    a collective call, in a run that splits waiting from transfer.
    """

    count: int
    time_ns: int
    least_ns: int
    most_ns: int
    bytes: int
    least_bytes: int
    most_bytes: int
    completed: int
    completion_ns: int
    waited_ns: int


class Call(Struct, frozen=True, gc=False, kw_only=True):
    """A call of MPI, without the prefix ``MPI_``. ``request``: the call is complete only when its request is."""

    call: str
    role: Role
    request: bool
    sizes: list[Sizes]


class Communicator(Struct, frozen=True, gc=False, kw_only=True):
    """A communicator or window of one rank, and the calls on it.

    Number 0 stands for calls without one, the last number for all that found no place in the table. ``members`` is a
    hash of the members' ranks, the same on each of them.
    """

    id: int
    size: int
    rank: int
    members: str
    window: bool
    inter: bool
    calls: list[Call]


class Peer(Struct, frozen=True, gc=False, kw_only=True):
    """Messages between a rank and ``rank``, of point-to-point and one-sided calls."""

    rank: int
    sent_messages: int
    sent_bytes: int
    received_messages: int
    received_bytes: int


class Lost(Struct, frozen=True, gc=False, kw_only=True):
    """How many times each table of fixed size had no room."""

    communicators: int
    members: int
    peers: int
    requests: int

    @property
    def full(self) -> bool:
        """Whether a table was full; peers are lost without that too."""
        return bool(self.communicators or self.members or self.requests)


class RankProfile(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One rank, from the return of MPI_Init to the call of MPI_Finalize, or to how it ``ended`` before.

    Without MPI_Init: from its first session to the end of its last, by ranks of the set ``mpi://WORLD``.

    One that was killed has what the library had written until then. ``wall_ns`` is without ``off_ns``, the time for
    which the program switched the profile off.

    ``cost_ps`` is what counting one call costs, ``clock_ps`` the part of it that reading the clock is; both in
    picoseconds, measured at the start.
    """

    schema: Literal[1]
    host: str
    pid: int
    rank: int
    size: int
    program: str
    ended: Literal["MPI_Finalize", "MPI_Abort", "SIGTERM", "exit", "killed"]
    wall_ns: int
    off_ns: int = 0
    cost_ps: int
    clock_ps: int
    clock: str
    thread_level: int
    multiple: bool
    threads: int
    waiting_split: bool
    communicators: list[Communicator]
    peers: list[Peer]
    lost: Lost

    @property
    def mpi_ns(self) -> int:
        """Time in MPI calls."""
        return sum(size.time_ns for group in self.communicators for call in group.calls for size in call.sizes)

    @property
    def calls(self) -> int:
        """How many calls were counted."""
        return sum(size.count for group in self.communicators for call in group.calls for size in call.sizes)

    @property
    def sent_bytes(self) -> int:
        """Bytes sent to other ranks by point-to-point and one-sided calls."""
        return sum(peer.sent_bytes for peer in self.peers)


class RankPlace(Struct, frozen=True, gc=False, kw_only=True):
    """CPUs of a rank, and the core, L3, NUMA node and package that contain all of them; -1 if no single one does."""

    rank: int
    host: str
    cpus: list[int]
    core: int
    l3: int
    numa: int
    package: int


class Traffic(Struct, gc=False, kw_only=True):
    """Messages between ranks whose smallest common object is ``inside``."""

    inside: str
    messages: int = 0
    bytes: int = 0


class RankMap(Struct, frozen=True, gc=False, kw_only=True):
    """A placement of ranks: ``ranks[i]`` is the rank in place i; ``traffic`` is what the ranks would send by class."""

    name: str
    ranks: list[int]
    traffic: list[Traffic]


class Profile(Struct, frozen=True, gc=False, kw_only=True):
    """The profile of one launch; ``missing`` names ranks that left none. ``record`` is the id of its record.

    ``work``: the processors' counts, and the bytes that plumb.yaml says; ``ceiling``: the bandwidth that memory reached
    on its cores when the site was measured. Profiles of earlier versions have neither.
    """

    schema: Literal[1] = 1
    record: str
    variant: str
    stack: str
    placement: str
    command: list[str]
    time: str
    ranks: list[RankProfile]
    missing: list[int]
    places: list[RankPlace]
    work: Work | None = None
    ceiling: Bound | None = None


class Printed(Profile, frozen=True, gc=False, kw_only=True):
    """The document of ``--json``: the stored profile, its traffic, and rank maps with less distant traffic.

    The stored file has neither, because both follow from peers and places.
    """

    traffic: list[Traffic] = []
    maps: list[RankMap] = []


@dataclass
class Total:
    """Calls that belong together. ``by_rank`` has the time of each rank that made one; times are nanoseconds."""

    call: str
    role: Role
    count: int = 0
    time_ns: int = 0
    least_ns: int | None = None
    most_ns: int = 0
    bytes: int = 0
    least_bytes: int | None = None
    most_bytes: int = 0
    completed: int = 0
    completion_ns: int = 0
    waited_ns: int = 0
    by_rank: dict[int, int] = field(default_factory=dict)

    def add(self, rank: int, sizes: Sizes) -> None:
        """Count the calls of ``sizes`` as rank ``rank``'s."""
        for name in ("count", "time_ns", "bytes", "completed", "completion_ns", "waited_ns"):
            setattr(self, name, getattr(self, name) + getattr(sizes, name))
        self.least_ns = sizes.least_ns if self.least_ns is None else min(self.least_ns, sizes.least_ns)
        self.least_bytes = sizes.least_bytes if self.least_bytes is None else min(self.least_bytes, sizes.least_bytes)
        self.most_ns = max(self.most_ns, sizes.most_ns)
        self.most_bytes = max(self.most_bytes, sizes.most_bytes)
        self.by_rank[rank] = self.by_rank.get(rank, 0) + sizes.time_ns

    @property
    def mean_ns(self) -> float:
        """Mean time of one call, in ns."""
        return self.time_ns / self.count

    @property
    def variation(self) -> float:
        """Standard deviation over mean of the ranks' times, as mpiP's COV; 0 for one rank."""
        times = list(self.by_rank.values())
        mean = statistics.fmean(times)
        return statistics.pstdev(times) / mean if mean else 0.0


def per_call(ranks: Iterable[RankProfile]) -> list[Total]:
    """A total for each call, the one with most time first."""
    totals = _totals((call.call, rank, call, sizes) for rank, _, call, sizes in _entries(ranks))
    return sorted(totals.values(), key=lambda total: (-total.time_ns, total.call))


def per_size(profile: Profile) -> list[tuple[str, Total]]:
    """(communicator, total) for each call, power of two of the size and communicator; most time first."""
    names = {rank.rank: names_of(rank) for rank in profile.ranks}
    totals = _totals(
        ((names[rank.rank][communicator.id], call.call, sizes.most_bytes.bit_length()), rank, call, sizes)
        for rank, communicator, call, sizes in _entries(profile.ranks)
    )
    rows = [(key[0], total) for key, total in totals.items()]
    return sorted(rows, key=lambda row: (-row[1].time_ns, row[1].call, row[1].most_bytes, row[0]))


def by_size(profile: Profile) -> dict[tuple[str, int], Total]:
    """The totals by call and power of two of the size, over all communicators."""
    entries = _entries(profile.ranks)
    return _totals(((call.call, sizes.most_bytes.bit_length()), rank, call, sizes) for rank, _, call, sizes in entries)


def _entries(ranks: Iterable[RankProfile]) -> Iterator[tuple[RankProfile, Communicator, Call, Sizes]]:
    return (
        (rank, communicator, call, sizes)
        for rank in ranks
        for communicator in rank.communicators
        for call in communicator.calls
        for sizes in call.sizes
    )


def _totals(entries: Iterable[tuple[Key, RankProfile, Call, Sizes]]) -> dict[Key, Total]:
    totals: dict[Key, Total] = {}
    for key, rank, call, sizes in entries:
        totals.setdefault(key, Total(call.call, call.role)).add(rank.rank, sizes)
    return totals


def names_of(rank: RankProfile) -> dict[int, str]:
    """Names of a rank's communicators, by number: the n-th of a size has the same name on each rank."""
    names: dict[int, str] = {}
    met: dict[tuple[bool, int], int] = {}
    for communicator in sorted(rank.communicators, key=lambda communicator: communicator.id):
        kind = (communicator.window, communicator.size)
        met[kind] = number = met.get(kind, 0) + 1
        noun = "window" if communicator.window else "comm"
        name = f"{noun} of {communicator.size}{f' #{number}' if number > 1 else ''}"
        without = "-" if communicator.id == 0 else "others"
        names[communicator.id] = name if communicator.size else without
    return names


def mpi_share(rank: RankProfile) -> float:
    """The time that all threads of the rank spent in MPI together, as a fraction of its wall time: it may exceed 1."""
    return rank.mpi_ns / rank.wall_ns if rank.wall_ns else 0.0


def share(ranks: Iterable[RankProfile]) -> float:
    """How many percent of their time the ranks spent in MPI."""
    times = [(rank.mpi_ns, rank.wall_ns) for rank in ranks]
    wall = sum(ns for _, ns in times)
    return 100 * sum(ns for ns, _ in times) / wall if wall else 0.0


def counted(ranks: Sequence[RankProfile]) -> list[tuple[str, str]]:
    """A row of facts: how much of a rank's time was counted, in the mean; no row if the profile was never off."""
    if not any(rank.off_ns for rank in ranks):
        return []
    wall = statistics.fmean(rank.wall_ns for rank in ranks) / 1e9
    off = statistics.fmean(rank.off_ns for rank in ranks) / 1e9
    text = f"{wall:.4g} s of {wall + off:.4g} s a rank: the program switched the profile off (MPI_Pcontrol)"
    return [("counted", text)]


#: classes of messages: the smallest object that holds both ranks, from near to far (class, the member of a place
#: that two ranks of it share)
SHARED = (("core", "core"), ("L3", "l3"), ("NUMA node", "numa"), ("package", "package"))
SELF, NODE, NODES = "itself", "node", "between nodes"
CLASSES = (SELF, *(name for name, _ in SHARED), NODE, NODES)


def class_of(first: RankPlace, second: RankPlace) -> str:
    """The class of two ranks, by what they share. A rank that is not bound to one object of a kind shares none of it.

    >>> near = RankPlace(rank=0, host="a", cpus=[0], core=0, l3=0, numa=0, package=0)
    >>> class_of(near, RankPlace(rank=1, host="a", cpus=[1], core=1, l3=0, numa=0, package=0))
    'L3'
    >>> class_of(near, RankPlace(rank=2, host="b", cpus=[0], core=0, l3=0, numa=0, package=0))
    'between nodes'
    """
    if first.rank == second.rank:
        return SELF
    if first.host != second.host:
        return NODES
    return next((name for name, kind in SHARED if -1 < getattr(first, kind) == getattr(second, kind)), NODE)


def traffic(profile: Profile) -> dict[str, Traffic]:
    """Messages and bytes by class, in the order of :data:`CLASSES`; classes without a message are left out.

    Messages of ranks whose place is not known are not counted.
    """
    places = {place.rank: place for place in profile.places}
    classes = {name: Traffic(inside=name) for name in CLASSES}
    for rank in profile.ranks:
        for peer in rank.peers:
            if rank.rank in places and peer.rank in places:
                mine = classes[class_of(places[rank.rank], places[peer.rank])]
                mine.messages += peer.sent_messages
                mine.bytes += peer.sent_bytes
    return {name: crossing for name, crossing in classes.items() if crossing.messages}
