"""Provider ``module``: stacks that a site already has, described in ``site-configs/SITE/stacks.yaml``.

A description names environment modules and programs; the programs are looked up with the modules loaded, and the
manifest records where they are and their SHA-256. STREAM and our kernels are built where there is a compiler wrapper.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import replace

from plumbline import mpi
from plumbline.base import files, paths, schemas
from plumbline.base.errors import PlumbError, pick
from plumbline.stacks import Work, kernels, libraries, manifest, stream

FILE = "stacks.yaml"
Entry = TypeVar("Entry")
#: Prints the environment without and with the modules named by its arguments; names are data here, never code.
_LOAD = r'module unload "$@" >/dev/null 2>&1; printf "\0\0"; env -0; printf "\0\0"; module load "$@" >&2 && env -0'
#: Variables that a shell and module systems keep for themselves, and those that every launch has anyway.
_NOT_FOR_LAUNCHES = re.compile(r"_|SHLVL|PWD|OLDPWD|BASH_|LMOD_|MODULE|LOADEDMODULES|MANPATH|INFOPATH|PATH$")


class Program(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A benchmark that a site has: ``program`` is an absolute path, or a name found with the modules loaded."""

    suite: manifest.Suite
    version: str
    program: str
    built: str = ""
    facts: dict[str, Any] = {}

    def entry(self, file: Path, built: str, command: list[str] | None = None) -> manifest.Benchmark:
        """Its element of a manifest, whose ``file`` was ``built`` so unless the description says how."""
        return manifest.benchmark(self.suite, self.version, file, self.built or built, command, dict(self.facts))


class Description(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stack that a site has.

    ``prefix`` is the MPI library's: by default that of the launcher, or of a compiler wrapper that the modules bring.
    ``accelerator``: whose memory the MPI library and its OSU programs take as buffers. Without ``benchmarks`` there
    are STREAM and our kernels, and programs of people (plumb.yaml).
    """

    modules: list[Annotated[str, schemas.whole("[A-Za-z0-9][A-Za-z0-9_./+=-]*")]] = []
    mpi: manifest.Version
    launcher: manifest.Launcher
    prefix: str | None = None
    compiler: manifest.Compiler
    environment: dict[manifest.Variable, str] = {}
    accelerator: manifest.Accelerator | None = None
    benchmarks: dict[manifest.BenchmarkId, Program] = {}
    sources: list[manifest.Source] = []


class Descriptions(Struct, frozen=True, forbid_unknown_fields=True):
    """site-configs/SITE/stacks.yaml: what a site already has, by modules and programs (provider ``module``)."""

    stacks: Annotated[
        dict[Annotated[str, schemas.whole("[A-Za-z0-9][A-Za-z0-9_.-]*")], Description], Meta(min_length=1)
    ]


def names() -> tuple[str, ...]:
    """The stacks that the sites of this checkout describe."""
    return tuple(sorted(_descriptions()))


def work(name: str, force: bool) -> Work | None:
    """How the manifest of stack ``name`` is made from its description; None if it is up to date."""
    known = _descriptions()
    otherwise = f"describe it in a site's {FILE}; known: {', '.join(sorted(known)) or 'none'}"
    file, entry = pick(known, name, f"no module stack is called '{name}'", "plumb stack install", otherwise)
    stack = _manifest(name, file, entry)
    try:
        present = manifest.load(name) if manifest.path(name).exists() else None
    except PlumbError:
        if not force:
            raise
        present = None  # it is written again
    if present and present.provider != "module":
        raise PlumbError(f"stack '{name}' is of another provider", str(manifest.path(name)), "give it another name")
    mark, digest = manifest.path(name).with_name("lock"), manifest.digest(stack)
    if present and not force and files.holds(mark, digest) and _is_complete(present, stack):
        without_stream = None if "stream" in present.benchmarks else "there is no STREAM"
        return kernels.work(name, without_stream, lambda _: _build(stack)) if _compiles(stack) else None

    def make(_: None) -> None:
        manifest.complete(stack, digest)
        if _compiles(stack):
            _build(stack)
        print(f"{name}: {len(manifest.load(name).benchmarks)} benchmarks", flush=True)

    return Work(str(file), make, plan="would be written from {}", begin="")


def _is_complete(present: manifest.Manifest, stack: manifest.Manifest) -> bool:
    """Whether all of an installed ``stack`` is as recorded, and a STREAM that was built for it fits this machine."""
    has_our_stream = "stream" in present.benchmarks.keys() - stack.benchmarks.keys()
    stream_fits = not has_our_stream or not (stream.outgrown(present) or stream.unfit(present))
    return stream_fits and not manifest.problems(present, leave_out="kernels")


def _compiles(stack: manifest.Manifest) -> bool:
    """Whether our kernels are built for it: it has a compiler wrapper, and the site describes no kernels itself."""
    if stack.prefix == "/":  # its programs are in no common folder: a wrapper there is another library's
        return False
    wrappers = stack.family.programs_in(Path(stack.prefix) / "bin", stack.family.compiler_wrappers)
    return any(wrappers) and all(entry.suite != "kernels" for entry in stack.benchmarks.values())


def _build(stack: manifest.Manifest) -> None:
    """Build STREAM, unless the site has one, and our kernels; a failed build is reported, and left out of the stack.

    The site's own programs need neither.
    """
    for build in (_add_stream, kernels.refresh):
        try:
            build(stack.name)
        except (PlumbError, OSError) as error:
            print(f"{stack.name}: {error}; it has the other benchmarks", flush=True)


def _add_stream(name: str) -> None:
    present = manifest.load(name)
    if "stream" in present.benchmarks:
        return
    origin, entry = stream.add(name, stream.Compiler.find())
    benchmarks = dict(sorted({**present.benchmarks, "stream": entry}.items()))
    manifest.save(replace(present, benchmarks=benchmarks, sources=[*present.sources, origin]))


def _descriptions() -> dict[str, tuple[Path, Description]]:
    """Stack name -> the file that describes it and the description."""
    label, cure = "the stacks of a site", "restore the file"
    return of_sites(FILE, "stack", lambda file: schemas.load("module-stacks", file, Descriptions, label, cure).stacks)


def of_sites(name: str, kind: str, read: Callable[[Path], Mapping[str, Entry]]) -> dict[str, tuple[Path, Entry]]:
    """The entries of the files ``name`` of sites and adopted stacks: the file, and the entry as ``read`` returns it.

    Raises :class:`PlumbError` for an entry, of this ``kind``, that is described twice.
    """
    described: dict[str, tuple[Path, Entry]] = {}
    for file in sorted((*paths.sites().glob(f"*/{name}"), *paths.stacks().glob(f"*/{name}"))):
        for called, entry in read(file).items():
            if called in described:
                raise PlumbError(
                    f"{kind} '{called}' is described twice", f"{described[called][0]} and {file}", "rename one"
                )
            described[called] = (file, entry)
    return described


def _manifest(name: str, file: Path, entry: Description) -> manifest.Manifest:
    loaded, added = loaded_by(name, entry.modules)
    search = loaded.pop("PATH")
    command = _find(entry.launcher.command, search, file)
    family = mpi.TABLE[entry.mpi.family]
    programs = sorted(entry.benchmarks.items())
    folders = (
        folder for folder in (command.parent, *added) if any(family.programs_in(folder, family.compiler_wrappers))
    )
    prefix = entry.prefix or str(next(folders, command.parent).parent)
    how = f"by the site, modules {' '.join(entry.modules) or 'none'}"
    stack = manifest.Manifest(
        schema=1,
        name=name,
        provider="module",
        mpi=manifest.Mpi(family=family.name, version=entry.mpi.version, abi=family.abi),
        compiler=entry.compiler,
        launcher=replace(entry.launcher, command=str(command)),
        prefix=prefix,
        # references to what no module sets are replaced at each launch
        environment=loaded
        | {
            name: manifest.REFERENCE.sub(lambda match: loaded.get(match[1], match[0]), value)
            for name, value in entry.environment.items()
        },
        modules=entry.modules,
        accelerator=entry.accelerator,
        benchmarks={ident: program.entry(_find(program.program, search, file), how) for ident, program in programs},
        sources=entry.sources,
    )
    return replace(stack, loads=libraries.loads(stack, None if stack.benchmarks else libraries.of_family(stack, file)))


def _find(program: str, search: str, file: Path) -> Path:
    if (executable := shutil.which(program, path=search)) is None:
        raise PlumbError(f"there is no program '{program}'", str(file), "write its absolute path, or load its module")
    return Path(executable).absolute()


def loaded_by(name: str, modules: list[str]) -> tuple[dict[str, str], list[Path]]:
    """The variables that the modules set with PATH as it is then, and the folders that they add to PATH.

    Only a login shell knows the command ``module``. ``name`` is the stack that they are for. For a variable that they
    prepend or append to, the value is what they add.
    """
    if not modules:
        return {"PATH": os.environ.get("PATH", os.defpath)}, []
    command = ["bash", "--login", "-c", _LOAD, "plumb", *modules]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        complaint = _complaint(done.stderr) or f"exit status {done.returncode}"
        raise PlumbError(
            f"cannot load {' '.join(modules)}: {complaint[:200]}", f"stack {name}", "module avail shows what there is"
        )
    _, *printed = done.stdout.split("\0\0", 2)  # the login scripts may print something first
    before, after = (dict(line.split("=", 1) for line in text.split("\0") if "=" in line) for text in printed)
    variables = {
        key: value.removeprefix(f"{before.get(key)}:").removesuffix(f":{before.get(key)}")
        for key, value in after.items()
        if value != before.get(key) and not _NOT_FOR_LAUNCHES.match(key)
    }
    present = before.get("PATH", "").split(":")
    added = [Path(folder) for folder in after["PATH"].split(":") if folder.startswith("/") and folder not in present]
    return {**variables, "PATH": after["PATH"]}, added


def _complaint(text: str) -> str:
    """The error in what a module system printed; Lmod names the modules in the line after it, then gives advice."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    number = next((at for at, line in enumerate(lines) if "error" in line.lower()), len(lines) - 1)
    end = number + (2 if lines and lines[number].endswith(":") else 1)
    return " ".join(lines[number:end])
