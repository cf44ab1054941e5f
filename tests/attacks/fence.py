"""A fence around commands that run in the process of the tests.

Inside it no program is started but those that only read, nothing is written outside of one folder, the package does not
wait, no signal is sent and no network is used: Python tells of each before it does it (PEP 578). What is refused fails
as the system itself refuses it, and is listed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest

from plumbline.launch import process

#: programs that only read, or write where the commands do
READERS = ("git", "plumb-bind", "list_settings")
STARTS = {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "subprocess.Popen"}
#: what changes files -> which of its arguments are paths
CHANGES = {
    **dict.fromkeys(("os.chmod", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree"), (0,)),
    **{"os.link": (0, 1), "os.rename": (0, 1), "os.symlink": (1,)},
}
REACHES = {"os.kill", "os.killpg", "socket.connect", "socket.getaddrinfo", "socket.sendto"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_sleep = time.sleep
#: the fence that stands, if one does: a hook of Python stays as long as its process
_standing: list[Fence] = []
_hooked: list[bool] = []


@dataclass
class Fence:
    """Where may be written; the programs that were refused, and all else."""

    folder: Path
    programs: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def hear(self, event: str, args: tuple[Any, ...]) -> None:
        """Raise OSError for what is not allowed."""
        if event in STARTS:
            program, words = Path(str(args[0] if args else event)), args[1] if args[1:] else ()
            if program.name not in READERS and "-fsyntax-only" not in words:
                self.programs.append(program.name)
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), str(program))
        elif event in REACHES:
            if getattr(args[0], "family", None) != socket.AF_UNIX:
                self._refuse(f"{event} {args}")
        elif event in CHANGES or (event == "open" and args[2] & WRITING and not isinstance(args[0], int)):
            for place in CHANGES.get(event, (0,)):
                real = Path(os.path.realpath(os.fsdecode(args[place])))
                if not real.is_relative_to(self.folder) and not real.is_relative_to(os.devnull):
                    self._refuse(f"{event} {real}")

    def _refuse(self, act: str) -> NoReturn:
        self.others.append(act)
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), act)


@contextlib.contextmanager
def around(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Fence]:
    """Have the fence within this block; what is written has to be below ``folder``."""
    (folder / "tmp").mkdir()
    patch.setattr(tempfile, "tempdir", str(folder / "tmp"))
    patch.setattr(time, "sleep", _wait)
    patch.setattr(sys, "dont_write_bytecode", True)
    patch.setattr(process, "leave_group", lambda: None)  # the group is that of the tests
    patch.setenv("GIT_ALLOW_PROTOCOL", "file")
    patch.setenv("GIT_OPTIONAL_LOCKS", "0")
    if not _hooked:
        sys.addaudithook(lambda event, args: _standing[0].hear(event, args) if _standing else None)
        _hooked.append(True)
    _standing.append(Fence(folder.resolve()))
    try:
        yield _standing[0]
    finally:
        _standing.clear()


def _wait(seconds: float) -> None:
    """Sleep, but not for the package: only the standard library waits, for programs that read."""
    if sys._getframe(1).f_globals["__name__"].startswith("plumbline."):
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), f"a wait of {seconds} s")
    _sleep(seconds)
