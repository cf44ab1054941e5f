"""One record, for people."""

from __future__ import annotations

import shlex

from plumbline.base import group
from plumbline.base.errors import PlumbError
from plumbline.host import devices
from plumbline.records.model import Record
from plumbline.show import efficiency
from plumbline.show import record as parts

#: columns of the table of devices
DEVICES = 100


def text(record: Record) -> str:
    """Figures with every launch, rank map, circumstances, command; the verdict last."""
    figures, (launches, started) = parts.figures(record), parts.launches(record)
    blocks = [
        "\n".join(f"{name:<10} {value}" for name, value in parts.facts(record)),
        parts.FIGURES.text(figures) if figures else "",
        _remarks(record),
        launches.text(started),
        output(record),
        efficiency.text(record),
        parts.RANKS.text(parts.rank_map(record)) if any(launch.ranks for launch in record.launches) else "",
        _host(record),
        "" if record.is_imported else _command(record),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n\n" + _verdict(record)


def _remarks(record: Record) -> str:
    """Costs of maps of ranks, and the program's remarks, each once, with the launches where not all have it."""
    by_remark = group((remark, launch.order) for launch in record.launches for remark in launch.remarks)
    remarks = [
        remark if len(orders) == len(record.launches) else f"launch {' '.join(map(str, orders))}: {remark}"
        for remark, orders in by_remark.items()
    ]
    return "\n".join([*parts.map_remarks(record), *remarks])


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
    shown = [f"{key:<18} {parts.plain(value)}" for key, value in known.items()]
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
