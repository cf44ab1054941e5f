"""What the messages between ranks crossed, by the smallest object (core, L3, NUMA node …) that holds both ranks."""

from __future__ import annotations

from plumbline.profiles.model import Place, Profile, Traffic

#: from near to far: (class, the member of a place that two ranks of it share)
SHARED = (("core", "core"), ("L3", "l3"), ("NUMA node", "numa"), ("package", "package"))
SELF, NODE, NODES = "itself", "node", "between nodes"
CLASSES = (SELF, *(name for name, _ in SHARED), NODE, NODES)


def class_of(one: Place, other: Place) -> str:
    """The class of two ranks, by what they share. A rank that is not bound to one object of a kind shares none of it.

    >>> near = Place(rank=0, host="a", cpus=[0], core=0, l3=0, numa=0, package=0)
    >>> class_of(near, Place(rank=1, host="a", cpus=[1], core=1, l3=0, numa=0, package=0))
    'L3'
    >>> class_of(near, Place(rank=2, host="b", cpus=[0], core=0, l3=0, numa=0, package=0))
    'between nodes'
    """
    if one.rank == other.rank:
        return SELF
    if one.host != other.host:
        return NODES
    return next((name for name, kind in SHARED if -1 < getattr(one, kind) == getattr(other, kind)), NODE)


def traffic(profile: Profile) -> dict[str, Traffic]:
    """What was sent, by class, in the order of :data:`CLASSES`; classes without a message are left out.

    Messages of ranks whose place is not known are not counted.
    """
    places = {place.rank: place for place in profile.places}
    found = {name: Traffic(inside=name) for name in CLASSES}
    for rank in profile.ranks:
        for peer in rank.peers:
            if rank.rank in places and peer.rank in places:
                mine = found[class_of(places[rank.rank], places[peer.rank])]
                mine.messages += peer.sent_messages
                mine.bytes += peer.sent_bytes
    return {name: one for name, one in found.items() if one.messages}


def matrix(profile: Profile) -> list[list[int]]:
    """Bytes that rank i sent to rank j."""
    size = max((rank.size for rank in profile.ranks), default=0)
    rows = [[0] * size for _ in range(size)]
    for rank in profile.ranks:
        for peer in rank.peers:
            rows[rank.rank][peer.rank] = peer.sent_bytes
    return rows
