"""The folder of the documents: ``SPOOL/UID/JOB/`` while a job runs, ``SPOOL/UID/JOB.N.json`` for each launch of it.

Users write it and root may read it, so nothing is opened through a link, and nothing counts that is not the user's own
plain file of the right form and size.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.extras.advice import steps
from plumbline.extras.advice.steps import Node, Step
from plumbline.host import proc
from plumbline.launch.witness.model import Witness

#: names of jobs, as observe.sh has them
JOB = re.compile(r"(?!\.)[A-Za-z0-9._+@=,-]{1,100}")
#: a command that no shell changes
SAFE = re.compile(r"[A-Za-z0-9._+@=,/-]+(?: [A-Za-z0-9._+@=,/-]+){3}")
#: most bytes of a witness, most files of a folder that are read, and most bytes of them all
WITNESS, FILES, ALL = 4 << 20, 50_000, 1 << 30


def folder(named: Path | None) -> Path:
    """The spool: ``named``, or ``PLUMB_ADVICE``, or that of this job, or this user's own in the state folder (XDG)."""
    state = paths.of_user("XDG_STATE_HOME", ".local/state") or Path("/")
    of_job = Path(os.environ.get("PLUMB_WITNESS_DIR") or state / "plumb-advice/UID/JOB").parent.parent
    chosen = os.environ.get("PLUMB_ADVICE", "off")
    return (named or (of_job if chosen == "off" else Path(chosen))).absolute()


@contextlib.contextmanager
def _entered(spool: Path, *parts: str) -> Iterator[int]:
    """A descriptor of ``UID`` or ``UID/JOB`` in the spool; raises OSError where that is not the user's own folder."""
    descriptors = [os.open(spool, os.O_RDONLY | os.O_DIRECTORY)]
    try:
        for part in parts:
            descriptors.append(os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptors[-1]))
            status = os.fstat(descriptors[-1])
            if status.st_uid != int(parts[0]) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise PermissionError(f"{part} is not a private folder of user {parts[0]}")
        yield descriptors[-1]
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _read(name: str, inside: int, most: int) -> tuple[bytes, float]:
    """The text of a plain file in a folder, and when it was written; raises OSError for anything else."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=inside)
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
        if not plain or status.st_uid != os.fstat(inside).st_uid or status.st_size > most:
            raise PermissionError(f"{name} is not a plain file of its folder's user, or too large")
        return stream.read(most), status.st_mtime


def users(spool: Path) -> list[str]:
    """The numbers of the users that have documents."""
    try:
        return sorted(entry.name for entry in spool.iterdir() if re.fullmatch(r"\d{1,10}", entry.name))
    except OSError as error:
        raise PlumbError(
            f"no documents of jobs: {error.strerror}",
            str(spool),
            "plumb advice on, in a job, makes it; --work names another",
        ) from None


def _read_all(spool: Path, *parts: str, **decoders: Callable[[bytes], Any]) -> Iterator[tuple[str, Any, float]]:
    """Each file of a folder with one of the endings: stem, what it holds (None: damaged), and when it was written."""
    size = 0
    with contextlib.suppress(OSError), _entered(spool, *parts) as inside:
        for name in sorted(os.listdir(inside))[:FILES]:  # noqa: PTH208 - a descriptor
            stem, _, ending = name.rpartition(".")
            try:
                if ending in decoders:
                    text, written = _read(name, inside, min(WITNESS if len(parts) > 1 else steps.MOST, ALL - size))
                    size += len(text)
                    yield stem, decoders[ending](text), written
            except (OSError, ValueError, RecursionError):
                yield stem, None, 0.0


def kept(spool: Path, user: str) -> tuple[list[Step], int]:
    """The documents of a user's launches in order of time, and the number of files that are not readable as such."""
    every = [item for _, item, _ in _read_all(spool, user, json=msgspec.json.Decoder(Step).decode)]
    return sorted(filter(None, every), key=lambda step: step.began), every.count(None)


def running(spool: Path, user: str, job: str) -> list[Step]:
    """Documents of the launches of a job that are not kept yet."""
    every = list(_read_all(spool, user, job, json=msgspec.json.Decoder(Witness).decode, node=steps.node))
    documents = [item for stem, item, _ in every if isinstance(item, Witness) and stem == f"{item.host}.{item.pid}"]
    ends = {stem: written for stem, _, written in every}
    nodes = {stem: item for stem, item, _ in every if isinstance(item, Node)}
    damaged = len(every) - len(documents) - len(nodes)
    return list(
        steps.steps(job, documents, ends, nodes, [f"{damaged} files of the job cannot be read"] if damaged else [])
    )


def keep(spool: Path, job: str, days: float) -> list[Step]:
    """Replace the witnesses of an ended job of this user by documents, remove what is older than ``days``."""
    user = str(os.getuid())
    new = running(spool, user, job)
    oldest = time.time() - days * 86400
    # by its descriptor: another user may have put a link in its place
    with contextlib.suppress(OSError), _entered(spool, user) as inside:
        mine = proc.PROC / "self/fd" / str(inside)
        known = {file.read_bytes() for file in mine.glob(f"{job}.*.json")}
        texts = map(msgspec.json.encode, new)  # also those that were kept before this was interrupted
        for number, text in enumerate((text for text in texts if text not in known), len(known)):
            files.write("the document of a launch", mine / f"{job}.{number}.json", text.decode())
        shutil.rmtree(mine / job, ignore_errors=True)
        for entry in mine.iterdir():
            if entry.lstat().st_mtime < oldest:
                is_folder = entry.is_dir() and not entry.is_symlink()
                shutil.rmtree(entry, ignore_errors=True) if is_folder else entry.unlink(missing_ok=True)
    return new
