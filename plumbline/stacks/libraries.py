"""The shared libraries that programs load, as ``ldd`` reports them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from plumbline.base.errors import PlumbError
from plumbline.stacks import fetch, manifest
from plumbline.stacks.manifest import Loads, Manifest, Source

#: the hash of a source that is a package of Spack begins so
SPACK_HASH = "spack:"
_LINE = re.compile(r"(\S+) => +(.*?) *(?:\(0x|$)", re.MULTILINE)
#: The folders of the system's own libraries, which are not part of a stack: they may differ between a cluster's nodes.
_SYSTEM = re.compile(r"(?:/usr)?/lib(?:32|64|x32)?(?:/[^/]*-linux-gnu[^/]*)?")


def of(program: Path, ident: str, owner: str, environment: Mapping[str, str]) -> dict[str, Path]:
    """The libraries of ``program``: name -> file, links resolved.

    ``ident`` is the benchmark, ``owner`` its stack, ``environment`` the variables that it is run with. Raises
    :class:`PlumbError` with the names of the libraries that are not found.
    """
    files = _files(fetch.call(["ldd", str(program)], f"cannot look into {program.name}", owner, environment))
    if missing := [name for name, file in files.items() if file is None]:
        raise PlumbError(f"{ident} lacks {', '.join(missing)}", str(program), "install the package that has it")
    return {name: file for name, file in files.items() if file is not None}


def check_mpi(program: Path, ident: str, stack: Manifest, library: Path) -> None:
    """Raise :class:`PlumbError` unless ``program`` finds all its libraries, and ``library`` as that of MPI."""
    linked_with = of(program, ident, stack.name, manifest.around(stack)).get(stack.family.libraries[0])
    if linked_with != library.resolve():
        raise PlumbError(f"{ident} gets another MPI library: {linked_with}", str(program), "unset LD_PRELOAD")


def _files(text: str) -> dict[str, Path | None]:
    """Library name to its file, links resolved, or None where there is none; ``text`` is what ``ldd`` printed."""
    return {name: None if file == "not found" else Path(file).resolve() for name, file in _LINE.findall(text)}


def loads(stack: Manifest, library: Path | None = None, more: Iterable[Path] = ()) -> Loads:
    """The member ``loads`` of a stack's manifest: the files that its programs load and read.

    ``library`` is the MPI library where no program is linked with it, ``more`` are files that ``ldd`` does not list.
    Libraries in the system's own folders are left out, but for the MPI library and its parts. Raises
    :class:`PlumbError` for a program that lacks a library in the environment of a launch.
    """
    environment = {"PATH": os.environ.get("PATH", os.defpath), **manifest.environment(stack, os.environ)}
    loaded: set[Path] = set()
    for program in sorted({entry.command[0] for entry in stack.benchmarks.values()}):
        needed = linked(program, environment)
        if missing := [name for name, file in needed.items() if file is None]:
            cure = "launches inherit no LD_LIBRARY_PATH: the stack's modules or its environment must set it"
            raise PlumbError(f"{program} lacks {', '.join(missing)}", f"stack {stack.name}", cure)
        library = needed.get(stack.family.library_among(needed) or "") or library
        loaded |= {file for file in needed.values() if file is not None}
    library = library and library.resolve()
    parts = manifest.parts(stack, str(library) if library else None) | ({library} if library else set())
    for part in (file for file in parts if ".so" in file.name):  # a part that lacks a library is not loaded
        loaded |= {file for file in linked(str(part), environment).values() if file is not None}
    recorded = {file for file in loaded if not is_of_system(file.parent)}
    files = sorted({*recorded, *parts, *(file.resolve() for file in more)})
    return Loads(library=str(library) if library else None, files={str(file): manifest.sha256(file) for file in files})


def is_of_system(folder: Path) -> bool:
    """Whether libraries in ``folder`` are the system's own."""
    return _SYSTEM.fullmatch(str(folder)) is not None


def of_family(stack: Manifest, described: Path) -> Path:
    """The MPI library of a stack without benchmarks: below its prefix, or where the loader finds it for a launch.

    Raises :class:`PlumbError`, naming the file in which the stack is ``described``, where there is none.
    """
    names = stack.family.libraries
    variables = {"PATH": os.environ.get("PATH", os.defpath), **manifest.environment(stack, os.environ)}
    below = (file for name in names for folder in ("lib", "lib64") for file in Path(stack.prefix, folder).glob(name))
    loaded = (linked("/bin/true", {**variables, "LD_PRELOAD": name}).get(name) for name in names)
    library = next(filter(Path.is_file, below), None) or next((file for file in loaded if file), None)
    if library is None:
        cure = "its modules or its environment must set LD_LIBRARY_PATH"
        raise PlumbError(f"stack {stack.name}: {' or '.join(names)} is not found", str(described), cure)
    return library


def linked(program: str, environment: Mapping[str, str]) -> dict[str, Path | None]:
    """Name and file of each library of ``program``, None where it is not found; none of scripts and static programs."""
    return _files(subprocess.run(["ldd", program], capture_output=True, text=True, check=False, env=environment).stdout)


def package_of(stack: Manifest, file: str) -> Source | None:
    """The package in whose folder of Spack's store ``file`` is (``NAME-VERSION-HASH``); None where it is in none."""
    packages = [source for source in stack.sources if source.hash.startswith(SPACK_HASH)]
    folders = (f"/{package.name}-{package.version}-{package.hash.removeprefix(SPACK_HASH)}/" for package in packages)
    return next((package for package, folder in zip(packages, folders, strict=True) if folder in file), None)
