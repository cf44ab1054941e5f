"""The index of the record files: a file of SQLite that tells a query which lines to read.

It is never the truth. Each question first compares the states (inode, size, times) of the record files with those that
the index has read, and reads what was added or changed since; what is gone leaves the index. A damaged index, and one
of another version, is made anew. It lies in the results folder; where that cannot be written, or locked, in the user's
cache, else in a temporary file, for one command. Few records need none on a disk.

A source is a session file, or its copy in a compacted file; of all sources with a name one is live: the session file,
else that in the last compacted file. A line belongs to a source. It has a row (:class:`~plumbline.records.model.Row`)
in which the parts that most records share are numbers, or the reason why it cannot be read.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import os
import re
import sqlite3
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from plumbline import __version__
from plumbline.base import files, paths, schemas
from plumbline.base.errors import PlumbError
from plumbline.records import compact, sources, store
from plumbline.records.compact import Unreadable
from plumbline.records.model import Record, Row
from plumbline.records.sources import Vanished
from plumbline.records.store import Damage

Answer = TypeVar("Answer")

#: its name in the results folder
NAME = ".index.sqlite3"
#: bytes of record files below which the index is made in memory: reading them takes no longer
SMALL = 8_000_000
#: a file changed so few ns ago is read again: a second change could leave its times as they are
SETTLED = 2_000_000_000
#: seconds to wait for another process that writes the index
PATIENCE = 60.0
#: bytes of record files that are read between two commits
BATCH = 32_000_000
#: seconds after which progress is shown
QUIET = 2.0
#: databases that end with the process: a file without a name, and one in memory
TEMPORARY, MEMORY = "", ":memory:"
#: parts of a row that most records share
SHARED = ("suite", "stack", "variant", "host")
VALID, COMPARABLE, PLAIN = 1, 2, 4
#: the state in a listing of a file to read again
UNSETTLED = b"0 0 0 1 "
_TABLES = """CREATE TABLE sites(name BLOB PRIMARY KEY, listing BLOB);

CREATE TABLE sources(id INTEGER PRIMARY KEY, site BLOB, path BLOB, file BLOB, live INTEGER);

CREATE TABLE lines(id INTEGER PRIMARY KEY AUTOINCREMENT, source INTEGER, number INTEGER, start INTEGER, length INTEGER,
    record TEXT, sum BLOB, time TEXT, campaign TEXT, partition TEXT, stack INTEGER, variant INTEGER, flags INTEGER,
    damage TEXT);

CREATE TABLE rows(line INTEGER PRIMARY KEY, row BLOB);

CREATE TABLE shared(id INTEGER PRIMARY KEY, part TEXT, data BLOB, UNIQUE(part, data));

CREATE TABLE twice(record TEXT PRIMARY KEY) WITHOUT ROWID;

CREATE INDEX sources_site ON sources(site);

CREATE INDEX sources_path ON sources(path);

CREATE INDEX sources_file ON sources(file);

CREATE INDEX lines_source ON lines(source);

CREATE INDEX lines_time ON lines(time, record);

CREATE INDEX lines_record ON lines(record);

CREATE INDEX lines_campaign ON lines(campaign);

CREATE INDEX lines_damage ON lines(damage) WHERE damage IS NOT NULL;

CREATE TRIGGER forget AFTER DELETE ON sources BEGIN
    DELETE FROM rows WHERE line IN (SELECT id FROM lines WHERE source = old.id);
    DELETE FROM lines WHERE source = old.id;
END;"""
#: lines, and the sources that they are of; those that count, of all sites or of one
OF_LINES = "FROM lines AS l CROSS JOIN sources AS s ON s.id = l.source"
_OF_SITE = "s.live AND s.site = coalesce(?, s.site)"
_LIVE = """
UPDATE sources SET live = id = (
    SELECT other.id FROM sources AS other WHERE other.path = sources.path
    ORDER BY other.file = other.path DESC, other.file DESC LIMIT 1
) WHERE path IN (SELECT path FROM touched)
"""
_TWICE = """
INSERT OR IGNORE INTO twice SELECT new.record FROM lines AS new JOIN lines AS old ON new.record = old.record
WHERE new.id > ? AND new.id <> old.id
"""
#: the path of a compacted file
_PART = re.compile(rb"(?:^|/)compact/[^/]*(?:\.jsonl\.gz|\.parquet)$")
#: the id in a damaged line
_ID = re.compile(rb'"id": ?"([0-9a-f]{1,12})')
_FIELDS = {field.name: field.type for field in msgspec.structs.fields(Row)}
_OTHERS = [name for name in _FIELDS if name not in SHARED]
#: a row as the index keeps it
_Kept: Any = msgspec.defstruct(
    "_Kept", [*((name, int) for name in SHARED), *((name, _FIELDS[name]) for name in _OTHERS)], array_like=True
)
_KEPT: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(_Kept)
_PARTS: dict[str, msgspec.msgpack.Decoder[Any]] = {name: msgspec.msgpack.Decoder(_FIELDS[name]) for name in SHARED}


def ask(question: Callable[[Index], Answer], site: str | None = None, current: str | None = "-") -> Answer:
    """The answer of ``question`` to the index of all record files, or of those of one site.

    ``current`` is the name of an index that was asked just before, and need not be compared with the files again; None
    stands for whichever there is.
    Raises :class:`PlumbError` if the files change all the time, or the results are not a folder.
    """
    if paths.results().exists() and not paths.results().is_dir():
        raise PlumbError("the results are not a folder", str(paths.results()), "name the folder of the records")
    for _ in range(sources.TRIES):
        try:
            return _ask(question, site, current)
        except Vanished as error:
            last, current = error, "-"
    raise PlumbError(f"the records change while they are read: {last} was removed", str(paths.results()), "try again")


def _ask(question: Callable[[Index], Answer], site: str | None, current: str | None) -> Answer:
    for name in _names(site):
        for _ in range(2):
            inode = _inode(name)
            try:
                with _opened(name) as index:
                    if current not in (name, None):
                        index.refresh(site)
                    return question(index)
            except sqlite3.OperationalError as error:  # no lock, no room, no permission
                why: Exception = error
                break
            except sqlite3.DatabaseError as error:
                why = error
                _remove(name, inode)
    raise PlumbError(f"the records cannot be indexed: {why}", str(paths.results()), "make room in TMPDIR") from why


@contextlib.contextmanager
def _opened(name: str) -> Iterator[Index]:
    if name in (TEMPORARY, MEMORY):
        yield _kept(name, paths.results(), threading.get_ident())
        return
    with contextlib.closing(sqlite3.connect(name, PATIENCE, isolation_level=None)) as database:
        yield Index(database, name)


@functools.lru_cache(maxsize=2)
def _kept(name: str, *_: Any) -> Index:
    """The index of this thread that ends with it."""
    return Index(sqlite3.connect(name, isolation_level=None), name)


def _names(site: str | None) -> Iterator[str]:
    """Names of the database, the best first."""
    shared = paths.results() / NAME
    is_folder = site is None or Path(site).parts == (site,)
    if is_folder and (shared.exists() or not _is_small(site)):
        yield str(shared)
        folder = Path(os.environ.get("XDG_CACHE_HOME") or f"{os.environ.get('HOME', '/')}/.cache") / "plumbline"
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        yield str(folder / f"{hashlib.sha256(bytes(shared.absolute())).hexdigest()[:16]}.sqlite3")
        yield TEMPORARY
    yield MEMORY


def _is_small(site: str | None) -> bool:
    total = 0
    for name in [os.fsencode(site)] if site else _sites():
        for entry in _listing(name):
            total += int(entry.split(b" ", 2)[1])
            if total > SMALL:
                return False
    return True


def _inode(name: str) -> int:
    with contextlib.suppress(OSError):
        return Path(name).stat().st_ino
    return 0


def _remove(name: str, inode: int) -> None:
    """Remove the damaged database ``name``, unless another process has made it anew."""
    with contextlib.suppress(OSError), files.lock(Path(f"{name}.lock")):
        if inode and _inode(name) == inode:
            Path(f"{name}-journal").unlink(missing_ok=True)
            Path(name).unlink()


def _sites() -> list[bytes]:
    """The folders of sites; the empty one is the results folder without them."""
    try:
        with os.scandir(os.fsencode(paths.results())) as entries:
            return [b"", *sorted(entry.name for entry in entries if os.path.isdir(entry.path))]  # noqa: PTH112 - bytes
    except FileNotFoundError:
        return []


def _listing(site: bytes) -> Iterator[bytes]:
    """Inode, size, times and path of each record file of a site; paths begin below the results folder."""
    folders = [site]
    while folders:
        folder = folders.pop()
        with contextlib.suppress(PermissionError, FileNotFoundError, NotADirectoryError):
            entries = os.scandir(b"%b/%b" % (os.fsencode(paths.results()), folder))
            with entries:
                for entry in entries:
                    path = b"%b/%b" % (folder, entry.name) if folder else entry.name
                    if entry.name.endswith(b".jsonl") or _PART.search(path):
                        yield b"%d %d %d %d %b" % (*_state(entry), path)
                    if folder and entry.is_dir(follow_symlinks=False):
                        folders.append(path)


def _state(entry: os.DirEntry[bytes]) -> tuple[int, int, int, int]:
    """As :func:`plumbline.base.files.state`; zeros for a link that leads nowhere."""
    try:
        status = entry.stat()
    except OSError:
        return 0, 0, 0, 0
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@functools.cache
def _version() -> int:
    """A number for what the index holds: the form of records, and the version of the program that checks them."""
    form = (Path(schemas.__file__).parent / "record.json").read_text(encoding="utf-8")
    return zlib.crc32(f"{__version__} {_TABLES} {form}".encode()) >> 1


class Index:
    """The index in an open ``database``."""

    def __init__(self, database: sqlite3.Connection, name: str) -> None:
        self.database, self.name = database, name
        self._numbers: dict[tuple[str, bytes], int] = {}
        self._parts: dict[int, Any] = {}
        database.execute("PRAGMA cache_size = -65536")
        database.execute("CREATE TEMP TABLE touched(path BLOB PRIMARY KEY)")
        database.execute("CREATE TEMP TABLE dropped(line INTEGER PRIMARY KEY)")
        if self.first("PRAGMA user_version") != _version():
            with self._writing():
                if self.first("PRAGMA user_version") != _version():
                    for kind, name in self.all("SELECT type, name FROM sqlite_master WHERE sql IS NOT NULL"):
                        if kind in ("table", "trigger") and not name.startswith("sqlite_"):
                            database.execute(f"DROP {kind} IF EXISTS {name}")
                    for statement in _TABLES.split("\n\n"):
                        database.execute(statement)
                    database.execute(f"PRAGMA user_version = {_version()}")

    def all(self, query: str, values: Iterable[Any] = ()) -> list[Any]:
        """All rows of an answer."""
        return self.database.execute(query, tuple(values)).fetchall()

    def first(self, query: str, values: Iterable[Any] = ()) -> Any:
        """The first value of an answer; None if it is empty."""
        return (self.database.execute(query, tuple(values)).fetchone() or [None])[0]

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        self.database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.database.execute("COMMIT")
        except BaseException:
            self._numbers.clear()
            with contextlib.suppress(sqlite3.Error):
                self.database.execute("ROLLBACK")
            raise

    def refresh(self, site: str | None) -> None:
        """Read what was added or changed since it was read, all or of one site, and forget what is gone."""
        known = {name for (name,) in self.all("SELECT name FROM sites")}
        for name in [os.fsencode(site)] if site else sorted(known.union(_sites())):
            now = sorted(_listing(name))
            if self._known(name) != b"\0".join(now):
                with _progress(os.fsdecode(name)) as show:
                    while self._step(name, now, show):
                        pass

    def _known(self, site: bytes) -> bytes:
        return self.first("SELECT listing FROM sites WHERE name = ?", [site]) or b""

    def _step(self, site: bytes, now: list[bytes], show: Callable[[int, int], None]) -> bool:
        """Read some of the files that are ``now`` there and not known, in one transaction; whether some are left."""
        with self._writing():
            old = set(self._known(site).split(b"\0")) - {b""}
            new = [entry for entry in now if entry not in old]
            sizes = itertools.accumulate((int(entry.split(b" ", 2)[1]) for entry in new), initial=0)
            batch = {entry: entry for entry, size in zip(new, sizes, strict=False) if size < BATCH}
            gone = old.difference(now)
            last = self.first("SELECT max(id) FROM lines") or 0
            for path in {_path(entry) for entry in (*gone, *batch)}:
                self.database.execute("INSERT OR IGNORE INTO touched SELECT path FROM sources WHERE file = ?", [path])
                self.database.execute("DELETE FROM sources WHERE file = ?", [path])
            for entry in batch:
                if not self._read(site, entry):
                    batch[entry] = UNSETTLED + _path(entry)
            self.database.execute("INSERT OR IGNORE INTO touched SELECT path FROM sources WHERE live IS NULL")
            self.database.execute(_LIVE)
            self.database.execute("DELETE FROM touched")
            self.database.execute(_TWICE, [last])
            listing = b"\0".join(sorted((old - gone).union(batch.values())))
            self.database.execute("INSERT OR REPLACE INTO sites VALUES(?, ?)", [site, listing])
        now[:] = [batch.get(entry, entry) for entry in now]
        show(len(now) - len(new) + len(batch), len(now))
        return len(batch) < len(new)

    def _read(self, site: bytes, entry: bytes) -> bool:
        """Add the lines of a file; whether its state will tell when its content is another, for every user."""
        path, known = _path(entry), dict[bytes, int]()
        file, changed = place(path), max(map(int, entry.split(b" ", 4)[2:4]))

        def source(name: bytes) -> int:
            if name not in known:
                values = [site, name, path]
                added = self.database.execute("INSERT INTO sources(site, path, file) VALUES(?, ?, ?)", values)
                known[name] = added.lastrowid or 0
            return known[name]

        try:
            if path.endswith(b".jsonl"):
                for number, start, line in store.lines(file):
                    self._add(source(path), number, start, line, store.parse(file, number, line))
                source(path)
            else:
                for name, number, text in compact.lines(file):
                    line = text + b"\n"
                    known_as = source(_beside(path) + name.encode("utf-8", "surrogatepass"))
                    self._add(known_as, number, 0, line, store.parse(file, number, line))
        except (OSError, Unreadable) as error:
            self.database.execute("DELETE FROM sources WHERE file = ?", [path])
            known.clear()
            self._add(source(path), 0, 0, b"", store.unreadable(file, error))
            return False
        return time.time_ns() - changed > SETTLED

    def _add(self, source: int, number: int, start: int, line: bytes, item: Record | Damage) -> None:
        values: dict[str, Any] = {"source": source, "number": number, "start": start, "length": len(line)}
        data = None
        if isinstance(item, Damage):
            name = _ID.search(line)
            values |= {"damage": item.reason, "record": name and name[1].decode()}
        else:
            row, numbers = item.row(), dict[str, int]()
            with contextlib.suppress(OverflowError):  # a number of more than 64 bits: the row is read from the file
                numbers = {name: self._number(name, msgspec.msgpack.encode(getattr(row, name))) for name in SHARED}
                data = msgspec.msgpack.encode(_Kept(**numbers, **{name: getattr(row, name) for name in _OTHERS}))
            values |= {
                "record": item.id,
                "sum": item.seal or hashlib.sha256(line.strip()).hexdigest(),
                "time": item.time,
                "campaign": item.campaign,
                "partition": item.partition,
                "stack": numbers.get("stack"),
                "variant": numbers.get("variant"),
                "flags": VALID * row.is_valid | COMPARABLE * row.is_comparable | PLAIN * (not row.is_experiment),
            }
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        added = self.database.execute(f"INSERT INTO lines({names}) VALUES({marks})", [*values.values()])
        if data:
            self.database.execute("INSERT INTO rows VALUES(?, ?)", [added.lastrowid, data])

    def _number(self, part: str, data: bytes) -> int:
        """The number by which rows have a shared part."""
        if (part, data) not in self._numbers:
            self.database.execute("INSERT OR IGNORE INTO shared(part, data) VALUES(?, ?)", [part, data])
            number = self.first("SELECT id FROM shared WHERE part = ? AND data = ?", [part, data])
            self._numbers[part, data] = int(number)
        return self._numbers[part, data]

    def among(self, part: str, is_wanted: Callable[[Any], bool]) -> str:
        """The condition that a shared part, such as the variant, is a wanted one, or not known."""
        every = self.all("SELECT id, data FROM shared WHERE part = ?", [part])
        numbers = [str(number) for number, data in every if is_wanted(_PARTS[part].decode(data))]
        return f"(l.{part} IS NULL OR l.{part} IN ({', '.join(numbers)}))"

    def damages(self, site: str | None) -> list[Damage]:
        """The lines and files that could not be read, of all sites or of one."""
        query = f"SELECT s.file, l.number, l.damage {OF_LINES} WHERE l.damage IS NOT NULL AND {_OF_SITE}"
        return [Damage(place(file), number, why) for file, number, why in self.all(query, [_encoded(site)])]

    def twice(self, site: str | None) -> list[tuple[int, str, str, bytes, int]]:
        """Number, id, sum, file and line number of the lines whose ids others have too, in the order of reading."""
        query = f"""SELECT l.id, l.record, l.sum, s.file, l.number FROM twice
            CROSS JOIN lines AS l ON l.record = twice.record CROSS JOIN sources AS s ON s.id = l.source
            WHERE l.damage IS NULL AND {_OF_SITE} ORDER BY s.file <> s.path, s.file, l.number"""  # noqa: S608 - constants
        return self.all(query, [_encoded(site)])

    def row(self, data: bytes) -> Row:
        """The row that the index keeps as ``data``. Rows share equal parts."""
        try:
            kept = _KEPT.decode(data)
            members = {name: getattr(kept, name) for name in _OTHERS}
            for name in SHARED:
                number = getattr(kept, name)
                if number not in self._parts:
                    ((part, text),) = self.all("SELECT part, data FROM shared WHERE id = ?", [number])
                    self._parts[number] = _PARTS[part].decode(text)
                members[name] = self._parts[number]
        except ValueError as error:
            raise sqlite3.DatabaseError(f"damaged row: {error}") from error
        return Row(**members)

    def forget(self, path: bytes) -> None:
        """Read a file again in the next refresh: it is not as it was."""
        with self._writing():
            for site, listing in self.all(
                "SELECT site, listing FROM sources JOIN sites ON site = name WHERE file = ?", [path]
            ):
                kept = [UNSETTLED + path if _path(entry) == path else entry for entry in listing.split(b"\0")]
                self.database.execute("UPDATE sites SET listing = ? WHERE name = ?", [b"\0".join(sorted(kept)), site])


def place(path: bytes) -> Path:
    """The file that the index calls ``path``."""
    return paths.results() / os.fsdecode(path)


def inside(part: bytes, path: bytes) -> str:
    """The name by which the compacted file ``part`` has the session file ``path``."""
    return path.removeprefix(_beside(part)).decode("utf-8", "surrogatepass")


def _beside(part: bytes) -> bytes:
    """The beginning of the paths of session files that the compacted file ``part`` holds."""
    return part.rpartition(b"compact/")[0]


def _encoded(site: str | None) -> bytes | None:
    return os.fsencode(site) if site else None


def _path(entry: bytes) -> bytes:
    return entry.split(b" ", 4)[4]


@contextlib.contextmanager
def _progress(site: str) -> Iterator[Callable[[int, int], None]]:
    """A function that shows on a terminal how many files are read, from :data:`QUIET` seconds on."""
    began, is_shown = time.monotonic(), False

    def show(done: int, total: int) -> None:
        nonlocal is_shown
        if sys.stderr.isatty() and time.monotonic() - began > QUIET:
            sys.stderr.write(f"\r\x1b[Kreading records of {site}: {done} of {total} files")
            sys.stderr.flush()
            is_shown = True

    try:
        yield show
    finally:
        if is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
