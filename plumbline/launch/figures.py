"""From the launches of a record to its figures, its validity and its verdict."""

from __future__ import annotations

import math
import statistics
from typing import Any

from plumbline import limits
from plumbline.errors import PlumbError
from plumbline.records.rows import of_record
from plumbline.records.select import find, select
from plumbline.references import References, judge
from plumbline.topology.machine import Machine


def settle(record: dict[str, Any], facts: dict[str, Any], host: Machine, expected: References) -> None:
    """Work out ``figures``, ``verified``, ``reasons`` and ``verdict`` of ``record`` from its launches, in place.

    A figure is the median over the launches, without those whose pair the gate measured again. Only a record whose
    launches are all verified has figures; one whose figure is not finite or above the physical limit is invalid and
    says so. So is one that lacks a figure, unless that is optional and no launch has it. The verdict is the worst of
    its figures against their references in ``expected``.
    """
    launches = record["launches"]
    reasons = [f"launch {item['order']}: {reason}" for item in launches for reason in item["reasons"]]
    if not launches:
        reasons = ["no launch finished"]
    elif all(item.get("superseded") for item in launches):
        reasons = reasons or ["every launch was disturbed and measured again"]
    found: list[dict[str, Any]] = []
    verdict = "unreferenced"
    record["verified"] = not reasons
    if not reasons:
        try:
            found = [_figure(wanted, record, facts, host) for wanted in _reported(record)]
            reasons = _faults(found)
            verdict = _judge(found, record, expected)
        except PlumbError as error:
            reasons = [str(error)]
    record["figures"] = found
    record["reasons"] = reasons
    record["verdict"] = "invalid" if reasons else verdict


def _reported(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The figures to work out: all of the variant's but the optional ones that no launch reports."""
    launches = [launch for launch in record["launches"] if not launch.get("superseded")]
    wanted = record["variant"]["figures"]
    return [one for one in wanted if not one.get("optional") or any(find(one, launch) for launch in launches)]


def _figure(wanted: dict[str, Any], record: dict[str, Any], facts: dict[str, Any], host: Machine) -> dict[str, Any]:
    chosen = [select(wanted, launch) for launch in record["launches"] if not launch.get("superseded")]
    samples = [item["value"] for item in chosen]
    value = statistics.median(samples)
    used = packages_used(record["plan"], host)
    directions = record["variant"]["context"].get("directions", 1)
    known = {**limits.reach(record["plan"], host), **limits.kind(chosen[0]["params"]), "unit": chosen[0]["unit"]}
    limit = limits.of(wanted["metric"], facts, used, record["placement"]["nodes"], directions, **known)
    if limit is not None:
        limit["percent"] = round(100 * value / limit["value"], 2)
    return {
        "name": wanted["name"],
        "value": value,
        "unit": chosen[0]["unit"],
        "better": chosen[0]["better"],
        "launches": len(samples),
        "samples": samples,
        "limit": limit,
        "reference": None,
    }


def _judge(found: list[dict[str, Any]], record: dict[str, Any], expected: References) -> str:
    """The verdict of the worst figure, each of which is given its reference."""
    verdicts = set()
    row = of_record(record)
    for figure in found:
        match = expected.resolve(row, figure["name"])
        figure["reference"] = match.of_record() if match else None
        verdicts.add(judge(figure, match.entry if match else None))
    return next((name for name in ("below", "above", "within") if name in verdicts), "unreferenced")


def _faults(found: list[dict[str, Any]]) -> list[str]:
    faults = []
    for figure in found:
        if not all(math.isfinite(sample) and sample >= 0 for sample in figure["samples"]):
            faults.append(f"{figure['name']} is not a finite number")
        limit = figure["limit"]
        if limit and max(figure["samples"]) > limit["value"] * limits.TOLERANCE:
            faults.append(
                f"{figure['name']} {max(figure['samples']):.0f} {figure['unit']} is above the physical limit "
                f"{limit['value']:.0f} {limit['unit']} ({limit['method']})"
            )
    return faults


def packages_used(plan: dict[str, Any], host: Machine) -> float | None:
    """How many packages' memory channels the plan's pages can lie on.

    A NUMA node counts as its share of its package. None if a page may lie on memory that is not on a package's channels
    (a memory-only node, high-bandwidth memory): the channels are no limit there.
    """
    wanted = {node for rank in plan["ranks"] for node in rank["mem"]["nodes"]}
    if not wanted:  # no policy: pages lie wherever a thread touched them
        return float(len(host.packages))
    share: dict[int, float] = {}
    for package in host.packages:
        homes = {node.index for cpu in package.cpus if (node := host.home_node(cpu)) is not None}
        for index in homes:
            share[index] = share.get(index, 0.0) + 1 / len(homes)
    return sum(share[index] for index in wanted) if wanted <= share.keys() else None


def check_stream_rule(benchmark: dict[str, Any], host: Machine) -> None:
    """STREAM's own rule: each array at least four times the sum of the last-level caches of the node it runs on."""
    elements = benchmark.get("facts", {}).get("array_elements")
    if elements is None:
        raise PlumbError("STREAM's array size is not recorded", "stack manifest", "install the stack again")
    if elements * 8 < 4 * host.last_level_cache_bytes:
        raise PlumbError(
            f"STREAM's arrays of {elements * 8} B are smaller than 4 x {host.last_level_cache_bytes} B of cache",
            "this node",
            "build STREAM on this node, or with a larger array",
        )
