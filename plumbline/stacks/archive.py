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
import shutil
import sys
import tarfile
from pathlib import Path
from typing import Any

from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.stacks import locked

OWNER = "archive"
SUMS = "SHA256SUMS"
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
#: most bytes of SHA256SUMS and of the index, which are read as a whole
MOST_TEXT = 64 << 20


def place() -> Path:
    """Where an archive is unpacked."""
    return paths.stacks() / OWNER


def machine() -> dict[str, str | None]:
    """What a packed file can depend on: processor, Python, and the C library's version (None: not glibc)."""
    libc, version = platform.libc_ver()
    return {
        "machine": platform.machine(),
        "python": f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}",
        "glibc": version if libc == "glibc" else None,
    }


def write(folder: Path, target: Path) -> str:
    """Make the archive ``target`` of all files in ``folder`` and a list of them; returns the archive's SHA-256.

    The list ``SHA256SUMS`` is written into ``folder``. Raises OSError.
    """
    content = [entry for entry in sorted(folder.rglob("*")) if entry.is_file()]
    listing = folder / SUMS
    listing.write_text("".join(f"{files.sha256(file)}  {file.relative_to(folder)}\n" for file in content))
    with files.replacing(target) as temporary, tarfile.open(temporary, "w", dereference=True) as tar:
        for file in [listing, *content]:
            tar.add(file, str(file.relative_to(folder)), recursive=False, filter=_plain)
    return files.sha256(target)


def check(source: Path, digest: str | None = None) -> dict[str, Any]:
    """Check an archive as :func:`unpack` does, with the same errors, but write nothing; returns its index."""
    return _read(source, digest, None)


def unpack(source: Path, digest: str | None = None) -> dict[str, Any]:
    """Check the archive and put its content in place of what was unpacked before; returns its index.

    Raises :class:`PlumbError` for an archive that is damaged, was changed, does not have the SHA-256 ``digest``, or is
    for another machine, Python or newer glibc. What was unpacked before is then unchanged.
    """
    with files.writing("what the archive holds", place()), locked(OWNER):
        fresh = place().with_name(f".{OWNER}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            document = _read(source, digest, fresh)
            with files.replaced(place(), fresh):
                pass
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return document


def sums(text: str) -> dict[str, str]:
    """The content of a file ``SHA256SUMS``: name -> SHA-256."""
    return {name: digest for digest, _, name in (line.partition("  ") for line in text.splitlines())}


def pip_options(lock: Path) -> list[str]:
    """Options that make pip take the packages of ``lock`` from the unpacked archive; none where there is no archive.

    Raises :class:`PlumbError` where there is one that was packed without this lock or with another state of it.
    """
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


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without owner and time, so that equal members make equal archives."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    member.mode = _mode(member)
    return member


def _mode(member: tarfile.TarInfo) -> int:
    return 0o755 if member.mode & 0o100 else 0o644


def _read(source: Path, digest: str | None, target: Path | None) -> dict[str, Any]:
    """The index of the archive, every member of which was checked and, with ``target``, written below it.

    What an archive unpacks to is no more than its own size: it is not compressed, and no member has holes.
    """
    if digest is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", digest):
        raise PlumbError(f"'{digest}' is no SHA-256", "--sha256", "give its 64 hexadecimal digits, or leave it out")
    try:
        whole = files.sha256(source)
    except OSError as error:
        what, cure = f"cannot read the archive: {error.strerror}", "plumb stack pack makes one"
        raise PlumbError(what, str(source), cure) from None
    if digest is not None and whole != digest.lower():
        cure = "fetch it again; do not use this one"
        raise PlumbError(f"the archive's SHA-256 is {whole}, not {digest}", str(source), cure)
    found: dict[str, str] = {}
    texts: dict[str, str] = {}
    try:
        with tarfile.open(source, "r:") as tar:
            for member in tar:
                found[member.name] = _member(tar, member, source, target)
                if member.name in (SUMS, INDEX) and (content := tar.extractfile(member)):
                    texts[member.name] = content.read(MOST_TEXT).decode(errors="replace")
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise PlumbError(f"the archive is damaged: {error}", str(source), "copy it again") from None
    if SUMS not in texts:
        raise PlumbError(f"no {SUMS} in the archive", str(source), "plumb stack pack makes a complete one")
    listed = sums(texts[SUMS])
    for name in sorted((listed.keys() | found.keys()) - {SUMS}):
        if name not in found or listed.get(name) != found[name]:
            what = f"the archive was tampered with: {name} is not what the list says"
            raise PlumbError(what, str(source), "do not use it")
    document = _parse(texts.get(INDEX, ""), source)
    _check_machine(document, source)
    return document


def _member(tar: tarfile.TarFile, member: tarfile.TarInfo, source: Path, target: Path | None) -> str:
    """SHA-256 of a regular file whose name stays inside the target folder; with ``target`` it is written there."""
    name = Path(member.name)
    content = tar.extractfile(member) if member.isreg() and not member.issparse() else None
    if content is None or name.is_absolute() or ".." in name.parts:
        raise PlumbError(f"the archive was tampered with: member '{name}'", str(source), "do not use it")
    if target is None:
        return files.sha256_of(content)
    file = target / name
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as stream:
        shutil.copyfileobj(content, stream)
    file.chmod(_mode(member))
    return files.sha256(file)


def _parse(text: str, source: Path) -> dict[str, Any]:
    try:
        document = json.loads(text)
        found = document["schema"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise PlumbError(f"no {INDEX} in the archive", str(source), "plumb stack pack makes a complete one") from None
    if found != SCHEMA:
        raise PlumbError(f"the archive has schema {found}, not {SCHEMA}", str(source), "pack it with this Plumbline")
    wrong = next((key for key, types in KEYS.items() if not isinstance(document.get(key, ...), types)), None)
    if wrong is not None:
        what = f"{INDEX}: '{wrong}' is missing or of no use"
        raise PlumbError(what, str(source), "plumb stack pack makes a complete one")
    return dict(document)


def _check_machine(document: dict[str, Any], source: Path) -> None:
    here = machine()
    for key in ("machine", "python"):
        if document[key] != here[key]:
            raise PlumbError(
                f"the archive is for {document['python']} on {document['machine']}, this is {here['python']} on"
                f" {here['machine']}",
                str(source),
                "pack it on such a machine with that Python, or use that Python here: PYTHON=python3.X",
            )
    needed, found = document["glibc"], here["glibc"]
    if needed and (found is None or version(found) < version(needed)):
        raise PlumbError(
            f"the archive needs glibc {needed}, here is {found or 'another C library'}",
            str(source),
            "pack it on a machine with the older one",
        )


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
