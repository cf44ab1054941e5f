"""The bed's Slurm: made by the playbook, asked and told through the controller."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from testbed import access
from testbed.host import BedError, run
from testbed.layout import CONTROLLER, ROOT, state

READY = ("idle", "allocated", "mixed", "completing")
#: no connection outlives the run: a node that is raised again must not be spoken to over an old one
SSH_ARGS = "-o ControlMaster=no -o ControlPath=none"


def make() -> str:
    """Run the playbook of Slurm; what it printed, which is kept in build/bed. Raises BedError."""
    playbook = ROOT / ".venv/bin/ansible-playbook"
    if not playbook.exists():
        raise BedError(f"{playbook} is missing: run make venv")
    environment = {
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_FORCE_COLOR": "0",
        "ANSIBLE_FORKS": "8",
        "ANSIBLE_SSH_ARGS": SSH_ARGS,
    }
    command: list[str | Path] = [playbook, "-i", state() / "slurm.yml", ROOT / "tests/bed/slurm.yml"]
    done = run(command, env=environment, check=False, timeout=1200)
    printed = done.stdout + done.stderr
    record = state() / "ansible.txt"
    record.write_text(printed, encoding="utf-8")
    if done.returncode != 0:
        raise BedError(f"Slurm was not made ({record}): {' | '.join(printed.strip().splitlines()[-6:])}")
    return printed


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
