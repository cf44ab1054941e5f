"""All record files at once, fast: the engine parses them and hands on only the members that are asked for.

Nothing damaged gets through. What the engine hands on has a *shape*: the names of all members of the record, the types
of those handed on, and the words where the schema allows only some. The first record of each shape is read again, with
its whole file, by :mod:`plumbline.records.store` and checked against the schema; its likes are trusted only if it
passed. A file with a record of a shape that did not pass, or with a line that is no JSON, is read that way too. What no
query uses (the plan, the ranks' maps) is not looked at: ``plumb show`` and ``plumb compact`` check the whole record.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from plumbline.records import parts, rows, store
from plumbline.records.sources import Sources, batches, check_present, connect, names
from plumbline.records.store import Damage

if TYPE_CHECKING:
    import duckdb

#: a line may be this long (bytes)
LONGEST = 64 * 1024 * 1024
#: files and bytes given to the engine at a time, rows fetched from it at a time: they bound the memory taken
FILES, BYTES, ROWS = 512, 64_000_000, 500
#: session files asked of a Parquet file at a time: its rows come by the thousand, and parsing them takes memory
SOURCES = 128
Made = TypeVar("Made")
Record = dict[str, Any]
#: where a record came from: a session file, or a part and the name of the session file in it
Origin = tuple[Path, str]


@dataclass(frozen=True)
class Question:
    """What is asked of each record.

    ``members`` is the structure (as ``json_transform`` takes it) that records are reduced to, None for whole records.
    ``condition`` is SQL on the column ``json``, with ``values`` for its parameters. It only spares work: a few records
    that it refuses come nevertheless.
    """

    members: str | None
    condition: str = "true"
    values: dict[str, str] = field(default_factory=dict)


def scan(
    sources: Sources, question: Question, make: Callable[[Record], Made]
) -> tuple[dict[Origin, list[Made]], list[Damage]]:
    """What ``make`` makes of each record, by origin and in no order, and what could not be read.

    ``make`` gets records that obey the schema as far as ``question.members`` goes, or whole ones. Raises
    :class:`~plumbline.records.sources.Vanished` if a file is gone meanwhile.
    """
    reader = _Reader(question, make)
    files = []
    for file in sources.sessions:
        if file.is_file() and os.access(file, os.R_OK):
            files.append(file)
        else:
            reader.read_again((file, ""))
    with connect() as engine:
        for batch in batches(files, FILES, BYTES):
            reader.sessions(engine, batch)
        if sources.parts:
            wanted, faults = parts.current(sources)
            reader.damages += [Damage(part, 0, why) for part, why in faults.items()]
            for part, inside in wanted.items():
                reader.part(engine, part, inside)
    check_present(damage.file for damage in reader.damages)
    return reader.made, sorted(reader.damages, key=lambda damage: (damage.file, damage.line))


class _Reader(Generic[Made]):
    """Collects what one scan finds."""

    def __init__(self, question: Question, make: Callable[[Record], Made]) -> None:
        self.question = question
        self.make = make
        self.made: dict[Origin, list[Made]] = {}
        self.damages: list[Damage] = []
        self.trusted: set[Any] = set()
        self.again: set[Origin] = set()
        self.hosts: dict[str, Any] = {}

    def sessions(self, engine: duckdb.DuckDBPyConnection, files: list[Path]) -> None:
        """Read session files; one by one and slowly if the engine gives up on one of them."""
        import duckdb

        table = (
            "SELECT filename AS file, '' AS source, json FROM read_ndjson_objects(string_split($files, chr(0)), "  # noqa: S608
            f"filename = true, hive_partitioning = false, ignore_errors = true, maximum_object_size = {LONGEST})"
        )
        try:
            self._take(engine, table, {"files": "\0".join(names(files))})
        except duckdb.Error:
            check_present(files)
            for file in files:
                if (file, "") not in self.again:
                    self.read_again((file, ""))

    def part(self, engine: duckdb.DuckDBPyConnection, part: Path, inside: set[str]) -> None:
        """Read the rows of a Parquet file whose source is ``inside``; all or none count."""
        import duckdb

        table = (
            "SELECT $part AS file, source, CAST(json AS JSON) AS json FROM read_parquet($file) "
            "WHERE source BETWEEN $first AND $last AND source IN (SELECT unnest(string_split($inside, chr(0))))"
        )
        (file,), sources = names([part]), sorted(inside)
        try:
            for start in range(0, len(sources), SOURCES):
                chosen = sources[start : start + SOURCES]
                bounds = {"first": chosen[0], "last": chosen[-1], "inside": "\0".join(chosen)}
                self._take(engine, table, {"file": file, "part": str(part), **bounds})
        except duckdb.Error as error:
            check_present([part])
            self.made = {origin: made for origin, made in self.made.items() if origin[0] != part}
            self.damages = [damage for damage in self.damages if damage.file != part]
            self.damages.append(Damage(part, 0, parts.reason(error)))

    def _take(self, engine: duckdb.DuckDBPyConnection, table: str, values: dict[str, Any]) -> None:
        rows = engine.execute(_sql(self.question, table), {**values, **self.question.values})
        while batch := rows.fetchmany(ROWS):
            for file, source, keys, text, host, wanted in batch:
                origin = (Path(file), source)
                if origin in self.again:
                    continue
                record = json.loads(text) if text is not None else {}
                if not self._is_sound(origin, keys, record):
                    self.read_again(origin)
                elif wanted:
                    if host is not None:
                        record["host"] = self._host(host)
                    self.made.setdefault(origin, []).append(self.make(record))

    def _is_sound(self, origin: Origin, keys: str | None, record: Record) -> bool:
        try:
            found = keys, shape(record)
        except (AttributeError, KeyError, TypeError):  # a member is of another kind than the schema's
            return False
        if found not in self.trusted:
            if keys is None or any(isinstance(item, Damage) for item in _read(origin)):
                return False
            self.trusted.add(found)
        return True

    def read_again(self, origin: Origin) -> None:
        """Replace what is known of ``origin`` by what :mod:`plumbline.records.store` reads there."""
        items = _read(origin)
        self.again.add(origin)
        self.damages += [item for item in items if isinstance(item, Damage)]
        self.made[origin] = [self.make(item) for item in items if not isinstance(item, Damage)]

    def _host(self, text: str) -> Any:
        """Most records have the same host: one object serves them all."""
        if text not in self.hosts:
            self.hosts[text] = json.loads(text)
        return self.hosts[text]


def _read(origin: Origin) -> list[Record | Damage]:
    return [item for _, item in _numbered(origin)]


def _numbered(origin: Origin) -> list[tuple[int, Record | Damage]]:
    file, source = origin
    if not source:
        return list(store.numbered(file))
    found = parts.lines(file, {source})
    return [(number, store.parse(file, number, text.encode() + b"\n")) for _, number, text in found]


def named(origin: Origin, name: str) -> list[tuple[int, Record]]:
    """The whole records at ``origin`` that have the id ``name``, each with the number of its line."""
    return [(number, item) for number, item in _numbered(origin) if not isinstance(item, Damage) and item["id"] == name]


def shape(record: Record) -> Any:
    """What tells records apart that may differ in whether they obey the schema.

    >>> shape({"state": "complete", "time": "2026", "nodes": ["a", "b"]}) == shape(
    ...     {"state": "complete", "time": "2027", "nodes": ["c"]})
    True
    >>> shape({"nodes": ["a", None]}) == shape({"nodes": ["a"]})
    False
    """
    return tuple(
        _SHAPES[name](value) if name in _SHAPES and value is not None else type(value) for name, value in record.items()
    )


def _word(value: Any) -> Any:
    return value if isinstance(value, str | int) else type(value)


def _identity(value: Any) -> Any:
    return bool(_ID.search(value))


def _members(value: Any) -> Any:
    """Of an object with fixed members, or a list of such."""
    if isinstance(value, dict):
        return tuple((name, _members(inner)) for name, inner in value.items())
    return frozenset(map(_members, value)) if isinstance(value, list) else type(value)


def _variant(value: Any) -> Any:
    kinds = tuple((name, type(inner)) for name, inner in value.items())
    wanted = frozenset(tuple((name, type(inner)) for name, inner in figure.items()) for figure in value["figures"])
    return kinds, wanted


def _figures(value: Any) -> Any:
    return frozenset((_members(figure), _word(figure["better"])) for figure in value)


def _launches(value: Any) -> Any:
    return frozenset(map(_launch, value))


def _launch(value: Any) -> Any:
    kinds = tuple((name, type(inner)) for name, inner in value.items())
    signs = value.get("index", 0) >= 0, value.get("order", 0) >= 0
    measured = frozenset(
        (type(item["metric"]), type(item["value"]), type(item["unit"]), _word(item["better"]), type(item["params"]))
        for item in value.get("measurements", ())
    )
    return kinds, signs, _word(value.get("status")), measured


_ID = re.compile("^[0-9a-f]{12}$")
_SHAPES: dict[str, Callable[[Any], Any]] = {
    "schema": _word,
    "id": _identity,
    "state": _word,
    "verdict": _word,
    "nodes": _members,
    "reasons": _members,
    "suite": _members,
    "stack": _members,
    "placement": _members,
    "variant": _variant,
    "figures": _figures,
    "launches": _launches,
}


def _sql(question: Question, table: str) -> str:
    record, host = "CAST(json AS VARCHAR)", "NULL"
    if question.members is not None:
        record = f"CAST(to_json(json_transform(json, '{question.members}')) AS VARCHAR)"
        fleeting = json.dumps(dict.fromkeys(rows.FLEETING))
        host = f"CAST(json_merge_patch(json -> '$.host', '{fleeting}') AS VARCHAR)"
    keys = "array_to_string(json_keys(json), ' ') || json_type(json, '$.host')"
    return f"""
        SELECT file, source, {keys}, {record}, {host}, coalesce({question.condition}, true)
        FROM ({table})"""  # noqa: S608 - conditions are constants, values are parameters
