"""The cost of maps of ranks to nodes, of tests that count their bytes under several maps."""

from __future__ import annotations

from plumbline.base import units
from plumbline.records.model import AnyRecord

#: the metric of bytes that ranks send to other nodes, and the parameter that names the map of ranks
BETWEEN, MAP = "between_nodes", "map"


def remarks(record: AnyRecord) -> list[str]:
    """A sentence for the map that the launcher gave, the first one, and for each that is worse than the best."""
    sent = _sent(record)
    first = next(iter(sent), "")
    best = [f"map {first} is the best map: {units.human_bytes(int(sent[first]))} between nodes"] if sent else []
    return [*(best if sent and sent[first] == min(sent.values()) else []), *costs(record)]


def costs(record: AnyRecord) -> list[str]:
    """A sentence for each map that sends more than the best one; none of a run on one node, which has no network."""
    sent = _sent(record)
    best = min(sent, key=lambda name: sent[name], default="")
    return [_cost(name, value, best, sent[best]) for name, value in sent.items() if value > sent[best]]


def _sent(record: AnyRecord) -> dict[str, float]:
    """The bytes that each map sends between nodes."""
    return {
        str(wanted.where[MAP]): figure.value
        for wanted in record.variant.figures
        if wanted.metric == BETWEEN and MAP in wanted.where and record.placement.nodes > 1
        if (figure := record.figure(wanted.name))
    }


def _cost(name: str, value: float, best: str, least: float) -> str:
    if least:
        return f"map {name} sends {units.digits(value / least)} times the bytes of the best map ({best}) between nodes"
    return f"map {name} sends {units.human_bytes(int(value))} between nodes, the best map ({best}) nothing"
