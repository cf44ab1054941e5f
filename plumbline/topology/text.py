"""Lists of CPU and node numbers as text."""

from __future__ import annotations

import re
from collections.abc import Iterable


def cpu_list(cpus: Iterable[int]) -> str:
    """CPU numbers as the kernel writes them, ``0-3,8``; ``none`` when there are none."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs) or "none"


def cpu_ranges(text: str) -> list[range]:
    """The ranges of a list that the kernel wrote; raises ValueError for anything else.

    >>> cpu_ranges("0-3,8")
    [range(0, 4), range(8, 9)]
    """
    parts = [re.fullmatch(r"(\d+)(?:-(\d+))?", part, re.ASCII) for part in text.split(",")]
    if not all(parts):
        raise ValueError(f"{text!r} is not a list of CPUs")
    return [range(int(part[1]), int(part[2] or part[1]) + 1) for part in parts if part]


def numbered(noun: str, numbers: Iterable[int]) -> str:
    """``CPU 3`` or ``CPUs 0-3``: the noun in its number, and the list."""
    found = set(numbers)
    return f"{noun}{'' if len(found) == 1 else 's'} {cpu_list(found)}"
