"""Buildcaches: checks that their binaries are unchanged, and signed by a trusted key where keys are given.

Spack compares a binary with its SHA-256 too, but builds from source without a message where they differ, and trusts
the description that holds the SHA-256. In an unpacked archive the description is compared with the archive's list.

``PLUMB_SPACK_KEYS`` names the public keys that are trusted: a file, or a folder of files. With it, every binary of the
folder ``PLUMB_SPACK_BUILDCACHE`` that a lock can take must be signed by one of them. Spack alone would build from
source where a signature is missing or wrong, and say nothing. GnuPG signs and checks.

``PLUMB_SPACK_BUILDCACHE`` may also name a registry of container images. It knows each binary by its SHA-256, which
Spack compares; nothing in it can be signed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from plumbline.base import files, sealed
from plumbline.base.errors import PlumbError
from plumbline.extras.spack.lock import Lock, Node
from plumbline.extras.spack.runner import Spack, keyring
from plumbline.stacks import archive

PLACE = "PLUMB_SPACK_BUILDCACHE"
VARIABLE = "PLUMB_SPACK_KEYS"
#: name and password for a registry that asks for them
LOGIN = ("PLUMB_SPACK_REGISTRY_USER", "PLUMB_SPACK_REGISTRY_PASSWORD")
#: how the address of a registry begins, for Spack too. It is reached by HTTPS: unsigned binaries must come from there
_REGISTRY = "oci://"
#: Our own kernels, which each checkout compiles from its sources.
KERNELS = "plumbline-kernels"
_MANIFESTS = Path("v3", "manifests", "spec")
_BEGIN, _END = "-----BEGIN PGP SIGNED MESSAGE-----", "-----BEGIN PGP SIGNATURE-----"


def airgap() -> Path | None:
    """The folder that an unpacked archive has for Spack, None without one; with it no network is used."""
    place = (archive.place() / archive.SPACK).resolve()
    return place if place.exists() else None


def is_registry(place: str) -> bool:
    """Whether a place of binaries is a registry of container images, and not a folder."""
    return place.startswith(_REGISTRY)


def registry() -> str | None:
    """The registry that ``PLUMB_SPACK_BUILDCACHE`` names, if it names one.

    Raises :class:`PlumbError` where binaries must be signed.
    """
    place = os.environ.get(PLACE, "")
    if not is_registry(place):
        return None
    if os.environ.get(VARIABLE):
        raise PlumbError("a registry holds no signed binaries", place, f"unset {VARIABLE}, or use a folder")
    return place


def folders(variable: str = PLACE, part: str = "buildcache") -> dict[str, Path]:
    """The folder that ``variable`` names and the ``part`` of the unpacked archive, each if there is one.

    They are in the order in which Spack looks into them. Without arguments, those with binaries.
    """
    named, local = os.environ.get(variable, ""), airgap()
    places = {"given": Path(named).resolve()} if named and not is_registry(named) else {}
    return {**places, "airgap": local / part} if local else places


def mirrors(*others: str) -> dict[str, dict[str, Any]]:
    """The places of binaries as Spack's configuration names them, and the registries ``others``.

    Raises :class:`PlumbError` for a folder that does not exist: Spack would build everything without a word.
    """
    named = folders().get("given")
    if named and not named.is_dir():
        cure = f"{PLACE} is a folder of plumb stack push, or a registry: oci://HOST/NAME"
        raise PlumbError("no such folder of binaries", str(named), cure)
    entries = {
        name: {"url": f"file://{folder}", "signed": must_be_signed(folder)} for name, folder in folders().items()
    }
    pair = dict(zip(("id_variable", "secret_variable"), LOGIN, strict=True))
    login = {"access_pair": pair} if all(map(os.environ.get, LOGIN)) else {}
    for number, place in enumerate(filter(None, dict.fromkeys([registry(), *others]))):
        entries[f"registry{number}"] = {"url": place, "signed": False, **login}
    return {f"{name}-binaries": {**entry, "binary": True, "source": False} for name, entry in entries.items()}


def without_binary(spack: Spack, packages: Mapping[str, Node]) -> list[str]:
    """The hashes of those ``packages`` whose binaries are in no folder, and not in the registry."""
    lacking = [
        digest
        for digest, node in packages.items()
        if not any(_description(folder, digest, node).is_file() for folder in folders().values())
    ]
    place = registry()
    if place and lacking:
        held = _held(spack, place)
        lacking = [digest for digest in lacking if digest not in held]
    return lacking


def _held(spack: Spack, place: str) -> set[str]:
    """The hashes of the packages whose binaries the registry has."""
    try:
        listed = spack.run("buildcache", "list", "--allarch", "--very-long")
    except PlumbError as error:
        if re.search(r"returned 40[13]\b", error.message):
            raise PlumbError("the registry refuses the login", place, f"set {' and '.join(LOGIN)}") from None
        raise
    return set(re.findall(r"^([a-z2-7]{32}) ", listed, re.MULTILINE))


def must_be_signed(folder: Path) -> bool:
    """Whether binaries of a folder must be signed; an unpacked archive has their SHA-256 in its list instead."""
    local = airgap()
    return bool(os.environ.get(VARIABLE)) and (local is None or not folder.is_relative_to(local))


def _description(folder: Path, digest: str, node: Node) -> Path:
    return folder / _MANIFESTS / node.name / f"{node.name}-{node.version}-{digest}.spec.manifest.json"


def check(document: Lock) -> None:
    """Raise :class:`PlumbError` for the first file of a package of the lock that a buildcache has changed or lost."""
    for folder in folders().values():
        described = (_description(folder, digest, node) for digest, node in document.concrete_specs.items())
        for description in filter(Path.is_file, described):
            for file, wanted in chain([(description, _listed(description))], _blobs(folder, description)):
                if wanted is None or (file.is_file() and files.sha256(file) == wanted):
                    continue
                fault = "is not what was put there" if file.exists() else "is missing"
                again = (
                    "do not use it: unpack the archive again"
                    if folder.parent == airgap()
                    else "push the packages again"
                )
                raise PlumbError(
                    f"the buildcache is damaged or was tampered with: {file.name} {fault}", str(file), again
                )


def _listed(file: Path) -> str | None:
    """The SHA-256 of a file of the unpacked archive in the archive's list; None for a file elsewhere."""
    place = airgap()
    if place is None or not file.is_relative_to(place):
        return None
    listed = sealed.sums((place.parent / sealed.SUMS).read_text(encoding="utf-8"))
    return listed.get(str(file.relative_to(place.parent)), "not listed")


def _blobs(folder: Path, file: Path) -> Iterator[tuple[Path, str]]:
    """The files that a description names, each with its SHA-256."""
    try:
        text = _content(file, must_be_signed(folder))
        for entry in json.loads(text)["data"]:
            kind, digest = str(entry["checksumAlgorithm"]), str(entry["checksum"])
            yield folder / "blobs" / kind / digest[:2] / digest, digest
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PlumbError(f"cannot read the buildcache: {error!r}", str(file), "push the package again") from None


def push(spack: Spack, document: Lock, place: str, *signed: str) -> int:
    """Push the installed packages of a lock into a folder or a registry; returns how many.

    The kernels are left out: their sources are in the checkout. ``signed`` are Spack's options for signing.
    """
    hashes = [
        f"/{digest}"
        for digest, node in document.concrete_specs.items()
        if node.external is None and node.name != KERNELS
    ]
    spack.run("buildcache", "push", *signed, "--only", "package", place, *hashes)
    spack.run("buildcache", "update-index", place)
    return len(hashes)


def trust() -> None:
    """Make the keyring hold exactly the keys of ``PLUMB_SPACK_KEYS``; does nothing if that is not set.

    Raises :class:`PlumbError` if there are no such keys, or GnuPG cannot import them.
    """
    named = os.environ.get(VARIABLE)
    if not named:
        return
    place = Path(named)
    keys = sorted(file for file in place.iterdir() if file.is_file()) if place.is_dir() else [place]
    if not keys or not all(file.is_file() for file in keys):
        raise PlumbError("no public key there", str(place), f"{VARIABLE} is a file of public keys or a folder of such")
    total = hashlib.sha256(b"\0".join(file.read_bytes() for file in keys)).hexdigest()
    mark = keyring() / "keys.sha256"
    if files.holds(mark, total):
        return
    shutil.rmtree(keyring(), ignore_errors=True)
    keyring().mkdir(parents=True, mode=0o700)
    # an import looks for an agent, and the path of the keyring may be too long for the name of the agent's socket
    with tempfile.TemporaryDirectory(prefix="plumb-gpg-") as folder:
        done = _gpg(Path(folder), "--import", *map(str, keys))
        if done.returncode != 0:
            complaint = (done.stderr.decode(errors="replace").strip().splitlines() or ["it says nothing"])[0]
            raise PlumbError(
                f"gpg cannot import the keys: {complaint[:200]}", str(keys[0]), "gpg --armor --export KEY makes one"
            )
        shutil.copy(Path(folder) / "pubring.kbx", keyring())
    files.replace(mark, total + "\n")


def _content(file: Path, must_be_signed: bool) -> str:
    """The text of a description in a buildcache, without its signature.

    With ``must_be_signed``, raises :class:`PlumbError` unless it is signed by a key in the keyring.
    """
    text = file.read_text(encoding="utf-8")
    if not must_be_signed:
        return text.partition("\n\n")[2].partition(_END)[0] if text.startswith(_BEGIN) else text
    if not text.startswith(_BEGIN):
        cure = f"push it with --key, or unset {VARIABLE} to take unsigned binaries"
        raise PlumbError(f"the binary is not signed: {file.name}", str(file), cure)
    done = _gpg(keyring(), "--decrypt", str(file))
    if done.returncode != 0:
        cure = f"do not use it, or add the public key of who signed it to {VARIABLE}"
        raise PlumbError(f"the signature is not that of a trusted key: {file.name}", str(file), cure)
    return done.stdout.decode()


def _gpg(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("gpg2") or shutil.which("gpg")
    if program is None:
        raise PlumbError("gpg is not installed", VARIABLE, "install GnuPG (Debian: apt-get install gnupg)")
    options = ["--homedir", str(folder), "--batch", "--no-tty", "--quiet", "--no-autostart"]
    command = [program, *options, *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
