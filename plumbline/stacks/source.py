"""Provider ``source``: MPI libraries built from any commit of a repository, as ``site-configs/SITE/sources.yaml`` says.

``source:ompi@v5.0.7`` becomes the stack ``ompi@0123456789ab``, named by the commit, with our kernels and the benchmarks
that the build makes. A gate compares two of them, and ``plumb bisect`` finds the commit that made the library slower.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from plumbline import mpi
from plumbline.base import git, paths, schemas, surroundings
from plumbline.base.errors import PlumbError, pick
from plumbline.stacks import Work, fetch, kernels, libraries, manifest, module, stream
from plumbline.stacks.manifest import Compiler, Launcher, Manifest, Mpi, Source

FILE = "sources.yaml"
PROVIDER = "source"
#: how a library is named, before ``@COMMIT``
PREFIX = f"{PROVIDER}:"
#: digits of a commit in the name of its stack
DIGITS = 12


class Description(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an MPI library is built from its ``repository``, a folder with a clone.

    ``build`` are lines for bash, run in a clean checkout of the commit with its submodules; they install the library
    below ``$PREFIX``, with ``$JOBS`` processes. In ``environment``, the variables of launches, ``${PREFIX}`` is that
    folder. ``benchmarks`` are programs that the build installs, named by their paths below it.
    """

    repository: Annotated[str, Meta(min_length=1)]
    mpi: manifest.Version
    build: Annotated[list[str], Meta(min_length=1)]
    environment: dict[manifest.Variable, str] = {}
    benchmarks: dict[manifest.BenchmarkId, module.Program] = {}


class Descriptions(Struct, frozen=True, forbid_unknown_fields=True):
    """site-configs/SITE/sources.yaml: MPI libraries that are built from commits (provider ``source``)."""

    sources: Annotated[
        dict[Annotated[str, schemas.whole("[A-Za-z0-9][A-Za-z0-9_.-]*")], Description], Meta(min_length=1)
    ]


class Wanted(NamedTuple):
    """A ``commit`` of the library ``name``, which is ``described`` in ``file``, of the repository in ``folder``."""

    name: str
    commit: str
    described: Description
    file: Path
    folder: Path

    @property
    def called(self) -> str:
        """The name of its stack."""
        return f"{self.name}@{self.commit[:DIGITS]}"

    @property
    def mark(self) -> str:
        """SHA-256 that changes when the commit, its description or its place changes."""
        made_from = [self.commit, msgspec.to_builtins(self.described), str(paths.stacks() / self.called)]
        return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()


def names() -> tuple[str, ...]:
    """The commits that are installed: each commit of a library could be."""
    return tuple(name for name in manifest.names() if _provider(name) == PROVIDER)


def _provider(name: str) -> str | None:
    try:
        return manifest.load(name).provider
    except PlumbError:  # it is damaged
        return None


def stack(name: str) -> str:
    """The name of the stack of ``LIBRARY@COMMIT``."""
    return name if _provider(name) == PROVIDER else _wanted(name).called


def library(spec: str) -> str | None:
    """The library that ``source:NAME`` names; None for a stack of another provider."""
    return spec.removeprefix(PREFIX) if spec.startswith(PREFIX) else None


def repository(name: str) -> Path:
    """The folder with the repository of the library ``name``; raises :class:`PlumbError` without one."""
    return _described(name)[2]


def work(name: str, force: bool) -> Work | None:
    """How the stack of ``LIBRARY@COMMIT`` is made, or its kernels alone; None if it is complete."""
    wanted = _wanted(name)
    called = wanted.called
    changed = "its description or its place changed"
    reason = "asked for" if force else manifest.stale(called, wanted.mark, changed, leave_out="kernels")
    return Work(reason, lambda _: _make(wanted)) if reason else kernels.work(called)


def _described(name: str) -> tuple[Path, Description, Path]:
    """The file that describes the library ``name``, the description, and the folder with its repository."""
    label, cure = "the sources of MPI libraries", "restore the file"
    known = module.of_sites(
        FILE, "library", lambda file: schemas.load("sources", file, Descriptions, label, cure).sources
    )
    otherwise = f"describe it in a site's {FILE}; known: {', '.join(sorted(known)) or 'none'}"
    file, described = pick(known, name, f"no MPI library is called '{name}'", f"{PREFIX}{name}", otherwise)
    folder = Path(described.repository).expanduser()
    if not folder.is_absolute() or not folder.is_dir() or git.top(folder) is None:
        message = f"'{described.repository}' is not the absolute path of a git repository"
        raise PlumbError(message, f"{file}, {name}: repository", "git clone it, and write where it is")
    return file, described, folder


def _wanted(spec: str) -> Wanted:
    name, at, commit = spec.partition("@")
    file, described, folder = _described(name)
    if not at:
        raise PlumbError(f"'{PREFIX}{name}' does not name a commit", str(folder), f"{PREFIX}{name}@HEAD, or another")
    if (full_commit := git.commit(commit, folder)) is None:
        raise PlumbError(f"'{commit}' is not a commit", str(folder), "git log has them, git fetch brings newer ones")
    return Wanted(name, full_commit, described, file, folder)


def _make(wanted: Wanted) -> None:
    """Build and install the library in its place; nothing is left of one that cannot be made.

    It stays where the kernels do not compile: then they alone are built by the next installation.
    """
    home = paths.stacks() / wanted.called
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    try:
        _build(wanted, home)
        new_stack = _manifest(wanted, home)
        manifest.complete(new_stack, wanted.mark)
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    kernels.refresh(new_stack.name)


def _build(wanted: Wanted, home: Path) -> None:
    around = {**surroundings.of_user(), "PREFIX": str(home), "JOBS": str(os.cpu_count())}
    folder = paths.build() / "sources"
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{wanted.called}.log"
    log.unlink(missing_ok=True)
    where = f"{wanted.file}, {wanted.name}: build"
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        source = Path(scratch) / "source"
        git.check_out(wanted.folder, wanted.commit, source)
        for line in wanted.described.build:
            fetch.run_line(line, source, around, f"the build of {wanted.called} fails", where, log)


def _manifest(wanted: Wanted, home: Path) -> Manifest:
    described, where = wanted.described, f"{wanted.file}, {wanted.name}"
    family = mpi.TABLE[described.mpi.family]
    compiler = stream.Compiler.find()
    launcher = next((file for text in family.launcher_programs for file in sorted(home.glob(text))), None)
    library = next((file for name in ("lib", "lib64") if (file := home / name / family.libraries[0]).is_file()), None)
    if launcher is None or library is None:
        lacks = family.launcher_programs[0] if launcher is None else f"lib/{family.libraries[0]}"
        raise PlumbError(f"the build installed no {lacks} below $PREFIX", where, "correct build")
    ours = {name: value.replace("${PREFIX}", str(home)) for name, value in described.environment.items()}
    search = ":".join(filter(None, [str(library.parent), ours.pop("LD_LIBRARY_PATH", "")]))
    entries = {}
    for ident, benchmark in sorted(described.benchmarks.items()):
        if not (home / benchmark.program).is_file():
            raise PlumbError(f"the build installed no {benchmark.program} below $PREFIX", where)
        entries[ident] = benchmark.entry(home / benchmark.program, "by the build")
    version = git.run("describe", "--tags", "--always", wanted.commit, at=wanted.folder)
    new_stack = Manifest(
        schema=1,
        name=wanted.called,
        provider=PROVIDER,
        mpi=Mpi(family=family.name, version=described.mpi.version, abi=family.abi),
        compiler=Compiler(name="gcc", version=compiler.version, path=compiler.path),
        launcher=Launcher(family=family.launcher_kind(described.mpi.version), command=str(launcher)),
        prefix=str(home),
        environment={**ours, "LD_LIBRARY_PATH": search},
        modules=[],
        benchmarks=entries,
        sources=[Source(name=wanted.name, version=version, hash=f"git:{wanted.commit}")],
    )
    return replace(new_stack, loads=libraries.loads(new_stack, library))
