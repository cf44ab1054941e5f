"""The bed's scheduler: Slurm or Grid Engine, made by its playbook, or none."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testbed import access
from testbed.host import BedError, run
from testbed.layout import ROOT, Node, Settings, state

#: what each runs on the hosts; a unit that a host does not have is not stopped
SERVICES: dict[str, tuple[str, ...]] = {
    "slurm": ("slurmctld", "slurmd"),
    "sge": ("gridengine-exec", "gridengine-master"),
    "ssh": (),
}


def make(settings: Settings) -> str:
    """Stop the others' services and run the scheduler's playbook; what it printed, which is kept in build/bed.

    Raises BedError.
    """
    others = [unit for name, units in SERVICES.items() if name != settings.scheduler for unit in units]

    def stop(host: Node) -> None:
        access.ssh(host.name, "systemctl", "stop", *others, check=False)
        if settings.scheduler != "sge":  # its init scripts return before the daemons have ended, or lose them
            access.ssh(host.name, "pkill", "-x", "'sge_qmaster|sge_execd'", check=False)

    with ThreadPoolExecutor() as pool:
        list(pool.map(stop, settings.hosts()))
    if not SERVICES[settings.scheduler]:
        return ""
    playbook = ROOT / ".venv/bin/ansible-playbook"
    if not playbook.exists():
        raise BedError(f"{playbook} is missing: run make venv")
    command: list[str | Path] = [playbook, "-i", state() / "own.yml", ROOT / f"tests/bed/{settings.scheduler}.yml"]
    # one connection to each host for all tasks, of this run alone: a node that is raised again has another one
    with tempfile.TemporaryDirectory(prefix="bed-") as sockets:
        environment = {
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_FORCE_COLOR": "0",
            "ANSIBLE_FORKS": "8",
            "ANSIBLE_SSH_ARGS": f"-o ControlMaster=auto -o ControlPersist=15 -o ControlPath={sockets}/%h",
        }
        done = run(command, env=environment, check=False, timeout=1200)
    printed = done.stdout + done.stderr
    record = state() / "ansible.txt"
    record.write_text(printed, encoding="utf-8")
    if done.returncode != 0:
        raise BedError(f"{settings.scheduler} was not made ({record}): {' | '.join(printed.strip().splitlines()[-6:])}")
    return printed
