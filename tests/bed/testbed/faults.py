"""What can go wrong on a cluster, made to happen on purpose, and undone by `heal`."""

import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from testbed import access, cgroups, image, inventory, network, nodes, schedulers, slurm
from testbed.host import BedError
from testbed.layout import CONTROLLER, RATE, Narrowed, Node, Settings, load, reserve, reserved, shared

REASON = "reason=fault of the test bed"
HOG = "/usr/local/lib/bed-hog.py"


@dataclass(frozen=True)
class Fault:
    """One kind of fault: what it does, the names of its arguments, and how."""

    what: str
    arguments: tuple[str, ...]
    act: Callable[..., None]


def standing() -> Settings:
    """Settings of the bed that is up. Raises BedError if none is."""
    settings = load()
    if settings is None or not nodes.running(settings.hosts()[0]):
        raise BedError("no bed is up: run `bed up`")
    return settings


def alive(name: str) -> Node:
    """A compute node that runs. Raises BedError."""
    node = standing().node(name)
    if not nodes.running(node):
        raise BedError(f"{name} is off: run `bed heal {name}`")
    return node


def node_down(name: str) -> None:
    """slurmd ends; Slurm is told at once, instead of finding out after its time limit."""
    node = alive(name)
    access.ssh(node.name, "systemctl", "stop", "slurmd")
    slurm.update(node.name, "state=down", REASON)


def drain(name: str) -> None:
    """The administrator takes the node out: running jobs continue, no new ones start."""
    slurm.update(standing().node(name).name, "state=drain", REASON)


def kill(name: str) -> None:
    """The power fails."""
    nodes.power_off(standing().node(name))


def slow_link(name: str, rate: str) -> None:
    """The node's link gets slow in both directions."""
    if not RATE.fullmatch(rate):
        raise BedError(f"{rate!r} is not a rate: 100mbit, 1gbit, …")
    network.shape(standing().node(name), rate)


def slow_node(name: str) -> None:
    """On each CPU of the node a process competes with the jobs there."""
    node = alive(name)
    source = Path(__file__).with_name("hog.py").read_text(encoding="utf-8")
    target = node.root / HOG.lstrip("/")
    target.write_text(source, encoding="utf-8")
    for cpu in sorted(cgroups.cpus(node.name)):
        unit = f"bed-hog-{cpu}"
        access.ssh(node.name, "systemctl", "stop", unit, check=False)
        access.ssh(node.name, "systemd-run", "--quiet", f"--unit={unit}", "python3", HOG, str(cpu))


def topology(name: str) -> None:
    """The node has only the first of its CPUs."""
    node = alive(name)
    every = cgroups.cpus(node.name)
    if len(every) < 2:
        raise BedError(f"{name} has one CPU: nothing can be taken from it")
    narrow(node, Narrowed(str(every[0]), ",".join(map(str, every[1:]))))


def narrow(node: Node, to: Narrowed | None) -> None:
    """Restrict the node to some CPUs, or give it all again, and tell Slurm."""
    narrowed = {name: two for name, two in reserved().items() if name != node.name}
    access.ssh(node.name, "systemctl", "stop", "slurmd")
    # slurmd's own cgroups keep the CPUs that they were made with
    for folder in cgroups.folders(node.name):
        if folder.name.startswith("slurm"):
            cgroups.remove(f"{node.name}/{folder.name}")
    if to:
        cgroups.set_cpus(node.name, to.kept)
        narrowed[node.name] = to
    else:
        everything = (cgroups.cpuset() / "cpuset.cpus").read_text(encoding="ascii")
        cgroups.set_cpus(node.name, everything.strip())
    reserve(narrowed)
    inventory.write(standing())
    schedulers.make(standing())


def full() -> None:
    """The shared file system has not a block left."""
    standing()
    with filler().open("ab") as stream:
        os.fchmod(stream.fileno(), 0o600)
        free = os.fstatvfs(stream.fileno())
        piece = free.f_bavail * free.f_bsize
        while piece >= free.f_bsize:
            end = os.fstat(stream.fileno()).st_size
            try:
                os.posix_fallocate(stream.fileno(), end, piece)
            except OSError as fault:
                if fault.errno != errno.ENOSPC:
                    raise
                piece //= 2


def filler() -> Path:
    """The file that fills the shared file system."""
    return shared() / ".bed-filler"


def slurmctld() -> None:
    """The controller's daemon starts anew."""
    standing()
    access.ssh(CONTROLLER, "systemctl", "restart", "slurmctld")


def heal(name: str | None) -> None:
    """Undo the faults of one node; of all nodes, the shared file system and the controller if none is named."""
    settings = standing()
    if name is None:
        filler().unlink(missing_ok=True)
        if settings.scheduler == "slurm":
            access.ssh(CONTROLLER, "systemctl", "start", "slurmctld")
    sick = [settings.node(name)] if name else settings.compute()
    lower = image.unpacked(settings.flavor)
    for node in sick:
        if nodes.running(node):
            network.attach(node, settings)
        else:
            nodes.boot(node, settings, lower)
    with ThreadPoolExecutor() as pool:
        list(pool.map(nodes.wait, sick))
        list(pool.map(lambda node: access.ssh(node.name, "systemctl", "stop", "bed-hog-*.service"), sick))
        for node in sick:
            if node.name in reserved():
                narrow(node, None)
        if settings.scheduler != "slurm":
            schedulers.make(settings)
            return
        list(pool.map(lambda node: access.ssh(node.name, "systemctl", "start", "slurmd"), sick))
    slurm.resume([node.name for node in sick])


FAULTS = {
    "node-down": Fault("slurmd of NODE stops, and Slurm takes the node for down", ("node",), node_down),
    "drain": Fault("NODE is drained", ("node",), drain),
    "kill": Fault("power loss of NODE: all of it ends at once, its link goes dark", ("node",), kill),
    "slow-link": Fault("NODE's link is limited to RATE (100mbit, 1gbit, …)", ("node", "rate"), slow_link),
    "slow-node": Fault("processes compete with the jobs on every CPU of NODE", ("node",), slow_node),
    "topology": Fault("NODE has only the first of its CPUs", ("node",), topology),
    "full": Fault("/shared is full to the last block", (), full),
    "slurmctld": Fault("slurmctld restarts", (), slurmctld),
}
