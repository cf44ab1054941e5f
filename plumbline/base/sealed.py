"""A sealed archive: one tar file with a list of the SHA-256 of every member, ``SHA256SUMS``.

The list inside detects damage; a change of both a file and the list is detected by the archive's own SHA-256 only.

Standard library only: :mod:`plumbline.stacks.archive` is run before there is a virtual environment.
"""

from __future__ import annotations

import re
import shutil
import tarfile
from collections.abc import Collection
from pathlib import Path

from plumbline.base import files
from plumbline.base.errors import PlumbError

SUMS = "SHA256SUMS"
#: most bytes of a member that is read as a whole
MOST_TEXT = 64 << 20


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


def sums(text: str) -> dict[str, str]:
    """The content of a file ``SHA256SUMS``: name -> SHA-256."""
    return {name: digest for digest, _, name in (line.partition("  ") for line in text.splitlines())}


def read(
    source: Path, cure: str, digest: str | None = None, target: Path | None = None, wanted: Collection[str] = ()
) -> dict[str, str]:
    """The list, and the members ``wanted``, as texts, after every member was checked.

    With ``target`` the members are written below it. What an archive unpacks to is no more than its own size: it is not
    compressed, and no member has holes. ``cure``: how to make one. Raises :class:`PlumbError` for an archive
    that is damaged, was changed, or does not have the SHA-256 ``digest``.
    """
    if digest is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", digest):
        raise PlumbError(f"'{digest}' is not a SHA-256", "--sha256", "give its 64 hexadecimal digits, or leave it out")
    try:
        whole = files.sha256(source)
    except OSError as error:
        raise PlumbError(f"cannot read the archive: {error.strerror}", str(source), cure) from None
    if digest is not None and whole != digest.lower():
        raise PlumbError(
            f"the archive's SHA-256 is {whole}, not {digest}", str(source), "fetch it again; do not use this one"
        )
    digests: dict[str, str] = {}
    texts: dict[str, str] = {}
    try:
        with tarfile.open(source, "r:") as tar:
            for member in tar:
                digests[member.name] = _member(tar, member, source, target)
                if member.name in (SUMS, *wanted) and (content := tar.extractfile(member)):
                    texts[member.name] = content.read(MOST_TEXT).decode(errors="replace")
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise PlumbError(f"the archive is damaged: {error}", str(source), "copy it again") from None
    if SUMS not in texts:
        raise PlumbError(f"no {SUMS} in the archive", str(source), cure)
    listed = sums(texts[SUMS])
    for name in sorted((listed.keys() | digests.keys()) - {SUMS}):
        if name not in digests or listed.get(name) != digests[name]:
            message = f"the archive was tampered with: {name} is not what the list says"
            raise PlumbError(message, str(source), "do not use it")
    return texts


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without owner and time, so that equal members make equal archives."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = _mode(member)
    return member


def _mode(member: tarfile.TarInfo) -> int:
    return 0o755 if member.mode & 0o100 else 0o644


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
