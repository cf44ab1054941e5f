"""The archive that a machine without network installs from: one tar file, unpacked in ``stacks/archive``.

Inside: ``SHA256SUMS``, the SHA-256 of every other member; ``index.json``, which says for which machine and Python the
archive is, of which commit, and what each file is for; ``wheels/`` with the packages of ``requirements.txt`` and of the
stacks' locks; and ``spack/`` where Spack stacks were packed (:mod:`plumbline.stacks.pack`). While an archive is
unpacked, pip takes every package from it and asks no registry.

The list inside detects damage; a change of both a file and the list is detected by the archive's own SHA-256 only.

Standard library only, because ``playbooks/bootstrap.sh`` runs this before there is a virtual environment:
``python3 -m plumbline.stacks.archive LOCK [FILE [SHA256]]`` unpacks FILE and prints the folder with LOCK's packages.
"""

from __future__ import annotations

import json
import platform
import re
import sys
from pathlib import Path
from typing import Any

from plumbline.base import files, paths, sealed
from plumbline.base.errors import PlumbError
from plumbline.stacks import locked

OWNER = "archive"
INDEX = "index.json"
WHEELS = "wheels"
SPACK = "spack"
SCHEMA = 2
#: members of the index that unpacking and installing use, and their types
KEYS: dict[str, tuple[type, ...]] = {
    "commit": (str, type(None)),
    "machine": (str,),
    "python": (str,),
    "glibc": (str, type(None)),
    "locks": (dict,),
    "files": (list,),
}


def place() -> Path:
    """Where an archive is unpacked."""
    return paths.stacks() / OWNER


def machine() -> dict[str, str | None]:
    """The facts that a packed file can depend on: processor, Python, and the C library's version (None: not glibc)."""
    libc, version = platform.libc_ver()
    return {
        "machine": platform.machine(),
        "python": f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}",
        "glibc": version if libc == "glibc" else None,
    }


def check(source: Path, digest: str | None = None, target: Path | None = None) -> dict[str, Any]:
    """Check an archive as :func:`unpack` does, with the same errors; returns its index.

    Nothing is written, or every member below ``target``.
    """
    texts = sealed.read(source, "plumb stack pack makes one", digest, target, (INDEX,))
    document, here = _parse(texts.get(INDEX, ""), source), machine()
    if any(document[key] != here[key] for key in ("machine", "python")):
        raise PlumbError(
            f"the archive is for {document['python']} on {document['machine']}, this is {here['python']} on"
            f" {here['machine']}",
            str(source),
            "pack it on such a machine with that Python, or use that Python here: PYTHON=python3.X",
        )
    needed, glibc = document["glibc"], here["glibc"]
    if needed and (glibc is None or version(glibc) < version(needed)):
        raise PlumbError(
            f"the archive needs glibc {needed}, here is {glibc or 'another C library'}",
            str(source),
            "pack it on a machine with the older one",
        )
    return document


def unpack(source: Path, digest: str | None = None) -> dict[str, Any]:
    """Check the archive and put its content in place of the one unpacked before; returns its index.

    Raises :class:`PlumbError` for an archive that is damaged, was changed, does not have the SHA-256 ``digest``, or is
    for another machine, Python or newer glibc. The content unpacked before is then unchanged.
    """
    with files.writing("what the archive holds", place()), locked(OWNER), files.staged(place()) as fresh:
        return check(source, digest, fresh)


def pip_options(lock: Path) -> list[str]:
    """Options that make pip take the packages of ``lock`` from the unpacked archive; none where there is no archive.

    Raises :class:`PlumbError` where there is one that was packed without this lock or with another state of it.
    """
    files.recover(place())
    if not place().is_dir():
        return []
    index = place() / INDEX
    document = _parse(index.read_text(encoding="utf-8") if index.exists() else "", place())
    if files.sha256(lock) not in document["locks"].values():
        commit = str(document["commit"] or "unknown")[:12]
        raise PlumbError(
            f"the unpacked archive has nothing for this {lock.name}; it was packed at commit {commit}",
            str(place()),
            "pack one that has it (plumb stack pack), or remove this folder to ask the registry",
        )
    return ["--no-index", "--find-links", str(place() / WHEELS)]


def _parse(text: str, source: Path) -> dict[str, Any]:
    cure = "plumb stack pack makes a complete one"
    try:
        document = json.loads(text)
        schema = document["schema"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise PlumbError(f"no {INDEX} in the archive", str(source), cure) from None
    if schema != SCHEMA:
        raise PlumbError(f"the archive has schema {schema}, not {SCHEMA}", str(source), "pack it with this Plumbline")
    wrong = next((key for key, types in KEYS.items() if not isinstance(document.get(key, ...), types)), None)
    if wrong is not None:
        raise PlumbError(f"{INDEX}: '{wrong}' is missing or invalid", str(source), cure)
    return dict(document)


def version(text: str) -> tuple[int, ...]:
    """``2.36`` -> (2, 36)."""
    return tuple(int(part) for part in re.findall(r"\d+", text))


def main(arguments: list[str]) -> int:
    """``python3 -m plumbline.stacks.archive``: see the module's description; the exit status is returned."""
    lock, *rest = arguments
    try:
        if rest:
            unpack(Path(rest[0]), *rest[1:])
        options = pip_options(Path(lock))
    except PlumbError as error:
        print(f"plumb: {error}", file=sys.stderr)
        return 2
    if options:
        print(options[-1])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
