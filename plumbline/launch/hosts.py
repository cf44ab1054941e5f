"""The nodes of a launch: their names, and the facts of each.

``python -m plumbline.launch.hosts FOLDER`` runs once on every node and leaves that node's provenance in FOLDER.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plumbline import mpi, schedulers
from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Partition
from plumbline.host import provenance
from plumbline.launch import process
from plumbline.launch.environment import at_home
from plumbline.launch.witness.compare_nodes import same_host

#: seconds in which every node must have answered; srun tries again after 60 to 69 where slurmctld was just restarted
PATIENCE_S = 90.0


def chosen(partition: Partition, nodes: int) -> tuple[str, ...]:
    """The hosts of a launch on ``nodes`` nodes of a partition without a scheduler, this one first.

    Those of its job, where that was started on some of them; else the partition's in their order.
    Empty for one node, and where the scheduler of the partition gives the hosts. Raises :class:`PlumbError` where the
    partition names too few, or does not name the host that this runs on.
    """
    named = tuple(partition.hosts)
    where = f"partition {partition.name}"
    if not named:
        if nodes > 1 and schedulers.named(partition.scheduler).hosts_are_named:
            cure = "name them in site.yaml: hosts: [node1, node2]"
            raise PlumbError(f"{nodes} nodes asked, and neither a scheduler nor hosts gives them", where, cure)
        return ()
    ordered = _this_first(schedulers.named(partition.scheduler).hosts(os.environ)) or _this_first(named)
    if not ordered:
        cure = f"its hosts are {', '.join(named)}: start it on one of them, or set scheduler: {schedulers.REMOTE.name}"
        raise PlumbError(f"this host, {socket.gethostname()}, is none of the partition's", where, cure)
    if nodes > len(ordered):
        raise PlumbError(f"{nodes} nodes asked, hosts names {len(ordered)}", where, "name more, or ask for fewer")
    return ordered[:nodes] if nodes > 1 else ()


def share(nodes: int, environment: Mapping[str, str]) -> tuple[str, ...]:
    """This host and the next ones of its job, if the job has more nodes than the launch takes (that of a gate).

    Without them the launcher would deal the ranks over the whole job. Empty where the job has no more nodes.
    """
    hosts = schedulers.current(environment).hosts(environment)
    return _this_first(hosts)[:nodes] if len(hosts) > nodes else ()


def of_job(nodes: int, environment: Mapping[str, str]) -> tuple[str, ...]:
    """This host and the next ones of its job, for a launch over several nodes whose launcher does not know them.

    Empty for one node. Raises :class:`PlumbError` where the scheduler does not name them either.
    """
    if nodes == 1:
        return ()
    scheduler = schedulers.current(environment)
    hosts = _this_first(scheduler.hosts(environment))[:nodes]
    if len(hosts) < nodes:
        cure = "was the job submitted for that many nodes, and is this one of them?"
        raise PlumbError(f"{nodes} nodes asked, the job names {len(hosts)}", scheduler.name, cure)
    return hosts


def _this_first(hosts: tuple[str, ...]) -> tuple[str, ...]:
    """``hosts`` with this one first; empty if it is not among them."""
    local = next((name for name in hosts if same_host(name, socket.gethostname())), None)
    return (local, *(name for name in hosts if name != local)) if local else ()


@dataclass(frozen=True)
class Ranks:
    """How ranks are started: launcher, layout and variables.

    ``exported`` names the variables of ``environment`` that ranks on other nodes must get too.
    """

    launcher: mpi.Launcher
    layout: mpi.Layout
    exported: tuple[str, ...]
    environment: Mapping[str, str]


def collect(ranks: Ranks, folder: Path) -> list[dict[str, Any]]:
    """Provenance of every node of ``ranks``, by one process on each, started as the ranks are.

    A node that does not answer has an element with ``missing``, the reason, and its name if that is known.
    ``folder`` lies on a file system of all nodes. Raises as :func:`process.run` does.
    """
    layout, environment = ranks.layout, ranks.environment
    files.make_anew(folder)
    single = replace(layout, ranks_per_node=1, round_robin=False)
    start = ranks.launcher.command(single, bound=True, exported=ranks.exported, environment=environment)
    command = [*start.arguments, *paths.python(), "-m", "plumbline.launch.hosts", str(folder)]
    around = at_home({**environment, **start.environment}, folder)
    ended = process.run(command, around, folder, PATIENCE_S)
    nodes = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
    lost = layout.nodes - len(nodes)
    if lost > 0:
        seen = [item["hostname"] for item in nodes]
        names: list[str | None] = list(unseen(layout.hosts or schedulers.current(environment).hosts(environment), seen))
        why = f"no answer: {_why(ended, folder)}"
        nodes += [{"hostname": name, "missing": why} for name in (names + [None] * lost)[:lost]]
    else:
        shutil.rmtree(folder)
    return nodes


def unseen(known: tuple[str, ...], seen: list[str]) -> list[str]:
    """The names in ``known`` that are not among the hosts ``seen``."""
    return [name for name in known if not any(same_host(name, host) for host in seen)]


def _why(ended: process.Ended, folder: Path) -> str:
    if ended.status == "timeout":
        return f"ended after {PATIENCE_S:g} s"
    lines = process.printed(folder / "stderr").split("\n")
    message = next((line.strip() for line in lines if re.search(r"\w", line)), "")
    return f"the launcher ended with status {ended.exit_code}{f': {message}' if message else ''}"


def main() -> int:
    """Write this host's provenance to ``argv[1]``/HOST.json, whole or not at all."""
    files.replace(Path(sys.argv[1]) / f"{os.uname().nodename}.json", json.dumps(provenance.measured()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
