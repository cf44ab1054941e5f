"""Pairs from the records of one session: two for each variant, its baseline and its candidate.

``plumb launch BASELINE.json CANDIDATE.json`` and the live gate write them. A pair is the launch of each record with the
same index: they were started one after the other, in random order. What is not verified, not of one session or not
alternated becomes a reason why the series is INVALID. Pairs that the live gate measured again are left out, after it
was checked that exactly those were that its rule says (:mod:`plumbline.gate.again`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plumbline.errors import PlumbError
from plumbline.gate import again
from plumbline.gate.sequential import Rule
from plumbline.gate.validity import Series, step_of
from plumbline.records import store
from plumbline.records.select import select

Record = dict[str, Any]


def read(file: Path, baseline: str | None = None) -> list[Series]:
    """The series of the records of ``file``: of each two, the first is the baseline.

    If there are two only, ``baseline`` may say by the beginning of its id which one it is. Raises :class:`PlumbError`
    for a damaged file and for records that do not come in twos.
    """
    records: list[Record] = []
    for item in store.read_file(file):
        if isinstance(item, store.Damage):
            where = f"{item.file}:{item.line}" if item.line else str(item.file)
            raise PlumbError(f"damaged record: {item.reason}", where, "give a whole session file")
        records.append(item)
    if not records or len(records) % 2:
        cure = "give a session of plumb gate or of plumb launch BASELINE.json CANDIDATE.json"
        raise PlumbError(f"{len(records)} records, a gate needs two of each variant", str(file), cure)
    if baseline is not None and _named(baseline, records, file) == 1:
        records.reverse()
    couples = list(zip(records[::2], records[1::2], strict=True))
    for first, second in couples:
        names = [record["variant"]["name"] for record in (first, second)]
        if len(couples) > 1 and names[0] != names[1]:
            cure = "give a session of plumb gate, or one of two variants"
            raise PlumbError(f"'{names[0]}' and '{names[1]}' are no two sides of one variant", str(file), cure)
    return [series for couple in couples for series in pair(*couple)]


def _named(baseline: str, records: list[Record], file: Path) -> int:
    """Which of two records has an id that begins with ``baseline``."""
    chosen = [position for position, record in enumerate(records) if record["id"].startswith(baseline)]
    if len(chosen) != 1 or len(records) != 2:
        ids = ", ".join(record["id"] for record in records)
        cure = "give an id" if len(records) == 2 else "in a session of plumb gate the baselines are known"
        raise PlumbError(f"'{baseline}' names {len(chosen)} of the records {ids}", str(file), cure)
    return chosen[0]


def pair(baseline: Record, candidate: Record, state: str = "complete") -> list[Series]:
    """A series per figure that either variant names, optional ones apart; both records obey the schema ``record``.

    ``state`` is what theirs has to be: the live gate judges records that are still ``running``.
    """
    common = _faults(baseline, candidate, state)
    wanted = {
        figure["name"]: figure
        for record in (candidate, baseline)
        for figure in record["variant"]["figures"]
        if not figure.get("optional")
    }  # the baseline's own definition wins
    test = candidate["variant"]["name"]
    return [_series(f"{test}: {name}", wanted[name], baseline, candidate, common) for name in wanted]


def _faults(baseline: Record, candidate: Record, state: str) -> list[str]:
    sides = (("baseline", baseline), ("candidate", candidate))
    found = []
    for side, record in sides:
        if not record["verified"]:
            found.append(f"the {side} is not verified: {(record['reasons'] or ['no reason recorded'])[0]}")
        elif record["reasons"] or record["verdict"] == "invalid":
            found.append(f"the {side} is invalid: {(record['reasons'] or ['no reason recorded'])[0]}")
        if record["state"] != state:
            found.append(f"the {side} is {record['state']}")
    if baseline["id"] == candidate["id"]:
        found.append("baseline and candidate are the same record")
    if baseline["session"] != candidate["session"]:
        found.append("the records are not of one session: between sessions more than the software differs")
    if baseline["nodes"] != candidate["nodes"]:
        found.append("the records are not of the same nodes")
    return found or _order(baseline["launches"], candidate["launches"])


def _order(baseline: list[Record], candidate: list[Record]) -> list[str]:
    if len(baseline) != len(candidate):
        return [f"{len(baseline)} launches of the baseline, {len(candidate)} of the candidate"]
    for launches in (baseline, candidate):
        if [item["index"] for item in launches] != list(range(len(launches))):
            return ["launches are missing or out of order"]
    last = -1
    for first, second in zip(baseline, candidate, strict=True):
        low, high = sorted((first["order"], second["order"]))
        if low % 2 or high != low + 1 or low <= last:
            return [f"launches {first['order']} and {second['order']} are no pair: the variants were not alternated"]
        last = low
    return again.faults(baseline, candidate)


def _series(name: str, wanted: Record, baseline: Record, candidate: Record, common: list[str]) -> Series:
    faults = list(common)
    columns: list[list[tuple[float, bool]]] = [[], []]
    kinds: set[tuple[str, str]] = set()
    for column, record in zip(columns, (baseline, candidate), strict=True):
        for launch in record["launches"]:
            if not launch["verified"] or launch["status"] != "ok":
                faults.append(f"launch {launch['order']} is not verified")
                continue
            try:
                row = select(wanted, launch)
            except PlumbError as error:
                faults.append(str(error))
                continue
            column.append((row["value"], again.superseded(launch)))
            kinds.add((row["unit"], row["better"]))
    if len(kinds) > 1:
        faults.append(f"units or directions differ: {', '.join(' '.join(kind) for kind in sorted(kinds))}")
    better = next(iter(kinds))[1] if kinds else "lower"
    kept = [[value for value, old in column if not old] for column in columns]
    step = step_of([json.dumps(value) for column in kept for value in column]) if not faults else 0.0
    return Series(
        name,
        kept[0],
        kept[1],
        "higher" if better == "higher" else "lower",
        step,
        faults[:3],
        _rule(wanted),
        [] if faults else _aside(columns),
    )


def _rule(wanted: Record) -> Rule | None:
    """The margins that the figure brought along: a record is judged later by what it was measured by."""
    given = {name: wanted[name] for name in ("tolerance", "must_detect") if name in wanted}
    return Rule(**given) if given else None


def _aside(columns: list[list[tuple[float, bool]]]) -> list[tuple[int, float, float]]:
    found, kept = [], 0
    for (baseline, old), (candidate, _) in zip(*columns, strict=True):
        if old:
            found.append((kept, baseline, candidate))
        kept += not old
    return found
