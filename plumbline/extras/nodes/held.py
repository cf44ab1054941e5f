"""What holds the memory of an idle node: processes, files in memory, huge pages and the kernel."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from plumbline.base.table import table
from plumbline.base.units import human_bytes, percent
from plumbline.host import proc
from plumbline.host.collector import Reader

#: folders that may be in memory
FOLDERS = ("/dev/shm", "/tmp")  # noqa: S108 - which are only read
#: lines that are shown, each of this many bytes at least
SHOWN, LEAST = 20, 64 << 20


def run(usual_mib: int | None, tolerance: float, root: Path = Path("/")) -> int:
    """Print what holds memory; 1 if less than the share of ``usual_mib``, the class's memory, is free: else 0."""
    read = Reader(root)
    known = dict(re.findall(r"^(\w+): +(\d+)", read.content("proc/meminfo"), re.MULTILINE))
    kib = {name: int(value) for name, value in known.items()}
    total, free = usual_mib * 1024 if usual_mib else kib["MemTotal"], kib["MemAvailable"]
    every = [*_holders(read), (kib.get("SUnreclaim", 0) << 10, "kernel", "slabs that cannot be reclaimed")]
    pages = kib.get("HugePages_Total", 0), kib.get("HugePages_Free", 0)
    name = f"{pages[0] - pages[1]} of {pages[0]} in use (vm.nr_hugepages)"
    every.append((pages[0] * kib.get("Hugepagesize", 0) << 10, "huge pages", name))
    # users choose the names of files and processes: none may command root's terminal
    rows = [
        (human_bytes(size), kind, "".join(sign if sign.isprintable() else " " for sign in name))
        for size, kind, name in sorted(every, reverse=True)
        if size >= LEAST
    ]
    print(table(("memory", "held by", ""), rows[:SHOWN], right=("memory",)) + "\n")
    bad = free < (1 - tolerance) * total
    share = f"{human_bytes(free << 10)} of {human_bytes(total << 10)} free, {percent(free / total)}"
    print(f"memory: {'bad' if bad else 'fine'}: {share}, {percent(1 - tolerance)} are expected of an idle node")
    return int(bad)


def _holders(read: Reader) -> Iterator[tuple[int, str, str]]:
    """Bytes, kind and name of processes and of files in memory; of what this user may not read, nothing."""
    for process in proc.every(read.root / "proc"):
        anonymous = re.search(r"^RssAnon:\s+(\d+)", read.text(f"proc/{process.pid}/status") or "", re.MULTILINE)
        yield int(anonymous[1]) << 10 if anonymous else 0, "process", f"{process.pid} {process.name}"
    in_memory = re.findall(r"^\S+ (\S+) (?:tmpfs|ramfs) ", read.text("proc/mounts") or "", re.MULTILINE)
    for folder in set(FOLDERS) & set(in_memory):
        for place, _, names in os.walk(read.root / folder[1:]):
            for file in (Path(place, name) for name in names):
                with contextlib.suppress(OSError):  # it is gone
                    status = file.lstat()
                    yield status.st_blocks * 512, "file", f"{file} of user {status.st_uid}"
