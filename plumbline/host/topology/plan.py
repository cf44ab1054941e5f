"""Plans: a placement resolved on one node."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from plumbline.base import schemas
from plumbline.host.topology import binder

Count: TypeAlias = Annotated[int, Meta(ge=1)]
#: number of a rank, CPU or NUMA node; the last two are the operating system's
Index: TypeAlias = Annotated[int, Meta(ge=0)]
Cpus: TypeAlias = Annotated[list[Index], Meta(min_length=1)]


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
    arguments = ["--print", "--placement", placement]
    if allowed is not None and not isinstance(allowed, str):
        allowed = ",".join(str(cpu) for cpu in allowed)
    for option, value in (
        ("--threads", threads),
        ("--memory", memory),
        ("--ranks", ranks),
        ("--topology", topology),
        ("--machine", machine),
        ("--allowed", allowed),
    ):
        if value is not None:
            arguments += [option, str(value)]
    text = binder.ask(arguments)
    try:
        msgspec.json.decode(text, type=Printed)
        return msgspec.json.decode(text, type=Plan)
    except msgspec.ValidationError as error:
        raise binder.outdated(schemas.fault("plan", error)) from None
