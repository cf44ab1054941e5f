"""Ceilings: what the machine of a partition reached where it was measured, and which figures are compared with them.

A limit is declared and physical: above it a figure is invalid. A ceiling is measured, by the same kind of work as the
figures that are compared with it. ``site-configs/NAME/ceilings.yaml`` is a :class:`Document`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta, Struct

from plumbline.base import files, group, paths, schemas, units
from plumbline.base.errors import PlumbError
from plumbline.host import binder, limits
from plumbline.host.binder import Count, Index, Plan
from plumbline.host.limits import Quantity
from plumbline.host.machine import Machine, cores_in

FILE = "ceilings.yaml"
CURE = "remove it: plumb site measure writes it again"
HEADER = """\
# What this site's machines reached where they were measured: ceilings, not limits. `plumb site measure` writes this.
# median: of the undisturbed launches, spread_percent apart; record: plumb --results build/ceilings show
# level: of the cache that held the data, 0 for memory; kernel: its loads and stores; pair: distance class of two cores
# idle_W: power of the node's processors, by the counters of `energy_j` in records, before anything was started
# Bandwidths are of bytes read and written together, as STREAM counts; those of copies of bytes copied.
"""
#: a level limits a sweep whose data are at least this many times the size of the caches below it (STREAM's rule)
LARGER = 4
#: bytes of a message that one cache line carries
LINE_BYTES = 64
#: how the method of the ceiling of a short message begins
HANDOVER = "handover of a cache line"
#: the level that stands for memory
MEMORY = 0
#: how the method of a memory ceiling begins that the same mix of loads and stores gave
ALIKE = "memory by"

#: neither infinite nor beyond any machine
Positive: TypeAlias = Annotated[float, Meta(gt=0, le=1e300)]
NotNegative: TypeAlias = Annotated[float, Meta(ge=0, le=1e300)]
RecordId: TypeAlias = Annotated[str, Meta(pattern="^[0-9a-f]{12}$")]


class Ceiling(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The median of undisturbed launches, of all where fewer than two were; its unit is in the name of its list.

    It was reached by ``cores`` cores; ``numa_node`` is set where these were all cores of that node on its own memory.
    ``level`` is that of the cache that held the data, 0 for memory; ``kernel`` is the mix of loads and stores from
    memory; ``pair`` is the class of two cores. ``spread_percent`` is the distance of the launches that count.
    """

    median: Positive
    spread_percent: NotNegative
    launches: Count
    disturbed_launches: Index = 0
    cores: Count | None = None
    numa_node: Index | None = None
    level: Index | None = None
    kernel: str | None = None
    pair: str | None = None
    method: str
    record: RecordId


class Measured(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The ceilings of the nodes of a partition, measured on one of them; ``measured`` is the time (UTC, ISO 8601).

    ``machine`` is compared with a node's (:func:`words`). ``suite``: version and commit of Plumbline; ``stack``: whose
    builds of the kernels ran; ``session``: the file below build/ceilings/SITE that has the records. ``left_out`` says
    what has no ceiling, and why. ``idle_W`` is the power of the processors while nothing ran, ``no_idle_W`` why that is
    not known. The measurement took ``seconds``.
    """

    partition: Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_.@+-]*$")]
    machine: str
    host: str
    measured: Annotated[str, Meta(pattern="^[0-9]{4}-(0[1-9]|1[0-2])-[0-9]{2}T[0-9:.]+Z$")]
    suite: str
    stack: str
    session: str
    seconds: NotNegative
    memory_bandwidth_MB_per_s: list[Ceiling] = []
    cache_bandwidth_MB_per_s: list[Ceiling] = []
    copy_bandwidth_MB_per_s: list[Ceiling] = []
    peak_GFlop_per_s: list[Ceiling] = []
    handover_latency_ns: list[Ceiling] = []
    idle_W: NotNegative | None = None
    no_idle_W: str | None = None
    left_out: list[str] = []


class Document(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``ceilings.yaml``: an element for each partition that was measured."""

    schema: Literal[2]
    partitions: list[Measured]


class Bound(Struct, frozen=True):
    """The ceiling of one figure, in the figure's unit; ``spread_percent`` is that of the launches that gave it."""

    value: Positive
    unit: str
    method: str
    spread_percent: NotNegative


def mix(benchmark: str, suite: str, built: str, metric: str, params: dict[str, Any]) -> str | None:
    """The kernel of membw that loads and stores memory as a figure's program does; None if that is not known.

    GCC makes STREAM's copy a memcpy, which stores past the caches. A daxpy stores lines that it has read.
    """
    if benchmark == "membw" and "mode" in params:
        return f"{params['kernel']} {params['mode']}"
    if suite == "stream" and built.startswith("gcc") and metric in limits.STREAM_METRICS:
        return "copy streaming" if metric == "copy" else "triad regular"
    is_read_first = params.get("touch") == "thread" and limits.is_of(metric, ("bandwidth",))
    is_past_caches = params.get("stores") == "streaming" and metric == "bandwidth"
    return "triad streaming" if is_read_first or is_past_caches else None


@dataclass(frozen=True)
class NodeUse:
    """The part of its node that a plan uses.

    ``caches`` are the bytes of the caches of each level around its cores, ``own_caches`` those around the first of
    them. ``numa_nodes`` are those whose memory it may use, None for all. ``pair`` is the distance class of its two
    ranks, None for other placements.
    """

    cores: int
    threads: int
    ranks: int
    nodes: int
    caches: dict[int, int]
    own_caches: dict[int, int]
    numa_nodes: tuple[int, ...] | None
    pair: str | None


def use_of(plan: Plan, host: Machine, nodes: int) -> NodeUse:
    """The part of ``host`` that ``plan`` uses, one of ``nodes`` nodes."""
    cpus, used = set(plan.cpus), plan.memory_nodes
    placement = binder.placement(plan.placement)
    return NodeUse(
        cores=cores_in(host, cpus),
        threads=sum(len(rank.places) for rank in plan.ranks),
        ranks=len(plan.ranks),
        nodes=nodes,
        caches=cache_bytes(host, cpus),
        own_caches=cache_bytes(host, plan.ranks[0].cpus[:1]),
        numa_nodes=tuple(used) or None,
        pair=plan.placement if placement and placement.pair else None,
    )


def cache_bytes(host: Machine, cpus: Iterable[int]) -> dict[int, int]:
    """Bytes of the caches of each level around ``cpus``."""
    wanted = set(cpus)
    around = group((cache.level, cache.size) for cache in host.caches if wanted & set(cache.cpus))
    return {level: sum(sizes) for level, sizes in around.items()}


def words(host: Machine) -> str:
    """The kind of a machine in one line: its processor, how many parts it has, and its caches."""
    levels = {cache.level: cache.size for cache in reversed(host.caches)}
    caches = ", ".join(f"L{level} {size >> 10} KiB" for level, size in sorted(levels.items()))
    parts = [
        units.counted(len(host.packages), "package"),
        units.counted(len(host.numa_nodes), "NUMA node"),
        units.counted(len(host.cores), "core"),
        units.counted(len(host.cpus), "hardware thread"),
    ]
    return f"{host.processor or 'unknown processor'}; {', '.join(parts)}; {caches or 'no caches known'}"


class CeilingRule(NamedTuple):
    """Figures, and the ceiling that they are compared with; ``text`` says both as docs/sites.md does."""

    text: str
    applies: Callable[[Quantity, NodeUse], bool]
    bound: Callable[[Quantity, NodeUse, Measured], Bound | None]


def of(figure: Quantity, used: NodeUse, measured: Measured) -> Bound | None:
    """The ceiling of ``figure`` by :data:`TABLE`; None where there is none.

    Plans in which threads share a core have none: together they may reach more than the one thread that was measured.
    Plans on several nodes have none either.
    """
    if used.threads > used.cores or used.nodes > 1:
        return None
    rule = next((rule for rule in TABLE if rule.applies(figure, used)), None)
    return rule.bound(figure, used, measured) if rule else None


def level_of(data: int, caches: dict[int, int]) -> int:
    """The level that limits sweeps over ``data`` bytes: the outermost above caches of at most a quarter of them.

    >>> caches = {1: 48 << 10, 2: 2 << 20, 3: 32 << 20}
    >>> [level_of(data, caches) for data in (48 << 10, 1 << 20, 8 << 20, 128 << 20)]
    [1, 2, 3, 0]
    """
    inside = sorted(caches)
    for below, level in zip(reversed(inside), [MEMORY, *reversed(inside)], strict=False):
        if data >= LARGER * caches[below]:
            return level
    return inside[0] if inside else MEMORY


def _memory(figure: Quantity, used: NodeUse, measured: Measured) -> Bound | None:
    """That of the figure's own mix of loads and stores; of the fastest one where its mix is not known."""
    known = [each for each in measured.memory_bandwidth_MB_per_s if figure.mix in (None, each.kernel)]
    label = f"{ALIKE} {figure.mix}" if figure.mix else "memory"
    by_place = group(((each.cores, each.numa_node), each) for each in known)
    known = [max(same, key=lambda each: each.median) for same in by_place.values()]
    by_node = {ceiling.numa_node: ceiling for ceiling in known if ceiling.numa_node is not None}
    whole = [ceiling for ceiling in known if ceiling.numa_node is None]
    if used.numa_nodes is None or not by_node or not by_node.keys() >= set(used.numa_nodes) != set(by_node):
        return _of_cores_and_all(whole, used, units.MB_S, label)
    parts = [by_node[node] for node in used.numa_nodes]
    nodes = f"NUMA {'node' if len(parts) == 1 else 'nodes'} {', '.join(map(str, used.numa_nodes))}"
    most = max(part.spread_percent for part in parts)
    shared = Bound(sum(part.median for part in parts), units.MB_S, f"{label} of {nodes}", most)
    return _least([_of_cores(whole, used.cores, units.MB_S, label), shared])


def _sweep(figure: Quantity, used: NodeUse, measured: Measured) -> Bound | None:
    level = level_of(figure.params[limits.WORKING_SET], used.caches)
    if level == MEMORY:
        return _memory(figure, used, measured)
    known = [ceiling for ceiling in measured.cache_bandwidth_MB_per_s if ceiling.level == level]
    label = f"level {level} cache"
    if any(ceiling.cores != 1 for ceiling in known):
        return _of_cores_and_all(known, used, units.MB_S, label)
    return _of_cores(known, used.cores, units.MB_S, label)


def _copy(figure: Quantity, used: NodeUse, measured: Measured) -> Bound | None:
    """One core copies each message at least once; the level follows from the caches of one core, for both buffers."""
    level = level_of(2 * figure.params["bytes"], used.own_caches)
    known = [ceiling for ceiling in measured.copy_bandwidth_MB_per_s if ceiling.level == level]
    where = f"level {level} cache" if level else "memory"
    return _of_cores(known, figure.directions, units.MB_S, f"copy in {where}")


def _handover(figure: Quantity, used: NodeUse, measured: Measured) -> Bound | None:
    pair = figure.params.get("class", used.pair)
    chosen = next((ceiling for ceiling in measured.handover_latency_ns if ceiling.pair == pair), None)
    if chosen is None:
        return None
    return Bound(chosen.median / 1000, units.US, f"{HANDOVER}, {pair}", chosen.spread_percent)


def _is_message(figure: Quantity, used: NodeUse) -> bool:
    """Whether it is of a message in host memory between two ranks that run alone, or between pairs measured in turn."""
    params = figure.params
    return "bytes" in params and params.get("buffers", "H H") == "H H" and ("class" in params or used.ranks == 2)


#: which figure is compared with which ceiling: the first rule that applies
TABLE = (
    CeilingRule(
        "the rate of `bytes` that a plumb.yaml declares: memory",
        lambda figure, _: figure.params.get("work") == "bytes",
        _memory,
    ),
    CeilingRule(
        "STREAM's four: memory; the lower of cores x one core and of what all cores have of the NUMA nodes used",
        lambda figure, _: figure.metric in limits.STREAM_METRICS,
        _memory,
    ),
    CeilingRule(
        "`bandwidth`, `bandwidth_…` of a sweep: the level that its data come from, memory or a cache",
        lambda figure, _: figure.is_sweep,
        _sweep,
    ),
    CeilingRule(
        "in GFlop/s: the multiply-add peak of the cores used",
        lambda figure, _: figure.unit == units.GFLOP_S,
        lambda _, used, known: _of_cores_and_all(known.peak_GFlop_per_s, used, units.GFLOP_S, "multiply-add peak"),
    ),
    CeilingRule(
        "`…bandwidth` of a message between two ranks of a node: a copy by one core, two if both directions are added",
        lambda figure, used: figure.metric.endswith("bandwidth") and _is_message(figure, used),
        _copy,
    ),
    CeilingRule(
        "`latency` of a message of at most 64 bytes between two cores: the handover of a cache line between such cores",
        lambda figure, used: (
            figure.metric == "latency" and _is_message(figure, used) and figure.params["bytes"] <= LINE_BYTES
        ),
        _handover,
    ),
)


def _of_cores(known: Sequence[Ceiling], cores: int, unit: str, label: str) -> Bound | None:
    """``cores`` times what one core reached."""
    single = next((ceiling for ceiling in known if ceiling.cores == 1), None)
    if single is None:
        return None
    of_cores = f"{cores} x one core" if cores > 1 else "one core"
    return Bound(cores * single.median, unit, f"{label}, {of_cores}", single.spread_percent)


def _of_cores_and_all(known: Sequence[Ceiling], used: NodeUse, unit: str, label: str) -> Bound | None:
    """The lower one of that and of the value that all cores reached together."""
    most = max(known, key=lambda ceiling: ceiling.cores or 0, default=None)
    if most is None:
        return None
    of_all = Bound(most.median, unit, f"{label}, {units.counted(most.cores or 0, 'core')}", most.spread_percent)
    return _least([_of_cores(known, used.cores, unit, label), of_all])


def _least(bounds: Sequence[Bound | None]) -> Bound | None:
    """The lowest of several; None where one is not known, because it might be the lowest."""
    known = [bound for bound in bounds if bound is not None]
    return min(known, key=lambda bound: bound.value) if len(known) == len(bounds) else None


def ceilings_file(name: str) -> Path:
    """Where the ceilings of site ``name`` are."""
    return paths.sites() / name / FILE


def read(name: str) -> list[Measured]:
    """The ceilings of the partitions of site ``name`` that were measured; none without a file of this version.

    Raises :class:`PlumbError` for a file that is not valid.
    """
    file = ceilings_file(name)
    if not file.exists():
        return []
    try:
        document = schemas.read_yaml(file, "ceilings", CURE)
        if isinstance(document, dict) and document.get("schema") == 1:
            return []
        return schemas.convert("ceilings", document, Document, str(file)).partitions
    except PlumbError as error:  # nobody writes this file by hand
        raise PlumbError(error.message, error.where, CURE) from None


def ceilings_of(name: str, partition: str, machine: str) -> Measured | None:
    """The ceilings of ``partition``; None where none were measured, or on another kind of machine than ``machine``."""
    matches = (measured for measured in read(name) if measured.partition == partition and measured.machine == machine)
    return next(matches, None)


def of_memory(plan: Plan, host: Machine, nodes: int, measured: Measured | None) -> Bound | None:
    """What memory reached on the cores of ``plan`` on ``host``; None where it was not ``measured``."""
    moved = Quantity("bandwidth", units.MB_S, {"work": "bytes"})
    return of(moved, use_of(plan, host, nodes), measured) if measured else None


def save(name: str, measured: Measured) -> Path:
    """Replace the ceilings of one partition in the file of site ``name``, in one step; returns the file."""
    file = ceilings_file(name)
    with files.writing("the ceilings", file), files.lock(paths.build() / "ceilings" / f"{name}.lock"):
        others = [entry for entry in read(name) if entry.partition != measured.partition]
        document = Document(schema=2, partitions=sorted([*others, measured], key=lambda entry: entry.partition))
        import yaml  # here: launches read with the schemas' own

        text = yaml.safe_dump(msgspec.to_builtins(document), sort_keys=False, allow_unicode=True, width=120)
        files.replace(file, HEADER + text)
    return file
