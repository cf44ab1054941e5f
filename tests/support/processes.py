"""Processes that a test started, wherever they went."""

import os
import time
from pathlib import Path


def carriers(marker):
    """Process id and command line of the other live processes that carry ``marker`` in their environment."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if marker.encode() in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
    return found


def carrying(marker):
    """Their command lines."""
    return list(carriers(marker).values())


def wait_asleep(pid, threads=1, seconds=30):
    """Return when a process has ``threads`` threads that all sleep, and no signal that it has not taken yet.

    Raises AssertionError if that does not happen in time.
    """
    deadline = time.monotonic() + seconds
    while not _asleep(pid, threads):
        assert time.monotonic() < deadline, f"process {pid} does not sleep after {seconds} s"
        time.sleep(0.01)


def _asleep(pid, threads):
    fields = [
        dict(line.split(":\t", 1) for line in file.read_text().splitlines() if ":\t" in line)
        for file in Path(f"/proc/{pid}/task").glob("*/status")
    ]
    return len(fields) == threads and all(
        one["State"].startswith("S") and int(one["SigPnd"], 16) == int(one["ShdPnd"], 16) == 0 for one in fields
    )
