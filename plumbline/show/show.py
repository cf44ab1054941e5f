"""One record, for people."""

from __future__ import annotations

import shlex
from typing import Any

from plumbline.base import group, units
from plumbline.base.errors import PlumbError
from plumbline.base.table import sparkline, table
from plumbline.host import devices
from plumbline.records import naming
from plumbline.records.figure import Figure
from plumbline.records.model import Record
from plumbline.show import efficiency as spent
from plumbline.show import maps, summary
from plumbline.show.ranks import rank_map

#: columns of the table of devices
DEVICES = 100


def text(record: Record) -> str:
    """Figures with every launch, rank map, circumstances, command; the verdict last."""
    blocks = [_head(record), _figures(record), _remarks(record), _launches(record), output(record), spent.text(record)]
    blocks += [_ranks(record), _host(record), _command(record)]
    return "\n\n".join(block for block in blocks if block) + "\n\n" + _verdict(record)


def _head(record: Record) -> str:
    stack, bench, suite = record.stack, record.benchmark, record.suite
    rows = [
        ("record", f"{record.id}  ({record.state}, session {record.session})"),
        ("variant", record.variant.name),
        ("time", record.time),
        ("site", f"{record.site}:{record.partition}  on {', '.join(record.nodes)}"),
        ("stack", f"{stack.name}: {stack.mpi.family} {stack.mpi.version}, {stack.origin}"),
        *([("program", naming.application(record.variant.application))] if record.variant.application else []),
        ("benchmark", f"{bench.suite} {bench.version}, sha256 {bench.sha256[:12]}, {bench.built}"),
        ("suite", naming.suite(suite)),
        *([("", suite.unknown)] if suite.unknown else []),
        ("placement", naming.placement(record.placement)),
        *([("transports", ", ".join(record.transports))] if record.transports else []),
        ("seal", record.seal[:12] if record.seal else "none: written before records had one, a change would not show"),
    ]
    return "\n".join(f"{name:<10} {value}" for name, value in rows)


def _figures(record: Record) -> str:
    rows = []
    for figure in record.figures:
        value, unit = figure.shown
        span = summary.span(figure)
        known = figure.reference
        reference = f"{' '.join(units.human(known.value, known.unit))} ({known.method})" if known else "none"
        rows.append((figure.name, value, unit, sparkline(figure.samples), span, reference, _bound(figure)))
    absent = [each.name for each in record.variant.figures if each.optional and record.figure(each.name) is None]
    if rows:
        rows += [(name, "–", "", "", "not reported here", "", "") for name in absent]
    header = ("figure", "median", "unit", "launches", "range", "reference", "limit")
    return table(header, rows, right=("median",)) if rows else ""


def _remarks(record: Record) -> str:
    """Costs of maps of ranks, and the program's remarks, each once, with the launches where not all have it."""
    by_remark = group((remark, launch.order) for launch in record.launches for remark in launch.remarks)
    remarks = [
        remark if len(orders) == len(record.launches) else f"launch {' '.join(map(str, orders))}: {remark}"
        for remark, orders in by_remark.items()
    ]
    return "\n".join([*maps.remarks(record), *remarks])


def _bound(figure: Figure) -> str:
    """How much of its limit a figure reached, or else of its ceiling."""
    if not figure.reached:
        return "no limit known"
    if figure.limit or not figure.ceiling:
        return str(figure.reached)
    suspect = "; suspect: plumb site measure" if figure.ceiling.suspect else ""
    when = f"measured {figure.ceiling.measured[:10]}" if figure.ceiling.measured else "for the same launches"
    raised = f"; {figure.ceiling.raising} by this record" if figure.ceiling.raising else ""
    return f"{figure.reached}, {when}{raised}{suspect}"


def _launches(record: Record) -> str:
    rows = []
    kinds = [("J", [launch.energy_j for launch in record.launches])]
    kinds += [("J of GPUs", [launch.gpu_energy_j for launch in record.launches])]
    counted = {name: amounts for name, amounts in kinds if any(amounts)}
    for place, launch in enumerate(record.launches):
        marks = ["superseded: measured again"] if launch.superseded else []
        marks += [f"started again: {error}" for error in launch.start_errors]
        marks += [f"disturbed: {launch.disturbance.short()}"] if launch.disturbance.causes else []
        note = "; ".join([*launch.reasons, *marks])
        joules = [
            f"{sum(energies.values()):.0f}" if (energies := amounts[place]) else "–" for amounts in counted.values()
        ]
        rows.append(
            (str(launch.order), launch.start[11:23], f"{launch.wall_s:.2f}", *joules, launch.status,
             "yes" if launch.verified else "NO", note)
        )  # fmt: skip
    header = ("launch", "start", "wall s", *counted, "status", "verified", "notes")
    return table(header, rows, right=("launch", "wall s", *counted))


def output(record: Record) -> str:
    """The last lines that the first launch which did not end well printed; empty if all ended well."""
    failed = next((launch for launch in record.launches if launch.last_lines()), None)
    if failed is None:
        return ""
    return "\n".join([f"launch {failed.order} printed last:", *(f"    {line}" for line in failed.last_lines())])


def _ranks(record: Record) -> str:
    """The map of the last launch that left witnesses: planned against seen."""
    if not any(launch.ranks for launch in record.launches):
        return ""
    rows = [
        (str(item["rank"]), item["host"], item["planned"] or "–", item["seen"],
         " ".join(item["threads"][:8]) + (" …" if len(item["threads"]) > 8 else ""),
         "  ".join(f"{node}: {size} MB" for node, size in item["memory"].items()) or "–")
        for item in rank_map(record)
    ]  # fmt: skip
    header = ("rank", "host", "planned CPUs", "seen CPUs", "CPUs of each thread", "large mappings by NUMA node")
    return table(header, rows, right=("rank",))


def _host(record: Record) -> str:
    host = record.host
    known = {
        key: value
        for key, value in host.items()
        if value is not None and key not in ("hostname", "kernel_command_line", "devices")
    }
    unknown = sorted(key for key, value in host.items() if value is None)
    shown = [f"{key:<18} {plain(value)}" for key, value in known.items()]
    if unknown:
        shown.append(f"{'not readable':<18} {', '.join(unknown)}")
    try:
        if known_devices := devices.of_host(host):
            known_links = host.get("pci_links")
            drawn = devices.draw(known_devices, known_links if isinstance(known_links, dict) else {}, DEVICES)
            shown += ["", "devices", *(line.rstrip() for line in drawn)]
    except PlumbError as error:
        shown += ["", str(error)]
    return "\n".join(shown)


def plain(value: Any) -> str:
    """A value of a record's circumstances in words."""
    if value is None:
        return "not readable"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict):
        return ", ".join(f"{key} {plain(inner)}" for key, inner in value.items() if inner is not None) or "no limits"
    return " ".join(map(plain, value)) if isinstance(value, list) else str(value)


def _command(record: Record) -> str:
    if record.is_imported:
        return ""
    variables = [f"{name}={shlex.quote(value)}" for name, value in sorted(record.environment.items())]
    lines = [f"environment  {' '.join(variables)}"]
    if record.settings:
        lines.append(f"settings     {', '.join(f'{name} {value}' for name, value in record.settings.items())}")
    if record.removed_variables:
        lines.append(f"not given    {' '.join(record.removed_variables)}")
    lines += [f"command      {shlex.join(record.command)}", f"repeat       plumb reproduce {record.id}"]
    return "\n".join(lines)


def _verdict(record: Record) -> str:
    if record.is_imported:
        return "imported: figures of another program, nothing about them was witnessed; no verdict is made of them"
    state = "verified" if record.is_verified else "NOT VERIFIED"
    reasons = f": {'; '.join(record.faults)}" if record.faults else ""
    return f"{state}, {record.final_verdict}{reasons}"
