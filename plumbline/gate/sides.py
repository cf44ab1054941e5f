"""The two sides of a live gate: a stack, or a commit of this suite whose kernels are built against a stack."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from plumbline.base import files, git, paths
from plumbline.base.errors import PlumbError
from plumbline.stacks import kernels as kernels_of_stack
from plumbline.stacks import manifest as manifests
from plumbline.stacks.manifest import Benchmark, Manifest

#: as :func:`plumbline.stacks.kernels.build`: manifest of the stack, folder of the kernels' sources, prefix
Build = Callable[[Manifest, Path, Path], dict[str, Benchmark]]
#: the suite of the benchmarks that are part of a commit; all others are the stack's
KERNELS = "kernels"


@dataclass(frozen=True)
class Side:
    """``stack`` is the installed stack; for a commit the one that its kernels are to be built against."""

    role: str
    stack: str
    commit: str | None = None

    @property
    def measured(self) -> str:
        """The stack that is measured: of a commit ``STACK@COMMIT``, its first twelve digits."""
        return f"{self.stack}@{self.commit[:12]}" if self.commit else self.stack


def resolve(role: str, given: str, stack: str | None) -> Side:
    """What ``given`` names: an installed stack, or else a commit of this checkout, built against ``stack``.

    Raises :class:`PlumbError` for a name that is neither, and for a commit without an installed ``stack``.
    """
    if given in manifests.names():
        return Side(role, given)
    commit = git.commit(given)
    installed = ", ".join(manifests.names()) or "none"
    where = f"plumb gate --{role}"
    if commit is None:
        raise PlumbError(f"'{given}' is neither an installed stack nor a commit", where, f"installed: {installed}")
    if stack is None:
        cure = f"add --stack NAME, one of {installed}"
        raise PlumbError(f"'{given}' is a commit, and the stack to build it against is missing", where, cure)
    if stack not in manifests.names():
        raise PlumbError(f"stack '{stack}' is not installed", "plumb gate --stack", f"installed: {installed}")
    return Side(role, stack, commit)


def install_side(side: Side, build: Build | None = None) -> Manifest:
    """The manifest of what ``side`` measures; a commit is checked out, built and installed unless that was done before.

    A copy whose stack was reinstalled is built again. Programs built against the standard MPI ABI are left out. Of two
    gates that install the same commit at once, one waits for the other and then finds it installed. Raises
    :class:`PlumbError` for a commit without kernels.
    """
    base = manifests.load(side.stack)
    if side.commit is None:
        return base
    with files.lock(_commits() / f"{side.commit}.lock"):
        return _install_commit(side, side.commit, base, build or kernels_of_stack.build)


def _install_commit(side: Side, commit: str, base: Manifest, build: Build) -> Manifest:
    """The manifest of ``commit`` built against the stack ``base``; the caller holds the lock of the commit."""
    rest = {key: value for key, value in base.benchmarks.items() if value.suite != KERNELS}
    if side.measured in manifests.names():
        made = manifests.load(side.measured)
        kernels = {key: value for key, value in made.benchmarks.items() if value.suite == KERNELS}
        if made == _copy(base, side, rest | kernels) and not manifests.problems(made):
            return made
    source = checkout(commit) / kernels_of_stack.FOLDER
    if not source.is_dir():
        raise PlumbError(f"commit {commit[:12]} has no {source.name}", "its files", "name a commit that has kernels")
    home = paths.stacks() / side.measured
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    kernels = build(base, source, home / "kernels")
    if not kernels:
        raise PlumbError(f"commit {commit[:12]} has no kernels", str(source), "name a commit that has some")
    made = _copy(base, side, rest | kernels)
    manifests.save(made)
    return made


def _copy(base: Manifest, side: Side, benchmarks: dict[str, Benchmark]) -> Manifest:
    return replace(base, name=side.measured, benchmarks=benchmarks)


def _commits() -> Path:
    return paths.build() / "commits"


def checkout(commit: str) -> Path:
    """The files of ``commit`` below ``build/commits``; an unfinished extraction never counts."""
    folder = _commits() / commit
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    archive, fresh = folder.with_suffix(".tar"), folder.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    try:
        git.run("archive", "--output", str(archive), commit)
        with tarfile.open(archive) as files_of_commit:
            # Python 3.11.2 of Debian 12 and others do not know extractall(filter=...), and ignore this
            files_of_commit.extraction_filter = getattr(tarfile, "data_filter", None)
            files_of_commit.extractall(fresh)  # noqa: S202
    finally:
        archive.unlink(missing_ok=True)
    fresh.rename(folder)
    return folder
