"""The stack manifest from what Spack installed: MPI, compiler, launcher, and benchmarks with their SHA-256."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from plumbline.base.errors import PlumbError
from plumbline.extras.spack import buildcache, environments, sites
from plumbline.extras.spack.lock import Node
from plumbline.mpi import TABLE as FAMILIES
from plumbline.mpi import Family
from plumbline.stacks import libraries, manifest, stream
from plumbline.stacks.manifest import Benchmark, Compiler, Launcher, Manifest, Mpi, Source

OSU = "osu-micro-benchmarks"


@dataclass(frozen=True)
class Package:
    """An installed package: its element in the lock and where it lies."""

    name: str
    version: str
    hash: str
    prefix: Path
    node: Node

    def built(self, compiler: Compiler) -> str:
        """How it was made, for the manifest."""
        spec = f"{self.node.namespace}.{self.name}@{self.version}"
        made_by = f"{compiler.name} {compiler.version}, target {self.node.target}"
        return f"Spack DAG hash {self.hash}: {spec}, {made_by}"


def compose(
    name: str,
    label: str,
    packages: Mapping[str, Package],
    sources: str,
    archives: Mapping[str, str],
    stream_build: tuple[Source, Benchmark],
) -> Manifest:
    """The stack manifest: MPI, launcher and environment from Spack's MPI, or from the stack that is its external.

    ``sources`` is the SHA-256 of those of the kernels, because the recipe's version does not say which they are;
    ``archives`` has sources from elsewhere (:func:`~plumbline.extras.spack.sites.check_content`);
    ``stream_build`` is STREAM, which is not a package, behind the source that it was built from.
    """
    wanted = environments.known()[name]
    family, mpi = FAMILIES[environments.MPIS[wanted.package]], packages[wanted.package]
    base = _external_stack(mpi)
    prefix = Path(base.prefix) if base else mpi.prefix
    variables = base.environment if base else family.home_variables(mpi.prefix)
    merged = {**os.environ, **{name: manifest.expand(value, os.environ) for name, value in variables.items()}}
    stack = Manifest(
        schema=1,
        name=label,
        provider="spack",
        mpi=Mpi(family=family.name, version=mpi.version, abi=family.abi),
        compiler=compiler(packages),
        launcher=base.launcher if base else _launcher(family, mpi),
        prefix=str(prefix),
        environment=variables,
        modules=[],
        accelerator=_accelerator(packages),
        benchmarks=dict(
            sorted((_benchmarks(packages, merged, prefix, sources[:12]) | {"stream": stream_build[1]}).items())
        ),
        sources=[
            *(
                Source(
                    name=item.name,
                    version=item.version,
                    hash=f"{libraries.SPACK_HASH}{item.hash}",
                    archive=archives.get(item.hash),
                )
                for item in packages.values()
            ),
            stream_build[0],
        ],
        settings={**(base.settings if base else {}), **wanted.settings},
    )
    return replace(stack, loads=libraries.loads(stack), tuned=base.tuned if base else None)


def _accelerator(packages: Mapping[str, Package]) -> str | None:
    """The manifest's ``accelerator``: the one that the OSU programs were built for, if any."""
    built = packages[OSU].node.parameters if OSU in packages else {}
    return next((name for name in ("cuda", "rocm") if built.get(name) is True), None)


def _external_stack(mpi: Package) -> Manifest | None:
    """The manifest of the stack that the MPI was taken from (:func:`~plumbline.extras.spack.sites.write_externals`)."""
    name = mpi.node.external and mpi.node.external.attributes.plumb_stack
    return manifest.load(name) if name else None


def compiler(packages: Mapping[str, Package]) -> Compiler:
    """The C compiler of the benchmarks; raises :class:`PlumbError` if the lock names none."""
    digest = packages[buildcache.KERNELS].node.compiler("c")
    chosen = next((package for package in packages.values() if package.hash == digest), None)
    if chosen is None:
        raise PlumbError("the lock names no C compiler", buildcache.KERNELS, "make the lock again: plumb stack lock")
    path = chosen.node.external and chosen.node.external.attributes.compilers.get("c")
    default = chosen.prefix / "bin" / {"llvm": "clang", "intel-oneapi-compilers": "icx"}.get(chosen.name, chosen.name)
    return Compiler(name=chosen.name, version=chosen.version, path=str(path or default))


def stream_compiler(packages: Mapping[str, Package]) -> stream.Compiler:
    """That compiler for STREAM, with the options for the target of the lock."""
    chosen = compiler(packages)
    target = sites.target_options(packages[buildcache.KERNELS].node, chosen.name, chosen.version)
    program = str(chosen.path)
    folders = (Path(program).parents[1] / name for name in ("lib", "lib64"))
    runtime_folders = [folder for folder in folders if folder.is_dir() and not libraries.is_of_system(folder)]
    links = tuple(f"-Wl,-rpath,{folder}" for folder in runtime_folders)
    return stream.Compiler(program, chosen.version, chosen.name, tuple(target), links)


def _launcher(family: Family, mpi: Package) -> Launcher:
    """The launcher of an MPI that Spack built; raises :class:`PlumbError` if it has none."""
    program = next((file for pattern in family.launcher_programs for file in sorted(mpi.prefix.glob(pattern))), None)
    if program is None:
        wanted = ", ".join(family.launcher_programs)
        raise PlumbError(f"{family.name} {mpi.version} has no launcher", str(mpi.prefix), f"one of {wanted}")
    return Launcher(family=family.launcher_kind(mpi.version), command=str(program))


def _benchmarks(
    packages: Mapping[str, Package], environment: dict[str, str], mpi: Path, sources: str
) -> dict[str, Benchmark]:
    """The manifest's MPI ``benchmarks``; every program must get the library below ``mpi``.

    The version of the kernels is that of their ``sources``.
    """
    how = {name: package.built(compiler(packages)) for name, package in packages.items()}
    entries: dict[str, Benchmark] = {}
    for ident, suite, package, file in _programs(packages):
        version = sources if suite == "kernels" else package.version
        needed = libraries.of(file, file.name, "spack", environment)
        library = next((needed[name] for name in needed if name.startswith("libmpi.so")), None)
        if library is None:
            raise PlumbError(f"{ident} is not linked with an MPI library", str(file), "install the stack with --force")
        if not library.is_relative_to(mpi.resolve()):
            raise PlumbError(f"{ident} gets another MPI library: {library}", str(file), "unset LD_PRELOAD")
        facts = {"library": str(library), "library_sha256": manifest.sha256(library)}
        entries[ident] = manifest.benchmark(suite, version, file, how[package.name], facts=facts)
    return entries


def _programs(packages: Mapping[str, Package]) -> list[tuple[str, str, Package, Path]]:
    """(benchmark id, suite, package, program) of all MPI programs in the environment's packages."""
    imb, kernels = (packages[name] for name in ("intel-mpi-benchmarks", buildcache.KERNELS))
    programs, where = list[tuple[str, str, Package, Path]](), ""
    if osu := packages.get(OSU):  # a site's own template may lack them
        osu_programs = sorted((osu.prefix / "libexec/osu-micro-benchmarks/mpi").rglob("osu_*"))
        programs += [
            (file.name, "osu", osu, file) for file in osu_programs if file.is_file() and os.access(file, os.X_OK)
        ]
        where = "" if programs else str(osu.prefix)
    programs += [(ident, "imb", imb, imb.prefix / "bin" / name) for ident, name in manifest.IMB_PROGRAMS.items()]
    programs += [(file.name, "kernels", kernels, file) for file in sorted((kernels.prefix / "bin").iterdir())]
    if missing := next((str(file) for *_, file in programs if not file.is_file()), where):
        raise PlumbError("a benchmark was not installed", missing, "install the stack with --force")
    return programs
