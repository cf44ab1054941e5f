"""Witnesses as the JSON documents that they are written as; what a made-up one lacks is filled in."""

from collections.abc import Callable
from typing import Any

import msgspec

from plumbline.launch.witness import processes
from plumbline.launch.witness.model import RankWitness, Usage

THREAD = {"tid": 10, "name": "x", "affinity": [0], "last_cpu": 0, "cpu_s": 0, "policy": 0, "nice": 0}
RANK_PLAN = {"local_rank": 0, "cpus": [0], "places": [], "mem": {"policy": "none", "nodes": []}}
SECTIONS = {
    "start": {"affinity": [0], "policy": 0, "nice": 0, "personality": 0},
    "memory": {"page_bytes": 4096, "threshold_bytes": 1 << 20, "nodes": {}, "freed_nodes": {}},
    "window": {"wall_s": 1, "cpu_s": 1, "delay_s": 0},
    "usage": dict.fromkeys(Usage.__struct_fields__, 0),
}
WITNESS: dict[str, Any] = {
    **{"schema": 1, "host": "n1", "pid": 10, "parent": 1, "ancestors": [1], "root": 10, "forked": False, "rank": 0},
    **{"local_rank": 0, "size": 1, "program": "/bin/x", "plan": None, "threads": [THREAD], "ended": []},
    **{"personality": 0, "mpi": False, "objects": []},
}


def typed(document: dict[str, Any]) -> RankWitness:
    """The witness that a document is, of which members may be absent."""
    whole = {**WITNESS, **document, **{name: {**each, **document.get(name, {})} for name, each in SECTIONS.items()}}
    for name in ("threads", "ended"):
        whole[name] = [{**THREAD, **thread} for thread in whole[name]]
    if whole["plan"] is not None:
        whole["plan"] = {**RANK_PLAN, **whole["plan"]}
    whole["others"] = [typed(other) for other in document.get("others", [])]
    return msgspec.json.decode(msgspec.json.encode(whole), type=RankWitness)


def document(seen: RankWitness) -> dict[str, Any]:
    """The document that a witness is."""
    return {"others": [], **msgspec.to_builtins(seen, str_keys=True)}


def read(folder: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """As :func:`plumbline.launch.witness.processes.read`, but documents."""
    found, reasons = processes.read(folder)
    return list(map(document, found)), reasons


def of_documents(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, which takes lists of witnesses, for lists of documents."""

    def convert(value: Any) -> Any:
        return [typed(item) if isinstance(item, dict) else item for item in value] if isinstance(value, list) else value

    return lambda *given, **named: function(*map(convert, given), **named)
