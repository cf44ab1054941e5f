"""Profiles for a page: what ranks sent to one another and over what, and in which calls and sizes their time went."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from plumbline.profiles import crossed, maps, read, sums
from plumbline.profiles.model import Profile, RankMap, Traffic
from plumbline.records.model import Row
from plumbline.topology.text import cpu_list

#: most profiles that a page shows, the newest of each variant and stack
MAX_PROFILES = 12
#: most pairs of ranks of a profile on a page, those with most bytes
MAX_PAIRS = 10_000


def stored(rows: Sequence[Row]) -> list[Profile]:
    """The newest profile of each variant and stack among ``rows``, the newest first.

    A record without a profile's file (results that were copied in part) is left out. Raises :class:`PlumbError` for a
    file that cannot be read.
    """
    newest: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda row: (row.time, row.id), reverse=True):
        if row.is_profiled:
            newest.setdefault((row.variant.name, row.stack.name), row)
    files = [file for file in (read.file_of(row.site, row.id) for row in newest.values()) if file.is_file()]
    return [profile for profile in map(read.load, files[:MAX_PROFILES]) if profile.ranks]


def profiled(profiles: Sequence[Profile]) -> list[dict[str, Any]]:
    """An element for each profile.

    ``wall`` is the longest time of a rank in seconds, ``share`` the least, mean and largest percentage of a rank's time
    in MPI. ``ends`` are ``[rank, host, CPUs]``; a cell of ``pairs`` is ``[from rank, to rank, messages, bytes, number
    of its class or None]``; a cell of ``sizes`` is ``[call, power of two, calls, seconds]``, power 0 for calls without
    bytes, p for sizes from 2^(p-1) to 2^p - 1; a row of ``traffic`` is ``[class, messages, bytes]``.
    """
    return [_profile(profile) for profile in profiles]


def _profile(profile: Profile) -> dict[str, Any]:
    places = {place.rank: place for place in profile.places}
    shares = [100 * sums.mpi_share(rank) for rank in profile.ranks]
    return {
        "record": profile.record,
        "time": profile.time,
        "name": profile.variant,
        "stack": profile.stack,
        "placement": profile.placement,
        "command": shlex.join(profile.command),
        "wall": max(rank.wall_ns for rank in profile.ranks) / 1e9,
        "share": [min(shares), statistics.fmean(shares), max(shares)],
        "ends": [
            [rank.rank, rank.host, cpu_list(places[rank.rank].cpus) if rank.rank in places else None]
            for rank in profile.ranks
        ],
        "classes": crossed.CLASSES,
        "traffic": _traffic(crossed.traffic(profile).values()),
        **_pairs(profile),
        "calls": _calls(profile),
        "sizes": [
            [total.call, power, total.count, total.time_ns / 1e9]
            for (_, power), total in sorted(sums.by_size(profile).items())
        ],
        "maps": [_map(one) for one in maps.here(profile)],
        "missing": read.shortfalls(profile.ranks, len(profile.ranks) + len(profile.missing)),
    }


def _pairs(profile: Profile) -> dict[str, Any]:
    places = {place.rank: place for place in profile.places}
    found: list[tuple[int, int, int, int, int | None]] = []
    for rank in profile.ranks:
        for peer in rank.peers:
            if peer.sent_messages:
                one, other = places.get(rank.rank), places.get(peer.rank)
                kind = crossed.CLASSES.index(crossed.class_of(one, other)) if one and other else None
                found.append((rank.rank, peer.rank, peer.sent_messages, peer.sent_bytes, kind))
    found.sort(key=lambda cell: (-cell[3], cell[0], cell[1]))
    return {"pairs": found[:MAX_PAIRS], "morePairs": max(len(found) - MAX_PAIRS, 0)}


def _calls(profile: Profile) -> list[list[Any]]:
    """``[call, calls, seconds, bytes, percent of MPI, percent of the wall time, COV]``, most time first."""
    mpi = sum(rank.mpi_ns for rank in profile.ranks) or 1
    wall = sum(rank.wall_ns for rank in profile.ranks) or 1
    return [
        [
            one.call,
            one.count,
            one.time_ns / 1e9,
            one.bytes,
            100 * one.time_ns / mpi,
            100 * one.time_ns / wall,
            one.variation,
        ]
        for one in sums.per_call(profile.ranks)
    ]


def _map(one: RankMap) -> dict[str, Any]:
    return {"name": one.name, "ranks": one.ranks, "traffic": _traffic(one.traffic)}


def _traffic(found: Iterable[Traffic]) -> list[list[Any]]:
    return [[one.inside, one.messages, one.bytes] for one in found]
