"""The witness of each rank of a launch: the process of it that did the work, the CPU time of the others, scheduling.

A rank is what ``plumb-bind`` became, the *root*, with everything that it started. Each process that ends in the
ordinary way leaves a document. What the root's ended children used beyond their documents is the time of processes that
nobody saw: the preloaded library was taken from them, they were linked statically, or ended by ``_exit`` or a signal.
Ranks inherit from the driver how the kernel schedules them, and are compared with it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import structs

from plumbline.base import group, paths, programs, schemas
from plumbline.base.errors import PlumbError
from plumbline.base.units import cpu_list
from plumbline.host import proc
from plumbline.host.binder import PlannedRank
from plumbline.launch.witness.model import RankWitness, Witness
from plumbline.records.launch import Half, RankSeen, Scheduling

#: CPU time that processes elsewhere than planned may take, as a fraction of the working one's, and in seconds: below a
#: campaign's margin of 1 %, and one tick of a kernel that counts in 1/100 s
ELSEWHERE = (0.01, 0.01)
#: the same for processes that nobody saw. A document ends before its process does: what giving back memory and writing
#: the document takes is part of it.
UNSEEN = (0.05, 0.1)
#: the same after the document of each process that the root started, in seconds: 0.35 ms for /bin/true, measured
AFTER = 0.001
#: the same for what the process did before it became the program: the binder, a wrapper that loads modules
BEFORE = (0.05, 3.0)
#: words by which reasons are known
LEFT_NO_WITNESS, BECAME = "of CPU time and left no witness", "of CPU time before it became"


def preloaded(variables: Mapping[str, str], folder: Path) -> dict[str, str]:
    """``variables`` for a command whose ranks get the witness library and write to ``folder``.

    Another library that is preloaded stays; a rank that this process is itself does not count.
    """
    kept = {name: value for name, value in variables.items() if name != "PLUMB_WITNESS_PID"}
    libraries = filter(None, (str(paths.library("witness")), kept.get("LD_PRELOAD")))
    return {**kept, "LD_PRELOAD": ":".join(libraries), "PLUMB_WITNESS_DIR": str(folder)}


def by_rank(documents: list[Witness]) -> tuple[list[RankWitness], list[str]]:
    """One witness for each rank, that of the process which did the work, with the rank's other processes as ``others``.

    That process is the one that called MPI_Init, else the one that used most CPU time, or the root if it used about as
    much. A rank whose root left no document has no witness; the reason is returned if one of its children did.
    """

    def work(document: Witness) -> tuple[bool, float]:
        return document.mpi, cpu_s(document) + (ELSEWHERE[1] if document.pid == document.root else 0.0)

    witnesses: list[RankWitness] = []
    reasons = []
    for (host, root), tree in group(((document.host, document.root), document) for document in documents).items():
        if any(document.pid == root for document in tree):
            worker = max(tree, key=work)
            others = [document for document in tree if document is not worker]
            witnesses.append(RankWitness(**structs.asdict(worker), others=others))
        else:
            started = ", ".join(sorted({document.program for document in tree}))
            reasons.append(
                f"process {root} on {host} started {started} and ended without a witness of its own: it crashed, or "
                "is a shell that must end in 'exec PROGRAM'"
            )
    return witnesses, reasons


def observed(documents: list[Witness]) -> list[RankWitness]:
    """One witness for each rank of what plumb-bind did not start; what starts ranks is none.

    Processes of a host with the same number are one rank. All without a number on a host count as one, rank -1.
    """
    known = {(document.host, document.pid): document for document in documents}
    above = {
        place
        for document in documents
        for place in ((document.host, pid) for pid in document.ancestors)
        if place in known and (document.mpi or known[place].rank != document.rank)
    }
    ranks = group(((item.host, item.rank), item) for place, item in known.items() if place not in above)
    trees = [(max(tree, key=lambda item: item.usage.children_s).pid, tree) for tree in ranks.values()]
    return by_rank([structs.replace(item, root=head) for head, tree in trees for item in tree])[0]


def everyone(witness: RankWitness) -> list[Witness]:
    """All processes of the rank of ``witness``, the working one first."""
    return [witness, *witness.others]


def bound_cpus(witness: Witness) -> set[int]:
    """The CPUs that threads of one process were bound to at its end."""
    return {cpu for thread in witness.threads for cpu in thread.affinity}


def cpu_s(witness: Witness) -> float:
    """CPU seconds of one process since its program began."""
    return witness.usage.user_s + witness.usage.system_s


def allowed_s(limit: tuple[float, float], witness: Witness) -> float:
    """CPU seconds that ``limit``, a fraction of the working process's and a constant, allows."""
    return limit[0] * cpu_s(witness) + limit[1]


def faults(rank: PlannedRank, witness: RankWitness, name: str) -> list[str]:
    """Why the other processes of the ``rank`` called ``name`` leave doubt that the witnessed one did its work there."""
    callers = [document for document in everyone(witness) if document.mpi]
    several = f"{len(callers)} processes of {name} called MPI_Init: {', '.join(map(_label, callers))}"
    reasons = [several] if len(callers) > 1 else []
    return reasons + (_elsewhere(set(rank.cpus), witness, name) + unseen(witness, name) if rank.places else [])


def _elsewhere(cpus: set[int], witness: RankWitness, name: str) -> list[str]:
    """Only the other processes: the working process itself is compared with its places."""
    seen = [(document, bound_cpus(document) | set(document.start.affinity)) for document in witness.others]
    away = [(document, on) for document, on in seen if on - cpus]
    used = sum(cpu_s(document) for document, _ in away)
    used += sum(thread.away_s for document in witness.others for thread in (*document.threads, *document.ended))
    where = "; ".join(f"{_label(document)} on {cpu_list(on)}" for document, on in away)
    reason = f"processes of {name} used {used:.2f} s of CPU time outside its CPUs {cpu_list(cpus)}: {where}"
    return [reason] if used > allowed_s(ELSEWHERE, witness) else []


def unseen(witness: RankWitness, name: str) -> list[str]:
    """CPU time that nobody saw, each with its limit.

    That of the root's ended children, by the root's account, beyond what their documents report; that of threads that
    the C library does not know, started by clone(2), or ended by the system call alone; that before the programs began.
    """
    every = everyone(witness)
    root = next(document for document in every if document.pid == document.root)
    children = sum(cpu_s(document) + document.usage.before_s for document in every if document is not root)
    unseen = root.usage.children_s - children - AFTER * (len(every) - 1)
    unlisted = sum(document.usage.unlisted_s for document in every)
    before = sum(document.usage.before_s for document in every)
    unknown = "it is unknown where they ran"
    doubts = (
        (unseen, UNSEEN, f"processes that {_label(root)} of {name} started used", f"{LEFT_NO_WITNESS}: {unknown}"),
        (unlisted, UNSEEN, f"threads of {name} used", f"of CPU time and ended unseen: {unknown}"),
        (before, BEFORE, f"{name} used", f"{BECAME} {_label(witness)}: nobody knows where"),
    )
    return [f"{who} {used:.2f} s {end}" for used, limit, who, end in doubts if used > allowed_s(limit, witness)]


def unseen_orphans(witnesses: Sequence[RankWitness], orphans: Sequence[proc.Stat], host: str) -> list[str]:
    """CPU time of daemons that ranks left on ``host``: ``orphans`` that are not the launcher's, beyond their documents.

    What a rank descends from is the launcher's. Daemons on other hosts are not seen: their orphans are not ours.
    """
    here = [document for witness in witnesses for document in everyone(witness) if document.host == host]
    launchers = {pid for document in here for pid in document.ancestors if document.pid == document.root}
    used = {orphan.pid: orphan.cpu_s for orphan in orphans if orphan.pid not in launchers}
    for document in here:
        for pid in used.keys() & {document.pid, *document.ancestors}:
            used[pid] -= cpu_s(document) + document.usage.before_s
    working = {orphan.name: used[orphan.pid] for orphan in orphans if used.get(orphan.pid, 0) > UNSEEN[1]}
    unseen = sum(value for value in used.values() if value > 0)
    if not here or unseen <= UNSEEN[0] * sum(map(cpu_s, here)) + UNSEEN[1]:
        return []
    named = f": {', '.join(sorted(working))}" if working else ""
    return [f"daemons that the ranks left on {host} used {unseen:.2f} s {LEFT_NO_WITNESS}{named}"]


def _label(document: Witness) -> str:
    return f"{document.program.rpartition('/')[2]} (process {document.pid})"


_DECODER = msgspec.json.Decoder(Witness)


def read(folder: Path | str) -> tuple[list[RankWitness], list[str]]:
    """One witness for each rank, ordered by host and rank, from the documents in ``folder`` (every ``*.json``).

    Also returns a reason for each document that is damaged, and for each process that left children's documents only.
    """
    documents, reasons = documents_in(folder)
    witnesses, orphans = by_rank(documents)
    return witnesses, reasons + orphans


def documents_in(folder: Path | str) -> tuple[list[Witness], list[str]]:
    """The documents in ``folder``, ordered by host and rank, and a reason for each that is damaged."""
    if not Path(folder).is_dir():
        return [], [f"no witness folder {folder}"]
    documents: list[Witness] = []
    reasons: list[str] = []
    for file in sorted(Path(folder).glob("*.json")):
        try:
            documents.append(_load(file))
        except PlumbError as error:
            reasons.append(str(error))
    documents.sort(key=lambda item: (item.host, item.rank, item.local_rank, item.pid))
    return documents, reasons


def _load(file: Path) -> Witness:
    cure = "the launch cannot be verified"
    try:
        text = file.read_bytes()
        return _DECODER.decode(text)
    except OSError as error:
        raise PlumbError(f"unreadable witness file: {error}", str(file), cure) from error
    except msgspec.ValidationError as error:
        if b'"ancestors"' not in text and b'"schema"' in text:
            cure = "build the tools again: make setup"
            raise PlumbError("witness file of an earlier libplumbwitness.so", str(file), cure) from None
        raise PlumbError(schemas.fault("witness", error), str(file), cure) from None
    except (ValueError, RecursionError) as error:
        raise PlumbError(f"damaged witness file: {error}", str(file), cure) from error


POLICIES = {0: "SCHED_OTHER", 1: "SCHED_FIFO", 2: "SCHED_RR", 3: "SCHED_BATCH", 5: "SCHED_IDLE", 6: "SCHED_DEADLINE"}


def scheduling_here() -> Scheduling:
    """How the kernel schedules this process."""
    policy = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
    personality = programs.LIBC.personality(ctypes.c_ulong(0xFFFFFFFF))  # which only asks
    return Scheduling(policy=_policy(policy), nice=os.getpriority(os.PRIO_PROCESS, 0), personality=personality)


def scheduling_at_start(document: Witness) -> Scheduling:
    """How the kernel scheduled a witnessed process when its program began."""
    start = document.start
    inherited = ", ".join(start.inherited)
    return Scheduling(policy=_policy(start.policy), nice=start.nice, personality=start.personality, inherited=inherited)


def half_seen(witnesses: Sequence[RankWitness]) -> Half:
    """The CPUs that this process leaves to a launch, and when its window began and ended."""
    windows = [(item.window.begin_s or 0.0, item.window.wall_s) for item in witnesses]
    ends = min(begin for begin, _ in windows), max(begin + wall for begin, wall in windows)
    return Half(cpus=sorted(os.sched_getaffinity(0)), window=ends)


def rank_seen(witness: RankWitness) -> RankSeen:
    """The rank of a witness. Its other processes are summed up by program: a wrapper may start hundreds of them."""
    others = group((item.program, cpu_s(item)) for item in witness.others)
    summed = [
        {"program": program, "processes": len(times), "cpu_s": round(sum(times), 6)}
        for program, times in sorted(others.items())
    ]
    fields = msgspec.to_builtins(witness, str_keys=True)
    return msgspec.convert({**fields, "others": summed, "scheduling": scheduling_at_start(witness)}, RankSeen)


def scheduling_faults(witnesses: Sequence[RankWitness], driver: Scheduling) -> list[str]:
    """Why ranks were not scheduled as the ``driver`` from their begin to their end; threads that did work count."""
    reasons = group(
        (fault, witness.title)
        for witness in witnesses
        for document in everyone(witness)
        if document is witness or cpu_s(document) > allowed_s(ELSEWHERE, witness)
        for fault in _scheduled_otherwise(document, driver, allowed_s(ELSEWHERE, witness))
    )
    return [
        f"{names[0]}{f' and {len(names) - 1} more ranks' if len(names) > 1 else ''} {fault}; plumb itself has {driver}"
        for fault, names in reasons.items()
    ]


def _scheduled_otherwise(document: Witness, driver: Scheduling, idle_s: float) -> list[str]:
    start = structs.replace(scheduling_at_start(document), inherited="")
    ends = {
        Scheduling(policy=_policy(thread.policy), nice=thread.nice, personality=document.personality)
        for thread in (*document.threads, *document.ended)
        if thread.policy >= 0 and (thread.tid == document.pid or thread.cpu_s > idle_s)
    }
    reasons = [f"began with {start}"] if start != driver else []
    return reasons + [f"had a thread with {end} at its end" for end in sorted(ends - {start, driver}, key=str)]


def _policy(number: int) -> str:
    return POLICIES.get(number, f"policy {number}")
