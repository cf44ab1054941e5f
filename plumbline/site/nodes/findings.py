"""Faults of a host for benchmarking, their effect on figures, and the cure."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from plumbline.base import git, paths
from plumbline.host import provenance
from plumbline.host.devices import Link
from plumbline.site.nodes.model import Node


@dataclass(frozen=True)
class NodeFinding:
    """One property of the host: ``bad`` (True, False, or None when it could not be read), its effect, its cure."""

    name: str
    seen: str
    bad: bool | None
    effect: str = ""
    cure: str = ""


#: findings that the audit of a stack (:mod:`plumbline.extras.fabric`) reads by name
LOCKED, SHM, PTRACE = "locked memory", "shared memory (/dev/shm)", "ptrace scope"
#: MPI registers memory with network adapters: less than this of locked memory makes it fail or fall back
MEMLOCK_WANTED = 64 << 20
#: ranks of one node exchange data through /dev/shm: the libraries want up to 16 MiB for the node and 6 MiB for each
#: rank, and one with less is slower or fails
SHM_WANTED_PER_CPU = 16 << 20
UNREADABLE = "not readable"


class Property(Struct, frozen=True):
    """A property of a host: its fact, whether that is bad, its effect on figures, its cure.

    ``is_bad`` and ``words``, how it is shown, are asked about the fact and the number of CPUs.
    """

    name: str
    fact: str
    is_bad: Callable[[Any, int], bool]
    effect: str = ""
    cure: str = ""
    words: Callable[[Any, int], str] = lambda fact, _: str({True: "on", False: "off"}.get(fact, fact))


PROPERTIES = (
    Property(
        "frequency governor", "governor", lambda name, _: name != "performance",
        "the clock rises only after a launch has begun", "cpupower frequency-set -g performance",
    ),
    Property(
        "turbo", "turbo", lambda is_on, _: is_on,
        "the clock depends on temperature and on what other cores do", "switch it off; every record holds its state",
    ),
    Property(
        "transparent huge pages", "thp", lambda choice, _: choice != "always",
        "large arrays pay for 4 KiB pages unless they ask", "echo always > /sys/kernel/mm/transparent_hugepage/enabled",
    ),
    Property(
        "automatic NUMA balancing", "numa_balancing", lambda is_on, _: is_on,
        "the kernel moves pages during a launch", "sysctl kernel.numa_balancing=0",
    ),
    Property("hardware threads (SMT)", "smt", lambda is_on, _: False),
    Property(
        "CPU quota of the cgroup", "cpu_quota", lambda quota, _: quota < math.inf,
        "the kernel stops the ranks for the rest of each period", "run outside the container, or lift cpu.max",
        lambda quota, _: f"{quota:g} CPUs" if quota < math.inf else "none",
    ),
    Property(
        "memory limit of the cgroup", "memory_limit", lambda limit, _: limit < math.inf,
        "large arrays end with an out-of-memory kill", "ask the scheduler for the whole node's memory",
        lambda limit, _: f"{limit / 1e9:.1f} GB" if limit < math.inf else "none",
    ),
    Property(
        "load", "load", lambda load, cpus: load[0] > 0.1 * cpus,
        "other processes share cores, caches and memory with the launches",
        "find them with top; run on an idle node", lambda load, cpus: f"{load[0]:.2f} on {cpus} CPUs",
    ),
    Property(
        LOCKED, "memlock_bytes", lambda size, _: size < MEMLOCK_WANTED,
        "RDMA networks cannot register buffers", "ulimit -l unlimited (limits.conf, the scheduler's unit)",
        lambda size, _: f"{size >> 10} KiB" if size < math.inf else "unlimited",
    ),
    Property(
        SHM, "shm_bytes", lambda size, cpus: size < cpus * SHM_WANTED_PER_CPU,
        "MPI libraries lack room for messages between ranks of a node: they are slower, or fail",
        "mount -o remount,size={shm_mib}m /dev/shm; a container has --shm-size", lambda size, _: f"{size >> 20} MiB",
    ),
    Property(
        PTRACE, "ptrace_scope", lambda scope, _: scope > 0,
        "ranks of a node may not copy from one another (CMA): large messages are copied twice",
        "sysctl kernel.yama.ptrace_scope=0", lambda scope, _: str(scope),
    ),
    Property(
        "virtual machine", "virtual", lambda name, _: False,  # a fact without a cure
        words=lambda name, _: "no" if name == "no" else f"{name}: compare figures only with those of this machine",
    ),
    Property(
        "clock source", "clocksource", lambda name, _: name not in ("tsc", "kvm-clock", "arch_sys_counter", "timebase"),
        "reading the time is a system call of microseconds", "boot with tsc=reliable",
    ),
)  # fmt: skip
#: which findings come first
ORDER = {True: 0, None: 1, False: 2}
#: programs that measurements need, and the loss without them
TOOLS = {
    "numactl": "memory policies cannot be tried on the command line",
    "lstopo-no-graphics": "the topology cannot be compared with what plumb topology shows",
    "gcc": "STREAM and the custom kernels cannot be compiled",
    "cmake": "plumb-bind and the witness cannot be built",
}


def examine(host: dict[str, Any], which: Callable[[str], str | None] = shutil.which) -> list[NodeFinding]:
    """All findings from the provenance ``host``, worst first."""
    tools = [_tool(name, lost, which) for name, lost in TOOLS.items()]
    ours = [_own(paths.binder()), _own(paths.library("witness"))]
    return by_badness([*_settings(host, os.cpu_count() or 1), *tools, *ours])


def by_badness(findings: list[NodeFinding]) -> list[NodeFinding]:
    """``findings``, worst first."""
    return sorted(findings, key=lambda finding: ORDER[finding.bad])


def own_checkout() -> list[NodeFinding]:
    """Whether records can name the commit that made them; nothing outside of a git checkout."""
    state = git.suite_state()
    if "unknown" in state:
        return [NodeFinding("commit", "unknown", True, "records do not name what made them", state["unknown"])]
    return [NodeFinding("commit", state["commit"][:12], False)] if state["commit"] else []


def examine_links(links: Iterable[Link]) -> list[NodeFinding]:
    """Whether GPUs, network cards and NVMe drives have the best PCIe link that both of its ends support."""
    return [
        NodeFinding(
            f"link of {link.address}", str(link), link.fault, "copies to and from the device have less bandwidth",
            "seat the card again, or another slot; look at dmesg and the firmware's settings of the slot",
        )
        for link in links
    ]  # fmt: skip


def _settings(host: dict[str, Any], cpus: int) -> list[NodeFinding]:
    """The findings of :data:`PROPERTIES` from the facts of a host with ``cpus`` CPUs, as records have them."""
    quota, limit, total = host["cgroup"]["cpu_quota"], host["cgroup"]["memory_limit_bytes"], host["memory_bytes"]
    facts = {
        **host,
        "virtual": host["virtual"] or "no",
        "memlock_bytes": math.inf if host["memlock_bytes"] is None else host["memlock_bytes"],
        "cpu_quota": math.inf if quota is None else quota,
        "memory_limit": math.inf if limit is None or (total is not None and limit >= total) else limit,
    }
    room = cpus * SHM_WANTED_PER_CPU >> 20
    return [
        NodeFinding(item.name, UNREADABLE, None)
        if (fact := facts.get(item.fact)) is None
        else NodeFinding(
            item.name, item.words(fact, cpus), item.is_bad(fact, cpus), item.effect, item.cure.format(shm_mib=room)
        )
        for item in PROPERTIES
    ]


def examine_node(node: Node) -> list[NodeFinding]:
    """All findings from the facts of a node; its tools are those the node has."""
    tool_paths = {name: tool.path for name, tool in node.tools.items()}
    settings = _settings(provenance.recorded(msgspec.to_builtins(node)), node.threads or os.cpu_count() or 1)
    return settings + [_tool(name, lost, tool_paths.get) for name, lost in TOOLS.items()]


def _tool(name: str, lost: str, which: Callable[[str], str | None]) -> NodeFinding:
    path = which(name)
    return NodeFinding(f"tool {name}", path or "missing", path is None, lost, f"{paths.setup()} names the package")


def _own(file: Path) -> NodeFinding:
    return NodeFinding(
        f"tool {file.name}", "built" if file.exists() else "missing", not file.exists(),
        "nothing can be placed or verified", paths.setup(),
    )  # fmt: skip
