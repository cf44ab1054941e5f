"""The nodes that differ from the others, and their differences."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from plumbline import schedulers
from plumbline.base import group, paths
from plumbline.base.errors import PlumbError
from plumbline.base.units import cpu_ranges
from plumbline.host.collector import without_serials
from plumbline.schedulers import believed, names
from plumbline.schedulers.believed import Believed
from plumbline.site.nodes import collection
from plumbline.site.nodes.collection import Facts
from plumbline.site.nodes.model import Hca, Nic, Node, NumaNode

#: sizes of memory that differ by less than this fraction are the same: firmware reserves a little more or less
MEMORY = 0.01
#: seconds that a clock may be off
CLOCK = 1.0
#: PCI classes of GPUs that compute: 3D and other display controllers; a monitor's is another
COMPUTE = ("0302", "0380")
Fingerprint = dict[str, str]


class Difference(Struct, frozen=True, rename={"quantity": "what"}):
    """``quantity`` is ``here`` on these nodes (``?``: no name is known), and ``usual`` on ``others`` that answered."""

    nodes: list[str]
    quantity: str
    here: str
    usual: str = ""
    others: int = 0

    def where(self) -> str:
        """The nodes in one word."""
        return "?" if self.nodes == ["?"] else names.fold(self.nodes)

    def line(self) -> str:
        """The difference in one line for people."""
        text = f"{self.where()}: {f'{self.quantity} ' if self.quantity else ''}{self.here}"
        verb = "other has" if self.others == 1 else "others have"
        return f"{text}, {self.others} {verb} {self.usual}" if self.usual else text


@dataclass
class Comparison:
    """``groups``: names of like nodes, the largest group (the norm) first."""

    groups: list[list[str]]
    norm: Fingerprint
    differences: list[Difference]
    #: how far apart the nodes' time stamps of one job lie, in seconds
    spread: float
    answered: int
    requested: int

    def differing(self) -> list[str]:
        """Every node that is named, those that did not answer included."""
        return sorted({name for difference in self.differences for name in difference.nodes})

    def document(self) -> dict[str, Any]:
        """As ``plumb nodes compare --json`` prints it."""
        return {
            "asked": self.requested, "answered": self.answered, "groups": self.groups, "norm": self.norm,
            "differences": msgspec.to_builtins(self.differences), "clock_spread_s": round(self.spread, 3),
            "differing": self.differing(),
        }  # fmt: skip


def compare(facts: Facts) -> Comparison:
    """Group the nodes that are alike and name the differences of the others; nodes without an answer come first."""
    sizes = _memory_classes(node.memory_bytes for node in facts.nodes.values())
    prints = {name: _fingerprint(node, sizes) for name, node in facts.nodes.items()}
    members = group((tuple(fingerprint.values()), name) for name, fingerprint in prints.items())
    groups = sorted(map(sorted, members.values()), key=lambda alike: (-len(alike), alike))
    norm = prints[groups[0][0]]
    counts = {quantity: Counter(fingerprint[quantity] for fingerprint in prints.values()) for quantity in norm}
    apart = group(
        ((quantity, here), name)
        for alike in groups[1:]
        for quantity, here in prints[alike[0]].items()
        if here != norm[quantity]
        for name in alike
    )
    differences = [*_absent(facts)]
    for (quantity, here), others in sorted(apart.items(), key=lambda item: (len(item[1]), item[1], item[0])):
        usual = norm[quantity]
        differences.append(Difference(sorted(others), quantity, here, usual, counts[quantity][usual]))
    times = {name: node.time for name, node in facts.nodes.items()}
    differences += clocks(times, facts.job)
    spread = max(times.values()) - min(times.values())
    requested = len(facts.nodes) + len(facts.damaged) + len(facts.silent) + facts.unnamed()
    return Comparison(groups, norm, differences, spread, len(facts.nodes), requested)


def against(facts: Facts, scheduler: str) -> tuple[list[Difference], list[str]]:
    """The differences of the nodes from what ``scheduler`` believes of them (``usual``), and lines that correct it.

    Less memory than there is, by up to a tenth, is no difference, nor are sockets that are NUMA nodes or shared caches
    (``numa_node_as_socket``, ``l3cache_as_socket`` of Slurm).
    """
    known = {name.partition(".")[0]: node for name, node in believed.nodes(scheduler).items()}
    apart: dict[tuple[str, str, str], list[str]] = {}
    wrong: dict[Believed, list[str]] = {}
    for name, node in facts.nodes.items():
        if not (thought := known.get(name.partition(".")[0])):
            apart.setdefault(("", f"unknown to {scheduler}", ""), []).append(name)
            continue
        gpus = len([gpu for gpu in node.gpus if gpu.pci_class in COMPUTE])
        numa_nodes = len([numa for numa in node.numa if numa.cpus])
        is_cut = thought.packages and thought.packages % max(numa_nodes, node.packages or 1) == 0
        packages = thought.packages if is_cut else node.packages
        near = "known" if numa_nodes > 1 and any(gpu.numa is not None and gpu.numa >= 0 for gpu in node.gpus) else None
        has = Believed(packages, node.cores, node.threads, node.memory_bytes, gpus, near)
        # the system needs some memory; PBS counts cores or hardware threads, as its site does
        fits: dict[str, Container[int | str | None]] = {
            "memory": range(int(0.9 * (has.memory or 0)), (has.memory or 0) + 1),
            **({"threads": (has.threads, has.cores)} if thought.cores is None else {}),
        }
        for quantity, here, usual in zip(Believed._fields, has, thought, strict=True):
            if here is not None and usual is not None and usual not in fits.get(quantity, (here,)):
                words = [
                    f"{int(value) / 2**30:.4g} GiB" if quantity == "memory" else str(value) for value in (here, usual)
                ]
                apart.setdefault((quantity, words[0], words[1]), []).append(name)
                if quantity != "gpu_cores":
                    wrong.setdefault(has, []).append(name)
    lines = [believed.correction(scheduler, dict.fromkeys(every), has) for has, every in wrong.items()]
    lines += [believed.GRES] * any(quantity == "gpu_cores" for quantity, *_ in apart)
    return [Difference(every, *words) for words, every in apart.items()], lines


def _fingerprint(node: Node, sizes: dict[int, int]) -> Fingerprint:
    """The properties that are equal on like nodes, as words for people; every node has the same keys in one order."""
    knobs, size = node.knobs, node.memory_bytes
    return {
        "CPU": _said(node.cpu.model),
        "packages/cores/threads": "/".join(map(_said, (node.packages, node.cores, node.threads))),
        "CPUs allowed": _said(_length(node.cgroup.cpus_allowed)),
        "NUMA": _numa(node.numa),
        "memory": "not readable" if size is None else f"{sizes[size] / 2**30:.1f} GiB",
        "kernel": node.kernel,
        "distribution": _said(node.distribution),
        "microcode": _said(node.cpu.microcode),
        "SMT": _said(node.smt),
        "turbo": _said(knobs.turbo),
        "THP": _said(knobs.thp),
        "NUMA balancing": _said(knobs.numa_balancing),
        "governor": _said(knobs.governor),
        "clock source": _said(knobs.clocksource),
        "GPUs": _counted(f"{gpu.vendor}:{gpu.device} at NUMA {_said(gpu.numa, '-')}" for gpu in node.gpus),
        "GPU driver": _said(node.gpu_driver, "none"),
        "network cards": _counted(_nic(nic) for nic in node.nics if nic.physical),
        "fabric adapters": _counted(_hca(hca) for hca in node.hcas),
    }


def clocks(times: Mapping[str, float], job: Mapping[str, Any]) -> Iterator[Difference]:
    """Nodes whose clock is off by more than :data:`CLOCK`.

    ``times`` are the time stamps by node, in seconds since 1970. One outside the time in which the starting host saw
    the job is certainly off. Within it, a node counts as off if it is far from the median of at least three; that
    includes a late start, so the spread is reported; where the nodes are asked one after the other it says nothing.
    """
    at_once = not (job.get("scheduler") and schedulers.named(str(job["scheduler"])).one_by_one)
    middle = statistics.median(times.values())
    spread = max(times.values()) - min(times.values())
    for name, when in sorted(times.items()):
        if job and not job["began"] - CLOCK <= when <= job["ended"] + CLOCK:
            off = when - job["ended"] if when > job["ended"] else when - job["began"]
            here = f"at least {abs(off):.1f} s {'ahead of' if off > 0 else 'behind'} the host that started the job"
            yield Difference([name], "clock", here)
        elif at_once and len(times) >= 3 and abs(when - middle) > CLOCK:
            here = f"{abs(when - middle):.1f} s {'ahead of' if when > middle else 'behind'} the median"
            late = f"(or started then: starts of the job spread over {spread:.1f} s)"
            yield Difference([name], "clock", f"{here} {late}")


def summary(facts: Facts, comparison: Comparison) -> str:
    """One line about the nodes of a partition, for ``site.yaml``."""
    norm, like = comparison.norm, len(comparison.groups[0])
    nodes, numa = f"{like} like node{'s' * (like != 1)}", len(facts.nodes[comparison.groups[0][0]].numa)
    places = f"packages/cores/threads {norm['packages/cores/threads']}, NUMA nodes {numa}"
    text = f"{nodes}: {norm['CPU']}, {places}, memory {norm['memory']}"
    others = [name for group in comparison.groups[1:] for name in group]
    return f"{text}; {names.fold(others)} differ{'s' * (len(others) == 1)}" if others else text


@dataclass(frozen=True)
class Captured:
    """Topology, limits and summary of the nodes of a partition.

    Topology and limits are those of one node of the largest group of equal nodes; ``nodes`` is how many answered.
    """

    topology: str
    limits: dict[str, int | float]
    nodes: int
    summary: str


def captured(folder: Path) -> Captured:
    """The facts that ``plumb nodes facts`` wrote into ``folder``; raises :class:`PlumbError` if it has no topology."""
    facts = collection.folder(folder)
    comparison = compare(facts)
    for name in comparison.groups[0]:
        xml = collection.topology(facts, name)
        if xml is not None:
            limits = facts.nodes[name].limits
            return Captured(without_serials(xml), limits, len(facts.nodes), summary(facts, comparison))
    reason = facts.nodes[comparison.groups[0][0]].missing.get("topology", "no HOST.xml is there")
    message = f"no node of the largest group of equal nodes has a topology: {reason}"
    raise PlumbError(message, str(folder), f"{paths.setup()}, then again")


def _absent(facts: Facts) -> Iterator[Difference]:
    silent = group((why, name) for name, why in facts.silent.items())
    yield from (Difference(nodes, "", why) for why, nodes in sorted(silent.items()))
    for file, why in sorted(facts.damaged.items()):
        name = file.rsplit(".", 1)[0]
        # a damaged file may have any name; only a host name can be folded
        yield Difference([name if names.HOST.fullmatch(name) else "?"], "", f"{file!r}: {why[:200]}")
    if unnamed := facts.unnamed():
        yield Difference(["?"], "", f"{unnamed} of the nodes that were asked for did not answer")


def _memory_classes(sizes: Iterable[int | None]) -> dict[int, int]:
    """Each size -> the smallest size that it is the same as."""
    classes: dict[int, int] = {}
    base = None
    for size in sorted({size for size in sizes if size is not None}):
        if base is None or size > base * (1 + MEMORY):
            base = size
        classes[size] = base
    return classes


def _length(cpus: str | None) -> int | None:
    """How many CPUs ``0-3,8`` are: which of them a job gets may differ between like nodes."""
    try:
        return None if cpus is None else sum(part.stop - part.start for part in cpu_ranges(cpus))
    except ValueError:
        return None


def _numa(nodes: list[NumaNode]) -> str:
    cpus = " ".join(f"{node.node}:{node.cpus or 'no CPU'}" for node in nodes)
    distances = "/".join(" ".join(map(str, node.distances)) for node in nodes)
    return f"{len(nodes)} ({cpus}; distances {distances})"


def _nic(nic: Nic) -> str:
    speed = "speed unknown" if nic.speed_mbit is None else f"{nic.speed_mbit / 1000:g} Gbit/s"
    return f"{_said(nic.driver)} {speed} {_said(nic.state)}"


def _hca(hca: Hca) -> str:
    ports = ", ".join(
        f"{_said(port.state)} {_said(port.rate_gbit)} Gbit/s {_said(port.link_layer, '')}".strip() for port in hca.ports
    )
    return f"{_said(hca.type)} ({ports}) at NUMA {_said(hca.numa, '-')}"


def _counted(kinds: Iterable[str]) -> str:
    return " + ".join(f"{count} × {kind}" for kind, count in sorted(Counter(kinds).items())) or "none"


def _said(value: Any, absent: str = "not readable") -> str:
    if value is None:
        return absent
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else f"{value}"
