"""One archive with all that a machine without network needs, and its unpacking there.

Inside: ``SHA256SUMS`` over every other member, ``git/*.git`` (Spack and its packages, one commit each), ``wheels/``
(the solver), ``mirror/`` (sources of every package in the lock) and ``buildcache/`` (what is installed here). A list
inside the archive shows damage; against a changed archive with a changed list the archive's own SHA-256 is given to
``--sha256``.
"""

from __future__ import annotations

import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from plumbline import files
from plumbline.errors import PlumbError
from plumbline.stacks import fetch, manifest
from plumbline.stacks.lock import alone
from plumbline.stacks.spack import environment, programs, settings
from plumbline.stacks.spack.bootstrap import AIRGAP, OWNER, Base, prepare
from plumbline.stacks.spack.disk import writing
from plumbline.stacks.spack.runner import Spack

SUMS = "SHA256SUMS"


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
        sums = "".join(f"{manifest.sha256(file)}  {file.relative_to(folder)}\n" for file in _files(folder))
        (folder / SUMS).write_text(sums, encoding="utf-8")
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            with tarfile.open(temporary, "w", dereference=True) as tar:
                for file in [folder / SUMS, *(entry for entry in _files(folder) if entry.name != SUMS)]:
                    tar.add(file, str(file.relative_to(folder)), recursive=False, filter=_plain)
            files.sync(temporary)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    return manifest.sha256(target)


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


def _files(folder: Path) -> Iterator[Path]:
    return (entry for entry in sorted(folder.rglob("*")) if entry.is_file())


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The same archive whoever packs it, as far as its members are the same."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    member.mode = 0o755 if member.mode & 0o100 else 0o644
    return member


def unpack(source: Path, digest: str | None = None) -> None:
    """Check the archive and put it in place below ``stacks/spack``; from then on Spack takes everything from it."""
    with writing("what the archive holds"), alone(OWNER):
        place = settings.home() / AIRGAP
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh = place.with_name(f".{AIRGAP}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            _verify_whole(source, digest)
            _extract(source, fresh)
            _verify(source, fresh)
            (fresh / "complete").write_text(f"{source.name}\n", encoding="utf-8")
            shutil.rmtree(place, ignore_errors=True)
            fresh.rename(place)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    print(f"{OWNER}: {source.name} is whole and unpacked", flush=True)


def _verify_whole(source: Path, digest: str | None) -> None:
    try:
        found = manifest.sha256(source)
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


def _verify(source: Path, folder: Path) -> None:
    """Every file is in the list with its SHA-256, and every line of the list has its file."""
    sums = folder / SUMS
    if not sums.is_file():
        raise PlumbError(f"no {SUMS} in the archive", str(source), "plumb stack pack makes a complete one")
    wanted = {}
    for line in sums.read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition("  ")
        wanted[name] = digest
    found = {str(file.relative_to(folder)): file for file in _files(folder) if file != sums}
    for name in sorted(wanted.keys() | found.keys()):
        if name not in found or name not in wanted or manifest.sha256(found[name]) != wanted[name]:
            raise PlumbError(
                f"the archive was tampered with: {name} is not what the list says", str(source), "do not use it"
            )
