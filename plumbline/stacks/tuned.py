"""Tuned stacks: ``NAME+tuned`` is the stack ``NAME`` with settings, and says where they were found to be good."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.host.collector import Reader
from plumbline.stacks import manifest as manifests
from plumbline.stacks.manifest import Fingerprint, Manifest, Tuned

SUFFIX = "+tuned"


def suffix(nodes: int) -> str:
    """The end of a tuned stack's name: ``+tuned``, or ``+tuned-2n`` for two nodes."""
    return SUFFIX if nodes == 1 else f"{SUFFIX}-{nodes}n"


def fingerprint(stack: Manifest, ranks: int, placement: str, nodes: int = 1) -> Fingerprint:
    """The fingerprint of ``stack`` on this host.

    The library's SHA-256 is that of now, empty where the manifest names none or the file is missing.
    """
    read = Reader()
    cpu = read.cpuinfo("model name") or read.cpuinfo("CPU part") or platform.machine()
    library = stack.loads and stack.loads.library
    digest = files.sha256_once(Path(library)) if library and Path(library).is_file() else ""
    return Fingerprint(digest, cpu, platform.release(), ranks, placement, nodes)


def make(stack: Manifest, settings: Mapping[str, str], tuned: Tuned, read: Mapping[str, str]) -> Manifest:
    """The tuned stack: ``stack`` with ``settings``; ``read`` are further files that it loads, with their SHA-256."""
    loads = stack.loads or manifests.NOT_RECORDED
    return replace(
        stack,
        name=tuned.of + suffix(tuned.fingerprint.nodes),
        settings=dict(settings),
        tuned=tuned,
        loads=replace(loads, files={**loads.files, **read}),
    )


def renew(stack: Manifest) -> None:
    """Write the tuned stacks made from ``stack`` again, with its present programs and their own settings."""
    for folder in sorted(paths.stacks().glob(stack.name + SUFFIX + "*")):
        if not manifests.path(folder.name).exists():
            continue
        try:
            old = manifests.load(folder.name)
        except PlumbError as error:  # the stack that it was made from is whole all the same
            print(f"plumb: left as it is: {error}", file=sys.stderr)
            continue
        if old.tuned and old.loads:
            own_files = {name: files.sha256(Path(name)) for name in old.loads.files if Path(name).parent == folder}
            manifests.save(make(stack, old.settings, old.tuned, own_files))


def remarks(stack: Manifest) -> list[str]:
    """How this host and the library differ from those for which a tuned stack was measured, one line each."""
    if stack.tuned is None:
        return []
    was = stack.tuned.fingerprint
    now = fingerprint(stack, was.ranks, was.placement, was.nodes)
    return [
        f"the settings of {stack.name} were found {how} {old}, this is {new}"
        for how, old, new in (
            ("with the MPI library", was.library[:12], now.library[:12]),
            ("on", was.cpu, now.cpu),
            ("under kernel", was.kernel, now.kernel),
        )
        if old != new
    ]
