"""Rank maps: what the messages of a profile would cross if its ranks sat in other places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import structs

from plumbline.base.errors import PlumbError
from plumbline.host import binder, machine
from plumbline.launch import profiles
from plumbline.launch.profile_files import place_on
from plumbline.launch.profiles import Printed, Profile, RankMap, RankPlace, Traffic

#: more ranks take too long: the search looks at every pair of them for each exchange
MOST_RANKS = 512
SUGGESTED = "suggested"
#: objects that the search deals ranks over, from far to near
_OBJECTS = ("host", "package", "numa", "l3", "core")

Matrix = npt.NDArray[np.int64]


def messages(profile: Profile) -> Matrix:
    """Messages and bytes of all ranks that left a profile: element [i, j] has both of what rank i sent to rank j."""
    size = max((rank.size for rank in profile.ranks), default=0)
    sent = np.zeros((size, size, 2), np.int64)
    for rank in profile.ranks:
        for peer in rank.peers:
            sent[rank.rank, peer.rank] = peer.sent_messages, peer.sent_bytes
    return sent


def rank_map(name: str, sent: Matrix, places: Sequence[RankPlace], ranks: Sequence[int]) -> RankMap:
    """The map that has rank ``ranks[i]`` in ``places[i]``, with what it sends by class."""
    order = np.array(ranks)
    classes = {name: number for number, name in enumerate(profiles.CLASSES)}
    kinds = np.array([[classes[profiles.class_of(place, peer)] for peer in places] for place in places], np.int64)
    ordered = sent[np.ix_(order, order)]
    totals = {inside: ordered[kinds == number].sum(axis=0).tolist() for inside, number in classes.items()}
    traffic = [Traffic(inside=inside, messages=count, bytes=size) for inside, (count, size) in totals.items() if count]
    return RankMap(name=name, ranks=list(map(int, ranks)), traffic=traffic)


def distance(seats: RankMap) -> tuple[int, ...]:
    """The bytes of each class, the farthest first: of two maps the one with less is better."""
    size = {traffic.inside: traffic.bytes for traffic in seats.traffic}
    return tuple(size.get(name, 0) for name in reversed(profiles.CLASSES))


def here(profile: Profile) -> list[RankMap]:
    """The map that the ranks had and one over the same places that sends less far; empty: none was found.

    It is the best that the search found, not proven to be the best there is. Of more than :data:`MOST_RANKS` ranks,
    or where a place is not known, none is looked for.
    """
    sent = messages(profile)
    places = sorted(profile.places, key=lambda place: place.rank)
    if [place.rank for place in places] != list(range(len(sent))) or not 1 < len(places) <= MOST_RANKS:
        return []
    now = rank_map("as it ran", sent, places, range(len(places)))
    better = rank_map(SUGGESTED, sent, places, search(sent[..., 1], places))
    return [now, better] if distance(better) < distance(now) else []


def search(sent: Matrix, places: Sequence[RankPlace]) -> list[int]:
    """The rank for each of ``places`` (``sent``: bytes from rank to rank) that keeps bytes inside near objects.

    From the farthest object to the nearest, ranks are dealt over nodes, then over the packages of each node, and so on.
    Each time ranks that exchange most are put together, then two ranks change places as long as that helps.
    """
    both = sent + sent.T
    np.fill_diagonal(both, 0)
    ranks = np.empty(len(places), np.int64)
    _deal(both, places, list(range(len(places))), list(range(len(places))), 0, ranks)
    return [int(rank) for rank in ranks]


def _deal(
    both: Matrix, places: Sequence[RankPlace], slots: list[int], members: list[int], depth: int, into: Matrix
) -> None:
    """Put the ranks ``members`` into ``slots`` (numbers of places); rank i of them is in slot i so far."""
    if depth == len(_OBJECTS) or len(slots) == 1:
        into[slots] = members
        return
    key = _object(places, _OBJECTS[depth])
    pairs = sorted(zip(slots, members, strict=True), key=lambda pair: key(pair[0]))
    groups = [[slot for slot, _ in group] for _, group in groupby(pairs, key=lambda pair: key(pair[0]))]
    ordered = [member for _, member in pairs]
    dealt = (
        ordered
        if len(groups) == 1
        else _split(both[np.ix_(ordered, ordered)], ordered, [len(group) for group in groups])
    )
    begin = 0
    for group in groups:
        _deal(both, places, group, dealt[begin : begin + len(group)], depth + 1, into)
        begin += len(group)


def _object(places: Sequence[RankPlace], kind: str) -> Callable[[int], tuple[Any, ...]]:
    """A key that is equal for slots in the same object of a kind. A slot that is in no single one is a group alone."""

    def key(slot: int) -> tuple[Any, ...]:
        value = getattr(places[slot], kind)
        return (1, slot, "") if value == -1 else (0, 0, value)

    return key


def _split(both: Matrix, members: list[int], sizes: list[int]) -> list[int]:
    """``members`` in the order of groups of ``sizes``: so that few bytes go between the groups."""
    ended = [_exchanged(both, start) for start in (np.repeat(np.arange(len(sizes)), sizes), _grown(both, sizes))]
    best = min(ended, key=lambda grouping: int(both[grouping[:, None] != grouping[None, :]].sum()))
    return [members[place] for place in np.argsort(best, kind="stable")]


def _grown(both: Matrix, sizes: list[int]) -> Matrix:
    """The group of each rank: a group takes the rank that exchanges most with it, until it is full."""
    group = np.full(len(both), -1)
    for number, size in enumerate(sizes):
        drawn = np.zeros(len(both), np.int64)
        for _ in range(size):
            free = np.flatnonzero(group < 0)
            chosen = free[np.argmax(drawn[free])]
            group[chosen] = number
            drawn += both[chosen]
    return group


def _exchanged(both: Matrix, group: Matrix) -> Matrix:
    """Two ranks of different groups change places, the pair that saves most first, until none saves anything."""
    everyone = np.arange(len(group))
    to = np.stack([both[:, group == number].sum(axis=1) for number in range(int(group.max()) + 1)], axis=1)
    while True:
        gained = to[:, group] - to[everyone, group][:, None]  # by rank i in the group of rank j
        saved = gained + gained.T - 2 * both
        saved[group[:, None] == group[None, :]] = 0
        first, second = divmod(int(saved.argmax()), len(group))
        if saved[first, second] <= 0:
            return group
        moved = both[:, second] - both[:, first]
        to[:, group[first]] += moved
        to[:, group[second]] -= moved
        group[[first, second]] = group[[second, first]]


def elsewhere(profile: Profile, topology: str, nodes: int, threads: int) -> list[RankMap]:
    """The maps of the usual placements on ``nodes`` nodes of another machine, and what the search finds there.

    ``topology``: an hwloc XML file or synthetic description. Raises :class:`PlumbError` where the ranks do not fit.
    """
    sent = messages(profile)
    count = len(sent)
    if not 1 < count <= MOST_RANKS:
        raise PlumbError(f"rank maps are compared for 2 to {MOST_RANKS} ranks, not {count}", "plumb profile --on")
    if nodes < 1 or count % nodes:
        raise PlumbError(f"{count} ranks do not fill {nodes} nodes alike", "plumb profile --nodes", "divide the ranks")
    host = machine.load(topology)
    names = ["compact", "scatter", *[item.name for item in binder.placements() if item.map == "cyclic" and nodes > 1]]
    plans = [binder.resolve(name, threads=threads, ranks=count // nodes, topology=topology) for name in names]
    dealt = [_places(planned, host, nodes) for planned in plans]
    maps = [rank_map(name, sent, places, range(count)) for name, places in zip(names, dealt, strict=True)]
    return [*maps, rank_map(SUGGESTED, sent, dealt[0], search(sent[..., 1], dealt[0]))]


def _places(planned: binder.Plan, host: machine.Machine, nodes: int) -> list[RankPlace]:
    """Where each rank would be: dealt to the nodes in blocks, or in turn."""
    places = (
        place_on(host, rank, f"node {node}", of.cpus)
        for node in range(nodes)
        for rank, of in zip(planned.ranks_of(node, nodes), planned.ranks, strict=True)
    )
    return sorted(places, key=lambda place: place.rank)


def printed(profile: Profile, maps: list[RankMap]) -> Printed:
    """``profile`` with its traffic and ``maps``."""
    return Printed(**structs.asdict(profile), traffic=list(profiles.traffic(profile).values()), maps=maps)
