"""How CPU and node numbers are written for people."""

from __future__ import annotations

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


def numbered(noun: str, numbers: Iterable[int]) -> str:
    """``CPU 3`` or ``CPUs 0-3``: the noun in its number, and the list."""
    found = set(numbers)
    return f"{noun}{'' if len(found) == 1 else 's'} {cpu_list(found)}"
