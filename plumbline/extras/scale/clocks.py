"""The clock of the CPUs while a launch runs: efficiency is lost where more busy cores have a lower one."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from plumbline.host.collector import Reader
from plumbline.records.launch import RankSeen

#: seconds between two looks
EVERY_S = 0.25


class Clocks(threading.Thread):
    """Looks at ``cpus`` (default: those of this process) within its context; ``root`` is where /sys lies."""

    def __init__(self, root: Path = Path("/"), cpus: Iterable[int] = ()) -> None:
        super().__init__(daemon=True)
        self.read, self.cpus = Reader(root), set(cpus) or os.sched_getaffinity(0)
        self.looks: list[dict[int, int]] = []
        self.is_over = threading.Event()

    def __enter__(self) -> Clocks:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        self.join()

    def run(self) -> None:
        """Look until the context ends, or until no CPU tells its clock."""
        while not self.is_over.wait(EVERY_S) and (look := self.read.clocks(self.cpus)):
            self.looks.append(look)

    def of(self, ranks: Sequence[RankSeen]) -> float:
        """The clock in GHz of the CPUs of those of ``ranks`` that ran here, over all looks; 0 where it is not known."""
        here = [rank for rank in ranks if rank.host == os.uname().nodename]
        cpus = {cpu for rank in here for thread in rank.threads for cpu in thread.affinity}
        clocks = [[look[cpu] for cpu in cpus & look.keys()] for look in self.looks]
        return float(np.median([float(np.mean(each)) for each in clocks if each] or [0.0])) / 1e6
