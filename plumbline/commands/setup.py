"""``plumb setup``: tools, compiler, stacks, site and ceilings of this host. Existing parts stay as they are."""

from __future__ import annotations

import argparse
import platform
import shutil
import subprocess
from collections.abc import Iterable

from plumbline import stacks
from plumbline.base import paths, terminal
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.host.topology import binder
from plumbline.measure import ceilings
from plumbline.site import site, write
from plumbline.stacks import manifest

#: a program or a header that stacks and applications are built with -> its package, by family of distributions
NEEDED = {
    "gcc": {"debian": "gcc", "rhel": "gcc"},
    "stdio.h": {"debian": "libc6-dev", "rhel": "glibc-devel"},
    "make": {"debian": "make", "rhel": "make"},
    "cmake": {"debian": "cmake", "rhel": "cmake"},
    "git": {"debian": "git", "rhel": "git"},
    "pkg-config": {"debian": "pkg-config", "rhel": "pkgconf-pkg-config"},
    "hwloc.h": {"debian": "libhwloc-dev", "rhel": "hwloc-devel"},
    "numaif.h": {"debian": "libnuma-dev", "rhel": "numactl-devel"},
}
#: programs that plumb doctor and people use
WANTED = {
    "lstopo-no-graphics": {"debian": "hwloc-nox", "rhel": "hwloc"},
    "numactl": {"debian": "numactl", "rhel": "numactl"},
}
INSTALL = {"debian": "apt-get install", "rhel": "dnf install"}
#: the site of a host that has none, and its partition
SITE, PARTITION = "local", "default"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb setup``."""
    text = "this stack, repeated (default: all that plumb stack names lists)"
    options.add(parser, "--stack", text, action="append", default=[])
    text = "do not measure what this machine reaches; plumb site measure does it later"
    parser.add_argument("--no-ceilings", action="store_true", help=text)


def run(args: argparse.Namespace) -> int:
    """Do the steps in order and print a line for each; the exit status is returned."""
    default = stacks.provider(stacks.DEFAULT_PROVIDER)
    wanted = [stacks.origin(spec) for spec in args.stack or default.names()]
    stacks.check(wanted)
    print(f"tools: {len(binder.placements())} placements, {paths.binder()}", flush=True)
    if absent := missing(NEEDED):
        message = (
            f"missing: {', '.join(absent)}; without them no stack is built: plumb topology, doctor and records work"
        )
        raise PlumbError(message, platform.node(), packages(absent))
    print(f"compiler: {shutil.which('gcc')}, and all that is built with it", flush=True)
    if absent := missing(WANTED):
        print(f"wanted: {', '.join(absent)}; {packages(absent)}", flush=True)
    with terminal.bar():
        for kind, name in dict.fromkeys(wanted):
            stacks.install(kind, name)
    here = _site([stacks.label(kind, name) for kind, name in wanted])
    if not args.no_ceilings:
        try:
            ceilings.measure_all(here, site.load(here).partitions, None, terminal.say, if_needed=True)
        except PlumbError as error:  # a site without ceilings is a whole one
            print(f"ceilings: {error}; plumb site measure tries again")
    activate = "" if paths.is_installed() else ". ./activate, then "
    print(f"next: {activate}plumb campaign, or in a repository of your own plumb application init and plumb run")
    return 0


def missing(names: Iterable[str]) -> list[str]:
    """The programs and headers among ``names`` that this host lacks."""
    return [name for name in names if not (_has_header(name) if name.endswith(".h") else shutil.which(name))]


def _has_header(name: str) -> bool:
    command = ["gcc", "-fsyntax-only", "-x", "c", "-include", name, "/dev/null"]
    return bool(shutil.which("gcc")) and subprocess.run(command, capture_output=True, check=False).returncode == 0


def packages(absent: list[str]) -> str:
    """The command that installs the packages of ``absent`` here."""
    release = platform.freedesktop_os_release()
    words = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    family = next((name for name in INSTALL if name in words or (name == "rhel" and "fedora" in words)), None)
    if family is None:
        return "install them, or load modules that have them"
    return f"as root: {INSTALL[family]} {' '.join((NEEDED | WANTED)[name][family] for name in absent)}"


def _site(offered: list[str]) -> str:
    """The site that claims this host, made if there is none; where set-up made it, it offers these stacks too."""
    claiming = site.claiming(site.load_all())
    if claiming is None and SITE in site.names():
        cure = "add this host to its hostnames, or name another folder with --sites"
        raise PlumbError(f"site {SITE} is of another host than {platform.node()}", str(site.folder(SITE)), cure)
    if claiming and (claiming.name, claiming.partitions[0].name) != (SITE, PARTITION):
        print(f"site {claiming.name}: claims this host, left as it is")
        return claiming.name
    changes = write.init(write.SiteRequest(SITE, PARTITION, stacks=manifest.names(), add_stacks=offered))
    print(
        f"site {SITE}: {f'{len(changes)} files written' if changes else 'unchanged'}, {site.folder(SITE)}", flush=True
    )
    return SITE
