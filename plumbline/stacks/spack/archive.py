"""The part ``spack/`` of the archive for a machine without network (:mod:`plumbline.stacks.archive`).

Inside: ``git/*.git`` (Spack and its packages, one commit each), ``mirror/`` (sources of every package in the lock),
``buildcache/`` (what is installed here) and ``index/`` (Spack's index of its packages, which takes a minute to make).
The solver's packages are among the archive's ``wheels/``.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from plumbline.errors import PlumbError
from plumbline.stacks import fetch
from plumbline.stacks.spack import bootstrap, buildcache, environment, settings
from plumbline.stacks.spack.bootstrap import INDEX, OWNER, Base, prepare
from plumbline.stacks.spack.runner import Spack


def fill(names: list[str], folder: Path) -> None:
    """Put into ``folder`` what installs the environments ``names`` without network."""
    base = prepare()
    _repositories(base, folder / "git")
    for name in names:
        _environment(base, name, folder)
    _index(Spack(base, environment.workplace(names[0]), f"spack-{names[0]}"), folder / INDEX)


def _repositories(base: Base, folder: Path) -> None:
    """Bare repositories with the pinned commit under its tag, and nothing else."""
    for part, checkout in (("spack", base.spack), ("packages", base.packages)):
        print(f"{OWNER}: {part}", flush=True)
        pinned = settings.versions()[part]
        bare = folder / f"{part}.git"
        fetch.call(["git", "init", "--quiet", "--bare", str(bare)], f"cannot make {bare}", OWNER)
        source = [f"file://{checkout}", f"HEAD:refs/tags/{pinned['tag']}"]
        command = ["git", "-C", str(bare), "fetch", "--quiet", "--no-tags", "--depth", "1", *source]
        fetch.call(command, f"cannot copy {checkout}", OWNER)
        shutil.rmtree(bare / "hooks", ignore_errors=True)


def _environment(base: Base, name: str, folder: Path) -> None:
    """Sources of everything in the lock; binaries of everything but the kernels, whose sources are in the checkout."""
    spack = Spack(base, environment.workplace(name), f"spack-{name}")
    document = environment.read(name)
    print(f"spack-{name}: sources", flush=True)
    said = spack.run("mirror", "create", "--all", "--directory", str(folder / "mirror"))
    failed = re.search(r"(\d+)\s+failed to fetch", said)
    if failed is None or failed[1] != "0":
        count = failed[1] if failed else "an unknown number of"
        raise PlumbError(f"{count} sources could not be fetched", f"stack {spack.owner}", f"see {spack.log}")
    print(f"spack-{name}: binaries", flush=True)
    buildcache.push(spack, document, folder / "buildcache", "--unsigned")


def _index(spack: Spack, folder: Path) -> None:
    """Copy Spack's index of the pinned packages; ``spack providers`` brings it up to date first."""
    spack.run("providers", "mpi")
    for file in bootstrap.index_files(bootstrap.cache()):
        copy = folder / file.relative_to(bootstrap.cache())
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
