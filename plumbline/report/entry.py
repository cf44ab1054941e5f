"""One record as the page needs it: its numbers as they are, its words as the terminal views have them."""

from __future__ import annotations

import json
import shlex
from typing import Any

import msgspec

from plumbline.records.model import Figure, Launch, Record
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


def entry(record: Record, shared: Shared) -> dict[str, Any]:
    """The element of the page's ``entries`` for ``record``."""
    host = dict(record.host)
    load = host.pop("load", None)
    host.pop("devices", None)  # the page has them in a section of their own
    return {
        "id": record.id,
        "session": record.session,
        "campaign": record.campaign,
        "time": record.time,
        "state": record.state,
        "partition": record.partition,
        "nodes": record.nodes,
        "test": record.variant.test,
        "name": summary.name(record.variant),
        "variant": record.variant.name,
        "params": record.variant.params,
        "stackName": record.stack.name,
        "placement": record.placement.name,
        "placed": summary.placement(record.placement),
        "valid": record.is_valid,
        "verified": record.is_verified,
        "verdict": record.final_verdict,
        "reasons": record.faults,
        "figures": [_figure(figure, record) for figure in record.figures],
        "launches": [_launch(launch) for launch in record.launches],
        "ranks": rank_map(record),
        "load": load,
        "command": shlex.join(record.command),
        "environment": [f"{name}={shlex.quote(value)}" for name, value in sorted(record.environment.items())],
        "repeat": shlex.join(["plumb", "reproduce", record.id]),
        "host": shared.number("host", host),
        "suite": shared.number("suite", summary.suite(record.suite)),
        **{
            kind: shared.number(kind, msgspec.to_builtins(getattr(record, kind)))
            for kind in ("stack", "benchmark", "plan")
        },
    }


def severity(record: Record) -> tuple[Any, ...]:
    """The sorting key of a record: worst verdict first, then by test, variant, stack and time."""
    worst = SEVERITY.index(record.final_verdict)
    variant = record.variant
    return worst, variant.test, variant.name, record.stack.name, record.time, record.id


def _figure(figure: Figure, record: Record) -> dict[str, Any]:
    """The figure; ``samples`` has an element per launch of the record, None where the launch does not count."""
    found: dict[str, Any] = msgspec.to_builtins(figure)
    del found["launches"]
    taken = iter(figure.samples)
    found["samples"] = [None if launch.superseded else next(taken, None) for launch in record.launches]
    if figure.limit is not None and figure.reached is not None:
        found["limit"]["percent"] = figure.reached.percent
    if figure.ceiling is not None:
        ceiling = figure.ceiling
        found["ceiling"] |= {"suspect": ceiling.suspect, "mark": ceiling.mark, "raising": ceiling.raising}
    return found


def _launch(launch: Launch) -> dict[str, Any]:
    names = (
        "energy_j",
        "index",
        "order",
        "start",
        "wall_s",
        "status",
        "exit_code",
        "verified",
        "reasons",
        "disturbed",
        "superseded",
    )
    found = {name: getattr(launch, name) for name in names}
    found["causes"] = launch.disturbance.causes
    found["host"] = launch.disturbance.figures
    if launch.status != "ok" or not launch.verified:
        found["tail"] = launch.output_tail or ""
    return found
