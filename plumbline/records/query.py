"""Questions to the records, answered straight from their files: no server, no index, no lock.

Every function takes a :class:`Selection` and returns what it found, oldest first, with the lines that could not be
read (:class:`plumbline.records.store.Damage`: print them to stderr as ``plumb: damaged record: …``). Session files
(``results/SITE/SESSION.jsonl``) and compacted ones (``results/SITE/compact/*.parquet``) are read alike.

- :func:`records`: a :class:`~plumbline.records.rows.Row` per record, with its figures (lists, history);
- :func:`figures`: a pair of row and figure per figure of a record;
- :func:`samples`: a :class:`~plumbline.records.rows.Samples` per record and figure: what each launch measured (gate);
- :func:`full`: whole records, by their ids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeVar

from plumbline import paths, schemas
from plumbline.errors import PlumbError
from plumbline.records import rows, sources, store
from plumbline.records.rows import Figure, Row, Samples, is_valid
from plumbline.records.scan import Origin, Question, named, scan
from plumbline.records.store import Damage

__all__ = ["ALL", "Selection", "figures", "full", "ids", "is_valid", "records", "samples"]


@dataclass(frozen=True)
class Selection:
    """Which records: all conditions that are not None must hold. Times are UTC, ISO 8601, and may be shortened.

    ``test`` is the beginning of a test's name; ``since`` is included, ``until`` is not; ``valid`` keeps (True) those
    that are complete, verified and not invalid.
    """

    site: str | None = None
    test: str | None = None
    since: str | None = None
    until: str | None = None
    campaign: str | None = None
    session: str | None = None
    stack: str | None = None
    valid: bool = False

    def admits(self, row: Row) -> bool:
        """Whether ``row`` is wanted (``site`` apart, which is the folder that is read)."""
        return (
            (self.test is None or row.test.startswith(self.test))
            and (self.since is None or row.time >= self.since)
            and (self.until is None or row.time < self.until)
            and (self.campaign is None or row.campaign == self.campaign)
            and (self.session is None or row.session == self.session)
            and (self.stack is None or row.stack.name == self.stack)
            and (not self.valid or is_valid(row))
        )


ALL = Selection()
#: what a :class:`~plumbline.records.rows.Row` is made of and checked by; ``host`` comes beside it
ROW = {
    "schema": "JSON",
    "id": "JSON",
    "session": "JSON",
    "campaign": "JSON",
    "time": "JSON",
    "state": "JSON",
    "site": "JSON",
    "partition": "JSON",
    "nodes": "JSON",
    "suite": {"version": "JSON", "commit": "JSON"},
    "stack": {
        "name": "JSON",
        "provider": "JSON",
        "mpi": {"family": "JSON", "version": "JSON"},
        "sha256": "JSON",
    },
    "variant": {"test": "JSON", "name": "JSON", "benchmark": "JSON", "params": "JSON", "figures": "JSON"},
    "placement": "JSON",
    "verified": "JSON",
    "reasons": "JSON",
    "verdict": "JSON",
    "figures": "JSON",
    "launches": [{"verified": "JSON", "disturbed": "JSON", "superseded": "JSON"}],
}
LAUNCH = {
    "index": "JSON",
    "order": "JSON",
    "start": "JSON",
    "wall_s": "JSON",
    "status": "JSON",
    "verified": "JSON",
    "disturbed": "JSON",
    "superseded": "JSON",
    "measurements": [{"metric": "JSON", "value": "JSON", "unit": "JSON", "better": "JSON", "params": "JSON"}],
}


#: the conditions of a selection that the engine can see
CONDITIONS = {
    "test": "starts_with(json ->> '$.variant.test', $test)",
    "since": "(json ->> '$.time') >= $since",
    "until": "(json ->> '$.time') < $until",
    "campaign": "(json ->> '$.campaign') = $campaign",
    "session": "(json ->> '$.session') = $session",
    "stack": "(json ->> '$.stack.name') = $stack",
}

Answer = TypeVar("Answer")
#: what a scan makes of a record: time, id, and what is wanted of it (None: the record is not)
Made = tuple[str, str, Answer]


def records(where: Selection = ALL) -> tuple[list[Row], list[Damage]]:
    """A row per record."""

    def make(record: dict[str, Any]) -> Made[Row | None]:
        row = rows.of_record(record)
        return row.time, row.id, row if where.admits(row) else None

    found, damages = _ask(where.site, _question(where, ROW), make)
    return [row for row in found if row is not None], damages


def figures(where: Selection = ALL) -> tuple[list[tuple[Row, Figure]], list[Damage]]:
    """A pair per figure of a record."""
    found, damages = records(where)
    return [(row, figure) for row in found for figure in row.figures], damages


def samples(where: Selection = ALL) -> tuple[list[Samples], list[Damage]]:
    """What each launch measured, per record and figure of its variant, also of records that are not valid."""

    def make(record: dict[str, Any]) -> Made[list[Samples] | None]:
        row = rows.of_record(record)
        return row.time, row.id, rows.samples_of_record(record, row) if where.admits(row) else None

    found, damages = _ask(where.site, _question(where, {**ROW, "launches": [LAUNCH]}), make)
    return [item for items in found if items is not None for item in items], damages


def ids(prefix: str = "") -> list[str]:
    """The ids that begin with ``prefix``, those of the oldest records first."""
    question = Question(json.dumps({"id": "JSON", "time": "JSON"}), "starts_with(json ->> '$.id', $id)", {"id": prefix})
    found, _ = _ask(None, question, lambda record: (record["time"], record["id"], record["id"]))
    return [name for name in found if name.startswith(prefix)]


def full(wanted: Collection[str]) -> tuple[list[dict[str, Any]], list[Damage]]:
    """The whole records with these ids (all twelve digits), oldest first, checked against their schema."""
    known = {name for name in wanted if re.fullmatch("[0-9a-f]{12}", name)}
    listed = ", ".join(f"'{name}'" for name in sorted(known))
    question = Question(None, f"(json ->> '$.id') IN ({listed})" if listed else "false")
    found, damages = _ask(None, question, lambda record: (record["time"], record["id"], record))
    answer = []
    for record in found:
        if record["id"] in known:
            try:
                schemas.check("record", record, record["id"])
            except PlumbError as error:
                damages.append(Damage(paths.results(), 0, f"record {record['id']}: {error.what}"))
                continue
            answer.append(record)
    return answer, damages


def _question(where: Selection, members: dict[str, Any]) -> Question:
    values = {name: value for name in CONDITIONS if (value := getattr(where, name)) is not None}
    condition = " AND ".join(CONDITIONS[name] for name in values) or "true"
    return Question(json.dumps(members), condition, values)


def _ask(
    site: str | None, question: Question, make: Callable[[dict[str, Any]], Made[Answer]]
) -> tuple[list[Answer], list[Damage]]:
    """What ``make`` wants of each record, oldest first, no id twice, and all damage in the order of the files."""
    made, damages = sources.steady(lambda found: scan(found, question, make), site)
    places: dict[str, list[Origin]] = {}
    answers: dict[str, Made[Answer]] = {}
    for origin in sorted(made):
        for item in made[origin]:
            answers[item[1]] = item
            places.setdefault(item[1], []).append(origin)
    for name, origins in places.items():
        if len(origins) > 1:
            first, others = _same_id(name, origins)
            damages += others
            if first is not None:
                answers[name] = make(first)
    ordered = sorted(answers.values(), key=lambda item: item[:2])
    return [value for _, _, value in ordered], sorted(damages, key=lambda damage: (damage.file, damage.line))


def _same_id(name: str, origins: list[Origin]) -> tuple[dict[str, Any] | None, list[Damage]]:
    """The first whole record of an id that was found several times, and the damage that those different from it are."""
    found = [(origin, number, record) for origin in dict.fromkeys(origins) for number, record in named(origin, name)]
    if not found:  # all gone meanwhile
        return None, []
    first = found[0][2]
    return first, [store.repeated(origin[0], number, name) for origin, number, item in found if item != first]
