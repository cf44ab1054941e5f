"""Calling ``plumb-bind``: the only program that turns placements into CPU numbers."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from plumbline.base import paths
from plumbline.base.errors import PlumbError


def ask(arguments: Sequence[str]) -> str:
    """What ``plumb-bind ARGUMENTS`` prints; :class:`PlumbError` with its own line if it refuses."""
    program = paths.binder()
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=60)
    except FileNotFoundError:
        raise PlumbError("plumb-bind is not built", str(program), "make setup") from None
    except PermissionError:
        raise PlumbError("plumb-bind cannot be executed", str(program), "make setup") from None
    except subprocess.TimeoutExpired:
        raise PlumbError("plumb-bind gave no answer within 60 s", " ".join(arguments)) from None
    if done.returncode != 0:
        line = done.stderr.strip().removeprefix("plumb-bind: ")
        if line.startswith("unknown option"):  # all options come from this checkout
            raise outdated(line)
        raise PlumbError(line or f"plumb-bind ended with status {done.returncode}")
    return done.stdout


def outdated(why: str) -> PlumbError:
    """The error for a ``plumb-bind`` that was built before this checkout; ``why`` says what showed it."""
    return PlumbError(f"plumb-bind is older than this checkout: {why}", str(paths.binder()), "make setup")
