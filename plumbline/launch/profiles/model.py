"""The definition of a profile: types that decode the files of the ranks, and the file that is kept beside a record.

Times are in nanoseconds, sizes in bytes, ranks those of MPI_COMM_WORLD.
``plumbline/base/schemas/profile.json`` is made from :class:`Printed` (``tests/support/schema_files.py``).
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

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
    """The profile of one launch; ``missing`` names ranks that left none. ``record`` is the id of its record."""

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


class Printed(Profile, frozen=True, gc=False, kw_only=True):
    """The document of ``--json``: the stored profile, its traffic, and rank maps with less distant traffic.

    The stored file has neither, because both follow from peers and places.
    """

    traffic: list[Traffic] = []
    maps: list[RankMap] = []
