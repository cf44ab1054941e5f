"""SSH to the nodes: keys, host keys and configuration of the bed alone, in build/bed/ssh."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from testbed.host import BedError, run
from testbed.layout import BENCH_UID, Node, Settings, every, state

USERS = {"root": ("root", 0), "bench": ("home/bench", BENCH_UID), "guest": ("home/guest", BENCH_UID + 1)}
#: host keys are made here once per node, so that a node raised again is still the one that is known
SSHD = "UseDNS no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\nMaxStartups 50:30:100\n"


def folder() -> Path:
    """Folder of all that SSH needs."""
    return state() / "ssh"


def config() -> Path:
    """The file for `ssh -F`."""
    return folder() / "config"


def write_keys(settings: Settings) -> None:
    """Make what is missing: the user's key, the key that the nodes use among themselves, host keys, configuration."""
    ours = folder()
    ours.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ["user", "inner", *(f"host-{node.name}" for node in every())]:
        if not (ours / name).exists():
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"plumb-bed {name}", "-f", ours / name])
    (ours / "known_hosts").write_text(known_hosts(settings), encoding="utf-8")
    hosts = "".join(f"Host {node.name}\n  HostName {node.address}\n" for node in settings.hosts())
    known = " ".join(f"{node.name} {node.address}" for node in settings.hosts())
    common = f"""Host {known}
  IdentityFile "{ours / "user"}"
  UserKnownHostsFile "{ours / "known_hosts"}"
Host *
  User bench
  IdentitiesOnly yes
  StrictHostKeyChecking yes
  ConnectTimeout 10
  ServerAliveInterval 5
  ServerAliveCountMax 3
"""
    config().write_text(hosts + common, encoding="utf-8")
    for file in ours.iterdir():
        file.chmod(0o600)


def known_hosts(settings: Settings) -> str:
    """Lines of known_hosts for all nodes."""
    lines = []
    for node in settings.hosts():
        kind, key, *_ = (folder() / f"host-{node.name}.pub").read_text(encoding="utf-8").split()
        lines.append(f"{node.name},{node.address} {kind} {key}\n")
    return "".join(lines)


def furnish(node: Node, settings: Settings) -> None:
    """Write host key, users' keys and known hosts into a node's root file system."""
    root = node.root
    (root / "etc/ssh/sshd_config.d/bed.conf").write_text(SSHD, encoding="utf-8")
    (root / "etc/ssh/ssh_known_hosts").write_text(known_hosts(settings), encoding="utf-8")
    for suffix, mode in (("", 0o600), (".pub", 0o644)):
        place(folder() / f"host-{node.name}{suffix}", root / f"etc/ssh/ssh_host_ed25519_key{suffix}", mode, 0)
    user, inner = (folder() / f"{name}.pub" for name in ("user", "inner"))
    for name, (home, uid) in USERS.items():
        keys = root / home / ".ssh"
        keys.mkdir(mode=0o700, exist_ok=True)
        os.chown(keys, uid, uid)
        allowed = user.read_text(encoding="utf-8") + (inner.read_text(encoding="utf-8") if name == "bench" else "")
        (keys / "authorized_keys").write_text(allowed, encoding="utf-8")
        (keys / "authorized_keys").chmod(0o600)
        os.chown(keys / "authorized_keys", uid, uid)
        if name == "bench":
            place(folder() / "inner", keys / "id_ed25519", 0o600, uid)


def place(source: Path, target: Path, mode: int, owner: int) -> None:
    """Copy a file with mode and owner."""
    shutil.copyfile(source, target)
    target.chmod(mode)
    os.chown(target, owner, owner)


def ssh(node: str, *command: str, user: str = "root", timeout: float = 120, check: bool = True) -> str:
    """What an argument list printed on a node. Raises BedError if it fails, unless ``check`` is off."""
    line = ["ssh", "-F", str(config()), f"{user}@{node}", shlex.join(command)]
    return run(line, timeout=timeout, check=check).stdout


def answers(node: str, seconds: int = 1) -> bool:
    """Whether the node's sshd lets root in within the time."""
    line = ["ssh", "-F", str(config()), "-o", f"ConnectTimeout={seconds}", f"root@{node}", "true"]
    try:
        done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=30)
        return done.returncode == 0
    except subprocess.TimeoutExpired:
        return False  # a host that is too busy to let anyone in


def interactive(node: str, command: Sequence[str]) -> int:
    """Exit status of a command, or of a shell, on a node, with this terminal."""
    if not config().exists():
        raise BedError("no bed is up")
    remote = [shlex.join(command)] if command else []
    return subprocess.run(["ssh", "-F", str(config()), node, *remote], check=False).returncode
