"""One process at a time makes something below ``stacks/``."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from plumbline import paths


@contextmanager
def alone(name: str) -> Iterator[bool]:
    """Hold the lock of ``name``; true when another process had to be waited for."""
    paths.stacks().mkdir(parents=True, exist_ok=True)
    with (paths.stacks() / f".{name}.lock").open("w") as handle:
        waited = False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{name}: waiting for another installation of it", flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
            waited = True
        yield waited
