"""The rank map of a record: where its ranks were planned and where they were seen."""

from __future__ import annotations

from typing import Any

from plumbline.base.errors import PlumbError
from plumbline.base.units import cpu_list
from plumbline.host.topology.plan import PlannedRank
from plumbline.records.launch import RankSeen
from plumbline.records.model import Record


def rank_map(record: Record) -> list[dict[str, Any]]:
    """A row per rank of the last launch that left witnesses, or of the plan if none did.

    ``{"rank", "host", "planned", "seen", "threads", "memory"}``: CPU lists as the kernel writes them, ``threads`` with
    one for each thread, ``memory`` NUMA node -> MB (10^6 bytes) of large mappings, those freed before the end included.
    Without witnesses ``host`` and ``seen`` are None. Raises :class:`PlumbError` for a damaged plan or witness.
    """
    try:
        return _rows(record)
    except (TypeError, KeyError, AttributeError, ValueError) as error:  # a record's types leave their members open
        message = f"the plan or a witness of record {record.id} is damaged: {type(error).__name__} {error}"
        raise PlumbError(message, record.session, "restore the file") from error


def _rows(record: Record) -> list[dict[str, Any]]:
    planned = {rank.local_rank: rank for rank in record.plan.ranks}
    seen = next((launch.ranks for launch in reversed(record.launches) if launch.ranks), None)
    if seen is None:
        return [
            {"rank": number, "host": None, "planned": cpu_list(rank.cpus), "seen": None, "threads": [], "memory": {}}
            for number, rank in sorted(planned.items())
        ]
    return [_row(rank, planned.get(rank.local_rank)) for rank in seen]


def _row(rank: RankSeen, plan: PlannedRank | None) -> dict[str, Any]:
    affinities = [thread.affinity for thread in rank.threads]
    return {
        "rank": rank.rank,
        "host": rank.host,
        "planned": cpu_list(plan.cpus) if plan else None,
        "seen": cpu_list(cpu for affinity in affinities for cpu in affinity),
        "threads": [cpu_list(affinity) for affinity in affinities],
        "memory": _megabytes(rank.memory),
    }


def _megabytes(memory: dict[str, Any]) -> dict[str, int]:
    pages = {**memory["nodes"]}
    for node, count in memory["freed_nodes"].items():
        pages[node] = pages.get(node, 0) + count
    return {node: count * memory["page_bytes"] // 1_000_000 for node, count in sorted(pages.items())}
