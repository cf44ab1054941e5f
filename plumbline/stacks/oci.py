"""OCI archives: https://github.com/opencontainers/image-spec, unpacked to a folder that every engine runs."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path
from typing import IO, Any

from plumbline.base import files
from plumbline.base.errors import PlumbError
from plumbline.base.schemas import parse_json

CURE = "make it again, such as podman save --format oci-archive"
#: names that mark a file, or all files of a folder, as removed by a later layer
REMOVED, EMPTIED = ".wh.", ".wh..wh..opq"
#: bytes of a document of an archive, at most
MOST_DOCUMENT = 16 << 20
#: Bytes that an image may have: some, and so many times those of its archive. Images compress to a half or a third
FREE, TIMES = 1 << 30, 20
#: bytes that an entry takes at least
ENTRY = 4096


def unpack(archive: Path, target: Path) -> None:
    """Unpack the one image of ``archive`` to the new folder ``target``: all but device files, which engines make.

    Each part must have its recorded SHA-256, and nothing is written outside. All files belong to the caller,
    nobody else may write to it, and no program of it runs with more rights than its caller's. Raises
    :class:`PlumbError`, also for an image that is much larger than its archive.
    """
    target.mkdir(parents=True)
    room = FREE + TIMES * archive.stat().st_size
    try:
        with tarfile.open(archive) as tar:
            index = _document(tar, "index.json", archive)
            (described,) = index["manifests"]
            for layer in _document(tar, _blob(described["digest"]), archive)["layers"]:
                content = _member(tar, _blob(layer["digest"]), archive)
                with tarfile.open(fileobj=content) as files:
                    room = _apply(files, target, archive, room)
    except (KeyError, TypeError, ValueError, tarfile.TarError, EOFError) as error:
        message = f"not an OCI archive with one image, in layers of tar or tar+gzip: {error}"
        raise PlumbError(message, str(archive), CURE) from None


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _member(tar: tarfile.TarFile, name: str, archive: Path) -> IO[bytes]:
    """A file of the archive; one that is named after its SHA-256 must have it."""
    content = tar.extractfile(name)
    if content is None:
        raise ValueError(f"{name} is not a file")
    if name.startswith("blobs/"):
        if name != f"blobs/sha256/{files.sha256_of(content)}":
            raise PlumbError(f"the archive is damaged: {name} has another SHA-256", str(archive), "copy it again")
        content.seek(0)
    return content


def _document(tar: tarfile.TarFile, name: str, archive: Path) -> Any:
    text = _member(tar, name, archive).read(MOST_DOCUMENT + 1)
    if len(text) > MOST_DOCUMENT:
        raise ValueError(f"{name} is too large")
    return parse_json(text)


def _apply(layer: tarfile.TarFile, target: Path, archive: Path, room: int) -> int:
    """Add a ``layer`` to the image; returns what is left of ``room``, in bytes."""
    root = target.resolve()
    for member in layer:
        room -= max(member.size, ENTRY)
        if room < 0:
            message = f"the image is more than {TIMES} times as large as its archive"
            raise PlumbError(
                message, str(archive), "unpack it yourself and name the folder, if that is as it should be"
            )
        if member.name.strip("./") == "" or member.isdev():
            continue
        place = root / member.name
        to = [member.name, member.linkname] if member.islnk() else [member.name]
        if any(".." in Path(name).parts or not (root / name).parent.resolve().is_relative_to(root) for name in to):
            raise PlumbError(f"the image would write outside its folder: {to[-1]}", str(archive), "do not use it")
        if place.name == EMPTIED:
            shutil.rmtree(place.parent, ignore_errors=True)
        elif place.name.startswith(REMOVED):
            if (removed := place.name.removeprefix(REMOVED)) not in ("", ".", ".."):
                _remove(place.parent / removed)
        else:
            if not (member.isdir() and place.is_dir() and not place.is_symlink()):
                _remove(place)
            member.mode = member.mode & 0o755 | (0o700 if member.isdir() else 0)  # the caller's whole folder
            member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
            layer.extract(member, root)
    return room


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
