"""The Spack part of the archive for a machine without network (:mod:`plumbline.stacks.pack`), and its unpacking there.

Inside: ``SHA256SUMS`` over every other member, ``git/*.git`` (Spack and its packages, one commit each), ``wheels/``
(the solver), ``mirror/`` (sources of every package in the lock), ``buildcache/`` (what is installed here) and
``index/`` (Spack's index of its packages, which takes a minute to make). A list inside the archive shows damage;
against a changed archive with a changed list the archive's own SHA-256 is given to ``--sha256``.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from plumbline.errors import PlumbError
from plumbline.stacks import fetch, tarball
from plumbline.stacks.disk import writing
from plumbline.stacks.lock import alone
from plumbline.stacks.spack import bootstrap, environment, programs, settings
from plumbline.stacks.spack.bootstrap import AIRGAP, INDEX, OWNER, Base, prepare
from plumbline.stacks.spack.runner import Spack


def pack(names: list[str], target: Path) -> str:
    """Write the archive of the environments ``names`` to ``target``; its SHA-256."""
    with writing("the archive"):
        return _pack(names, target)


def _pack(names: list[str], target: Path) -> str:
    base = prepare()
    with tempfile.TemporaryDirectory(prefix="plumb-pack-", dir=settings.home()) as scratch:
        folder = Path(scratch)
        _repositories(base, folder / "git")
        print(f"{OWNER}: wheels of the solver", flush=True)
        wheels = ["download", "--only-binary", ":all:", "--dest", str(folder / "wheels")]
        given = os.environ.get("PLUMB_SPACK_WHEELS")
        source = ["--no-index", "--find-links", given] if given else []
        fetch.pip([*wheels, *source], str(settings.requirements().with_suffix("")), OWNER)
        for name in names:
            _environment(base, name, folder)
        _index(Spack(base, environment.workplace(names[0]), f"spack-{names[0]}"), folder / INDEX)
        return tarball.write(folder, target)


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
    hashes = [
        f"/{digest}"
        for digest, node in document["concrete_specs"].items()
        if "external" not in node and node["name"] != programs.KERNELS
    ]
    spack.run("buildcache", "push", "--unsigned", "--only", "package", str(folder / "buildcache"), *hashes)
    spack.run("buildcache", "update-index", str(folder / "buildcache"))


def _index(spack: Spack, folder: Path) -> None:
    """Spack's index of the pinned packages; a question about them brings it up to date first."""
    spack.run("providers", "mpi")
    for file in bootstrap.index_files(bootstrap.cache()):
        copy = folder / file.relative_to(bootstrap.cache())
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)


def unpack(source: Path, digest: str | None = None) -> None:
    """Check the archive and put it in place below ``stacks/spack``; from then on Spack takes everything from it."""
    with writing("what the archive holds"), alone(OWNER):
        place = settings.home() / AIRGAP
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh = place.with_name(f".{AIRGAP}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            tarball.unpack(source, fresh, digest)
            (fresh / "complete").write_text(f"{source.name}\n", encoding="utf-8")
            shutil.rmtree(place, ignore_errors=True)
            fresh.rename(place)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    print(f"{OWNER}: {source.name} is whole and unpacked", flush=True)
