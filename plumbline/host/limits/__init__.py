"""Physical limits from site facts: what no measurement can exceed. An absent fact gives no limit, never a guess.

Only rates and shares have one. A shortest possible time is not a limit: a latency has "no limit known".
"""

from __future__ import annotations

from typing import Any

from plumbline.base import units
from plumbline.base.schemas.site import Facts
from plumbline.host.limits import peaks
from plumbline.host.topology import binder
from plumbline.host.topology.machine import Machine
from plumbline.host.topology.plan import Plan

#: metrics of the STREAM kernels, all bounded by the memory channels: STREAM's rule keeps its arrays out of the caches
STREAM_METRICS = ("copy", "scale", "add", "triad")
#: shares of a whole, where they are in percent
SHARES = ("efficiency", "overlap", "percent")
#: parameter of a measurement: bytes that all ranks together sweep over, again and again
WORKING_SET = "working_set"
#: a figure above its limit by more than this is a fault of the measurement or of the facts (outputs are rounded)
TOLERANCE = 1.001


def of(
    metric: str,
    facts: Facts,
    packages_used: float | None,
    nodes: int,
    directions: int = 1,
    *,
    unit: str | None = None,
    cores: int | None = None,
    cache_bytes: int | None = None,
    working_set: int | None = None,
    message: bool = True,
) -> peaks.Limit | None:
    """The limit of ``metric`` or None where the site gives no fact for it.

    ``unit`` is the figure's: operations are known by it, and only percentages are shares of a whole.
    ``packages_used`` is how many packages' memory the plan touches (a part of one counts as a fraction), None if it
    touches other memory too; ``nodes`` is the number of nodes of the job: a link limits only what crosses nodes;
    ``directions`` is 2 for a figure that adds up both directions of a link. ``cores`` and ``cache_bytes`` are what the
    plan takes of one node (:func:`reach`); ``working_set`` and ``message`` say what the figure is of (:func:`kind`).
    """
    packages = None if packages_used is None else packages_used * nodes
    everywhere = None if cores is None else cores * nodes
    if metric in STREAM_METRICS:
        return peaks.dram(facts, packages)
    if unit == units.PERCENT and is_of(metric, SHARES):
        return peaks.whole()
    if unit == units.GFLOP_S:
        return peaks.flops(facts, everywhere)
    if is_of(metric, ("bandwidth",)) and working_set is not None:
        caches = None if cache_bytes is None else cache_bytes * nodes
        memory = peaks.partly_cached(peaks.dram(facts, packages), working_set, caches)
        known = [limit for limit in (memory, peaks.cache(facts, everywhere)) if limit is not None]
        return min(known, key=lambda limit: limit.value) if known else None
    if metric.endswith("bandwidth") and message and nodes > 1:
        return peaks.link(facts, directions)
    return None


def is_of(metric: str, names: tuple[str, ...]) -> bool:
    """Whether ``metric`` is one of ``names``, or a kind of it: ``bandwidth_daxpy`` is a bandwidth."""
    return any(metric == name or metric.startswith(f"{name}_") for name in names)


def kind(params: dict[str, Any]) -> dict[str, Any]:
    """The kind of a measurement with ``params``: a sweep over a ``working_set``, or a ``message`` that crosses nodes.

    A message has a size in ``bytes``; where pairs of ranks have a ``class``, only those of two nodes cross.
    """
    message = "bytes" in params
    if "class" in params:
        distance = binder.placement(params["class"])
        message = distance is not None and distance.nodes > 1
    return {"working_set": params.get(WORKING_SET), "message": message}


def reach(plan: Plan, host: Machine) -> dict[str, int]:
    """The part of its node that a plan uses: ``cores``, and ``cache_bytes`` of the outermost caches around them."""
    cpus = set(plan.cpus)
    return {
        "cores": sum(bool(cpus & set(core.cpus)) for core in host.cores),
        "cache_bytes": sum(cache.size for cache in host.last_level_caches if cpus & set(cache.cpus)),
    }
