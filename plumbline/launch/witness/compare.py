"""Plan against witness: the reasons why a launch is not verified.

On several nodes: which rank was to be on which host, and whether every host is the machine that was planned for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from plumbline.base import group
from plumbline.base.units import counted, cpu_list, numbered
from plumbline.host.binder import Pages, Plan, PlannedRank
from plumbline.launch.witness import processes
from plumbline.launch.witness.model import Memory, RankWitness, Thread
from plumbline.mpi import Layout

#: What is bound: each thread to its CPU, as OpenMP's are; the ranks, whose threads stay on the CPUs of their rank; each
#: thread to its CPU by the program ``itself``, which is started on all CPUs; or the ranks by the ``site``, without
#: plumb-bind: threads that work stay on the CPUs of their rank.
Binds: TypeAlias = Literal["threads", "ranks", "itself", "site"]
#: words by which reasons are known
UNBOUND, OUTSIDE, MOVED = "but no thread is bound there", "outside the rank's", "was moved between CPUs"
MISSING = "left no witness"

#: by how much a clock that the program reads may be off in the window, as a fraction of it and in seconds: NTP may slew
#: by 5e-4
CLOCK_FRACTION, CLOCK_S = 0.002, 0.001
#: What threads of a rank may have run on other CPUs at their start, as hwloc looks at each: a fraction of its time, a
#: tenth of the least margin of a campaign; and the part of the window, behind which it may be what is measured.
AWAY, AWAY_UNTIL = 0.001, 0.1
#: threads, or hosts, that reasons show
SHOWN = 4
#: fewer pages than this say nothing about how evenly they are interleaved
INTERLEAVE_PAGES = 1024
#: nor do fewer grains (huge pages where they are on) per node: the kernel deals memory out in whole grains, and each
#: thread starts its round at the same node
INTERLEAVE_GRAINS = 8


def compare(
    plan: Plan, witnesses: list[RankWitness], ranks_by_host: dict[str, int], *, binds: Binds = "threads"
) -> list[str]:
    """Reasons why ``witnesses`` do not prove ``plan``; an empty list means verified.

    ``ranks_by_host`` says how many ranks were started on each host, ``binds`` what is bound, and by whom.
    """
    if not ranks_by_host:
        return ["no rank left a witness: the program never started, was killed, or is linked statically"]
    reasons: list[str] = []
    for host, ranks in ranks_by_host.items():
        reasons += _compare_host(plan, [witness for witness in witnesses if witness.host == host], host, ranks, binds)
    return reasons + [
        f"{witness.title} left a witness, but no rank was to run there"
        for witness in witnesses
        if witness.host not in ranks_by_host
    ]


def _compare_host(plan: Plan, witnesses: list[RankWitness], host: str, ranks: int, binds: Binds) -> Iterator[str]:
    planned = {rank.local_rank: rank for rank in plan.ranks}
    seen = group((witness.rank_on_node, witness) for witness in witnesses)
    if missing := [local_rank for local_rank in range(ranks) if local_rank in planned and local_rank not in seen]:
        cause = (
            "it was killed or crashed before its" if len(missing) == 1 else "they were killed or crashed before their"
        )
        yield f"{numbered('local rank', missing)} on {host} {MISSING}: {cause} exit"
    for local_rank in range(ranks):
        rank_witnesses, name = seen.pop(local_rank, []), f"local rank {local_rank} on {host}"
        if local_rank not in planned:
            yield f"{name} is not in the plan, which has {len(planned)} ranks a host"
        elif len(rank_witnesses) > 1:
            yield f"{name} left {len(rank_witnesses)} witnesses instead of one"
        elif rank_witnesses:
            yield from _compare_rank(planned[local_rank], rank_witnesses[0], binds)
    for local_rank in sorted(seen):
        for extra in seen[local_rank]:
            yield f"{extra.title} left a witness, but only {ranks} ranks were to run there"


def _compare_rank(rank: PlannedRank, witness: RankWitness, binds: Binds) -> list[str]:
    name, itself, pages = witness.title, binds in ("itself", "site"), _memory(rank, witness)
    # threads that a library starts before the program binds itself stay where they are; they must not work
    bound = [*witness.threads, *(witness.ended if itself else [])]
    idle_s = processes.allowed_s(processes.ELSEWHERE, witness) if itself else -1.0
    threads = (*witness.threads, *witness.ended)
    worked = [thread for thread in threads if thread.cpu_s > idle_s] or [max(threads, key=lambda each: each.cpu_s)]
    return [
        *(_compare_plan(started(rank, binds), witness, name) if binds != "site" else []),
        *(_compare_places(rank, bound, name) if binds in ("threads", "itself") else []),
        *(_compare_threads(rank, worked, name, itself) or _compare_excursions(rank, witness, name, itself)),
        *_compare_devices(rank, witness, name),
        *clock_faults(witness, name),
        *processes.faults(rank, witness, name),
        *(reason for each in processes.everyone(witness) for reason in _compare_memory(pages, each.memory, name)),
    ]


def clock_faults(witness: RankWitness, name: str) -> list[str]:
    """Why figures of the process called ``name`` may be wrong: they are times, or divided by one, of another clock."""
    window = witness.window
    passed = window.wall_s if window.clock_s is None else window.clock_s
    reason = (
        f"{name} read a clock that is not the kernel's: by {window.clock}, {passed:.3f} s passed in "
        f"{window.wall_s:.3f} s; preload and link no library that replaces it or clock_gettime, and measure when the "
        "host's clock is not set"
    )
    return [reason] if abs(passed - window.wall_s) > max(CLOCK_S, CLOCK_FRACTION * window.wall_s) else []


def started(rank: PlannedRank, binds: Binds) -> PlannedRank:
    """The plan that plumb-bind gives ``rank``: a program that binds itself begins as one under the control."""
    if binds != "itself":
        return rank
    return replace(rank, places=[], mem=Pages(policy="none", nodes=[]), devices=None, environment=None)


def _compare_plan(rank: PlannedRank, witness: RankWitness, name: str) -> list[str]:
    if witness.plan is None:
        return [f"{name} had no plan: it was not started through plumb-bind"]
    members = [f"{key} {_shown(seen)} instead of {_shown(wanted)}" for key, seen, wanted in differing(rank, witness)]
    return [f"{name} was started with another plan: {', '.join(members)}"] if members else []


def differing(rank: PlannedRank, witness: RankWitness) -> list[tuple[str, Any, Any]]:
    """The members in which the plan that a witness was started with, if any, is not ``rank``, each with both values."""
    actual, planned = (msgspec.to_builtins(document) for document in (witness.plan or rank, rank))
    # the control's CPUs are whatever the launcher left it, which the plan cannot know; local memory is that of these
    free = set() if rank.places else {"cpus"} | ({"mem"} if _memory(rank, witness) != rank.mem else set())
    both = [(key, actual.get(key), planned.get(key)) for key in sorted({*planned, *actual} - free)]
    return [(key, seen, wanted) for key, seen, wanted in both if seen != wanted]


def _memory(rank: PlannedRank, witness: RankWitness) -> Pages:
    """Where the memory of ``rank`` has to be: for the control, beside the CPUs that the launcher left it."""
    actual = witness.plan.mem if witness.plan else rank.mem
    is_part = actual.policy == rank.mem.policy == "bind" and set(actual.nodes) <= set(rank.mem.nodes)
    return actual if is_part and actual.nodes and not rank.places else rank.mem


def _compare_devices(rank: PlannedRank, witness: RankWitness, name: str) -> list[str]:
    """Why the rank did not have exactly the GPUs that the plan gives it, or computed on another one."""
    wanted, seen = rank.environment, witness.device_variables
    if wanted is None:
        return []
    planned, used = ", ".join(rank.devices or []), witness.gpu_address
    elsewhere = used not in (None, *(rank.devices or []))
    reasons = {
        f"{name} had {_assigned(seen)}, planned for {planned}: {_assigned(wanted)}": seen != wanted,
        f"{name} computed on the GPU {used}, says its driver, planned: {planned}": elsewhere,
    }
    return [reason for reason, holds in reasons.items() if holds]


def _assigned(variables: dict[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(variables.items())) or "no variable that chooses a GPU"


def _shown(value: Any) -> str:
    is_cpus = isinstance(value, list) and all(isinstance(item, int) for item in value)
    return cpu_list(value) if is_cpus else str(value)


def _compare_places(rank: PlannedRank, threads: list[Thread], name: str) -> Iterator[str]:
    """Every place has its own thread: two places on the same CPUs need two threads there."""
    # a thread that is bound differently in MPI_Finalize is listed again, as it was then: its last entry counts
    free = [frozenset(thread.affinity) for thread in {thread.tid: thread for thread in threads}.values()]
    seen = "; ".join(sorted({cpu_list(cpus) for cpus in free}))
    for number, place in enumerate(rank.places):
        wanted = frozenset(place)
        if wanted in free:
            free.remove(wanted)
        else:
            should = f"thread place {number} of {name} should be on {numbered('CPU', place)}"
            yield f"{should}, {UNBOUND}; threads are on: {seen}"


def _compare_threads(rank: PlannedRank, threads: list[Thread], name: str, moved: bool) -> list[str]:
    """``moved``: a thread may have come to its CPU while the program ran."""
    reasons = []
    allowed = set(rank.cpus)
    for thread in threads if rank.places else ():
        who = f"thread {thread.tid} ({thread.name}) of {name}"
        if set(thread.affinity) - allowed:
            reasons.append(f"{who} may run on {numbered('CPU', thread.affinity)}, {OUTSIDE} {numbered('CPU', allowed)}")
        if thread.last_cpu not in thread.affinity:
            reasons.append(f"{who} last ran on CPU {thread.last_cpu}, but is bound to {cpu_list(thread.affinity)}")
        elif not moved and len(allowed) == 1 and (moves := (thread.migrations or 0) - thread.away_migrations) > 0:
            alone = f"although its rank has {numbered('CPU', allowed)} alone"
            reasons.append(f"{who} {MOVED} {counted(moves, 'time')}, {alone}")
    more = len(reasons) - SHOWN
    return [*reasons[:SHOWN], f"and {more} more such threads of {name}"] if more > 0 else reasons


def _compare_excursions(rank: PlannedRank, witness: RankWitness, name: str, free: bool) -> list[str]:
    """``free``: its threads bind themselves, or the site did, so that they begin elsewhere."""
    away_s, until_s, limit_s = _away(witness)
    cpus = f"{OUTSIDE} {numbered('CPU', rank.cpus)}"
    reasons = {
        f"threads of {name} used {away_s:.6f} s of CPU time {cpus}; {AWAY:.1%} of its time is tolerated": (
            away_s > limit_s
        ),
        f"threads of {name} were bound {cpus} until {until_s:.3f} s after the begin, {AWAY_UNTIL:.0%} of its time: "
        "that may be in the measured part": until_s > AWAY_UNTIL * witness.window.wall_s,
    }
    return [reason for reason, holds in reasons.items() if holds and rank.places and not free]


def _away(witness: RankWitness) -> tuple[float, float, float]:
    """CPU time in excursions of the rank's threads, when the last one ended, and the limit of that time."""
    threads = (*witness.threads, *witness.ended)
    limit_s = AWAY * min(sum(thread.cpu_s for thread in threads), witness.window.wall_s)
    return sum(thread.away_s for thread in threads), max(thread.away_until_s for thread in threads), limit_s


def excursions(witnesses: list[RankWitness]) -> list[str]:
    """A remark on ranks whose threads bound themselves to other CPUs, with their CPU time there and its limit."""
    ranks = sorted(((_away(each), each.title) for each in witnesses), reverse=True)
    (away_s, _, limit_s), name = ranks[0] if ranks else ((0.0, 0.0, 0.0), "")
    also = f" and {counted(more, 'more rank')}" if (more := sum(away[0] > 0 for away, _ in ranks) - 1) > 0 else ""
    remark = (
        f"{name}{also} looked at other CPUs at the begin for {away_s * 1e6:.0f} us of CPU time; "
        f"up to {limit_s * 1e6:.0f} us ({AWAY:.1%} of its time) cannot change a figure"
    )
    return [remark] if away_s else []


def _compare_memory(planned: Pages, memory: Memory, name: str) -> list[str]:
    if planned.policy == "none":
        return []
    if memory.unavailable is not None:
        return [f"memory of {name} is not proven: {memory.unavailable}"]
    pages = Counter(memory.nodes) + Counter(memory.freed_nodes)
    total = sum(pages.values())
    outside = [
        f"{count} of {total} pages of {name} lie on memory node {node}, planned: {numbered('node', planned.nodes)}"
        for node, count in sorted(pages.items())
        if node not in planned.nodes and count > 0
    ]
    grain_pages = max(1, (memory.grain_bytes or 0) // max(1, memory.page_bytes))
    least = max(INTERLEAVE_PAGES, INTERLEAVE_GRAINS * grain_pages * len(planned.nodes))
    if outside or planned.policy != "interleave" or total < least:
        return outside
    share = total / len(planned.nodes)
    return [
        f"memory of {name} is not interleaved: node {node} holds {pages.get(node, 0)} of {total} pages, "
        f"an even share would be {share:.0f}"
        for node in sorted(planned.nodes)
        if not share / 2 <= pages.get(node, 0) <= share * 2
    ]


def compare_nodes(
    plan: Plan,
    witnesses: list[RankWitness],
    layout: Layout,
    home: str,
    known: Sequence[str] = (),
    *,
    binds: Binds = "threads",
) -> list[str]:
    """Reasons why ``witnesses`` do not prove ``plan`` on each node of ``layout``; an empty list means verified.

    Which host is the first is the launcher's choice. ``home`` is the host that the plan was made on, ``known`` the
    hosts that were asked for, where somebody knows them: they give a missing host its name. ``binds`` is that of
    :func:`compare`.
    """
    shorter = sorted({witness.host for witness in witnesses}, key=len)
    # without a domain and with one it is one host, which the shorter name stands for
    hosts = {name: next(stand_in for stand_in in shorter if same_host(stand_in, name)) for name in shorter}
    if wrong := _wrong_map(witnesses, hosts, layout):
        return [wrong]
    reasons = []
    if absent := set(range(layout.nodes)) - {layout.node_of(witness.rank) for witness in witnesses}:
        names = [name for name in known if not any(same_host(name, host) for host in hosts.values())]
        which = f" ({', '.join(names[:SHOWN])}{', …' if len(names) > SHOWN else ''})" if names else ""
        ranks = (rank for rank in range(layout.ranks) if layout.node_of(rank) in absent)
        reasons.append(
            f"{numbered('rank', ranks)}, all of {len(absent)} of {layout.nodes} nodes{which}, left no witness: "
            "they were never started there or were killed, or the node died"
        )
    for host in sorted(set(hosts.values())):
        here = [witness for witness in witnesses if hosts[witness.host] == host]
        if difference := None if same_host(host, home) else _other_plan(plan, here, binds):
            reasons.append(
                f"node {host} is another machine than {home}, where the plan was made: there {plan.placement} is "
                f"{difference}; the nodes of a launch must be equal"
            )
        else:
            reasons += compare(plan, here, {here[0].host: layout.ranks_per_node}, binds=binds)
    return reasons


def same_host(first: str, second: str) -> bool:
    """Whether two names are one host: they are equal, or one of them lacks the domain of the other."""
    short, long = sorted((first, second), key=len)
    return short == long or long.startswith(f"{short}.")


def _wrong_map(witnesses: list[RankWitness], hosts: dict[str, str], layout: Layout) -> str | None:
    """The one line about a rank map that is not as planned. Hosts without any witness are another matter."""
    ranks_by_host = group((hosts[witness.host], witness.rank) for witness in witnesses)
    positions = [position for ranks in ranks_by_host.values() for position in set(map(layout.node_of, ranks))]
    distinct = len(positions) == len(set(positions)) == len(ranks_by_host)
    if distinct and all(0 <= position < layout.nodes for position in positions):
        return None
    if layout.ranks_per_node == 1:
        planned = f"1 rank on each of {layout.nodes} hosts"
    elif layout.round_robin:
        planned = f"rank r on host r mod {layout.nodes}"
    else:
        planned = f"{layout.ranks_per_node} consecutive on each of {layout.nodes} hosts"
    shown = [f"{numbered('rank', ranks)} on {host}" for host, ranks in sorted(ranks_by_host.items())]
    more = f" and {len(shown) - SHOWN} more hosts" if len(shown) > SHOWN else ""
    return f"the rank map is not as planned ({planned}): {', '.join(shown[:SHOWN])}{more}"


def _other_plan(plan: Plan, here: list[RankWitness], binds: Binds) -> str | None:
    """How the plan that plumb-bind made on this host differs, shown by one rank; None if it does not."""
    planned = {rank.local_rank: started(rank, binds) for rank in plan.ranks}
    for witness, local_rank in ((witness, witness.rank_on_node) for witness in here):
        for key, actual, wanted in differing(planned[local_rank], witness) if local_rank in planned else ():
            if key == "cpus":
                key, actual, wanted = "CPUs", cpu_list(actual), cpu_list(wanted)
            return f"{key} {actual} instead of {wanted} for local rank {local_rank}"
    return None
