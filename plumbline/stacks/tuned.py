"""Tuned stacks: ``NAME+tuned`` is the stack ``NAME`` with settings, and says where they were found to be good."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.host.collector import Reader
from plumbline.mpi.settings import Configuration
from plumbline.stacks import manifest as manifests

SUFFIX = "+tuned"


class Fingerprint(Struct, frozen=True):
    """Where a configuration was measured.

    ``library`` is the SHA-256 of the MPI library, ``cpu`` the model of the processor, ``kernel`` the release of Linux;
    ``ranks`` are those of each node.
    """

    library: str
    cpu: str
    kernel: str
    ranks: int
    placement: str
    nodes: int = 1


class Tuned(Struct, frozen=True):
    """The note on its settings in a manifest: for which stack they were found (``of``), when, and in which session."""

    of: str
    time: str
    session: str
    fingerprint: Fingerprint
    configuration: Configuration


def suffix(nodes: int) -> str:
    """The end of a tuned stack's name: ``+tuned``, or ``+tuned-2n`` for two nodes."""
    return SUFFIX if nodes == 1 else f"{SUFFIX}-{nodes}n"


def fingerprint(document: Mapping[str, Any], ranks: int, placement: str, nodes: int = 1) -> Fingerprint:
    """The fingerprint of the stack with the manifest ``document`` on this host."""
    read = Reader()
    cpu = read.cpuinfo("model name") or read.cpuinfo("CPU part") or platform.machine()
    return Fingerprint(_library(document), cpu, platform.release(), ranks, placement, nodes)


def make(
    document: Mapping[str, Any], settings: Mapping[str, str], tuned: Tuned, read: Iterable[Path]
) -> dict[str, Any]:
    """The manifest of the tuned stack: ``document`` with ``settings``; ``read`` are further files that it loads."""
    loads = document.get("loads", {"library": None, "files": {}})
    return {
        **document,
        "name": tuned.of + suffix(tuned.fingerprint.nodes),
        "settings": dict(settings),
        "tuned": msgspec.json.decode(msgspec.json.encode(tuned)),
        "loads": {**loads, "files": {**loads["files"], **{str(file): files.sha256(file) for file in read}}},
    }


def renew(document: Mapping[str, Any]) -> None:
    """Write the tuned stacks made from ``document`` again, with its present programs and their own settings."""
    for folder in sorted(paths.stacks().glob(document["name"] + SUFFIX + "*")):
        if not manifests.path(folder.name).exists():
            continue
        try:
            old = manifests.load(folder.name)
        except PlumbError as error:  # the stack that it was made from is whole all the same
            print(f"plumb: left as it is: {error}", file=sys.stderr)
            continue
        own = [Path(name) for name in old["loads"]["files"] if Path(name).parent == folder]
        manifests.save(make(document, old["settings"], msgspec.convert(old["tuned"], Tuned), own))


def remarks(document: Mapping[str, Any]) -> list[str]:
    """How this host and the library differ from those for which a tuned stack was measured, one line each."""
    if "tuned" not in document:
        return []
    was = msgspec.convert(document["tuned"], Tuned).fingerprint
    now = fingerprint(document, was.ranks, was.placement, was.nodes)
    return [
        f"the settings of {document['name']} were found {how} {old}, this is {new}"
        for how, old, new in (
            ("with the MPI library", was.library[:12], now.library[:12]),
            ("on", was.cpu, now.cpu),
            ("under kernel", was.kernel, now.kernel),
        )
        if old != new
    ]


def _library(document: Mapping[str, Any]) -> str:
    """SHA-256 of the MPI library as it is now; empty where the manifest names none or the file is missing."""
    library = document.get("loads", {}).get("library")
    return files.sha256_once(Path(library)) if library and Path(library).is_file() else ""
