"""Provider ``spack``: stacks that Spack builds from locked environments of ``spack-env/``.

``spack:openmpi`` becomes the stack ``spack-openmpi``: its manifest is in ``stacks/spack-openmpi``, the programs in
Spack's store below ``stacks/spack``. A package is taken from a buildcache that has it, and built otherwise.
"""

from __future__ import annotations

import graphlib
import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from plumbline.base import files, paths, terminal, units
from plumbline.base.errors import PlumbError
from plumbline.extras.spack import bootstrap, buildcache, environments, programs, sites
from plumbline.extras.spack.bootstrap import fill as fill
from plumbline.extras.spack.lock import Lock
from plumbline.extras.spack.programs import Package
from plumbline.extras.spack.runner import Spack
from plumbline.stacks import Work, archive, blas, kernels, libraries, manifest, stream
from plumbline.stacks.manifest import Source

CHANGED = "the lock, its variables or its place changed"
#: Increased when the manifest is composed differently: installed stacks are then made again.
RECIPE = 6
_COMPILED = re.compile(r"==> No binary for (\S+)-([a-z0-9]{32}) found")
_INSTALLING = re.compile(r"==> Installing (\S+)-[a-z0-9]{32} \[(\d+)/(\d+)\]")


def names() -> tuple[str, ...]:
    """The environments that become stacks."""
    return tuple(name for name, environment in environments.known().items() if environment.package)


def stack(name: str) -> str:
    """The name of the stack of environment ``name``."""
    return f"spack-{name}"


def work(name: str, force: bool) -> Work | None:
    """How the stack of environment ``name`` is made; None if it is complete and of the present lock."""
    wanted = environments.named(name, "plumb stack install")
    # refused, before an hour of building: a lock whose target, system or compiler does not fit this machine
    document, file = environments.read(name), str(environments.lock(name))
    node = document.concrete_specs[document.roots[0].hash]
    sites.check_target(node, file)
    sites.check_system(node, file)
    sites.check_compilers(document, file)
    if wanted.package:
        archive.pip_options(stream.LOCK)  # refuses an unpacked archive without STREAM's source
    if reason := "asked for" if force else _stale(name):
        return Work(reason, lambda ready: _install(name, *ready), lambda fetch: _checked(name, fetch))
    return kernels.work(stack(name)) if wanted.package else None


def _stale(name: str) -> str | None:
    """Why environment ``name`` must be installed (again); None when it is complete and of the present lock."""
    if name in names():
        reason = manifest.stale(stack(name), fingerprint(name), CHANGED, leave_out="kernels")
        return reason or stream.outgrown(manifest.load(stack(name)))
    if not (environments.view(name) / "bin").is_dir():
        return "not there"
    return None if files.holds(_mark(name), fingerprint(name)) else CHANGED


def _mark(name: str) -> Path:
    """The file with the fingerprint that environment ``name`` was installed with; without it, it is not complete."""
    return paths.stacks() / stack(name) / "lock" if name in names() else environments.view(name).with_suffix(".lock")


def fingerprint(name: str) -> str:
    """SHA-256 that changes when the lock, the variables or the folders of stacks, Spack and site change."""
    settings = sorted(environments.known()[name].env_vars.set.items())
    made_of = f"{RECIPE} {paths.stacks()} {environments.home()} {environments.site()} {settings}"
    locks = environments.lock(name).read_bytes() + stream.LOCK.read_bytes()
    return hashlib.sha256(made_of.encode() + locks).hexdigest()


def _checked(name: str, fetch: bool) -> tuple[Spack, Mapping[str, str], Mapping[str, str]] | None:
    """The Spack of environment ``name``, after a look for an edited lock and for changed binaries.

    With it, what :func:`sites.check_content` returns.

    Without ``fetch``, None on a machine that has no Spack yet: Spack compares a lock with its hashes.
    """
    label = stack(name)
    if not fetch and not bootstrap.is_there():
        print(f"{label}: its lock is compared with its hashes once Spack is there", flush=True)
        return None
    spack = Spack(bootstrap.prepare(), environments.copy(name), label)
    spack.log.unlink(missing_ok=True)
    archives, absent = sites.check_content(spack, name)
    buildcache.check_unpacked()
    return spack, archives, absent


def _install(name: str, spack: Spack, archives: Mapping[str, str], absent: Mapping[str, str]) -> None:
    """Let Spack install environment ``name``; write the manifest of a stack, or say where the programs are."""
    started, mark = time.monotonic(), _mark(name)
    if name not in names():
        mark.unlink(missing_ok=True)
    packages = _built(name, spack, absent)
    if name not in names():
        files.replace(mark, fingerprint(name) + "\n")
        roots = {root.hash for root in environments.read(name).roots}
        installed = ", ".join(f"{each} {item.node.version}" for each, item in packages.items() if item.hash in roots)
        print(f"{spack.owner}: {installed}; programs in {environments.view(name)}/bin", flush=True)
        return
    print(f"{spack.owner}: STREAM", flush=True)
    # not a package of the lock: the size of its arrays would differ between machines that share the lock
    stream_build = stream.add(spack.owner, programs.stream_compiler(packages), bootstrap.wheel_options())
    result = programs.compose(name, spack.owner, packages, archives, stream_build)
    manifest.complete(result, fingerprint(name))
    kernels.refresh(spack.owner)
    mpi, count = result.mpi, len(manifest.load(spack.owner).benchmarks)
    seconds = time.monotonic() - started
    print(f"{spack.owner}: {mpi.family} {mpi.version}; {count} benchmarks ({seconds:.0f} s)", flush=True)


def _built(name: str, spack: Spack, absent: Mapping[str, str]) -> dict[str, Package]:
    """Let Spack install what the lock of environment ``name`` holds; returns the installed packages by name."""
    started, label = time.monotonic(), spack.owner
    shown = {"step": ""}

    def progress(line: str) -> None:
        match = _INSTALLING.search(line)
        if match and match[0] != shown["step"]:
            shown["step"] = match[0]
            print(f"{label}: [{match[2]}/{match[3]}] {match[1]} ({time.monotonic() - started:.0f} s)", flush=True)
            terminal.progress(int(match[2]) - 1, int(match[3]), f"{label}: {match[1]}")

    document = environments.read(name)
    # sources first, so that a missing one is an error before hours of building
    there = set(spack.run("find", "--no-groups", "--format", "{hash}").split())
    missing = {
        digest: node
        for digest, node in document.concrete_specs.items()
        if node.external is None and digest not in there
    }
    wanted = buildcache.without_binary(missing)
    sites.check_externals_there(document, wanted, absent)
    if wanted:
        print(f"{label}: fetching the sources of {units.counted(len(wanted), 'package')}", flush=True)
        spack.run("fetch", *(f"/{digest}" for digest in wanted))
    # each mirror says whether its binaries must be signed
    compiled = {digest: package for package, digest in _COMPILED.findall(spack.run("install", line=progress))}
    if refused := [compiled[digest] for digest in missing if digest in compiled and digest not in wanted]:
        print(f"{label}: Spack refused these binaries and built from source: {', '.join(refused)}", flush=True)
    return _packages(spack, document)


def _packages(spack: Spack, document: Lock) -> dict[str, Package]:
    """The packages of the lock that are installed, by name: each behind those that it needs."""
    packages = {}
    for line in spack.run("find", "--no-groups", "--format", "{hash}|{prefix}").splitlines():
        digest, _, prefix = line.strip().partition("|")
        if node := document.concrete_specs.get(digest):
            packages[node.name] = Package(digest, Path(prefix), node)
    for root in document.roots:
        if root.hash not in {package.hash for package in packages.values()}:
            raise PlumbError(f"{root.spec} was not installed", str(spack.folder), f"see {spack.log}")
    needs = {package.hash: [part.hash for part in package.node.dependencies] for package in packages.values()}
    order = {digest: place for place, digest in enumerate(graphlib.TopologicalSorter(needs).static_order())}
    return dict(sorted(packages.items(), key=lambda item: order[item[1].hash]))


def push(name: str, place: Path, key: str | None) -> int:
    """Push the packages of environment ``name`` into the folder ``place``; returns how many.

    They are signed by ``key``, or unsigned without one. Raises :class:`PlumbError` unless the stack is installed from
    its present lock.
    """
    environments.named(name, "plumb stack push")
    label = stack(name)
    if _stale(name):
        cure = environments.command(f"plumb stack install spack:{name}")
        raise PlumbError(f"stack {label} is not installed, or not of its present lock", str(place), cure)
    secret_keys = str(os.environ.get("GNUPGHOME") or Path.home() / ".gnupg")
    with files.writing("the buildcache", place):
        place.mkdir(parents=True, exist_ok=True)
        variables = {"SPACK_GNUPGHOME": secret_keys} if key else {}
        spack = Spack(bootstrap.prepare(), environments.copy(name), label, variables)
        return buildcache.push(spack, environments.read(name), place, *(("--key", key) if key else ("--unsigned",)))


def pack_locks(_stacks: Iterable[str]) -> dict[Path, list[str]]:
    """The locks of Spack's own packages, of STREAM and of the kernels' BLAS, with options of pip."""
    locks = dict.fromkeys((environments.requirements(), stream.LOCK), bootstrap.wheel_options())
    return {**{lock: [] for lock in blas.lock_files()}, **locks}


def adopt(folder: Path) -> tuple[list[Path], list[Source]] | None:
    """The view of a person's Spack environment, and the packages of its lock; None for another ``folder``.

    Raises :class:`PlumbError` for one that is not installed, has no view, or has one that is of another lock.
    """
    if not (folder / environments.LOCK).is_file():
        return None
    document, view = environments.load(folder / environments.LOCK), folder / ".spack-env" / "view"
    if not (view / "bin").is_dir():
        cure = f"spack -e {folder} install, with view: true; or adopt the prefixes that spack location -i prints"
        raise PlumbError("this Spack environment has no view of installed packages", str(view), cure)
    linked = {file.resolve().parents[1] for file in (view / "bin").iterdir()}
    records = (json.loads(file.read_bytes()) for place in linked if (file := place / ".spack" / "spec.json").is_file())
    for name, digest in ((node["name"], node["hash"]) for record in records for node in record["spec"]["nodes"][:1]):
        if digest not in document.concrete_specs:
            cure = f"spack -e {folder} install"
            raise PlumbError(f"the view has another {name} than the lock (/{digest[:7]})", str(view), cure)
    packages = document.concrete_specs.items()
    mpis = (node.external for node in document.nodes if node.name in environments.MPIS)
    outside = [Path(mpi.path) for mpi in mpis if mpi and mpi.path]  # a view has no external
    return [view, *outside], [
        Source(name=node.name, version=node.version, hash=libraries.SPACK_HASH + digest) for digest, node in packages
    ]
