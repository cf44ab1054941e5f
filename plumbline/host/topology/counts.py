"""Thread counts and node numbers that a matrix over a machine needs. The only CPU arithmetic outside the binder."""

from __future__ import annotations

from collections.abc import Iterable

from plumbline.host.topology.machine import Machine

#: up to this many cores every thread count is tried, above only powers of two and the full counts
EVERY_COUNT = 12


def node_threads(machines: Iterable[Machine]) -> list[int]:
    """Thread counts for a whole node: powers of two, and what fills a NUMA node, a package and the node."""
    return sorted({count for machine in machines for count in _steps(_full_counts(machine))}) or [1]


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
    indices: set[int] = set()
    for machine in machines:
        homes = (machine.home_node(cpu) for cpu in machine.cpus)
        indices |= {node.index for node in homes if node is not None}
    return sorted(indices) or [0]


def memory_nodes(machines: Iterable[Machine]) -> list[int]:
    """OS indices of all NUMA nodes with memory."""
    return sorted({node.index for machine in machines for node in machine.with_memory}) or [0]


def is_far(machines: Iterable[Machine], cpu_node: int, memory: str) -> bool:
    """Whether a memory policy puts the pages of ``cpu_node`` on other CPUs' memory; high-bandwidth memory has none."""
    others = {f"node:{node}" for node in cpu_nodes(machines)} - {f"node:{cpu_node}"}
    return memory in {"remote", *others}


def memories(machines: Iterable[Machine]) -> list[str]:
    """Memory policies of one rank: without a distance table, which node is ``remote`` is unknown, and all are taken."""
    policies = {"local": None, "interleave": None}
    for machine in machines:
        far = ["remote"] if machine.distances else [f"node:{node.index}" for node in machine.with_memory]
        policies |= dict.fromkeys(far)
    return list(policies)


def rank_threads(machines: Iterable[Machine], ranks: int) -> list[int]:
    """Threads of each of ``ranks`` ranks on a node: one, and what fills the node."""
    return sorted({1, *(max(1, len(machine.cores) // ranks) for machine in machines)})


def cores_in(machine: Machine, cpus: Iterable[int]) -> int:
    """How many cores have a hardware thread in ``cpus``."""
    wanted = set(cpus)
    return sum(bool(wanted & set(core.cpus)) for core in machine.cores)


def _full_counts(machine: Machine) -> set[int]:
    groups = [node.cpus for node in machine.numa_nodes if node.cpus] + [package.cpus for package in machine.packages]
    return {len(machine.cores), *(cores_in(machine, cpus) for cpus in groups)}


def _steps(full: set[int]) -> set[int]:
    return full | {1 << bit for bit in range(max(full).bit_length())}
