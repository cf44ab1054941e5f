"""The bed as a whole: raise it, say how it is, take it down."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from testbed import access, cgroups, image, inventory, network, nodes, schedulers, slurm
from testbed.host import BedError, provide, say
from testbed.layout import RUN, Node, Settings, every, load, save, shared, state


def owner() -> Path | None:
    """State folder of the bed that was raised last and not taken down."""
    file = RUN / "owner"
    return Path(file.read_text(encoding="utf-8").strip()) if file.exists() else None


def refuse_other() -> None:
    """Raises BedError if another checkout's bed runs: there is one network and one set of names for it."""
    other = owner()
    if other not in (None, state()) and cgroups.processes():
        raise BedError(f"a bed of another checkout is up ({other}): take it down there")


def up(wanted: Settings) -> None:
    """Raise the bed, or bring the one that is up to ``wanted``. Raises BedError."""
    refuse_other()
    before = load()
    if before and before.flavor != wanted.flavor and any(nodes.running(node) for node in every()):
        raise BedError(f"the bed is up with flavor {before.flavor}: run `bed down` first")
    if owner() != state() or before is None or before.flavor != wanted.flavor:
        # what a crash, a reboot or another checkout left is not built upon
        before = None
        clean()
    provide()
    lower = image.unpacked(wanted.flavor)
    RUN.mkdir(mode=0o755, exist_ok=True)
    (RUN / "owner").write_text(f"{state()}\n", encoding="utf-8")
    state().mkdir(mode=0o700, parents=True, exist_ok=True)
    access.write_keys(wanted)
    save(wanted)
    nodes.mount_shared()
    network.raise_bridge()
    if wanted.route:
        network.open_way()
    else:
        network.close_way()
    surplus = [node for node in every() if node not in wanted.hosts() and node.files.exists()]
    nodes.halt(surplus)
    nodes.remove(surplus)
    start = [node for node in wanted.hosts() if not nodes.running(node)]
    for node in wanted.hosts():
        if node in start:
            nodes.boot(node, wanted, lower)
        else:
            network.attach(node, wanted)
    with ThreadPoolExecutor() as pool:
        list(pool.map(nodes.wait, wanted.hosts()))
    inventory.write(wanted)
    names = [node.name for node in wanted.compute()]
    # the scheduler does not depend on routes and rates of links
    other = before is None or replace(before, route=wanted.route, shape=wanted.shape) != wanted
    if other or start or (wanted.scheduler == "slurm" and not slurm.ready(names)):
        for node in wanted.hosts():
            if other and node not in start:
                nodes.write_names(node, wanted)
        say(f"making the scheduler: {wanted.scheduler}")
        if wanted.scheduler == "slurm":
            for name, now in slurm.states().items():
                if "drain" in now:
                    slurm.update(name, "state=resume", check=False)
        schedulers.make(wanted)
    say(f"up: {', '.join(node.name for node in wanted.hosts())}; ssh -F {access.config()} ctl")


def down() -> None:
    """Take the bed down, whatever state it is in; only the image stays. Raises BedError if something remains."""
    refuse_other()
    clean()


def clean() -> None:
    """Remove all that a bed makes on this host."""
    nodes.remove_all()
    other = owner()
    if other:
        nodes.unmount(other / "shared")
    if shutil.which("ip") and shutil.which("nft"):
        network.remove()
    nodes.unmount(shared())
    points = [line.split()[1] for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    left = [point for point in points if point.startswith((f"{state()}/", f"{RUN}/"))]
    if left:
        raise BedError(f"still mounted: {' '.join(left)}")
    if state().exists():
        shutil.rmtree(state())
    shutil.rmtree(RUN, ignore_errors=True)


def status() -> tuple[bool, str]:
    """Whether the bed is up and all of it runs, and a table of its hosts."""
    settings = load()
    if settings is None:
        return False, "bed: down"
    states = {node: how(node) for node in settings.hosts()}
    told = slurm.states() if settings.scheduler == "slurm" and states[settings.hosts()[0]] == "up" else {}
    rows = ["host    address       state"]
    for node, seen in states.items():
        rows.append(f"{node.name:<8}{node.address:<14}{', '.join(filter(None, (seen, told.get(node.name))))}")
    way = "registries by NAT" if settings.route else "no route out"
    extras = [f"{settings.flavor}, scheduler {settings.scheduler}", way]
    extras += [f"links {settings.shape}"] if settings.shape else []
    extras += [f"fake {settings.fake_topology}"] if settings.fake_topology else []
    rows += [f"flavor {', '.join(extras)}", f"ssh -F {access.config()} ctl"]
    return set(states.values()) == {"up"}, "\n".join(rows)


def how(node: Node) -> str:
    """State of a host, seen from outside: up, no ssh, off."""
    if not nodes.running(node):
        return "off"
    return "up" if access.answers(node.name) else "no ssh"
