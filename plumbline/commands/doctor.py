"""``plumb doctor``: what is wrong with this host for benchmarking, what it does to figures, and the cure."""

from __future__ import annotations

import argparse
import math
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from plumbline.base import git, group, paths
from plumbline.base.errors import PlumbError
from plumbline.host import links, provenance
from plumbline.host.links import Link
from plumbline.nodes import compare, read
from plumbline.nodes.model import Node
from plumbline.schedulers import names
from plumbline.stacks import manifest
from plumbline.stacks.manifest import Manifest
from plumbline.tune import yields
from plumbline.views.table import table


@dataclass(frozen=True)
class Finding:
    """One property of the host: ``bad`` (True, False, or None when it could not be read), what it does, what to do."""

    name: str
    seen: str
    bad: bool | None
    effect: str = ""
    cure: str = ""


#: MPI registers memory with network adapters: less than this of locked memory makes it fail or fall back
MEMLOCK_WANTED = 64 << 20
#: ranks of one node exchange data through /dev/shm: the libraries want up to 16 MiB for the node and 6 MiB for each
#: rank, and one with less is slower or fails
SHM_WANTED_PER_CPU = 16 << 20
UNREADABLE = "not readable"


def _words(fact: Any, _: int) -> str:
    return str({True: "on", False: "off"}.get(fact, fact))


class Property(Struct, frozen=True):
    """A property of a host: which fact tells it, whether that is bad, what it does to figures, what to do.

    ``is_bad`` and ``words``, how it is shown, are asked about the fact and the number of CPUs.
    """

    name: str
    fact: str
    is_bad: Callable[[Any, int], bool]
    effect: str = ""
    cure: str = ""
    words: Callable[[Any, int], str] = _words


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
        "locked memory", "memlock_bytes", lambda size, _: size < MEMLOCK_WANTED,
        "RDMA networks cannot register buffers", "ulimit -l unlimited (limits.conf, the scheduler's unit)",
        lambda size, _: f"{size >> 10} KiB" if size < math.inf else "unlimited",
    ),
    Property(
        "shared memory (/dev/shm)", "shm_bytes", lambda size, cpus: size < cpus * SHM_WANTED_PER_CPU,
        "MPI libraries lack room for messages between ranks of a node: they are slower, or fail",
        "mount -o remount,size={shm_mib}m /dev/shm; a container has --shm-size", lambda size, _: f"{size >> 20} MiB",
    ),
    Property(
        "virtual machine", "virtual", lambda name, _: name != "no",
        "other guests take time (steal) and hide the topology", "compare it only with itself; records hold the steal",
    ),
    Property(
        "clock source", "clocksource", lambda name, _: name not in ("tsc", "kvm-clock", "arch_sys_counter", "timebase"),
        "reading the time is a system call of microseconds", "boot with tsc=reliable",
    ),
)  # fmt: skip
#: how a finding is shown, and which come first
MARKS = {True: "!!", None: "??", False: "ok"}
ORDER = {True: 0, None: 1, False: 2}
#: programs that measurements need, and what is lost without them
TOOLS = {
    "numactl": "memory policies cannot be tried on the command line",
    "lstopo-no-graphics": "the topology cannot be compared with what plumb topology shows",
    "gcc": "STREAM and the custom kernels cannot be compiled",
    "cmake": "plumb-bind and the witness cannot be built",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb doctor``."""
    parser.add_argument("--mpi", action="store_true", help="also measure the MPI libraries of the installed stacks")
    parser.add_argument("--nodes", type=Path, metavar="DIR", help="all nodes whose facts plumb nodes facts put there")


def run(args: argparse.Namespace) -> int:
    """Print what was found on this host, or on all nodes; 1 if anything is wrong, else 0."""
    if args.nodes is not None:
        return run_nodes(args.nodes)
    libraries = [examine_library(stack) for stack in manifest.load_all()] if args.mpi else []
    found = examine(provenance.collect()) + examine_links(links.read().values())
    findings = by_badness([*found, *own_checkout(), *libraries])
    print(report(findings))
    return 1 if any(finding.bad for finding in findings) else 0


def examine(host: dict[str, Any], which: Callable[[str], str | None] = shutil.which) -> list[Finding]:
    """All findings from the provenance ``host``, worst first."""
    findings = _settings(host, os.cpu_count() or 1)
    findings += [_tool(name, lost, which) for name, lost in TOOLS.items()]
    findings += [_own(paths.binder()), _own(paths.witness_library())]
    return by_badness(findings)


def by_badness(findings: list[Finding]) -> list[Finding]:
    """``findings``, worst first."""
    return sorted(findings, key=lambda finding: ORDER[finding.bad])


def own_checkout() -> list[Finding]:
    """Whether records can name the commit that made them; nothing outside of a git checkout."""
    found = git.suite_state()
    if "unknown" in found:
        return [Finding("commit", "unknown", True, "records do not name what made them", found["unknown"])]
    return [Finding("commit", found["commit"][:12], False)] if found["commit"] else []


def examine_links(found: Iterable[Link]) -> list[Finding]:
    """Whether GPUs, network cards and NVMe drives have the best PCIe link that both of its ends support."""
    return [
        Finding(
            f"link of {link.address}", str(link), link.fault, "copies to and from the device have less bandwidth",
            "seat the card again, or another slot; look at dmesg and the firmware's settings of the slot",
        )
        for link in found
    ]  # fmt: skip


def examine_library(stack: Manifest) -> Finding:
    """Whether the MPI library of a stack gives the CPU away at every poll that finds nothing, counted here.

    MPICH does so where it is built with ``--enable-thread-cs=per-vci``, its default (``MPIDI_PROGRESS_YIELD`` in its
    ``src/mpid/ch4/src/ch4_progress.h``).
    """
    name = f"yields of {stack.name}"
    try:
        found = yields.measure(stack)
    except PlumbError as error:
        return Finding(name, f"{UNREADABLE}: {error.what}", None)
    if found.kept_us is None or found.calls < 1:
        return Finding(name, f"{found.calls:.1f} an exchange", False)
    return Finding(
        name, f"{found.calls:.0f} calls of sched_yield an exchange of {yields.BYTES} B", True,
        f"a round trip takes {found.time_us:.2f} us, {found.kept_us:.2f} us where the CPU is kept",
        "no setting changes that; docs/tuning.md says which option of its configure may",
    )  # fmt: skip


def _settings(host: dict[str, Any], cpus: int) -> list[Finding]:
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
        Finding(item.name, UNREADABLE, None)
        if (fact := facts.get(item.fact)) is None
        else Finding(
            item.name, item.words(fact, cpus), item.is_bad(fact, cpus), item.effect, item.cure.format(shm_mib=room)
        )
        for item in PROPERTIES
    ]


def examine_node(node: Node) -> list[Finding]:
    """All findings from the facts of a node; its tools are those the node has."""
    found = {name: tool.path for name, tool in node.tools.items()}
    settings = _settings(provenance.recorded(msgspec.to_builtins(node)), node.threads or os.cpu_count() or 1)
    return settings + [_tool(name, lost, found.get) for name, lost in TOOLS.items()]


def run_nodes(folder: Path) -> int:
    """Print one table over all nodes whose facts are in ``folder``; 1 if anything is wrong on any, else 0."""
    facts = read.folder(folder)
    findings = {name: examine_node(node) for name, node in facts.nodes.items()}
    absent = [item.line() for item in compare.compare(facts).differences if not item.what]
    print("\n".join([*absent, nodes_report(findings)]))
    return 1 if absent or any(item.bad for found in findings.values() for item in found) else 0


def nodes_report(findings: dict[str, list[Finding]]) -> str:
    """A row per property and outcome with its nodes: faults first, what few nodes have before what many have."""
    cases = group(((item.name, item.bad), (node, item)) for node, found in findings.items() for item in found)
    rows = []
    for (name, bad), members in sorted(cases.items(), key=lambda case: (ORDER[case[0][1]], len(case[1]), case[0][0])):
        first = members[0][1]
        seen = sorted({item.seen for _, item in members})
        rows.append((
            MARKS[bad], name, "; ".join(seen[:3]) + ("; …" if len(seen) > 3 else ""), str(len(members)),
            names.fold(node for node, _ in members), f"{first.effect}; {first.cure}" if bad else "",
        ))  # fmt: skip
    wrong = {node for node, found in findings.items() if any(item.bad for item in found)}
    last = f"{len(wrong)} of {len(findings)} nodes have something to fix"
    header = ("", "property", "seen", "nodes", "which", "effect; cure")
    return table(header, rows, right=("nodes",)) + "\n\n" + last


def report(findings: list[Finding]) -> str:
    """One screen: a row per finding, the count of what is wrong last."""
    rows = [
        (MARKS[item.bad], item.name, item.seen, f"{item.effect}; {item.cure}" if item.bad else "") for item in findings
    ]
    wrong = sum(item.bad is True for item in findings)
    unknown = sum(item.bad is None for item in findings)
    last = f"{wrong} to fix, {unknown} not readable, {len(findings) - wrong - unknown} fine"
    return table(("", "property", "seen", "effect; cure"), rows) + "\n\n" + last


def _tool(name: str, lost: str, which: Callable[[str], str | None]) -> Finding:
    found = which(name)
    return Finding(f"tool {name}", found or "missing", found is None, lost, "make setup names the package")


def _own(file: Any) -> Finding:
    return Finding(
        f"tool {file.name}", "built" if file.exists() else "missing", not file.exists(),
        "nothing can be placed or verified", "make setup",
    )  # fmt: skip
