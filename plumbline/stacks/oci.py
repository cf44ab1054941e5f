"""OCI archives: https://github.com/opencontainers/image-spec, unpacked to a folder that every engine runs."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import IO, Any

from plumbline.base import files
from plumbline.base.errors import PlumbError
from plumbline.schemas import parse_json

CURE = "make it again, such as podman save --format oci-archive"
#: what marks a file, or all that a folder had, as removed by a later layer
REMOVED, EMPTIED = ".wh.", ".wh..wh..opq"


def unpack(archive: Path, target: Path) -> None:
    """Unpack the one image of ``archive`` to the new folder ``target``: all but device files, which engines make.

    Each part must have its recorded SHA-256, and nothing is written outside. Raises :class:`PlumbError`.
    """
    target.mkdir(parents=True)
    try:
        with tarfile.open(archive) as tar:
            index = _document(tar, "index.json", archive)
            (described,) = index["manifests"]
            for layer in _document(tar, _blob(described["digest"]), archive)["layers"]:
                content = _member(tar, _blob(layer["digest"]), archive)
                with tarfile.open(fileobj=content) as files:
                    _apply(files, target, archive)
    except (KeyError, TypeError, ValueError, tarfile.TarError, EOFError) as error:
        what = f"not an OCI archive with one image, in layers of tar or tar+gzip: {error}"
        raise PlumbError(what, str(archive), CURE) from None


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
    return parse_json(_member(tar, name, archive).read())


def _apply(layer: tarfile.TarFile, target: Path, archive: Path) -> None:
    root = target.resolve()
    for member in layer:
        if member.name.strip("./") == "" or member.isdev():
            continue
        place = root / member.name
        to = [member.name, member.linkname] if member.islnk() else [member.name]
        if any(".." in Path(name).parts or not (root / name).parent.resolve().is_relative_to(root) for name in to):
            raise PlumbError(f"the image would write outside its folder: {to[-1]}", str(archive), "do not use it")
        if place.name == EMPTIED:
            shutil.rmtree(place.parent, ignore_errors=True)
        elif place.name.startswith(REMOVED):
            _remove(place.with_name(place.name.removeprefix(REMOVED)))
        else:
            if not (member.isdir() and place.is_dir() and not place.is_symlink()):
                _remove(place)
            layer.extract(member, root)


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
