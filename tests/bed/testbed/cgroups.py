"""One cgroup per node in every hierarchy. They also say which processes are the bed's: those in them, no others."""

import contextlib
import os
import signal
import time
from pathlib import Path

from testbed.host import BedError

NAME = "plumb-bed"
#: of the CPUs, where others want them too (1024 is what one other process has): tests on the bed mostly wait, for one
#: another's messages, which busy CPUs would delay, and what runs beside them need not be quick
SHARES = 16 * 1024
MOUNTS = Path("/proc/self/mounts")


def parse(mounts: str) -> dict[str, Path]:
    """Hierarchies in the text of /proc/mounts: name (controller, `systemd`, `unified`) to mount point."""
    found: dict[str, Path] = {}
    for line in mounts.splitlines():
        _, target, kind, options, *_ = line.split()
        if kind not in ("cgroup", "cgroup2") or "rw" not in options.split(","):
            continue
        path = Path(target)
        if path == Path("/sys/fs/cgroup") or path.parent == Path("/sys/fs/cgroup"):
            found["unified" if kind == "cgroup2" else path.name] = path
    return found


def hierarchies() -> dict[str, Path]:
    """The hierarchies of this host that can be written to."""
    return {name: path for name, path in parse(MOUNTS.read_text(encoding="utf-8")).items() if os.access(path, os.W_OK)}


def make(node: str) -> dict[str, Path]:
    """Make the node's cgroup everywhere, with all CPUs and memory nodes of the host; hierarchy to folder."""
    made = {}
    for name, top in hierarchies().items():
        ours = top / NAME
        folder = ours / node
        folder.mkdir(parents=True, exist_ok=True)
        if (ours / "cpu.shares").exists():
            (ours / "cpu.shares").write_text(str(SHARES), encoding="ascii")
        if name == "cpuset":
            for file in ("cpuset.cpus", "cpuset.mems"):
                everything = (top / file).read_text(encoding="ascii")
                for below in (ours, folder):
                    if not (below / file).read_text(encoding="ascii").strip():
                        (below / file).write_text(everything, encoding="ascii")
        made[name] = folder
    return made


def join(folders: dict[str, Path]) -> None:
    """Put the calling process into the cgroups (between fork and exec)."""
    for folder in folders.values():
        (folder / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")


def folders(node: str = "") -> list[Path]:
    """The bed's cgroups, deepest first; of one node only if it is named."""
    found: list[Path] = []
    for top in hierarchies().values():
        base = top / NAME / node if node else top / NAME
        if base.is_dir():
            found += [Path(folder) for folder, _, _ in os.walk(base, topdown=False)]
    return found


def processes(node: str = "") -> set[int]:
    """Ids of the processes in the bed's cgroups."""
    found = set()
    for folder in folders(node):
        with contextlib.suppress(FileNotFoundError, OSError):
            found |= {int(pid) for pid in (folder / "cgroup.procs").read_text(encoding="ascii").split()}
    return found - {0}


def parent(pid: int) -> int:
    """Parent of a process, 0 if it has gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(stat.rpartition(")")[2].split()[1])


def supervisor(node: str) -> int | None:
    """The systemd-nspawn of a node: that process of its cgroup whose parent is outside of it."""
    inside = processes(node)
    for pid in sorted(inside):
        if parent(pid) in inside:
            continue
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == "systemd-nspawn":
                return pid
    return None


def wait_empty(node: str, seconds: float) -> bool:
    """Whether no process is left in the node's cgroups within the time."""
    end = time.monotonic() + seconds
    while processes(node):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def kill(node: str) -> bool:
    """SIGKILL to all processes of a node, until none is left; False if some stay for 10 s."""
    end = time.monotonic() + 10
    while pids := processes(node):
        if time.monotonic() > end:
            return False
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    return True


def remove(node: str = "") -> list[Path]:
    """Remove the cgroups, which must be empty; those that could not be removed."""
    left = []
    for folder in folders(node):
        for attempt in range(20):
            try:
                folder.rmdir()
                break
            except FileNotFoundError:
                break
            except OSError:
                # a process that has just ended holds its cgroup for a moment
                if attempt == 19:
                    left.append(folder)
                time.sleep(0.05)
    return left


def cpus(node: str) -> list[int]:
    """CPUs that a node has. Raises BedError without a cpuset hierarchy of cgroup v1."""
    return expand((cpuset() / node / "cpuset.cpus").read_text(encoding="ascii"))


def cpuset() -> Path:
    """The bed's folder in the cpuset hierarchy of cgroup v1. Raises BedError if there is none."""
    top = hierarchies().get("cpuset")
    if top is None:
        raise BedError("this host has no cpuset hierarchy of cgroup v1, which this fault needs")
    return top / NAME


def set_cpus(node: str, wanted: str) -> None:
    """Restrict a node and all below it to the CPU list, or widen it again. Raises OSError if the kernel refuses it."""
    base = cpuset() / node
    below = [Path(folder) for folder, _, _ in os.walk(base)]
    wider = len(expand(wanted)) > len(expand((base / "cpuset.cpus").read_text(encoding="ascii")))
    # a child may never have more than its parent: widen from the top, narrow from the bottom
    for folder in below if wider else reversed(below):
        (folder / "cpuset.cpus").write_text(wanted, encoding="ascii")


def expand(cpus: str) -> list[int]:
    """The CPUs of a list such as 0-3,8."""
    found: list[int] = []
    for part in filter(None, cpus.strip().split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found
