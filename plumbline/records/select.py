"""Which measurement of a launch a figure is: the one definition, for launches, gate and queries."""

from __future__ import annotations

from typing import Any

from plumbline.errors import PlumbError


def select(wanted: dict[str, Any], launch: dict[str, Any]) -> dict[str, Any]:
    """The measurement that ``wanted`` names; without parameters, the best one of the curve; an error if absent."""
    found = find(wanted, launch)
    if found is None:
        where = ", ".join(f"{key}={value}" for key, value in wanted["where"].items()) or "any size"
        raise PlumbError(
            f"figure {wanted['name']} is absent: no {wanted['metric']} at {where}", f"launch {launch['order']}"
        )
    return found


def find(wanted: dict[str, Any], launch: dict[str, Any]) -> dict[str, Any] | None:
    """The same, None if it is absent: the launch failed, or printed no such line."""
    metric, needed = wanted["metric"], list(wanted["where"].items())
    rows = [item for item in launch["measurements"] if item["metric"] == metric]
    if needed:
        rows = [item for item in rows if all(item["params"].get(key) == value for key, value in needed)]
    if not rows:
        return None
    best = max if rows[0]["better"] == "higher" else min
    return best(rows, key=lambda item: item["value"])
