"""``plumb check``: is this node as fast as its kind? It starts ``plumb-check``, which does all of it."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from plumbline import site
from plumbline.base import files, paths, terminal
from plumbline.base.errors import PlumbError
from plumbline.base.table import table
from plumbline.base.units import human_bytes
from plumbline.commands.options import command, exclusive, flag, goes_without, group, only_with, option
from plumbline.host import proc
from plumbline.host.collector import Reader
from plumbline.schedulers import names

#: Nagios takes 2 for a node that is bad: bad input is 3, unknown
NAGIOS_UNKNOWN = 3
#: folders that may be in memory
FOLDERS = ("/dev/shm", "/tmp")  # noqa: S108 - which are only read
#: lines of what holds memory that are shown, each of this many bytes at least
SHOWN, LEAST = 20, 64 << 20


@command(
    group(
        "node class",
        option("--site", "site (default: the site of this host)"),
        option("--partition", "partition of the node class (default: the first of the site)"),
        option("--class", "class file to use instead", type=Path, metavar="FILE", dest="class_file"),
    ),
    option("--seconds", "time budget of the check in seconds: 10, 25, 55, 120 or 900 (default: 25)", default=25),
    option(
        "--form",
        "output format (default: text; nhc is silent unless the node is bad)",
        choices=("text", "nhc", "nagios", "json", "openmetrics"),
        default="text",
    ),
    exclusive(
        flag("--plan", "print the measurements and the smallest detectable slowdown of each"),
        flag("--last", "print the last result and its age without measuring"),
        flag("--detach", "start the check in the background and print the last result"),
    ),
    flag("--held", "show what holds the memory of this idle node, without measuring"),
    option("--tolerance", "share of the class's memory that may be in use (default: 0.05, 5 %%)", default=0.05),
    flag("--beside-jobs", "measure even with jobs on the node"),
    option("--node", "name of this node in the class (default: host name)", action="append", default=[]),
    option("--state", "folder of the last result", type=Path, metavar="FOLDER"),
    option(
        "--write",
        "write the result to FILE atomically, such as NAME.prom for node_exporter",
        type=files.Output,
        metavar="FILE",
    ),
    option("--measured", "judge the rounds in FILE without measuring", type=Path, metavar="FILE"),
    rules=[
        goes_without("held", "plan last detach measured write form seconds state node beside_jobs",
                     "--held measures nothing and prints text", "leave out all but the class and --tolerance"),
        only_with("tolerance", "held", "--tolerance goes with --held", "leave it out"),
    ],
)  # fmt: skip
def run_check(args: argparse.Namespace) -> int:
    """Check; the exit status is plumb-check's: 0 fine or in doubt, 1 bad."""
    try:
        return _run(args)
    except PlumbError as error:
        if args.form != "nagios":
            raise
        print(f"PLUMB UNKNOWN - {error}")
        return NAGIOS_UNKNOWN


def _run(args: argparse.Namespace) -> int:
    if len(args.node) > 1:
        raise PlumbError(f"{len(args.node)} nodes are named", "--node", "one node is checked: this host")
    if args.held:
        text = _class(args).read_text(encoding="utf-8", errors="replace")
        known = dict(re.findall(r"^(idle|fact memory\.mib) (\d+)$", text, re.MULTILINE))
        return held(int(known.get("fact memory.mib", 0)), int(known.get("idle", 0)), args.tolerance)
    named = (("--state", args.state), ("--output", args.write), ("--measured", args.measured))
    words = [
        *("--class", str(_class(args))),
        *("--seconds", f"{args.seconds:g}"),
        *("--form", args.form),
        *(f"--{name}" for name in ("plan", "last", "detach") if getattr(args, name)),
        *(["--beside-jobs"] if args.beside_jobs else []),
        *(word for option, value in named if value for word in (option, str(value))),
        *(["--node", names.host(args.node[0], "--node")] if args.node else []),
    ]
    try:
        status = subprocess.run([paths.checker(), *words], check=False).returncode
        return status if status >= 0 else 128 - status  # as a shell says that a signal ended it
    except FileNotFoundError:
        raise PlumbError("plumb-check is not built", str(paths.checker()), paths.setup()) from None
    except OSError as error:
        raise PlumbError(
            f"plumb-check cannot be started: {error.strerror}", str(paths.checker()), paths.setup()
        ) from None


def _class(args: argparse.Namespace) -> Path:
    """The class file that is named, or that of the partition."""
    from plumbline.extras.nodes import checks

    if args.class_file:
        if not args.class_file.is_file():
            raise PlumbError("no such file", str(args.class_file), "plumb calibrate --nodes makes the file of a class")
        return Path(args.class_file)
    known, part = site.chosen(args.site, args.partition)
    return checks.made_class(known.name, part)


def held(total_mib: int, idle_mib: int, tolerance: float, root: Path = Path("/")) -> int:
    """Print what holds memory: processes, files in memory, huge pages and the kernel.

    Returns 1 if the share ``tolerance`` less than ``idle_mib``, which idle nodes of the class have free, is free, else
    0; without it, of ``total_mib``, the class's memory; both are 0 where the class does not say.
    """
    read = Reader(root)
    kib = {
        name: int(value) for name, value in re.findall(r"^(\w+): +(\d+)", read.content("proc/meminfo"), re.MULTILINE)
    }
    total, free = total_mib * 1024 or kib["MemTotal"], kib["MemAvailable"]
    pages = kib.get("HugePages_Total", 0)
    in_use = f"{pages - kib.get('HugePages_Free', 0)} of {pages} in use (vm.nr_hugepages)"
    every = [
        *_holders(read),
        (kib.get("SUnreclaim", 0) << 10, "kernel", "slabs that cannot be reclaimed"),
        (pages * kib.get("Hugepagesize", 0) << 10, "huge pages", in_use),
    ]
    # users choose the names of files and processes: none may command root's terminal
    rows = [
        (human_bytes(size), kind, terminal.on_a_line(name))
        for size, kind, name in sorted(every, reverse=True)
        if size >= LEAST
    ]
    print(table(("memory", "held by", ""), rows[:SHOWN], right=("memory",)) + "\n")
    least = int((1 - tolerance) * (idle_mib * 1024 or total))
    bad = free < least
    share = f"{human_bytes(free << 10)} of {human_bytes(total << 10)} free, at least {human_bytes(least << 10)}"
    than = "idle nodes of its class" if idle_mib else "all"
    print(f"memory: {'bad' if bad else 'fine'}: {share} are expected: {100 * tolerance:g} % less than {than}")
    return int(bad)


def _holders(read: Reader) -> Iterator[tuple[int, str, str]]:
    """Bytes, kind and name of processes and of files in memory; of what this user may not read, nothing."""
    for process in proc.every(read.root / "proc"):
        anonymous = re.search(r"^RssAnon:\s+(\d+)", read.text(f"proc/{process.pid}/status") or "", re.MULTILINE)
        yield int(anonymous[1]) << 10 if anonymous else 0, "process", f"{process.pid} {process.name}"
    in_memory = re.findall(r"^\S+ (\S+) (?:tmpfs|ramfs) ", read.text("proc/mounts") or "", re.MULTILINE)
    for folder in set(FOLDERS) & set(in_memory):
        for place, _, inside in os.walk(read.root / folder[1:]):
            for file in (Path(place, name) for name in inside):
                with contextlib.suppress(OSError):  # it is gone
                    status = file.lstat()
                    yield status.st_blocks * 512, "file", f"{file} of user {status.st_uid}"
