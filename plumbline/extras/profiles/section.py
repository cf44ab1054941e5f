"""Profiles for a page: messages between ranks, the objects they cross, and the time by call and size."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Sequence

from plumbline.base import units
from plumbline.base.units import counted, cpu_list
from plumbline.extras.profiles import maps, text
from plumbline.launch import profile_files, profiles
from plumbline.launch.profiles import Profile
from plumbline.records.model import Record, Row
from plumbline.show.pages.blocks import Block, Piece, absent, block, chart, choice, facts, number, scale, section

#: most profiles that a page shows, the newest of each variant and stack
MAX_PROFILES = 12
#: factors of bytes and their units
BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))
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
    files = [file for file in (profile_files.file_of(row.site, row.id) for row in newest.values()) if file.is_file()]
    return [profile for profile in map(profile_files.load, files[:MAX_PROFILES]) if profile.ranks]


def of_campaign(_usable: Sequence[Record], rows: Sequence[Row]) -> Block:
    """The section of the newest profiles among ``rows``."""
    return profiled(stored(rows))


def profiled(profiles: Sequence[Profile]) -> Block:
    """The section of ``profiles``, of which one is shown at a time."""
    options = [
        (f"{profile.variant}, {profile.stack.split(':')[0]}, {profile.record}", _shown(profile)) for profile in profiles
    ]
    return section(
        "profiles",
        "Profiles",
        "What programs spend in MPI: the newest profile of each test and stack at this site. A profiled launch is not "
        "a measurement.",
        options and choice("Profile", options),
        otherwise=absent("plumb profile heat1d_steps --stack STACK"),
    )


def _shown(profile: Profile) -> list[Piece]:
    shares = [100 * profiles.mpi_share(rank) for rank in profile.ranks]
    low, mean, high = map(units.digits, (min(shares), statistics.fmean(shares), max(shares)))
    missing = profile_files.shortfalls(profile.ranks, len(profile.ranks) + len(profile.missing))
    rank_maps = maps.here(profile)
    rows = [
        ("stack", profile.stack),
        ("placement", profile.placement),
        ("measured", units.second(profile.time)),
        ("wall time", f"{units.digits(max(rank.wall_ns for rank in profile.ranks) / 1e9)} s"),
        ("in MPI", f"{mean} % of it ({low} to {high} % by rank)"),
        *profiles.counted(profile.ranks),
    ]
    return [
        facts("Profile", rows),
        block("command", shlex.join(profile.command), label="command"),
        missing and block("bullets", *missing),
        block("pictures", _pairs(profile), _sizes(profile)),
        _titled(text.traffic(profile)),
        rank_maps and _titled(text.crossings(rank_maps)),
        rank_maps
        and block(
            "folded", block("paragraph", " ".join(map(str, rank_maps[-1].ranks))), title="The rank in each place"
        ),
        _titled(text.calls(profile)),
    ]


def _titled(content: text.Filled) -> Piece:
    shown, rows = content
    return rows and [block("heading", shown.caption), shown.block(rows)]


def _pairs(profile: Profile) -> Block:
    """Bytes from each rank to each other, the pairs with most bytes."""
    places = {place.rank: place for place in profile.places}
    sent = [(rank.rank, peer) for rank in profile.ranks for peer in rank.peers if peer.sent_messages]
    sent.sort(key=lambda flow: (-flow[1].sent_bytes, flow[0], flow[1].rank))
    if not sent:
        return block("paragraph", "No message from one rank to another.")
    factor, unit = next((step for step in BYTES if sent[0][1].sent_bytes >= step[0]), BYTES[-1])
    ranks = {rank.rank: place for place, rank in enumerate(profile.ranks)}
    more = f"; {counted(len(sent) - MAX_PAIRS, 'pair')} with fewer bytes left out" if len(sent) > MAX_PAIRS else ""
    known = [(rank, peer, places.get(rank), places.get(peer.rank)) for rank, peer in sent[:MAX_PAIRS]]
    sizes = [peer.sent_bytes / factor for _, peer, _, _ in known]
    return chart(
        "Bytes from rank (row) to rank (column)",
        f"{unit} sent, over the proven rank map{more}.",
        ["ranks", "inside", number("messages"), number("bytes"), "CPUs"],
        [
            (
                f"{rank} to {peer.rank}",
                profiles.class_of(sender, receiver) if sender and receiver else "unknown",
                peer.sent_messages,
                peer.sent_bytes,
                " to ".join(cpu_list(end.cpus) if end else "?" for end in (sender, receiver)),
            )
            for rank, peer, sender, receiver in known
        ],
        [
            (row, ranks.get(peer.rank, peer.rank), ranks[rank], sizes[row], units.digits(sizes[row]))
            for row, (rank, peer, _, _) in enumerate(known)
        ],
        square=len(ranks),
        heat={**scale(sizes, unit, 0), "labels": len(ranks) <= 8},
        x={"name": "to rank", "labels": [str(rank) for rank in ranks]},
        y={"name": "from rank", "labels": [str(rank) for rank in ranks]},
    )


def _sizes(profile: Profile) -> Block:
    totals = sorted(profiles.by_size(profile).items())
    calls = [total.call for total in profiles.per_call(profile.ranks)]
    powers = sorted({power for (_, power), _ in totals})
    names = [units.human_bytes(2 ** (power - 1)) if power else "none" for power in powers]
    cells = [(total, powers.index(power)) for (_, power), total in totals]
    shares = [100 * total.time_ns / (sum(timed.time_ns for timed, _ in cells) or 1) for total, _ in cells]
    return chart(
        "Time by call and size",
        "Percent of the time in MPI, all ranks together; a size stands for those up to twice as large.",
        ["call", number("size from"), number("calls"), number("time", "s"), number("of MPI", "%")],
        [
            (f"MPI_{total.call}", names[power], total.count, f"{total.time_ns / 1e9:.6f}", units.digits(part))
            for (total, power), part in zip(cells, shares, strict=True)
        ],
        [
            (row, power, calls.index(total.call), part)
            for row, ((total, power), part) in enumerate(zip(cells, shares, strict=True))
        ],
        height=120 + 30 * len(calls),
        wide=150,
        heat=scale(shares, "%", 0),
        x={"name": "size", "labels": names},
        y={"name": "", "labels": calls},
    )
