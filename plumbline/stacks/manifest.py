"""Stack manifests: their types, reading, writing, checking, and the environment that they ask for.

A manifest is a :class:`Manifest`; ``plumbline/base/schemas/manifest.json`` is made from it
(``tests/support/schema_files.py``). Members that a type does not name are an error, but for those below ``tuned``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from plumbline import mpi as families
from plumbline.base import files, paths, schemas
from plumbline.base.errors import PlumbError, suggest
from plumbline.base.files import sha256
from plumbline.base.schemas.site import Partition
from plumbline.mpi.settings import Configuration
from plumbline.stacks import PROVIDERS, engines

FILE = "manifest.json"
#: the name of a stack
NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_.@+-]*")
#: benchmark id -> IMB's program
IMB_PROGRAMS = {
    "imb-mpi1": "IMB-MPI1",
    "imb-nbc": "IMB-NBC",
    "imb-rma": "IMB-RMA",
    "imb-mt": "IMB-MT",
    "imb-p2p": "IMB-P2P",
}
#: those for the memory of GPUs, which only Intel MPI's own wheel has
IMB_GPU_PROGRAMS = {"imb-mpi1-gpu": "IMB-MPI1-GPU"}
#: of IMB: the number of messages is what follows, and for large ones no more than a volume in MB. IMB's own policy
#: also gives fewer to a size that takes longer than 10 s: the limit is set so that this does not apply
_IMB_ITERATIONS = ("-iter_policy", "dynamic", "-time", "1000", "-iter")
#: a reference to a variable in the value of another one
REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

Variable: TypeAlias = Annotated[str, schemas.whole("[A-Za-z_][A-Za-z0-9_]*")]
Suite: TypeAlias = Annotated[str, schemas.one_of(("stream", "imb", "osu", "kernels"))]
Accelerator: TypeAlias = Annotated[str, schemas.one_of(("cuda", "rocm"))]
BenchmarkId: TypeAlias = Annotated[str, schemas.whole("[a-z0-9][a-z0-9_-]*")]
Sha256: TypeAlias = Annotated[str, schemas.whole("[0-9a-f]{64}")]


class Version(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The family and the version of an MPI library."""

    family: Annotated[str, schemas.one_of(families.TABLE)]
    version: str


class Mpi(Version, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The MPI library of a stack; ``abi`` is the family of MPI libraries whose binaries it runs."""

    abi: Annotated[str, schemas.one_of(dict.fromkeys(family.abi for family in families.TABLE.values()))]


class Compiler(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The C compiler of the benchmarks."""

    name: str
    version: str
    path: str | None = None


class Launcher(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What starts ranks: ``command`` is mpirun or mpiexec, an absolute path.

    In a site's stacks.yaml it may be a name that is found with the modules loaded.
    """

    family: Annotated[str, schemas.one_of(families.KINDS)]
    command: str


class Benchmark(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A benchmark: ``file`` is the program or script that carries it, with its SHA-256; ``command`` starts it.

    ``built`` says how: compiler and flags, package and version, or Spack DAG hash. ``facts`` are what a test must know:
    array elements, interpreter, library hashes.
    """

    suite: Suite
    version: str
    command: Annotated[list[str], Meta(min_length=1)]
    file: str
    sha256: Sha256
    built: str
    facts: dict[str, Any] = {}


class Loads(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the programs load and read beside themselves, but for the system's own libraries.

    ``library`` is the MPI library, links resolved; ``files`` are it, its parts and settings and other libraries, each
    with its SHA-256.
    """

    library: str | None
    files: dict[str, Sha256]


class Source(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A package that a stack was made from.

    ``archive`` is its source, SHA-256 and URL, if that is not the one that Spack's own recipe names.
    """

    name: str
    version: str
    hash: str
    archive: str | None = None

    @property
    def text(self) -> str:
        """Package, version and hash, as the benchmarks of the manifest name their origin."""
        return f"{self.name} {self.version} ({self.hash})"


class Fingerprint(Struct, frozen=True):
    """Where a configuration was measured.

    ``library`` is the SHA-256 of the MPI library, ``cpu`` the model of the processor, ``kernel`` the release of Linux;
    ``ranks`` are those of each node.
    """

    library: str
    cpu: str
    kernel: str
    ranks: int
    placement: str
    nodes: Annotated[int, Meta(ge=1)] = 1


class Tuned(Struct, frozen=True):
    """What a manifest says of its settings: for which stack they were found (``of``), when, and in which session."""

    of: str
    time: str
    session: str
    fingerprint: Fingerprint
    configuration: Configuration


class Manifest(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A stack: what every provider ends in.

    In the values of ``environment``, the variables to set, ``${NAME}`` is replaced by the value that the variable has
    outside. ``accelerator``: whose memory the MPI library and its OSU programs take as buffers; None: none is known.
    ``sources`` are all packages that it was made from. ``loads`` is None in manifests of early versions. ``settings``
    are the MPI library's, by its own names; every launch proves that it has them. ``tuned``, of a stack NAME+tuned,
    says where they were found to be good; with it, ``settings`` and ``loads`` must be there. With ``container`` the
    programs are an image's, and each ``command`` is as it is there; a ``file`` is the host's name of it.
    """

    schema: Literal[1]
    name: Annotated[str, schemas.whole(NAME.pattern)]
    provider: Annotated[str, schemas.one_of(PROVIDERS)]
    mpi: Mpi
    compiler: Compiler
    launcher: Launcher
    prefix: str
    environment: dict[Variable, str]
    modules: list[str]
    accelerator: Accelerator | None = None
    benchmarks: dict[BenchmarkId, Benchmark]
    sources: list[Source]
    loads: Loads | None = None
    settings: dict[
        Annotated[str, schemas.whole("[A-Za-z0-9_]+")], Annotated[str, schemas.whole("[^\\x00-\\x1f\\x7f]+")]
    ] = {}
    tuned: Tuned | None = None
    container: engines.Container | None = None

    def __post_init__(self) -> None:
        if self.tuned and not (self.settings and self.loads):
            raise ValueError("a tuned stack needs `settings` and `loads`")

    @property
    def family(self) -> families.Family:
        """The line of its MPI library."""
        return families.TABLE[self.mpi.family]

    @property
    def made_of(self) -> str:
        """The name of the stack that a tuned one was made from; of another one, its own."""
        return self.tuned.of if self.tuned else self.name

    def command(self, start: Sequence[str], words: Sequence[str], ranks: int) -> list[str]:
        """The command with the launcher ``start`` that runs ``words`` in ``ranks`` processes of each node."""
        return self.container.command(start, words, ranks) if self.container else [*start, *words]

    def outside(self, path: str) -> str:
        """The host's name of the file that a program of the stack sees as ``path``."""
        return self.container.outside(path) if self.container else path

    def launcher_on(self, partition: Partition | None, environment: Mapping[str, str]) -> families.Launcher:
        """The launcher of its ranks on a partition (:func:`plumbline.mpi.launcher`)."""
        default = families.Launcher(self.family, self.launcher.family, self.launcher.command)
        return families.launcher(default, self.name, partition, environment)


#: of a stack of an early version, whose manifest does not say what its programs load
NOT_RECORDED = Loads(library=None, files={})


def imb_arguments(operation: str, largest: int, count: str) -> list[str]:
    """Arguments of an IMB program: all ranks take part, sizes are 0, 1, 2, 4, … up to ``largest`` bytes.

    ``count``: messages of a size, and their volume in MB, such as ``2000,80``.
    """
    return [operation, "-npmin", "65536", *_IMB_ITERATIONS, count, "-msglog", f"0:{largest.bit_length() - 1}"]


def path(name: str) -> Path:
    """Where the manifest of stack ``name`` lies."""
    return paths.stacks() / name / FILE


def names() -> list[str]:
    """The stacks that have a manifest, sorted; one whose replacement was killed is put back first."""
    for entry in paths.stacks().glob(f".*.old/{FILE}"):
        files.recover(paths.stacks() / entry.parent.name[1:].removesuffix(".old"))
    # a hidden folder has a stack that is being made, or replaced
    return sorted(entry.parent.name for entry in paths.stacks().glob(f"[!.]*/{FILE}"))


def load(name: str) -> Manifest:
    """The manifest of stack ``name``; raises :class:`PlumbError` if there is none, or none that is valid."""
    file = path(name)
    try:
        files.recover(file.parent)
        document = schemas.parse_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        installed = ", ".join(names()) or "none"
        cure = suggest(name, names(), f"plumb stack install {name}")
        raise PlumbError(f"stack '{name}' is not installed", str(file), f"{cure} (installed: {installed})") from None
    except (OSError, ValueError) as error:
        # no provider makes a tuned stack again
        cure = f"plumb stack remove {name}" if "+" in name else f"plumb stack install --force {name}"
        raise PlumbError(f"cannot read the manifest of stack '{name}': {error}", str(file), cure) from None
    manifest = schemas.convert("manifest", document, Manifest, str(file))
    if manifest.name != name:
        raise PlumbError(f"the manifest calls itself '{manifest.name}'", str(file), "reinstall the stack")
    return manifest


def load_all() -> list[Manifest]:
    """The manifests of all installed stacks, sorted by name."""
    return [load(name) for name in names()]


def that_has(program: str) -> str | None:
    """For an error line: the folder in which the first stack that has ``program``, such as mpirun, has it."""
    folders = [Path(manifest.prefix, "bin") for manifest in load_all() if "/" not in program]
    there = next((folder for folder in folders if (folder / program).is_file()), None)
    return f"an installed stack has it: PATH={there}:$PATH" if there else None


def first(known: Sequence[str], benchmark: str) -> str:
    """The first of ``known`` stacks that is installed and has ``benchmark``; raises :class:`PlumbError`."""
    for name in known:
        if name in names() and benchmark in load(name).benchmarks:
            return name
    raise PlumbError(
        "no stack of the partition has the kernels",
        f"its stacks: {', '.join(known) or 'none'}",
        "plumb stack install NAME",
    )


def document(manifest: Manifest) -> dict[str, Any]:
    """The JSON document that a manifest is."""
    return dict(msgspec.to_builtins(manifest))


def save(manifest: Manifest, folder: Path | None = None) -> Path:
    """Write a manifest in one step, to ``folder`` or to the stack's own; returns the file.

    In its own folder the stack counts as installed from then on. Raises :class:`PlumbError` unless the manifest is
    valid.
    """
    file, written = folder / FILE if folder else path(manifest.name), document(manifest)
    schemas.convert("manifest", written, Manifest, str(file))
    files.replace(file, json.dumps(written, indent=2) + "\n")
    return file


def complete(manifest: Manifest, mark: str) -> None:
    """Write the manifest of a stack whose programs :func:`check` passes, and ``mark`` for :func:`stale`, the last."""
    check(manifest)
    files.replace(save(manifest).with_name("lock"), f"{mark}\n")


def moved(manifest: Manifest, staging: Path, place: Path) -> Manifest:
    """The manifest of a stack built in the folder ``staging``, as it is once that folder is ``place``, beside it."""
    text = json.dumps(document(manifest))
    for folder in (staging.resolve(), staging):
        text = text.replace(json.dumps(str(folder))[1:-1], json.dumps(str(folder.with_name(place.name)))[1:-1])
    return msgspec.json.decode(text, type=Manifest)


def digest(manifest: Manifest) -> str:
    """SHA-256 of a stack's manifest, which differs between two states of the stack."""
    return hashlib.sha256(json.dumps(document(manifest), sort_keys=True).encode()).hexdigest()


def benchmark(
    suite: str,
    version: str,
    file: Path,
    built: str,
    command: list[str] | None = None,
    facts: dict[str, Any] | None = None,
) -> Benchmark:
    """An element of ``benchmarks``: ``file`` carries the program and is started alone unless ``command`` says how."""
    return Benchmark(
        suite=suite,
        version=version,
        command=command or [str(file)],
        file=str(file),
        sha256=sha256(file),
        built=built,
        facts=facts or {},
    )


def source(package: str, archive: Path) -> Source:
    """An element of ``sources``: an archive of the package registry, which has the package's version in its name."""
    version = archive.name.removesuffix(".tar.gz").split("-")[1]
    return Source(name=package, version=version, hash=f"sha256:{sha256(archive)}")


def problems(manifest: Manifest, leave_out: str | None = None) -> list[str]:
    """The faults of an installed stack, one line each; empty if everything is there and unchanged.

    Checked are the launcher, every program and what the programs load; programs of the suite ``leave_out`` are not.
    """
    name, faults = manifest.name, []
    launcher, container = manifest.launcher.command, manifest.container
    if not (container and container.launcher is None) and not os.access(launcher, os.X_OK):
        faults.append(f"stack {name}: launcher is missing: {launcher}")
    if container:  # the image's digest covers its programs
        return [*faults, *(f"stack {name}: {fault}" for fault in container.faults()), *_changes(manifest)]
    for ident, benchmark in manifest.benchmarks.items():
        if benchmark.suite == leave_out:
            continue
        program, file = benchmark.command[0], Path(benchmark.file)
        if not os.access(program, os.X_OK):
            faults.append(f"stack {name}: program of {ident} is missing: {program}")
        elif not file.is_file():
            faults.append(f"stack {name}: file of {ident} is missing: {file}")
        elif files.sha256_once(file) != benchmark.sha256:
            faults.append(f"stack {name}: {ident} is not the program that was recorded (SHA-256 differs): {file}")
    return [*faults, *_changes(manifest)]


def _changes(manifest: Manifest) -> Iterator[str]:
    """Which of the files that the programs load are not those that were recorded."""
    name, loads = manifest.name, manifest.loads
    if loads is None:
        yield f"stack {name}: it is not recorded what its programs load (made by an earlier version)"
        return
    for entry, recorded in loads.files.items():
        try:
            if files.sha256_once(Path(entry)) != recorded:
                yield f"stack {name}: what its programs load was changed (SHA-256 differs): {entry}"
        except FileNotFoundError:
            yield f"stack {name}: a file that its programs load is missing: {entry}"
        except OSError as error:
            yield f"stack {name}: a file that its programs load cannot be read: {error}"
    imported = modules(Path(manifest.prefix)) if manifest.provider == "wheel" else []
    added = sorted({str(file) for file in (*parts(manifest, loads.library), *imported)} - loads.files.keys())
    yield from (f"stack {name}: its programs would load what was not there before: {file}" for file in added)


def modules(prefix: Path) -> list[Path]:
    """The files that a Python with this prefix imports, or runs at its start."""
    return [
        file
        for file in prefix.glob("lib/python*/site-packages/**/*")
        if file.suffix in (".py", ".pyc", ".so", ".pth") and file.parent.name != "__pycache__"
    ]


def recorded(manifest: Manifest, benchmark: Benchmark) -> dict[Path, str | None]:
    """The files that a launch of ``benchmark`` runs and loads, with their SHA-256; None where none is recorded."""
    started = dict.fromkeys((manifest.launcher.command, *(() if manifest.container else benchmark.command[:1])))
    known = {**started, benchmark.file: benchmark.sha256, **(manifest.loads or NOT_RECORDED).files}
    return {Path(file): digest for file, digest in known.items()}


def parts(manifest: Manifest, library: str | None) -> set[Path]:
    """The files that the MPI ``library`` of a stack loads and reads by itself, as they are now; links are resolved."""
    family = manifest.family
    matches = [file for pattern in family.settings for file in Path(manifest.prefix).glob(pattern)]
    if library is not None:
        matches += [file for pattern in family.parts for file in Path(library).parent.glob(pattern)]
    return {file.resolve() for file in matches if file.is_file()}


def stale(name: str, mark: str, changed: str, leave_out: str | None = None) -> str | None:
    """Why stack ``name`` must be made (again); None when it is complete.

    ``mark`` is compared with the file ``lock`` beside the manifest, ``changed`` is the reason where they differ.
    Programs of the suite ``leave_out`` are not checked.
    """
    if not path(name).exists():
        return "not installed"
    try:
        manifest = load(name)
    except PlumbError as error:
        return error.message
    if not files.holds(path(name).with_name("lock"), mark):
        return changed
    return next(iter(problems(manifest, leave_out)), None)


def check(manifest: Manifest) -> None:
    """Raise :class:`PlumbError` unless all programs of the stack, and what they load, have their recorded SHA-256."""
    if faults := problems(manifest):
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        again = f"plumb stack install --force {manifest.made_of}"
        cure = again if manifest.provider == "wheel" else "make the stack again"
        raise PlumbError(faults[0] + more, str(path(manifest.name)), cure)


def expand(value: str, base: Mapping[str, str]) -> str:
    """Replace ``${NAME}`` by the value in ``base``.

    In a list separated by colons an element that is only an unset reference is dropped, because an empty element
    of a search path means the working directory.
    """
    pieces = [(piece, REFERENCE.sub(lambda match: base.get(match[1], ""), piece)) for piece in value.split(":")]
    return ":".join(text for piece, text in pieces if text or not piece)


def around(manifest: Manifest) -> dict[str, str]:
    """The variables of programs of a stack that we start outside a launch, such as its compiler wrapper.

    No variable of this process says otherwise what an MPI library does, and compiles: the module of another library
    puts its headers into CPATH.
    """
    foreign = (*families.VARIABLES, "CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return kept | environment(manifest, os.environ)


def environment(manifest: Manifest, base_env: Mapping[str, str]) -> dict[str, str]:
    """The variables of the stack, expanded, and of its settings; the caller lays them over ``base_env``."""
    variables = {name: expand(value, base_env) for name, value in manifest.environment.items()}
    settings = {manifest.family.setting_variable(name): value for name, value in manifest.settings.items()}
    return {**variables, **(engines.user() if manifest.container else {}), **settings}
