"""What differs between the circumstances of two records."""

from __future__ import annotations

from typing import Any

from plumbline import units
from plumbline.views.table import table

#: parts of a record that describe its circumstances; ids, times and measurements are no circumstances
CIRCUMSTANCES = (
    "site",
    "partition",
    "nodes",
    "suite",
    "stack",
    "benchmark",
    "variant",
    "placement",
    "plan",
    "host",
    "environment",
)
#: what changes from one minute to the next and says nothing about the machine
FLEETING = ("host.load", "environment.PLUMB_SEED")


def differences(first: dict[str, Any], second: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(dotted key, value in ``first``, value in ``second``) of everything that is not equal."""
    left: dict[str, str] = {}
    right: dict[str, str] = {}
    for flat, record in ((left, first), (right, second)):
        for part in CIRCUMSTANCES:
            _flatten(part, record.get(part), flat)
    keys = [key for key in {**left, **right} if not key.startswith(FLEETING)]
    return [(key, left.get(key, "absent"), right.get(key, "absent")) for key in keys if left.get(key) != right.get(key)]


def _flatten(key: str, value: Any, into: dict[str, str]) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            _flatten(f"{key}.{name}", inner, into)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for number, inner in enumerate(value):
            _flatten(f"{key}[{number}]", inner, into)
    else:
        into[key] = str(value)


def text(first: dict[str, Any], second: dict[str, Any]) -> str:
    """The differences as a table, then the figures of both with their ratio."""
    rows = differences(first, second)
    blocks = []
    if rows:
        blocks.append(
            table(("circumstance", first["id"], second["id"]), [tuple(cell[:60] for cell in row) for row in rows])
        )
    else:
        blocks.append("the circumstances are equal")
    blocks.append(_figures(first, second))
    return "\n\n".join(block for block in blocks if block)


def _figures(first: dict[str, Any], second: dict[str, Any]) -> str:
    others = {figure["name"]: figure for figure in second["figures"]}
    rows = []
    for figure in first["figures"]:
        other = others.get(figure["name"])
        if other and other["unit"] == figure["unit"]:
            ratio = f"{other['value'] / figure['value']:.3f}" if figure["value"] else "–"
            rows.append((figure["name"], " ".join(units.human(figure["value"], figure["unit"])),
                         " ".join(units.human(other["value"], other["unit"])), ratio))  # fmt: skip
    header = ("figure", first["id"], second["id"], "ratio")
    return table(header, rows, right=header[1:]) if rows else "no figure in common"
