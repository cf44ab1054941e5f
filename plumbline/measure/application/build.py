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
from plumbline.measure.application.model import FILE, Application, Program, Source, check_out, load, test_name
from plumbline.parsers.application import Rules
from plumbline.records.variant import ApplicationState
from plumbline.stacks import abi, fetch
from plumbline.stacks import manifest as manifests
from plumbline.stacks.manifest import Manifest

#: file beside the sources that says that they are built: the SHA-256 of each file in them that launches run or read
MARK = "built.json"
#: the variable that names the file with a :class:`Runnable`, for ReFrame on this host
VARIABLE = "PLUMB_APPLICATION"


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
    known = json.dumps([source.identity, str(source.folder), *made_with, now.mpi_abi, source.variables])
    place = paths.build() / "applications" / name / hashlib.sha256(known.encode()).hexdigest()[:16]
    folder = place / "source" / (source.folder.relative_to(source.repository) if source.repository else "")
    with files.lock(place.with_suffix(".lock")):
        changed = _changed(place / MARK, folder)
        if changed:
            say(f"{name}: {changed[0]} of {source.label} was changed since it was built: it is built again")
        if changed is None or changed:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            check_out(source, place / "source")
            if not (folder / FILE).is_file():
                raise PlumbError(f"{source.label} has no {FILE}", str(source.folder), "is it committed? git add it")
            if (checked_out := load(folder / FILE)).build:
                say(f"{name}: building {source.label} with {compiles.name}")
            around = environment(compiles) | dict(source.variables)
            if standard:
                around["PATH"] = f"{abi.write_wrappers(compiles, place / 'bin')}:{around['PATH']}"
            for line in checked_out.build:
                failing = f"the build of {source.label} fails with {compiles.name}"
                fetch.run_line(line, folder, around, failing, f"{FILE}, build", place / "build.log")
            files.replace(place / MARK, json.dumps(_watched(folder)) + "\n")
    built = Built(load(folder / FILE), source, stack.name, folder)
    for called, program in built.application.programs.items() if standard else ():
        if program.mpi:
            abi.check(executable(program.words[0], folder, stack), called, stack)
    return built


def environment(stack: Manifest) -> dict[str, str]:
    """The variables of a build: this process's and the stack's, with the stack's programs first in PATH."""
    around = {**surroundings.of_user(), **manifests.environment(stack, os.environ)}
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


def _watched(folder: Path) -> dict[str, str]:
    """The SHA-256 of the files that launches run or read, by path below ``folder``: plumb.yaml, programs, inputs."""
    programs = load(folder / FILE).programs.values()
    named = {FILE, *(name for each in programs for name in (each.words[0], *each.inputs, each.stdin or FILE))}
    watched = {file for name in named for file in files.below(folder / name)}
    ours = sorted(file for file in watched if file.is_relative_to(folder))
    return {file.relative_to(folder).as_posix(): files.sha256_once(file) for file in ours}


def _changed(mark: Path, folder: Path) -> list[str] | None:
    """The files of ``folder`` that were changed since the build left its ``mark``; None without one."""
    try:
        known = msgspec.json.decode(mark.read_bytes(), type=dict[str, str])
    except (OSError, msgspec.MsgspecError):
        return None
    present = {name: files.sha256_once(folder / name) for name in known if (folder / name).is_file()}
    return [name for name, digest in known.items() if present.get(name) != digest]


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
        return {
            "program": str(file),
            "command": [str(file)],
            "inputs": {name: str(folder / name) for name in program.inputs},
            **({"stdin": str(folder / program.stdin)} if program.stdin else {}),
            "mpi": program.mpi,
            "binds": program.binds,
            "rules": msgspec.to_builtins(Rules(figures=program.figures, checks=program.checks)),
        }
