"""Several nodes: which rank was to be on which host, and whether every host is the machine that was planned for."""

from __future__ import annotations

from collections.abc import Iterable

from plumbline.base import group
from plumbline.base.units import cpu_list, numbered
from plumbline.host.topology.plan import Plan
from plumbline.launch.witness.compare import Binds, compare, differing, local_rank_of, started
from plumbline.launch.witness.model import RankWitness

#: hosts that one reason shows
SHOWN = 4


def compare_nodes(
    plan: Plan,
    witnesses: list[RankWitness],
    nodes: int,
    ranks_per_node: int,
    round_robin: bool,
    home: str,
    known: tuple[str, ...] = (),
    *,
    binds: Binds = "threads",
) -> list[str]:
    """Reasons why ``witnesses`` do not prove ``plan`` on each of ``nodes`` hosts; an empty list means verified.

    Dealt round robin, rank r belongs on host r mod ``nodes``; else hosts hold ``ranks_per_node`` consecutive ranks
    each. Which host is the first is the launcher's choice. ``home`` is the host that the plan was made on, ``known``
    the hosts that were asked for, where somebody knows them: they give a missing host its name. ``binds`` is that of
    :func:`plumbline.launch.witness.compare.compare`.
    """
    if not witnesses:
        return [_missing(range(nodes * ranks_per_node), nodes, nodes, known)]
    hosts = _hosts(witnesses)
    wrong = _wrong_map(witnesses, hosts, nodes, ranks_per_node, round_robin)
    if wrong:
        return [wrong]
    reasons = []
    present = {_group(witness.rank, nodes, ranks_per_node, round_robin) for witness in witnesses}
    absent = set(range(nodes)) - present
    if absent:
        ranks = [r for r in range(nodes * ranks_per_node) if _group(r, nodes, ranks_per_node, round_robin) in absent]
        names = tuple(name for name in known if not any(same_host(name, host) for host in hosts.values()))
        reasons.append(_missing(ranks, len(absent), nodes, names))
    for host in sorted(set(hosts.values())):
        here = [witness for witness in witnesses if hosts[witness.host] == host]
        difference = None if same_host(host, home) else _other_plan(plan, here, binds)
        if difference:
            reasons.append(
                f"node {host} is another machine than {home}, where the plan was made: there {plan.placement} is "
                f"{difference}; the nodes of a launch must be equal"
            )
        else:
            reasons += compare(plan, here, {here[0].host: ranks_per_node}, binds=binds)
    return reasons


def _hosts(witnesses: list[RankWitness]) -> dict[str, str]:
    """Every host's name as witnessed -> the name that stands for it: without a domain and with one it is one host."""
    names = sorted({witness.host for witness in witnesses}, key=len)
    return {name: next(stand_in for stand_in in names if same_host(stand_in, name)) for name in names}


def same_host(first: str, second: str) -> bool:
    """Whether two names are one host: they are equal, or one of them lacks the domain of the other."""
    short, long = sorted((first, second), key=len)
    return short == long or long.startswith(f"{short}.")


def _group(rank: int, nodes: int, ranks_per_node: int, round_robin: bool) -> int:
    return rank % nodes if round_robin else rank // ranks_per_node


def _wrong_map(
    witnesses: list[RankWitness], hosts: dict[str, str], nodes: int, ranks_per_node: int, round_robin: bool
) -> str | None:
    """The one line about a rank map that is not as planned. Hosts without any witness are another matter."""
    ranks_by_host = group((hosts[witness.host], witness.rank) for witness in witnesses)
    groups = {
        host: {_group(rank, nodes, ranks_per_node, round_robin) if rank >= 0 else -1 for rank in ranks}
        for host, ranks in ranks_by_host.items()
    }
    every = [group for of_host in groups.values() for group in of_host]
    if len(every) == len(set(every)) == len(groups) and all(0 <= group < nodes for group in every):
        return None
    planned = (
        f"rank r on host r mod {nodes}" if round_robin else f"{ranks_per_node} consecutive on each of {nodes} hosts"
    )
    if ranks_per_node == 1:
        planned = f"1 rank on each of {nodes} hosts"
    shown = [f"{numbered('rank', ranks)} on {host}" for host, ranks in sorted(ranks_by_host.items())]
    more = f" and {len(shown) - SHOWN} more hosts" if len(shown) > SHOWN else ""
    return f"the rank map is not as planned ({planned}): {', '.join(shown[:SHOWN])}{more}"


def _missing(ranks: Iterable[int], lost: int, nodes: int, names: tuple[str, ...]) -> str:
    which = f" ({', '.join(names[:SHOWN])}{', …' if len(names) > SHOWN else ''})" if names else ""
    return (
        f"{numbered('rank', ranks)}, all of {lost} of {nodes} nodes{which}, left no witness: "
        "they were never started there or were killed, or the node died"
    )


def _other_plan(plan: Plan, here: list[RankWitness], binds: Binds) -> str | None:
    """How the plan that plumb-bind made on this host differs, shown by one rank; None if it does not."""
    planned = {rank.local_rank: started(rank, binds) for rank in plan.ranks}
    for witness in here:
        rank = planned.get(local_rank_of(witness))
        for key, actual, wanted in differing(rank, witness) if rank is not None else ():
            who = f"for local rank {local_rank_of(witness)}"
            if key == "cpus":
                return f"CPUs {cpu_list(actual)} instead of {cpu_list(wanted)} {who}"
            return f"{key} {actual} instead of {wanted} {who}"
    return None
