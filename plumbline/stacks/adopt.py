"""Adopting what is there: prefixes, views, Spack environments and modules become a description of :mod:`module`.

The MPI library is the one that the compiler wrapper links: a program is compiled, and the library tells its version.
Every benchmark must be linked with the same file.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from plumbline import mpi
from plumbline.base import files, paths, units
from plumbline.base.errors import PlumbError
from plumbline.base.extensions import Extension
from plumbline.parsers import stream as stream_output
from plumbline.stacks import fetch, install, libraries, manifest, module, stream
from plumbline.stacks.manifest import Compiler, Launcher, Source, Version
from plumbline.stacks.module import Description, Program
from plumbline.stacks.wheel import IMB_VERSION

#: the prefixes in a folder that an extra knows, such as a Spack environment, and the packages that they are of
TREES: Extension[[Path], tuple[list[Path], list[Source]] | None] = Extension("stack.adopt")
OWNER = "adopt"
_LIBRARIES = dict.fromkeys(name for family in mpi.TABLE.values() for name in family.libraries)
_PROBE = "int MPI_Init(void *, void *);\nint main(void) { return MPI_Init(0, 0); }\n"
#: MPI_Get_library_version may be called before MPI_Init
_VERSION = (
    "import ctypes, sys; text, length = ctypes.create_string_buffer(1 << 16), ctypes.c_int();"
    " ctypes.CDLL(sys.argv[1]).MPI_Get_library_version(text, ctypes.byref(length)); print(text.value.decode())"
)
#: suite -> its programs in ``bin``, elsewhere below a prefix, and the version in a program
_SUITES = {
    "osu": ("osu_*", "libexec/osu-micro-benchmarks/**/osu_*", re.compile(rb"OSU [^\0\n]* v(\d[\w.]*)\n")),
    "imb": ("IMB-*", "", IMB_VERSION),
    "stream": ("stream*", "", re.compile(rb"STREAM version \$Revision: ([\d.]+)")),
}


class Search:
    """A search in ``places``, folders and modules; ``named`` are files and folders by the names of options.

    ``variables`` are those that programs need beside what the modules set.
    """

    def __init__(self, places: Sequence[str], named: Mapping[str, Path], variables: Mapping[str, str]) -> None:
        paths.stacks().mkdir(parents=True, exist_ok=True)  # for the output of a command that fails
        self.where, self.named = " ".join(places), named
        self.modules = [place for place in places if not Path(place).is_dir()]
        if absent := next((place for place in self.modules if place.startswith(("/", "."))), None):
            raise PlumbError("no such folder", absent, "name a prefix, a view, a Spack environment or a module")
        folders = [Path(place).absolute() for place in places if place not in self.modules]
        trees = [next(filter(None, TREES(folder)), ([folder], [])) for folder in folders]
        self.sources = [source for _, sources in trees for source in sources]
        loaded, added = module.loaded_by(self.where, self.modules)
        self.variables = dict(variables)
        self.bins = [*(folder / "bin" for prefixes, _ in trees for folder in prefixes), *added]
        # a module may name the library's folder and have no wrapper, as cray-mpich
        mentioned = (Path(entry) for text in loaded.values() for entry in text.split(":") if re.match("/.", entry))
        self.roots = [*(folder.parent for folder in self.bins), *mentioned]
        homes = [family.home_variables(folder.parent) for family in mpi.TABLE.values() for folder in self.bins[:1]]
        rows = (*homes, {"HOME": os.environ.get("HOME", "/")}, loaded, self.variables)
        self.environment = {name: text for row in rows for name, text in row.items()}

    def ask(self, *command: str | Path) -> str:
        """The output of a command in the environment of launches."""
        cure = "--env NAME=VALUE sets a variable that it needs; "
        return fetch.call(list(map(str, command)), f"{command[0]} fails", OWNER, self.environment, cure=cure)

    def there(self, library: str) -> Iterator[Path]:
        """The files of a ``library`` in ``lib``, ``lib64`` … of the prefixes."""
        return (file for folder in self.bins for file in sorted(folder.parent.glob(f"lib*/{library}")))

    def library_of(self, program: Path) -> Path | None:
        """The MPI library that ``program`` loads; None for a program of something else.

        If the loader does not find it, launches get LD_LIBRARY_PATH with its folder.
        """
        needed = libraries.linked(str(program), self.environment)
        name = next(filter(None, (family.library_among(needed) for family in mpi.TABLE.values())), None)
        if name is None or needed[name]:
            return needed[name] if name else None
        place = next(self.there(name), None)
        if place is None or "LD_LIBRARY_PATH" in self.environment:
            cure = "name the programs of this library, or set --env LD_LIBRARY_PATH=FOLDER"
            raise PlumbError(f"{program} needs {name}, which is not found", self.where, cure)
        self.variables["LD_LIBRARY_PATH"] = self.environment["LD_LIBRARY_PATH"] = str(place.parent)
        return self.library_of(program)

    def wrapper(self) -> tuple[Path | None, Path]:
        """The compiler wrapper, if there is one, and the MPI library that it links."""
        families = mpi.TABLE.values()
        rows = (
            [file for of in families for file in of.programs_in(folder, of.compiler_wrappers)] for folder in self.bins
        )
        wrappers = [self.named["mpicc"]] if "mpicc" in self.named else next(filter(None, rows), [])
        linked: dict[Path, Path] = {}
        faults: list[PlumbError] = []
        for wrapper in {file.resolve(): file for file in reversed(wrappers)}.values():
            try:
                linked[self._links(wrapper)] = wrapper
            except PlumbError as error:  # Intel's mpicc asks for a compiler that may be absent; its mpigcc does not
                faults.append(error)
        if len(linked) > 1:
            each = ", ".join(f"{wrapper} links {library}" for library, wrapper in linked.items())
            raise PlumbError(f"two MPI libraries: {each}", self.where, "--mpicc FILE names the wrapper of one")
        if faults and not linked:
            raise faults[0]
        for library, wrapper in linked.items():
            return wrapper, library
        for library in (file.resolve() for name in _LIBRARIES for file in self.there(name)):
            return None, library
        raise PlumbError("no compiler wrapper and no MPI library", self.where, "--mpicc FILE names the wrapper")

    def _links(self, wrapper: Path) -> Path:
        with tempfile.TemporaryDirectory() as name:
            source, program = Path(name) / "probe.c", Path(name) / "probe"
            source.write_text(_PROBE, encoding="utf-8")
            self.ask(wrapper, source, "-o", program)
            library = self.library_of(program)
        if library is None:
            raise PlumbError(f"{wrapper} links no MPI library", self.where, "--mpicc FILE names another")
        inside = {file.resolve() for name in _LIBRARIES for file in self.there(name)}
        below = any(library.is_relative_to(root.resolve()) for root in self.roots)
        if not (library in inside or below):
            cure = "name the prefix of that library too, or the right wrapper: --mpicc FILE"
            raise PlumbError(f"{wrapper} links an MPI library of elsewhere: {library}", self.where, cure)
        return library

    def launcher(self, family: mpi.Family, version: str, folders: Sequence[Path]) -> Launcher:
        """The launcher of the library, in one of the ``folders``, or a scheduler's own."""
        names = [Path(text).name for text in family.launcher_programs]
        there = (file for folder in folders for file in family.programs_in(folder, names))
        program = self.named.get("mpirun") or next(there, None)
        if program is None:
            raise PlumbError(f"no launcher of {family.name}", self.where, "--mpirun FILE names it")
        kind = program.name if program.name in mpi.KINDS else family.launcher_kind(version)
        of = mpi.identify(self.ask(program, "--version"))
        if of and kind not in {**of[0].launchers, program.name: ""}:
            message = f"{program} is of {of[0].name} {of[1]}, the library of {family.name} {version}"
            raise PlumbError(message, self.where, "--mpirun FILE names another")
        return Launcher(family=kind, command=str(program))

    def programs(self, library: Path) -> dict[str, Program]:
        """The benchmarks, those of earlier folders first.

        Raises :class:`PlumbError` for one that is linked with another library than ``library``.
        """
        linked_with = {"library": str(library), "library_sha256": manifest.sha256(library)}
        programs: dict[str, Program] = {}
        for suite, (pattern, deeper, version) in _SUITES.items():
            place = self.named.get(suite)
            folders = [place] if place else self.bins
            wanted = pattern if place is None else f"**/{pattern}"
            files = [file for top in folders for file in ([top] if top.is_file() else sorted(top.glob(wanted)))]
            files += [file for folder in folders if deeper for file in sorted(folder.parent.glob(deeper))]
            if place and not files:
                raise PlumbError(f"no program {pattern}", str(place), f"--{suite} names where they are")
            for file in (file for file in files if file.is_file() and os.access(file, os.X_OK)):
                label = version.search(file.read_bytes())
                facts: dict[str, Any] = linked_with if suite != "stream" else self._arrays(file) if label else {}
                linked = self.library_of(file) if suite != "stream" else library
                if linked != library:
                    which = f"with another MPI library: {linked}" if linked else "with no MPI library"
                    cure = f"--{suite} FOLDER names the programs of {library}"
                    raise PlumbError(f"{file.name} is linked {which}", str(file), cure)
                if facts:
                    text = label[1].decode() if label else "unknown"
                    program = Program(suite=suite, version=text, program=str(file), facts=facts)
                    programs.setdefault("stream" if suite == "stream" else file.name.lower(), program)
        return programs

    def _arrays(self, file: Path) -> dict[str, int]:
        """The arrays of STREAM, which it prints; empty if they are too small for the caches of this machine."""
        params = stream_output.parse(self.ask(file), {})[0].params
        small = params["array_elements"] < stream.array_elements(stream.last_level_cache_bytes())
        return {} if small else {"array_elements": params["array_elements"]}


def describe(
    places: Sequence[str], named: Mapping[str, Path], variables: Mapping[str, str]
) -> tuple[Description, list[tuple[str, str, str]]]:
    """The description of what a :class:`Search` shows, and its rows: part, version and place, or the option for it.

    Raises :class:`PlumbError` for parts that do not fit together.
    """
    search = Search(places, named, variables)
    wrapper, library = search.wrapper()
    known = mpi.identify(text := search.ask(sys.executable, "-I", "-c", _VERSION, library))
    if known is None:
        raise PlumbError(f"an MPI library of no known family: {text[:60].strip()}", str(library), "adopt another")
    family, version = known
    command = shlex.split(search.ask(wrapper, "-show"))[0] if wrapper else stream.Compiler.find().path
    compiler = Compiler(name=Path(command).name, version=stream.version_of(command) or "unknown", path=command)
    folders = [*([wrapper.parent] if wrapper else []), *search.bins]
    launcher, programs = search.launcher(family, version, folders), search.programs(library)
    made_by = f"{compiler.name} {compiler.version}" if wrapper else "none"
    rows = [
        ("MPI library", f"{family.name} {version}", str(library)),
        ("launcher", launcher.family, launcher.command),
        ("compiler wrapper", made_by, str(wrapper or "--mpicc FILE")),
    ]
    for suite in _SUITES:
        entries = [entry for entry in programs.values() if entry.suite == suite]
        label = f"{entries[0].version}, {units.counted(len(entries), 'program')}" if entries else "none"
        place = os.path.commonpath([Path(entry.program).parent for entry in entries]) if entries else ""
        rows.append((suite.upper(), label, place or f"--{suite} {'FILE' if suite == 'stream' else 'FOLDER'}"))
    described = Description(
        modules=search.modules,
        mpi=Version(family=family.name, version=version),
        launcher=launcher,
        prefix=str(folders[0].parent),
        compiler=compiler,
        environment={**({} if search.modules else family.home_variables(folders[0].parent)), **search.variables},
        benchmarks=programs,
        sources=search.sources,
    )
    return described, rows


def write(name: str, description: Description) -> None:
    """Write the description of stack ``name`` beside its manifest, and make that; a failure leaves nothing."""
    file = paths.stacks() / name / module.FILE
    if not file.exists() and (file.parent.exists() or name in module.names()):
        raise PlumbError(f"there is a stack '{name}' already", str(file.parent), "--as NAME gives it another name")
    if manifest.path(name).exists() and (old := manifest.load(name)).prefix != description.prefix:
        cure = f"plumb stack remove {name}, or --as NAME gives it another name"
        raise PlumbError(f"stack '{name}' is of {old.prefix}, not of {description.prefix}", str(file.parent), cure)
    text = yaml.safe_dump({"stacks": {name: msgspec.to_builtins(description)}}, sort_keys=False)
    try:
        files.replace(file, f"# Written by plumb stack adopt; a site's {module.FILE} may have the same.\n{text}")
        install("module", name, force=True)
    except BaseException:
        if not manifest.path(name).exists():
            shutil.rmtree(file.parent)
        raise
