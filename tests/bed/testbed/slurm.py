"""The bed's Slurm: asked and told through the controller."""

import time
from collections.abc import Iterable

from testbed import access
from testbed.host import BedError
from testbed.layout import CONTROLLER

READY = ("idle", "allocated", "mixed", "completing")


def states() -> dict[str, str]:
    """Nodes and their states as sinfo names them (idle, drained, down*, …); empty while slurmctld does not answer."""
    listed = access.ssh(CONTROLLER, "sinfo", "--noheader", "--Node", "--format=%N %T", check=False)
    return dict(line.split() for line in listed.splitlines() if len(line.split()) == 2)


def ready(names: Iterable[str]) -> bool:
    """Whether all these nodes accept jobs."""
    now = states()
    return all(now.get(name) in READY for name in names)


def resume(names: Iterable[str], seconds: float = 180) -> None:
    """Put nodes that are down or drained back to work and wait for them. Raises BedError after the time."""
    end = time.monotonic() + seconds
    waiting = set(names)
    while waiting:
        now = states()
        waiting = {name for name in waiting if now.get(name) not in READY}
        for name in sorted(waiting):
            if any(word in now.get(name, "") for word in ("down", "drain", "fail")):
                update(name, "state=resume", check=False)
        if waiting and time.monotonic() > end:
            told = ", ".join(f"{name} is {now.get(name, 'unknown to Slurm')}" for name in sorted(waiting))
            raise BedError(f"{told} after {seconds:g} s")
        if waiting:
            time.sleep(0.5)


def update(name: str, *changes: str, check: bool = True) -> None:
    """Tell slurmctld something about a node. Raises BedError if it refuses, unless ``check`` is off."""
    access.ssh(CONTROLLER, "scontrol", "update", f"nodename={name}", *changes, check=check)
