"""The stack manifest from what Spack installed: MPI, compiler, launcher, and benchmarks with their SHA-256."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from plumbline.base.errors import PlumbError
from plumbline.extras.spack import environments, sites
from plumbline.extras.spack.lock import Node
from plumbline.mpi import TABLE as FAMILIES
from plumbline.mpi import Family
from plumbline.stacks import adopt, libraries, manifest, stream
from plumbline.stacks.manifest import Benchmark, Compiler, Launcher, Manifest, Mpi, Source

#: suite -> its package
BENCHMARKS = {"osu": "osu-micro-benchmarks", "imb": "intel-mpi-benchmarks"}


@dataclass(frozen=True)
class Package:
    """An installed package: its hash, where it lies, and its element in the lock."""

    hash: str
    prefix: Path
    node: Node

    def built(self, compiler: Compiler) -> str:
        """How it was made, for the manifest."""
        spec = f"{self.node.namespace}.{self.node.name}@{self.node.version}"
        made_by = f"{compiler.name} {compiler.version}, target {self.node.target}"
        return f"Spack DAG hash {self.hash}: {spec}, {made_by}"


def compose(
    name: str,
    label: str,
    packages: Mapping[str, Package],
    archives: Mapping[str, str],
    stream_build: tuple[Source, Benchmark],
) -> Manifest:
    """The stack manifest: MPI, launcher and environment from Spack's MPI, or from the stack that is its external.

    ``archives`` has sources from elsewhere (:func:`~plumbline.extras.spack.sites.check_content`); ``stream_build`` is
    STREAM, which is not a package, behind the source that it was built from.
    """
    wanted = environments.known()[name]
    mpi = packages[str(wanted.package)]
    family, base = FAMILIES[environments.MPIS[mpi.node.name]], _external_stack(mpi)
    settings, others = wanted.variables(family)
    launcher = base.launcher if base else _launcher(family, mpi)
    stack = Manifest(
        schema=1,
        name=label,
        provider="spack",
        mpi=Mpi(family=family.name, version=mpi.node.version, abi=family.abi),
        compiler=compiler(packages),
        launcher=launcher,
        prefix=base.prefix if base else str(Path(launcher.command).parents[1]),
        environment={**(base.environment if base else family.home_variables(mpi.prefix)), **others},
        modules=[],
        accelerator=_accelerator(packages),
        benchmarks={},
        sources=[
            *(
                Source(
                    name=item.node.name,
                    version=item.node.version,
                    hash=f"{libraries.SPACK_HASH}{item.hash}",
                    archive=archives.get(item.hash),
                )
                for item in packages.values()
            ),
            stream_build[0],
        ],
        settings={**(base.settings if base else {}), **settings},
    )
    benchmarks = dict(sorted({**_benchmarks(stack, packages), "stream": stream_build[1]}.items()))
    stack = replace(stack, benchmarks=benchmarks)
    return replace(stack, loads=libraries.loads(stack), tuned=base.tuned if base else None)


def _benchmarks(stack: Manifest, packages: Mapping[str, Package]) -> dict[str, Benchmark]:
    """The programs of OSU and IMB; each must get the MPI library of the stack."""
    suites = {suite: packages[name] for suite, name in BENCHMARKS.items() if name in packages}
    library = libraries.of_family(stack, environments.site()).resolve()
    places = [str(package.prefix) for package in suites.values()]
    programs = adopt.Search(places, {}, manifest.environment(stack, os.environ)).programs(library)
    if absent := suites.keys() - {program.suite for program in programs.values()}:
        prefix = suites[min(absent)].prefix
        raise PlumbError(f"no benchmark of {min(absent).upper()} is installed", str(prefix), "install it with --force")
    return {
        ident: replace(
            program.entry(Path(program.program), suites[program.suite].built(stack.compiler)),
            version=suites[program.suite].node.version,
        )
        for ident, program in programs.items()
    }


def _built(packages: Mapping[str, Package]) -> Package:
    """The last of the packages that a C compiler made; raises :class:`PlumbError` if there is none."""
    for package in reversed(list(packages.values())):
        if package.node.compiler("c"):
            return package
    raise PlumbError("the lock names no C compiler", "spack.lock", "make the lock again: plumb stack lock")


def _accelerator(packages: Mapping[str, Package]) -> str | None:
    """The manifest's ``accelerator``: the one that the OSU programs were built for, if any."""
    built = packages[BENCHMARKS["osu"]].node.parameters if BENCHMARKS["osu"] in packages else {}
    return next((name for name in ("cuda", "rocm") if built.get(name) is True), None)


def _external_stack(mpi: Package) -> Manifest | None:
    """The manifest of the stack that the MPI was taken from, which ``plumb_stack`` of the external names."""
    name = mpi.node.external and mpi.node.external.attributes.plumb_stack
    return manifest.load(name) if name else None


def compiler(packages: Mapping[str, Package]) -> Compiler:
    """The C compiler of the benchmarks; raises :class:`PlumbError` if the lock names none."""
    digest = _built(packages).node.compiler("c")
    chosen = next(package for package in packages.values() if package.hash == digest)
    path = chosen.node.external and chosen.node.external.attributes.compilers.get("c")
    name = chosen.node.name
    default = chosen.prefix / "bin" / {"llvm": "clang", "intel-oneapi-compilers": "icx"}.get(name, name)
    return Compiler(name=name, version=chosen.node.version, path=str(path or default))


def stream_compiler(packages: Mapping[str, Package]) -> stream.Compiler:
    """That compiler for STREAM, with the options for the target of the lock."""
    chosen = compiler(packages)
    target = sites.target_options(_built(packages).node, chosen.name, chosen.version)
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
        raise PlumbError(f"{family.name} {mpi.node.version} has no launcher", str(mpi.prefix), f"one of {wanted}")
    return Launcher(family=family.launcher_kind(mpi.node.version), command=str(program))
