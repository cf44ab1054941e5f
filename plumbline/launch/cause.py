"""Why a launch failed, from what it left: the line of its output that names the cause, and whether it began at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from plumbline.launch.process import Ended
from plumbline.launch.shared_memory import FOLDER, free

#: what the system says; the first such line is where it went wrong
_SYSTEM = re.compile(
    r"No space left|not enough space|Cannot allocate|[Oo]ut of memory|quota exceeded|Permission denied|not permitted|"
    r"Too many open files|temporarily unavailable|No such file|command not found|shared object|Text file busy|"
    r"Read-only file|Stale file|Input/output error|Connection (?:refused|reset|timed out)|No route to host|"
    r"Address already in use|Host key verification|Bus error|Illegal instruction|Segmentation fault"
)
#: what programs say; the last such line is the summary
_PROGRAM = re.compile(
    r"\b(?:error|fatal|abort(?:ed|ing)?|fail(?:ed|ure|s)?|cannot|could not|unable|denied|invalid)\b", re.I
)
#: characters of a line that are shown
WIDTH = 200
#: bytes: an MPI library that finds less in /dev/shm fails, or dies by SIGBUS when it writes
SHARED_MEMORY = 4 << 20


def of(ended: Ended, texts: Iterable[str], folder: Path = FOLDER) -> str:
    """How a launch that failed ended, and why, as far as ``texts`` (what it and its launcher printed) say."""
    code = ended.exit_code or 0
    parts = [f"the launcher ended with {f'signal {-code}' if code < 0 else f'exit status {code}'}"]
    line = named([line.strip("= \t\r") for text in texts for line in text.splitlines()])
    if line:
        parts.append(f": {line[:WIDTH]}")
    left = free(folder)
    if left is not None and left < SHARED_MEMORY:
        parts.append(f"; {folder} has {left // 1024} KiB left")
    return "".join(parts)


def named(lines: Sequence[str]) -> str | None:
    """The line that names a cause: the system's first, a program's last, else the last with a word in it.

    >>> named(["starting", "open: No space left on device", "rank 1 failed"])
    'open: No space left on device'
    >>> named(["starting", "error: no peer", "rank 1 failed", "-----"])
    'rank 1 failed'
    """
    system = (line for line in lines if _SYSTEM.search(line))
    program = (line for line in reversed(lines) if _PROGRAM.search(line))
    any_word = (line for line in reversed(lines) if re.search(r"\w", line))
    return next(system, None) or next(program, None) or next(any_word, None)


def never_began(ended: Ended, folder: Path) -> bool:
    """Whether the launcher ended, or was ended, before it started a rank, so that nothing was measured."""
    return ended.status != "ok" and not any(any((folder / name).iterdir()) for name in ("output", "witness"))
