"""A full disk or a missing permission, told as every other fault is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from plumbline import paths
from plumbline.errors import PlumbError


@contextmanager
def writing(what: str, then: str = "do it again: it goes on") -> Iterator[None]:
    """Turn an OSError of the block into a :class:`PlumbError`: ``what`` could not be written, and where.

    ``then`` says what to do once there is space.
    """
    try:
        yield
    except BrokenPipeError:  # whoever read the progress has gone
        raise
    except OSError as error:
        raise PlumbError(
            f"cannot write {what}: {error.strerror or error}",
            str(error.filename or paths.stacks()),
            f"free space or mend the permissions, then {then}",
        ) from None
