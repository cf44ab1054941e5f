"""Replacing a file so that at any moment it is either the old or the new one; folders of our own; locks; SHA-256.

Standard library only: :mod:`plumbline.stacks.archive` is run before there is a virtual environment.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PosixPath
from typing import IO, TypeAlias

from plumbline.base import paths
from plumbline.base.errors import PlumbError

CURE = "free disk space or fix the permissions, then run it again"
#: a file in every folder that :func:`make_anew` made
MARK = ".plumbline"
#: ioctl(2): the blocks of another file (btrfs, XFS)
FICLONE = 0x40049409
#: inode, size in bytes, and times of the last change of content and of inode in ns
State: TypeAlias = tuple[int, int, int, int]


class Output(PosixPath):
    """The type of an argument that names an output of a command; ``plumb`` checks each before the command begins."""


class OutputFolder(Output):
    """An :class:`Output` that is a folder, such as ``.``."""


class Copy(Output):
    """An :class:`Output` for records, which may replace an earlier copy of a session of the results folder."""


def replace(file: Path, text: str | Iterable[str]) -> None:
    """Write ``text`` beside ``file``, fsync it, rename it over ``file`` and fsync the folder.

    Raises OSError (no space, no permission) with the old file untouched and nothing left beside it.
    """
    with replacing(file) as temporary:
        _put(temporary, text)


@contextlib.contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Give the block a name beside ``file`` to write to; then fsync it, rename it over ``file``, fsync the folder.

    Whatever the block or the renaming raises, the old file is untouched and nothing is left beside it.
    """
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)  # a link that another user put there would be followed
        yield temporary
        sync(temporary)
        temporary.replace(file)
        sync(file.parent)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(file)  # the system names none where a disk is full
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def holds(file: Path, text: str) -> bool:
    """Whether ``file``, the mark of something that is complete, is there and holds ``text``, without blanks around."""
    return file.is_file() and file.read_text(encoding="utf-8").strip() == text


def below(path: Path, above: tuple[str, ...] = ()) -> list[Path]:
    """The file ``path`` itself, or the files in that folder and below, also those of linked folders; perhaps none.

    ``above``: the folders that it is in, so that links make no circle.
    """
    known, real = [path] * path.is_file(), os.path.realpath(path)
    if path.is_dir() and real not in above:
        with contextlib.suppress(PermissionError):
            known += [file for entry in sorted(path.iterdir()) for file in below(entry, (*above, real))]
    return known


def _put(file: Path, text: str | Iterable[str]) -> None:
    with file.open("w", encoding="utf-8") as stream:
        stream.writelines([text] if isinstance(text, str) else text)


def _takes_all(file: Path) -> bool:
    """Whether ``file`` is a device, ``/dev/stdout`` or a FIFO; those in /dev/shm are files like others."""
    return file.is_fifo() or (file.is_relative_to("/dev") and not file.is_relative_to("/dev/shm"))  # noqa: S108


def write(label: str, file: Path, text: str | Iterable[str], cure: str | None = None) -> None:
    """Replace ``file`` by ``text`` like :func:`replace`, but a device, ``/dev/stdout`` or a FIFO is written to.

    Raises :class:`PlumbError` with ``cure`` where the text, called ``label``, cannot be written, or no file is named;
    the old file is untouched.
    """
    if not file.name:
        raise PlumbError(f"no file is named for {label}", str(file), "name one")
    try:
        if _takes_all(file):
            _put(file, text)
        else:
            replace(file, text)
    except OSError as error:
        raise PlumbError(f"cannot write {label}: {error.strerror}", str(file), cure or remedy(file)) from error


def refuse_inputs(targets: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Raise :class:`PlumbError` for one of ``targets``, files to write, that is an input too, or is named twice."""
    used = {name for file in inputs for name in _names(file)}
    for target in (target for target in targets if not _takes_all(target)):
        if used & _names(target):
            raise PlumbError("this file is an output and is also used otherwise", str(target), "name another file")
        used |= _names(target)


def refuse_unwritable(target: Path) -> None:
    """Raise :class:`PlumbError` where ``target`` cannot be made, with the folders above that are not there yet."""
    if _takes_all(target):
        return
    is_folder = isinstance(target, OutputFolder)
    if target.is_dir() and not is_folder:
        raise PlumbError("this is a folder", str(target), "name a file")
    above = target.absolute() if is_folder else target.absolute().parent
    there = next(path for path in (above, *above.parents) if path.exists())
    if not there.is_dir():
        raise PlumbError("this is a file and no folder", str(there), "name another output")
    if not os.access(there, os.W_OK | os.X_OK):
        raise PlumbError("this folder cannot be written", str(there), remedy(there))


def _names(file: Path) -> set[Path | tuple[int, int]]:
    """The identities of ``file``: its path without symbolic links, and its inode, which its hard links share."""
    known: set[Path | tuple[int, int]] = {Path(os.path.realpath(file))}
    with contextlib.suppress(OSError):
        status = file.stat()
        known.add((status.st_dev, status.st_ino))
    return known


def remedy(place: Path) -> str:
    """The cure where ``place`` cannot be written."""
    return paths.to_name(place) or CURE


@contextlib.contextmanager
def writing(label: str, where: Path) -> Iterator[None]:
    """Turn an OSError of the block into a :class:`PlumbError`: ``label`` could not be written.

    The error names the file that the system names, or else ``where``.
    """
    try:
        yield
    except BrokenPipeError:  # the reader of the progress has gone
        raise
    except OSError as error:
        place = str(error.filename or where)
        raise PlumbError(f"cannot write {label}: {error.strerror or error}", place, remedy(Path(place))) from None


def make_anew(folder: Path) -> None:
    """Make ``folder``, empty but for :data:`MARK`; an older one is removed if this function made it.

    An interruption or a kill leaves no folder of that name without the mark, which the next call would refuse.
    Raises :class:`PlumbError` for anything else of that name, and where the results folder is in it; both stay. Raises
    OSError.
    """
    refuse_foreign(folder)
    if folder.exists() and paths.results().resolve().is_relative_to(folder.resolve()):
        raise PlumbError("the folder of the records is in it", str(folder), "name another folder")
    with staged(folder) as fresh:
        fresh.mkdir(parents=True)
        (fresh / MARK).touch()


def is_unfinished(entry: Path) -> bool:
    """Whether ``entry`` is called as what :func:`replacing` or :func:`make_anew` leave where they are killed."""
    if entry.is_dir():
        return entry.name.endswith(".new") and not any(entry.iterdir())
    return re.fullmatch(r"\..+\.\d+", entry.name) is not None


def refuse_foreign(folder: Path) -> None:
    """Raise :class:`PlumbError` for what has the name ``folder`` and was not made by :func:`make_anew`."""
    if folder.is_symlink() or (folder.exists() and not (folder / MARK).is_file()):
        raise PlumbError("this was not made by Plumbline", str(folder), "name another folder, or move this one away")


@contextlib.contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A name beside ``folder`` for a new folder, which takes its place at the end of the block.

    Nothing is left of a folder whose block raises; what was in place before stays.
    """
    fresh = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        yield fresh
        with replaced(folder, fresh):
            pass
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


@contextlib.contextmanager
def replaced(folder: Path, fresh: Path) -> Iterator[None]:
    """Put the folder ``fresh`` in place of ``folder``, which is removed at the end of the block, if it was there.

    Where the block raises, what was there before is there again. A kill between the two renamings leaves no folder of
    that name: :func:`recover`.
    """
    old = _older(folder)
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    elif not old.exists():
        fresh.rename(folder)
        yield
        return
    try:
        fresh.rename(folder)
        yield
    except BaseException:
        if folder.exists():
            shutil.rmtree(folder)
        old.rename(folder)
        raise
    shutil.rmtree(old)


def recover(folder: Path) -> None:
    """Put back what :func:`replaced` had moved away when its process was killed; nothing is done under a lock.

    That is the file ``.NAME.lock`` beside the folder: who replaces what others recover has to hold it.
    """
    if folder.exists() or not _older(folder).is_dir():
        return
    with contextlib.suppress(OSError), lock(folder.with_name(f".{folder.name}.lock"), wait=False):
        if not folder.exists():
            _older(folder).rename(folder)


def _older(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def lock(path: Path, wait: bool = True) -> Iterator[None]:
    """Hold the only lock on the file ``path`` (made if absent, and never removed: others may wait for it).

    The kernel (flock(2)) ends the lock with the process that holds it, however it ends. Another process, or another
    call in this one, waits; without ``wait`` it gets BlockingIOError. Raises OSError if ``path`` cannot be written, and
    for a link, which could make a file elsewhere, or a FIFO, which could wait for ever.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with opened(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW) as stream:
        fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield


def opened(file: Path, flags: int = os.O_RDONLY) -> IO[bytes]:
    """``file`` to be read; raises OSError, also for what is not a regular file and might block its reader (a FIFO)."""
    stream = os.fdopen(os.open(file, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666), "rb")
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(errno.EINVAL, "not a regular file", str(file))
    return stream


@contextlib.contextmanager
def reserved(
    path: Path, message: str, cure: str, elsewhere: str = "name a folder that can be written"
) -> Iterator[None]:
    """Hold the lock on the file ``path``.

    Raises :class:`PlumbError` with ``message`` and ``cure`` where another process holds it, and with the cure
    ``elsewhere`` where writing fails.
    """
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(lock(path, wait=False))
        except BlockingIOError:
            raise PlumbError(message, str(path.parent), cure) from None
        except OSError as error:
            ways = " or ".join(filter(None, (paths.to_name(path), elsewhere)))
            raise PlumbError(f"cannot write: {error.strerror}", str(path), ways) from None
        yield


def sha256(file: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with file.open("rb") as stream:
        return sha256_of(stream)


def state(file: Path | os.DirEntry[str], *, follow_symlinks: bool = True) -> State:
    """The :data:`State` of a file, without reading it.

    It differs between two states of a file: no program can set the time of an inode's change.
    """
    status = file.stat(follow_symlinks=follow_symlinks)
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def states(folder: Path, start: Path) -> dict[str, State]:
    """The state of each file below ``folder``, by its path from ``start``, but for git's and Python's compiled modules.

    A link counts as itself. No file is read. Folders that vanish meanwhile, or cannot be listed, have no files.
    """
    known: dict[str, State] = {}
    waiting, passing = [os.fspath(folder)], tuple[type[OSError], ...]()
    while waiting:
        with contextlib.suppress(*passing), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting += [entry.path] if entry.name != ".git" else []
                elif not ("/__pycache__/" in entry.path and entry.name.endswith(".pyc")):
                    name = os.fsencode(os.path.relpath(entry.path, start)).decode("utf-8", "backslashreplace")
                    with contextlib.suppress(FileNotFoundError):
                        known[name] = state(entry, follow_symlinks=False)
        passing = (FileNotFoundError, PermissionError)
    return known


def copy(source: Path, target: Path) -> None:
    """Copy a file, or a folder with what its links name, with modes and times; blocks are shared where they can be.

    What had to be copied is on the disk at the end. Raises OSError, also for what is not a regular file, and for a link
    to a folder that it is in.
    """
    if source.is_dir():
        try:
            shutil.copytree(
                source,
                target,
                ignore=_no_circle,
                copy_function=lambda *names: copy(*map(Path, names)),
                ignore_dangling_symlinks=True,
            )
        except shutil.Error as error:
            place, _, why = error.args[0][0]
            raise OSError(errno.EIO, f"cannot copy: {why}", place) from None
        return
    with opened(source) as old, target.open("xb") as new:  # never through a link that is there
        try:
            fcntl.ioctl(new, FICLONE, old.fileno())
        except OSError:
            shutil.copyfileobj(old, new)
            new.flush()
            os.fsync(new)
    shutil.copystat(source, target)


def _no_circle(folder: str, names: list[str]) -> list[str]:
    above = {os.path.realpath(place) for place in (Path(folder), *Path(folder).parents)}
    for entry in (Path(folder, name) for name in names):
        if entry.is_symlink() and os.path.realpath(entry) in above:
            raise OSError(errno.ELOOP, "it is a link to a folder that it is in", str(entry))
    return []


def sha256_once(file: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits; a process reads a file only once in each :func:`state` of it."""
    return _sha256_of_state(str(file), state(file))


@functools.cache
def _sha256_of_state(file: str, _: State) -> str:
    return sha256(Path(file))


def sha256_of(stream: IO[bytes]) -> str:
    """SHA-256 of the rest of a binary stream, in hexadecimal digits."""
    digest = hashlib.sha256()
    # small enough for memory that the process has already: new pages for every block cost more than the digest
    for block in iter(lambda: stream.read(1 << 16), b""):
        digest.update(block)
    return digest.hexdigest()
