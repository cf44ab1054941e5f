"""One record, for people."""

from __future__ import annotations

import shlex

from plumbline.base import group
from plumbline.base.errors import PlumbError
from plumbline.host import devices
from plumbline.records.model import Record
from plumbline.show import efficiency, maps
from plumbline.show import record as parts

#: columns of the table of devices
DEVICES = 100


def text(record: Record) -> str:
    """Figures with every launch, rank map, circumstances, command; the verdict last."""
    figures, (launches, started) = parts.figures(record), parts.launches(record)
    has_witness = any(launch.ranks for launch in record.launches)
    blocks = [
        "\n".join(f"{name:<10} {value}" for name, value in parts.facts(record)),
        parts.FIGURES.text(figures) if figures else "",
        _remarks(record),
        launches.text(started),
        output(record),
        efficiency.text(record),
        parts.RANKS.text(parts.rank_map(record)) if has_witness else "",
        _host(record),
        _command(record),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n\n" + _verdict(record)


def _remarks(record: Record) -> str:
    """Costs of maps of ranks, and the program's remarks, each once, with the launches where not all have it."""
    by_remark = group((remark, launch.order) for launch in record.launches for remark in launch.remarks)
    remarks = [
        remark if len(orders) == len(record.launches) else f"launch {' '.join(map(str, orders))}: {remark}"
        for remark, orders in by_remark.items()
    ]
    return "\n".join([*maps.remarks(record), *remarks])


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
    unknown = sorted(key for key, value in host.items() if value is None)
    shown = [f"{key:<18} {parts.plain(value)}" for key, value in known.items()]
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
