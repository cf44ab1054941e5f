"""Buildcaches: checks that their binaries are unchanged, and signed by a trusted key where keys are given.

Spack compares a binary with its SHA-256 too, but builds from source without a message where they differ, and trusts
the description that holds the SHA-256. In an unpacked archive the description is compared with the archive's list.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plumbline import files
from plumbline.errors import PlumbError
from plumbline.stacks import archive
from plumbline.stacks.spack import bootstrap, signing
from plumbline.stacks.spack.programs import KERNELS
from plumbline.stacks.spack.runner import Spack

_MANIFESTS = Path("v3", "manifests", "spec")


def holds(digest: str, node: dict[str, Any]) -> bool:
    """Whether some buildcache has the binary of a lock's package."""
    return any(_description(folder, digest, node).is_file() for folder in bootstrap.buildcaches())


def _description(folder: Path, digest: str, node: dict[str, Any]) -> Path:
    return folder / _MANIFESTS / node["name"] / f"{node['name']}-{node['version']}-{digest}.spec.manifest.json"


def check(document: dict[str, Any]) -> None:
    """Raise :class:`PlumbError` for the first file of a package of the lock that a buildcache has changed or lost."""
    for folder in bootstrap.buildcaches():
        for digest, node in document["concrete_specs"].items():
            file = _description(folder, digest, node)
            if file.is_file():
                _compare(file, _listed(file), folder)
                for blob, wanted in _blobs(folder, file):
                    _compare(blob, wanted, folder)


def push(spack: Spack, document: dict[str, Any], folder: Path, *signed: str) -> int:
    """Push the installed packages of a lock into the buildcache ``folder``; returns how many.

    The kernels are left out: their sources are in the checkout. ``signed`` are Spack's options for signing.
    """
    hashes = [
        f"/{digest}"
        for digest, node in document["concrete_specs"].items()
        if "external" not in node and node["name"] != KERNELS
    ]
    spack.run("buildcache", "push", *signed, "--only", "package", str(folder), *hashes)
    spack.run("buildcache", "update-index", str(folder))
    return len(hashes)


def _compare(file: Path, wanted: str | None, folder: Path) -> None:
    if wanted is None or (file.is_file() and files.sha256(file) == wanted):
        return
    what = "is not what was put there" if file.exists() else "is missing"
    cure = (
        "do not use it: unpack the archive again" if folder.parent == bootstrap.airgap() else "push the packages again"
    )
    raise PlumbError(f"the buildcache is damaged or was tampered with: {file.name} {what}", str(file), cure)


def _listed(file: Path) -> str | None:
    """The SHA-256 of a file of the unpacked archive in the archive's list; None for a file elsewhere."""
    place = bootstrap.airgap()
    if place is None or not file.is_relative_to(place):
        return None
    listed = archive.sums((place.parent / archive.SUMS).read_text(encoding="utf-8"))
    return listed.get(str(file.relative_to(place.parent)), "not listed")


def _blobs(folder: Path, file: Path) -> Iterator[tuple[Path, str]]:
    """The files that a description names, each with its SHA-256."""
    try:
        text = signing.content(file, bootstrap.must_be_signed(folder))
        for entry in json.loads(text)["data"]:
            kind, digest = str(entry["checksumAlgorithm"]), str(entry["checksum"])
            yield folder / "blobs" / kind / digest[:2] / digest, digest
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PlumbError(f"cannot read the buildcache: {error!r}", str(file), "push the package again") from None
