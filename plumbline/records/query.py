"""Questions to the records, answered straight from their files: no server, no index, no lock.

The functions return what they found, oldest first, with the lines that could not be read
(:class:`plumbline.records.store.Damage`: print them to stderr as ``plumb: damaged record: …``). Session files
(``results/SITE/SESSION.jsonl``) and compacted ones (``results/SITE/compact/*.jsonl.gz``) are read alike, and every line
is checked whole.

- :func:`records`: a :class:`~plumbline.records.model.Row` per record (lists, history, references);
- :func:`full`: whole records, by their ids; :func:`of_rows`: those of rows; :func:`find`: one, by how its id begins;
- :func:`collect`: anything else, made from each record while it is in memory.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from plumbline.base import paths
from plumbline.base.errors import PlumbError, suggest
from plumbline.records import compact, sources, store
from plumbline.records.compact import Unreadable
from plumbline.records.model import AnyRecord, Record, Row
from plumbline.records.sources import Sources
from plumbline.records.store import Damage
from plumbline.records.variant import Variant

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Selection:
    """Which records: all conditions that are set must hold. Times are UTC, ISO 8601, and may be shortened.

    ``test`` is a regular expression that a test's name, with its parameters but without blanks, begins with, and
    ``campaign`` the beginning of an id; ``since`` is included, ``until`` is not; ``valid`` keeps only records that are
    complete, verified and not invalid, ``comparable`` only these and imported ones; ``plain`` leaves out the records of
    experiments.
    """

    site: str | None = None
    partition: str | None = None
    test: str | None = None
    since: str | None = None
    until: str | None = None
    campaign: str | None = None
    session: str | None = None
    stack: str | None = None
    valid: bool = False
    comparable: bool = False
    plain: bool = False

    def admits(self, record: AnyRecord) -> bool:
        """Whether ``record`` is wanted (``site`` apart, which is the folder that is read)."""
        return (
            (self.test is None or begins(record.variant, self.test))
            and (self.partition is None or record.partition == self.partition)
            and (self.since is None or record.time >= self.since)
            and (self.until is None or record.time < self.until)
            and (self.campaign is None or (record.campaign or "").startswith(self.campaign))
            and (self.session is None or record.session == self.session)
            and (self.stack is None or record.stack.name == self.stack)
            and (not self.valid or record.is_valid)
            and (not self.comparable or record.is_comparable)
            and (not self.plain or not record.is_experiment)
        )


ALL = Selection()
#: so many campaigns are named where there is none of an id
NEWEST = 6


def records(where: Selection = ALL) -> tuple[list[Row], list[Damage]]:
    """A row per record."""
    return collect(_row_maker(), where)


def with_sums(where: Selection = ALL) -> tuple[list[tuple[Row, str]], list[Damage]]:
    """A row per record, with the text that identifies its content: its seal, or a SHA-256 if it has no seal."""
    row = _row_maker()
    return collect(lambda item: (row(item), item.seal or hashlib.sha256(msgspec.json.encode(item)).hexdigest()), where)


def _row_maker() -> Callable[[Record], Row]:
    """A function that makes rows, which share equal objects: most records have the same host, stack and variant."""
    known: dict[bytes, Any] = {}

    def make(record: Record) -> Row:
        row = record.row()
        for name in ("host", "stack", "variant"):
            item = getattr(row, name)
            setattr(row, name, known.setdefault(msgspec.json.encode(item), item))
        return row

    return make


def begins(variant: Variant, pattern: str) -> bool:
    """Whether the name of the test of ``variant``, as ReFrame shows it, begins with what ``pattern`` matches."""
    return re.match(pattern, variant.name.replace(" ", "")) is not None


def require(where: Selection) -> None:
    """Raise :class:`PlumbError` if there are records, but none of a test, stack, partition or campaign of ``where``."""
    known, _ = records()
    for name, title, names in (
        ("test", "a test whose name begins with", {row.variant.test for row in known}),
        ("stack", "stack", {row.stack.name for row in known}),
        ("partition", "partition", {row.partition for row in known}),
        ("campaign", "a campaign whose id begins with", sorted({row.campaign or "" for row in known})[-NEWEST:]),
    ):
        wanted = getattr(where, name)
        if wanted and known and not any(Selection(**{name: wanted}).admits(row) for row in known):
            cure = suggest(wanted, sorted(filter(None, names)))
            raise PlumbError(f"no record of {title} '{wanted}'", str(paths.results()), cure)


def full(wanted: Collection[str], files: Collection[str] | None = None) -> tuple[list[Record], list[Damage]]:
    """The whole records with these ids (all twelve digits); ``files`` limits the search to session files so named."""
    return collect(lambda record: record if record.id in wanted else None, only=files)


def of_rows(rows: Sequence[AnyRecord]) -> tuple[list[Record], list[Damage]]:
    """The whole records of ``rows``.

    Session files are named after their session, so only those of ``rows`` are read. Records that are not there are
    looked for in what was compacted of these files, then everywhere.
    """
    wanted = {row.id for row in rows}
    by_id: dict[str, Record] = {}
    damages: list[Damage] = []
    sessions = dict.fromkeys((row.site, row.session) for row in rows if Path(row.session).name == row.session)
    files = [file for site, session in sessions if (file := store.session_file(site, session)).is_file()]
    for item in (item for file in files for item in store.read(file)):
        if isinstance(item, Damage):
            damages.append(item)
        elif item.id in wanted:
            by_id.setdefault(item.id, item)
    for names in ({f"{row.session}.jsonl" for row in rows if row.id not in by_id}, None):
        if missing := wanted - by_id.keys():
            records, more = full(missing, names)
            by_id |= {record.id: record for record in records}
            damages += more
    return list(by_id.values()), damages


def find(prefix: str) -> Record:
    """The record whose id begins with ``prefix``, or for ``last`` the newest, of no experiment if there is one.

    Raises :class:`PlumbError` if there is none, or several.
    """
    if prefix == "last":
        ids, _ = collect(lambda record: (not record.is_experiment, record.time, record.id))
        if not ids:
            raise sources.none_yet()
        prefix = max(ids)[-1]
    matches, damages = collect(lambda record: record if record.id.startswith(prefix) else None, mention=f'"{prefix}')
    if not matches and damages:
        raise PlumbError(f"the record is damaged: {damages[0].reason}", f"{damages[0].file}:{damages[0].line}")
    if not matches:
        raise PlumbError(f"no record '{prefix}'", str(paths.results()), "plumb list shows the ids")
    if len(matches) > 1:
        some = ", ".join(record.id for record in matches[:4])
        raise PlumbError(f"'{prefix}' begins {len(matches)} ids", some, "give more of the id")
    return matches[0]


def collect(
    make: Callable[[Record], Answer | None],
    where: Selection = ALL,
    mention: str = "",
    only: Collection[str] | None = None,
) -> tuple[list[Answer], list[Damage]]:
    """The answers of ``make`` for each record, oldest first, no id twice, and all damage in the order of the files.

    None is no answer. Only lines with the text ``mention`` are looked at, and only session files whose names are in
    ``only``, compacted or not, which saves most of the time where few are wanted.
    """
    return sources.steady(lambda present: _collect(present, make, where, mention.encode(), only), where.site)


class _Made(NamedTuple):
    """The answer for a record, with time, id, line number and hash of the record."""

    time: str
    id: str
    number: int
    digest: int
    answer: Any


def _collect(
    present: Sources,
    make: Callable[[Record], Answer | None],
    where: Selection,
    mention: bytes,
    only: Collection[str] | None,
) -> tuple[list[Answer], list[Damage]]:
    def take(file: Path, number: int, line: bytes) -> _Made | Damage:
        item = store.parse(file, number, line)
        if isinstance(item, Damage):
            return item
        answer = make(item) if where.admits(item) else None
        return _Made(item.time, item.id, number, hash(line.strip()), answer)

    parts, faults = compact.current(present)
    answers: list[_Made] = []
    damages = [Damage(part, 0, why) for part, why in faults.items()]
    digests: dict[str, int] = {}
    for file, lines in _files(present.sessions, parts, only):
        items: list[_Made | Damage]
        try:
            items = [take(file, number, line) for number, line in lines if mention in line]
        except (OSError, Unreadable) as error:
            items = [store.unreadable(file, error)]
        for item in items:
            if isinstance(item, Damage):
                damages.append(item)
            elif item.id not in digests:
                digests[item.id] = item.digest
                answers += [item] if item.answer is not None else []
            elif digests[item.id] != item.digest:
                damages.append(Damage(file, item.number, f"another record has the id {item.id} too"))
    sources.check_present(damage.file for damage in damages)
    answers.sort(key=lambda item: item[:2])
    return [item.answer for item in answers], sorted(damages, key=lambda damage: (damage.file, damage.line))


def _files(
    sessions: list[Path], parts: dict[Path, set[str]], only: Collection[str] | None
) -> Iterator[tuple[Path, Iterator[tuple[int, bytes]]]]:
    yield from ((file, store.lines(file)) for file in sessions if only is None or file.name in only)
    for part, known in parts.items():
        inside = known if only is None else known.intersection(only)
        yield part, ((number, text + b"\n") for _, number, text in compact.lines(part, inside))
