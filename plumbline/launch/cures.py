"""Cures where a launch of an application is not verified: changes of plumb.yaml or of the program.

Reasons are made by modules that know nothing of that file; they are known here by the words that these export.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plumbline.launch import cause, plausible, program_files
from plumbline.launch.witness import processes
from plumbline.launch.witness.compare import MISSING, MOVED, OUTSIDE, UNBOUND, Binds
from plumbline.launch.witness.model import RankWitness

#: a thread that used less of the busiest thread's CPU time did not do the work: MPI libraries have threads of their own
WORKED = 0.1
_ITSELF = "if the program binds its threads, write binds: itself in plumb.yaml, and the placement that is like it"
#: words of a reason -> its cure
CURES = {
    processes.LEFT_NO_WITNESS: "if these are the program's helpers, link them dynamically, and let them end well",
    processes.BECAME: "move this work into build, or command the program itself",
    OUTSIDE: _ITSELF,
    MOVED: _ITSELF,
    plausible.WITHOUT_MPI: "write mpi: false in plumb.yaml if it does not use MPI",
    program_files.WORLD: "build it with the stack's mpicc, mpicxx or mpifort, which come first in PATH",
}
#: the same of a launch that failed
FAILED = {cause.IMPROPERLY: "let each rank call MPI_Finalize"}
_BY_ITSELF = "write the placement in plumb.yaml that the program binds its threads as, or binds: ranks"
_ENDED_WELL = (
    "the launch ended well, so the ranks are linked statically, or ended by _exit before MPI_Finalize: link them "
    "dynamically, or let them call MPI_Finalize"
)


def added(reasons: Iterable[str], seen: Sequence[RankWitness], binds: Binds, *, ended_well: bool) -> list[str]:
    """``reasons`` why a launch of an application is not verified, the first of each kind with its cure."""
    known = {UNBOUND: _unbound(seen), **CURES, MISSING: _ENDED_WELL} if ended_well else dict(FAILED)
    if ended_well and binds == "itself":
        known |= dict.fromkeys((UNBOUND, OUTSIDE), _BY_ITSELF)
    explained, cures_named = [], {""}
    for reason in reasons:
        cure = next((cure for words, cure in known.items() if words in reason), "")
        explained.append(reason if cure in cures_named else f"{reason}; {cure}")
        cures_named.add(cure)
    return explained


def _unbound(seen: Sequence[RankWitness]) -> str:
    """The cure where a planned thread was not found on its CPU, by the threads that worked."""
    worked = [_affinities_that_worked(rank) for rank in seen]
    if all(len(threads) <= 1 for threads in worked):
        return "write threads: 1 in plumb.yaml, as one thread of each rank worked"
    if any(len(cpus) == 1 for threads in worked for cpus in threads):
        return _ITSELF
    return "write binds: ranks in plumb.yaml if these are not threads of OpenMP"


def _affinities_that_worked(rank: RankWitness) -> list[list[int]]:
    """The CPUs that each thread was allowed to use, of the threads that worked, not of an MPI library's helpers."""
    threads = [*rank.threads, *rank.ended]
    most = max((thread.cpu_s for thread in threads), default=0.0)
    return [thread.affinity for thread in threads if thread.cpu_s > WORKED * most]
