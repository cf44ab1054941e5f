"""Calling ``plumb-bind``: the only program that turns placements into CPU numbers, and knows the placements."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Sequence
from typing import Literal, NamedTuple

from plumbline.base import paths
from plumbline.base.errors import PlumbError


class Refusal(PlumbError):
    """The answer of ``plumb-bind`` to a question that it cannot satisfy."""


def ask(arguments: Sequence[str]) -> str:
    """The output of ``plumb-bind ARGUMENTS``; :class:`Refusal` with its own line if it refuses.

    Raises :class:`PlumbError` where it is not built, or older than this checkout.
    """
    program = paths.binder()
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=60)
    except FileNotFoundError:
        raise PlumbError("plumb-bind is not built", str(program), paths.setup()) from None
    except PermissionError:
        raise PlumbError("plumb-bind cannot be executed", str(program), paths.setup()) from None
    except subprocess.TimeoutExpired:
        raise PlumbError("plumb-bind gave no answer within 60 s", " ".join(arguments)) from None
    if done.returncode != 0:
        line = done.stderr.strip().removeprefix("plumb-bind: ")
        if line.startswith("unknown option"):  # all options come from this checkout
            raise outdated(line)
        raise Refusal(line or f"plumb-bind ended with status {done.returncode}")
    return done.stdout


def outdated(why: str) -> PlumbError:
    """The error for a ``plumb-bind`` that was built before this checkout; ``why`` says what showed it."""
    return PlumbError(f"plumb-bind is older than this checkout: {why}", str(paths.binder()), paths.setup())


class Placement(NamedTuple):
    """One placement, as ``plumb-bind --list`` describes it."""

    #: the name; where numbers follow it, the part before them
    name: str
    #: the numbers that follow the name: ``N`` or ``I,J``; empty: none
    argument: str
    #: whether it is two CPUs or nodes, chosen by their distance
    pair: bool
    #: whether ranks are bound; else they run where the launcher leaves them
    bound: bool
    #: the memory policy where none is asked for
    memory: str
    #: nodes that a job needs at least
    nodes: int
    #: how ranks are assigned to nodes
    map: Literal["block", "cyclic"]


@functools.cache
def placements() -> tuple[Placement, ...]:
    """All placements, pairs from near to far. Raises :class:`PlumbError` if plumb-bind is not built."""
    listed = json.loads(ask(["--list"]))["placements"]
    try:
        return tuple(Placement(**item) for item in listed)
    except TypeError as error:
        raise outdated(str(error)) from None


def placement(name: str) -> Placement | None:
    """The placement called ``name``, such as ``core`` or ``ways:4``; None if there is none."""
    return next(
        (item for item in placements() if item.name == name or (item.argument and name.startswith(item.name))), None
    )


@functools.cache
def fault(placement: str, memory: str | None = None) -> str | None:
    """The fault in the names of a placement and a memory policy, on any machine; None: there is none."""
    try:
        ask(["--check", f"--placement={placement}", *([f"--memory={memory}"] if memory else [])])
    except Refusal as error:
        return error.message
    return None
