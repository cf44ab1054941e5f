"""Questions to the records, answered from their index and their files: no server.

The functions return what they found, oldest first, with the lines that could not be read
(:class:`plumbline.records.store.Damage`: print them to stderr as ``plumb: damaged record: …``). Session files
(``results/SITE/SESSION.jsonl``) and compacted ones (``results/SITE/compact/*.jsonl.gz``) are read alike. A line
is checked when it comes into the index (:mod:`plumbline.records.index`), of a sealed one that which its row needs, and
whole whenever the record is read.

- :func:`records`: a :class:`~plumbline.records.model.Row` per record (lists, history, references); :func:`each`: a
  stream of them; :func:`count`: their number;
- :func:`full`: whole records, by their ids; :func:`of_rows`: those of rows; :func:`find`: one, by how its id begins;
- :func:`collect`: anything else, made from each record while it is in memory.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from plumbline.base import group, paths
from plumbline.base.errors import PlumbError, suggest
from plumbline.records import compact, sources, store
from plumbline.records.compact import Unreadable
from plumbline.records.index import COMPARABLE, OF_LINES, PLAIN, VALID, Index, ask, inside, place
from plumbline.records.model import AnyRecord, Record, Row
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
#: rows that a stream holds
CHUNK = 5000
#: a text after all that begin alike
LAST = "\U0010ffff"


class Line(NamedTuple):
    """Where a record is: the name of its session file, the file that is read, and the line in it."""

    id: int
    path: bytes
    file: bytes
    number: int
    start: int
    length: int
    record: str
    sum: str
    time: str


def records(where: Selection = ALL, newest: int | None = None) -> tuple[list[Row], list[Damage]]:
    """A row per record, of all or of the ``newest`` so many."""
    known, damages = with_sums(where, newest)
    return [row for row, _ in known], damages


def with_sums(where: Selection = ALL, newest: int | None = None) -> tuple[list[tuple[Row, str]], list[Damage]]:
    """A row per record, with the text that identifies its content: its seal, or a SHA-256 if it has no seal."""

    def answer(index: Index) -> tuple[list[tuple[Row, str]], list[Damage]]:
        damages = _faults(index, where)
        end = ", l.record" if newest is None else f" DESC, l.record DESC LIMIT {newest}"
        lines = [*_rows(index, where, end=end)]
        index.verify({line.file for line, _ in lines})
        known = [(row, line.sum) for line, row in lines if where.admits(row)]
        return known if newest is None else known[::-1], damages

    return ask(answer, where.site, few=newest is not None)


def each(where: Selection = ALL) -> tuple[Iterator[Row], list[Damage]]:
    """The rows of :func:`records` one at a time, where memory cannot hold all."""

    def chunk(index: Index, after: tuple[str, str]) -> tuple[str, list[tuple[Line, Row]], list[Damage]]:
        damages, end = _faults(index, where), f", l.record LIMIT {CHUNK}"
        return index.name, list(_rows(index, where, "(l.time, l.record) > (?, ?)", after, end)), damages

    name, first, damages = ask(lambda index: chunk(index, ("", "")), where.site)

    def rows() -> Iterator[Row]:
        some = first
        while some:
            yield from (row for _, row in some if where.admits(row))
            after = some[-1][0].time, some[-1][0].record
            _, some, _ = ask(lambda index: chunk(index, after), where.site, name)  # noqa: B023 - called at once

    return rows(), damages


def count(where: Selection = ALL) -> int:
    """How many records there are, of all sessions."""

    def answer(index: Index) -> int:
        _faults(index, where)
        return int(index.first(*_select(index, where, "count(*)")))

    return ask(answer, where.site, few=True)


def begins(variant: Variant, pattern: str) -> bool:
    """Whether the name of the test of ``variant``, as ReFrame shows it, begins with what ``pattern`` matches."""
    return re.match(pattern, variant.name.replace(" ", "")) is not None


def require(where: Selection) -> None:
    """Raise :class:`PlumbError` if there are records, but none of a test, stack, partition or campaign of ``where``."""
    for name, title, value in (
        ("test", "a test whose name begins with", lambda row: row.variant.test),
        ("stack", "stack", lambda row: row.stack.name),
        ("partition", "partition", lambda row: row.partition),
        ("campaign", "a campaign whose id begins with", lambda row: row.campaign),
    ):
        wanted = getattr(where, name)
        if wanted and not count(Selection(**{name: wanted})) and count():
            names = sorted(set(filter(None, map(value, each()[0]))))
            raise PlumbError(
                f"no record of {title} '{wanted}'",
                str(paths.results()),
                suggest(wanted, names[-NEWEST:] if name == "campaign" else names),
            )


def full(wanted: Collection[str], site: str | None = None) -> tuple[list[Record], list[Damage]]:
    """The whole records with these ids (all twelve digits), of all sites or of one."""
    return collect(lambda record: record, Selection(site=site), wanted)


def of_rows(rows: Sequence[AnyRecord]) -> tuple[list[Record], list[Damage]]:
    """The whole records of ``rows``."""
    wanted, sites = {row.id for row in rows}, {row.site for row in rows}
    where = Selection(site=sites.pop() if len(sites) == 1 else None)
    # the rows are of the index as it is; if not, or if the folder is that of another site, it is read once more
    whole, damages = collect(lambda record: record, where, wanted, None)
    return (whole, damages) if len(whole) == len(wanted) else full(wanted)


def find(prefix: str) -> Record:
    """The record whose id begins with ``prefix``, or for ``last`` the newest, of no experiment if there is one.

    Raises :class:`PlumbError` if there is none, or several.
    """
    if prefix == "last":
        newest = records(Selection(plain=True), 1)[0] or records(newest=1)[0]
        if not newest:
            raise sources.none_yet()
        prefix = newest[0].id
    ids, damages = named(prefix)
    if not ids and damages:
        raise PlumbError(f"the record is damaged: {damages[0].reason}", f"{damages[0].file}:{damages[0].line}")
    if not ids:
        raise PlumbError(f"no record '{prefix}'", str(paths.results()), "plumb list shows the ids")
    if len(ids) > 1:
        raise PlumbError(f"'{prefix}' begins {len(ids)} ids", ", ".join(ids[:4]), "give more of the id")
    (record,), _ = full(ids)
    return record


def named(prefix: str) -> tuple[list[str], list[Damage]]:
    """The ids that begin with ``prefix``, and the damage of lines with such ids and of whole files."""
    bounds = [prefix, prefix + LAST]

    def answer(index: Index) -> tuple[list[str], list[Damage]]:
        damages = _faults(index, ALL)
        ids = index.all(*_select(index, ALL, "DISTINCT l.record", "l.record >= ? AND l.record < ?", bounds))
        query = f"SELECT s.file, l.number {OF_LINES} WHERE l.damage IS NOT NULL AND l.record >= ? AND l.record < ?"
        lines = {(place(file), number) for file, number in index.all(query, bounds)}
        return sorted(name for (name,) in ids), [
            damage for damage in damages if not damage.line or (damage.file, damage.line) in lines
        ]

    return ask(answer, few=True)


def collect(
    make: Callable[[Record], Answer | None],
    where: Selection = ALL,
    only: Collection[str] | None = None,
    current: str | None = "-",
) -> tuple[list[Answer], list[Damage]]:
    """The answers of ``make`` for each record, oldest first, no id twice, and all damage in the order of the files.

    None is no answer. Only records with an id in ``only`` are read; ``current`` is that of
    :func:`~plumbline.records.index.ask`.
    """

    def answer(index: Index) -> tuple[list[Answer], list[Damage]]:
        damages = _faults(index, where)
        lines = _lines(index, where, only)
        answers = [
            (line.time, line.record, make(record)) for line, record in _whole(index, lines) if where.admits(record)
        ]
        return [item for _, _, item in sorted(answers, key=lambda item: item[:2]) if item is not None], damages

    return ask(answer, where.site, current, few=only is not None)


_COLUMNS = ", ".join(f"{'s' if name in ('path', 'file') else 'l'}.{name}" for name in Line._fields)


def _select(
    index: Index, where: Selection, columns: str, more: str = "", values: Sequence[Any] = (), end: str = ""
) -> tuple[str, list[Any]]:
    """The query for lines that ``where`` keeps (``session`` apart), and its values; ``end``: its order."""
    flags = VALID * where.valid | COMPARABLE * where.comparable | PLAIN * where.plain
    conditions: list[tuple[Any, str, Sequence[Any]]] = [
        (True, "s.live AND l.damage IS NULL", ()),
        (where.site, "s.site = ?", [os.fsencode(where.site or "")]),
        (where.partition, "l.partition = ?", [where.partition]),
        (where.since, "l.time >= ?", [where.since]),
        (where.until, "l.time < ?", [where.until]),
        (where.campaign, "l.campaign >= ? AND l.campaign < ?", [where.campaign, f"{where.campaign}{LAST}"]),
        (flags, "l.flags & ? = ?", [flags, flags]),
        (index.first("SELECT count(*) FROM dropped"), "l.id NOT IN dropped", ()),
        (more, more, values),
    ]
    if where.test is not None:
        pattern = where.test
        conditions.append((True, index.among("variant", lambda variant: begins(variant, pattern)), ()))
    if where.stack is not None:
        conditions.append((True, index.among("stack", lambda stack: stack.name == where.stack), ()))
    used = [(text, bound) for is_used, text, bound in conditions if is_used]
    by_site = where.site and not where.campaign and not more.startswith("l.record")
    tables = "FROM sources AS s CROSS JOIN lines AS l ON l.source = s.id" if by_site else OF_LINES
    # a plus keeps SQLite from reading all lines by time where few are wanted
    order = f"ORDER BY {'+' if where.site or where.campaign else ''}l.time{end}" if end else ""
    query = f"SELECT {columns} {tables} WHERE {' AND '.join(text for text, _ in used)} {order}"
    return query, [value for _, bound in used for value in bound]


def _lines(index: Index, where: Selection, only: Collection[str] | None) -> list[Line]:
    """The lines that ``where`` keeps, those of the ids in ``only``."""
    conditions = [("", ())] if only is None else [("l.record = ?", (name,)) for name in only]
    queries = (_select(index, where, _COLUMNS, *condition) for condition in conditions)
    return [Line(*line) for query in queries for line in index.all(*query)]


def _faults(index: Index, where: Selection) -> list[Damage]:
    """The damage, by file and line; lines whose ids an earlier line has go to the table ``dropped`` of the index."""
    damages, first = index.damages(where.site), dict[str, str]()
    index.database.execute("DELETE FROM dropped")
    for identity, record, text, file, number in index.twice(where.site):
        if record in first:
            index.database.execute("INSERT INTO dropped VALUES(?)", [identity])
        if first.setdefault(record, text) != text:
            damages.append(Damage(place(file), number, f"another record has the id {record} too"))
    sources.check_present(damage.file for damage in damages)
    return sorted(damages, key=lambda damage: (damage.file, damage.line))


def _rows(
    index: Index, where: Selection, more: str = "", values: Sequence[Any] = (), end: str = ", l.record"
) -> Iterator[tuple[Line, Row]]:
    """The lines that ``where`` keeps, oldest first, with their rows."""
    columns = f"(SELECT row FROM rows WHERE line = l.id), l.suite, l.stack, l.variant, l.host, {_COLUMNS}"  # noqa: S608
    for data, *members in index.all(*_select(index, where, columns, more, values, end)):
        line = Line(*members[4:])
        yield line, index.row(data, members[:4]) if data else next(_whole(index, [line]))[1].row()


def _whole(index: Index, lines: Sequence[Line]) -> Iterator[tuple[Line, Record]]:
    """Each line with its record; raises Vanished at the end if a file is not as the index has read it."""
    changed = list[bytes]()
    for file, some in group((line.file, line) for line in lines).items():
        left = len(some)
        with contextlib.suppress(OSError, Unreadable):
            for line, text in _texts(file, some):
                item = store.parse(place(file), line.number, text)
                if isinstance(item, Damage) or item.id != line.record:
                    break
                left -= 1
                yield line, item
        if left:
            index.forget(file)
            changed.append(file)
    if changed:
        raise sources.Vanished(place(changed[0]))


def _texts(file: bytes, lines: Sequence[Line]) -> Iterator[tuple[Line, bytes]]:
    """The text of ``lines`` of one file."""
    if file.endswith(b".jsonl"):
        with place(file).open("rb") as stream:
            for line in lines:
                stream.seek(line.start)
                yield line, stream.read(line.length)
    else:
        wanted = {(inside(file, line.path), line.number): line for line in lines}
        for name, number, text in compact.lines(place(file), {name for name, _ in wanted}):
            if (name, number) in wanted:
                yield wanted[name, number], text + b"\n"
