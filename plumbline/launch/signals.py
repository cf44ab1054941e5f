"""Signals while launches are measured: they interrupt between launches too, but not while files are written."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

#: SIGUSR2: some schedulers announce by it that they will kill the job
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2)


class Interrupted(Exception):
    """One of the signals that interrupt, ``signum``, arrived; the running launch has been ended."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


def handled() -> tuple[signal.Signals, ...]:
    """The signals that interrupt: not SIGHUP where it is ignored, as by nohup(1)."""
    return tuple(signum for signum in _SIGNALS if signum != signal.SIGHUP or signal.getsignal(signum) != signal.SIG_IGN)


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

    before = {number: signal.signal(number, stop) for number in handled()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
