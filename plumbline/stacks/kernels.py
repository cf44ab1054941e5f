"""Our own kernels: built for each stack with its compiler wrapper, and once against the standard MPI ABI.

The ABI build is one set of programs in ``stacks/abi/FINGERPRINT``: every stack whose library has the ABI
(``libmpi_abi.so.1``) runs the same files, so that libraries are compared without recompiling. A stack offers
them as ``NAME-abi``.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.stacks import Work, abi, blas, fetch, libraries, locked, manifest, tuned
from plumbline.stacks.manifest import Benchmark, Loads, Manifest
from plumbline.stacks.stream import Compiler

FOLDER = "custom-kernels"
#: Parts of the source tree that the programs are made from.
PARTS = ("kernels", "runtime", "bind", "common")
MARK = "kernels.json"


def refresh(name: str) -> bool:
    """Build the kernels of installed stack ``name`` unless they are up to date; returns whether it built them."""
    stack = manifest.load(name)
    if (reason := stale(name)) is None:
        return False
    print(f"{name}: building the kernels ({reason})", flush=True)
    source = paths.suite() / FOLDER
    prefix = paths.stacks() / name / "kernels"
    built = build(stack, source, prefix)
    others = {key: entry for key, entry in stack.benchmarks.items() if entry.suite != "kernels"}
    with locked("abi"):  # until the manifest names the ABI build, nothing but the lock keeps others from removing it
        stack = replace(stack, benchmarks=dict(sorted((others | built | _abi(stack, source)).items())))
        before, loads = stack.loads, _loads(stack)
        if before and before.library and loads.library != before.library:
            message = f"{wrapper(stack)} takes another MPI library: {loads.library}"
            raise PlumbError(message, f"stack {name} has {before.library}", "load the modules of one MPI library")
        stack = replace(stack, loads=loads)
        manifest.save(stack)
        tuned.renew(stack)
        _prune()
    files.replace(prefix / MARK, json.dumps({"sources": fingerprint(source, stack), "files": digest(source)}) + "\n")
    print(f"{name}: {len(built)} kernels", flush=True)
    return True


def work(name: str, more: str | None = None, make: Callable[[Any], object] | None = None) -> Work | None:
    """The work on an installed stack whose kernels alone are to be built; None if they are up to date.

    ``more`` is a further reason; ``make`` builds more than the kernels.
    """
    reason = stale(name) or more
    plan = "kernels would be built ({})"
    return Work(reason, make or (lambda _: refresh(name)), plan=plan, begin="") if reason else None


def _loads(stack: Manifest) -> Loads:
    """The files that the stack's programs load, with the kernels as they are now.

    Files recorded when the stack was made keep their recorded SHA-256, even if they changed since; only the files of
    the BLAS, which belongs to the kernels, are recorded anew.
    """
    before = stack.loads or manifest.NOT_RECORDED
    blas_prefix = f"{paths.stacks() / 'blas'}/"  # MKL loads what suits the processor, which ldd does not list
    library = Path(before.library) if before.library else None
    loads = libraries.loads(stack, library, Path(blas_prefix).glob("lib/*"))
    kept = {file: digest for file, digest in before.files.items() if not file.startswith(blas_prefix)}
    return replace(loads, files=loads.files | kept)


def stale(name: str) -> str | None:
    """Why the kernels of installed stack ``name`` must be built (again); None when they need not."""
    stack = manifest.load(name)
    mark = fetch.mark(paths.stacks() / name / "kernels" / MARK)
    if "sources" not in mark or all(entry.suite != "kernels" for entry in stack.benchmarks.values()):
        return "there are none yet"
    if mark["sources"] != fingerprint(paths.suite() / FOLDER, stack):
        return "their sources, the compiler or the library changed"
    return next(iter(manifest.problems(stack)), None)


def outdated(stack: Manifest) -> PlumbError | None:
    """The error to report if a stack's kernels were built from other sources than the present ones; else None.

    Another compiler or CPU does not count, because a job may check this on another node. None also where the sources
    are not recorded, as for a stack whose kernels :func:`refresh` did not build.
    """
    prefix = paths.stacks() / stack.made_of / "kernels"  # a tuned stack has those of the one that it is made of
    if fetch.mark(prefix / MARK).get("files") in (None, digest(paths.suite() / FOLDER)):
        return None
    return PlumbError(
        f"the kernels of stack {stack.name} are older than their sources",
        str(prefix),
        f"plumb stack install {stack.made_of}",
    )


def build(stack: Manifest, source: Path, prefix: Path) -> dict[str, Benchmark]:
    """Build the kernels of ``source`` (a ``custom-kernels`` folder) for a stack; its entries for the manifest.

    The programs go to ``prefix``/bin. Raises :class:`PlumbError` with the compiler's first error line.
    """
    return {
        program.name: _entry(program, stack, source, "")
        for program in _compile(stack, source, prefix, stack.name, wrapper(stack))
    }


def wrapper(stack: Manifest) -> Path:
    """The stack's compiler wrapper; raises :class:`PlumbError` if it has none."""
    folder = Path(stack.prefix) / "bin"
    compiler = next(stack.family.programs_in(folder, stack.family.compiler_wrappers), None)
    if compiler is None:
        cure = f"one of {', '.join(stack.family.compiler_wrappers)}"
        raise PlumbError(f"stack '{stack.name}' has no compiler wrapper", str(folder), cure)
    return compiler


def fingerprint(source: Path, stack: Manifest | str) -> str:
    """SHA-256 that changes when a source file, the compiler, its target CPU, the MPI library or the BLAS changes.

    ``stack`` has the library, or says what stands for it.
    """
    compiler = Compiler.find()
    library = stack if isinstance(stack, str) else manifest.document(stack)["mpi"]
    made_with = f"{compiler.path} {compiler.version} {compiler.aim()} {library}"
    return hashlib.sha256(f"{made_with} {digest(source)}".encode()).hexdigest()


def digest(source: Path) -> str:
    """SHA-256 of the source files and of the locks of the BLAS."""
    checksum = hashlib.sha256(b"".join(lock.read_bytes() for lock in blas.lock_files()))
    for file in (file for part in PARTS for file in sorted((source / part).rglob("*"))):
        if file.suffix in (".c", ".h", ".cmake") or file.name == "CMakeLists.txt":
            checksum.update(f"{file.relative_to(source)}\0".encode() + file.read_bytes())
    return checksum.hexdigest()


def _compile(stack: Manifest, source: Path, prefix: Path, label: str, compiler_wrapper: Path) -> list[Path]:
    """Configure, build and install; the installed programs."""
    owner = f"{label}-kernels"
    folder = paths.build() / "kernels" / f"{label}-{hashlib.sha256(f'{source} {prefix}'.encode()).hexdigest()[:8]}"
    environment = manifest.around(stack)
    shutil.rmtree(folder, ignore_errors=True)
    compiler = Compiler.find()
    options = [
        f"-DCMAKE_C_COMPILER={compiler.path}",
        f"-DPLUMB_TARGET={';'.join(compiler.target)}",
        f"-DPLUMB_BLAS_PREFIX={blas.prefix()}",
        f"-DMPI_C_COMPILER={compiler_wrapper}",
    ]
    complaint = "the kernels do not compile"
    fetch.call(["cmake", "-S", str(source / "kernels"), "-B", str(folder), *options], complaint, owner, environment)
    fetch.call(["cmake", "--build", str(folder), "--parallel", str(os.cpu_count())], complaint, owner, environment)
    with files.staged(prefix) as fresh:  # what is there now stays until the new programs are complete
        fetch.call(["cmake", "--install", str(folder), "--prefix", str(fresh)], complaint, owner, environment)
    return sorted((prefix / "bin").iterdir())


def _entry(program: Path, stack: Manifest, source: Path, how: str) -> Benchmark:
    compiler = Compiler.find()
    built = f"gcc {compiler.version} -O3 for {compiler.aim()}{how}, from {FOLDER}"
    facts = {"instructions": compiler.needed(), **(blas.facts() if program.name == "dgemm" else {})}
    return manifest.benchmark("kernels", fingerprint(source, stack)[:12], program, built, facts=facts)


def _abi(stack: Manifest, source: Path) -> dict[str, Benchmark]:
    """The entries of the programs built against the standard ABI; none where the library does not have it.

    The caller holds the lock ``abi``.
    """
    if abi.library(stack) is None:
        return {}
    wanted = fingerprint(source, "standard ABI")
    # One folder per state of the sources: another stack may still hold programs of an older one.
    prefix = paths.stacks() / "abi" / wanted[:12]
    if fetch.mark(prefix / MARK).get("sources") != wanted:
        wrappers = abi.write_wrappers(stack, paths.build() / "kernels" / "abi-wrappers")
        _compile(stack, source, prefix, "abi", wrappers / "mpicc")
        files.replace(prefix / MARK, json.dumps({"sources": wanted}) + "\n")
    entries = {}
    for program in sorted((prefix / "bin").iterdir()):
        abi.check(program, f"{program.name}-abi", stack)
        entries[f"{program.name}-abi"] = _entry(program, stack, source, " against the standard MPI ABI")
    return entries


def _prune() -> None:
    """Remove ABI builds that no installed stack refers to; a manifest that cannot be read may refer to any.

    The caller holds the lock ``abi``.
    """
    try:
        programs = [entry.file for item in manifest.load_all() for entry in item.benchmarks.values()]
    except PlumbError:
        return
    used = {Path(program).parent.parent for program in programs}
    for folder in (paths.stacks() / "abi").glob("*"):
        if folder not in used:
            shutil.rmtree(folder)
