"""How the kernel scheduled the ranks, against how it schedules the driver, from which they inherit everything."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

from msgspec.structs import replace

from plumbline.base import group
from plumbline.launch.witness.model import RankWitness, Witness
from plumbline.launch.witness.processes import ELSEWHERE, allowed_s, cpu_s, everyone
from plumbline.records.launch import Scheduling

POLICIES = {0: "SCHED_OTHER", 1: "SCHED_FIFO", 2: "SCHED_RR", 3: "SCHED_BATCH", 5: "SCHED_IDLE", 6: "SCHED_DEADLINE"}
ASK_ONLY = 0xFFFFFFFF


def of_this_process() -> Scheduling:
    """That of this process."""
    policy = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
    personality = ctypes.CDLL(None).personality(ctypes.c_ulong(ASK_ONLY))
    return Scheduling(policy=_policy(policy), nice=os.getpriority(os.PRIO_PROCESS, 0), personality=personality)


def at_start(document: Witness) -> Scheduling:
    """That of a witnessed process when its program began."""
    start = document.start
    return Scheduling(
        policy=_policy(start.policy),
        nice=start.nice,
        personality=start.personality,
        inherited=", ".join(start.inherited),
    )


def faults(witnesses: Sequence[RankWitness], driver: Scheduling) -> list[str]:
    """Why ranks were not scheduled as the ``driver`` from their begin to their end; threads that did work count."""
    reasons = group(
        (fault, f"rank {max(0, witness.rank)} on {witness.host}")
        for witness in witnesses
        for document in everyone(witness)
        if document is witness or cpu_s(document) > allowed_s(ELSEWHERE, witness)
        for fault in _faults(document, driver, allowed_s(ELSEWHERE, witness))
    )
    return [
        f"{names[0]}{f' and {len(names) - 1} more ranks' if len(names) > 1 else ''} {fault}; plumb itself has {driver}"
        for fault, names in reasons.items()
    ]


def _faults(document: Witness, driver: Scheduling, idle_s: float) -> list[str]:
    start = replace(at_start(document), inherited="")
    ends = {
        Scheduling(policy=_policy(thread.policy), nice=thread.nice, personality=document.personality)
        for thread in (*document.threads, *document.ended)
        if thread.policy >= 0 and (thread.tid == document.pid or thread.cpu_s > idle_s)
    }
    reasons = [f"began with {start}"] if start != driver else []
    return reasons + [f"had a thread with {end} at its end" for end in sorted(ends - {start, driver}, key=str)]


def _policy(number: int) -> str:
    return POLICIES.get(number, f"policy {number}")
