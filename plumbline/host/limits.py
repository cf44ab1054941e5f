"""Physical limits from site facts: what no measurement can exceed. An absent fact gives no limit, never a guess.

Only rates and shares have one. A shortest possible time is not a limit: a latency has "no limit known".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from msgspec import Struct

from plumbline.base import units
from plumbline.base.schemas.site import Facts
from plumbline.host import binder
from plumbline.host.binder import Plan
from plumbline.host.machine import Machine, cores_in

#: metrics of the STREAM kernels, all bounded by the memory channels: STREAM's rule keeps its arrays out of the caches
STREAM_METRICS = ("copy", "scale", "add", "triad")
#: shares of a whole, where they are in percent
SHARES = ("efficiency", "overlap", "percent")
#: parameter of a measurement: bytes that all ranks together sweep over, again and again
WORKING_SET = "working_set"
#: a figure above its limit by more than this is a fault of the measurement or of the facts (outputs are rounded)
TOLERANCE = 1.001


class Limit(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The physical bound of a figure, the method that gives it, and the percentage of it that the figure reached."""

    value: int | float
    unit: str
    method: str
    percent: int | float | None = None


@dataclass(frozen=True)
class Quantity:
    """The properties of a figure that decide which limit or ceiling it has; ``params`` are its measurement's.

    ``directions`` is 2 for a figure that adds up both directions of a link. ``crosses``: it is of messages that cross
    nodes where a job has several (:func:`crosses_nodes`). ``mix``: the kernel of membw that loads and stores memory as
    its program does, None if that is not known.
    """

    metric: str
    unit: str
    params: dict[str, Any]
    directions: int = 1
    crosses: bool = True
    mix: str | None = None

    @property
    def is_sweep(self) -> bool:
        """Whether it is the bandwidth of sweeps over a working set."""
        return is_of(self.metric, ("bandwidth",)) and self.params.get(WORKING_SET) is not None


class Resources(NamedTuple):
    """The hardware that a figure may use, on all ``nodes`` of its job together.

    ``packages`` are those whose memory it touches (a part of one counts as a fraction), None if it touches other memory
    too. ``cache_bytes`` are those of the outermost caches around its ``cores``.
    """

    nodes: int
    packages: float | None
    cores: int
    cache_bytes: int


def resources(plan: Plan, host: Machine, packages: float | None, nodes: int) -> Resources:
    """The hardware that ``plan`` uses on ``nodes`` nodes like ``host``; ``packages`` are those of one of them."""
    cpus = set(plan.cpus)
    cache_bytes = sum(cache.size for cache in host.last_level_caches if cpus & set(cache.cpus))
    return Resources(
        nodes, None if packages is None else packages * nodes, cores_in(host, cpus) * nodes, cache_bytes * nodes
    )


def is_of(metric: str, names: tuple[str, ...]) -> bool:
    """Whether ``metric`` is one of ``names``, or a kind of it: ``bandwidth_daxpy`` is a bandwidth."""
    return any(metric == name or metric.startswith(f"{name}_") for name in names)


def crosses_nodes(params: dict[str, Any]) -> bool:
    """Whether a measurement with ``params`` is of messages that cross the nodes of a job.

    A message has a size in ``bytes``; where pairs of ranks have a ``class``, only those of two nodes cross.
    """
    if "class" not in params:
        return "bytes" in params
    distance = binder.placement(params["class"])
    return distance is not None and distance.nodes > 1


def of(figure: Quantity, facts: Facts, used: Resources) -> Limit | None:
    """The limit of ``figure`` by :data:`TABLE`; None where no rule applies, or the site lacks one of its facts."""
    rule = next((rule for rule in TABLE if rule.applies(figure, used)), None)
    return rule.limit(figure, facts, used) if rule else None


def memory(_: Quantity, facts: Facts, used: Resources) -> Limit | None:
    """Peak rate in MB/s of the memory channels."""
    factors = facts.memory_channels_per_package, facts.memory_mts, facts.memory_bytes_per_transfer
    return _peak(units.MB_S, 1, "{:g} packages x {} channels x {:g} MT/s x {} B", used.packages or 0, *factors)


def flops(_: Quantity, facts: Facts, used: Resources) -> Limit | None:
    """Peak in double precision, in GFlop/s; a fused multiply-add counts as two operations."""
    cores, clock = used.cores, facts.core_ghz
    if facts.flops_per_cycle:
        return _peak(units.GFLOP_S, 1, "{} cores x {} flop/cycle x {:g} GHz", cores, facts.flops_per_cycle, clock)
    method = "{} cores x {} FMA units x {} x 2 flop/cycle x {:g} GHz"
    return _peak(units.GFLOP_S, 2, method, cores, facts.fma_units, facts.simd_bits // 64, clock)


def sweep(figure: Quantity, facts: Facts, used: Resources) -> Limit | None:
    """The lower one of two rates in MB/s: by memory and by the first-level caches (no other cache is faster).

    The caches keep all they can hold from sweep to sweep, so at least ``working_set - cache_bytes`` of every sweep come
    from memory; it does not bound what fits the caches.
    """
    dram, working_set = memory(figure, facts, used), figure.params[WORKING_SET]
    known = []
    if dram and working_set > used.cache_bytes:
        method = f"{dram.method}, {working_set / 1e6:.4g} MB of data over {used.cache_bytes / 1e6:.4g} MB of cache"
        value = dram.value * working_set / (working_set - used.cache_bytes)
        known.append(Limit(value=value, unit=dram.unit, method=method))
    method = "{} cores x {} B x {:g} GHz, first-level caches"
    if cache := _peak(units.MB_S, 1000, method, used.cores, facts.cache_bytes_per_cycle, facts.core_ghz):
        known.append(cache)
    return min(known, key=lambda limit: limit.value, default=None)


def link(figure: Quantity, facts: Facts, _: Resources) -> Limit | None:
    """Peak rate of a node's link in MB/s."""
    return _peak(units.MB_S, 125.0, "{} x link of {:g} Gbit/s", figure.directions, facts.link_gbit)


def _peak(unit: str, factor: float, method: str, *known: float) -> Limit | None:
    """The product of the facts that are ``known``, times ``factor``; None where one of them is 0."""
    return Limit(value=math.prod(known) * factor, unit=unit, method=method.format(*known)) if all(known) else None


class LimitRule(NamedTuple):
    """Figures, and their limit."""

    applies: Callable[[Quantity, Resources], bool]
    limit: Callable[[Quantity, Facts, Resources], Limit | None]


#: which figure has which limit: the first rule that applies
TABLE = (
    LimitRule(lambda figure, _: figure.metric in STREAM_METRICS, memory),
    LimitRule(
        lambda figure, _: figure.unit == units.PERCENT and is_of(figure.metric, SHARES),
        lambda figure, *_: Limit(value=100.0, unit=figure.unit, method="the whole"),
    ),
    LimitRule(lambda figure, _: figure.unit == units.GFLOP_S, flops),
    LimitRule(lambda figure, _: figure.is_sweep, sweep),
    LimitRule(lambda figure, used: figure.metric.endswith("bandwidth") and figure.crosses and used.nodes > 1, link),
)
