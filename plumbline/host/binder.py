"""Placements and plans, by ``plumb-bind``: the only program that knows placements and turns them into CPU numbers."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta, Struct

from plumbline.base import paths, schemas
from plumbline.base.errors import PlumbError

Count: TypeAlias = Annotated[int, Meta(ge=1)]
#: number of a rank, CPU or NUMA node; the last two are the operating system's
Index: TypeAlias = Annotated[int, Meta(ge=0)]
Cpus: TypeAlias = Annotated[list[Index], Meta(min_length=1)]


class Refusal(PlumbError):
    """The answer of ``plumb-bind`` to a question that it cannot satisfy."""


def ask(arguments: Sequence[str]) -> str:
    """The output of ``plumb-bind ARGUMENTS``; :class:`Refusal` with its own line if it refuses.

    Raises :class:`PlumbError` where it is not built, or older than this checkout.
    """
    program = paths.binder()
    around = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}  # a user's may print
    try:
        done = subprocess.run(
            [program, *arguments], env=around, capture_output=True, text=True, check=False, timeout=60
        )
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


class Pages(Struct, frozen=True, gc=False, kw_only=True):
    """The memory policy of a rank, and the NUMA nodes that its pages are to lie on."""

    policy: Literal["bind", "interleave", "none"]
    nodes: list[Index]


class PlannedRank(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Where a rank and its threads run. ``places`` has the CPUs of each thread, and is empty for an unbound rank.

    Where the placement chooses a GPU or network card, ``devices`` has its PCI address, ``environment`` the variables
    that show the rank only this GPU.
    """

    local_rank: Index
    cpus: Cpus
    places: list[Cpus]
    mem: Pages
    devices: Annotated[list[str], Meta(min_length=1)] | None = None
    environment: dict[str, str] | None = None


class Plan(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A plan as records have it: early ones lack ``bound``, ``map`` and ``nodes``, imported ones every member."""

    placement: str = ""
    threads: int = 0
    memory: str = ""
    topology: str = ""
    bound: bool | None = None
    map: Literal["block", "cyclic"] | None = None
    nodes: int | None = None
    ranks: list[PlannedRank] = []

    @property
    def cpus(self) -> list[int]:
        """The CPUs of all ranks, sorted."""
        return sorted({cpu for rank in self.ranks for cpu in rank.cpus})

    @property
    def memory_nodes(self) -> list[int]:
        """The NUMA nodes that pages of any rank are to lie on, sorted; empty without a policy."""
        return sorted({node for rank in self.ranks for node in rank.mem.nodes})

    def ranks_of(self, node: int, nodes: int) -> range:
        """The ranks on a node of a job of so many: node is filled after node, or ranks are dealt to them in turn."""
        count = len(self.ranks)
        return range(node, nodes * count, nodes) if self.map == "cyclic" else range(node * count, (node + 1) * count)


class Printed(Plan, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """A placement resolved on one node, as ``plumb-bind --print`` writes it. CPU and node numbers are OS indices.

    ``topology`` is ``this host``, or the file or synthetic description given. Ranks that are not ``bound`` run where
    the launcher leaves them. ``map`` is that of ranks to nodes: node after node, or rank r on node r mod n. ``nodes``:
    how many a job needs at least.
    """

    placement: str
    threads: Count
    memory: str
    topology: str
    bound: bool
    map: Literal["block", "cyclic"]
    nodes: Count
    ranks: Annotated[list[PlannedRank], Meta(min_length=1)]


def resolve(
    placement: str,
    *,
    threads: int | None = None,
    memory: str | None = None,
    ranks: int | None = None,
    topology: str | Path | None = None,
    machine: str | None = None,
    allowed: str | Iterable[int] | None = None,
) -> Plan:
    """The plan (``plumbline/base/schemas/plan.json``) of ``placement``.

    ``threads``: of each rank; default: as many as fill the rank's object. ``ranks``: on the node; default: as many as
    fit. ``memory``: the policy; default: the placement's. ``topology``: an hwloc XML file or synthetic description;
    default: this host. ``machine``: its name in errors. ``allowed``: CPUs that may be used, as a list like ``0-3,8`` or
    as numbers. Raises :class:`PlumbError` with the binder's own line for what cannot be satisfied.
    """
    if allowed is not None and not isinstance(allowed, str):
        allowed = ",".join(str(cpu) for cpu in allowed)
    options = {
        "placement": placement,
        "threads": threads,
        "memory": memory,
        "ranks": ranks,
        "topology": topology,
        "machine": machine,
        "allowed": allowed,
    }
    text = ask(["--print", *(f"--{name}={value}" for name, value in options.items() if value is not None)])
    try:
        msgspec.json.decode(text, type=Printed)
        return msgspec.json.decode(text, type=Plan)
    except msgspec.ValidationError as error:
        raise outdated(schemas.fault("plan", error)) from None
