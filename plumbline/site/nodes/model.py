"""Facts of one node, as ``plumbline/host/collector.py`` writes them: it runs on nodes without this package.

What could not be read is null, and ``missing`` says why.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field


class _Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mapping whose members are all known."""


class Processor(_Part, frozen=True, kw_only=True):
    """The processors of a node; ``simd``: their vector instructions."""

    model: str | None
    microcode: str | None
    simd: list[str]


class NumaNode(_Part, frozen=True, kw_only=True):
    """A NUMA node; ``distances`` are those of the kernel's table."""

    node: int
    cpus: str
    memory_mib: int | None
    distances: list[int]


class Cgroup(_Part, frozen=True, kw_only=True):
    """What the control group of the collector leaves it; ``cpus_allowed``: with its affinity."""

    cpu_quota: float | None
    memory_limit_bytes: int | None
    cpus_allowed: str | None


class Nic(_Part, frozen=True, kw_only=True):
    """A network card."""

    name: str
    physical: bool
    driver: str | None
    speed_mbit: int | None
    state: str | None
    numa: int | None


class Port(_Part, frozen=True, kw_only=True):
    """A port of a fabric adapter."""

    port: int
    state: str | None
    rate_gbit: int | float | None
    link_layer: str | None


class Hca(_Part, frozen=True, kw_only=True):
    """A fabric adapter."""

    name: str
    type: str | None
    numa: int | None
    ports: list[Port]


class Gpu(_Part, frozen=True, kw_only=True):
    """A GPU."""

    address: str
    pci_class: str = field(name="class")
    vendor: str | None
    device: str | None
    numa: int | None


class Knobs(_Part, frozen=True, kw_only=True):
    """What can be set.

    ``shm_bytes``: size of /dev/shm; ``ptrace_scope``: that of Yama, 0 without it; ``huge_pages``: those reserved;
    ``xpmem`` and ``knem``: whether the device file may be opened. Facts of earlier versions lack these.
    """

    governor: str | None
    frequency_driver: str | None
    turbo: bool | None
    thp: str | None
    thp_defrag: str | None
    numa_balancing: bool | None
    zone_reclaim: int | None
    swappiness: int | None
    perf_event_paranoid: int | None
    clocksource: str | None
    shm_bytes: int | UnsetType | None = UNSET
    ptrace_scope: int | UnsetType | None = UNSET
    huge_pages: int | UnsetType | None = UNSET
    xpmem: bool | UnsetType | None = UNSET
    knem: bool | UnsetType | None = UNSET
    memlock_bytes: int | Literal["unlimited"]


class Mount(_Part, frozen=True, kw_only=True):
    """The file system of the folder that the facts were written to."""

    path: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    source: str | UnsetType = UNSET


class Tool(_Part, frozen=True, kw_only=True):
    """A program, and what it says of its version."""

    path: str
    version: str


class Node(_Part, frozen=True, kw_only=True):
    """Facts of one node. ``host``: as the scheduler names it; ``job``: the collection, the same on all its nodes.

    ``time`` (UTC, seconds since 1970) and ``monotonic`` (of the node's clock) are of the collector's begin.
    ``virtual`` is the hypervisor, null on bare metal; ``threads``: hardware threads that are online. ``gpu_driver`` is
    the kernel's module for GPUs with its version. ``limits`` are facts for physical limits, by their names in
    ``site.yaml``. ``missing``: what could not be read, and why.
    """

    schema: Literal[1]
    host: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$(?!\n)")]
    job: str | None
    time: float
    monotonic: float
    machine: str
    kernel: str
    distribution: str | None
    virtual: str | None
    cpu: Processor
    packages: int | None
    cores: int | None
    threads: int | None
    smt: bool | None
    cpus_online: str | None
    memory_bytes: int | None
    numa: list[NumaNode]
    cgroup: Cgroup
    load: list[float] | None
    nics: list[Nic]
    hcas: list[Hca]
    gpus: list[Gpu]
    gpu_driver: str | None = None
    knobs: Knobs
    limits: dict[str, int | float]
    mount: Mount
    tools: dict[str, Tool]
    scheduler: dict[str, str]
    missing: dict[str, str]
