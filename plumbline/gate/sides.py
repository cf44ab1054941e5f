"""The two sides of a live gate: each is a set of circumstances.

A side is ``KIND:VALUE[,KIND:VALUE…]``, or the name of a stack or commit alone; what it does not name is as the tests,
or plumb.yaml, say. Commits are those of an application's repository, or else of this suite, whose kernels are built.
"""

from __future__ import annotations

import re
import shlex
import shutil
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from plumbline import stacks
from plumbline.base import files, git, paths
from plumbline.base.errors import PlumbError, assignments
from plumbline.measure.application import model
from plumbline.measure.application.model import Source, Variables
from plumbline.measure.reframe.campaign import first_stack
from plumbline.records.variant import Variant
from plumbline.stacks import kernels as kernels_of_stack
from plumbline.stacks import manifest as manifests
from plumbline.stacks import source as source_stacks
from plumbline.stacks.manifest import Benchmark, Manifest

#: as :func:`plumbline.stacks.kernels.build`: manifest of the stack, folder of the kernels' sources, prefix
Build = Callable[[Manifest, Path, Path], dict[str, Benchmark]]
#: the parameters of tests that say where ranks, threads and pages are
PLACING = ("placement", "memory", "threads")
#: kinds that a side may name, and those that it may name more than once
KINDS = ("commit", "stack", "build", *PLACING, "setting", "variable", "program", "command")
REPEATED = ("build", "setting", "variable")
_CHANGE = re.compile(rf"({'|'.join(KINDS)})[:=](.+)", re.DOTALL)
_SEPARATOR = re.compile(rf",(?=(?:{'|'.join(KINDS)})[:=])")
#: a command may have commas and equals signs itself
_BEHIND_COMMAND = re.compile(rf",(?=(?:{'|'.join((*PLACING, 'variable'))}):)")
#: in place of a commit: the files of an application as they are now
PRESENT = "."
#: the suite of the benchmarks that are part of a commit; all others are the stack's
KERNELS = "kernels"


@dataclass(frozen=True)
class Changes:
    """The changes of a side in each variant. ``settings`` are the MPI library's, ``variables`` of the environment.

    ``program`` is the file that is run in place of an application's.
    """

    placement: str | None = None
    memory: str | None = None
    threads: int | None = None
    settings: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    program: Path | None = None

    @property
    def params(self) -> set[str]:
        """The parameters of a test that it changes."""
        return {name for name in PLACING if getattr(self, name) is not None}

    def of(self, variant: Variant) -> Variant:
        """``variant`` with the changes."""
        placing = {name: getattr(self, name) for name in self.params}
        context = variant.context
        if self.program:
            name = str(self.program)
            context = {**context, "program": name, "command": [name], "replaced": [name]}
        return structs.replace(
            variant,
            **placing,
            params={**variant.params, **placing},
            settings={**variant.settings, **self.settings},
            environment={**variant.environment, **self.variables},
            context=context,
        )


class Parts(NamedTuple):
    """What is built for a side: a stack, the state of the code (kernels or an application), variables of its build."""

    stack: str
    code: str | None = None
    build: Variables = ()


@dataclass(frozen=True)
class Side:
    """``stack`` is the installed stack; for a commit the one that its programs are to be built against.

    ``changes`` are those of its variants, ``spelling`` is its text in the command. ``code`` is the state of an
    application's code; without it ``commit`` is one of this suite. ``install``: the stack is made where it is not
    there, as provider ``source`` does it.
    """

    role: str
    stack: str
    commit: str | None = None
    changes: Changes = field(default_factory=Changes)
    spelling: str = field(default="", compare=False)
    code: Source | None = None
    install: bool = False

    @property
    def measured(self) -> str:
        """The stack that is measured: of a commit of the suite ``STACK@COMMIT``, its first twelve digits."""
        return f"{self.stack}@{self.commit[:12]}" if self.commit else self.stack

    @property
    def parts(self) -> Parts:
        """The parts that it is built from."""
        program = str(self.changes.program) if self.changes.program else None
        if self.code:
            return Parts(self.stack, program or self.code.identity, self.code.variables)
        return Parts(self.stack, program or self.commit)

    @property
    def label(self) -> str:
        """The side for people."""
        if self.code:
            return f"{self.spelling} ({self.code.label} on {self.stack})"
        return f"{self.measured} ({self.spelling})" if self.changes != Changes() else self.measured


class Unusable(PlumbError):
    """A ``side`` that cannot be measured, whatever the other one is: it does not build, or lacks the tests."""

    def __init__(self, side: Side, message: str, where: str | None = None, cure: str | None = None) -> None:
        super().__init__(f"{side.role} {side.spelling or side.measured}: {message}", where, cure)
        self.side, self.fault = side, PlumbError(message, where, cure)


def resolve(role: str, spelling: str, stack: str | None, file: Path | None = None, where: str | None = None) -> Side:
    """The side that ``spelling`` names; a commit alone is built against ``stack``.

    ``file`` is the plumb.yaml of an application. ``where``: the argument of a command that is not plumb gate.
    Raises :class:`PlumbError` for a name that is neither stack nor commit, and for a commit without an installed stack.
    """
    where = where or f"plumb gate --{role}"
    named = parsed(spelling, where)
    installed = ", ".join(manifests.names()) or "none"
    stack = named["stack"][0] if "stack" in named else stack
    name = named["commit"][0] if "commit" in named else PRESENT
    makes = stack is not None and source_stacks.library(stack) is not None
    if stack and ":" in stack:  # PROVIDER:NAME
        stack = stacks.label(*stacks.split(stack))
    commit = None if name == PRESENT else _commit(name, file, where, installed)
    if "commit" in named and commit is None and file is None:
        raise PlumbError(f"'{PRESENT}' is the state of an application, and there is no plumb.yaml here", where)
    if stack is None:
        is_commit = "is a commit, and the stack to build it against is missing"
        fault = is_commit if "commit" in named else "does not say on which stack"
        raise PlumbError(f"'{spelling}' {fault}", where, f"add --stack NAME, one of {installed}")
    if stack not in manifests.names() and not makes:
        raise PlumbError(f"stack '{stack}' is not installed", "plumb gate --stack", f"installed: {installed}")
    differing = changes(named, file is not None, where)
    if file is None and "build" in named:
        raise PlumbError("variables of a build need a plumb.yaml with a build", where, "variable:NAME=VALUE")
    if file is None:
        return Side(role, stack, commit, differing, spelling, install=makes)
    variables = tuple(assignments(named.get("build", ()), f"{where} build", "build:NAME=VALUE").items())
    code = model.code_of_commit(file, commit, variables) if commit else model.present_code(file, variables)
    return Side(role, stack, None, differing, spelling, code, makes)


def base_stack(
    spellings: Sequence[str], named: str | None, file: Path | None, say: Callable[[str], None]
) -> str | None:
    """The stack of sides that name none: ``named``, or the first that the site offers if an application needs one."""
    if named or file is None or all("stack" in parsed(side, "plumb gate") for side in spellings):
        return named
    return first_stack(file, say)


def parsed(spelling: str, where: str) -> dict[str, list[str]]:
    """The values of a side by kind; raises :class:`PlumbError` for two values of a kind that has one."""
    values: dict[str, list[str]] = {}
    separator = _BEHIND_COMMAND if spelling.startswith("command:") else _SEPARATOR
    for part in separator.split(spelling):
        if match := _CHANGE.fullmatch(part):
            kind, value = match.groups()
        else:
            provider, _, _ = part.rpartition(":")
            kind = "stack" if part in manifests.names() or provider in stacks.PROVIDERS else "commit"
            value = part
        if kind in values and kind not in REPEATED:
            raise PlumbError(f"'{spelling}' has two values of {kind}", where, "name one")
        values.setdefault(kind, []).append(value)
    return values


def _commit(name: str, file: Path | None, where: str, installed: str) -> str:
    commit = git.commit(name, model.code_folder(file) if file else None)
    if commit is None:
        lacks = "is not an installed stack, and commits of the suite need a checkout of it"
        fault = lacks if file is None and paths.is_installed() else "is neither an installed stack nor a commit"
        program = f"command:{shlex.quote(name)} compares programs" if shutil.which(name.partition(" ")[0]) else None
        raise PlumbError(f"'{name}' {fault}", where, program or f"installed: {installed}")
    return commit


def changes(named: Mapping[str, list[str]], has_application: bool, where: str) -> Changes:
    """The changes of a side in its variants; raises :class:`PlumbError` for a value that is none."""
    single = {kind: values[0] for kind, values in named.items()}
    threads = single.get("threads")
    if threads is not None and not (threads.isdecimal() and int(threads)):
        raise PlumbError(f"'{threads}' is not a number of threads", where, "1 or more")
    program = Path(single["program"]).absolute() if "program" in named else None
    if program and not has_application:
        raise PlumbError("a program of your own needs a plumb.yaml", where, "plumb application init")
    if program and not program.is_file():
        raise PlumbError(f"there is no program {program}", where, "build it first")
    return Changes(
        placement=single.get("placement"),
        memory=single.get("memory"),
        threads=int(threads) if threads else None,
        settings=assignments(named.get("setting", ()), f"{where} setting", "setting:NAME=VALUE"),
        variables=assignments(named.get("variable", ()), f"{where} variable", "variable:NAME=VALUE"),
        program=program,
    )


def install_side(side: Side, build: Build | None = None) -> Manifest:
    """The manifest of what ``side`` measures; a commit is checked out, built and installed unless that was done before.

    So is a stack of provider ``source``. A copy whose stack was reinstalled is built again. Programs built against the
    standard MPI ABI are left out. Of two gates that install the same commit at once, one waits for the other and then
    finds it installed. Raises :class:`PlumbError` for a commit without kernels.
    """
    if side.install and source_stacks.work(side.stack, force=False):
        stacks.install(source_stacks.PROVIDER, side.stack)
    base = manifests.load(side.stack)
    if side.commit is None:
        return base
    with files.lock(paths.build() / "commits" / f"{side.commit}.lock"):
        return _install_commit(side, side.commit, base, build or kernels_of_stack.build)


def _install_commit(side: Side, commit: str, base: Manifest, build: Build) -> Manifest:
    """The manifest of ``commit`` built against the stack ``base``; the caller holds the lock of the commit."""

    def copy(kernels: Mapping[str, Benchmark]) -> Manifest:
        rest = {key: value for key, value in base.benchmarks.items() if value.suite != KERNELS}
        return structs.replace(base, name=side.measured, benchmarks=rest | dict(kernels))

    if side.measured in manifests.names():
        manifest = manifests.load(side.measured)
        kernels = {key: value for key, value in manifest.benchmarks.items() if value.suite == KERNELS}
        if manifest == copy(kernels) and not manifests.problems(manifest):
            return manifest
    source = checkout(commit) / kernels_of_stack.FOLDER
    if not source.is_dir():
        raise PlumbError(f"commit {commit[:12]} has no {source.name}", "its files", "name a commit that has kernels")
    home = paths.stacks() / side.measured
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    kernels = build(base, source, home / "kernels")
    if not kernels:
        raise PlumbError(f"commit {commit[:12]} has no kernels", str(source), "name a commit that has some")
    manifest = copy(kernels)
    manifests.save(manifest)
    return manifest


def checkout(commit: str) -> Path:
    """The files of ``commit`` below ``build/commits``; an unfinished extraction never counts."""
    folder = paths.build() / "commits" / commit
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    archive = folder.with_suffix(".tar")
    try:
        git.run("archive", "--output", str(archive), commit)
        with tarfile.open(archive) as files_of_commit, files.staged(folder) as fresh:
            fresh.mkdir()
            # Python 3.11.2 of Debian 12 and others do not know extractall(filter=...), and ignore this
            files_of_commit.extraction_filter = getattr(tarfile, "data_filter", None)
            files_of_commit.extractall(fresh)  # noqa: S202
    finally:
        archive.unlink(missing_ok=True)
    return folder
