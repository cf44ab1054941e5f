"""One archive with all that a machine without network needs to install stacks (:mod:`plumbline.stacks.archive`)."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from plumbline import stacks
from plumbline.base import files, git, paths, sealed
from plumbline.base.errors import PlumbError, require
from plumbline.stacks import archive, fetch, manifest, osu

#: the providers whose stacks are made of packages that can be packed
PACKED = ("wheel", "spack")
#: glibc that the older names of wheel platforms stand for.
_MANYLINUX = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}


def installed() -> list[tuple[str, str]]:
    """Provider and name of every installed stack that can be packed; a site's modules and images cannot."""
    return [
        (kind, name)
        for kind in PACKED
        if kind in stacks.PROVIDERS
        for name in stacks.provider(kind).names()
        if manifest.path(stacks.label(kind, name)).exists()
    ]


def pack(wanted: list[tuple[str, str]], target: Path) -> str:
    """Write the archive of the stacks ``wanted`` (provider and name) to ``target``; returns its SHA-256.

    It always has the packages of ``requirements.txt``, for the virtual environment. Raises :class:`PlumbError` for an
    unknown stack and for what cannot be fetched or written; ``target`` is then unchanged.
    """
    for kind, name in wanted:
        if kind not in PACKED:
            cure = "modules are on the site already; copy an image and its .yaml, or the clone of a library"
            raise PlumbError(f"'{kind}:{name}' cannot be packed", "plumb stack pack", cure)
        require(name, stacks.provider(kind).names(), f"no {kind} stack is called '{name}'", "plumb stack pack")
    names = {kind: [name for provider, name in wanted if provider == kind] for kind in PACKED}
    with files.writing("the archive", target):
        paths.stacks().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="plumb-pack-", dir=paths.stacks()) as scratch:
            folder = Path(scratch) / "content"
            (folder / archive.WHEELS).mkdir(parents=True)
            locks: dict[Path, list[str]] = {paths.suite() / "requirements.txt": []}
            for kind, members in names.items():
                locks |= stacks.provider(kind).pack_locks(members) if members else {}
            needed = _wheels(locks, Path(scratch), folder / archive.WHEELS)
            if names["wheel"] and osu.kept().exists():
                shutil.copy(osu.kept(), folder / archive.WHEELS)
                needed[f"{archive.WHEELS}/{osu.ARCHIVE}"] = names["wheel"]
            if names["spack"]:
                stacks.provider("spack").fill(names["spack"], folder / archive.SPACK)
                content = (file for file in (folder / archive.SPACK).rglob("*") if file.is_file())
                specs = [f"spack:{name}" for name in names["spack"]]
                needed |= {str(file.relative_to(folder)): specs for file in content}
            specs = [name if kind == stacks.DEFAULT_PROVIDER else f"{kind}:{name}" for kind, name in wanted]
            document = {
                "schema": archive.SCHEMA,
                "commit": git.commit(),
                **archive.machine(),
                "glibc": oldest_glibc(list(needed)),
                "stacks": specs,
                "locks": {_name(lock): files.sha256(lock) for lock in locks},
                "files": [
                    {
                        "name": name,
                        "sha256": files.sha256(folder / name),
                        "bytes": (folder / name).stat().st_size,
                        "for": needed[name],
                    }
                    for name in sorted(needed)
                ],
            }
            (folder / archive.INDEX).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
            return sealed.write(folder, target)


def _wheels(locks: Mapping[Path, list[str]], scratch: Path, target: Path) -> dict[str, list[str]]:
    """Fetch the packages of ``locks`` into ``target``: member of the archive -> the locks that name it."""
    needed: dict[str, list[str]] = {}
    for number, (lock, options) in enumerate(locks.items()):
        print(f"{archive.OWNER}: packages of {_name(lock)}", flush=True)
        stem, binary = str(lock.with_suffix("")), lock.stem != "sources"
        fetched = fetch.download(stem, scratch / str(number), archive.OWNER, binary=binary, options=options)
        for file in fetched.values():
            file.replace(target / file.name)
            needed.setdefault(f"{archive.WHEELS}/{file.name}", []).append(_name(lock))
    return needed


def _name(lock: Path) -> str:
    """The path of a lock in the checkout, because two are called ``requirements.txt``."""
    return os.path.relpath(lock, paths.suite())


def oldest_glibc(names: list[str]) -> str | None:
    """The oldest glibc that all wheels of these names run on, by their platform tags; None if no wheel needs one."""
    needed = []
    for name in names:
        tags = [f"{match[1]}.{match[2]}" for match in re.finditer(r"manylinux_(\d+)_(\d+)_", name)]
        tags += [value for tag, value in _MANYLINUX.items() if f"{tag}_" in name]
        needed += sorted(tags, key=archive.version)[:1]  # a wheel with several tags runs on the oldest of them
    return max(needed, key=archive.version, default=None)
