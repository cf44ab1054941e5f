"""From the files of the ranks to one profile, which is kept beside the record."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from operator import attrgetter
from pathlib import Path

import msgspec

from plumbline.base import files, paths, units
from plumbline.base.errors import PlumbError
from plumbline.host.ceilings import Bound
from plumbline.host.machine import Machine
from plumbline.launch.profiles import Profile, RankPlace, RankProfile
from plumbline.parsers.measurement import Work
from plumbline.records.launch import RankSeen
from plumbline.records.model import AnyRecord, Record

_DECODER = msgspec.json.Decoder(RankProfile)
_WHOLE = msgspec.json.Decoder(Profile)
#: how a rank ended that has not called MPI_Finalize, in words
ENDINGS = {
    "MPI_Abort": "called MPI_Abort",
    "SIGTERM": "was ended by SIGTERM",
    "exit": "ended without MPI_Finalize",
    "killed": "was killed: up to a tenth of its time is missing at the end, or more if it last waited in one call",
}


def ranks(folder: Path) -> tuple[list[RankProfile], list[str]]:
    """The profiles that the ranks left in ``folder``, by rank, and what of them could not be read.

    Several processes of one rank may call MPI_Init one after the other; the one with most calls is the rank's.
    """
    by_rank: dict[int, RankProfile] = {}
    faults = []
    for file in sorted(folder.glob("*.json")):
        try:
            rank = _DECODER.decode(file.read_bytes())
            by_rank[rank.rank] = max(by_rank.get(rank.rank, rank), rank, key=attrgetter("calls"))
        except (OSError, msgspec.DecodeError) as error:
            faults.append(f"the profile {file.name} cannot be read: {error}")
    faults += [f"the profile {file.stem} was not written to its end" for file in sorted(folder.glob("*.part"))]
    return [by_rank[rank] for rank in sorted(by_rank)], faults


def shortfalls(ranks: Sequence[RankProfile], expected: int) -> list[str]:
    """The shortfalls of a profile of ``expected`` ranks, a line for each kind."""
    if not ranks:
        return ["no rank left a profile: the program is not an MPI program, is linked statically, or was killed"]
    worlds = sorted({rank.size for rank in ranks} - {expected})
    missing = sorted(set(range(expected)) - {rank.rank for rank in ranks})
    ended = [([rank.rank for rank in ranks if rank.ended == end], words) for end, words in ENDINGS.items()]
    endings = [(of, words if len(of) == 1 else words.replace("was ", "were ", 1)) for of, words in ended]
    full = [rank.rank for rank in ranks if rank.lost.full]
    lost = sum(rank.lost.peers for rank in ranks)
    sizes, messages = " or ".join(units.counted(size, "rank") for size in worlds), units.counted(lost, "message")
    lines = {
        f"MPI_COMM_WORLD had {sizes}, {expected} were started: built for another MPI library?": worlds,
        # several processes may be rank 0 of their own world: which of them is missing cannot be told
        f"{_named(missing)} left no profile: killed, or never past MPI_Init": missing and not worlds,
        **{f"partial profile: {_named(of)} {ending}": of for of, ending in endings},
        f"incomplete sums: the tables of {_named(full)} were full": full,
        f"{messages} without a peer: MPI_Mrecv does not name its communicator, or a table was full": lost,
    }
    return [line for line, holds in lines.items() if holds]


def _named(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:8])) + (", …" if len(numbers) > 8 else "")
    return f"rank {shown}" if len(numbers) == 1 else f"ranks {shown} ({len(numbers)})"


def place_of(seen: RankSeen, host: Machine) -> RankPlace:
    """Where a rank was by its witness, on nodes that are all like ``host``."""
    return place_on(host, seen.rank, seen.host, {cpu for thread in seen.threads for cpu in thread.affinity})


def place_on(host: Machine, rank: int, name: str, members: Collection[int]) -> RankPlace:
    """The place of a rank whose CPUs are ``members``, on the node ``name``, which is like ``host``."""
    cpus = sorted(members)
    objects = {
        "core": [core.cpus for core in host.cores],
        "l3": [cache.cpus for cache in host.l3s],
        "numa": [node.cpus for node in host.numa_nodes],
        "package": [package.cpus for package in host.packages],
    }
    inside = {
        name: next((index for index, known in enumerate(each) if cpus and set(cpus) <= set(known)), -1)
        for name, each in objects.items()
    }
    return RankPlace(rank=rank, host=name, cpus=cpus, **inside)


def profile_of(
    record: Record, seen: Sequence[RankSeen], measured: Sequence[RankProfile], host: Machine, work: Work,
    ceiling: Bound | None,
) -> Profile:  # fmt: skip
    """The profile of a launch of ``record`` whose witnesses saw ``seen``."""
    placed = record.placement
    count = placed.nodes * placed.ranks_per_node
    started = record.command[record.command.index("--") + 1 :]
    program = record.variant.context.get("program")
    return Profile(
        record=record.id,
        variant=record.variant.name,
        stack=f"{record.stack.name}: {record.stack.mpi.family} {record.stack.mpi.version}",
        placement=f"{placed.name}, {count} x {placed.threads} on {placed.nodes} node{'s' * (placed.nodes > 1)}",
        command=[program, *record.variant.arguments] if program else started,
        time=record.time,
        ranks=list(measured),
        missing=sorted(set(range(count)) - {rank.rank for rank in measured}),
        places=[place_of(rank, host) for rank in sorted(seen, key=lambda rank: rank.rank)],
        work=work,
        ceiling=ceiling,
    )


def file_of(site: str, record: str) -> Path:
    """Where the profile of the record with the id ``record`` is kept."""
    return paths.results() / site / "profiles" / f"{record}.json"


def of_record(record: AnyRecord) -> Profile:
    """The profile of ``record``. Raises :class:`PlumbError`."""
    return load(file_of(record.site, record.id))


def save(site: str, profile: Profile) -> Path:
    """Write ``profile`` beside its record; returns the file. Raises :class:`PlumbError`."""
    file = file_of(site, profile.record)
    with files.writing("the profile", file):
        file.parent.mkdir(parents=True, exist_ok=True)
    files.write("the profile", file, json.dumps(msgspec.to_builtins(profile), separators=(",", ":")) + "\n")
    return file


def load(file: Path) -> Profile:
    """The profile in ``file``. Raises :class:`PlumbError`."""
    try:
        with files.opened(file) as stream:
            return _WHOLE.decode(stream.read())
    except FileNotFoundError as error:
        raise PlumbError("there is no profile", str(file), "plumb profile makes one") from error
    except (OSError, msgspec.DecodeError) as error:
        raise PlumbError(f"the profile cannot be read: {error}", str(file), "make it again") from error
