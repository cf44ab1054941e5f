"""The resources that a scheduler believes a node to have, and the line that corrects it.

``slurm.conf(5)``, ``pbs_node_attributes(7B)`` and ``flux-R(1)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from plumbline.base.errors import PlumbError
from plumbline.schedulers import names
from plumbline.schedulers.base import whole_json
from plumbline.schedulers.program import answer

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Believed(NamedTuple):
    """A node: its packages, cores, hardware threads, bytes of memory and GPUs; None: the scheduler does not say.

    ``gpu_cores``: ``known`` if jobs get cores near their GPUs, else ``unknown``.
    """

    packages: int | None = None
    cores: int | None = None
    threads: int | None = None
    memory: int | None = None
    gpus: int | None = None
    gpu_cores: str | None = None


def read_slurm(text: str) -> dict[str, Believed]:
    """``scontrol --oneliner show node``."""
    nodes = {}
    for line in filter(str.strip, text.splitlines()):
        known = dict(re.findall(r"(\w+)=(\S+)", line))
        sockets, cores, memory = (int(known.get(key, 0)) for key in ("Sockets", "CoresPerSocket", "RealMemory"))
        gpus = re.findall(r"\bgpu(?::[^:,(]+)?:(\d+)(\(S:)?", known.get("Gres", ""))
        threads = sockets * cores * int(known.get("ThreadsPerCore", 1))
        near = ("known" if all(sockets for _, sockets in gpus) else "unknown") if gpus else None
        count = sum(int(number) for number, _ in gpus)
        node = Believed(sockets, sockets * cores, threads, memory << 20, count, near)
        nodes[names.host(known.get("NodeName", ""), "scontrol show node")] = node
    return nodes


def read_pbs(text: str) -> dict[str, Believed]:
    """``pbsnodes -a -F json``: its ``ncpus`` may be cores or hardware threads, as the site counts."""
    nodes = {}
    for name, node in (whole_json(text, "pbsnodes").get("nodes") or {}).items():
        known = {key: str(value).lower() for key, value in (node.get("resources_available") or {}).items()}
        cpus, gpus = (int(known[key]) if known.get(key) else None for key in ("ncpus", "ngpus"))
        size = re.fullmatch(r"(\d+)([kmgt]?)b?", known.get("mem", ""))
        memory = int(size[1]) * _UNITS[size[2]] if size else None
        nodes[names.host(known.get("host", name), "pbsnodes")] = Believed(None, None, cpus, memory, gpus)
    return nodes


def read_flux(text: str) -> dict[str, Believed]:
    """``flux resource list -n -s all -o '{nodelist}|{nnodes}|{ncores}|{ngpus}'``: a line for nodes that are alike."""
    nodes: dict[str, Believed] = {}
    for folded, *counts in (line.split("|") for line in text.splitlines() if line.count("|") == 3 and line[0] != "|"):
        each, cores, gpus = map(int, counts)
        node = Believed(cores=cores // each, gpus=gpus // each)
        nodes |= dict.fromkeys(names.expand(folded, "flux resource list"), node)
    return nodes


#: what Slurm lacks where it does not know the cores near a GPU
GRES = "gres.conf: AutoDetect=nvml (AMD: rsmi), or Cores= of each GPU"
#: scheduler, as site.yaml names it -> how it is asked, how its answer is read, and the line that corrects it
DIALECTS: Mapping[str, tuple[list[str], Callable[[str], dict[str, Believed]], str]] = {
    "slurm": (
        ["scontrol", "--oneliner", "show", "node"], read_slurm,
        "slurm.conf: NodeName={nodes} Sockets={packages} CoresPerSocket={cores_each} ThreadsPerCore={threads_each} "
        "RealMemory={mebibytes}",
    ),
    "pbs": (
        ["pbsnodes", "-a", "-F", "json"], read_pbs,
        "qmgr: set node {nodes} resources_available.ncpus={threads}, and resources_available.mem={mebibytes}mb",
    ),
    "flux": (
        ["flux", "resource", "list", "-n", "-s", "all", "-o", "{nodelist}|{nnodes}|{ncores}|{ngpus}"], read_flux,
        "flux R encode --hosts={nodes} --cores=0-{last_core}",
    ),
}  # fmt: skip


def correction(scheduler: str, named: Iterable[str], has: Believed) -> str:
    """The line by which the ``named`` nodes get what they have."""
    packages, cores, threads = (max(count or 1, 1) for count in has[:3])
    return DIALECTS[scheduler][2].format(
        nodes=names.fold(named),
        packages=packages,
        cores_each=cores // packages,
        threads_each=threads // cores,
        threads=threads,
        mebibytes=(has.memory or 0) >> 20,
        last_core=cores - 1,
    )


def nodes(scheduler: str) -> dict[str, Believed]:
    """The nodes as ``scheduler`` believes them to be; raises :class:`PlumbError` where it cannot be asked."""
    if scheduler not in DIALECTS:
        raise PlumbError(f"{scheduler} is not asked", "--scheduler", f"one of {', '.join(DIALECTS)}")
    command, read, _ = DIALECTS[scheduler]
    try:
        return read(answer(command, "resources of nodes"))
    except (ValueError, AttributeError, ZeroDivisionError) as error:
        raise PlumbError(f"its answer is not understood: {error}", " ".join(command), "report this answer") from None
