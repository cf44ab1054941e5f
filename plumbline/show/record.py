"""One record, for people: its text, and the parts of it that its drawer on a page shows too."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from plumbline.base import group, units
from plumbline.base.errors import PlumbError
from plumbline.base.table import sparkline
from plumbline.base.units import cpu_list
from plumbline.host import devices
from plumbline.records import naming
from plumbline.records.figure import Figure
from plumbline.records.launch import Launch, RankSeen
from plumbline.records.model import AnyRecord, Record
from plumbline.show import efficiency, summary
from plumbline.show.columns import Column, Row, Table
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, Piece, block

#: rows of one picture: a taller one is more than some browsers can draw
ROWS = 60
#: threads of a rank whose CPUs a text shows
THREADS = 8
#: columns of the table of devices
DEVICES = 100
#: the metric of bytes that ranks send to other nodes, and the parameter that names the map of ranks
BETWEEN, MAP = "between_nodes", "map"


def facts(record: Record) -> list[tuple[str, str]]:
    """What the record is of, by name; without what is not known of it."""
    stack, program, suite = record.stack, record.benchmark, record.suite
    compiler = f"{stack.compiler.get('name', 'compiler')} {stack.compiler.get('version', 'unknown')}"
    load = record.host.get("load")
    seal = record.seal[:12] if record.seal else "none: written before records had one, a change would not show"
    every = [
        ("record", f"{record.id} ({record.state}), session {record.session}"),
        ("variant", record.variant.name),
        ("parameters", plain(record.variant.params) if record.variant.params else ""),
        ("time", record.time),
        ("partition", f"{record.site}:{record.partition} on {', '.join(record.nodes)}"),
        ("stack", f"{stack.name}: {stack.mpi.family} {stack.mpi.version}, {compiler}, {stack.origin}"),
        ("manifest", f"sha256 {stack.sha256[:12]}"),
        ("program", naming.application(record.variant.application) if record.variant.application else ""),
        ("benchmark", f"{program.suite} {program.version}, sha256 {program.sha256[:12]}"),
        ("built", program.built),
        ("suite", "; ".join(filter(None, (naming.suite(suite), suite.unknown)))),
        ("placement", naming.placement(record.placement)),
        ("transports", ", ".join(record.transports)),
        ("load", plain(load) if load else "not recorded"),
        ("seal", seal),
    ]
    return [(name, text) for name, text in every if text]


def plain(value: Any) -> str:
    """A value of a record's circumstances in words."""
    if value is None:
        return "not readable"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict):
        return ", ".join(f"{key} {plain(inner)}" for key, inner in value.items() if inner is not None) or "no limits"
    return " ".join(map(plain, value)) if isinstance(value, list) else str(value)


class Shown(NamedTuple):
    """A figure by its name; None for an optional one that the program did not report."""

    name: str
    figure: Figure | None


def figures(record: Record) -> list[Shown]:
    """The rows of :data:`FIGURES`; none where the record has no figure."""
    absent = [each.name for each in record.variant.figures if each.optional and record.figure(each.name) is None]
    known = [Shown(figure.name, figure) for figure in record.figures]
    return [*known, *(Shown(name, None) for name in absent)] if known else []


def _reference(row: Shown) -> str:
    known = row.figure.reference if row.figure else None
    if row.figure is None or known is None:
        return "none" if row.figure else ""
    change = units.signed(row.figure.value / known.value - 1)
    return f"{' '.join(units.human(known.value, known.unit))} ({change}; {known.method}, {known.file})"


FIGURES = Table[Shown](
    "Figures of this record",
    [
        Column("figure", lambda row: row.name),
        Column("median", lambda row: row.figure.shown[0] if row.figure else None, "number"),
        Column("unit", lambda row: row.figure.shown[1] if row.figure else ""),
        Column("better", lambda row: row.figure.better if row.figure else "", forms="page"),
        Column("launches", lambda row: sparkline(row.figure.samples) if row.figure else "", forms="text"),
        Column(
            "range of launches",
            lambda row: summary.span(row.figure) if row.figure else "not reported here",
            "whole",
        ),
        Column("reference", _reference, "notes"),
        Column("limit", lambda row: summary.bound(row.figure) if row.figure else "", "notes"),
    ],
)


class Started(NamedTuple):
    """A launch, with its value of each figure: None where it does not count."""

    launch: Launch
    values: Sequence[float | None]


def launches(record: Record) -> tuple[Table[Started], list[Started]]:
    """The launches in the order started, in a table that has a column for each figure on a page."""
    samples = [[value for _, value in values_by_launch(record, figure)] for figure in record.figures]
    rows = [Started(launch, values) for launch, *values in zip(record.launches, *samples, strict=True)]
    columns: list[Column[Started]] = [
        Column("launch", lambda row: row.launch.order, "number"),
        Column("start", lambda row: row.launch.start[11:23]),
        Column("wall", lambda row: f"{row.launch.wall_s:.2f}", "number", "s"),
        Column("energy", lambda row: _whole(row.launch.energy_j), "number", "J"),
        Column("energy of GPUs", lambda row: _whole(row.launch.gpu_energy_j), "number", "J"),
        Column("status", lambda row: row.launch.status),
        Column("verified", lambda row: "yes" if row.launch.verified else "NO"),
        *(
            Column(figure.name, partial(_value, place), "number", figure.unit, "page")
            for place, figure in enumerate(record.figures)
        ),
        Column("notes", lambda row: _notes(row.launch, [row.launch.disturbance.short()]), "notes", page=_notes_of_page),
    ]
    return Table("Launches of this record, in the order started", columns), rows


class Drawn(NamedTuple):
    """A figure of a record, which is entry ``entry`` of a page."""

    record: Record
    entry: int
    figure: Figure

    @property
    def stack(self) -> str:
        """The stack's name."""
        return self.record.stack.name

    @property
    def placement(self) -> str:
        """Placement, ranks and threads, memory."""
        return naming.placement(self.record.placement)

    def digits(self, value: float, factor: float) -> str:
        """A ``value`` of the figure, divided by ``factor``."""
        return units.digits(value / factor, self.figure.resolution / factor)


def values_by_launch(record: Record, figure: Figure) -> list[tuple[Launch, float | None]]:
    """Every launch of the record with its value of the figure, None where it does not count."""
    values = iter(figure.samples)
    return [(launch, None if launch.superseded else next(values, None)) for launch in record.launches]


def _whole(joules: dict[str, float] | None) -> str | None:
    return f"{sum(joules.values()):.0f}" if joules else None


def _value(place: int, row: Started) -> str | None:
    return None if row.values[place] is None else str(row.values[place])


def _notes(launch: Launch, causes: Sequence[str]) -> str:
    marks = [
        *([f"exit status {launch.exit_code}"] if launch.status != "ok" and launch.exit_code is not None else []),
        *launch.reasons,
        *(["superseded: measured again"] if launch.superseded else []),
        *(f"started again: {error}" for error in launch.start_errors),
        *(f"disturbed: {cause}" for cause in causes if cause),
    ]
    return "; ".join(marks)


def _notes_of_page(row: Started) -> Piece:
    disturbance = row.launch.disturbance
    host = ", ".join(f"{name.replace('_', ' ')} {plain(value)}" for name, value in disturbance.figures.items())
    return [
        _notes(row.launch, disturbance.causes),
        bool(host) and block("folded", host, title="host during the launch", look="small"),
    ]


class Placed(NamedTuple):
    """A rank: CPU lists as the kernel writes them, ``threads`` with one for each thread.

    ``memory``: NUMA node -> MB (10^6 bytes) of large mappings, those freed before the end included; ``gpu``: its PCI
    address. Without witnesses ``host`` and ``seen`` are None.
    """

    rank: int
    host: str | None
    planned: str | None
    seen: str | None
    threads: Sequence[str] = ()
    memory: Mapping[str, int] = MappingProxyType({})
    gpu: str | None = None


def _threads(most: int | None, row: Placed) -> str | None:
    more = " …" if len(row.threads[:most]) < len(row.threads) else ""
    return "  ".join(row.threads[:most]) + more or None


RANKS = Table[Placed](
    "Ranks: planned and seen in the last launch",
    [
        Column("rank", lambda row: row.rank if row.rank >= 0 else None, "number"),
        Column("host", lambda row: row.host),
        Column("planned CPUs", lambda row: row.planned),
        Column("seen CPUs", lambda row: row.seen or "no witness"),
        Column("CPUs of each thread", partial(_threads, THREADS), "notes", page=partial(_threads, None)),
        Column(
            "large mappings by NUMA node",
            lambda row: "  ".join(f"{node}: {size} MB" for node, size in row.memory.items()) or None,
        ),
        Column("GPU", lambda row: row.gpu),
    ],
)


def rank_map(record: Record) -> list[Placed]:
    """A row per rank of the last launch that left witnesses, or of the plan if none did.

    Raises :class:`PlumbError` for a damaged plan or witness.
    """
    try:
        planned = {rank.local_rank: rank for rank in record.plan.ranks}
        seen = next((launch.ranks for launch in reversed(record.launches) if launch.ranks), None)
        if seen is None:
            return [Placed(number, None, cpu_list(rank.cpus), None) for number, rank in sorted(planned.items())]
        return [placed(rank, cpu_list(plan.cpus) if (plan := planned.get(rank.local_rank)) else None) for rank in seen]
    except (TypeError, KeyError, AttributeError, ValueError) as error:  # a record's types leave their members open
        raise PlumbError(
            f"the plan or a witness of record {record.id} is damaged: {type(error).__name__} {error}",
            record.session,
            "restore the file",
        ) from error


def placed(rank: RankSeen, planned: str | None) -> Placed:
    """The row of a rank, with the CPUs that were ``planned`` for it, if any."""
    affinities = [thread.affinity for thread in rank.threads]
    pages, size = Counter(rank.memory["nodes"]), rank.memory["page_bytes"]
    pages.update(rank.memory["freed_nodes"])
    return Placed(
        rank.rank,
        rank.host,
        planned,
        cpu_list(cpu for affinity in affinities for cpu in affinity),
        [cpu_list(affinity) for affinity in affinities],
        {node: count * size // 1_000_000 for node, count in sorted(pages.items())},
        rank.gpu_address,
    )


def sheets(title: str, rows: Sequence[Row]) -> Iterator[tuple[str, Sequence[Row]]]:
    """The ``rows`` of a picture in parts of at most :data:`ROWS`, each with its title."""
    count = math.ceil(len(rows) / ROWS)
    for place in range(count):
        yield (
            f"{title} ({place + 1} of {count})" if count > 1 else title,
            rows[place * ROWS : (place + 1) * ROWS],
        )


@dataclass(frozen=True)
class Dot:
    """A launch with its value of a figure, at its ``place`` in the record, and how far it is from the median, in %.

    ``causes``: what disturbed the launch.
    """

    launch: Launch
    place: int
    value: float
    far: float
    seen: str
    causes: str


def dots(record: Record, figure: Figure) -> list[Dot]:
    """The launches of the record that can be drawn."""
    return [
        Dot(
            launch,
            place,
            value,
            far,
            " ".join(units.human(value, figure.unit, figure.resolution)),
            "; ".join(launch.disturbance.causes),
        )
        for place, (launch, value) in enumerate(values_by_launch(record, figure))
        if value is not None and math.isfinite(far := 100 * (value / figure.value - 1) if figure.value else math.nan)
    ]


def dot_series(name: str, colour: str, drawn: Sequence[tuple[Dot, Sequence[object]]]) -> Block:
    """Dots with their points: those of disturbed launches are open."""
    return blocks.series(
        name,
        colour,
        [point for _, point in drawn],
        hollow=[place for place, (dot, _) in enumerate(drawn) if dot.launch.disturbed],
    )


def map_remarks(record: AnyRecord) -> list[str]:
    """A sentence for the map that the launcher gave, the first one, and for each that is worse than the best."""
    sent = _sent(record)
    best = [
        f"map {name} is the best map: {units.human_bytes(int(value))} between nodes"
        for name, value in [*sent.items()][:1]
        if value == min(sent.values())
    ]
    return [*best, *map_costs(record)]


def map_costs(record: AnyRecord) -> list[str]:
    """A sentence for each map that sends more than the best one; none of a run on one node, which has no network."""
    sent = _sent(record)
    best = min(sent, key=lambda name: sent[name], default="")
    worse = {name: value for name, value in sent.items() if value > sent[best]}
    if sent and sent[best]:
        of = f"times the bytes of the best map ({best}) between nodes"
        return [f"map {name} sends {units.digits(value / sent[best])} {of}" for name, value in worse.items()]
    return [
        f"map {name} sends {units.human_bytes(int(value))} between nodes, the best map ({best}) nothing"
        for name, value in worse.items()
    ]


def _sent(record: AnyRecord) -> dict[str, float]:
    """The bytes that each map sends between nodes."""
    return {
        str(wanted.where[MAP]): figure.value
        for wanted in record.variant.figures
        if wanted.metric == BETWEEN and MAP in wanted.where and record.placement.nodes > 1
        if (figure := record.figure(wanted.name))
    }


def text(record: Record) -> str:
    """Figures with every launch, rank map, circumstances, command; the verdict last."""
    shown, (table, started) = figures(record), launches(record)
    parts = [
        "\n".join(f"{name:<10} {value}" for name, value in facts(record)),
        FIGURES.text(shown) if shown else "",
        _remarks(record),
        table.text(started),
        output(record),
        efficiency.text(record),
        RANKS.text(rank_map(record)) if any(launch.ranks for launch in record.launches) else "",
        _host(record),
        "" if record.is_imported else _command(record),
    ]
    return "\n\n".join(part for part in parts if part) + "\n\n" + _verdict(record)


def _remarks(record: Record) -> str:
    """Costs of maps of ranks, and the program's remarks, each once, with the launches where not all have it."""
    by_remark = group((remark, launch.order) for launch in record.launches for remark in launch.remarks)
    remarks = [
        remark if len(orders) == len(record.launches) else f"launch {' '.join(map(str, orders))}: {remark}"
        for remark, orders in by_remark.items()
    ]
    return "\n".join([*map_remarks(record), *remarks])


def output(record: Record) -> str:
    """The last lines that the first launch which did not end well printed; empty if all ended well."""
    failed = next((launch for launch in record.launches if launch.last_lines()), None)
    if failed is None:
        return ""
    return "\n".join([f"launch {failed.order} printed last:", *(f"    {line}" for line in failed.last_lines())])


def _host(record: Record) -> str:
    host = record.host
    known = {
        key: value
        for key, value in host.items()
        if value is not None and key not in ("hostname", "kernel_command_line", "devices")
    }
    shown = [f"{key:<18} {plain(value)}" for key, value in known.items()]
    if unknown := sorted(key for key, value in host.items() if value is None):
        shown.append(f"{'not readable':<18} {', '.join(unknown)}")
    try:
        if known_devices := devices.of_host(host):
            known_links = host.get("pci_links")
            drawn = devices.draw(known_devices, known_links if isinstance(known_links, dict) else {}, DEVICES)
            shown += ["", "devices", *(line.rstrip() for line in drawn)]
    except PlumbError as error:
        shown += ["", str(error)]
    return "\n".join(shown)


def _command(record: Record) -> str:
    variables = [f"{name}={shlex.quote(value)}" for name, value in sorted(record.environment.items())]
    lines = {
        "environment": " ".join(variables),
        "settings": ", ".join(f"{name} {value}" for name, value in record.settings.items()),
        "not given": " ".join(record.removed_variables),
        "command": shlex.join(record.command),
        "repeat": f"plumb reproduce {record.id}",
    }
    return "\n".join(f"{name:<12} {text}" for name, text in lines.items() if text or name == "environment")


def _verdict(record: Record) -> str:
    if record.is_imported:
        return "imported: figures of another program, nothing about them was witnessed; no verdict is made of them"
    state = "verified" if record.is_verified else "NOT VERIFIED"
    return f"{state}, {record.final_verdict}" + (f": {'; '.join(record.faults)}" if record.faults else "")
