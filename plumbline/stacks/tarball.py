"""Tar archives with a list ``SHA256SUMS`` of all their members: written in one step, unpacked only when they are whole.

The list inside an archive shows damage; against a changed archive with a changed list there is the SHA-256 of the
archive itself. Standard library only: :mod:`plumbline.stacks.archive` is run before there is a virtual environment.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

from plumbline import files
from plumbline.errors import PlumbError

SUMS = "SHA256SUMS"


def write(folder: Path, target: Path) -> str:
    """Make the archive ``target`` of all files in ``folder``, where the list is written too; the archive's SHA-256."""
    sums = "".join(f"{files.sha256(file)}  {file.relative_to(folder)}\n" for file in _files(folder))
    listing = folder / SUMS
    listing.write_text(sums, encoding="utf-8")
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with tarfile.open(temporary, "w", dereference=True) as tar:
            for file in [listing, *(entry for entry in _files(folder) if entry != listing)]:
                tar.add(file, str(file.relative_to(folder)), recursive=False, filter=_plain)
        files.sync(temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return files.sha256(target)


def unpack(source: Path, folder: Path, digest: str | None = None) -> None:
    """Unpack ``source`` into the new ``folder`` and check every file; with ``digest`` the archive as a whole first.

    Raises :class:`PlumbError` for an archive that cannot be read, is cut off or was changed; what is in ``folder`` is
    then not to be used.
    """
    _check_whole(source, digest)
    _extract(source, folder)
    _check_files(source, folder)


def _files(folder: Path) -> Iterator[Path]:
    return (entry for entry in sorted(folder.rglob("*")) if entry.is_file())


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The same archive whoever packs it, as far as its members are the same."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    member.mode = 0o755 if member.mode & 0o100 else 0o644
    return member


def _check_whole(source: Path, digest: str | None) -> None:
    try:
        found = files.sha256(source)
    except OSError as error:
        raise PlumbError(
            f"cannot read the archive: {error.strerror}", str(source), "plumb stack pack makes one"
        ) from None
    if digest and found != digest.lower():
        raise PlumbError(
            f"the archive's SHA-256 is {found}, not {digest}", str(source), "fetch it again; do not use this one"
        )


def _extract(source: Path, target: Path) -> None:
    """Regular files with harmless names only."""
    try:
        with tarfile.open(source) as tar:
            for member in tar:
                name = Path(member.name)
                if not member.isreg() or name.is_absolute() or ".." in name.parts:
                    raise PlumbError(
                        f"the archive was tampered with: member '{member.name}'", str(source), "do not use it"
                    )
                content = tar.extractfile(member)
                file = target / name
                file.parent.mkdir(parents=True, exist_ok=True)
                with file.open("wb") as stream:
                    shutil.copyfileobj(content, stream)  # type: ignore[arg-type]  # a regular file has content
                file.chmod(0o755 if member.mode & 0o100 else 0o644)
    except (tarfile.TarError, EOFError) as error:
        raise PlumbError(f"the archive is damaged: {error}", str(source), "copy it again") from None


def _check_files(source: Path, folder: Path) -> None:
    """Every file is in the list with its SHA-256, and every line of the list has its file."""
    sums = folder / SUMS
    if not sums.is_file():
        raise PlumbError(f"no {SUMS} in the archive", str(source), "plumb stack pack makes a complete one")
    wanted = {}
    for line in sums.read_text(encoding="utf-8", errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        wanted[name] = digest
    found = {str(file.relative_to(folder)): file for file in _files(folder) if file != sums}
    for name in sorted(wanted.keys() | found.keys()):
        if name not in found or name not in wanted or files.sha256(found[name]) != wanted[name]:
            raise PlumbError(
                f"the archive was tampered with: {name} is not what the list says", str(source), "do not use it"
            )
