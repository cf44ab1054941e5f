"""The resources of a machine, and those that a lab needs and it lacks."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from plumbline import site
from plumbline.base.schemas.site import Partition, Site
from plumbline.base.units import counted
from plumbline.extras.labs.model import Needs
from plumbline.host import devices
from plumbline.host.topology import machine

#: the words for each resource
WORDS = {
    "cores": "core",
    "packages": "package",
    "numa_nodes": "NUMA node",
    "hardware_threads": "hardware thread",
    "cores_of_l3": "core",
    "gpus": "GPU",
    "nodes": "node",
}
#: ... and where
PLACES = {"hardware_threads": " of a core", "cores_of_l3": " that share an L3 cache"}


def offered(here: Site) -> list[Needs]:
    """The resources of a node of each partition of a site, and the nodes that a test may use."""
    return [_of(part, site.folder(here.name) / part.topology) for part in here.partitions]


def _of(part: Partition, topology: Path) -> Needs:
    node = machine.load(topology)
    cores = {cpu: core for core in node.cores for cpu in core.cpus}
    return Needs(
        cores=len(node.cores),
        packages=len(node.packages),
        numa_nodes=len(node.numa_nodes),
        hardware_threads=max(len(core.cpus) for core in node.cores),
        cores_of_l3=max((len({cores[cpu] for cpu in cache.cpus}) for cache in node.l3s), default=1),
        gpus=len(devices.gpus(topology)),
        nodes=part.nodes_offered,
    )


def lacking(needs: Needs, offers: list[Needs]) -> str:
    """The lack of the best of the partitions: ``2 NUMA nodes are needed, there is 1``; empty where one has all."""
    missing = [[name for name in WORDS if getattr(needs, name) > getattr(offer, name)] for offer in offers]
    best = min(range(len(offers)), key=lambda number: len(missing[number]))
    return "; ".join(
        f"{counted(getattr(needs, name), WORDS[name])}{PLACES.get(name, '')} needed, here {getattr(offers[best], name)}"
        for name in missing[best]
    )


def words(needs: Needs) -> str:
    """The resources needed beyond one core: ``2 NUMA nodes``; empty where any machine will do."""
    needed = {name: count for name, count in structs.asdict(needs).items() if count != structs.asdict(Needs())[name]}
    return ", ".join(f"{counted(count, WORDS[name])}{PLACES.get(name, '')}" for name, count in needed.items())
