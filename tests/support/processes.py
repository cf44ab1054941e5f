"""Processes that a test started, wherever they went."""

import os
from pathlib import Path


def carrying(marker):
    """Command lines of the other live processes that carry ``marker`` in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if marker.encode() in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
    return found
