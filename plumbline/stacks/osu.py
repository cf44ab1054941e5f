"""OSU's own programs in C for the stacks of wheels: their archive, by its SHA-256, and its build by the stack's mpicc.

Where no place has the archive, or the programs do not compile, the stack keeps mpi4py's port of some of them to Python,
whose records are of other series (:func:`plumbline.records.variant.of_program`).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from msgspec.structs import replace

from plumbline.base import files, group, paths
from plumbline.base.errors import PlumbError
from plumbline.parsers.osu import TITLES
from plumbline.stacks import archive, fetch, kernels, libraries, locked, manifest, tuned
from plumbline.stacks.manifest import Benchmark, Manifest, Source
from plumbline.stacks.stream import Compiler

PACKAGE, VERSION = "osu-micro-benchmarks", "7.5.2"
#: of the archive, as the recipe of Spack has it that spack-env's locks pin
SHA256 = "618de3d0b1122f73a9229177d2da1e5cd62e431190580cb915f2605849cbbbdc"
ARCHIVE = f"{PACKAGE}-{VERSION}.tar.gz"
PLACES = (
    f"https://mvapich.cse.ohio-state.edu/download/mvapich/{ARCHIVE}",
    f"https://mirror.spack.io/_source-cache/archive/{SHA256[:2]}/{SHA256}.tar.gz",
)
#: names a file or a URL in place of PLACES
VARIABLE = "PLUMB_OSU_ARCHIVE"
#: s for all places together, and s after which places that failed are asked again: a network may swallow packets
PATIENCE_S, AGAIN_S = 10.0, 86400.0
#: Copies a URL to a file. A process of its own, because nothing else ends the look-up of a name.
COPY = """
import shutil, sys, urllib.request
try:
    with urllib.request.urlopen(sys.argv[1]) as source, open(sys.argv[2], "wb") as target:
        shutil.copyfileobj(source, target)
except OSError as error:
    sys.exit(str(getattr(error, "reason", error)))
"""
#: with two decimals, as by default, 0.14 us hides changes of 7 %
FLAGS = "CPPFLAGS=-UFLOAT_PRECISION -DFLOAT_PRECISION=4"
MARK = "osu.json"


def kept() -> Path:
    """Where the archive is kept once a place had it."""
    return paths.stacks() / "osu" / ARCHIVE


def stale(name: str) -> str | None:
    """Why OSU's programs must be built for installed stack ``name``; None if they are, or cannot be had now."""
    is_done = fetch.mark(paths.stacks() / name / "osu" / MARK).get("sources") == _fingerprint(manifest.load(name))
    can_be_had = os.access(paths.stacks(), os.W_OK) and (kept().exists() or _places())
    return "OSU's programs in C are not there yet" if can_be_had and not is_done else None


def refresh(name: str) -> None:
    """Build OSU's programs for installed stack ``name`` unless that is done.

    One line says why the port stays in use, where that is so.
    """
    if stale(name) is None:
        return
    stack, prefix = manifest.load(name), paths.stacks() / name / "osu"
    print(f"{name}: building OSU {VERSION}", flush=True)
    try:
        built = _build(stack, _fetched(), prefix)
    except PlumbError as error:
        print(f"OSU runs as mpi4py's port, shown as (mpi4py): {error}", flush=True)
    else:
        origin = Source(name=PACKAGE, version=VERSION, hash=f"sha256:{SHA256}")
        sources = [*(item for item in stack.sources if item.name != PACKAGE), origin]
        stack = replace(stack, benchmarks=dict(sorted((stack.benchmarks | built).items())), sources=sources)
        manifest.save(stack)
        tuned.renew(stack)
        print(f"{name}: {len(built)} programs of OSU", flush=True)
    if kept().exists():  # what does not compile would not compile again
        files.replace(prefix / MARK, json.dumps({"sources": _fingerprint(stack)}) + "\n")


def _fingerprint(stack: Manifest) -> str:
    compiler = Compiler.find()
    made_of = (SHA256, FLAGS, compiler.path, compiler.version, manifest.document(stack)["mpi"])
    return hashlib.sha256(repr(made_of).encode()).hexdigest()


def _places() -> list[str]:
    """The URLs to ask for the archive; none if they failed a short while ago, by a clock that was right then."""
    named, note = os.environ.get(VARIABLE), kept().with_name("failed")
    if named and "://" not in named:
        return [Path(named).expanduser().absolute().as_uri()]
    if archive.place().is_dir() and not named:  # of a machine without network
        packed = archive.place() / archive.WHEELS / ARCHIVE
        return [packed.as_uri()] if packed.exists() else []
    places = [named] if named else list(PLACES)
    return [] if files.holds(note, "\n".join(places)) and 0 <= time.time() - note.stat().st_mtime < AGAIN_S else places


def _fetched() -> Path:
    """The archive. Raises :class:`PlumbError` if no place has it: each place, and the reason."""
    with locked("osu"):
        if kept().exists() and files.sha256(kept()) == SHA256:
            return kept()
        places, faults = _places(), []
        for place in places:
            try:
                with files.replacing(kept()) as fresh:
                    _copy(place, fresh, PATIENCE_S / len(places))
                return kept()
            except PlumbError as error:
                faults.append(f"{urlsplit(place).netloc or urlsplit(place).path}: {error.message}")
        if places:
            files.replace(kept().with_name("failed"), "\n".join(places))
    message = f"{ARCHIVE} cannot be had: {'; '.join(faults) or 'no place had it a short while ago'}"
    raise PlumbError(message, cure=f"{VARIABLE}=FILE or URL, then plumb stack install NAME")


def _copy(place: str, target: Path, limit_s: float) -> None:
    """Copy the archive from the URL ``place``; raises :class:`PlumbError` with the reason if it cannot be had there."""
    command = [*paths.python(), "-I", "-c", COPY, place, str(target)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise PlumbError(f"no answer within {limit_s:g} s") from None
    if done.returncode != 0:
        raise PlumbError((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
    if (digest := files.sha256(target)) != SHA256:
        raise PlumbError(f"another file, SHA-256 {digest}")


def _build(stack: Manifest, source: Path, prefix: Path) -> dict[str, Benchmark]:
    """Build the programs whose output the suite reads; their entries for the manifest, by their names."""
    around, compiler, mpicc = manifest.around(stack), Compiler.find(), kernels.wrapper(stack)
    owner, complaint = f"{stack.name}-osu", "OSU's programs do not compile"
    with tempfile.TemporaryDirectory(prefix="plumb-osu-") as scratch, files.staged(prefix) as fresh:
        shutil.unpack_archive(source, scratch)
        (top,) = Path(scratch).iterdir()
        # its programs are in C, whatever its build calls the linker
        fetch.call(["./configure", f"CC={mpicc}", f"CXX={mpicc}", FLAGS], complaint, owner, around, top)
        sources = (file for file in top.glob("c/mpi/**/osu_*.c") if file.stem.removeprefix("osu_") in TITLES)
        fresh.mkdir()
        copied = list(top.glob("COPYRIGHT*"))
        for folder, members in group((file.parent, file.stem) for file in sources).items():
            fetch.call(["make", f"-j{os.cpu_count()}", *members], complaint, owner, around, folder)
            copied += [folder / member for member in members]
        for file in copied:
            shutil.copy(file, fresh)
    built = f"gcc {compiler.version}, four decimals, from {PACKAGE} {VERSION} (sha256:{SHA256})"
    library, programs = Path(str((stack.loads or manifest.NOT_RECORDED).library)), sorted(prefix.glob("osu_*"))
    for program in programs:
        libraries.check_mpi(program, program.name, stack, library)
    loaded = {"library": str(library), "library_sha256": manifest.sha256(library)}
    return {file.name: manifest.benchmark("osu", VERSION, file, built, facts=dict(loaded)) for file in programs}
