"""Programs that end with this process, and the signals by which it is interrupted while it measures.

Those interrupt between launches too, but not while files are written.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
#: starts a program, and ends its whole process group when it gets SIGTERM itself
_GROUP = ("bash", "-c", 'trap "trap - TERM; kill 0" TERM; "$@" & wait $!', "bash")
#: SIGUSR2: some schedulers announce by it that they will kill the job
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2)


def die_with_parent() -> None:
    """In a new process: have it sent SIGTERM if its parent is killed outright, so that it ends its own processes."""
    LIBC.prctl(1, signal.SIGTERM, 0, 0, 0)  # PR_SET_PDEATHSIG


def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """As subprocess.run, for a program with processes of its own: all of them are ended if this process ends.

    So are they where it is interrupted. They do not see the terminal's Ctrl-C themselves.
    """
    with subprocess.Popen(
        [*_GROUP, *command], text=True, start_new_session=True, preexec_fn=die_with_parent, **options
    ) as child:
        try:
            printed = child.communicate()
            return subprocess.CompletedProcess(command, child.returncode, *printed)
        finally:
            child.terminate()  # nothing, where it has ended


class Interrupted(Exception):
    """One of the signals that interrupt, ``signum``, arrived; the running launch has been ended."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


def interrupting() -> tuple[signal.Signals, ...]:
    """The signals that interrupt: not SIGHUP where it is ignored, as by nohup(1)."""
    return tuple(signum for signum in _SIGNALS if signum != signal.SIGHUP or signal.getsignal(signum) != signal.SIG_IGN)


@contextlib.contextmanager
def handling(numbers: Iterable[int], handler: Callable[[int, Any], object] | signal.Handlers) -> Iterator[None]:
    """In this block the signals ``numbers`` go to ``handler``, after it to whom they went before."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """The signals that interrupt wait until the end of this block, while files are written."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """In this block the signals that interrupt raise :class:`Interrupted`, between launches too."""

    def stop(number: int, _: object) -> None:
        raise Interrupted(number)

    with handling(interrupting(), stop):
        yield
