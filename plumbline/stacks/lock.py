"""One process at a time makes something below ``stacks/``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from plumbline import files, paths


@contextmanager
def locked(name: str) -> Iterator[bool]:
    """Hold the lock of ``name`` (a stack, or ``abi``, ``blas``, ``spack``, ``archive``).

    Yields true if it had to wait for another process, which may have made what this one wanted to make.
    """
    path = paths.stacks() / f".{name}.lock"
    with ExitStack() as held:
        try:
            held.enter_context(files.lock(path, wait=False))
            waited = False
        except BlockingIOError:
            print(f"{name}: waiting for another installation of it", flush=True)
            held.enter_context(files.lock(path))
            waited = True
        yield waited
