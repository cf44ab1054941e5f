"""The index of the record files: a file of SQLite that tells a query which lines to read.

It is never the truth. Each question first compares the states (inode, size, times) of the record files with those that
the index has read, and reads what was added or changed since; what is gone leaves the index. A question for few of many
records looks at the states of their folders, which tell what was added, replaced or removed, and at those of the files
of its answer. A damaged index, and one of another version, is made anew. It lies in the results folder; where that
cannot be written, or locked, or where more people could read the index than the records, in the user's cache, else in a
temporary file, for one command. Few records need none on a disk.

A source is a session file, or its copy in a compacted file; of all sources with a name one is live: the session file,
else that in the last compacted file. A line belongs to a source. It has a row (:class:`~plumbline.records.model.Row`)
in which the parts that most records share are numbers, or the reason why it cannot be read.

Where there is much to do, several processes look at files and read them; only this one writes the index.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import itertools
import os
import re
import signal
import sqlite3
import sys
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from plumbline import __version__
from plumbline.base import files, group, paths, schemas
from plumbline.base.errors import PlumbError
from plumbline.records import compact, sources, store
from plumbline.records.compact import Unreadable
from plumbline.records.model import Record, Row
from plumbline.records.sources import Vanished
from plumbline.records.store import Damage

Answer = TypeVar("Answer")
Item = TypeVar("Item")
#: path of a record file below the results folder, and as :func:`plumbline.base.files.state`: inode, size, times in ns
Entry: TypeAlias = tuple[bytes, int, int, int, int]
#: path of a folder below the results folder; inode and times in ns
Folder: TypeAlias = tuple[bytes, int, int, int]
#: who may read a file: bits of its mode for group and others, and its group
Readers: TypeAlias = tuple[int, int]

#: its name in the results folder
NAME = ".index.sqlite3"
#: bytes of record files below which the index is made in memory: reading them takes no longer
SMALL = 8_000_000
#: a file changed so few ns ago is read again: a second change could leave its times as they are
SETTLED = 2_000_000_000
#: seconds to wait for another process that writes the index
PATIENCE = 60.0
#: seconds after which another process has its turn to write the index, and those in which it notices: SQLite looks
#: ten times a second
TURN, PAUSE = 5.0, 0.15
#: bytes of record files that are read between two commits, and those that a process reads at a time
BATCH, SHARE = 1_000_000_000, 16_000_000
#: processes that read at once, at most: this one, which writes, is no faster
AT_ONCE = 8
#: known files from which on several processes look at their states, or none where few are wanted
MANY = 20_000
#: seconds after which progress is shown
QUIET = 2.0
#: databases that end with the process: a file without a name, and one in memory
TEMPORARY, MEMORY = "", ":memory:"
#: parts of a row that most records share
SHARED = ("suite", "stack", "variant", "host")
NONE = [-1] * len(SHARED)
VALID, COMPARABLE, PLAIN = 1, 2, 4
#: the state in a listing of a file to read again
UNSETTLED = 0, 0, 0, 1
_TABLES = """CREATE TABLE sites(name BLOB PRIMARY KEY, digest BLOB, folders BLOB, listing BLOB);

CREATE TABLE sources(id INTEGER PRIMARY KEY, site BLOB, path BLOB, file BLOB, live INTEGER);

CREATE TABLE lines(id INTEGER PRIMARY KEY, source INTEGER, number INTEGER, start INTEGER, length INTEGER,
    damage TEXT, record TEXT, sum BLOB, time TEXT, campaign TEXT, partition TEXT, flags INTEGER,
    suite INTEGER, stack INTEGER, variant INTEGER, host INTEGER);

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
#: a row as the index keeps it: what it shares with none
_Kept: Any = msgspec.defstruct("_Kept", [(name, _FIELDS[name]) for name in _OTHERS], array_like=True)
_KEPT: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(_Kept)
_PARTS: dict[str, msgspec.msgpack.Decoder[Any]] = {name: msgspec.msgpack.Decoder(_FIELDS[name]) for name in SHARED}
_LISTING: msgspec.msgpack.Decoder[list[Entry]] = msgspec.msgpack.Decoder(list[Entry])


class Folders(NamedTuple):
    """The folders of a site, none while their states will not tell when their content is another; who may read them."""

    states: list[Folder]
    readers: set[Readers]

    def are_as_before(self) -> bool:
        """Whether no file was added, replaced or removed since."""
        return bool(self.states) and all(map(_is_as_before, self.states))


_FOLDERS = msgspec.msgpack.Decoder(Folders)
NO_FOLDERS = Folders([], set())


def _is_as_before(folder: Folder) -> bool:
    path, *state = folder
    try:  # a network file system asks its server when it opens a folder
        descriptor = os.open(place(path), os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return state == [status.st_ino, status.st_mtime_ns, status.st_ctime_ns]


class Reading(NamedTuple):
    """The content of some record files, as processes hand it on.

    ``sources`` are (path, file), ``lines`` the columns of the table, with positions in ``sources`` and ``shared``;
    ``rows`` has one for each line, None for a damaged one. The state of ``unsettled`` files will not tell, for every
    user, when their content is another.
    """

    sources: list[tuple[bytes, bytes]]
    lines: list[tuple[Any, ...]]
    rows: list[bytes | None]
    shared: list[tuple[str, bytes]]
    unsettled: list[bytes]


def ask(
    question: Callable[[Index], Answer], site: str | None = None, current: str | None = "-", *, few: bool = False
) -> Answer:
    """The answer of ``question`` to the index of all record files, or of those of one site.

    ``current`` is the name of an index that was asked just before, and need not be compared with the files again; None
    stands for whichever there is. A question for ``few`` of many records is answered from files whose folders are as
    they were; it calls :meth:`Index.verify`.
    Raises :class:`PlumbError` if the files change all the time, or the results are not a folder.
    """
    if paths.results().exists() and not paths.results().is_dir():
        raise PlumbError("the results are not a folder", str(paths.results()), "name the folder of the records")
    for _ in range(sources.TRIES):
        try:
            return _ask(question, site, current, few)
        except Vanished as error:
            last, current = error, "-"
    raise PlumbError(f"the records change while they are read: {last} was removed", str(paths.results()), "try again")


def _ask(question: Callable[[Index], Answer], site: str | None, current: str | None, few: bool) -> Answer:
    for name in _names(site):
        for _ in range(2):
            inode = _inode(name)
            try:
                with _opened(name) as index:
                    if current not in (name, None):
                        index.refresh(site, few)
                    return question(index)
            except sqlite3.OperationalError as error:  # no lock, no room, no permission
                why: Exception = error
                break
            except (sqlite3.DatabaseError, msgspec.DecodeError) as error:  # it is damaged
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
        folder = (paths.of_user("XDG_CACHE_HOME", ".cache") or Path("/dev/null")) / "plumbline"
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        yield str(folder / f"{hashlib.sha256(bytes(shared.absolute())).hexdigest()[:16]}.sqlite3")
        yield TEMPORARY
    yield MEMORY


def _is_small(site: str | None) -> bool:
    names = [os.fsencode(site)] if site else _sites()
    sizes = (size for name in names for _, _, size, _, _ in _listing(name, [], set()))
    return all(total <= SMALL for total in itertools.accumulate(sizes))


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


def _listing(site: bytes, folders: list[Folder], readers: set[Readers]) -> Iterator[Entry]:
    """Each record file of a site.

    Adds the site's folders to ``folders``, and who may read the files, and enter the folders, to ``readers``.
    """
    root, waiting = os.fsencode(paths.results()), [site]
    while waiting:
        place = b"%b/%b" % (root, waiting[-1])
        prefix = waiting.pop() + b"/" * bool(site)
        with contextlib.suppress(PermissionError, FileNotFoundError, NotADirectoryError):
            if site:
                status = os.stat(place)  # noqa: PTH116 - bytes
                folders.append((prefix[:-1], status.st_ino, status.st_mtime_ns, status.st_ctime_ns))
                readers.add(((status.st_mode & 0o11) << 2, status.st_gid))
            with os.scandir(place) as entries:
                for entry in entries:
                    path = prefix + entry.name
                    if path.endswith(b".jsonl") or _PART.search(path):
                        try:
                            status = entry.stat()
                        except OSError:  # a link that leads nowhere
                            yield path, 0, 0, 0, 0
                        else:
                            readers.add((status.st_mode & 0o44, status.st_gid))
                            yield path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
                    elif site and entry.is_dir(follow_symlinks=False):
                        waiting.append(path)


def _listed(site: bytes) -> tuple[list[Entry], Folders]:
    """The record files of a site, and its folders as they were before."""
    states, readers, now = list[Folder](), set[Readers](), time.time_ns()
    entries = sorted(_listing(site, states, readers))
    return entries, Folders(states if all(now - max(times) > SETTLED for _, _, *times in states) else [], readers)


def _listings(known: Mapping[bytes, bytes], sites: Sequence[bytes]) -> list[tuple[list[Entry] | None, Folders]]:
    """The record files of each site, None where their digest is that which is ``known``; and its folders."""
    every = ((known.get(site), *_listed(site)) for site in sites)
    return [(None if digest == _digest(entries) else entries, folders) for digest, entries, folders in every]


def _digest(entries: list[Entry]) -> bytes:
    return hashlib.sha256(msgspec.msgpack.encode(entries)).digest()


def _reading(doubted: Collection[bytes], entries: Sequence[Entry]) -> Reading:
    """The content of record files: of those that are ``doubted`` each record is checked whole."""
    reading, root = Reading([], [], [], [], []), paths.results()
    numbers: dict[tuple[str, bytes], int] = {}
    for path, *_, modified, changed in entries:
        file, first, count = root / os.fsdecode(path), len(reading.sources), len(reading.lines)
        names = {path: first} if path.endswith(b".jsonl") else {}
        try:
            for name, number, start, text in _texts(path, file):
                item = store.parse(file, number, text, path not in doubted)
                if isinstance(item, Damage):  # or more than a brief record tells
                    item = store.parse(file, number, text)
                row, columns = _line(item, text, numbers)
                source = names.setdefault(name, first + len(names))
                reading.lines.append((source, number, start, len(text), *columns))
                reading.rows.append(row)
            is_settled = time.time_ns() - max(modified, changed) > SETTLED
        except (OSError, Unreadable) as error:
            del reading.lines[count:], reading.rows[count:]
            names, is_settled = {path: first}, False
            reading.lines.append((first, 0, 0, 0, store.unreadable(file, error).reason, *[None] * 6, *NONE))
            reading.rows.append(None)
        reading.sources.extend((name, path) for name in names)
        reading.unsettled.extend([] if is_settled else [path])
    reading.shared.extend(numbers)
    return reading


def _texts(path: bytes, file: Path) -> Iterator[tuple[bytes, int, int, bytes]]:
    """Path of the session, number, first byte and text of each line of a record file."""
    if path.endswith(b".jsonl"):
        yield from ((path, *line) for line in store.lines(file))
    else:
        for name, number, text in compact.lines(file):
            yield _beside(path) + name.encode("utf-8", "surrogatepass"), number, 0, text + b"\n"


def _line(item: Record | Damage, text: bytes, numbers: dict[tuple[str, bytes], int]) -> tuple[bytes | None, list[Any]]:
    """The row of a line, and its columns from ``damage`` on; its shared parts get their positions in ``numbers``."""
    if isinstance(item, Damage):
        name = _ID.search(text)
        return None, [item.reason, name and name[1].decode(), *[None] * 5, *NONE]
    row, data, shared = item.row(), None, NONE
    with contextlib.suppress(OverflowError):  # a number of more than 64 bits: the row is read from the file
        parts = [(name, msgspec.msgpack.encode(getattr(row, name))) for name in SHARED]
        data = msgspec.msgpack.encode([getattr(row, name) for name in _OTHERS])
        shared = [numbers.setdefault(part, len(numbers)) for part in parts]
    flags = VALID * row.is_valid | COMPARABLE * row.is_comparable | PLAIN * (not row.is_experiment)
    total = item.seal or hashlib.sha256(text.strip()).hexdigest()
    return data, [None, item.id, total, item.time, item.campaign, item.partition, flags, *shared]


class _Child:
    """A process that hands on ``work`` of an item, and ends. Raises OSError if none can start."""

    def __init__(self, work: Callable[[Item], Any], item: Item) -> None:
        pipe, end = os.pipe()
        with open(end, "wb") as stream, contextlib.ExitStack() as failed:  # noqa: PTH123 - a descriptor
            self._stream = failed.enter_context(open(pipe, "rb"))  # noqa: PTH123 - a descriptor
            self._process = os.fork()
            failed.pop_all()
            if not self._process:
                try:
                    gc.disable()  # looking for garbage would copy the memory that both have
                    self._stream.close()  # writing ends if the other process does
                    stream.write(msgspec.msgpack.encode(work(item)))
                    stream.flush()
                finally:
                    os._exit(0)  # without the other one's streams and database

    def end(self, *, wait: bool) -> bytes:
        """What it hands on, unless it need not ``wait`` for that; then the process has ended."""
        try:
            return self._stream.read() if wait else b""
        finally:
            self._stream.close()
            with contextlib.suppress(ChildProcessError):  # whoever made this process ignores SIGCHLD
                os.kill(self._process, signal.SIGKILL)
                os.waitpid(self._process, 0)


def _shared_out(work: Callable[[Item], Answer], items: Sequence[Item], kind: type[Answer]) -> Iterator[Answer]:
    """``work`` of each item, of type ``kind``, in order, by one process more than there are CPUs: they wait for disks.

    What a process does not finish is done here; everything is where there is one item, or several threads.
    """
    at_once = min(len(os.sched_getaffinity(0)) + 1, AT_ONCE, len(items)) if threading.active_count() == 1 else 1
    children, following = dict[int, _Child](), 0
    try:
        for number, item in enumerate(items):
            following = max(following, number)
            with contextlib.suppress(OSError):
                while at_once > 1 and following < min(number + at_once, len(items)):
                    children[following] = _Child(work, items[following])
                    following += 1
            try:
                text = children.pop(number).end(wait=True) if number in children else b""
                answer = msgspec.msgpack.decode(text, type=kind)
            except msgspec.DecodeError:
                answer = work(item)
            yield answer
    finally:
        for child in children.values():
            child.end(wait=False)


@functools.cache
def _version() -> int:
    """A number for what the index holds: the form of records, and the version of the program that checks them."""
    form = (Path(schemas.__file__).parent / "record.json").read_text(encoding="utf-8")
    return zlib.crc32(f"{__version__} {_TABLES} {form}".encode()) >> 1


class Index:
    """The index in an open ``database``."""

    def __init__(self, database: sqlite3.Connection, name: str) -> None:
        self.database, self.name = database, name
        self._parts: dict[int, Any] = {}
        self._looks_at_folders = False
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
            with contextlib.suppress(sqlite3.Error):
                self.database.execute("ROLLBACK")
            raise

    def refresh(self, site: str | None, few: bool) -> None:
        """Read what was added or changed since it was read, all or of one site, and forget what is gone.

        For ``few`` of many records files count as unchanged where their folders are: see :meth:`verify`.
        """
        known = {
            name: (digest, _FOLDERS.decode(folders))
            for name, digest, folders in self.all("SELECT name, digest, folders FROM sites")
        }
        names = [os.fsencode(site)] if site else sorted(known.keys() | set(_sites()))
        is_large = self._last("sources") > MANY
        self._looks_at_folders = few and is_large
        readers, changed, began = set[Readers](), list[tuple[bytes, list[Entry], Folders]](), time.monotonic()
        if self._looks_at_folders:
            same = {name for name in names if name in known and known[name][1].are_as_before()}
            readers.update(*(known[name][1].readers for name in same))
            names = [name for name in names if name not in same]
        step = AT_ONCE if is_large and not few else 1
        shares = [names[first::step] for first in range(step)]
        work = functools.partial(_listings, {name: digest for name, (digest, _) in known.items()})
        listings = _shared_out(work, shares, list[tuple[list[Entry] | None, Folders]])
        for name, (entries, folders) in itertools.chain.from_iterable(map(zip, shares, listings)):
            readers |= folders.readers
            if entries is not None:
                changed.append((name, entries, folders))
            elif is_large and folders.states and folders != known[name][1]:
                with contextlib.suppress(sqlite3.OperationalError):  # it can only be read
                    values = msgspec.msgpack.encode(folders), name
                    self.database.execute("UPDATE sites SET folders = ? WHERE name = ?", values)
        self._protect(readers)
        try:
            for name, now, folders in changed:
                left, turn = 1, began
                while left:
                    left = self._step(name, now, folders)
                    if time.monotonic() - turn > TURN:
                        time.sleep(PAUSE)
                        turn = time.monotonic()
                    _show(began, f"reading records of {os.fsdecode(name)}: {len(now) - left} of {len(now)} files")
        finally:
            _show(began, "")

    def verify(self, paths_of_files: Iterable[bytes]) -> None:
        """Raise Vanished if a record file, of which only the folder was looked at, is not as it was read."""
        if not self._looks_at_folders:
            return
        for site, some in group((path.rpartition(b"/")[0].partition(b"/")[0], path) for path in paths_of_files).items():
            listing: bytes = self.first("SELECT listing FROM sites WHERE name = ?", [site]) or b""
            for path in some:
                with contextlib.suppress(OSError):  # searching its bytes is faster than decoding all entries
                    if msgspec.msgpack.encode((path, *files.state(place(path)))) in listing:
                        continue
                self.forget(path)
                raise Vanished(place(path))

    def _protect(self, readers: set[Readers]) -> None:
        """Let nobody read the index who cannot read all records; raises sqlite3.OperationalError if it is not ours."""
        limited = {(bits, group) for bits, group in readers if not bits & 0o4}
        if not limited or self.name in (TEMPORARY, MEMORY):
            return
        try:
            status = Path(self.name).stat()
            is_of_group = limited == {(0o40, status.st_gid)}
            mode = status.st_mode & (0o660 if is_of_group else 0o600)
            if not is_of_group and status.st_uid != os.geteuid():
                raise PermissionError("others may read it")
            if mode != status.st_mode & 0o777:
                Path(self.name).chmod(mode)
        except OSError as error:
            raise sqlite3.OperationalError(str(error)) from None

    def _last(self, table: str) -> int:
        return self.first(f"SELECT max(id) FROM {table}") or 0  # noqa: S608 - a constant

    def _step(self, site: bytes, now: list[Entry], folders: Folders) -> int:
        """Read some of the files that are ``now`` there and not known, in one transaction; how many are left."""
        with self._writing():
            listing = self.first("SELECT listing FROM sites WHERE name = ?", [site])
            old = set(_LISTING.decode(listing) if listing else ())
            new, gone = [entry for entry in now if entry not in old], old.difference(now)
            begins = itertools.accumulate((size for _, _, size, _, _ in new), initial=0)
            shares = [
                *group((at // SHARE, entry) for at, entry in zip(begins, new, strict=False) if at < BATCH).values()
            ]
            batch = {entry: entry for share in shares for entry in share}
            changed = [[path] for path in {path for path, *_ in (*gone, *batch)}]
            self.database.executemany("INSERT OR IGNORE INTO touched SELECT path FROM sources WHERE file = ?", changed)
            self.database.executemany("DELETE FROM sources WHERE file = ?", changed)
            source, line = self._last("sources"), self._last("lines")
            read = functools.partial(_reading, {path for path, *state in old if tuple(state) == UNSETTLED})
            for share, reading in zip(shares, _shared_out(read, shares, Reading), strict=True):
                self._add(site, reading)
                unsettled = set(reading.unsettled)
                batch |= {entry: (entry[0], *UNSETTLED) for entry in share if entry[0] in unsettled}
            self.database.execute("INSERT OR IGNORE INTO touched SELECT path FROM sources WHERE id > ?", [source])
            self.database.execute(_LIVE)
            self.database.execute("DELETE FROM touched")
            self.database.execute(_TWICE, [line])
            is_last = len(new) == len(batch) and all(read == entry for entry, read in batch.items())
            self._keep(site, (old - gone).union(batch.values()), folders if is_last else NO_FOLDERS)
        now[:] = [batch.get(entry, entry) for entry in now]
        return len(new) - len(batch)

    def _keep(self, site: bytes, entries: Iterable[Entry], folders: Folders = NO_FOLDERS) -> None:
        listing = sorted(entries)
        values = [site, _digest(listing), msgspec.msgpack.encode(folders), msgspec.msgpack.encode(listing)]
        self.database.execute("INSERT OR REPLACE INTO sites VALUES(?, ?, ?, ?)", values)

    def _add(self, site: bytes, reading: Reading) -> None:
        source, line = self._last("sources") + 1, self._last("lines") + 1
        numbers = [*(self._number(part, data) for part, data in reading.shared), None]
        named = ((number, site, *names) for number, names in enumerate(reading.sources, source))
        self.database.executemany("INSERT INTO sources(id, site, path, file) VALUES(?, ?, ?, ?)", named)
        columns = (
            (number, source + first, *values[: -len(SHARED)], *(numbers[part] for part in values[-len(SHARED) :]))
            for number, (first, *values) in enumerate(reading.lines, line)
        )
        self.database.executemany(f"INSERT INTO lines VALUES(?{', ?' * 15})", columns)
        rows = ((number, row) for number, row in enumerate(reading.rows, line) if row)
        self.database.executemany("INSERT INTO rows VALUES(?, ?)", rows)

    def _number(self, part: str, data: bytes) -> int:
        """The number by which rows have a shared part."""
        self.database.execute("INSERT OR IGNORE INTO shared(part, data) VALUES(?, ?)", [part, data])
        return int(self.first("SELECT id FROM shared WHERE part = ? AND data = ?", [part, data]))

    def among(self, part: str, is_wanted: Callable[[Any], bool]) -> str:
        """The condition that a shared part, such as the variant, is a wanted one, or not known."""
        every = self.all("SELECT id, data FROM shared WHERE part = ?", [part])
        numbers = [str(number) for number, data in every if is_wanted(_PARTS[part].decode(data))]
        return f"(l.{part} IS NULL OR l.{part} IN ({', '.join(numbers)}))"

    def damages(self, site: str | None) -> list[Damage]:
        """The lines and files that could not be read, of all sites or of one."""
        query = f"SELECT s.file, l.number, l.damage {OF_LINES} WHERE l.damage IS NOT NULL AND {_OF_SITE}"
        return [Damage(place(file), number, why) for file, number, why in self.all(query, [site and os.fsencode(site)])]

    def twice(self, site: str | None) -> list[tuple[int, str, str, bytes, int]]:
        """Number, id, sum, file and line number of the lines whose ids others have too, in the order of reading."""
        query = f"""SELECT l.id, l.record, l.sum, s.file, l.number FROM twice
            CROSS JOIN lines AS l ON l.record = twice.record CROSS JOIN sources AS s ON s.id = l.source
            WHERE l.damage IS NULL AND {_OF_SITE} ORDER BY s.file <> s.path, s.file, l.number"""  # noqa: S608 - constants
        return self.all(query, [site and os.fsencode(site)])

    def row(self, data: bytes, shared: Sequence[int]) -> Row:
        """The row that the index keeps as ``data``, with its ``shared`` parts. Rows share equal parts."""
        members = dict(zip(_OTHERS, msgspec.structs.astuple(_KEPT.decode(data)), strict=True))
        for name, number in zip(SHARED, shared, strict=True):
            if number not in self._parts:
                text = self.first("SELECT data FROM shared WHERE id = ?", [number])
                self._parts[number] = _PARTS[name].decode(text or b"")
            members[name] = self._parts[number]
        return Row(**members)

    def forget(self, path: bytes) -> None:
        """Read a file again in the next refresh: it is not as it was."""
        with self._writing():
            query = "SELECT site, listing FROM sources JOIN sites ON site = name WHERE file = ?"
            for site, listing in self.all(query, [path]):
                entries = _LISTING.decode(listing)
                self._keep(site, [(path, *UNSETTLED) if entry[0] == path else entry for entry in entries])


def place(path: bytes) -> Path:
    """The file that the index calls ``path``."""
    return paths.results() / os.fsdecode(path)


def inside(part: bytes, path: bytes) -> str:
    """The name by which the compacted file ``part`` has the session file ``path``."""
    return path.removeprefix(_beside(part)).decode("utf-8", "surrogatepass")


def _beside(part: bytes) -> bytes:
    """The beginning of the paths of session files that the compacted file ``part`` holds."""
    return part.rpartition(b"compact/")[0]


def _show(began: float, text: str) -> None:
    """Replace the line of progress on a terminal, from :data:`QUIET` seconds on."""
    if sys.stderr.isatty() and time.monotonic() - began > QUIET:
        stream = getattr(sys.stderr, "stream", sys.stderr)  # which may move the cursor
        stream.write(f"\r\x1b[K{text}")
        stream.flush()
