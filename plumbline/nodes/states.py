"""States of the nodes of a partition: which can be used now, and why the others cannot."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from plumbline.errors import PlumbError
from plumbline.nodes import names, ssh
from plumbline.nodes.process import answer
from plumbline.provenance import host_name

WHERE = "plumb nodes states"
#: seconds for a host to answer ``true`` by ssh
REACH = 30
SLURM_USABLE = {"idle", "mixed", "allocated", "completing", "planned"}
#: power saving wakes these for a job; the other signs (not responding, maintenance, reboot …) keep jobs away
SLURM_WAKES = {"~", "#", "-", "+"}
PBS_USABLE = {"free", "busy", "job-busy", "job-exclusive", "job-sharing", "<various>"}
LSF_USABLE = {"ok", "closed_Full", "closed_Excl", "closed_cu_excl", "closed_Busy"}
LSF_REASONS = {
    "closed_Adm": "closed by an administrator",
    "closed_EGO": "closed by the resource manager",
    "closed_LIM": "the load manager does not answer",
    "closed_Lock": "locked",
    "closed_Wind": "outside its dispatch window",
    "unavail": "down",
    "unreach": "the batch daemon does not answer",
    "unlicensed": "no licence",
}
FLUX_USABLE = {"avail", "allocated", "housekeeping"}


@dataclass(frozen=True)
class Node:
    """A node with the scheduler's word for its state; ``reason`` is empty if none is given."""

    name: str
    state: str
    usable: bool
    reason: str = ""

    def row(self) -> dict[str, Any]:
        """As ``plumb nodes states --json`` prints it."""
        return asdict(self)


def states(scheduler: str, queue: str | None, hosts: Sequence[str] = ()) -> list[Node]:
    """The nodes of ``queue`` (None: of the cluster), or the ``hosts`` of scheduler ``ssh``, sorted by name."""
    if scheduler == "local":
        found = [Node(names.host(host_name(), "this host"), "up", True)]
    elif scheduler == "ssh":
        found = reachable(hosts)
    elif scheduler in ("slurm", "squeue"):
        chosen = [f"--partition={queue}"] if queue else []
        found = slurm(answer(["sinfo", "-N", "-h", "-o", "%N|%T|%E", *chosen], WHERE))
    elif scheduler == "pbs":
        found = pbs(answer(["pbsnodes", "-a", "-F", "json"], WHERE), queue)
    elif scheduler == "lsf":
        found = lsf(answer(["bhosts", "-w", "-o", "host_name status", "-json", *_lsf_hosts(queue)], WHERE))
    elif scheduler == "flux":
        chosen = [f"--queue={queue}"] if queue else []
        found = flux(answer(["flux", "resource", "status", "-n", "-o", "{state}|{nodelist}|{reason}", *chosen], WHERE))
    else:
        raise PlumbError(f"states of nodes under {scheduler} cannot be read", WHERE, "name the nodes with --node")
    if not found:
        raise PlumbError(f"{queue or scheduler} has no nodes", WHERE, "name another partition")
    return sorted(found, key=lambda node: _natural(node.name))


def slurm(text: str) -> list[Node]:
    """``sinfo -N -h -o '%N|%T|%E'``: a line per node (and partition): name, state in full, reason (``none``).

    The state may end in signs: ``*`` does not respond, ``~`` ``#`` asleep or waking, ``%`` ``!`` going to sleep,
    ``$`` in maintenance, ``@`` ``^`` rebooting, ``-`` planned for a job.
    """
    found: dict[str, Node] = {}
    for line in filter(str.strip, text.splitlines()):
        name, state, reason = (part.strip() for part in _split(line, "sinfo"))
        base = state.rstrip("*~#!%$@^-+")
        usable = base in SLURM_USABLE and set(state[len(base) :]) <= SLURM_WAKES
        why = "" if reason.lower() in ("none", "n/a") else reason
        if "*" in state:
            why = "does not respond" + (f"; {why}" if why else "")
        if "$" in state:
            why = "in a maintenance reservation" + (f"; {why}" if why else "")
        node = Node(names.host(name, "sinfo"), state, usable, why)
        found.setdefault(node.name, node)
    return list(found.values())


def pbs(text: str, queue: str | None) -> list[Node]:
    """``pbsnodes -a -F json``: ``nodes`` -> name -> ``state`` (a list joined by commas), ``comment``, ``queue``.

    With a queue, nodes tied to another one are left out: by their attribute ``queue``, or by
    ``resources_available.Qlist``, as many sites have it. A node tied to none is in every queue.
    """
    document = _json(text, "pbsnodes")
    nodes = []
    for name, node in (document.get("nodes") or {}).items():
        parts = [part.strip() for part in str(node.get("state", "state-unknown")).split(",")]
        tied = str(node.get("queue") or (node.get("resources_available") or {}).get("Qlist") or "").split(",")
        if queue is not None and tied != [""] and queue not in [word.strip() for word in tied]:
            continue
        usable = set(parts) <= PBS_USABLE
        comment = str(node.get("comment") or "")
        nodes.append(Node(names.host(name, "pbsnodes"), ",".join(parts), usable, "" if usable else comment))
    return nodes


def lsf(text: str) -> list[Node]:
    """``bhosts -o 'host_name status' -json``: ``RECORDS`` with ``HOST_NAME``, ``STATUS`` (``ok``, ``closed_Adm``)."""
    nodes = []
    for record in _json(text, "bhosts").get("RECORDS") or []:
        state = str(record.get("STATUS", ""))
        usable = state in LSF_USABLE
        reason = "" if usable else LSF_REASONS.get(state, "")
        nodes.append(Node(names.host(str(record.get("HOST_NAME", "")), "bhosts"), state, usable, reason))
    return nodes


def flux(text: str) -> list[Node]:
    """``flux resource status -n -o '{state}|{nodelist}|{reason}'``: a line per state; ``*`` at its end means offline.

    ``status`` rather than ``list``: the scheduler's view calls everything ``down`` and knows no reason.
    """
    found: dict[str, Node] = {}
    for line in filter(str.strip, text.splitlines()):
        state, folded, reason = (part.strip() for part in _split(line, "flux resource status"))
        if not folded:
            continue
        usable = state in FLUX_USABLE
        why = "; ".join(part for part in ("offline" if state.endswith("*") else "", reason) if part)
        for name in names.expand(folded, "flux resource status"):
            if name not in found or found[name].usable:  # a line that forbids its use counts more
                found[name] = Node(name, state, usable, "" if usable else why)
    return list(found.values())


def reachable(hosts: Sequence[str]) -> list[Node]:
    """Each host answers ``true`` by ssh or not, with what ssh says."""
    if not hosts:
        raise PlumbError("scheduler ssh needs hosts", WHERE, "give --hosts A,B")
    done = ssh.each({names.host(name, "--hosts"): ["true"] for name in hosts}, REACH)
    return [
        Node(name, "reachable", True) if told.status == 0 else Node(name, "unreachable", False, told.last())
        for name, told in done.items()
    ]


def usable(nodes: Iterable[Node]) -> list[str]:
    """Names of the nodes that can be used."""
    return [node.name for node in nodes if node.usable]


def _lsf_hosts(queue: str | None) -> list[str]:
    """Hosts and host groups of a queue (``bqueues -o hosts -json``); none means all."""
    if queue is None:
        return []
    records = _json(answer(["bqueues", "-o", "hosts", "-json", queue], WHERE), "bqueues").get("RECORDS") or [{}]
    words = [word.split("+")[0].rstrip("/") for word in str(records[0].get("HOSTS", "")).split()]
    return [] if words in ([], ["all"]) else [names.host(word, "bqueues") for word in words]


def _split(line: str, program: str) -> list[str]:
    parts = line.split("|", 2)
    if len(parts) != 3:
        raise PlumbError(f"{program} printed what is not understood: {line[:100]!r}", WHERE, "run it by hand")
    return parts


def _json(text: str, program: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise PlumbError(f"{program} printed no valid JSON: {error}", WHERE, "run it by hand") from None
    if not isinstance(document, dict):
        raise PlumbError(f"{program} printed no JSON object", WHERE, "run it by hand")
    return document


def _natural(name: str) -> list[tuple[int, str]]:
    """Sorts node9 before node10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
