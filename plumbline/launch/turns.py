"""Launches on one host take turns: two that run at once would disturb each other.

A turn is an abstract address of unix(7): one process of the host can have it, and the kernel releases it when that
process ends, however it ends. Nothing is left behind, and no file has to be writable by everybody. Any user can have
it, so the turn of another user is only waited for while what that user started works.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import socket
import struct
import sys
import time
from collections.abc import Iterator

from plumbline.host import proc
from plumbline.launch import process

ADDRESS = "\0plumbline measures a launch"
#: seconds that a launch waits for others: more than most launches take, and not for hours beside a long one
PATIENCE_S = 60.0
#: waits that take longer are told
TOLD_S = 2.0
#: seconds in which another user's launch must use CPU time to be waited for
IDLE_S = 2.0
_POLL_S = 0.05
#: processes that kept the turn for as long as anybody waits: they are not waited for again
_slow: set[int] = set()


@contextlib.contextmanager
def held(patience_s: float = PATIENCE_S) -> Iterator[list[str]]:
    """Have this host's turn within this block. Yields a remark for the launch if another one kept it all the time."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as turn:
        if _bound(turn) or (_holder()[0] not in _slow and _waited(turn, patience_s)):
            yield []
        else:
            yield [f"measured beside another launch on this host{_named(*_holder())}"]


def _waited(turn: socket.socket, patience_s: float) -> bool:
    """Whether the turn came within ``patience_s`` seconds."""
    begin = looked = time.monotonic()
    announced, work = False, _work(*_holder())
    while (waited := time.monotonic() - begin) <= patience_s:
        if waited > TOLD_S and not announced:
            announced = True
            print(f"plumb: waiting for another launch on this host{_named(*_holder())}", file=sys.stderr, flush=True)
        time.sleep(_POLL_S)
        if _bound(turn):
            return True
        if time.monotonic() - looked > IDLE_S:
            before, work, looked = work, _work(*_holder()), time.monotonic()
            if work is not None and work == before:
                break
    _slow.add(_holder()[0])
    _slow.discard(-1)
    return False


def _bound(turn: socket.socket) -> bool:
    """Whether ``turn`` has the address now, or none can be had here: then nobody waits for it."""
    try:
        turn.bind(ADDRESS)
        turn.listen()  # so that it can be asked who has it
    except OSError as error:
        return error.errno != errno.EADDRINUSE
    return True


def _holder() -> tuple[int, int]:
    """Process and user that have the turn; -1 if it has just ended, process 0 if it is of another PID namespace."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)
        asking.connect(ADDRESS)
        size = struct.calcsize("3i")
        pid, uid, _ = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        return pid, uid
    return -1, -1


def _work(pid: int, uid: int) -> int | None:
    """CPU time, in clock ticks, of a process of another user and of those below it; None where it is not to be asked.

    Root and oneself are trusted; of other users a host may hide the processes. Who cannot be asked does nothing.
    """
    if pid == -1:
        return 0
    if uid in (0, os.geteuid()):
        return None
    try:
        every = [proc.stat(proc.PROC / str(number)) for number in (pid, *process.descendants(pid))]
    except OSError:
        return None
    return sum(stat.cpu_ticks + stat.children_ticks for stat in every)


def _named(pid: int, uid: int) -> str:
    with contextlib.suppress(OSError):
        user = "" if uid == os.geteuid() else f" of user {_user(uid)}"
        return f": process {pid} ({proc.stat(proc.PROC / str(pid)).name}){user}"
    return ""


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
