"""A state of an application's code, built with a stack: once, in a folder of its own; and the tests of the builds."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from plumbline.base import files, paths, surroundings
from plumbline.base.errors import PlumbError
from plumbline.launch.program_files import BuiltFiles
from plumbline.measure.application.model import Application, Program, Source, check_out, load, test_name
from plumbline.parsers.application import Rules
from plumbline.records.variant import ApplicationState
from plumbline.stacks import abi, fetch
from plumbline.stacks import manifest as manifests
from plumbline.stacks.manifest import Manifest

#: file beside the sources that says that they are built, a :class:`BuiltFiles`
MARK = "built.json"
#: how a file begins that stands in place of one that git-lfs has not fetched
POINTER = b"version https://git-lfs.github.com/spec/"
#: the variable that names the file with a :class:`Runnable`, for ReFrame on this host
VARIABLE = "PLUMB_APPLICATION"
#: the variable with a regular expression that the names of its tests begin with, for the same
PATTERN = "PLUMB_APPLICATION_TESTS"


@dataclass(frozen=True)
class Built:
    """The application in ``folder``, built with ``stack`` from ``source``; ``application`` is what that state says."""

    application: Application
    source: Source
    stack: str
    folder: Path


def build(file: Path, source: Source, stack: Manifest, say: Callable[[str], None]) -> Built:
    """Build the application of ``file`` in the state ``source`` for the ``stack`` of a manifest, unless it is built.

    It is built again if a file that launches run or read was changed since. With the standard MPI ABI it is one build
    for all stacks. Raises :class:`PlumbError` with the first error of a command that fails.
    """
    now = load(file)
    name, standard = now.application, now.mpi_abi == "standard"
    compiles = abi.builder(stack) if standard else stack
    made_with = msgspec.to_builtins((compiles.name, compiles.mpi, compiles.compiler))
    elsewhere = (now.code, now.build) if now.code else ()  # then no commit has the lines of build
    known = json.dumps([source.identity, str(source.folder), *made_with, now.mpi_abi, source.variables, *elsewhere])
    place = paths.build() / "applications" / name / hashlib.sha256(known.encode()).hexdigest()[:16]
    folder = place / "source" / (source.folder.relative_to(source.repository) if source.repository else "")
    described = file if now.code else folder / file.name
    with files.lock(place.with_suffix(".lock")):
        before = BuiltFiles.load(place / MARK)
        changed = [*before.differing()] if before else None
        if changed:
            say(f"{name}: {changed[0]} of {source.label} was changed since it was built: it is built again")
        if changed is None or changed:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            check_out(source, place / "source")
            if not described.is_file():
                cure = "is it committed? git add it, or keep it outside: plumb application init --application FILE"
                raise PlumbError(f"{source.label} has no {file.name}", str(source.folder), cure)
            if (checked_out := now if now.code else load(described)).build:
                say(f"{name}: building {source.label} with {compiles.name}")
            around = environment(compiles) | dict(source.variables)
            write = abi.write_wrappers if standard else abi.write_fortran
            around["PATH"] = f"{write(compiles, place / 'bin')}:{around['PATH']}"
            failing = f"the build of {source.label} fails with {compiles.name}"
            for line in checked_out.build:
                fetch.run_line(line, folder, around, failing, f"{file.name}, build", place / "build.log")
            left = BuiltFiles(str(place / "source"), str(folder), files.states(place / "source", folder))
            files.replace(place / MARK, msgspec.json.encode(left).decode())
    built = Built(now if now.code else load(described), source, stack.name, folder)
    for called, program in built.application.programs.items():
        _refuse_absent(called, program, folder)
        if standard and program.mpi:
            abi.check(executable(program.words[0], folder, stack), called, stack)
    return built


def environment(stack: Manifest) -> dict[str, str]:
    """The variables of a build: this process's and the stack's, with the stack's programs first in PATH."""
    # a hook's variables name its repository, which is not the copy
    user = {key: value for key, value in surroundings.of_user().items() if key in os.environ or key[:4] != "GIT_"}
    around = {**user, **manifests.environment(stack, os.environ)}
    return {**around, "PATH": f"{Path(stack.prefix) / 'bin'}:{around.get('PATH', os.defpath)}"}


def executable(word: str, folder: Path, stack: Manifest) -> Path:
    """The file that the first ``word`` of a command names: below ``folder``, else in the PATH of a build.

    Raises :class:`PlumbError` where there is none.
    """
    if "/" in word:
        program = str(folder / word) if os.access(folder / word, os.X_OK) and (folder / word).is_file() else None
        cure = "build has to make it, and it must be executable"
    else:
        program = shutil.which(word, path=environment(stack)["PATH"])
        cure = f"write ./{word} if it is a file of the repository"
    if program is None:
        raise PlumbError(f"there is no program {word}, built with {stack.name}", str(folder), cure)
    return Path(program)


def _refuse_absent(called: str, program: Program, folder: Path) -> None:
    """Raise :class:`PlumbError` for what the ``program`` reads and is not there after the build, or is a pointer."""
    for name, key in program.absent(folder).items():
        cure = "build has to make it, or git to have it: git add it"
        raise PlumbError(f"programs.{called}.{key}: there is no {name} after the build", str(folder), cure)
    for file in (file for name in (*program.inputs, *program.copy) for file in files.below(folder / name)):
        with files.opened(file) as stream:
            if stream.read(len(POINTER)) == POINTER:
                cure = "git lfs install, then git lfs pull, or leave it out"
                raise PlumbError("a pointer of Git LFS stands in place of the file", str(file), cure)


class Runnable(Struct, frozen=True, kw_only=True):
    """An application in one state of its ``code``, of no program; ``stacks``: the folder of its build, by stack."""

    code: ApplicationState
    programs: dict[str, Program]
    stacks: dict[str, str]

    @classmethod
    def of(cls, builds: Sequence[Built]) -> Runnable:
        """The application of ``builds``, which are of one state of the code and of different stacks."""
        application, source = builds[0].application, builds[0].source
        code = ApplicationState(
            name=application.application, program="", commit=source.commit, changed=source.changed,
            digest=source.digest, build=dict(source.variables),
        )  # fmt: skip
        folders = {built.stack: str(built.folder) for built in builds}
        return cls(code=code, programs=application.programs, stacks=folders)

    def test(self, program: str) -> str:
        """The name of the test that measures ``program``."""
        return test_name(self.code.name, program)

    def state(self, program: str) -> ApplicationState:
        """The state of the code, as the records of ``program`` have it."""
        return replace(self.code, program=program)

    def context(self, called: str, stack: str) -> dict[str, Any]:
        """The facts that a launch of the program ``called`` needs, as built with ``stack``."""
        program, folder = self.programs[called], Path(self.stacks[stack])
        file = executable(program.words[0], folder, manifests.load(stack))
        word = program.words[0]
        return {
            "program": str(file),
            "command": [f"./{Path(word)}" if program.copies(word) else str(file)],
            "inputs": {name: str(folder / name) for name in program.inputs},
            "copy": {name: str(folder / name) for name in program.copy},
            "built": next(str(above / MARK) for above in folder.parents if (above / MARK).is_file()),
            **({"stdin": str(folder / program.stdin)} if program.stdin else {}),
            "mpi": program.mpi,
            "binds": program.binds,
            "rules": msgspec.to_builtins(Rules(figures=program.figures, checks=program.checks)),
        }
