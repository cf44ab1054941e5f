"""Differences between the circumstances and the figures of two records."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec

from plumbline.base import units
from plumbline.base.table import table
from plumbline.records import model
from plumbline.records.model import FLEETING, Record

#: parts of a record that describe its circumstances; ids, times and measurements are not circumstances
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
#: keys that differ between any two sessions, and those shown as ``settings``
IGNORED = (
    *(f"host.{name}" for name in FLEETING),
    "environment.PLUMB_SEED",
    "environment.PLUMB_WITNESS_SETTINGS",
    "variant.settings",
)


def differences(first: Record, second: Record) -> list[tuple[str, str, str]]:
    """(dotted key, value in ``first``, value in ``second``) of everything that is not equal.

    Files that were loaded are compared by size and build id, or by the time of the last change without a build id.
    They, the scheduling and the transports are compared only if both records have them. ``settings`` are those that
    the launches asked for, with the values that were seen.
    """
    left, right = (_flat(_circumstances(record, first, second)) for record in (first, second))
    return [
        (key, left.get(key, "absent"), right.get(key, "absent"))
        for key in {**left, **right}
        if left.get(key) != right.get(key) and not key.startswith(IGNORED)
    ]


def _circumstances(record: Record, first: Record, second: Record) -> dict[str, Any]:
    # as both are in a file: a record that was just measured holds tuples where one that was read holds lists
    parts = {part: msgspec.json.decode(msgspec.json.encode(getattr(record, part))) for part in CIRCUMSTANCES}
    loaded = {file.path: f"{file.bytes} bytes, {file.build_id[:16] or file.modified_ns}" for file in record.loaded}
    return {
        **parts,
        "settings": record.settings,
        **({"loaded": loaded} if first.loaded and second.loaded else {}),  # early records do not say what they loaded
        **({"scheduling": record.scheduling} if first.scheduling and second.scheduling else {}),
        **({"transports": ", ".join(record.transports)} if first.transports and second.transports else {}),
    }


def _flat(value: Any, key: str = "") -> dict[str, str]:
    """The texts of ``value`` by dotted keys."""
    if isinstance(value, dict):
        inner = {f"{key}.{name}" if key else name: part for name, part in value.items()}
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        inner = {f"{key}[{number}]": part for number, part in enumerate(value)}
    else:
        return {key: _words(value)}
    return {name: text for at, part in inner.items() for name, text in _flat(part, at).items()}


def _words(value: Any) -> str:
    """A value as people write it; lists that differ stay different."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return shlex.join(map(_words, value)) or "none"
    return units.dashed(value)


def document(first: Record, second: Record) -> dict[str, Any]:
    """Ids, circumstances that differ, and the figures of both."""
    return {
        "records": [first.id, second.id],
        "circumstances": {key: values for key, *values in differences(first, second)},
        "figures": [[model.document(figure) for figure in record.figures] for record in (first, second)],
    }


def text(first: Record, second: Record) -> str:
    """The differences as a table, then the figures of both with their ratio."""
    differing = [tuple(cell[:60] for cell in row) for row in differences(first, second)]
    rows = [
        (
            figure.name,
            *(" ".join(item.shown) for item in (figure, counterpart)),
            units.ratio(counterpart.value / figure.value if figure.value else None),
        )
        for figure in first.figures
        if (counterpart := second.figure(figure.name)) and counterpart.unit == figure.unit
    ]
    header = ("figure", first.id, second.id, "ratio")
    figures = table(header, rows, right=header[1:]) if rows else "no figure in common"
    equal = "the circumstances are equal"
    return f"{table(('circumstance', *header[1:3]), differing) if differing else equal}\n\n{figures}"
