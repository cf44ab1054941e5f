"""Ceilings: what the machine of a partition reached where it was measured, and which figures are compared with them.

A limit is declared and physical: above it a figure is invalid. A ceiling is measured: a verified record above it raises
it (:mod:`plumbline.host.limits.raising`).
``site-configs/NAME/ceilings.yaml`` is a :class:`Document`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from msgspec import Meta, Struct

from plumbline.base import units
from plumbline.host import limits
from plumbline.host.topology import binder
from plumbline.host.topology.machine import Machine
from plumbline.host.topology.plan import Count, Index, Plan

#: a level limits a sweep whose data are at least this many times the size of the caches below it (STREAM's rule)
LARGER = 4
#: bytes of a message that one cache line carries
LINE_BYTES = 64
#: the level that stands for memory
MEMORY = 0


#: neither infinite nor beyond any machine
Positive: TypeAlias = Annotated[float, Meta(gt=0, le=1e300)]
NotNegative: TypeAlias = Annotated[float, Meta(ge=0, le=1e300)]
RecordId: TypeAlias = Annotated[str, Meta(pattern="^[0-9a-f]{12}$")]


class Raise(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A ceiling that was ``before`` became ``after``, at ``time`` (UTC, ISO 8601) by the record with this id."""

    before: Positive
    after: Positive
    time: str
    record: RecordId


class Ceiling(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The best figure of some launches; its unit is in the name of its list.

    It was reached by ``cores`` cores; ``numa_node`` is set where these were all cores of that node on its own memory.
    ``level`` is that of the cache that held the data, 0 for memory; ``pair`` is the class of two cores. ``raised`` is
    its history, the oldest first; ``method`` and ``record`` are of the measurement before it.
    """

    best: Positive
    spread_percent: NotNegative
    launches: Count
    disturbed_launches: Index = 0
    cores: Count | None = None
    numa_node: Index | None = None
    level: Index | None = None
    pair: str | None = None
    method: str
    record: RecordId
    raised: list[Raise] = []


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

    schema: Literal[1]
    partitions: list[Measured]


class Bound(NamedTuple):
    """The ceiling of one figure, in the figure's unit, and the ``parts`` that it is worked out from.

    ``spread_percent`` is that of the launches that gave it.
    """

    value: float
    unit: str
    method: str
    spread_percent: float
    parts: tuple[Ceiling, ...] = ()


@dataclass(frozen=True)
class Taken:
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


def use_of(plan: Plan, host: Machine, nodes: int) -> Taken:
    """The part of ``host`` that ``plan`` uses, one of ``nodes`` nodes."""
    cpus, used = set(plan.cpus), plan.memory_nodes
    placement = binder.placement(plan.placement)
    return Taken(
        cores=sum(bool(cpus & set(core.cpus)) for core in host.cores),
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
    sizes: dict[int, int] = {}
    wanted = set(cpus)
    for cache in host.caches:
        if wanted & set(cache.cpus):
            sizes[cache.level] = sizes.get(cache.level, 0) + cache.size
    return sizes


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


@dataclass(frozen=True)
class Quantity:
    """The properties of a figure that decide which ceiling it has."""

    metric: str
    unit: str
    params: dict[str, Any]
    directions: int


class CeilingRule(NamedTuple):
    """Figures, and the ceiling that they are compared with; ``text`` says both as docs/sites.md does."""

    text: str
    applies: Callable[[Quantity, Taken], bool]
    bound: Callable[[Quantity, Taken, Measured], Bound | None]


def of(figure: Quantity, used: Taken, measured: Measured) -> Bound | None:
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


def _memory(_: Quantity, used: Taken, measured: Measured) -> Bound | None:
    known = measured.memory_bandwidth_MB_per_s
    by_node = {ceiling.numa_node: ceiling for ceiling in known if ceiling.numa_node is not None}
    whole = [ceiling for ceiling in known if ceiling.numa_node is None]
    if used.numa_nodes is not None and by_node and by_node.keys() >= set(used.numa_nodes) != set(by_node):
        parts = [by_node[node] for node in used.numa_nodes]
        shared: Bound | None = Bound(
            sum(part.best for part in parts),
            units.MB_S,
            f"memory of NUMA {'node' if len(parts) == 1 else 'nodes'} {', '.join(map(str, used.numa_nodes))}",
            max(part.spread_percent for part in parts),
            tuple(parts),
        )
    else:
        shared = _of_all(whole, units.MB_S, "memory")
    return _least([_of_cores(whole, used.cores, units.MB_S, "memory"), shared])


def _sweep(figure: Quantity, used: Taken, measured: Measured) -> Bound | None:
    level = level_of(figure.params[limits.WORKING_SET], used.caches)
    if level == MEMORY:
        return _memory(figure, used, measured)
    known = [ceiling for ceiling in measured.cache_bandwidth_MB_per_s if ceiling.level == level]
    label = f"level {level} cache"
    bounds = [_of_cores(known, used.cores, units.MB_S, label), _of_all(known, units.MB_S, label)]
    return _least(bounds if any(ceiling.cores != 1 for ceiling in known) else bounds[:1])


def _peak(_: Quantity, used: Taken, measured: Measured) -> Bound | None:
    known, label = measured.peak_GFlop_per_s, "multiply-add peak"
    return _least([_of_cores(known, used.cores, units.GFLOP_S, label), _of_all(known, units.GFLOP_S, label)])


def _copy(figure: Quantity, used: Taken, measured: Measured) -> Bound | None:
    """One core copies each message at least once; the level follows from the caches of one core, for both buffers."""
    level = level_of(2 * figure.params["bytes"], used.own_caches)
    known = [ceiling for ceiling in measured.copy_bandwidth_MB_per_s if ceiling.level == level]
    where = f"level {level} cache" if level else "memory"
    return _of_cores(known, figure.directions, units.MB_S, f"copy in {where}")


def _handover(figure: Quantity, used: Taken, measured: Measured) -> Bound | None:
    pair = figure.params.get("class", used.pair)
    chosen = next((ceiling for ceiling in measured.handover_latency_ns if ceiling.pair == pair), None)
    if chosen is None:
        return None
    return Bound(chosen.best / 1000, units.US, f"handover of a cache line, {pair}", chosen.spread_percent, (chosen,))


def _is_message(figure: Quantity, used: Taken) -> bool:
    """Whether it is of a message in host memory between two ranks that run alone, or between pairs measured in turn."""
    if figure.params.get("buffers", "H H") != "H H":
        return False
    apart = "class" in figure.params or used.ranks == 2
    return "bytes" in figure.params and apart


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
        lambda figure, _: limits.is_of(figure.metric, ("bandwidth",)) and limits.WORKING_SET in figure.params,
        _sweep,
    ),
    CeilingRule(
        "in GFlop/s: the multiply-add peak of the cores used",
        lambda figure, _: figure.unit == units.GFLOP_S,
        _peak,
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
    return Bound(cores * single.best, unit, f"{label}, {of_cores}", single.spread_percent, (single,))


def _of_all(known: Iterable[Ceiling], unit: str, label: str) -> Bound | None:
    """The value that all cores reached together."""
    most = max(known, key=lambda ceiling: ceiling.cores or 0, default=None)
    if most is None:
        return None
    label = f"{label}, {units.counted(most.cores or 0, 'core')}"
    return Bound(most.best, unit, label, most.spread_percent, (most,))


def _least(bounds: Sequence[Bound | None]) -> Bound | None:
    """The lowest; None where one is not known, because it might be the lowest."""
    known = [bound for bound in bounds if bound is not None]
    return min(known, key=lambda bound: bound.value) if len(known) == len(bounds) else None
