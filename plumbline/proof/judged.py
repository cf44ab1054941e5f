"""The judgement of what witnesses saw, without a plan: for the proof of a command, and for the jobs of users."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from plumbline import mpi
from plumbline.base import group, paths
from plumbline.base.units import counted, numbered
from plumbline.host.machine import Machine
from plumbline.launch.observed import TICK, WORKED, Finding, Host, at_once, findings, sent_by_tcp
from plumbline.launch.witness import processes
from plumbline.launch.witness.model import RankWitness, Witness

#: the variables that the witness needs in each rank
VARIABLES = ("LD_PRELOAD", "PLUMB_WITNESS_DIR")
#: the processes of one rank that worked at once, by its host and number
Teams = Mapping[tuple[str, int], Sequence[Witness]]


class Place(NamedTuple):
    """A host: ``allowed`` are the CPUs that the command may use there, ``siblings`` every CPU of it -> its core's.

    ``gpus``: PCI address -> the CPUs beside that GPU. ``fabric``: devices of InfiniBand with an active port.
    """

    machine: Machine
    allowed: frozenset[int]
    siblings: Mapping[int, str]
    gpus: Mapping[str, frozenset[int]] = {}
    fabric: Sequence[str] = ()


class Seen(NamedTuple):
    """The ``ranks`` of a command, the processes of each that worked (``teams``), and ``rest``, which is not judged.

    ``launchers`` are the programs that started the ranks, ``starters`` those and their helpers.
    """

    ranks: list[RankWitness]
    teams: Teams
    rest: list[Witness]
    launchers: list[str]
    starters: frozenset[str]


def seen(documents: Sequence[Witness], ends: Mapping[str, float]) -> Seen:
    """The ranks of a command from the documents of all of its processes; ``ends``: when ``HOST.PID`` ended, in s."""
    launchers = programs(documents) & mpi.WORDS.keys()
    starters = frozenset({*launchers, *mpi.REACHING, paths.binder().name})
    # a launcher in a job script, or in a rank, has that one's number
    each = [replace(item, rank=-1) if programs([item]) & launchers else item for item in documents]
    observed = processes.observed(each)
    known = list({rank.rank: rank for rank in observed if rank.rank >= 0}.values()) or observed
    # without them: nothing that a launcher started left an account
    ranks = [rank for rank in known if not starters & programs([rank] if rank.rank >= 0 else processes.everyone(rank))]
    return Seen(ranks, *working(observed, ranks, starters, ends), sorted(launchers), starters)


def programs(every: Iterable[Witness]) -> set[str]:
    """The names of the programs."""
    return {Path(each.program).name for each in every}


def working(
    seen: list[RankWitness], ranks: list[RankWitness], starters: Collection[str], ends: Mapping[str, float]
) -> tuple[dict[tuple[str, int], list[Witness]], list[Witness]]:
    """The processes that did work: of each of the ``ranks`` those that are judged, and all that are not."""
    least = WORKED * max(map(processes.cpu_s, ranks), default=0) + TICK

    def works(each: Witness) -> bool:
        return (each.mpi or processes.cpu_s(each) >= least) and programs([each]).isdisjoint(starters)

    teams = {(rank.host, rank.pid): at_once(rank, filter(works, rank.others), ends) for rank in ranks}
    judged = {(each.host, each.pid) for team in teams.values() for each in team}
    every = itertools.chain.from_iterable(map(processes.everyone, seen))
    return teams, [each for each in filter(works, every) if (each.host, each.pid) not in judged]


def ending(status: int) -> str:
    """How a command failed by its ``status``, which is below 0 for a signal; empty where it did not."""
    signalled = status < 0 and f"ended by signal {-status}: {signal.strsignal(-status)}"
    return signalled or (f"exit status {status}" if status else "")


def unknown(
    ranks: Sequence[RankWitness],
    launchers: Sequence[str],
    status: int = 0,
    rest: Sequence[Witness] = (),
    *,
    sized: bool = True,
) -> Iterator[tuple[str, str]]:
    """Why it is not known whether all of the command ran right, each with a cure; ``rest``: who is not judged.

    ``sized``: the launcher's variables tell how many ranks there are.
    """
    option = " or ".join(dict.fromkeys(mpi.WORDS[name].passing for name in launchers))
    hand = f"hand {' and '.join(VARIABLES)} on by {option}, and name a --work folder of all nodes"
    variables = hand if option and not status else ""
    if status:
        yield f"the command failed: {ending(status)}", "" if ranks else "make it run without plumb prove first"
    if not ranks:
        causes = "linked statically, killed, ended by _exit, or without LD_PRELOAD"
        if not status:
            yield f"no {'rank' if launchers else 'process'} left an account: {causes}", variables
        return
    if rest:
        of = numbered("rank", numbers) if (numbers := {each.rank for each in rest} - {-1}) else "the command"
        others = f"{counted(len(rest), 'other working process')} of {of}, at another time or beside the ranks"
        cure = "prove each of several launches by a command of its own"
        yield f"{others}, not judged: {', '.join(sorted(programs(rest)))}", cure
    sizes = (rank.size for rank in ranks) if sized else ()
    size = max((*sizes, *(rank.world or 0 for rank in ranks)), default=0)
    # a program of MPI that no launcher started is the only rank of its world
    if missing := set(range(size)) - {0 if rank.rank < 0 and rank.world == 1 else rank.rank for rank in ranks}:
        yield f"{numbered('rank', missing)} of {size} left no account", variables
    for rank in ranks:
        for doubt in processes.unseen(rank, f"rank {rank.rank}" if rank.rank >= 0 else "the command"):
            yield doubt, "link the program dynamically, and command it itself rather than a script around it"


def unplanned(
    seen: Seen, places: Mapping[str, Place], *, bound: bool = True, planned: bool = False
) -> tuple[list[Finding], list[tuple[str, str]]]:
    """What is wrong without a plan on any host, and what is not known, each with its cure.

    A host that has no place is like the first of ``places``, if it has the same CPUs, or not judged. ``bound``: ranks
    are to be bound; ``planned``: they are compared with a plan, too.
    """
    wrong, unknown, sent = [], [], sent_by_tcp(seen.ranks)
    first, base = next(iter(places.items()))
    for name, every in group((rank.host, rank) for rank in seen.ranks).items():
        alike = base.siblings.keys() == {cpu for rank in every if rank.window.host for cpu in rank.window.host.busy_s}
        known = name in places or (alike and base.allowed == base.siblings.keys())
        place = places.get(name, base)
        used = frozenset(cpu for rank in every for thread in rank.threads for cpu in thread.affinity)
        allowed = place.allowed | used if known else used
        rest = (known and bound, seen.launchers, seen.teams, place.gpus, planned, place.fabric, sent)
        host = Host(name, every, place.machine, allowed, *rest)
        wrong += findings(host) if known or alike else []
        cores = [{place.siblings.get(cpu) for cpu in team.cpus} for team in host.teams]
        apart = sum(map(len, cores)) == len(set().union(*cores))
        apart &= all(team.threads <= len(each) for team, each in zip(host.teams, cores, strict=True))
        if not (known or (alike and apart)):  # a core for each thread is right whatever is allowed there
            doubt = f"{host.those(host.teams)} not judged: its CPUs are not those that the command may use on {first}"
            unknown.append((doubt, "run plumb prove in a job of whole nodes, on one of them, or name a --placement"))
    return wrong, unknown
