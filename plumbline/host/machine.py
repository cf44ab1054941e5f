"""The machine as data, read from hwloc XML, and the thread counts and node numbers that a matrix over it needs.

All CPU and node numbers are the operating system's. The only CPU arithmetic outside the binder is here.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree  # hwloc's own files, no entities
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from plumbline.base import group
from plumbline.base.errors import PlumbError
from plumbline.base.units import counted, cpu_ranges
from plumbline.host import binder, collector

#: up to this many cores every thread count is tried, above only powers of two and the full counts
EVERY_COUNT = 12

Cpus = tuple[int, ...]


@dataclass(frozen=True)
class Core:
    """A core; ``cpus`` are its hardware threads."""

    cpus: Cpus


@dataclass(frozen=True)
class Cache:
    """A cache of ``size`` bytes and the hardware threads that share it."""

    level: int
    size: int
    cpus: Cpus


@dataclass(frozen=True)
class NumaNode:
    """A memory node; ``cpus`` is empty if it is the home of no CPU, ``size`` is bytes."""

    index: int
    size: int
    cpus: Cpus


@dataclass(frozen=True)
class Package:
    """A socket; ``index`` is hwloc's logical one, as in the placement ``socket:N``."""

    index: int
    cpus: Cpus


@dataclass(frozen=True)
class Machine:
    """One node. Lists are in hwloc's logical order, so that neighbours stand side by side.

    ``caches`` are those that hold data, of every level; ``processor`` is the name of its model, empty if unknown.
    ``distances`` are relative latencies by (from, to), OS indices of NUMA nodes; empty if the firmware gives none.
    """

    name: str
    packages: tuple[Package, ...]
    numa_nodes: tuple[NumaNode, ...]
    l3s: tuple[Cache, ...]
    cores: tuple[Core, ...]
    last_level_caches: tuple[Cache, ...]
    distances: dict[tuple[int, int], int]
    caches: tuple[Cache, ...] = ()
    processor: str = ""

    @property
    def cpus(self) -> Cpus:
        """All hardware threads, core by core."""
        return tuple(cpu for core in self.cores for cpu in core.cpus)

    @property
    def last_level_cache_bytes(self) -> int:
        """Sum of the outermost data caches in bytes, which an array must exceed to measure memory."""
        return sum(cache.size for cache in self.last_level_caches)

    @property
    def with_memory(self) -> tuple[NumaNode, ...]:
        """The NUMA nodes with memory; all, where none reports a size (some virtual machines)."""
        return tuple(node for node in self.numa_nodes if node.size) or self.numa_nodes

    def home_node(self, cpu: int) -> NumaNode | None:
        """The node whose memory is local to ``cpu``: the innermost, then the lowest index (as the binder has it)."""
        return _home(self.numa_nodes, cpu)


def load(topology: str | Path | None = None) -> Machine:
    """The machine of an hwloc XML file or synthetic description; with None, this host.

    Raises :class:`PlumbError` for a file that cannot be read, and for what the binder refuses.
    """
    if topology is not None and Path(topology).is_file():
        try:
            text = Path(topology).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PlumbError(f"cannot be read: {error}", str(topology)) from None
    else:
        text = binder.ask(["--export-topology", "-", *([] if topology is None else ["--topology", str(topology)])])
    return parse(text, "this host" if topology is None else str(topology))


def siblings() -> dict[int, str]:
    """The CPUs of this host, those that this process may not use too, each with the list of those of its core."""
    files = Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology/thread_siblings_list")
    return {int(file.parts[-3][3:]): file.read_text(encoding="ascii") for file in files}


def gpus() -> dict[str, frozenset[int]]:
    """The PCI address of each NVIDIA GPU of this host -> the CPUs beside it; empty without the driver."""
    files = Path("/sys/bus/pci/drivers/nvidia").glob("*:*/local_cpulist")
    return {file.parts[-2]: cpus_of(file.read_text(encoding="ascii")) for file in files}


def fabric(root: Path = Path("/")) -> list[str]:
    """The InfiniBand devices of this host with an active port; not those of Omni-Path, which look alike."""
    usable = {"state": "ACTIVE", "link_layer": "InfiniBand"}.items()
    every = (hca for hca in collector.Node(collector.Reader(root)).hcas() if not hca["name"].startswith("hfi"))
    return [hca["name"] for hca in every if any(usable <= port.items() for port in hca["ports"])]


def cpus_of(text: str) -> frozenset[int]:
    """The CPUs of a list of the kernel's; raises ValueError for another text."""
    return frozenset(cpu for cpus in cpu_ranges(text.strip()) for cpu in cpus)


def parse(text: str, name: str) -> Machine:
    """The machine in hwloc XML ``text``; raises :class:`PlumbError` if it is none. ``name`` is the machine's."""
    try:
        return _read(ElementTree.fromstring(text), name)  # noqa: S314
    except (ElementTree.ParseError, KeyError, ValueError) as error:
        cure = "capture it with plumb-bind --export-topology FILE.xml"
        raise PlumbError(f"not an hwloc XML file: {type(error).__name__} {error}", name, cure) from None


def _bits(mask: str) -> set[int]:
    """``0x00000003,0x00000000`` as a set of numbers."""
    value = 0
    for word in mask.split(","):
        value = value << 32 | (int(word, 16) if word else 0)
    return {bit for bit in range(value.bit_length()) if value >> bit & 1}


def _home(nodes: Iterable[NumaNode], cpu: int) -> NumaNode | None:
    around = [node for node in nodes if cpu in node.cpus]
    return min(around, key=lambda node: (len(node.cpus), node.index), default=None)


def _without_borrowed_cpus(nodes: list[NumaNode], cpus: Iterable[int]) -> list[NumaNode]:
    """The nodes, without the CPUs of the whole machine that hwloc gives to memory which is local to no CPU."""
    home_cpus = {home.cpus for cpu in cpus if (home := _home(nodes, cpu))}
    return [node if node.cpus in home_cpus else NumaNode(node.index, node.size, ()) for node in nodes]


def _walk(
    element: ElementTree.Element, cache: ElementTree.Element | None
) -> Iterator[tuple[ElementTree.Element, ElementTree.Element | None]]:
    """Every object in document order, with the outermost data cache around it; None where there is none."""
    for child in element.findall("object"):
        is_cache = child.attrib["type"].endswith("Cache") and child.attrib.get("cache_type") != "2"
        around = child if cache is None and is_cache else cache
        yield child, around
        yield from _walk(child, around)


def _read(document: ElementTree.Element, name: str) -> Machine:
    root = document.find("object")
    if root is None:
        raise ValueError("no machine in it")
    usable = _bits(root.attrib["cpuset"]) & _bits(root.attrib.get("allowed_cpuset", root.attrib["cpuset"]))
    walked = list(_walk(document, None))
    objects = group((item.attrib["type"], item) for item, _ in walked)
    position = {int(item.attrib["os_index"]): place for place, item in enumerate(objects.get("PU", []))}
    around_cpus = [outer for item, outer in walked if item.attrib["type"] == "PU" and outer is not None]
    outermost = {outer.attrib["gp_index"]: outer for outer in around_cpus}

    def cpus(item: ElementTree.Element) -> Cpus:
        mine = _bits(item.attrib.get("cpuset", "0x0")) & usable & position.keys()
        return tuple(sorted(mine, key=position.__getitem__))

    def cache(item: ElementTree.Element) -> Cache:
        return Cache(int(item.attrib["depth"]), int(item.attrib["cache_size"]), cpus(item))

    def with_cpus(kind: str) -> list[ElementTree.Element]:
        return [item for item in objects.get(kind, []) if cpus(item)]

    nodes = [
        NumaNode(int(i.attrib["os_index"]), int(i.attrib.get("local_memory", 0)), cpus(i)) for i in objects["NUMANode"]
    ]
    packages = [Package(index, cpus(item)) for index, item in enumerate(objects.get("Package", []))]
    return Machine(
        name=name,
        packages=tuple(package for package in packages if package.cpus) or (Package(0, cpus(root)),),
        numa_nodes=tuple(sorted(_without_borrowed_cpus(nodes, usable), key=lambda node: node.index)),
        l3s=tuple(cache(item) for item in with_cpus("L3Cache")),
        # virtual machines may show neither cores nor packages
        cores=tuple(Core(cpus(item)) for item in with_cpus("Core") or with_cpus("PU")),
        last_level_caches=tuple(cache(item) for item in outermost.values() if cpus(item)),
        distances=_distances(document),
        caches=tuple(cache(item) for level in range(1, 6) for item in with_cpus(f"L{level}Cache")),
        processor=next((i.get("value", "") for i in root.iter("info") if i.get("name") == "CPUModel"), "").strip(),
    )


def _distances(document: ElementTree.Element) -> dict[tuple[int, int], int]:
    """(from, to) -> relative latency, where the firmware gave a table."""
    tables = document.findall("distances2[@type='NUMANode']")
    for table in (table for table in tables if table.get("indexing", "os") == "os"):
        indices = [int(word) for part in table.findall("indexes") for word in (part.text or "").split()]
        values = [int(word) for part in table.findall("u64values") for word in (part.text or "").split()]
        pairs = [(a, b) for a in indices for b in indices]
        if len(pairs) == len(values):
            return dict(zip(pairs, values, strict=True))
    return {}


def node_threads(machines: Iterable[Machine]) -> list[int]:
    """Thread counts for a whole node: powers of two, and what fills a NUMA node, a package and the node."""
    counts: set[int] = set()
    for machine in machines:
        parts = {*(node.cpus for node in machine.numa_nodes), *(package.cpus for package in machine.packages)}
        counts |= _steps({len(machine.cores), *(cores_in(machine, cpus) for cpus in parts if cpus)})
    return sorted(counts) or [1]


def numa_threads(machines: Iterable[Machine]) -> list[int]:
    """Thread counts inside one NUMA node: each up to :data:`EVERY_COUNT`, then powers of two and the full count."""
    counts = {1}
    for machine in machines:
        for cpus in {node.cpus for node in machine.numa_nodes if node.cpus}:
            full = cores_in(machine, cpus)
            counts |= _steps({full}) | set(range(1, min(full, EVERY_COUNT) + 1))
    return sorted(counts)


def cpu_nodes(machines: Iterable[Machine]) -> list[int]:
    """OS indices of the NUMA nodes that hold CPUs, one per group of CPUs (high-bandwidth memory shares its CPUs)."""
    homes = (machine.home_node(cpu) for machine in machines for cpu in machine.cpus)
    return sorted({node.index for node in homes if node is not None}) or [0]


def memory_nodes(machines: Iterable[Machine]) -> list[int]:
    """OS indices of all NUMA nodes with memory."""
    return sorted({node.index for machine in machines for node in machine.with_memory}) or [0]


def is_far(machines: Iterable[Machine], cpu_node: int, memory: str) -> bool:
    """Whether a memory policy puts the pages of ``cpu_node`` on other CPUs' memory; high-bandwidth memory has none."""
    return memory in {"remote", *(f"node:{node}" for node in cpu_nodes(machines) if node != cpu_node)}


def memories(machines: Iterable[Machine]) -> list[str]:
    """Memory policies of one rank: without a distance table, which node is ``remote`` is unknown, and all are taken."""
    policies = {"local": None, "interleave": None}
    for machine in machines:
        nodes = (f"node:{node.index}" for node in machine.with_memory)
        policies |= dict.fromkeys(["remote"] if machine.distances else nodes)
    return list(policies)


def rank_threads(machines: Iterable[Machine], ranks: int) -> list[int]:
    """Threads of each of ``ranks`` ranks on a node: one, and what fills the node."""
    return sorted({1, *(max(1, len(machine.cores) // ranks) for machine in machines)})


def halves(machine: Machine, usable: Iterable[int]) -> tuple[Cpus, Cpus]:
    """The ``usable`` CPUs in two halves that are mirror images and share as little as can be: no core at least.

    Raises :class:`PlumbError` where there are none.
    """
    allowed = set(usable)

    def groups(parts: Iterable[Cpus]) -> list[Cpus]:
        return list(filter(None, dict.fromkeys(tuple(cpu for cpu in part if cpu in allowed) for part in parts)))

    def looks(half: set[int]) -> list[tuple[object, ...]]:
        around = [("package", 0, each.cpus) for each in machine.packages]
        around += [("memory", each.size.bit_length(), each.cpus) for each in machine.numa_nodes]
        around += [(f"L{each.level}", each.size, each.cpus) for each in machine.caches]
        around += [("core", 0, each.cpus) for each in machine.cores]
        return sorted((*kind, len(half & set(cpus)), len(cpus)) for *kind, cpus in around if half & set(cpus))

    cores = groups(core.cpus for core in machine.cores)
    levels = (machine.packages, machine.numa_nodes, machine.last_level_caches)
    for parts in (*(groups(part.cpus for part in level) for level in levels), cores):
        middle = len(parts) // 2
        first, second = (tuple(cpu for part in side for cpu in part) for side in (parts[:middle], parts[middle:]))
        if middle and looks(set(first)) == looks(set(second)):
            return first, second
    kinds = "the cores, or what they share, are of several kinds"
    why = f"it has {counted(len(cores), 'core')} to use" if len(cores) % 2 else kinds
    raise PlumbError(f"no two halves of the machine are alike: {why}", machine.name, "measure in turn: --order turns")


def cores_in(machine: Machine, cpus: Iterable[int]) -> int:
    """How many cores have a hardware thread in ``cpus``."""
    wanted = set(cpus)
    return sum(bool(wanted & set(core.cpus)) for core in machine.cores)


def _steps(full: set[int]) -> set[int]:
    return full | {1 << bit for bit in range(max(full).bit_length())}
