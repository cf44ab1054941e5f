"""The machine that the bed stands on: running programs, and whether a bed can stand here at all."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

#: program that is needed: Debian package that has it
PROGRAMS = {
    "mmdebstrap": "mmdebstrap", "systemd-nspawn": "systemd-container", "nft": "nftables", "ip": "iproute2",
    "tc": "iproute2", "ssh": "openssh-client", "ssh-keygen": "openssh-client", "mkfs.ext4": "e2fsprogs",
    "losetup": "mount",
}  # fmt: skip


class BedError(Exception):
    """What is wrong with the bed, in one line for people."""


def say(text: str) -> None:
    """One line of progress on standard error."""
    print(f"{time.strftime('%H:%M:%S')} bed: {text}", file=sys.stderr, flush=True)


def run(
    command: Sequence[str | Path],
    *,
    stdin: str | None = None,
    check: bool = True,
    timeout: float = 600,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program, its output caught.

    Raises BedError if it is missing, takes over ``timeout`` s, or fails (unless ``check`` is off).
    """
    words = [str(word) for word in command]
    given: dict[str, object] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    try:
        done: subprocess.CompletedProcess[str] = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=timeout,
            env=None if env is None else {**os.environ, **env}, **given,  # type: ignore[call-overload]
        )  # fmt: skip
    except FileNotFoundError:
        raise BedError(f"{words[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise BedError(f"no end after {timeout:g} s: {' '.join(words)}") from None
    if check and done.returncode != 0:
        tail = " | ".join((done.stderr or done.stdout).strip().splitlines()[-4:])
        raise BedError(f"{' '.join(words)} ended with {done.returncode}: {tail}")
    return done


def os_release() -> dict[str, str]:
    """What /etc/os-release says."""
    found = {}
    for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines():
        name, separator, value = line.partition("=")
        if separator:
            found[name] = value.strip("\"'")
    return found


def unsuited(what: str) -> str | None:
    """Why no Debian can be made for ``what`` here, in one line, or None."""
    if os.geteuid() != 0:
        return f"{what} needs root"
    if not sys.platform.startswith("linux") or not shutil.which("apt-get"):
        return f"{what} needs Debian (apt-get is not here)"
    if os_release().get("ID") != "debian":
        return f"{what} needs Debian, this is {os_release().get('PRETTY_NAME', 'another system')}"
    return None


def obstacle() -> str | None:
    """Why no bed can be raised here, in one line, or None. `provide` installs what packages are missing."""
    if problem := unsuited("the bed"):
        return problem
    filesystems = Path("/proc/filesystems").read_text(encoding="utf-8").split()
    if "overlay" not in filesystems and run(["modprobe", "overlay"], check=False).returncode != 0:
        return "the bed needs overlayfs, which this kernel does not have"
    from testbed import cgroups

    if not cgroups.hierarchies():
        return "the bed needs cgroups, and none can be written to here"
    probe = run(["unshare", "--net", "--mount", "--pid", "--fork", "true"], check=False)
    if probe.returncode != 0:
        return f"the bed needs namespaces, which are refused here ({probe.stderr.strip()})"
    return None


def provide() -> None:
    """Install the programs that are missing on this host. Raises BedError if apt cannot."""
    packages = sorted({package for program, package in PROGRAMS.items() if not shutil.which(program)})
    if not packages:
        return
    say(f"installing on this host: {' '.join(packages)}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "update", "-qq"], env=quiet)
    options = ["-y", "-qq", "-o", "DPkg::Lock::Timeout=300", "--no-install-recommends"]
    run(["apt-get", "install", *options, *packages], env=quiet)
