"""Write the stored topologies: hwloc XML of machines that nobody has here.

    python tests/data/topologies/make.py

Each machine below is a tree of packages, L3 or L2 caches, cores and hardware threads with NUMA nodes attached.
Written by hand and not with hwloc's synthetic descriptions, which know no distances, no CPUs that are offline, no
memory without CPUs and no free choice of operating system indices.

Those in ``devices/``, and the PCI objects of the GPU nodes of ``site-configs/comet``, are made by hand too: from what a
document says of the node, or to have a case in the tests. None was recorded on a machine.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass
class Pci:
    """A PCI device, or with ``children`` a bridge; the outermost bridge is the host's.

    ``ids`` are class, vendor and device as hwloc writes them, ``names`` what the operating system calls it with hwloc's
    number for the kind of name (1: GPU, 2: network, 3: verbs, 0: block), ``rate`` the GB/s of its link.
    """

    children: list[Pci] = field(default_factory=list)
    ids: str = "0604 [8086:2f04]"
    names: tuple[tuple[str, int], ...] = ()
    rate: float = 15.75


@dataclass
class Item:
    """One hwloc object; ``memory`` holds the NUMA nodes attached to it, ``size`` is bytes of cache or memory.

    ``pci`` are the PCI buses whose local CPUs are those of the object, with the number of each bus.
    """

    kind: str
    os: int | None = None
    size: int = 0
    children: list[Item] = field(default_factory=list)
    memory: list[Item] = field(default_factory=list)
    cpus: frozenset[int] = frozenset()
    offline: frozenset[int] = frozenset()
    nodes: frozenset[int] = frozenset()
    pci: dict[int, Pci] = field(default_factory=dict)


def numa(os: int, gib: float, *, alone: bool = False) -> Item:
    """A NUMA node; ``alone``: it is not local to any CPU."""
    return Item("NUMANode", os, int(gib * GIB), nodes=frozenset() if not alone else frozenset({-1}))


def cores(threads: Iterable[Sequence[int]], l2: int = 0, l1: int = 32 * KIB) -> list[Item]:
    """One core per tuple of hardware threads, below an L2 of its own if ``l2`` is given."""
    result = []
    for cpus in threads:
        core = Item("Core", cpus[0], children=[Item("PU", cpu) for cpu in cpus])
        result.append(Item("L2Cache", size=l2, children=[Item("L1Cache", size=l1, children=[core])]) if l2 else core)
    return result


def numbered(first: int, count: int, step: int = 1, sibling: int | None = None) -> list[tuple[int, ...]]:
    """CPU numbers of ``count`` cores from ``first`` on; the second hardware thread lies ``sibling`` above."""
    firsts = range(first, first + count * step, step)
    return [(cpu,) if sibling is None else (cpu, cpu + sibling) for cpu in firsts]


def l3(size: int, children: list[Item], memory: Iterable[Item] = ()) -> Item:
    return Item("L3Cache", size=size, children=children, memory=list(memory))


def group(children: list[Item], memory: Iterable[Item]) -> Item:
    """What hwloc puts around CPUs that share a NUMA node and nothing else."""
    return Item("Group", children=children, memory=list(memory))


def package(os: int, children: list[Item], memory: Iterable[Item] = ()) -> Item:
    return Item("Package", os, children=children, memory=list(memory))


def machine(children: list[Item], memory: Iterable[Item] = ()) -> Item:
    return Item("Machine", 0, children=children, memory=list(memory))


def gather(item: Item, offline: frozenset[int], inherited: frozenset[int] = frozenset()) -> None:
    """Work out every object's CPU set and node set, leaving out offline CPUs."""
    inherited |= {node.os for node in item.memory if node.os is not None}
    for child in item.children:
        gather(child, offline, inherited)
    # hwloc orders objects by their first CPU.
    item.children = sorted((child for child in item.children if child.cpus), key=lambda child: min(child.cpus))
    everything = frozenset({item.os}) if item.kind == "PU" else frozenset()
    item.cpus = frozenset(itertools.chain(everything - offline, *(child.cpus for child in item.children)))
    item.offline = offline if item.kind == "Machine" else frozenset()
    item.nodes = frozenset(itertools.chain(inherited, *(child.nodes for child in item.children)))
    for node in item.memory:
        node.cpus = frozenset() if node.nodes else item.cpus
        node.nodes = frozenset({node.os})


def mask(indices: frozenset[int]) -> str:
    """hwloc's notation: words of 32 bits, the highest first."""
    value = sum(1 << index for index in indices)
    words = [f"0x{value >> shift & 0xFFFFFFFF:08x}" for shift in range(0, max(value.bit_length(), 1), 32)]
    return ",".join(reversed(words))


def attributes(item: Item, number: int) -> dict[str, str]:
    pairs = {"type": item.kind}
    if item.os is not None:
        pairs["os_index"] = str(item.os)
    pairs |= {"cpuset": mask(item.cpus), "complete_cpuset": mask(item.cpus | item.offline)}
    if item.kind == "Machine":
        pairs["allowed_cpuset"] = mask(item.cpus)
    pairs |= {"nodeset": mask(item.nodes), "complete_nodeset": mask(item.nodes)}
    if item.kind == "Machine":
        pairs["allowed_nodeset"] = mask(item.nodes)
    pairs["gp_index"] = str(number)
    if item.kind.endswith("Cache"):
        depth = item.kind[1]
        pairs |= {"cache_size": str(item.size), "depth": depth, "cache_linesize": "64", "cache_associativity": "8"}
        pairs["cache_type"] = "1" if depth == "1" else "0"
    if item.kind == "NUMANode":
        pairs["local_memory"] = str(item.size)
    return pairs


def lines(item: Item, counter: Iterable[int], depth: int = 1) -> Iterable[str]:
    indent = "  " * depth
    words = " ".join(f'{key}="{value}"' for key, value in attributes(item, next(iter(counter))).items())
    inside = item.memory + item.children
    yield f"{indent}<object {words}" + (">" if inside or item.pci else "/>")
    for child in inside:
        yield from lines(child, counter, depth + 1)
    yield from bus_lines(item.pci, counter, depth + 1)
    if inside or item.pci:
        yield f"{indent}</object>"


def bus_lines(buses: dict[int, Pci], counter: Iterable[int], depth: int) -> Iterator[str]:
    """Host bridges; buses behind bridges are numbered on from that of the host, slots from 1."""
    for number, host in buses.items():
        free = itertools.count(number + 1)
        inside = [
            line
            for slot, child in enumerate(host.children, 1)
            for line in pci_lines(child, f"0000:{number:02x}:{slot:02x}.0", free, counter, depth + 1, 1)
        ]
        attributes = f'bridge_type="0-1" depth="0" bridge_pci="0000:[{number:02x}-{next(free) - 1:02x}]"'
        yield f'{"  " * depth}<object type="Bridge" gp_index="{next(iter(counter))}" {attributes}>'
        yield from inside
        yield f"{'  ' * depth}</object>"


def pci_lines(
    item: Pci, address: str, free: Iterator[int], counter: Iterable[int], depth: int, bridges: int
) -> Iterator[str]:
    indent, number = "  " * depth, next(iter(counter))
    kind = f'pci_busid="{address}" pci_type="{item.ids} [0000:0000] 00" pci_link_speed="{item.rate:f}"'
    if not item.children:
        yield f'{indent}<object type="PCIDev" gp_index="{number}" {kind}>'
        for name, code in item.names:
            words = f'gp_index="{next(iter(counter))}" name="{name}" osdev_type="{code}"'
            yield f'{indent}  <object type="OSDev" {words}/>'
        yield f"{indent}</object>"
        return
    bus = next(free)
    inside = [
        line
        for slot, child in enumerate(item.children)
        for line in pci_lines(child, f"0000:{bus:02x}:{slot:02x}.0", free, counter, depth + 1, bridges + 1)
    ]
    last = max([bus, *(int(found, 16) for line in inside for found in re.findall(r"-([0-9a-f]{2})\]", line))])
    yield (
        f'{indent}<object type="Bridge" gp_index="{number}" bridge_type="1-1" depth="{bridges}" '
        f'bridge_pci="0000:[{bus:02x}-{last:02x}]" {kind}>'
    )
    yield from inside
    yield f"{indent}</object>"


def port(*children: Pci) -> Pci:
    """A port of the processor, or of a switch."""
    return Pci(list(children))


def switch(*children: Pci) -> Pci:
    """A PCIe switch below a port of its own, a port for each child."""
    return port(Pci([port(child) for child in children], "0604 [10b5:8747]"))


def nvidia(number: int, device: str = "20b0") -> Pci:
    return Pci(ids=f"0302 [10de:{device}]", names=((f"card{number}", 1),))


def amd(number: int) -> Pci:
    return Pci(ids="0380 [1002:740c]", names=((f"card{number}", 1),), rate=31.5)


def verbs(name: str) -> Pci:
    return Pci(ids="0207 [15b3:1007]", names=((f"ib{name[-1]}", 2), (name, 3)), rate=7.88)


def ethernet(name: str) -> Pci:
    return Pci(ids="0200 [8086:1521]", names=((name, 2),), rate=2.0)


def nvme(name: str) -> Pci:
    return Pci(ids="0108 [144d:a808]", names=((name, 0),), rate=3.94)


def display() -> Pci:
    """A server's own display adapter, which is not a GPU to compute on."""
    return Pci(ids="0300 [1a03:2000]", rate=0.5)


def distance_lines(matrix: dict[int, list[int]]) -> Iterable[str]:
    indices = "".join(f"{node} " for node in matrix)
    values = "".join(f"{value} " for row in matrix.values() for value in row)
    head = f'type="NUMANode" nbobjs="{len(matrix)}" kind="5" name="NUMALatency" indexing="os"'
    yield f"  <distances2 {head}>"
    yield f'    <indexes length="{len(indices)}">{indices}</indexes>'
    yield f'    <u64values length="{len(values)}">{values}</u64values>'
    yield "  </distances2>"


def write(name: str, root: Item, distances: dict[int, list[int]] | None = None, offline: Iterable[int] = ()) -> None:
    gather(root, frozenset(offline))
    text = ['<?xml version="1.0" encoding="UTF-8"?>', '<!DOCTYPE topology SYSTEM "hwloc2.dtd">']
    text += ['<topology version="2.0">', *lines(root, itertools.count(1))]
    text += distance_lines(distances) if distances else []
    text.append("</topology>")
    (Path(__file__).parent / f"{name}.xml").write_text("\n".join(text) + "\n", encoding="utf-8")


def write_comet() -> None:
    """Put the PCI objects into the topologies of comet's GPU nodes: its document prints the ways between them."""
    for name, device, with_adapter in (("gpu-k80", "102d", 1), ("gpu-p100", "15f8", 0)):
        cards = [switch(nvidia(first, device), nvidia(first + 1, device)) for first in (0, 2)]
        path = Path(__file__).parents[3] / f"site-configs/comet/topology/{name}.xml"
        kept = re.sub(r'(?ms)^      <object type="Bridge".*?^      </object>\n', "", path.read_text(encoding="utf-8"))
        packages = kept.split("\n    </object>\n")
        numbers = itertools.count(max(int(found) for found in re.findall(r'gp_index="(\d+)"', kept)) + 1)
        for socket, card in enumerate(cards):
            children = [card, port(verbs("mlx4_0"))] if socket == with_adapter else [card]
            found = "\n".join(["", *bus_lines({socket * 0x80: Pci(children)}, numbers, 3)])
            packages[socket] += re.sub(r"(?<=link_speed=.)[0-9.]+", "0.000000", found)  # the document does not say
        path.write_text("\n    </object>\n".join(packages), encoding="utf-8")


def two_level(nodes: int, inside: int, near: int, far: int) -> dict[int, list[int]]:
    """Distances of ``nodes`` nodes, ``inside`` of them in each package."""
    return {
        a: [10 if a == b else near if a // inside == b // inside else far for b in range(nodes)] for a in range(nodes)
    }


def epyc_node(node: int) -> Item:
    caches = [l3(32 * MIB, cores(numbered(first, 8, sibling=128), l2=MIB)) for first in (node * 16, node * 16 + 8)]
    return group(caches, [numa(node, 96)])


def one_cache_sockets(
    count: int, per_socket: int, cache: int, gib: float, *, sibling: int | None = None, interleaved: bool = False
) -> Item:
    """Sockets with one NUMA node and one L3 each: most machines between 2008 and 2017."""
    packages = []
    for socket in range(count):
        first, step = (socket, count) if interleaved else (socket * per_socket, 1)
        threads = numbered(first, per_socket, step, sibling)
        packages.append(package(socket, [l3(cache, cores(threads, l2=256 * KIB))], [numa(socket, gib)]))
    return machine(packages)


def sockets(count: int, per_socket: int, nodes: int = 1) -> Item:
    """Small sockets to hang devices on: ``nodes`` NUMA nodes each."""
    packages = []
    for socket in range(count):
        size, first = per_socket // nodes, socket * per_socket
        groups = [
            group([l3(16 * MIB, cores(numbered(first + node * size, size)))], [numa(socket * nodes + node, 32)])
            for node in range(nodes)
        ]
        packages.append(package(socket, groups))
    return machine(packages)


def write_device_machines() -> None:
    """Nodes with GPUs: each has a case that the others have not."""
    eight = sockets(2, 16)
    for socket, item in enumerate(eight.children):
        first = socket * 4
        for half in range(2):
            gpus = [nvidia(first + half * 2 + i) for i in range(2)]
            tree = switch(*gpus, verbs(f"mlx5_{socket * 2 + half}"), nvme(f"nvme{socket * 2 + half}n1"))
            item.pci[socket * 0x80 + half * 0x20] = Pci([tree])
    write("devices/gpu8-switches", eight)

    # GPUs of a processor with four NUMA nodes, not in their order; a bus for each node, a network card at each GPU.
    frontier = sockets(1, 16, nodes=4)
    for number, node in enumerate((3, 3, 1, 1, 0, 0, 2, 2)):
        at = frontier.children[0].children[node]
        at.pci[0x10 + number * 0x10] = Pci(
            [switch(amd(number), verbs(f"mlx5_{number}")) if number % 2 else port(amd(number))]
        )
    write("devices/gpu8-amd-nodes", frontier)

    uneven = sockets(2, 8)
    uneven.children[0].pci[0] = Pci([port(nvidia(0)), port(nvidia(1)), switch(nvidia(2), ethernet("eth0"))])
    uneven.children[1].pci[0x80] = Pci([port(nvidia(3)), port(verbs("mlx5_0")), port(display())])
    write("devices/gpu4-uneven", uneven)

    # The firmware does not say where GPU1 is: hwloc has it at the machine. Its memory node has no CPUs.
    nowhere = sockets(2, 8)
    nowhere.memory.append(numa(2, 96, alone=True))
    nowhere.children[0].pci[0] = Pci([port(nvidia(0))])
    nowhere.pci[0xC0] = Pci([port(nvidia(1))])
    write("devices/gpu2-no-local-cores", nowhere)

    one = sockets(1, 8)
    one.children[0].pci[0] = Pci([port(nvidia(0)), port(ethernet("eth0")), port(ethernet("eth1")), port(display())])
    write("devices/gpu1-one-socket", one)

    both = sockets(2, 8)
    both.children[0].pci[0] = Pci([port(amd(0)), port(nvme("nvme0n1"))])
    both.children[1].pci[0x80] = Pci([port(nvidia(1)), port(ethernet("eth0"))])
    write("devices/gpu2-two-makers", both)

    # Two switches below another, and two buses at one NUMA node.
    stacked = sockets(2, 8, nodes=2)
    pairs = [switch(nvidia(first), nvidia(first + 1)) for first in (0, 2)]
    stacked.children[0].children[0].pci |= {0: Pci([switch(*pairs)]), 0x30: Pci([port(verbs("mlx5_0"))])}
    stacked.children[1].children[1].pci[0x80] = Pci([port(verbs("mlx5_1"))])
    write("devices/gpu4-stacked-switches", stacked)


def main() -> None:
    write_comet()
    write_device_machines()

    one = package(0, [l3(32 * MIB, cores(numbered(0, 2), l2=MIB))])
    write("one-socket-2", machine([one], [numa(0, 4)]))

    epyc = [package(socket, [epyc_node(socket * 4 + node) for node in range(4)]) for socket in range(2)]
    write("epyc-2x64-smt2", machine(epyc), two_level(8, 4, 12, 32))

    eight = [l3(32 * MIB, cores(numbered(first, 8), l2=512 * KIB)) for first in range(0, 64, 8)]
    write("one-socket-8-l3", machine([package(0, eight, [numa(0, 256)])]))

    hbm = [
        package(s, [l3(110 * MIB, cores(numbered(s * 56, 56), l2=2 * MIB))], [numa(s, 512), numa(s + 2, 64)])
        for s in range(2)
    ]
    hbm_distances = {0: [10, 21, 13, 23], 1: [21, 10, 23, 13], 2: [13, 23, 10, 23], 3: [23, 13, 23, 10]}
    write("xeon-max-2x56-hbm", machine(hbm), hbm_distances)

    write("grace-2x72", one_cache_sockets(2, 72, 114 * MIB, 240), two_level(2, 1, 40, 40))

    cmgs = [
        package(s, [Item("L2Cache", size=8 * MIB, children=cores(numbered(s * 12, 12)))], [numa(s, 8)])
        for s in range(4)
    ]
    write("a64fx-4x12", machine(cmgs), two_level(4, 2, 20, 30))

    write("ranger-4x4", one_cache_sockets(4, 4, 2 * MIB, 8), two_level(4, 1, 20, 20))
    write("ulysses-2x10", one_cache_sockets(2, 10, 25 * MIB, 20), two_level(2, 1, 20, 20))
    write("comet-2x12", one_cache_sockets(2, 12, 30 * MIB, 64), two_level(2, 1, 21, 21))
    write("rrze-nehalem", one_cache_sockets(2, 4, 8 * MIB, 12, sibling=8), two_level(2, 1, 20, 20))
    write("rrze-westmere", one_cache_sockets(2, 6, 12 * MIB, 12, sibling=12), two_level(2, 1, 20, 20))
    write("gpc-2x4", one_cache_sockets(2, 4, 8 * MIB, 8, sibling=8, interleaved=True), two_level(2, 1, 20, 20))

    woodcrest = [package(s, [Item("L2Cache", size=4 * MIB, children=cores(numbered(s, 2, step=2)))]) for s in range(2)]
    write("rrze-woodcrest", machine(woodcrest, [numa(0, 8)]))

    # Sub-NUMA clustering: the L3 of a socket spans two NUMA nodes.
    snc = []
    for s in range(2):
        halves = [group(cores(numbered(s * 20 + h * 10, 10), l2=MIB), [numa(s * 2 + h, 48)]) for h in range(2)]
        snc.append(package(s, [l3(27 * MIB, halves)]))
    write("skylake-2x20-snc2", machine(snc), two_level(4, 2, 11, 21))

    # A memory expander that is not local to any CPU.
    expander = one_cache_sockets(2, 8, 16 * MIB, 64)
    expander.memory.append(numa(2, 256, alone=True))
    write("memory-only-node", expander, {0: [10, 21, 24], 1: [21, 10, 28], 2: [24, 28, 10]})

    # Nodes 1 and 3 have memory, but their CPUs are off.
    off = [package(s, [group([l3(16 * MIB, cores(numbered(s * 8, 8), l2=MIB))], [numa(s * 2, 32)])]) for s in range(2)]
    cpuless = machine(off)
    cpuless.memory += [numa(1, 32, alone=True), numa(3, 32, alone=True)]
    write("numa-without-cpus", cpuless, two_level(4, 2, 16, 32))

    # The other way round, as on a Threadripper 2990WX: nodes 1 and 3 have CPUs and no memory.
    dies = [
        group([l3(8 * MIB, cores(numbered(die * 8 + half, 4), l2=512 * KIB)) for half in (0, 4)], [numa(die, gib)])
        for die, gib in enumerate((32, 0, 32, 0))
    ]
    write("numa-without-memory", machine([package(0, dies)]), two_level(4, 1, 16, 16))

    # CPU 0 and its node are offline: the other CPUs of package 0 have no NUMA node, as hwloc showed a PowerEdge R630.
    halves = [[l3(30 * MIB, cores(numbered(half, 4, step=2), l2=256 * KIB))] for half in (0, 1)]
    write("cpus-without-numa", machine([package(0, halves[0]), package(1, halves[1], [numa(1, 32)])]), offline=(0,))

    # Even CPUs on socket 0, odd ones on socket 1, five of them offline; cores and siblings are not neighbours.
    sparse = one_cache_sockets(2, 8, 20 * MIB, 32, sibling=16, interleaved=True)
    write("sparse-os-indices", sparse, two_level(2, 1, 21, 21), offline=(3, 4, 5, 20, 31))

    # What a batch system leaves to a job that got 7 cores of one socket and 3 of the other.
    leftover = one_cache_sockets(2, 10, 25 * MIB, 20)
    taken = (*range(7, 10), *range(13, 20))
    write("asymmetric-cgroup", leftover, two_level(2, 1, 20, 20), offline=taken)


if __name__ == "__main__":
    main()
