"""Pairs from the records of alternated launches: what ``plumb launch BASELINE.json CANDIDATE.json`` wrote.

A pair is the launch of each record with the same index: the driver starts them one after the other, in random order.
What is not verified, not of one session or not alternated becomes a reason why the series is INVALID.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plumbline.errors import PlumbError
from plumbline.gate.validity import Series, step_of
from plumbline.launch import figures
from plumbline.records import store


def read(file: Path, baseline: str | None = None) -> list[Series]:
    """The series of the two records of ``file``; the first is the baseline unless one's id begins with ``baseline``.

    Raises :class:`PlumbError` for a damaged file and for any other number of records.
    """
    records: list[dict[str, Any]] = []
    for item in store.read_file(file):
        if isinstance(item, store.Damage):
            where = f"{item.file}:{item.line}" if item.line else str(item.file)
            raise PlumbError(f"damaged record: {item.reason}", where, "give a whole session file")
        records.append(item)
    if len(records) != 2:
        cure = "give a session of plumb launch BASELINE.json CANDIDATE.json"
        raise PlumbError(f"{len(records)} records, a gate needs two", str(file), cure)
    if baseline is not None:
        chosen = [position for position, record in enumerate(records) if record["id"].startswith(baseline)]
        if len(chosen) != 1:
            ids = ", ".join(record["id"] for record in records)
            raise PlumbError(f"'{baseline}' names {len(chosen)} of the records {ids}", str(file), "give an id")
        if chosen[0] == 1:
            records.reverse()
    return pair(records[0], records[1])


def pair(baseline: dict[str, Any], candidate: dict[str, Any]) -> list[Series]:
    """A series per figure that either variant names; both records must obey the schema ``record``."""
    common = _faults(baseline, candidate)
    wanted = {
        figure["name"]: figure for record in (candidate, baseline) for figure in record["variant"]["figures"]
    }  # the baseline's own definition wins
    test = candidate["variant"]["name"]
    return [_series(f"{test}: {name}", wanted[name], baseline, candidate, common) for name in wanted]


def _faults(baseline: dict[str, Any], candidate: dict[str, Any]) -> list[str]:
    sides = (("baseline", baseline), ("candidate", candidate))
    found = []
    for side, record in sides:
        if not record["verified"]:
            found.append(f"the {side} is not verified: {(record['reasons'] or ['no reason recorded'])[0]}")
        elif record["reasons"] or record["verdict"] == "invalid":
            found.append(f"the {side} is invalid: {(record['reasons'] or ['no reason recorded'])[0]}")
        if record["state"] != "complete":
            found.append(f"the {side} is {record['state']}")
    if baseline["id"] == candidate["id"]:
        found.append("baseline and candidate are the same record")
    if baseline["session"] != candidate["session"]:
        found.append("the records are not of one session: between sessions more than the software differs")
    if baseline["nodes"] != candidate["nodes"]:
        found.append("the records are not of the same nodes")
    return found or _order(baseline["launches"], candidate["launches"])


def _order(baseline: list[dict[str, Any]], candidate: list[dict[str, Any]]) -> list[str]:
    if len(baseline) != len(candidate):
        return [f"{len(baseline)} launches of the baseline, {len(candidate)} of the candidate"]
    for launches in (baseline, candidate):
        if [item["index"] for item in launches] != list(range(len(launches))):
            return ["launches are missing or out of order"]
    for first, second in zip(baseline, candidate, strict=True):
        if {first["order"], second["order"]} != {2 * first["index"], 2 * first["index"] + 1}:
            return [f"launches {first['order']} and {second['order']} are no pair: the variants were not alternated"]
    return []


def _series(
    name: str, wanted: dict[str, Any], baseline: dict[str, Any], candidate: dict[str, Any], common: list[str]
) -> Series:
    faults = list(common)
    columns: list[list[float]] = [[], []]
    kinds: set[tuple[str, str]] = set()
    for column, record in zip(columns, (baseline, candidate), strict=True):
        for launch in record["launches"]:
            if not launch["verified"] or launch["status"] != "ok":
                faults.append(f"launch {launch['order']} is not verified")
                continue
            try:
                row = figures.select(wanted, launch)
            except PlumbError as error:
                faults.append(str(error))
                continue
            column.append(row["value"])
            kinds.add((row["unit"], row["better"]))
    if len(kinds) > 1:
        faults.append(f"units or directions differ: {', '.join(' '.join(kind) for kind in sorted(kinds))}")
    better = next(iter(kinds))[1] if kinds else "lower"
    step = step_of([json.dumps(value) for column in columns for value in column]) if not faults else 0.0
    return Series(name, columns[0], columns[1], "higher" if better == "higher" else "lower", step, faults[:3])
