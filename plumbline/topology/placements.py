"""The placements that plumb-bind knows: their names, and what is known of each without a machine."""

from __future__ import annotations

import functools
import json
from typing import Literal, NamedTuple

from plumbline.topology import binder


class Placement(NamedTuple):
    """One placement, as ``plumb-bind --list`` describes it."""

    #: the name; where numbers follow it, what stands before them
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
def listed() -> tuple[Placement, ...]:
    """All placements, pairs from near to far. Raises :class:`PlumbError` if plumb-bind is not built."""
    found = json.loads(binder.ask(["--list"]))["placements"]
    try:
        return tuple(Placement(**item) for item in found)
    except TypeError as error:
        raise binder.outdated(str(error)) from None


def find(name: str) -> Placement | None:
    """The placement called ``name``, such as ``core`` or ``ways:4``; None if there is none."""
    return next(
        (item for item in listed() if item.name == name or (item.argument and name.startswith(item.name))), None
    )
