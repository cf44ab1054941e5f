"""A bound on the time that reading an output takes: a pattern may have more ways to try than a day has time for."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

from plumbline.parsers.measurement import ParseError

#: seconds of CPU time
MOST_S = 20.0


@contextlib.contextmanager
def bounded(seconds: float | None = None) -> Iterator[None]:
    """Raise :class:`ParseError` in the block once it has used ``seconds`` (:data:`MOST_S`) of CPU time.

    Python's patterns look for signals while they try. Only the main thread gets them: in another there is no bound.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    most = MOST_S if seconds is None else seconds

    def stop(*_: object) -> None:
        message = f"reading the output takes more than {most:g} s of CPU time"
        raise ParseError(message, "the patterns of plumb.yaml", "repeat no group that repeats itself, as (a+)+ does")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
