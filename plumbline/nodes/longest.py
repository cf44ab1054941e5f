"""The longest job that a partition takes: one that asks for more waits for ever, and nothing says why."""

from __future__ import annotations

import re
import shutil

from plumbline.errors import PlumbError
from plumbline.nodes.process import answer

WHERE = "sinfo -o %l"


def longest_job(scheduler: str, queue: str | None) -> int | None:
    """Seconds; None where there is no limit, or none can be asked: not Slurm, or not a host of the cluster."""
    if scheduler not in ("slurm", "squeue") or shutil.which("sinfo") is None:
        return None
    chosen = [f"--partition={queue}"] if queue else []
    found = {seconds(line) for line in answer(["sinfo", "-h", "-o", "%l", *chosen], WHERE).split()}
    limits = [limit for limit in found if limit is not None]
    return min(limits) if limits else None


def seconds(text: str) -> int | None:
    """Slurm's time limit ``[days-][[hours:]minutes:]seconds``; None for ``infinite``.

    >>> seconds("1:00:00"), seconds("2-00:00:30"), seconds("30:00"), seconds("infinite")
    (3600, 172830, 1800, None)
    """
    if text in ("infinite", "n/a"):
        return None
    if not re.fullmatch(r"(\d+-)?(\d+:){0,2}\d+", text):
        raise PlumbError(f"{text!r} is no time limit", WHERE, "report this answer of sinfo")
    days, _, clock = text.rpartition("-")
    total = 0
    for part in clock.split(":"):
        total = 60 * total + int(part)
    return 86400 * int(days or 0) + total
