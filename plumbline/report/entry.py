"""One record as the page needs it: its numbers as they are, its words as the terminal views have them."""

from __future__ import annotations

import json
import shlex
from typing import Any

from plumbline.records.query import is_valid
from plumbline.records.rows import of_record
from plumbline.views import summary
from plumbline.views.ranks import rank_map

#: verdicts, worst first: the order of the overview
SEVERITY = ("invalid", "below", "above", "unreferenced", "within")
#: parts of a record that many records share; the page has each once
SHARED = ("host", "stack", "benchmark", "suite", "plan")


class Shared:
    """Objects that many records have in common, each kept once and known by its number."""

    def __init__(self) -> None:
        self.items: dict[str, list[Any]] = {kind: [] for kind in SHARED}
        self._known: dict[tuple[str, str], int] = {}

    def number(self, kind: str, item: Any) -> int:
        """The position of ``item`` in ``items[kind]``; equal items have one."""
        key = (kind, json.dumps(item, sort_keys=True))
        if key not in self._known:
            self._known[key] = len(self.items[kind])
            self.items[kind].append(item)
        return self._known[key]


def entry(record: dict[str, Any], shared: Shared) -> dict[str, Any]:
    """The element of the page's ``entries`` for ``record``."""
    host = dict(record["host"])
    load = host.pop("load", None)
    return {
        "id": record["id"],
        "session": record["session"],
        "campaign": record["campaign"],
        "time": record["time"],
        "state": record["state"],
        "partition": record["partition"],
        "nodes": record["nodes"],
        "test": record["variant"]["test"],
        "name": summary.short_name(record),
        "variant": record["variant"]["name"],
        "params": record["variant"]["params"],
        "stackName": record["stack"]["name"],
        "placement": record["placement"]["name"],
        "placed": summary.placement(record),
        "valid": is_valid(of_record(record)),
        "verified": record["verified"],
        "verdict": record["verdict"],
        "reasons": record["reasons"],
        "figures": [_figure(figure, record) for figure in record["figures"]],
        "launches": [_launch(launch) for launch in record["launches"]],
        "ranks": rank_map(record),
        "load": load,
        "command": shlex.join(record["command"]),
        "environment": [f"{name}={shlex.quote(value)}" for name, value in sorted(record["environment"].items())],
        "repeat": shlex.join(["plumb", "reproduce", record["id"]]),
        "host": shared.number("host", host),
        **{kind: shared.number(kind, record[kind]) for kind in SHARED if kind != "host"},
    }


def severity(record: dict[str, Any]) -> tuple[Any, ...]:
    """The sorting key of a record: worst verdict first, then by test, variant, stack and time."""
    worst = SEVERITY.index(record["verdict"]) if record["verdict"] in SEVERITY else 0
    variant = record["variant"]
    return worst, variant["test"], variant["name"], record["stack"]["name"], record["time"], record["id"]


def _figure(figure: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """The figure; ``samples`` has an element per launch of the record, None where the launch does not count."""
    names = ("name", "value", "unit", "better", "limit", "reference")
    found = {name: figure[name] for name in names}
    taken = iter(figure["samples"])
    found["samples"] = [None if launch.get("superseded") else next(taken, None) for launch in record["launches"]]
    limit = figure["limit"]
    if limit is not None:
        found["limit"] = {**limit, "percent": limit.get("percent", 100 * figure["value"] / limit["value"])}
    return found


def _launch(launch: dict[str, Any]) -> dict[str, Any]:
    names = ("index", "order", "start", "wall_s", "status", "verified", "reasons", "disturbed")
    found = {name: launch[name] for name in names}
    found["superseded"] = bool(launch.get("superseded"))
    found["exit_code"] = launch.get("exit_code")
    found["causes"] = launch["disturbance"].get("causes", [])
    found["host"] = launch["disturbance"].get("figures", {})
    if launch["status"] != "ok" or not launch["verified"]:
        found["tail"] = launch.get("output_tail", "")
    return found
