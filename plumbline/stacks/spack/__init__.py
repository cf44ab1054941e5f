"""Provider ``spack``: stacks that Spack builds from locked environments of ``spack-env/``.

``spack:openmpi`` becomes the stack ``spack-openmpi``: its manifest lies in ``stacks/spack-openmpi``, the programs in
Spack's store below ``stacks/spack``. A package is taken from a buildcache that has it, and built otherwise.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

from plumbline import files, paths, terminal, units
from plumbline.errors import PlumbError
from plumbline.mpi import TABLE as FAMILIES
from plumbline.stacks import Work, kernels, libraries, locked, manifest, stream
from plumbline.stacks.spack import bootstrap, buildcache, catalogue, environment, programs, settings, signing, target
from plumbline.stacks.spack.programs import KERNELS, Package
from plumbline.stacks.spack.runner import Spack

#: Increased when the manifest is composed differently: installed stacks are then made again.
RECIPE = 3
_INSTALLING = re.compile(r"==> Installing (\S+)-[a-z0-9]{32} \[(\d+)/(\d+)\]")


def names() -> tuple[str, ...]:
    """The environments that become stacks."""
    return catalogue.stacks()


def stack(name: str) -> str:
    """What the stack of environment ``name`` is called."""
    return f"spack-{name}"


def work(name: str, force: bool) -> Work | None:
    """How the stack of environment ``name`` is made; None if it is complete and of the present lock."""
    wanted = catalogue.named(name, "plumb stack install")
    _check_machine(name)
    stale, make = (_stale_tools, _install_tools) if wanted.roots else (_stale, _install)
    reason = "asked for" if force else stale(name)
    return Work(reason, lambda ready: make(name, ready), lambda fetch: _checked(name, fetch)) if reason else None


def _checked(name: str, fetch: bool) -> Spack | None:
    """The Spack of environment ``name``, after a look for an edited lock and for changed binaries.

    Without ``fetch``, None on a machine that has no Spack yet: it is what compares a lock with its hashes.
    """
    label = stack(name)
    if not fetch and not bootstrap.is_there():
        print(f"{label}: its lock is compared with its hashes once Spack is there", flush=True)
        return None
    spack = Spack(bootstrap.prepare(), environment.workplace(name), label)
    spack.log.unlink(missing_ok=True)
    environment.check_content(spack, name)
    buildcache.check(environment.read(name))
    return spack


def _stale(name: str) -> str | None:
    """Why the stack of environment ``name`` must be made (again); None when it is complete and of the present lock."""
    return manifest.stale(stack(name), fingerprint(name), "the lock, the kernels or its place changed")


def fingerprint(name: str) -> str:
    """SHA-256 that changes when the lock, the kernels' sources or the folders of stacks, Spack and site change."""
    digest = hashlib.sha256(f"{RECIPE} {paths.stacks()} {settings.home()} {settings.site()}".encode())
    digest.update(environment.lock(name).read_bytes())
    digest.update(_kernel_sources().encode())
    return digest.hexdigest()


def _kernel_sources() -> str:
    return kernels.fingerprint(paths.root() / kernels.FOLDER, {"mpi": "Spack"})


def _check_machine(name: str) -> None:
    """Refuse, before an hour of building, a lock whose target, system, compiler or arrays do not fit this machine."""
    document, file = environment.read(name), str(environment.lock(name))
    node = document["concrete_specs"][document["roots"][0]["hash"]]
    target.check(node, file)
    target.check_system(node, file)
    target.check_compilers(document, file)
    if catalogue.environments()[name].roots:
        return
    _, node = environment.node(document, "stream")
    elements = int(node["parameters"]["stream_array_size"])
    needed = stream.array_elements(stream.last_level_cache_bytes())
    if elements < needed:
        raise PlumbError(
            f"STREAM's arrays have {elements} elements in the lock; this machine's caches need {needed}",
            file,
            f"set stream_array_size in {settings.site() / 'packages.yaml'}, then "
            + settings.command(f"plumb stack lock spack:{name}"),
        )


def _install(name: str, spack: Spack) -> None:
    started, label = time.monotonic(), spack.owner
    packages = _built(name, spack)
    _mark_kernels(packages[KERNELS].hash)
    result = _manifest(name, label, packages)
    folder = paths.stacks() / label
    folder.mkdir(parents=True, exist_ok=True)
    files.replace(folder / "lock", fingerprint(name) + "\n")
    manifest.check(result)
    manifest.save(result)
    mpi = result["mpi"]
    print(
        f"{label}: {mpi['family']} {mpi['version']}; {len(result['benchmarks'])} benchmarks"
        f" ({time.monotonic() - started:.0f} s)",
        flush=True,
    )


def _tools_mark(name: str) -> Path:
    return catalogue.view(name).with_suffix(".lock")


def _stale_tools(name: str) -> str | None:
    """Why an environment that is no stack, but a view of programs, must be made (again); None when it need not."""
    mark = _tools_mark(name)
    if not (catalogue.view(name) / "bin").is_dir():
        return "not there"
    same = mark.is_file() and mark.read_text(encoding="utf-8").strip() == fingerprint(name)
    return None if same else "the lock or its place changed"


def _install_tools(name: str, spack: Spack) -> None:
    mark = _tools_mark(name)
    mark.unlink(missing_ok=True)
    packages = _built(name, spack)
    files.replace(mark, fingerprint(name) + "\n")
    roots = {root["hash"] for root in environment.read(name)["roots"]}
    found = ", ".join(f"{item.name} {item.version}" for item in packages.values() if item.hash in roots)
    print(f"{spack.owner}: {found}; programs in {catalogue.view(name)}/bin", flush=True)


def _built(name: str, spack: Spack) -> dict[str, Package]:
    """Let Spack install what the lock of environment ``name`` holds; returns the installed packages by name."""
    started, label = time.monotonic(), spack.owner
    shown = {"step": ""}

    def progress(line: str) -> None:
        found = _INSTALLING.search(line)
        if found and found[0] != shown["step"]:
            shown["step"] = found[0]
            seconds = time.monotonic() - started
            print(f"{label}: [{found[2]}/{found[3]}] {found[1]} ({seconds:.0f} s)", flush=True)
            terminal.progress(int(found[2]) - 1, int(found[3]), f"{label}: {found[1]}")

    document = environment.read(name)
    _fetch(spack, document, label)
    if not catalogue.environments()[name].roots:
        _drop_old_kernels(spack, document)
    spack.run("install", line=progress)  # each mirror says whether its binaries must be signed
    return _packages(spack, document)


def _fetch(spack: Spack, document: dict[str, Any], label: str) -> None:
    """Fetch the sources of all that will be built, so that a missing one is an error before hours of building."""
    there = set(spack.run("find", "--no-groups", "--format", "{hash}").split())
    wanted = [
        f"/{digest}"
        for digest, node in document["concrete_specs"].items()
        if "external" not in node and digest not in there and not buildcache.holds(digest, node)
    ]
    if wanted:
        print(f"{label}: fetching the sources of {units.counted(len(wanted), 'package')}", flush=True)
        spack.run("fetch", *wanted)


def _kernel_mark(digest: str) -> Path:
    return settings.home() / "kernels" / digest


def _mark_kernels(digest: str) -> None:
    files.replace(_kernel_mark(digest), _kernel_sources() + "\n")


def _drop_old_kernels(spack: Spack, document: dict[str, Any]) -> None:
    """Spack knows the kernels by recipe, not by source: those built from other sources are removed and built again."""
    digest, _ = environment.node(document, KERNELS)
    mark = _kernel_mark(digest)
    if mark.exists() and mark.read_text(encoding="utf-8").strip() == _kernel_sources():
        return
    mark.unlink(missing_ok=True)
    listed = ("--no-groups", "--format", "{hash}")
    if digest in spack.run("find", "--install-tree", "local", *listed):
        spack.run("uninstall", "--yes-to-all", "--force", f"/{digest}")
    elif digest in spack.run("find", *listed):
        what = f"an upstream store has {KERNELS}, and nobody knows of which sources"
        raise PlumbError(what, f"stack {spack.owner}", f"uninstall {KERNELS} there: each checkout builds its own")


def _packages(spack: Spack, document: dict[str, Any]) -> dict[str, Package]:
    """The packages of the lock that are installed, by name."""
    listed = spack.run("find", "--no-groups", "--format", "{name}|{version}|{hash}|{prefix}")
    found = {}
    for line in listed.splitlines():
        parts = line.strip().split("|")
        if len(parts) == 4 and parts[2] in document["concrete_specs"]:
            name, version, digest, prefix = parts
            found[name] = Package(name, version, digest, Path(prefix), document["concrete_specs"][digest])
    for root in document["roots"]:
        if root["hash"] not in {package.hash for package in found.values()}:
            raise PlumbError(f"{root['spec']} was not installed", str(spack.folder), f"see {spack.log}")
    return found


def _manifest(name: str, label: str, packages: dict[str, Package]) -> dict[str, Any]:
    """The stack manifest: MPI, launcher and environment from Spack's MPI, or from the stack that is its external."""
    wanted = catalogue.environments()[name]
    family, mpi = FAMILIES[wanted.family], packages[wanted.package]
    base = _external_stack(mpi)
    prefix = Path(base["prefix"]) if base else mpi.prefix
    variables = dict(base["environment"]) if base else family.home_variables(mpi.prefix)
    merged = {**os.environ, **manifest.environment({"environment": variables}, os.environ)}
    benchmarks = programs.benchmarks(packages, merged, prefix)
    for entry in benchmarks.values():
        if entry["suite"] == "kernels":
            entry["version"] = _kernel_sources()[:12]  # the recipe's version does not say which sources
    set_there: dict[str, Any] = {key: base[key] for key in ("settings", "tuned") if key in base} if base else {}
    document = {
        "schema": 1,
        "name": label,
        "provider": "spack",
        "mpi": {"family": family.name, "version": mpi.version, "abi": family.abi},
        "compiler": programs.compiler(packages),
        "launcher": base["launcher"] if base else programs.launcher(family, mpi.version, mpi.prefix),
        "prefix": str(prefix),
        "environment": variables,
        **set_there,
        **_accelerator(packages),
        "modules": [],
        "benchmarks": benchmarks,
        "sources": [
            {"name": item.name, "version": item.version, "hash": f"spack:{item.hash}"} for item in packages.values()
        ],
    }
    return {**document, "loads": libraries.loads(document)}


def _accelerator(packages: dict[str, Package]) -> dict[str, str]:
    """The manifest's ``accelerator``: what the OSU programs were built for, if they were."""
    built = packages["osu-micro-benchmarks"].node.get("parameters", {})
    found = next((name for name in ("cuda", "rocm") if built.get(name) is True), None)
    return {"accelerator": found} if found else {}


def _external_stack(mpi: Package) -> dict[str, Any] | None:
    """The manifest of the stack that the MPI was taken from (:mod:`plumbline.stacks.spack.externals`)."""
    attributes = (mpi.node.get("external") or {}).get("extra_attributes") or {}
    return manifest.load(attributes["plumb_stack"]) if "plumb_stack" in attributes else None


def push(name: str, folder: Path, key: str | None) -> int:
    """Push the packages of environment ``name`` into the buildcache ``folder``; returns how many.

    They are signed by ``key``, or unsigned without one. Raises :class:`PlumbError` unless the stack is installed from
    its present lock.
    """
    wanted, label = catalogue.named(name, "plumb stack push"), stack(name)
    if (_stale_tools if wanted.roots else _stale)(name):
        cure = settings.command(f"plumb stack install spack:{name}")
        raise PlumbError(f"stack {label} is not installed, or not of its present lock", str(folder), cure)
    variables = {"SPACK_GNUPGHOME": str(signing.own_keys())} if key else {}
    with files.writing("the buildcache", folder):
        folder.mkdir(parents=True, exist_ok=True)
        spack = Spack(bootstrap.prepare(), environment.workplace(name), label, variables)
        return buildcache.push(spack, environment.read(name), folder, *(["--key", key] if key else ["--unsigned"]))


def lock(name: str, *, check: bool = False) -> list[str]:
    """Concretize environment ``name`` and write the site's lock; with ``check`` only compare.

    Returns the differences, a line for each package; empty if the lock is what Spack makes of the environment.
    """
    catalogue.named(name, "plumb stack lock")
    label = stack(name)
    with files.writing(f"the lock of '{name}'", paths.stacks()), locked(label):
        base = bootstrap.prepare()
        place = environment.workplace(name, locked=False)
        Spack(base, place, label).run("concretize", "--force", "--fresh")
        fresh = json.loads((place / "spack.lock").read_text(encoding="utf-8"))
        file = environment.lock(name)
        differing = _differing(file, fresh)
        if differing and not check:
            # a lock may be made on a machine that lacks the compilers
            target.check_compilers(fresh, str(settings.site() / "packages.yaml"), absent=False)
            files.replace(file, json.dumps(fresh, indent=1, sort_keys=True) + "\n")
        shutil.rmtree(place)
    return differing


def _differing(file: Path, fresh: dict[str, Any]) -> list[str]:
    """How the lock that is there differs from a fresh one."""
    try:
        written = json.loads(file.read_text(encoding="utf-8"))
        found = environment.differences(written, fresh)
    except FileNotFoundError:
        return ["there is no lock"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return ["the lock cannot be read"]
    roots = [sorted((root["spec"], root["hash"]) for root in one["roots"]) for one in (written, fresh)]
    return found or (["other roots"] if roots[0] != roots[1] else [])
