"""Plan against witness: the reasons why a launch is not verified."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from plumbline.base import group
from plumbline.base.units import cpu_list, numbered
from plumbline.host.topology.plan import Pages, Plan, PlannedRank
from plumbline.launch.witness import processes
from plumbline.launch.witness.model import Memory, RankWitness, Thread

#: What is bound: each thread to its CPU, as OpenMP's are; the ranks, whose threads stay on the CPUs of their rank; or
#: each thread to its CPU by the program ``itself``, which is started on all CPUs.
Binds: TypeAlias = Literal["threads", "ranks", "itself"]
#: words by which reasons are known
UNBOUND, OUTSIDE, MOVED = "but no thread is bound there", "outside the rank's", "was moved between CPUs"
MISSING = "left no witness"

#: by how much a clock that the program reads may be off in the window, as a fraction of it and in seconds: NTP may slew
#: by 5e-4
CLOCK_FRACTION, CLOCK_S = 0.002, 0.001
#: fewer pages than this say nothing about how evenly they are interleaved
INTERLEAVE_PAGES = 1024
#: nor do fewer grains (huge pages where they are on) per node: the kernel deals memory out in whole grains, and each
#: thread starts its round at the same node
INTERLEAVE_GRAINS = 8


def compare(
    plan: Plan, witnesses: list[RankWitness], ranks_per_host: dict[str, int] | int, *, binds: Binds = "threads"
) -> list[str]:
    """Reasons why ``witnesses`` do not prove ``plan``; an empty list means verified.

    ``ranks_per_host`` says how many ranks were started on each host; a plain number means that many on every host that
    left a witness (a host that left none can then only be missed through the size of the job). ``binds`` says what is
    bound, and by whom.
    """
    expected = _expected(witnesses, ranks_per_host)
    if not expected:
        return ["no rank left a witness: the program never started, was killed, or is linked statically"]
    reasons: list[str] = []
    for host, ranks in expected.items():
        here = [witness for witness in witnesses if witness.host == host]
        reasons += _compare_host(plan, here, host, ranks, binds)
    reasons += [
        f"{_name(witness)} left a witness, but no rank was to run there"
        for witness in witnesses
        if witness.host not in expected
    ]
    if isinstance(ranks_per_host, int):
        reasons += _missing_hosts(witnesses, ranks_per_host, len(expected))
    return reasons


def _expected(witnesses: list[RankWitness], ranks_per_host: dict[str, int] | int) -> dict[str, int]:
    if isinstance(ranks_per_host, int):
        return dict.fromkeys(sorted({witness.host for witness in witnesses}), ranks_per_host)
    return ranks_per_host


def _missing_hosts(witnesses: list[RankWitness], ranks: int, hosts: int) -> list[str]:
    size = max(witness.size for witness in witnesses)
    if size <= ranks * hosts:
        return []
    return [f"the job had {size} ranks, but only {hosts} host(s) of {ranks} ranks left witnesses"]


def _compare_host(plan: Plan, witnesses: list[RankWitness], host: str, ranks: int, binds: Binds) -> list[str]:
    planned = {rank.local_rank: rank for rank in plan.ranks}
    seen = group((local_rank_of(witness), witness) for witness in witnesses)
    reasons: list[str] = []
    missing = [local_rank for local_rank in range(ranks) if local_rank in planned and local_rank not in seen]
    if missing:
        cause = (
            "it was killed or crashed before its" if len(missing) == 1 else "they were killed or crashed before their"
        )
        reasons.append(f"{numbered('local rank', missing)} on {host} {MISSING}: {cause} exit")
    for local_rank in range(ranks):
        rank_witnesses = seen.pop(local_rank, [])
        if local_rank not in planned:
            reasons.append(
                f"local rank {local_rank} on {host} is not in the plan, which has {len(planned)} ranks a host"
            )
        elif len(rank_witnesses) > 1:
            reasons.append(f"local rank {local_rank} on {host} left {len(rank_witnesses)} witnesses instead of one")
        elif rank_witnesses:
            reasons += _compare_rank(planned[local_rank], rank_witnesses[0], binds)
    reasons += [f"{_name(extra)} left a witness, but only {ranks} ranks were to run there" for extra in _flat(seen)]
    return reasons


def _flat(seen: dict[int, list[RankWitness]]) -> Iterator[RankWitness]:
    for local_rank in sorted(seen):
        yield from seen[local_rank]


def local_rank_of(witness: RankWitness) -> int:
    """The rank on its node, by the launcher, else by the binder's plan; 0 for a program started without a launcher."""
    if witness.local_rank >= 0:
        return witness.local_rank
    return witness.plan.local_rank if witness.plan else 0


def _name(witness: RankWitness) -> str:
    rank = witness.rank if witness.rank >= 0 else local_rank_of(witness)
    return f"rank {rank} on {witness.host}"


def _compare_rank(rank: PlannedRank, witness: RankWitness, binds: Binds) -> list[str]:
    name, itself = _name(witness), binds == "itself"
    reasons = _compare_plan(started(rank, binds), witness, name)
    if rank.places:
        # threads that a library starts before the program binds itself stay where they are; they must not work
        ended = witness.ended if itself else []
        reasons += _compare_places(rank, [*witness.threads, *ended], name) if binds != "ranks" else []
        idle_s = processes.allowed_s(processes.ELSEWHERE, witness) if itself else -1.0
        worked = [thread for thread in (*witness.threads, *witness.ended) if thread.cpu_s > idle_s]
        reasons += _compare_threads(rank, worked, name, moved=itself)
    reasons += _compare_devices(rank, witness, name)
    reasons += _compare_clocks(witness, name)
    reasons += processes.faults(rank, witness, name)
    for process in processes.everyone(witness):
        reasons += _compare_memory(rank.mem, process.memory, name)
    return reasons


def _compare_clocks(witness: RankWitness, name: str) -> list[str]:
    """A figure is a time, or was divided by one: the clocks of the program have to be the kernel's."""
    window = witness.window
    passed = window.wall_s if window.clock_s is None else window.clock_s
    if abs(passed - window.wall_s) <= max(CLOCK_S, CLOCK_FRACTION * window.wall_s):
        return []
    return [
        f"{name} read a clock that is not the kernel's, on which {passed:.3f} s passed in {window.wall_s:.3f} s: "
        "preload no library that replaces clock_gettime, and measure when the host's clock is not set"
    ]


def started(rank: PlannedRank, binds: Binds) -> PlannedRank:
    """The plan that plumb-bind gives ``rank``: a program that binds itself begins as one under the control."""
    if binds != "itself":
        return rank
    return replace(rank, places=[], mem=Pages(policy="none", nodes=[]), devices=None, environment=None)


def _compare_plan(rank: PlannedRank, witness: RankWitness, name: str) -> list[str]:
    if witness.plan is None:
        return [f"{name} had no plan: it was not started through plumb-bind"]
    shown = ", ".join(
        f"{key} {_shown(actual)} instead of {_shown(planned)}" for key, actual, planned in differing(rank, witness)
    )
    return [f"{name} was started with another plan: {shown}"] if shown else []


def differing(rank: PlannedRank, witness: RankWitness) -> list[tuple[str, Any, Any]]:
    """The members in which the plan that a witness was started with, if any, is not ``rank``, each with both values."""
    actual, planned = (msgspec.to_builtins(document) for document in (witness.plan or rank, rank))
    # the control's CPUs are whatever the launcher left it, which the plan cannot know
    free = set() if rank.places else {"cpus"}
    both = [(key, actual.get(key), planned.get(key)) for key in sorted({*planned, *actual} - free)]
    return [(key, seen, wanted) for key, seen, wanted in both if seen != wanted]


def _compare_devices(rank: PlannedRank, witness: RankWitness, name: str) -> list[str]:
    """Why the rank did not have exactly the GPUs that the plan gives it, or computed on another one."""
    wanted, seen = rank.environment, witness.device_variables
    if wanted is None:
        return []
    reasons, planned, used = [], ", ".join(rank.devices or []), witness.gpu_address
    if seen != wanted:
        reasons.append(f"{name} had {_assigned(seen)}, planned for {planned}: {_assigned(wanted)}")
    if used is not None and used not in (rank.devices or []):
        reasons.append(f"{name} computed on the GPU {used}, says its driver, planned: {planned}")
    return reasons


def _assigned(variables: dict[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(variables.items())) or "no variable that chooses a GPU"


def _shown(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, int) for item in value):
        return cpu_list(value)
    return str(value)


def _compare_places(rank: PlannedRank, threads: list[Thread], name: str) -> list[str]:
    """Every place has its own thread: two places on the same CPUs need two threads there."""
    free = [frozenset(thread.affinity) for thread in _distinct(threads)]
    seen = "; ".join(sorted({cpu_list(cpus) for cpus in free}))
    reasons = []
    for number, place in enumerate(rank.places):
        wanted = frozenset(place)
        if wanted in free:
            free.remove(wanted)
        else:
            reasons.append(
                f"thread place {number} of {name} should be on {numbered('CPU', place)}, {UNBOUND}; "
                f"threads are on: {seen}"
            )
    return reasons


def _distinct(threads: list[Thread]) -> list[Thread]:
    """The last entry of each thread: one bound differently in MPI_Finalize is listed again, as it was then."""
    return list({thread.tid: thread for thread in threads}.values())


def _compare_threads(rank: PlannedRank, threads: list[Thread], name: str, moved: bool) -> list[str]:
    """``moved``: a thread may have come to its CPU while the program ran."""
    reasons = []
    allowed = set(rank.cpus)
    for thread in threads:
        who = f"thread {thread.tid} ({thread.name}) of {name}"
        outside = set(thread.affinity) - allowed
        if outside:
            reasons.append(f"{who} may run on {numbered('CPU', thread.affinity)}, {OUTSIDE} {numbered('CPU', allowed)}")
        if thread.last_cpu not in thread.affinity:
            reasons.append(f"{who} last ran on CPU {thread.last_cpu}, but is bound to {cpu_list(thread.affinity)}")
        elif not moved and len(allowed) == 1 and (thread.migrations or 0) > 0:
            reasons.append(
                f"{who} {MOVED} {thread.migrations} times, although its rank has {numbered('CPU', allowed)} alone"
            )
    return _shortened(reasons, f"threads of {name}")


def _shortened(reasons: list[str], noun: str, keep: int = 4) -> list[str]:
    if len(reasons) <= keep:
        return reasons
    return [*reasons[:keep], f"and {len(reasons) - keep} more such {noun}"]


def _compare_memory(planned: Pages, memory: Memory, name: str) -> list[str]:
    if planned.policy == "none":
        return []
    if memory.unavailable is not None:
        return [f"memory of {name} is not proven: {memory.unavailable}"]
    pages = Counter(memory.nodes) + Counter(memory.freed_nodes)
    reasons = _outside(planned.nodes, pages, name)
    if planned.policy == "interleave" and not reasons:
        reasons = _uneven(planned.nodes, pages, memory, name)
    return reasons


def _outside(nodes: list[int], pages: dict[int, int], name: str) -> list[str]:
    total = sum(pages.values())
    return [
        f"{count} of {total} pages of {name} lie on memory node {node}, planned: {numbered('node', nodes)}"
        for node, count in sorted(pages.items())
        if node not in nodes and count > 0
    ]


def _uneven(nodes: list[int], pages: dict[int, int], memory: Memory, name: str) -> list[str]:
    total = sum(pages.values())
    grain_pages = max(1, (memory.grain_bytes or 0) // max(1, memory.page_bytes))
    if total < max(INTERLEAVE_PAGES, INTERLEAVE_GRAINS * grain_pages * len(nodes)):
        return []
    share = total / len(nodes)
    return [
        f"memory of {name} is not interleaved: node {node} holds {pages.get(node, 0)} of {total} pages, "
        f"an even share would be {share:.0f}"
        for node in sorted(nodes)
        if not share / 2 <= pages.get(node, 0) <= share * 2
    ]
