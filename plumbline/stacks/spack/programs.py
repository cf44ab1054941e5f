"""Elements of a stack manifest from what Spack installed: compiler, launcher, and benchmarks with their SHA-256."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.errors import PlumbError
from plumbline.mpi import Family
from plumbline.stacks import libraries, manifest

#: Folders below the OSU package's prefix that hold its MPI programs.
OSU = ("libexec/osu-micro-benchmarks/mpi",)
KERNELS = "plumbline-kernels"


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
        target = self.node["arch"]["target"]
        target = target if isinstance(target, str) else target["name"]
        spec = f"{self.node['namespace']}.{self.name}@{self.version}"
        return f"Spack DAG hash {self.hash}: {spec}, {compiler['name']} {compiler['version']}, target {target}"


def compiler(packages: Mapping[str, Package]) -> dict[str, str]:
    """The C compiler of the benchmarks, as the manifest has it; raises :class:`PlumbError` if the lock names none."""
    needed = packages["osu-micro-benchmarks"].node.get("dependencies", ())
    digest = next((item["hash"] for item in needed if "c" in item["parameters"]["virtuals"]), None)
    found = next((package for package in packages.values() if package.hash == digest), None)
    if found is None:
        raise PlumbError("the lock names no C compiler", "osu-micro-benchmarks", "make the lock anew: plumb stack lock")
    external = found.node.get("external") or {}
    path = (external.get("extra_attributes") or {}).get("compilers", {}).get("c")
    own = found.prefix / "bin" / {"llvm": "clang", "intel-oneapi-compilers": "icx"}.get(found.name, found.name)
    return {"name": found.name, "version": found.version, "path": str(path or own)}


def launcher(family: Family, version: str, prefix: Path) -> dict[str, str]:
    """The launcher of an MPI that Spack built; raises :class:`PlumbError` if it has none."""
    found = next((file for pattern in family.launcher_programs for file in sorted(prefix.glob(pattern))), None)
    if found is None:
        wanted = ", ".join(family.launcher_programs)
        raise PlumbError(f"{family.name} {version} has no launcher", str(prefix), f"one of {wanted}")
    return {"family": family.launcher_kind(version), "command": str(found)}


def benchmarks(packages: Mapping[str, Package], environment: dict[str, str], mpi: Path) -> dict[str, dict[str, Any]]:
    """The manifest's ``benchmarks``; every MPI program must get the library below ``mpi``."""
    how = {name: package.built(compiler(packages)) for name, package in packages.items()}
    found: dict[str, dict[str, Any]] = {}
    for ident, suite, package, file in _programs(packages):
        entry = manifest.benchmark(suite, package.version, file, how[package.name])
        library = linked(file, environment)
        if library is not None and not library.is_relative_to(mpi.resolve()):
            raise PlumbError(f"{ident} gets another MPI library: {library}", str(file), "unset LD_PRELOAD")
        if suite == "stream":
            entry["facts"] = _stream_facts(package)
        elif library is None:
            raise PlumbError(f"{ident} is not linked with an MPI library", str(file), "install the stack with --force")
        else:
            entry["facts"] = {"library": str(library), "library_sha256": manifest.sha256(library)}
        found[ident] = entry
    return dict(sorted(found.items()))


def _programs(packages: Mapping[str, Package]) -> list[tuple[str, str, Package, Path]]:
    """(benchmark id, suite, package, program) of everything that the environment's packages bring."""
    found = []
    osu, imb = packages["osu-micro-benchmarks"], packages["intel-mpi-benchmarks"]
    for folder in OSU:
        programs = sorted((osu.prefix / folder).rglob("osu_*"))
        found += [(file.name, "osu", osu, file) for file in programs if file.is_file() and os.access(file, os.X_OK)]
    found += [(ident, "imb", imb, imb.prefix / "bin" / name) for ident, name in manifest.IMB_PROGRAMS.items()]
    kernels, stream = packages[KERNELS], packages["stream"]
    found += [(file.name, "kernels", kernels, file) for file in sorted((kernels.prefix / "bin").iterdir())]
    found.append(("stream", "stream", stream, stream.prefix / "bin" / "stream"))
    missing = next((file for *_, file in found if not file.is_file()), None)
    if missing or not any(suite == "osu" for _, suite, *_ in found):
        where = str(missing or osu.prefix)
        raise PlumbError("a benchmark was not installed", where, "install the stack with --force")
    return found


def linked(program: Path, environment: dict[str, str]) -> Path | None:
    """The MPI library that a program loads, None without one; raises :class:`PlumbError` if any library is missing."""
    needed = libraries.of(program, program.name, "spack", environment)
    return next((file for name, file in needed.items() if re.match(r"libmpi\.so", name)), None)


def _stream_facts(package: Package) -> dict[str, Any]:
    parameters = package.node["parameters"]
    elements = int(parameters["stream_array_size"])
    return {"array_elements": elements, "ntimes": int(parameters["ntimes"])}
