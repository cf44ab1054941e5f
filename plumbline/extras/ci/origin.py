"""The source from which pip installs Plumbline in a job: a file with its SHA-256, never a name of a registry.

The name ``plumbline`` is somebody else's in the Python registry, and ours was not taken there.
"""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import msgspec

import plumbline
from plumbline.base import files, paths
from plumbline.base.errors import PlumbError

#: the name of our wheels
DISTRIBUTION = "plumbline-hpc"
#: addresses whose content cannot become another one: with a SHA-256, or of a commit
_FIXED = re.compile(r"((https?|file)://\S+#(\S+&)?sha256=[0-9a-f]{64}|git\+https://\S+@[0-9a-f]{40}(#\S*)?)")
_WHERE = "plumb ci --install"
_CURE = "name a wheel (make wheel), or an address with #sha256=… at its end"


class _Archive(msgspec.Struct):
    hashes: dict[str, str] = {}


class _Direct(msgspec.Struct):
    """The facts that pip keeps of a distribution that was not installed by name (PEP 610)."""

    url: str
    archive_info: _Archive = msgspec.field(default_factory=_Archive)


def fixed(named: str | None) -> str:
    """The address, with its hash, of the wheel or address ``named``; None: of what this Plumbline was installed from.

    In a checkout that is the wheel of this version that ``make wheel`` has made. Raises :class:`PlumbError` for what
    could become something else, and where there is nothing.
    """
    if named is None:
        return _present_wheel()
    if _FIXED.fullmatch(named):
        return named
    if "://" in named:
        raise PlumbError(f"{named} could become another file", _WHERE, "add #sha256=… with its SHA-256")
    if not Path(named).is_file():
        raise PlumbError(f"{named} is not a file here, and what has that name elsewhere may not be ours", _WHERE, _CURE)
    return _hashed(Path(named).resolve())


def _hashed(file: Path) -> str:
    return f"{file.as_uri()}#sha256={files.sha256(file)}"


def _present_wheel() -> str:
    if paths.is_installed():
        try:
            text = metadata.distribution(DISTRIBUTION).read_text("direct_url.json") or "{}"
            direct = msgspec.json.decode(text, type=_Direct)
        except (metadata.PackageNotFoundError, msgspec.MsgspecError):
            direct = _Direct("")
        known, file = direct.archive_info.hashes.get("sha256"), Path(url2pathname(urlsplit(direct.url).path))
        if direct.url.startswith("file:") and file.is_file() and known in (None, files.sha256(file)):
            return _hashed(file)
        if direct.url.startswith("https:") and known:
            return f"{direct.url}#sha256={known}"
        raise PlumbError("it is not known what this Plumbline was installed from", _WHERE, _CURE)
    wheels = sorted(paths.build().glob(f"dist/{DISTRIBUTION.replace('-', '_')}-{plumbline.__version__}-*.whl"))
    if not wheels:
        raise PlumbError("there is no wheel of this checkout", str(paths.build() / "dist"), "make wheel, or --install")
    return _hashed(wheels[-1].resolve())
