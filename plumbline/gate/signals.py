"""Signals while a gate runs: an interruption between launches, and none while files are written."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

from plumbline.launch.process import Interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP wait until the end of this block, while files are written."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Between launches too, SIGINT, SIGTERM and SIGHUP raise :class:`Interrupted`."""

    def stop(number: int, _: object) -> None:
        raise Interrupted(number)

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
