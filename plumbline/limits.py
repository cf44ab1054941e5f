"""Physical limits from site facts: what no measurement can exceed. An absent fact gives no limit, never a guess."""

from __future__ import annotations

from typing import Any

from plumbline import units

#: metrics of the STREAM kernels, all bounded by the memory channels
STREAM_METRICS = ("copy", "scale", "add", "triad")
#: a figure above its limit by more than this is a fault of the measurement or of the facts (outputs are rounded)
TOLERANCE = 1.001


def of(
    metric: str, facts: dict[str, Any], packages_used: float | None, nodes: int, directions: int = 1
) -> dict[str, Any] | None:
    """The limit of ``metric`` as ``{"value", "unit", "method"}``, or None where the site gives no fact for it.

    ``packages_used`` is how many packages' memory the plan touches (a part of one counts as a fraction), None if it
    touches other memory too; ``nodes``
    is the number of nodes of the job: a link limits only what crosses nodes; ``directions`` is 2 for a figure that
    adds up both directions of a link.
    """
    if metric in STREAM_METRICS:
        return _dram(facts, packages_used)
    if metric == "bandwidth" and nodes > 1:
        return _link(facts, directions)
    return None


def _dram(facts: dict[str, Any], packages_used: float | None) -> dict[str, Any] | None:
    channels = facts.get("memory_channels_per_package")
    rate = facts.get("memory_mts")
    if channels is None or rate is None or packages_used is None:
        return None
    width = facts.get("memory_bytes_per_transfer", 8)
    value = packages_used * channels * rate * width
    return {
        "value": value,
        "unit": units.MB_S,
        "method": f"{packages_used:g} packages x {channels} channels x {rate:g} MT/s x {width} B",
    }


def _link(facts: dict[str, Any], directions: int) -> dict[str, Any] | None:
    gbit = facts.get("link_gbit")
    if gbit is None:
        return None
    return {"value": gbit * 125.0 * directions, "unit": units.MB_S, "method": f"{directions} x link of {gbit:g} Gbit/s"}
