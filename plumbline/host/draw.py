"""A drawing of the machine in text, with a plan's ranks and threads in their places."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from pathlib import Path

from plumbline.base import group
from plumbline.base.units import counted, human_bytes
from plumbline.host import devices
from plumbline.host import machine as machines
from plumbline.host.binder import Pages, Plan
from plumbline.host.machine import Core, Cpus, Machine, NumaNode

WIDTH = 100
MARGIN = 22  # left of the cells: name of the cache, then "cpu" or "rank"
IDLE = "."
ANYWHERE = "*"

Labels = dict[int, str]


def draw(
    topology: str | Path | None,
    plan: Plan | None = None,
    name: str | None = None,
    *,
    caches: bool = False,
    nodes: int = 1,
) -> str:
    """The machine (an hwloc XML file, a synthetic description or, with ``None``, this host) as text.

    One cell per core, one row of cells per group of cores that share socket, NUMA node and L3; further hardware threads
    stand below the first. The CPUs that share each of the ``caches`` follow if asked for, then GPUs, network cards and
    NVMe drives, if there are any. With a plan, ``RANK.THREAD`` stands below each CPU that is used, and the last lines
    say where the memory is, and which ranks each of several ``nodes`` has. ``name`` replaces the path of the
    description in the title.
    """
    machine = machines.load(topology)
    ranks = labels(plan) if plan else {}
    cell = 1 + max(len(text) for text in [*map(str, machine.cpus), *ranks.values()])
    counts = [
        *(counted(len(machine.packages), "socket"), counted(len(machine.numa_nodes), "NUMA node")),
        *(_cpu_count(machine, machine.cpus), f"last-level caches {human_bytes(machine.last_level_cache_bytes)}"),
    ]
    lines = _wrap(f"{name or machine.name}: " + ", ".join(counts))
    for package in machine.packages:
        lines += _heading(f"socket {package.index}, {_cpu_count(machine, package.cpus)}")
        lines += _inside(machine, package.cpus, ranks, cell)
    if away := [f"  {_node(node)}, no CPU of its own" for node in machine.numa_nodes if not node.cpus]:
        lines += [*_heading("no socket"), *away]
    lines += [*_caches(machine)] if caches else []
    machine_devices = devices.load(topology)
    if machine_devices.devices:
        drawn = devices.draw(machine_devices, devices.pci_links() if topology is None else {}, WIDTH)
        lines += [*_heading("devices"), *(line.rstrip() for line in drawn)]
    if plan:
        lines += ["", *_legend(plan, nodes)]
    return "\n".join(lines) + "\n"


def _heading(text: str) -> list[str]:
    return ["", f"{text} ".ljust(WIDTH, "=")]


def _cpu_count(machine: Machine, cpus: Cpus) -> str:
    cores = machines.cores_in(machine, cpus)
    threads = f", {len(cpus)} hardware threads" if len(cpus) != cores else ""
    return counted(cores, "core") + threads


def _caches(machine: Machine) -> Iterator[str]:
    """The data caches, level by level, with the hardware threads that share each."""
    if machine.caches:
        yield from _heading("caches")
    kinds = group((f"L{cache.level} {human_bytes(cache.size)}", cache.cpus) for cache in machine.caches)
    for kind, groups in kinds.items():
        start = f"    {kind}".ljust(MARGIN - 4)
        words = [f"({' '.join(map(str, cpus))})" for cpus in groups]
        yield from textwrap.wrap(" ".join(words), WIDTH, initial_indent=start, subsequent_indent=" " * len(start))


def _node(node: NumaNode) -> str:
    return f"NUMA node {node.index}  {human_bytes(node.size) if node.size else 'no memory'}"


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _inside(machine: Machine, cpus: Cpus, labels: Labels, cell: int) -> Iterator[str]:
    """The NUMA nodes of one socket, and in each the groups of cores that share an L3."""
    cores = [core for core in machine.cores if set(core.cpus) & set(cpus)]
    for home, in_node in groupby(cores, key=lambda core: machine.home_node(core.cpus[0])):
        if home is not None:
            yield "  " + _node_line(machine, home)
        for cache, around in groupby(in_node, key=lambda core: _cache_around(machine, core)):
            yield from _group(cache, list(around), labels, cell)


def _node_line(machine: Machine, home: NumaNode) -> str:
    beside = [node for node in machine.numa_nodes if node != home and set(node.cpus) == set(home.cpus)]
    sockets = [package.index for package in machine.packages if set(package.cpus) & set(home.cpus)]
    text = "; ".join(_node(node) for node in [home, *beside])
    if len(sockets) > 1:
        text += ", the same for sockets " + ", ".join(map(str, sockets))
    return text


def _cache_around(machine: Machine, core: Core) -> str:
    """The last-level cache that the core shares, by name; its first CPU distinguishes two neighbours of one size."""
    for cache in (*machine.l3s, *machine.last_level_caches):
        if core.cpus[0] in cache.cpus and (cache.level == 3 or len(cache.cpus) > len(core.cpus)):
            return f"L{cache.level} {human_bytes(cache.size)}|{cache.cpus[0]}"
    return "|"


def _group(cache: str, cores: list[Core], labels: Labels, cell: int) -> Iterator[str]:
    name = cache.partition("|")[0]
    per_line = (WIDTH - MARGIN) // cell
    for start in range(0, len(cores), per_line):
        chunk = cores[start : start + per_line]
        for thread in range(max(len(core.cpus) for core in chunk)):
            cpus = [core.cpus[thread] if thread < len(core.cpus) else None for core in chunk]
            yield _row(name, "cpu", ("" if cpu is None else str(cpu) for cpu in cpus), cell)
            name = ""
            if any(cpu in labels for cpu in cpus):
                yield _row("", "rank", ("" if cpu is None else labels.get(cpu, IDLE) for cpu in cpus), cell)


def _row(name: str, kind: str, cells: Iterable[str], cell: int) -> str:
    return (f"    {name}".ljust(MARGIN - 4) + kind.ljust(4) + "".join(text.rjust(cell) for text in cells)).rstrip()


def labels(plan: Plan, anywhere: str = ANYWHERE) -> Labels:
    """``RANK.THREAD`` per CPU; ``anywhere`` where a rank may run anywhere among its CPUs."""
    texts: Labels = {}
    for rank in plan.ranks:
        for thread, place in enumerate(rank.places):
            texts |= {cpu: f"{rank.local_rank}.{thread}" for cpu in place}
        if not rank.places:
            texts |= dict.fromkeys(rank.cpus, anywhere)
    return texts


def _legend(plan: Plan, nodes: int) -> list[str]:
    ranks = plan.ranks
    size = f"{counted(len(ranks), 'rank')} of {counted(plan.threads, 'thread')}"
    mark = "R.T = rank.thread" if ranks[0].places else f"{ANYWHERE} = any rank"
    ranks_by_memory = group((where(rank.mem), rank.local_rank) for rank in ranks)
    policies = [f"{place} (rank{'s' * (len(who) > 1)} {_span(who)})" for place, who in ranks_by_memory.items()]
    chosen = [f"{device} (rank {rank.local_rank})" for rank in ranks for device in rank.devices or []]
    names = range(nodes if nodes > 1 else 0)
    return [
        *_wrap(f"placement {plan.placement}: {size}; {mark}, {IDLE} = idle beside a used CPU"),
        *_wrap(f"memory {plan.memory}: " + ", ".join(policies)),
        *(_wrap("devices: " + ", ".join(chosen)) if chosen else []),
        *(f"ranks of node {node}: {_span(list(plan.ranks_of(node, nodes)))}" for node in names),
    ]


def where(mem: Pages) -> str:
    """The place of a rank's pages, for people."""
    if mem.policy == "none":
        return "where first touched"
    nodes = ("node " if len(mem.nodes) == 1 else "nodes ") + "+".join(map(str, mem.nodes))
    return nodes if mem.policy == "bind" else f"interleaved over {nodes}"


def _span(numbers: list[int]) -> str:
    """``0-7``, ``0-14 by 2`` or, without a regular step, ``0,1,5``."""
    steps = {b - a for a, b in pairwise(numbers)}
    if len(numbers) < 3 or len(steps) > 1:
        return ",".join(map(str, numbers))
    step = steps.pop()
    return f"{numbers[0]}-{numbers[-1]}" + (f" by {step}" if step > 1 else "")
