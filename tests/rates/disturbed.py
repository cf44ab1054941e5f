"""Measure how many launches are flagged as disturbed: on this host as it is, and beside a competitor.

    python tests/rates/disturbed.py [--shares 0,5,20,100] [-- REFRAME OPTION...]

A campaign runs once for each share. The competitor takes that share of one planned CPU, in turns of 10 ms: CPU 0 unless
--cpu names another. Without options of ReFrame the campaign is two pairs of ranks, 10 launches on each stack.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plumbline.launch.witness import disturbance
from plumbline.records import store
from plumbline.records.model import Record

TESTS = ("-n", "osu_pair.*operation=(latency|bw).*placement=pair:(l3|numa|socket)", "-S", "launches=10")
TURN_S = 0.01


def compete(cpu: int, share: float) -> None:
    """Take ``share`` of ``cpu`` until the process is ended."""
    os.sched_setaffinity(0, {cpu})
    while True:
        begin = time.monotonic()
        while time.monotonic() - begin < share * TURN_S:
            pass
        time.sleep((1 - share) * TURN_S)


@contextmanager
def competitor(cpu: int, percent: int) -> Iterator[None]:
    """A process that competes for ``cpu`` in the meantime; none for 0 %."""
    pid = os.fork() if percent else 0
    if percent and pid == 0:
        compete(cpu, percent / 100)
    try:
        yield
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def measured(options: list[str]) -> list[Record]:
    """The records of a campaign with ``options``; the program ends if there are none."""
    plumb = Path(sys.executable).with_name("plumb")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [plumb, "--results", folder, "campaign", "--", *options], capture_output=True, text=True, check=False
        )
        found = [item for file in Path(folder).glob("*/*.jsonl") for item in store.read(file)]
    records = [item for item in found if isinstance(item, Record)]
    if not records:
        sys.exit(done.stdout[-2000:] + done.stderr)
    return records


def main() -> None:
    """Print a line for each share and stack, the causes, and what ran most meanwhile."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shares", default="0,5,20", help="percent of a CPU that the competitor takes")
    parser.add_argument("--cpu", type=int, default=0)
    parser.add_argument("reframe", nargs="*", default=TESTS)
    given = parser.parse_args()
    print("competitor  stack     launches  flagged         causes, and what ran most meanwhile")
    for percent in map(int, given.shares.split(",")):
        with competitor(given.cpu, percent):
            records = measured(list(given.reframe))
        for stack in sorted({record.stack.name for record in records}):
            launches = [launch for record in records if record.stack.name == stack for launch in record.launches]
            flagged = [launch for launch in launches if launch.disturbed]
            causes = Counter(disturbance.kind(cause) for launch in flagged for cause in launch.disturbance.causes)
            beside = (launch.disturbance.beside for launch in flagged if launch.disturbance.beside)
            ran = Counter(most[0].rsplit(" ", 2)[0] for most in beside)
            told = ", ".join(f"{count} x {cause}" for cause, count in [*causes.most_common(), *ran.most_common()])
            share = 100 * len(flagged) / len(launches)
            counts = f"{len(launches):>8}{len(flagged):>9}{share:>5.0f} %"
            print(f"{percent:>7} %   {stack:<10}{counts}   {told}", flush=True)


if __name__ == "__main__":
    main()
