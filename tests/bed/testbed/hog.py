"""Runs on a node: takes one CPU's time while a job of Slurm is there. Usage: hog.py CPU.

All nodes of the bed share the host's CPUs. A process that never rests would slow all of them; this one competes only
with the jobs of its own node. Without cgroups to see the jobs by, it never rests.
"""

import os
import sys
import time
from pathlib import Path

os.sched_setaffinity(0, {int(sys.argv[1])})
cgroups = Path("/cg/cpuset")
seen = cgroups.is_dir()
while True:
    if seen and not any(cgroups.glob("slurm*/uid_*/job_*")):
        time.sleep(0.01)
        continue
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        pass
