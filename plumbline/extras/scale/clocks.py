"""The clock of the CPUs while a launch runs: efficiency is lost where more busy cores have a lower one."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from plumbline.records.launch import RankSeen

#: seconds between two looks
EVERY_S = 0.25


class Clocks(threading.Thread):
    """Looks at all CPUs of this host within its context; ``root`` is where /sys lies."""

    def __init__(self, root: Path = Path("/")) -> None:
        super().__init__(daemon=True)
        files = root.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq")
        self.files = {int(file.parts[-3][3:]): file for file in files}
        self.looks: list[dict[int, float]] = []
        self.is_over = threading.Event()

    def __enter__(self) -> Clocks:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        self.join()

    def run(self) -> None:
        """Look until the context ends; a look in which a CPU goes offline does not count."""
        while self.files and not self.is_over.wait(EVERY_S):
            with contextlib.suppress(OSError, ValueError):
                self.looks.append({cpu: int(file.read_text()) / 1e6 for cpu, file in self.files.items()})

    def of(self, ranks: Sequence[RankSeen]) -> float:
        """The clock in GHz of the CPUs of those of ``ranks`` that ran here, over all looks; 0 where it is not known."""
        here = [rank for rank in ranks if rank.host == os.uname().nodename]
        cpus = {cpu for rank in here for thread in rank.threads for cpu in thread.affinity} & self.files.keys()
        known = [float(np.mean([look[cpu] for cpu in cpus])) for look in self.looks if cpus]
        return float(np.median(known)) if known else 0.0
