"""The stack manifest from what Spack installed: MPI, compiler, launcher, and benchmarks with their SHA-256."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.base.errors import PlumbError
from plumbline.mpi import TABLE as FAMILIES
from plumbline.mpi import Family
from plumbline.stacks import libraries, manifest
from plumbline.stacks.spack import buildcache, environments


@dataclass(frozen=True)
class Package:
    """An installed package: its element in the lock and where it lies."""

    name: str
    version: str
    hash: str
    prefix: Path
    node: dict[str, Any]

    def built(self, compiler: dict[str, str]) -> str:
        """How it was made, for the manifest."""
        spec = f"{self.node['namespace']}.{self.name}@{self.version}"
        made_by = f"{compiler['name']} {compiler['version']}, target {environments.target(self.node)}"
        return f"Spack DAG hash {self.hash}: {spec}, {made_by}"


def compose(name: str, label: str, packages: Mapping[str, Package], sources: str) -> dict[str, Any]:
    """The stack manifest: MPI, launcher and environment from Spack's MPI, or from the stack that is its external.

    ``sources`` is the SHA-256 of those of the kernels, because the recipe's version does not say which they are.
    """
    wanted = environments.known()[name]
    family, mpi = FAMILIES[wanted.family], packages[wanted.package]
    base = _external_stack(mpi)
    prefix = Path(base["prefix"]) if base else mpi.prefix
    variables = dict(base["environment"]) if base else family.home_variables(mpi.prefix)
    merged = {**os.environ, **manifest.environment({"environment": variables}, os.environ)}
    set_there: dict[str, Any] = {key: base[key] for key in ("settings", "tuned") if key in base} if base else {}
    document = {
        "schema": 1,
        "name": label,
        "provider": "spack",
        "mpi": {"family": family.name, "version": mpi.version, "abi": family.abi},
        "compiler": compiler(packages),
        "launcher": base["launcher"] if base else _launcher(family, mpi),
        "prefix": str(prefix),
        "environment": variables,
        **set_there,
        **_accelerator(packages),
        "modules": [],
        "benchmarks": _benchmarks(packages, merged, prefix, sources[:12]),
        "sources": [
            {"name": item.name, "version": item.version, "hash": f"spack:{item.hash}"} for item in packages.values()
        ],
    }
    return {**document, "loads": libraries.loads(document)}


def _accelerator(packages: Mapping[str, Package]) -> dict[str, str]:
    """The manifest's ``accelerator``: what the OSU programs were built for, if they were."""
    built = packages["osu-micro-benchmarks"].node.get("parameters", {})
    found = next((name for name in ("cuda", "rocm") if built.get(name) is True), None)
    return {"accelerator": found} if found else {}


def _external_stack(mpi: Package) -> dict[str, Any] | None:
    """The manifest of the stack that the MPI was taken from (:func:`~plumbline.stacks.spack.sites.write_externals`)."""
    attributes = (mpi.node.get("external") or {}).get("extra_attributes") or {}
    return manifest.load(attributes["plumb_stack"]) if "plumb_stack" in attributes else None


def compiler(packages: Mapping[str, Package]) -> dict[str, str]:
    """The C compiler of the benchmarks, as the manifest has it; raises :class:`PlumbError` if the lock names none."""
    needed = packages["osu-micro-benchmarks"].node.get("dependencies", ())
    digest = next((item["hash"] for item in needed if "c" in item["parameters"]["virtuals"]), None)
    found = next((package for package in packages.values() if package.hash == digest), None)
    if found is None:
        cure = "make the lock again: plumb stack lock"
        raise PlumbError("the lock names no C compiler", "osu-micro-benchmarks", cure)
    external = found.node.get("external") or {}
    path = (external.get("extra_attributes") or {}).get("compilers", {}).get("c")
    own = found.prefix / "bin" / {"llvm": "clang", "intel-oneapi-compilers": "icx"}.get(found.name, found.name)
    return {"name": found.name, "version": found.version, "path": str(path or own)}


def _launcher(family: Family, mpi: Package) -> dict[str, str]:
    """The launcher of an MPI that Spack built; raises :class:`PlumbError` if it has none."""
    found = next((file for pattern in family.launcher_programs for file in sorted(mpi.prefix.glob(pattern))), None)
    if found is None:
        wanted = ", ".join(family.launcher_programs)
        raise PlumbError(f"{family.name} {mpi.version} has no launcher", str(mpi.prefix), f"one of {wanted}")
    return {"family": family.launcher_kind(mpi.version), "command": str(found)}


def _benchmarks(
    packages: Mapping[str, Package], environment: dict[str, str], mpi: Path, sources: str
) -> dict[str, dict[str, Any]]:
    """The manifest's ``benchmarks``; every MPI program must get the library below ``mpi``.

    The version of the kernels is that of their ``sources``.
    """
    how = {name: package.built(compiler(packages)) for name, package in packages.items()}
    found: dict[str, dict[str, Any]] = {}
    for ident, suite, package, file in _programs(packages):
        version = sources if suite == "kernels" else package.version
        entry = manifest.benchmark(suite, version, file, how[package.name])
        needed = libraries.of(file, file.name, "spack", environment)
        library = next((needed[name] for name in needed if re.match(r"libmpi\.so", name)), None)
        if library is not None and not library.is_relative_to(mpi.resolve()):
            raise PlumbError(f"{ident} gets another MPI library: {library}", str(file), "unset LD_PRELOAD")
        if suite == "stream":
            built = package.node["parameters"]
            entry["facts"] = {"array_elements": int(built["stream_array_size"]), "ntimes": int(built["ntimes"])}
        elif library is None:
            raise PlumbError(f"{ident} is not linked with an MPI library", str(file), "install the stack with --force")
        else:
            entry["facts"] = {"library": str(library), "library_sha256": manifest.sha256(library)}
        found[ident] = entry
    return dict(sorted(found.items()))


def _programs(packages: Mapping[str, Package]) -> list[tuple[str, str, Package, Path]]:
    """(benchmark id, suite, package, program) of all programs in the environment's packages."""
    osu, imb, stream = (packages[name] for name in ("osu-micro-benchmarks", "intel-mpi-benchmarks", "stream"))
    kernels = packages[buildcache.KERNELS]
    own = sorted((osu.prefix / "libexec/osu-micro-benchmarks/mpi").rglob("osu_*"))
    found = [(file.name, "osu", osu, file) for file in own if file.is_file() and os.access(file, os.X_OK)]
    where = str(osu.prefix) if not found else ""
    found += [(ident, "imb", imb, imb.prefix / "bin" / name) for ident, name in manifest.IMB_PROGRAMS.items()]
    found += [(file.name, "kernels", kernels, file) for file in sorted((kernels.prefix / "bin").iterdir())]
    found.append(("stream", "stream", stream, stream.prefix / "bin" / "stream"))
    missing = next((str(file) for *_, file in found if not file.is_file()), where)
    if missing:
        raise PlumbError("a benchmark was not installed", missing, "install the stack with --force")
    return found
