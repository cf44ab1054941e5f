"""Compiler wrappers of builds: for the standard ABI of MPI 5.0 (its chapter), and for Fortran where a stack has none.

A program of the standard ABI runs with any library that has it.
"""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

from plumbline.base import files
from plumbline.base.errors import PlumbError
from plumbline.stacks import libraries, manifest, stream
from plumbline.stacks.manifest import Manifest

LIBRARY = "libmpi_abi.so.1"
#: the compiler wrappers, and what each makes of the beginning of the C compiler's name (``gcc-13`` is ``g++-13``)
OF_CXX = {"gcc": "g++", "clang": "clang++"}
WRAPPERS: dict[str, dict[str, str]] = {"mpicc": {name: name for name in OF_CXX}, "mpicxx": OF_CXX, "mpic++": OF_CXX}
FORTRAN = ("mpifort", "mpif90", "mpif77")
#: ``-show`` is what CMake's FindMPI asks. No run path is written, because the launch chooses the library.
_TEXT = """#!/bin/sh
# compiles and links against the standard ABI of MPI: any library that has it can run the program
case " $* " in *" -show "*) echo {command} {link}; exit ;; esac
exec {command} "$@" {link}
"""


def library(stack: Manifest) -> Path | None:
    """The library of ``stack`` that has the standard ABI; None where it has none."""
    below = (Path(stack.prefix) / folder / LIBRARY for folder in ("lib", "lib64"))
    return next((file for file in below if file.is_file()), None)


def required(stack: Manifest) -> Path:
    """As :func:`library`; raises :class:`PlumbError` where there is none."""
    if (file := library(stack)) is None:
        having = ", ".join(candidate.name for candidate in manifest.load_all() if library(candidate)) or "none"
        message = f"stack {stack.name} does not have the standard MPI ABI ({LIBRARY})"
        raise PlumbError(message, stack.prefix, f"stacks that have it: {having}")
    return file


def builder(stack: Manifest) -> Manifest:
    """The installed stack with which programs for ``stack`` are built: the same for all that have the ABI."""
    required(stack)
    return next((candidate for candidate in manifest.load_all() if library(candidate) and not candidate.tuned), stack)


def write_wrappers(stack: Manifest, folder: Path) -> Path:
    """Write compiler wrappers (:data:`WRAPPERS`) for the headers and the library of ``stack``; returns ``folder``."""
    link = shlex.join([f"-L{required(stack).parent}", f"-l{LIBRARY.removeprefix('lib').partition('.')[0]}"])
    compiler = Path(stack.compiler.path or stack.compiler.name)
    folder.mkdir(parents=True, exist_ok=True)
    begin = next((name for name in OF_CXX if compiler.name.startswith(name)), compiler.name)
    for wrapper, names in WRAPPERS.items():
        name = names.get(begin, begin) + compiler.name.removeprefix(begin)
        if file := shutil.which(str(compiler.with_name(name))):
            command = shlex.join([file, "-DMPI_ABI", f"-I{Path(stack.prefix) / 'include'}"])
            _write(folder / wrapper, _TEXT.format(command=command, link=link))
    return folder


def write_fortran(stack: Manifest, folder: Path) -> Path:
    """Write the Fortran wrappers (:data:`FORTRAN`) that the ``stack`` lacks beside its mpicc to ``folder``, returned.

    Where it has one of them they are that one, with the modules of this host's gfortran, which the wheel of Intel MPI
    has elsewhere; else each says what to do, because the next one in PATH would be another MPI library's.
    """
    binaries = Path(stack.prefix) / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    having = [name for name in FORTRAN if (binaries / name).is_file()]
    version = stream.version_of("gfortran") if having else None
    by_version = f"include/*/gfortran/{version.partition('.')[0]}.*" if version else ""
    modules = sorted(Path(stack.prefix).glob(by_version))[-1:] if by_version else []
    able = (each for each in manifest.load_all() if any(Path(each.prefix, "bin", name).is_file() for name in FORTRAN))
    cure = f"use a stack that has them: {', '.join(each.name for each in able) or 'plumb stack adopt'}"
    for name in FORTRAN if (binaries / "mpicc").is_file() else ():
        if not having:
            fault = f"{name}: error: stack {stack.name} has no Fortran modules of MPI; {cure}"
            _write(folder / name, f"#!/bin/sh\necho {shlex.quote(fault)} >&2\nexit 1\n")
        elif modules or name not in having:
            command = [str(binaries / (name if name in having else having[0])), *(f"-I{path}" for path in modules)]
            _write(folder / name, f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    return folder


def _write(file: Path, text: str) -> None:
    with files.replacing(file) as fresh:
        fresh.write_text(text, encoding="utf-8")
        fresh.chmod(0o755)


def check(program: Path, ident: str, stack: Manifest) -> None:
    """Raise :class:`PlumbError` if ``program`` (``ident``) does not run on the library of ``stack`` that has the ABI.

    Programs that load MPI while they run, such as scripts, are left to the witness.
    """
    wanted = required(stack)
    linked = libraries.linked(str(program), manifest.around(stack))
    if native := sorted(name for name in linked if name.startswith("libmpi.so")):
        message = f"{ident} is not built for the standard MPI ABI: it needs {native[0]}"
        raise PlumbError(message, str(program), f"build it with {' or '.join(WRAPPERS)} as PATH has them")
    if LIBRARY in linked and linked[LIBRARY] != wanted.resolve():
        raise PlumbError(f"{ident} does not get {wanted}", f"stack {stack.name}", "unset LD_PRELOAD")
