"""A profile as other tools read it: mpiP's report, and Caliper's JSON, which Hatchet and Thicket load."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from plumbline.profiles import sums
from plumbline.profiles.model import Profile, RankProfile
from plumbline.profiles.sums import Total

#: lines of mpiP's aggregate tables
_TOP = 20
_LINE = "-" * 75

Site = tuple[str, str, int]


def mpip(profile: Profile) -> str:
    """mpiP's report. A callsite is a call with its communicator and size, which stand as file and line.

    The parent function is not known, as in mpiP's reports of programs without symbols.
    """
    rows = {_site(on, total): total for on, total in sums.per_size(profile)}
    numbers = {site: number for number, site in enumerate(rows, start=1)}
    sent = {site: total for site, total in rows.items() if _sends(total)}
    mpi = sum(rank.mpi_ns for rank in profile.ranks) or 1
    wall = sum(rank.wall_ns for rank in profile.ranks) or 1
    volume = sum(total.bytes for total in sent.values())
    by_rank = [
        (str(rank.rank), (rank.wall_ns or 1, rank.mpi_ns or 1), _of_rank(profile, rank)) for rank in profile.ranks
    ]
    counted = sum(len(found) for *_, found in by_rank)
    lines = [
        *_head(profile),
        *_part("MPI Time (seconds)", "Task    AppTime    MPITime     MPI%", _tasks(profile, wall, mpi)),
        *_part(f"Callsites: {len(rows)}", " ID Lev File/Address        Line Parent_Funct             MPI_Call", (
            f"{numbers[site]:>3} {0:>3} {on.replace(' ', '-'):<17} {rows[site].most_bytes:>6} {'[unknown]':<24} {call}"
            for site in rows for on, call, _ in [site]
        )),
        *_part("Aggregate Time (top twenty, descending, milliseconds)",
               "Call                 Site       Time    App%    MPI%     Count    COV", (
            f"{total.call:<20} {numbers[site]:>4} {total.time_ns / 1e6:>10.3g} {100 * total.time_ns / wall:>7.2f} "
            f"{100 * total.time_ns / mpi:>7.2f} {total.count:>9} {total.variation:>6.2f}"
            for site, total in list(rows.items())[:_TOP]
        )),
        *_part("Aggregate Sent Message Size (top twenty, descending, bytes)",
               "Call                 Site      Count      Total       Avrg  Sent%", (
            f"{total.call:<20} {numbers[site]:>4} {total.count:>10} {total.bytes:>10.3g} "
            f"{total.bytes / total.count:>10.3g} {100 * total.bytes / volume:>6.2f}"
            for site, total in sorted(sent.items(), key=lambda row: -row[1].bytes)[:_TOP]
        )),
        *_part(f"Callsite Time statistics (all, milliseconds): {counted}",
               "Name              Site Rank  Count      Max     Mean      Min   App%   MPI%", _each(
            numbers, [*by_rank, ("*", (wall, mpi), rows)], lambda times, one: (
                f"{one.most_ns / 1e6:>8.3g} {one.mean_ns / 1e6:>8.3g} {(one.least_ns or 0) / 1e6:>8.3g} "
                f"{100 * one.time_ns / times[0]:>6.2f} {100 * one.time_ns / times[1]:>6.2f}"
            ),
        )),
        *_part("Callsite Message Sent statistics (all, sent bytes)",
               "Name              Site Rank   Count       Max      Mean       Min       Sum", _each(
            numbers,
            [
                (name, times, {site: one for site, one in found.items() if _sends(one)})
                for name, times, found in [*by_rank, ("*", (wall, mpi), rows)]
            ],
            lambda _, one: (
                f"{one.most_bytes:>9} {one.bytes / one.count:>9.4g} {one.least_bytes or 0:>9} {one.bytes:>9.4g}"
            ),
        )),
        _LINE, "@--- End of Report " + "-" * 56, _LINE,
    ]  # fmt: skip
    return "\n".join(lines)


def _sends(total: Total) -> bool:
    """Whether mpiP counts the bytes of the calls as sent."""
    return total.bytes > 0 and total.role not in ("receive", "get", "wait")


def _head(profile: Profile) -> list[str]:
    rows = [
        ("Command", shlex.join(profile.command)),
        ("Version", "Plumbline's libplumbprofile, in the form of mpiP 3"),
        ("Start time", profile.time),
        ("Timer Used", profile.ranks[0].clock),
        ("Collector Rank", "0"),
        *(("MPI Task Assignment", f"{rank.rank} {rank.host}") for rank in profile.ranks),
    ]
    return ["@ mpiP", *(f"@ {name:<24} : {value}" for name, value in rows), ""]


def _part(title: str, header: str, rows: Iterable[str]) -> list[str]:
    return [_LINE, f"@--- {title} ".ljust(75, "-"), _LINE, header, *rows]


def _tasks(profile: Profile, wall: int, mpi: int) -> list[str]:
    rows = [(str(rank.rank), rank.wall_ns, rank.mpi_ns) for rank in profile.ranks]
    return [
        f"{name:>4} {app / 1e9:>10.4g} {inside / 1e9:>10.4g} {100 * inside / (app or 1):>8.2f}"
        for name, app, inside in [*rows, ("*", wall, mpi)]
    ]


def _each(
    numbers: dict[Site, int],
    whose: list[tuple[str, tuple[int, int], dict[Site, Total]]],
    figures: Callable[[tuple[int, int], Total], str],
) -> list[str]:
    """A line for each site and rank, and one for all ranks (``*``); each has its wall time and its time in MPI."""
    return [
        f"{found[site].call:<17} {number:>4} {name:>4} {found[site].count:>6} {figures(times, found[site])}"
        for site, number in numbers.items()
        for name, times, found in whose
        if site in found
    ]


def _of_rank(profile: Profile, rank: RankProfile) -> dict[Site, Total]:
    alone = msgspec.structs.replace(profile, ranks=[rank])
    return {_site(on, total): total for on, total in sums.per_size(alone)}


def _site(on: str, total: Total) -> Site:
    return on, total.call, total.most_bytes.bit_length()


def caliper(profile: Profile) -> str:
    """Caliper's JSON (json-split): ``hatchet.GraphFrame.from_caliper(FILE)`` and Thicket read it.

    The program is the root of the call tree; its own time is what it spent outside MPI. Every rank has a row for every
    node of the tree, in the order of the nodes: Hatchet takes that order from the first rows. Times are in seconds.
    What describes the launch is next to the rows, as Caliper's globals do; Thicket makes metadata of it.
    """
    totals = sums.per_call(profile.ranks)
    calls = [total.call for total in totals]
    nodes: list[dict[str, Any]] = [{"label": profile.command[0].rpartition("/")[2], "column": "path"}]
    nodes += [{"label": f"MPI_{call}", "column": "path", "parent": 0} for call in calls]
    columns = ["Node order", "mpi.rank", "path", "sum#time.duration", "inclusive#sum#time.duration", "calls", "bytes"]
    rows: list[list[Any]] = []
    for rank in profile.ranks:
        made = {total.call: total for total in sums.per_call([rank])}
        rows.append([0, rank.rank, 0, max(rank.wall_ns - rank.mpi_ns, 0) / 1e9, rank.wall_ns / 1e9, 1, 0])
        for number, total in enumerate(totals, start=1):
            own = made.get(total.call, Total(total.call, total.role))
            rows.append([number, rank.rank, number, own.time_ns / 1e9, own.time_ns / 1e9, own.count, own.bytes])
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


#: the forms of ``plumb profile --export``
FORMS = {"mpip": mpip, "caliper": caliper}
