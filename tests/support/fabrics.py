"""Launches of the audit that nobody made, for its judgement: witnesses, lines and facts as a test says."""

from typing import Any

import node_facts
import stack_manifest
import witnesses

from plumbline.extras.fabric.audit import Judge
from plumbline.extras.fabric.causes import Case
from plumbline.extras.fabric.smoke import LARGE_MESSAGES, Smoke
from plumbline.site.nodes import findings

QUIET: dict[str, Any] = {
    "shm_bytes": 1 << 24, "sysv_bytes": 0, "file_bytes": 0, "file": "", "copies": LARGE_MESSAGES, "refused": 0,
    "user_namespace": "user:[1]", "connections": 0, "tcp": [], "tcp_sent": [], "devices": [],
}  # fmt: skip


def smoke(*ranks: dict[str, Any], nodes: int = 1, lines: tuple[str, ...] = (), **changes: Any) -> Smoke:
    """A launch whose ranks had these transports over the usual ones."""
    seen = [
        witnesses.typed({"rank": number, "transports": {**QUIET, **rank}})
        for number, rank in enumerate(ranks or ({}, {}))
    ]
    made: dict[str, Any] = {
        "nodes": nodes, "failed": "", "late": False, "beside": "", "seen": seen,
        "lines": list(lines), "variables": {}, "refused": {}, "figures": {},
    }  # fmt: skip
    return Smoke(**{**made, **changes})


def by_tcp(address: str, other: str, size: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The transports of two ranks with a connection over which each sent ``size`` bytes."""
    ends = [f"{address}:5", f"{other}:6"]
    return {"tcp": [ends], "tcp_sent": [size]}, {"tcp": [ends[::-1]], "tcp_sent": [size]}


def facts(**changes: Any) -> Any:
    """Facts of a node with an active InfiniBand port, without XPMEM and KNEM, that Yama leaves alone."""
    return node_facts.typed("n1", **changes)


def adapter(name: str = "mlx5_0", layer: str = "InfiniBand", state: str = "ACTIVE") -> dict[str, Any]:
    """An adapter of one port."""
    port = {"port": 1, "state": state, "rate_gbit": 100.0, "link_layer": layer}
    return {"name": name, "type": None, "numa": 0, "ports": [port]}


def case(way: str, ran: Smoke | None = None, family: str = "openmpi", **more: Any) -> Case:
    """A way that was not used."""
    node, settings = more.pop("node", None) or facts(), more.pop("settings", {})
    doctor = {one.name: one for one in findings.examine_node(node)}
    return Case(way, stack_manifest.made("made", family, **more), node, ran or smoke(), settings, doctor)


def judge(ran: Smoke, node: Any = None, family: str = "openmpi", **more: Any) -> Judge:
    """What judges ``ran``."""
    settings = more.pop("settings", {})
    return Judge(stack_manifest.made("made", family, **more), node or facts(), ran, settings)
