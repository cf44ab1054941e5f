"""One record as its drawer on the page shows it: figures, launches, placement, circumstances, how to repeat it."""

from __future__ import annotations

import json
import shlex
from typing import Any

import msgspec

from plumbline.base import units
from plumbline.base.units import cpu_ranges
from plumbline.host import draw
from plumbline.records import naming
from plumbline.records.model import Record
from plumbline.show import record as parts
from plumbline.show import summary
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, Piece, block, column

#: parts of a record that many records have in common
PARTS = ("host", "stack", "benchmark", "suite")
#: most CPUs of a node that are drawn
MOST_CPUS = 1024


class Shared:
    """The common parts of records, each once, by their kind; pieces of the page have none."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, tuple[int, Any]]] = {kind: {} for kind in (*PARTS, "")}

    def keep(self, item: Any, kind: str = "") -> int:
        """The number of a part or piece among those of its ``kind``."""
        known = self._known[kind]
        return known.setdefault(json.dumps(item, sort_keys=True), (len(known), item))[0]

    def items(self, kind: str) -> list[Any]:
        """All of a ``kind``, by their number."""
        return [item for _, item in self._known[kind].values()]


def entry(record: Record, shared: Shared) -> dict[str, Any]:
    """The element of the page's ``entries`` for ``record``."""
    host = {name: value for name, value in record.host.items() if name not in ("load", "devices")}
    known = {kind: msgspec.to_builtins(getattr(record, kind)) for kind in ("stack", "benchmark")}
    for kind, item in {"host": host, "suite": naming.suite(record.suite), **known}.items():
        shared.keep(item, kind)
    launches, started = parts.launches(record)
    verdict, placed = record.final_verdict, naming.placement(record.placement)
    tails = [
        block("folded", block("output", launch.output_tail), title=f"End of the output of launch {launch.order}")
        for launch in record.launches
        if launch.output_tail and (launch.status != "ok" or not launch.verified)
    ]
    return {
        "id": record.id,
        "title": naming.name(record.variant),
        "head": [block("badge", verdict, verdict=verdict), f" {record.stack.name}, {placed}"],
        "body": [
            record.faults
            and block(
                "reasons",
                block("strong", "Not valid" if record.is_verified else "Not verified"),
                block("bullets", *record.faults),
            ),
            _part(
                "Figures",
                parts.FIGURES.block(parts.figures(record))
                if record.figures
                else block("paragraph", "None: a record that is not verified has no figures."),
            ),
            _part("Launches", bool(record.figures) and _picture(record), launches.block(started), *tails),
            _part("Placement", *_placement(record, placed, shared)),
            _part("Repeat it", *_repeat(record)),
            _part("Circumstances", _circumstances(record, host, shared)),
        ],
    }


def severity(record: Record) -> tuple[Any, ...]:
    """The sorting key of a record: worst verdict first, then by test, variant, stack and time."""
    worst, variant = summary.SEVERITY.index(record.final_verdict), record.variant
    return worst, variant.test, variant.name, record.stack.name, record.time, record.id


def _part(title: str, *pieces: Piece) -> Block:
    return block("part", *pieces, title=title)


def _picture(record: Record) -> Block:
    """Every launch in the order started: how far each figure was from its median."""
    series = [
        parts.dot_series(
            figure.name,
            blocks.colour(number),
            [
                (dot, (dot.place, dot.place, units.significant(dot.far, 6), dot.seen))
                for dot in parts.dots(record, figure)
            ],
        )
        for number, figure in enumerate(record.figures)
    ]
    return blocks.chart(
        "Every launch",
        "How far each launch lies from the median of its figure, in the order started. Open dots: disturbed.",
        ["launch", column("disturbed", "named")],
        [(f"launch {launch.order}", "; ".join(launch.disturbance.causes)) for launch in record.launches],
        beside=True,
        height=190,
        series=series,
        each=[""],
        legend=len(series) > 1,
        x={"name": "launch of the session", "labels": [launch.order for launch in record.launches]},
        y={"name": "% from median", "told": True},
    )


def _placement(record: Record, placed: str, shared: Shared) -> list[Piece]:
    bound = ("bound to " * (rank.mem.policy == "bind") + draw.where(rank.mem) for rank in record.plan.ranks)
    memory = "; ".join(dict.fromkeys(bound)) or "–"
    seen = "seen as planned in every launch" if record.is_verified else "NOT verified"
    return [
        block("paragraph", f"{placed}; memory {memory}; {', '.join(record.nodes)}; {seen}"),
        (drawn := _cpus(record)) and block("shared", number=shared.keep(drawn)),
        parts.RANKS.block(parts.rank_map(record)),
    ]


def _cpus(record: Record) -> Block | None:
    """The CPUs of the node, each with the rank and thread planned on it; the table of ranks says the same."""
    planned = draw.labels(record.plan, "∗")
    try:
        online = cpu_ranges(str(record.host.get("cpus_online")))
    except ValueError:
        online = [range(cpu, cpu + 1) for cpu in sorted(planned)]
    if not 0 < sum(part.stop - part.start for part in online) <= MOST_CPUS:
        return None
    return block(
        "cpus",
        "small: CPU; large: rank.thread, ∗ any rank, · unused",
        cpus=[(cpu, planned.get(cpu, "")) for part in online for cpu in part],
    )


def _repeat(record: Record) -> list[Piece]:
    environment = [f"{name}={shlex.quote(value)}" for name, value in sorted(record.environment.items())]
    return [
        block("paragraph", "The variant once more, on the same stack, with the same checks:"),
        block("command", shlex.join(["plumb", "reproduce", record.id]), label="plumb reproduce"),
        block("paragraph", "The command of each launch, in its environment:"),
        block("command", " \\\n".join([*environment, shlex.join(record.command)]), label="command of each launch"),
    ]


def _circumstances(record: Record, host: dict[str, Any], shared: Shared) -> Block:
    more = shared.keep([(name.replace("_", " "), parts.plain(value)) for name, value in host.items()])
    return {**blocks.facts("Circumstances of this record", parts.facts(record)), "more": more}
