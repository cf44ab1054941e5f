"""Buildcaches: folders of binaries, and the keys that must have signed them.

Spack compares each binary with the SHA-256 in its description. With ``PLUMB_SPACK_KEYS``, a file of public keys or a
folder of such files, it takes from ``PLUMB_SPACK_BUILDCACHE`` only binaries whose description one of them signed. What
it refuses it builds from source, and the installation names it. The archive for a machine without network is not
signed: its binaries and descriptions are compared with the archive's list, because Spack trusts a description.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline.base import files, sealed
from plumbline.base.errors import PlumbError
from plumbline.extras.spack.lock import Lock, Node
from plumbline.extras.spack.runner import Spack, keyring
from plumbline.stacks import archive, fetch

PLACE = "PLUMB_SPACK_BUILDCACHE"
VARIABLE = "PLUMB_SPACK_KEYS"


def airgap() -> Path | None:
    """The folder that an unpacked archive has for Spack, None without one; with it no network is used."""
    place = (archive.place() / archive.SPACK).resolve()
    return place if place.exists() else None


def folders(variable: str = PLACE, part: str = "buildcache") -> dict[str, Path]:
    """The folder that ``variable`` names and the ``part`` of the unpacked archive, each if there is one.

    They are in the order in which Spack looks into them. Without arguments, those with binaries.
    """
    named, local = os.environ.get(variable), airgap()
    places = {"given": Path(named).resolve()} if named else {}
    return {**places, "airgap": local / part} if local else places


def mirrors() -> dict[str, dict[str, Any]]:
    """The folders of binaries as Spack's configuration names them.

    Raises :class:`PlumbError` for a folder that does not exist: Spack would build everything without a word.
    """
    places = folders()
    if "given" in places and not places["given"].is_dir():
        raise PlumbError("no such folder of binaries", str(places["given"]), f"{PLACE} is a folder of plumb stack push")
    signed = {"given": bool(os.environ.get(VARIABLE)), "airgap": False}
    return {
        f"{name}-binaries": {"url": f"file://{folder}", "signed": signed[name], "binary": True, "source": False}
        for name, folder in places.items()
    }


def without_binary(packages: Mapping[str, Node]) -> list[str]:
    """The hashes of those ``packages`` of which no folder has a binary."""
    places = folders().values()
    descriptions = {
        digest: f"v3/manifests/spec/{node.name}/{node.name}-{node.version}-{digest}.spec.manifest.json"
        for digest, node in packages.items()
    }
    return [digest for digest, file in descriptions.items() if not any((place / file).is_file() for place in places)]


def check_unpacked() -> None:
    """Raise :class:`PlumbError` for the first binary or description that the unpacked archive's list has otherwise."""
    if (place := airgap()) is None:
        return
    root, part = place.parent, place / "buildcache"
    listed = sealed.sums((root / sealed.SUMS).read_text(encoding="utf-8"))
    there = {str(file.relative_to(root)) for file in part.rglob("*") if file.is_file()}
    for name in sorted(there | {name for name in listed if (root / name).is_relative_to(part)}):
        if name not in there or files.sha256(root / name) != listed.get(name):
            fault = "is not what was put there" if name in there else "is missing"
            raise PlumbError(
                f"the buildcache is damaged or was tampered with: {Path(name).name} {fault}",
                str(root / name),
                "do not use it: unpack the archive again",
            )


def push(spack: Spack, document: Lock, place: Path, *signed: str) -> int:
    """Push the installed packages of a lock into a folder; returns how many. ``signed``: Spack's options for it."""
    hashes = [f"/{digest}" for digest, node in document.concrete_specs.items() if node.external is None]
    spack.run("buildcache", "push", *signed, "--only", "package", str(place), *hashes)
    spack.run("buildcache", "update-index", str(place))
    return len(hashes)


def trust() -> None:
    """Make the keyring hold exactly the keys of ``PLUMB_SPACK_KEYS``; does nothing if that is not set."""
    if not (named := os.environ.get(VARIABLE)):
        return
    place, mark = Path(named), keyring() / "keys.sha256"
    keys = sorted(filter(Path.is_file, place.iterdir())) if place.is_dir() else [place]
    if not keys or not keys[0].is_file():
        raise PlumbError("no public key there", str(place), f"{VARIABLE} is a file of public keys or a folder of such")
    total = hashlib.sha256(b"\0".join(file.read_bytes() for file in keys)).hexdigest()
    if files.holds(mark, total):
        return
    program = shutil.which("gpg2") or shutil.which("gpg")
    if program is None:
        raise PlumbError("gpg is not installed", VARIABLE, "install GnuPG (Debian: apt-get install gnupg)")
    # an import looks for an agent, and the path of the keyring may be too long for the name of the agent's socket
    with tempfile.TemporaryDirectory(prefix="plumb-gpg-") as folder:
        options = ["--homedir", folder, "--batch", "--no-tty", "--quiet", "--no-autostart"]
        fetch.call([program, *options, "--import", *map(str, keys)], "gpg cannot import the keys", "spack")
        shutil.rmtree(keyring(), ignore_errors=True)
        keyring().mkdir(parents=True, mode=0o700)
        shutil.copy(Path(folder) / "pubring.kbx", keyring())
    files.replace(mark, total + "\n")
