"""The hosts themselves: overlay, boot, halt."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from testbed import access, cgroups, network, registry
from testbed.host import BedError, run, say
from testbed.layout import BENCH_UID, SHARED_SIZE, Node, Settings, every, reserved, shared, state

#: where a node finds its own cgroups writable, for Slurm: nspawn mounts those of v1 read-only in their usual place
CGROUP_MOUNT = "/cg"
BOUND = ("cpuset", "memory", "freezer", "devices", "cpuacct")
NSPAWN_FILES = Path("/run/systemd/nspawn")
#: kept to the end: an interrupt that arrives while Python disposes of one would be swallowed
STARTED: list[subprocess.Popen[bytes]] = []


def mounted(path: Path) -> bool:
    """Whether something is mounted on ``path`` (paths with blanks included)."""
    wanted = str(path).replace("\\", "\\134").replace(" ", "\\040")
    return any(line.split()[1] == wanted for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines())


def unmount(path: Path) -> None:
    """Unmount ``path``, if it is mounted; lazily if something still holds it. Raises BedError."""
    while mounted(path):
        if run(["umount", path], check=False).returncode != 0:
            run(["umount", "--lazy", path])


def running(node: Node) -> bool:
    """Whether the node's systemd-nspawn runs."""
    return cgroups.supervisor(node.name) is not None


def mount_shared() -> None:
    """The shared folder: its own file system, so that it can be filled up without filling the host's disk."""
    where, file = shared(), state() / "shared.img"
    if mounted(where):
        return
    where.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        # half of what is free at most: the file is sparse, but should never be able to fill the host's disk
        size = min(SHARED_SIZE, shutil.disk_usage(state()).free // 2)
        partial = file.with_suffix(".part")
        with partial.open("wb") as stream:
            stream.truncate(size)
        options = ["-q", "-F", "-m", "0", "-O", "^has_journal", "-E", "lazy_itable_init=1,nodiscard"]
        run(["mkfs.ext4", *options, partial])
        partial.rename(file)
    run(["mount", "-o", "loop,noatime", file, where])
    shutil.rmtree(where / "lost+found", ignore_errors=True)
    os.chown(where, BENCH_UID, BENCH_UID)
    where.chmod(0o755)


def write_root(node: Node, settings: Settings, lower: Path) -> None:
    """Mount the node's root file system and write what makes it this host."""
    upper, work = node.files / "upper", node.files / "work"
    for path in (upper, work, node.root):
        path.mkdir(parents=True, exist_ok=True)
    if not mounted(node.root):
        folders = {"lowerdir": lower, "upperdir": upper, "workdir": work}
        layers = ",".join(f"{name}={escape(path)}" for name, path in folders.items())
        run(["mount", "-t", "overlay", f"plumb-{node.name}", "-o", layers, node.root])
    (node.root / "etc/hostname").write_text(f"{node.name}\n", encoding="utf-8")
    registry.hand_over(node.root)
    write_names(node, settings)


def write_names(node: Node, settings: Settings) -> None:
    """Write names, addresses and keys of all hosts into a node's root file system."""
    names = "".join(f"{host.address} {host.name}\n" for host in settings.hosts())
    (node.root / "etc/hosts").write_text(f"127.0.0.1 localhost\n{names}", encoding="utf-8")
    access.furnish(node, settings)


def escape(path: Path) -> str:
    """A path as overlayfs's options want it."""
    return str(path).replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")


def boot(node: Node, settings: Settings, lower: Path) -> None:
    """Start a node that does not run; `wait` waits for it."""
    # what a crash left in its cgroups has no supervisor any more
    cgroups.kill(node.name)
    cgroups.remove(node.name)
    write_root(node, settings, lower)
    network.attach(node, settings)
    groups = cgroups.make(node.name)
    narrowed = reserved().get(node.name)
    if narrowed:
        cgroups.set_cpus(node.name, narrowed.kept)
    binds = [f"--bind={groups[name]}:{CGROUP_MOUNT}/{name}" for name in BOUND if name in groups]
    shutil.rmtree(NSPAWN_FILES / "propagate" / node.name, ignore_errors=True)
    command = [
        "systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", f"--directory={node.root}",
        f"--machine={node.name}", f"--network-namespace-path=/run/netns/{node.netns}", "--resolv-conf=off",
        "--timezone=off", "--link-journal=no", "--console=read-only", f"--bind={shared()}:/shared", *binds,
        "--system-call-filter=@debug get_mempolicy mbind set_mempolicy migrate_pages move_pages",
    ]  # fmt: skip
    with (node.files / "console.txt").open("wb") as console:
        # the cgroups are joined before exec: the node's systemd must never manage those of the host
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"]},  # nothing in a node tells who raised it
            start_new_session=True, preexec_fn=lambda: cgroups.join(groups),
        )  # fmt: skip
    STARTED.append(process)


def wait(node: Node, seconds: float = 180) -> None:
    """Wait until root can log in. Raises BedError with the end of the console if the node ends, or after the time."""
    end = time.monotonic() + seconds
    while not access.answers(node.name):
        alive = running(node)
        if not alive or time.monotonic() > end:
            console = (node.files / "console.txt").read_text(encoding="utf-8", errors="replace")
            last = " | ".join(console.strip().splitlines()[-5:])
            raise BedError(f"{node.name} {'does not answer' if alive else 'ended while booting'}: {last}")
        time.sleep(0.2)


def halt(nodes: list[Node], seconds: float = 20) -> None:
    """Halt nodes: their systemd is asked to; what is left after ``seconds`` is killed. Raises BedError."""
    for node in nodes:
        pid = cgroups.supervisor(node.name)
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + seconds
    for node in nodes:
        asked = cgroups.supervisor(node.name) is not None
        if asked and not cgroups.wait_empty(node.name, max(0.0, end - time.monotonic())):
            say(f"{node.name} does not halt: killed")
        if not cgroups.kill(node.name):
            raise BedError(f"processes of {node.name} do not end: {sorted(cgroups.processes(node.name))}")


def power_off(node: Node) -> None:
    """End a node at once, as when the power fails: no process of it gets to do anything, and its link goes dark."""
    if network.exists(node.link):
        network.plug(node, inserted=False)
    if not cgroups.kill(node.name):
        raise BedError(f"processes of {node.name} do not end: {sorted(cgroups.processes(node.name))}")


def remove(nodes: list[Node]) -> None:
    """Remove halted nodes: mounts, cgroups, links and files."""
    for node in nodes:
        unmount(node.root)
        left = cgroups.remove(node.name)
        if left:
            raise BedError(f"cgroups of {node.name} are still in use: {left[0]}")
        network.detach(node)
        shutil.rmtree(NSPAWN_FILES / "propagate" / node.name, ignore_errors=True)
        if node.files.exists():
            shutil.rmtree(node.files)
        if node.root.exists():
            node.root.rmdir()


def remove_all() -> None:
    """Halt and remove every node that a bed can have."""
    present = [node for node in every() if cgroups.processes(node.name)]
    halt(present)
    remove(every())
    left = cgroups.remove()
    if left:
        raise BedError(f"cgroups are still in use: {left[0]}")
