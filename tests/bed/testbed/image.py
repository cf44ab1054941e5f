"""The root file system of all nodes: built once from the host's Debian mirrors, cached by a hash of its packages."""

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from testbed import registry
from testbed.host import BedError, os_release, run, say

#: any host that can be reached by SSH and managed by Ansible
FRESH = (
    "systemd systemd-sysv dbus libpam-systemd openssh-server python3 python3-apt sudo iproute2 iputils-ping"
    " ca-certificates procps netbase kmod less"
)
#: a compute cluster, with what onboarding would install
SLURM = (
    "slurm-wlm slurm-client munge libpmi2-0 libpmix2 libfabric1 python3-venv python3-pip gcc g++ libc6-dev make cmake"
    " git pkg-config libhwloc-dev libnuma-dev hwloc-nox numactl pciutils ethtool rsync bzip2 xz-utils patch unzip"
)
#: of `make bare`: what gets a checkout and begins its set-up
BARE = "git make ca-certificates"
FLAVORS = {"fresh": FRESH, "slurm": f"{FRESH} {SLURM}", "bare": BARE}

#: done in the images of hosts, where "$1" is the root
HOOKS = (
    'rm -f "$1"/etc/ssh/ssh_host_* "$1"/etc/munge/munge.key "$1"/etc/hostname',
    ': > "$1"/etc/machine-id; : > "$1"/etc/resolv.conf; rm -rf "$1"/etc/apt/sources.list*',
    'chroot "$1" useradd -m -u 1000 -s /bin/bash bench; chroot "$1" useradd -m -u 1001 -s /bin/bash guest',
    'echo "bench ALL=(ALL) NOPASSWD:ALL" > "$1"/etc/sudoers.d/bench; chmod 440 "$1"/etc/sudoers.d/bench',
    "for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer"
    ' console-getty.service; do ln -sf /dev/null "$1"/etc/systemd/system/$unit; done',
    # the role of Slurm starts these, once they have a configuration
    'for unit in slurmctld slurmd munge; do rm -f "$1"/etc/systemd/system/multi-user.target.wants/$unit.service; done',
)


def cache() -> Path:
    """Folder of the images, outside the checkout so that every checkout and `make clean` leaves them."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plumbline" / "bed"


def hooks(flavor: str) -> Sequence[str]:
    """What is done in an image once its packages are there."""
    return () if flavor == "bare" else HOOKS


def key(flavor: str, suite: str) -> str:
    """Name of an image: anything that changes what is in it changes the name. Raises KeyError for an unknown flavor."""
    content = "\n".join([suite, *sorted(set(FLAVORS[flavor].split())), *hooks(flavor)])
    return f"{flavor}-{suite}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"


def unpacked(flavor: str) -> Path:
    """Folder with the root file system, made on first use (minutes). Raises BedError if it cannot be made."""
    suite = os_release()["VERSION_CODENAME"]
    root = cache() / key(flavor, suite)
    if (root / ".complete").exists():
        return root
    sources = registry.sources()
    if not sources:
        raise BedError("apt has no package lists: run apt-get update on this host first")
    say(f"building the image {root.name} (once; some minutes)")
    root.parent.mkdir(parents=True, exist_ok=True)
    partial = root.with_name(f"{root.name}.part")
    for left in (root, partial):
        shutil.rmtree(left, ignore_errors=True)
    # a tar in between: mmdebstrap's folder format wants a mount of /proc, which the tar format does without
    archive = root.with_name(f"{root.name}.tar")
    try:
        options = ["--format=tar", "--variant=minbase", "--aptopt=APT::Install-Recommends false"]
        options.append(f"--include={','.join(sorted(set(FLAVORS[flavor].split())))}")
        options += [f"--customize-hook={hook}" for hook in hooks(flavor)]
        run(["mmdebstrap", "--quiet", *options, suite, archive, *sources], timeout=1800)
        partial.mkdir()
        run(["tar", "-C", partial, "-xpf", archive, "--numeric-owner"])
        (partial / ".complete").touch()
        partial.rename(root)
    finally:
        archive.unlink(missing_ok=True)
        shutil.rmtree(partial, ignore_errors=True)
    return root
