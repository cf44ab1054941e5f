"""``plumb.yaml``, the programs of a repository and what is to be measured of them; and the states of their code."""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from plumbline.base import files, git, paths, schemas, units
from plumbline.base.errors import PlumbError, require
from plumbline.host import binder
from plumbline.launch.witness.compare import Binds
from plumbline.parsers.application import CheckRule, FigureRule, Rules, rate_name

FILE = "plumb.yaml"
CURE = "plumb application init writes one that explains itself"
#: names become those of tests, and parts of files' names
Name: TypeAlias = Annotated[str, schemas.whole("[a-z][a-z0-9_]{0,39}")]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=1_000_000)]
#: a path below the folder of plumb.yaml
Inside: TypeAlias = Annotated[str, schemas.whole(r"(?!/)(?!.*(^|/)\.\.(/|$))[^\x00-\x1f\x7f]+")]
#: of a build: names and values
Variables: TypeAlias = tuple[tuple[str, str], ...]
#: bytes of a folder without git that are copied at most
MOST_BYTES = 2 << 30
#: files of a launch's own in the folder where the program runs
TAKEN = ("witness", "output", "profile", "stdout", "stderr")


class Scale(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The curve of a program (``plumb scale``): the numbers of threads, ranks or nodes; none: the machine's steps."""

    over: Literal["threads", "ranks", "nodes"] = "threads"
    counts: list[Count] = []


class Program(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A program, what it prints, and where its ranks and threads are placed.

    ``command`` is a line of words or a list; no shell reads it, and its first word is a file below the folder of
    plumb.yaml, or a program in PATH. It runs in an empty folder, with links to its ``inputs`` and a copy of each file
    and folder of ``copy``, which it may change; its first rank reads the file ``stdin``. ``placements`` are names of
    docs/placements.md, each a variant. ``memory`` is the memory policy, ``threads`` those of a rank (a list: each a
    variant) and ``ranks`` those of a node; without them the placement decides. ``binds`` says what is bound:
    ``threads``, each to its CPU, as OpenMP does it, or ``ranks``, whose threads may run on any CPU of their rank; with
    ``itself`` the program binds its threads, as the placement has them. ``mpi`` says whether it is an MPI program.
    ``time_limit_s`` is that of a launch, ``launches`` how many a campaign makes, ``scale`` the points of its curve.
    """

    command: Annotated[str, Meta(min_length=1)] | Annotated[list[str], Meta(min_length=1)]
    figures: Annotated[dict[Name, FigureRule], Meta(min_length=1)]
    checks: list[CheckRule] = []
    inputs: list[Inside] = []
    copy: list[Inside] = []
    stdin: Inside | None = None
    placements: Annotated[list[str], Meta(min_length=1)] = msgspec.field(default_factory=lambda: ["core"])
    memory: str | None = None
    threads: Count | Annotated[list[Count], Meta(min_length=1)] | None = None
    ranks: Count | None = None
    nodes: Count = 1
    binds: Binds = "threads"
    mpi: bool = True
    environment: dict[str, str] = {}
    time_limit_s: Annotated[float, Meta(gt=0, le=1_000_000)] = 600.0
    launches: Count = 5
    scale: Scale | None = None

    @property
    def words(self) -> list[str]:
        """The command, word by word."""
        return shlex.split(self.command) if isinstance(self.command, str) else list(self.command)

    def copies(self, file: str) -> bool:
        """Whether each launch has a copy of ``file``, a path from the folder of plumb.yaml on, and no name in PATH."""
        return "/" in file and any(Path(file).is_relative_to(entry) for entry in self.copy)

    def absent(self, folder: Path) -> dict[str, str]:
        """What it reads and ``folder`` lacks, with the key that names it."""
        entries = {**dict.fromkeys(self.inputs, "inputs"), **dict.fromkeys(self.copy, "copy")}
        lacking = {entry: key for entry, key in entries.items() if not (folder / entry).exists()}
        return lacking | ({self.stdin: "stdin"} if self.stdin and not (folder / self.stdin).is_file() else {})


class Application(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What ``plumb.yaml`` says: ``build`` are lines for bash, run once for each stack and commit in a clean copy.

    With ``mpi_abi: standard`` they are run once for all stacks whose library has the standard ABI of MPI 5. ``code`` is
    the folder of the code where that is not the file's own, from which it is relative.
    """

    application: Name
    code: Annotated[str, Meta(min_length=1)] | None = None
    build: list[str] = []
    mpi_abi: Literal["stack", "standard"] = "stack"
    programs: Annotated[dict[Name, Program], Meta(min_length=1)]

    def tests(self, programs: Sequence[str], file: Path) -> str:
        """The regular expression that names of the tests of ``programs``, or of all, begin with.

        Raises :class:`PlumbError` for a program that is not one of ``file``.
        """
        for name in programs:
            require(name, self.programs, f"{file.name} has no program '{name}'", str(file))
        return "|".join(f"{re.escape(test_name(self.application, name))}(%|$)" for name in programs or self.programs)


def test_name(application: str, program: str) -> str:
    """The name of the test that measures a program: the application's for the program of that name."""
    return application if program == application else f"{application}_{program}"


def find(start: Path) -> Path | None:
    """The plumb.yaml of ``start`` or of the nearest folder above it; None if there is none."""
    return next((folder / FILE for folder in (start, *start.parents) if (folder / FILE).is_file()), None)


def here(named: Path | None) -> Path:
    """The plumb.yaml that is ``named``, or that of the present folder; raises :class:`PlumbError` without one."""
    if (file := named or find(Path.cwd())) is None:
        raise PlumbError(f"there is no {FILE} here or above", str(Path.cwd()), CURE)
    return file.resolve()


def named_or_here(named: Path | None) -> Path | None:
    """The plumb.yaml that is ``named``, or that of the present folder or above, if there is one."""
    return here(named) if named or find(Path.cwd()) else None


def load(file: Path) -> Application:
    """The application of ``file``. Raises :class:`PlumbError` with the first of its faults."""
    application = schemas.load("application", file, Application, FILE, CURE)
    if fault := next(faults(application, file), None):
        raise PlumbError(fault, str(file), "fix that key")
    return application


def checked(file: Path) -> tuple[Application | None, list[str]]:
    """The application of ``file``, and all its faults: ``KEY: FAULT``; None where its form is wrong.

    Raises :class:`PlumbError` where it is not YAML.
    """
    document = schemas.read_yaml(file, FILE, CURE)
    if wrong := schemas.faults(document, Application):
        return None, wrong
    application = msgspec.convert(document, Application)
    return application, list(faults(application, file))


def faults(application: Application, file: Path) -> Iterator[str]:
    """The faults that a type cannot show: ``KEY: FAULT``, in the order of the ``file``."""
    folder = file.parent / (application.code or "")
    if not folder.is_dir():
        yield f"code: there is no folder {folder}"
        return
    for name, program in application.programs.items():
        yield from (f"programs.{name}.{fault}" for fault in _faults(program, folder))
        absent = {} if application.build else program.absent(folder)  # which build may make
        yield from (f"programs.{name}.{key}: there is no {entry} beside {FILE}" for entry, key in absent.items())


def _faults(program: Program, folder: Path) -> Iterator[str]:
    try:
        if not program.words or not all(program.words):
            yield "command: an empty word"
    except ValueError as error:
        yield f"command: {error}"
    for name, rule in program.figures.items():
        where = f"figures.{name}"
        if len(rule.kinds) != 1:
            named = ", ".join(rule.kinds) or "none"
            yield f"{where}: one of pattern, json, csv and wall says where it is found; {named} are here"
        elif rule.pattern:
            yield from (f"{where}.pattern: {fault}" for fault in pattern_faults(rule.pattern, number=True))
        if not rule.wall and "unit" not in msgspec.to_builtins(rule):
            yield f"{where}.unit: missing: what the program prints behind the number, such as s or GB/s"
        if rule.wall and rule.unit != "s":
            yield f"{where}.unit: {rule.unit}: wall is measured in s: leave it out"
        if rule.rates and units.multiple(rule.unit)[0] != units.US:
            yield f"{where}.{rule.rates[0]}: {rule.unit} is not a unit of time, in which work is done"
        same = [work for work in rule.rates if rate_name(name, work) in program.figures]
        yield from (f"{where}.{work}: its rate is called {rate_name(name, work)}, as another figure" for work in same)
    for place, check in enumerate(program.checks):
        wanted = check.value is not None
        yield from (f"checks.{place}.pattern: {fault}" for fault in pattern_faults(check.pattern, number=wanted))
    for name in sorted(Rules(figures=program.figures, checks=program.checks).files):
        parts = Path(name).parts
        if (folder / name).exists() and any(_overlap(parts, Path(entry).parts) for entry in program.inputs):
            yield f"inputs: {name} is read as what the program writes, and a launch may not change an input"
    entries = [("inputs", entry) for entry in program.inputs] + [("copy", entry) for entry in program.copy]
    for place, (key, entry) in enumerate(entries):
        parts = Path(entry).parts
        overlapping = [earlier for _, earlier in entries[:place] if _overlap(Path(earlier).parts, parts)]
        if not parts:
            yield f"{key}: '{entry}': name the files and folders that the program reads"
        elif parts[0] in TAKEN:
            yield f"{key}: '{entry}': the name is that of a file of Plumbline in the same folder"
        elif overlapping:
            yield f"{key}: '{overlapping[0]}' and '{entry}' overlap: leave one out"
    yield from (f"placements: {fault}" for name in program.placements if (fault := binder.fault(name)))
    if program.memory and (fault := binder.fault("core", program.memory)):
        yield f"memory: {fault}"
    free = {placement.name for placement in binder.placements() if not placement.bound}
    if program.binds == "itself" and (unbound := free & set(program.placements)):
        yield f"binds: itself: placement {unbound.pop()} does not say where threads are to be bound"


def _overlap(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether of two paths, part by part, one is the other, or is in it."""
    common = min(len(first), len(second))
    return common > 0 and first[:common] == second[:common]


def pattern_faults(text: str, number: bool) -> Iterator[str]:
    """The fault of a regular expression, of which a group is a ``number`` or not."""
    try:
        pattern = re.compile(text, re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        yield f"not a regular expression: {error}"
        return
    if number and not pattern.groups:
        yield "it has no group: put ( ) around what matches the number"
    elif number and pattern.groups > 1 and "value" not in pattern.groupindex:
        yield "it has several groups: name that of the number: (?P<value>…)"


@dataclass(frozen=True)
class Source:
    """A state of the code in ``folder``, which its plumb.yaml names or is in.

    ``commit`` is its commit; None where the folder is in no repository: then ``digest`` is that of its files.
    ``changed``: tracked files differ from the commit that is checked out; ``commit`` is then one of its own, of no
    branch, that has the changes. ``repository`` is the folder that has the repository. ``variables`` are for the lines
    of ``build``: name and value.
    """

    folder: Path
    repository: Path | None
    commit: str | None
    changed: bool = False
    digest: str = ""
    variables: Variables = ()

    @property
    def identity(self) -> str:
        """The identity of this state of the code."""
        return self.commit or self.digest

    @property
    def key(self) -> str:
        """The identity of this state and its variables, as a file's name."""
        variables_hash = hashlib.sha256(repr(self.variables).encode()).hexdigest()[:8]
        return f"{self.identity[:12]}{f'-{variables_hash}' if self.variables else ''}"

    @property
    def label(self) -> str:
        """For people: the first digits of the commit, and the variables."""
        changes = " with changes that are not committed" if self.changed else ""
        return ", ".join([f"{self.identity[:12]}{changes}", *(f"{name}={value}" for name, value in self.variables)])


def code_folder(file: Path) -> Path:
    """The folder of the code that ``file`` describes: the ``code`` that it names, or its own."""
    named = load(file).code if file.exists() else None
    return (file.parent / (named or "")).resolve()


def present_code(file: Path, variables: Variables = ()) -> Source:
    """The code as it lies beside ``file``, with changes of tracked files that are not committed."""
    folder = code_folder(file)
    if (repository := git.top(folder)) is None:
        return Source(folder, None, None, digest=_digest(folder), variables=variables)
    commit = git.present(repository)
    return Source(folder, repository, commit, commit != git.commit("HEAD", repository), variables=variables)


def code_of_commit(file: Path, name: str, variables: Variables = ()) -> Source:
    """The code at the commit that ``name`` stands for. Raises :class:`PlumbError` where there is none."""
    folder = code_folder(file)
    if (repository := git.top(folder)) is None:
        cure = f"git init, or name the repository in {file.name} as code: FOLDER"
        raise PlumbError(f"'{name}' is not a commit: this is not a git repository", str(folder), cure)
    if (commit := git.commit(name, repository)) is None:
        raise PlumbError(f"'{name}' is not a commit", str(repository), "git log has them")
    return Source(folder, repository, commit, variables=variables)


def check_out(source: Source, target: Path) -> None:
    """Make a clean copy of the code in ``target``, which is not there yet.

    Of a repository it has what is committed, submodules too, and nothing else. Raises :class:`PlumbError` if git
    refuses.
    """
    if source.repository is None:
        shutil.copytree(
            source.folder, target, symlinks=True,
            ignore=lambda place, names: [name for name in names if _is_built(Path(place, name))],
        )  # fmt: skip
    else:
        git.check_out(source.repository, str(source.commit), target)


def _is_built(path: Path) -> bool:
    """Whether ``path`` lies in the folder of builds, which may lie within the code and has the copies of it."""
    return path.is_relative_to(paths.build().resolve())


def _digest(folder: Path) -> str:
    """SHA-256 of the names and contents of all files below ``folder``."""
    digest, size = hashlib.sha256(), 0
    within = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    for file in sorted(path for path in within if not _is_built(path)):
        size += file.stat().st_size
        if size > MOST_BYTES:
            raise PlumbError(
                f"the folder has more than {MOST_BYTES >> 30} GiB of files",
                str(folder),
                f"git init there, or move {FILE} to a folder with what is measured alone",
            )
        digest.update(f"{file.relative_to(folder)}\0{files.sha256(file)}\0".encode())
    return digest.hexdigest()
