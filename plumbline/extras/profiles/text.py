"""A profile on a terminal, in the order in which IPM and mpiP print one; the important line last.

Also the differences between two: why one is slower, not only that it is; and Caliper's JSON, which other tools read.
"""

from __future__ import annotations

import json
import shlex
import statistics
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from plumbline.base import units
from plumbline.base.units import cpu_list
from plumbline.extras.profiles import maps
from plumbline.host.ceilings import Bound
from plumbline.launch import profile_files, profiles
from plumbline.launch.conclusions import Spent, costs, spent
from plumbline.launch.profiles import Profile, RankMap, RankProfile, Total, Traffic, mpi_share
from plumbline.parsers.measurement import Work
from plumbline.records.launch import RankSeen
from plumbline.records.model import AnyRecord
from plumbline.show.columns import Column, Table

#: ranks up to which each has a line, and a row of the matrix
RANKS_SHOWN = 32
#: ... and up to which it has a line for each call
RANKS_BY_CALL = 4
#: lines of the table of calls and sizes
SIZES_SHOWN = 24
#: a row whose counts are equal is shown if its share of the wall time changed by this many percentage points
SHARE_POINTS = 1.0
#: pairs of ranks whose bytes changed that have a line
PEERS_SHOWN = 8
_SHADES = " ░▒▓█"
#: a table and its rows
Filled: TypeAlias = tuple[Table[Any], Sequence[Any]]
#: where, which is empty for all sizes together, and the sums of a call
Timed: TypeAlias = tuple[str, Total]
TIMES: list[Column[Timed]] = [
    Column("count", lambda row: str(row[1].count), "number"),
    Column("total s", lambda row: f"{row[1].time_ns / 1e9:.6f}", "number"),
    Column("mean us", lambda row: f"{row[1].mean_ns / 1e3:.3f}", "number"),
    Column("min us", lambda row: f"{(row[1].least_ns or 0) / 1e3:.3f}", "number"),
    Column("max us", lambda row: f"{row[1].most_ns / 1e3:.3f}", "number"),
]
#: a call and a size that differ: sums of both profiles, how many calls, and percent of the wall time
CHANGES = Table[tuple[tuple[str, int], Sequence[Total | None], Sequence[int], Sequence[float]]](
    "Calls",
    [
        Column("call", lambda row: f"MPI_{row[0][0]}"),
        Column("size B", lambda row: next(total.most_bytes for total in row[1] if total), "number"),
        Column("count", lambda row: row[2][0], "number"),
        Column("count now", lambda row: row[2][1], "number"),
        Column("mean us", lambda row: row[1][0] and f"{row[1][0].mean_ns / 1e3:.3f}", "number"),
        Column("us now", lambda row: row[1][1] and f"{row[1][1].mean_ns / 1e3:.3f}", "number"),
        Column("%wall", lambda row: f"{row[3][0]:.2f}", "number"),
        Column("%wall now", lambda row: f"{row[3][1]:.2f}", "number"),
    ],
    whole=True,
)
TRAFFIC_CHANGES = Table[tuple[str, Traffic, Traffic]](
    "Messages",
    [
        Column("sent inside", lambda row: row[0]),
        Column("messages", lambda row: row[1].messages, "number"),
        Column("messages now", lambda row: row[2].messages, "number"),
        Column("bytes", lambda row: row[1].bytes, "number"),
        Column("bytes now", lambda row: row[2].bytes, "number"),
    ],
)
PEERS = Table[tuple[int, int, int, int]](
    "Pairs",
    [
        Column("from rank", lambda row: row[0], "number"),
        Column("to rank", lambda row: row[1], "number"),
        Column("bytes", lambda row: row[2], "number"),
        Column("bytes now", lambda row: row[3], "number"),
    ],
)


SPENT = Table[RankSeen](
    "Time of the ranks",
    [
        Column("rank", lambda rank: max(rank.rank, 0), "number"),
        Column("wall s", lambda rank: f"{rank.usage['wall_s']:.2f}", "number"),
        Column("CPU s", lambda rank: f"{rank.usage['user_s'] + rank.usage['system_s']:.2f}", "number"),
        Column("kernel s", lambda rank: f"{rank.usage['system_s']:.2f}", "number"),
        Column("page faults", lambda rank: f"{rank.usage['minor_faults']:,}", "number"),
        Column("waits", lambda rank: f"{rank.usage['voluntary_switches']:,}", "number"),
        Column("CPU s of threads", lambda rank: _threads(rank)),
    ],
)


def _threads(rank: RankSeen) -> str:
    """The busiest threads first."""
    times = sorted((thread.cpu_s or 0.0 for thread in rank.threads), reverse=True)
    return " ".join(f"{used:.2f}" for used in times[:4]) + (" …" if len(times) > 4 else "")


def beyond(ranks: Sequence[RankSeen], work: Work | None = None, ceiling: Bound | None = None) -> str:
    """The time of the ranks beyond MPI: a line for each, and what costs time, the first of :data:`COSTS` last.

    ``work`` is that of their launch, ``ceiling`` the bandwidth that memory reached on their cores.
    """
    if not ranks or not ranks[0].usage:
        return ""
    busiest = sorted(ranks, key=lambda rank: -rank.usage["user_s"] - rank.usage["system_s"])[:RANKS_SHOWN]
    lines = list(costs(ranks, work, ceiling).values()) or ["no cost beyond computing is seen"]
    table = SPENT.text(sorted(busiest, key=lambda rank: rank.rank))
    return "\n".join([table, "", *(_work(spent(ranks, work), work, ceiling) if work else ()), *reversed(lines)])


def _work(seen: Spent, work: Work, ceiling: Bound | None) -> Iterator[str]:
    """What the processors counted, or why they did not; the rate of memory, and its ceiling."""
    moved = " ".join(units.human(seen["moved"], units.MB_S))
    hint = "" if seen["moved"] else "; a time with bytes in plumb.yaml gives the memory bandwidth"
    if count := work.counted:
        rates = f"{count.instructions / (count.cycles or 1):.2f} a cycle, at {seen['ghz']:.2f} GHz"
        yield f"counted in user mode: {count.instructions / 1e9:.4g} x 10^9 instructions, {rates}{hint}"
    else:
        yield f"not counted: {work.missing}{hint}"
    if ceiling and not hint:
        most = " ".join(units.human(ceiling.value, ceiling.unit))
        yield f"memory: at least {moved}, {units.percent(seen['moved'] / ceiling.value)} of {most} ({ceiling.method})"
    elif not hint:
        yield f"memory: at least {moved}, no ceiling is known for its cores: plumb site measure"


def text(profile: Profile, seen: Sequence[RankSeen] = ()) -> str:
    """The whole profile, for people; ``seen``: the ranks of its launch."""
    lines = profile_files.shortfalls(profile.ranks, len(profile.ranks) + len(profile.missing))
    time = beyond(seen, profile.work, profile.ceiling)
    if not profile.ranks:
        without_mpi = seen and not any(rank.mpi for rank in seen)
        return "\n\n".join(filter(None, ["no rank called MPI_Init" if without_mpi else "\n".join(lines), time]))
    sent = _text(traffic(profile)) or "no message from one rank to another: collective calls alone, or none"
    seats = maps.here(profile)
    blocks = [
        *(_banner(profile), _text(calls(profile)), _sizes(profile), _by_rank(profile), sent, _matrix(profile)),
        *(map_table(seats) if seats else "", _ranks(profile)),
        *("\n".join([*lines, _cost(profile)]), time, _last(profile)),
    ]
    return "\n\n".join(filter(None, blocks))


def _banner(profile: Profile) -> str:
    ranks = profile.ranks
    hosts = sorted({rank.host for rank in ranks})
    named = ", ".join(hosts[:4]) + (", …" if len(hosts) > 4 else "")
    rows = [
        ("command", shlex.join(profile.command)),
        ("stack", profile.stack),
        ("placement", f"{profile.placement} ({named})"),
        ("start", profile.time),
        ("record", profile.record),
        *profiles.counted(ranks),
    ]
    columns: dict[str, list[float]] = {
        "wall s": [rank.wall_ns / 1e9 for rank in ranks],
        "MPI s": [rank.mpi_ns / 1e9 for rank in ranks],
        "%MPI": [100 * mpi_share(rank) for rank in ranks],
        "sent MB": [rank.sent_bytes / 1e6 for rank in ranks],
        "calls": [rank.calls for rank in ranks],
    }
    figures = Table[tuple[str, list[float]]](
        "Ranks",
        [
            Column(f"{len(ranks)} ranks", lambda row: row[0]),
            Column("total", lambda row: "" if row[0] == "%MPI" else _number(sum(row[1])), "number"),
            Column("mean", lambda row: _number(statistics.fmean(row[1])), "number"),
            Column("min", lambda row: _number(min(row[1])), "number"),
            Column("max", lambda row: _number(max(row[1])), "number"),
        ],
    )
    return "\n".join([*(f"{name:<10} {value}" for name, value in rows), "", figures.text(list(columns.items()))])


def _text(content: Filled) -> str:
    shown, rows = content
    return shown.text(rows) if rows else ""


def calls(profile: Profile) -> Filled:
    """The calls of all ranks, those with most time first."""
    split = any(rank.waiting_split for rank in profile.ranks)
    shown = Table[Timed](
        "Calls",
        [
            Column("call", lambda row: f"MPI_{row[1].call}"),
            *TIMES,
            Column("COV", lambda row: f"{row[1].variation:.2f}", "number"),
            Column("bytes", lambda row: str(row[1].bytes), "number"),
            *_shares(profile),
            Column("waiting s", lambda row: f"{row[1].waited_ns / 1e9:.6f}" if split else "", "number"),
        ],
    )
    return shown, [("", total) for total in profiles.per_call(profile.ranks)]


def _sizes(profile: Profile) -> str:
    shown = Table[Timed](
        "Sizes",
        [
            Column("call", lambda row: f"MPI_{row[1].call}"),
            Column("size B", lambda row: _size(row[1]), "number"),
            Column("on", lambda row: row[0]),
            *TIMES,
            Column("done us", lambda row: _done(row[1]), "number"),
            *_shares(profile),
        ],
    )
    totals = profiles.per_size(profile)
    more = len(totals) - SIZES_SHOWN
    return shown.text(totals[:SIZES_SHOWN]) + (f"\n{more} more rows, of less time: --json has all" if more > 0 else "")


def _by_rank(profile: Profile) -> str:
    """The calls of each rank, with shares of its own times, as mpiP has them for each call site."""
    ranks = {str(rank.rank): rank for rank in profile.ranks}
    shown = Table[Timed](
        "Calls of each rank",
        [
            Column("call", lambda row: f"MPI_{row[1].call}"),
            Column("rank", lambda row: row[0], "number"),
            *TIMES,
            Column("bytes", lambda row: str(row[1].bytes), "number"),
            Column("%MPI", lambda row: f"{100 * row[1].time_ns / (ranks[row[0]].mpi_ns or 1):.2f}", "number"),
            Column("%wall", lambda row: f"{100 * row[1].time_ns / (ranks[row[0]].wall_ns or 1):.2f}", "number"),
        ],
    )
    rows = ((name, total) for name, rank in ranks.items() for total in profiles.per_call([rank]))
    return shown.text(sorted(rows, key=lambda row: row[1].call)) if len(ranks) <= RANKS_BY_CALL else ""


def traffic(profile: Profile) -> Filled:
    """Messages by the smallest object that holds both ranks."""
    classes = profiles.traffic(profile)
    total = sum(sent.bytes for sent in classes.values()) or 1
    shown = Table[tuple[str, Traffic]](
        "The smallest object that holds both ranks of a message",
        [
            Column("sent inside", lambda row: row[0]),
            Column("messages", lambda row: str(row[1].messages), "number"),
            Column("bytes", lambda row: str(row[1].bytes), "number"),
            Column("% of bytes", lambda row: f"{100 * row[1].bytes / total:.1f}", "number"),
        ],
    )
    return shown, list(classes.items())


def _matrix(profile: Profile) -> str:
    """A shade for the bytes from each rank (row) to each (column)."""
    rows = maps.messages(profile)[..., 1].tolist()
    most = max((value for row in rows for value in row), default=0)
    if not most or len(rows) > RANKS_SHOWN:
        return ""
    width = len(str(len(rows) - 1))
    body = [
        f"{number:>{width}} |{''.join(_SHADES[-(-value * (len(_SHADES) - 1) // most)] for value in row)}|"
        for number, row in enumerate(rows)
    ]
    return "\n".join([f"bytes from rank (row) to rank (column); █ is {most} B", *body])


def crossings(seats: Sequence[RankMap]) -> Filled:
    """Bytes by what they cross under each map."""
    sizes = [{traffic.inside: traffic.bytes for traffic in each.traffic} for each in seats]
    kinds = [name for name in profiles.CLASSES if any(name in size for size in sizes)]
    rows = [(each.name, *(str(size.get(name, 0)) for name in kinds)) for each, size in zip(seats, sizes, strict=True)]
    columns = [
        Column[tuple[str, ...]](name, itemgetter(place), "number" if place else "")
        for place, name in enumerate(("bytes sent inside", *kinds))
    ]
    return Table("A rank map that would send less far, in bytes", columns), rows


def map_table(seats: Sequence[RankMap]) -> str:
    """Traffic under each map, the ranks in the places of the last one, the suggested, and the bytes that it saves."""
    last = seats[-1]
    shown = " ".join(map(str, last.ranks[:RANKS_SHOWN])) + (
        " …: --json has all" if len(last.ranks) > RANKS_SHOWN else ""
    )
    lines = [_text(crossings(seats)), f"{last.name}, the rank in each place: {shown}"]
    return "\n".join([*lines, *(_saved(old, last) for old in seats[:-1] if maps.distance(last) < maps.distance(old))])


def _saved(worse: RankMap, better: RankMap) -> str:
    """Bytes that the better map saves of the farthest class in which the two differ."""
    pairs = zip(reversed(profiles.CLASSES), maps.distance(worse), maps.distance(better), strict=True)
    name, before, after = next(row for row in pairs if row[1] != row[2])
    where = name if name == profiles.NODES else f"between ranks that share the {name} only"
    return f"{better.name} instead of {worse.name}: {before - after} of {before} B fewer {where}"


def _ranks(profile: Profile) -> str:
    places = {place.rank: place for place in profile.places}
    shown = profile.ranks
    note = ""
    if len(shown) > RANKS_SHOWN:
        shown = sorted(shown, key=mpi_share)
        shown = [*shown[: RANKS_SHOWN // 2], *shown[-RANKS_SHOWN // 2 :]]
        note = f"\nthe {RANKS_SHOWN} ranks with least and most of their time in MPI, of {len(profile.ranks)}"
    ranks = Table[RankProfile](
        "Ranks",
        [
            Column("rank", lambda rank: rank.rank, "number"),
            Column("host", lambda rank: rank.host),
            Column("CPUs", lambda rank: cpu_list(places[rank.rank].cpus) if rank.rank in places else "?"),
            Column("wall s", lambda rank: f"{rank.wall_ns / 1e9:.4f}", "number"),
            Column("MPI s", lambda rank: f"{rank.mpi_ns / 1e9:.4f}", "number"),
            Column("%MPI", lambda rank: f"{100 * mpi_share(rank):.1f}", "number"),
            Column("waiting s", lambda rank: f"{_waiting(rank) / 1e9:.4f}", "number"),
            Column("sent MB", lambda rank: f"{rank.sent_bytes / 1e6:.3f}", "number"),
            Column("calls", lambda rank: rank.calls, "number"),
            Column("threads", lambda rank: rank.threads, "number"),
        ],
    )
    return ranks.text(shown) + note


def _waiting(rank: RankProfile) -> int:
    """Nanoseconds in calls that wait for others and move nothing themselves: MPI_Wait… and barriers."""
    return sum(
        size.time_ns
        for communicator in rank.communicators
        for call in communicator.calls
        if call.role == "wait" or call.call == "Barrier"
        for size in call.sizes
    )


def _cost(profile: Profile) -> str:
    cost = max(rank.cost_ps for rank in profile.ranks) / 1000
    clock = max(rank.clock_ps for rank in profile.ranks) / 1000
    added = sum(rank.calls * rank.cost_ps / 1000 for rank in profile.ranks)
    share = 100 * added / (sum(rank.wall_ns for rank in profile.ranks) or 1)
    return f"cost: {cost:.0f} ns a call, {clock:.0f} ns of it the clock; {share:.2f} % of the wall time in all"


def _last(profile: Profile) -> str:
    mpi, _ = _times(profile)
    calls = profiles.per_call(profile.ranks)
    if not calls:
        return "MPI: no call between MPI_Init and MPI_Finalize was counted"
    first = calls[0]
    shares = [100 * mpi_share(rank) for rank in profile.ranks]
    far = profiles.traffic(profile)
    sent = sum(crossing.bytes for crossing in far.values())
    time = "time counted" if profiles.counted(profile.ranks) else "wall time"
    where = max(far, key=lambda name: far[name].bytes, default="")
    return (
        f"MPI: {profiles.share(profile.ranks):.1f} % of the {time} ({min(shares):.1f} to {max(shares):.1f} % by rank), "
        f"most of it MPI_{first.call} ({100 * first.time_ns / mpi if mpi else 0:.1f} %)"
        + (f"; {100 * far[where].bytes / sent:.0f} % of the bytes sent: {where}" if sent else "")
    )


def _times(profile: Profile) -> tuple[int, int]:
    return sum(rank.mpi_ns for rank in profile.ranks), sum(rank.wall_ns for rank in profile.ranks)


def _shares(profile: Profile) -> list[Column[Timed]]:
    mpi, wall = (whole or 1 for whole in _times(profile))
    return [
        Column("%MPI", lambda row: f"{100 * row[1].time_ns / mpi:.2f}", "number"),
        Column("%wall", lambda row: f"{100 * row[1].time_ns / wall:.2f}", "number"),
    ]


def _size(total: Total) -> str:
    """One size, or from the least to the most."""
    least = total.least_bytes or 0
    return str(least) if least == total.most_bytes else f"{least} to {total.most_bytes}"


def _done(total: Total) -> str:
    """Mean time until a request was found done; empty for calls without one."""
    return f"{total.completion_ns / total.completed / 1e3:.3f}" if total.completed else ""


def _number(value: float) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def of_records(first: AnyRecord, second: AnyRecord) -> str:
    """The :func:`difference` of the profiles of two records; empty unless both have one."""
    if not (first.is_profiled and second.is_profiled):
        return ""
    return difference(*map(profile_files.of_record, (first, second)))


def difference(old: Profile, new: Profile) -> str:
    """Rows that differ, the one whose time changed most first, then the traffic; the important line last."""
    before, after = profiles.by_size(old), profiles.by_size(new)
    walls = [sum(rank.wall_ns for rank in profile.ranks) or 1 for profile in (old, new)]
    rows = []
    changes = {key: _time(after, key) - _time(before, key) for key in sorted(before.keys() | after.keys())}
    for key in sorted(changes, key=lambda key: -abs(changes[key])):
        pair = before.get(key), after.get(key)
        counts = [total.count if total else 0 for total in pair]
        shares = [100 * (total.time_ns if total else 0) / wall for total, wall in zip(pair, walls, strict=True)]
        if counts[0] != counts[1] or abs(shares[1] - shares[0]) >= SHARE_POINTS:
            rows.append((key, pair, counts, shares))
    head = f"before: {old.record}, {old.stack}, {old.placement}\nnow:    {new.record}, {new.stack}, {new.placement}"
    shown = CHANGES.text(rows) if rows else "no call differs in number or clearly in its share"
    same = {key: total.count for key, total in before.items()} == {key: total.count for key, total in after.items()}
    return "\n\n".join([head, shown, _changed_traffic(old, new), _last_change(old, new, same, changes)])


def _time(totals: dict[tuple[str, int], Total], key: tuple[str, int]) -> int:
    return totals[key].time_ns if key in totals else 0


def _changed_traffic(old: Profile, new: Profile) -> str:
    before, after = profiles.traffic(old), profiles.traffic(new)
    known = [name for name in profiles.CLASSES if name in {**before, **after}]
    absent = {name: Traffic(inside=name, messages=0, bytes=0) for name in known}
    rows = [(name, before.get(name, none), after.get(name, none)) for name, none in absent.items()]
    shown = TRAFFIC_CHANGES.text(rows) if rows else "no message from one rank to another"
    sent = [maps.messages(profile)[..., 1].tolist() for profile in (old, new)]
    return "\n\n".join(part for part in (shown, _peers(*sent)) if part)


def _peers(before: list[list[int]], after: list[list[int]]) -> str:
    """The pairs of ranks whose bytes changed most; none for profiles of other numbers of ranks."""
    if len(before) != len(after):
        return ""
    changed = [
        (first, second, then, now)
        for first, rows in enumerate(zip(before, after, strict=True))
        for second, (then, now) in enumerate(zip(*rows, strict=True))
        if then != now
    ]
    if not changed:
        return ""
    changed.sort(key=lambda pair: -abs(pair[3] - pair[2]))
    return f"{PEERS.text(changed[:PEERS_SHOWN])}\nbytes differ between {units.counted(len(changed), 'pair')} of ranks"


def _last_change(old: Profile, new: Profile, same: bool, changes: dict[tuple[str, int], int]) -> str:
    shares = [profiles.share(profile.ranks) for profile in (old, new)]
    most = max(changes, key=lambda key: abs(changes[key]), default=None)
    where = f"; most of the change in MPI_{most[0]} ({changes[most] / 1e9:+.6f} s)" if most else ""
    calls = "the same calls and sizes: only times differ" if same else "other calls or sizes"
    return f"{calls}; MPI {shares[0]:.1f} % of the wall time, now {shares[1]:.1f} %{where}"


def caliper(profile: Profile) -> str:
    """Caliper's JSON (json-split): ``hatchet.GraphFrame.from_caliper(FILE)`` and Thicket read it.

    The program is the root of the call tree; its own time is what it spent outside MPI. Every rank has a row for every
    node of the tree, in the order of the nodes: Hatchet takes that order from the first rows. Times are in seconds.
    What describes the launch is next to the rows, as Caliper's globals do; Thicket makes metadata of it.
    """
    totals = profiles.per_call(profile.ranks)
    nodes = [
        {"label": profile.command[0].rpartition("/")[2], "column": "path"},
        *({"label": f"MPI_{total.call}", "column": "path", "parent": 0} for total in totals),
    ]
    columns = ["Node order", "mpi.rank", "path", "sum#time.duration", "inclusive#sum#time.duration", "calls", "bytes"]
    rows: list[list[Any]] = []
    for rank in profile.ranks:
        by_call = {total.call: total for total in profiles.per_call([rank])}
        rows.append([0, rank.rank, 0, max(rank.wall_ns - rank.mpi_ns, 0) / 1e9, rank.wall_ns / 1e9, 1, 0])
        for number, total in enumerate(totals, start=1):
            of_rank = by_call.get(total.call, Total(total.call, total.role))
            rows.append(
                [number, rank.rank, number, of_rank.time_ns / 1e9, of_rank.time_ns / 1e9, of_rank.count, of_rank.bytes]
            )
    document = {
        "data": rows,
        "columns": columns,
        "column_metadata": [{"is_value": name != "path"} for name in columns],
        "nodes": nodes,
        "cali.caliper.version": "2.0.0",
        "cmdline": shlex.join(profile.command),
        "launchdate": profile.time,
        "record": profile.record,
        "stack": profile.stack,
        "placement": profile.placement,
        "mpi.world.size": profile.ranks[0].size,
    }
    return json.dumps(document)
