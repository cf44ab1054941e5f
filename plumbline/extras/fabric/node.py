"""The network ports and cards of a node, from its facts."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.host import network
from plumbline.mpi import ways
from plumbline.site.nodes.model import Node

ACTIVE = "ACTIVE"


def fabrics(node: Node) -> dict[str, str]:
    """Network of a fabric with an active port -> its ports: ``mlx5_0 port 1, 200 Gbit/s``."""
    ports: dict[str, list[str]] = {}
    for adapter in node.hcas:
        for port in adapter.ports:
            if port.state == ACTIVE:
                rate = f", {port.rate_gbit:g} Gbit/s" if port.rate_gbit else ""
                ports.setdefault(_network(adapter.name, port.link_layer), []).append(
                    f"{adapter.name} port {port.port}{rate}"
                )
    for card in node.nics:
        if (card.driver or "").startswith("cxi") and card.state == "up":
            ports.setdefault(ways.SLINGSHOT, []).append(card.name)
    return {way: "; ".join(texts) for way, texts in ports.items()}


def inactive(node: Node, way: str) -> str:
    """The ports of a network that are there and not active, with their states."""
    return "; ".join(
        f"{adapter.name} port {port.port} is {port.state}"
        for adapter in node.hcas
        for port in adapter.ports
        if port.state != ACTIVE and _network(adapter.name, port.link_layer) == way
    )


def _network(adapter: str, link_layer: str | None) -> str:
    if adapter.startswith("hfi"):
        return ways.OMNIPATH
    return ways.ROCE if link_layer == "Ethernet" else ways.INFINIBAND


def interfaces(node: Node) -> Iterator[tuple[str, str, int | None]]:
    """Name, IPv4 address of this host and Mbit/s of the network cards that are up, and of the loopback."""
    yield "lo", "127.0.0.1", None
    for card in node.nics:
        if address := network.address(card.name) if card.state != "down" else None:
            yield card.name, address, card.speed_mbit
