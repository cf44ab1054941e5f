"""The environment that a launch starts from: a few inherited variables, and none that changes a figure unasked.

What the stack, the site, the test and the launcher set is laid over it (:mod:`plumbline.launch.prepare`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from plumbline import mpi, schedulers

#: variables in which a scheduler names a job's GPUs: plumb-bind refuses to choose one if they are not all of a node's
DEVICES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
#: Inherited variables that every launch gets; a name that ends in ``_`` is a prefix. There is no HOME: each
#: launch has its own (:func:`at_home`).
KEPT = (
    "PATH", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "LC_", "TZ", "XDG_RUNTIME_DIR",
    "PLUMB_WITNESS_LIB", *DEVICES, *schedulers.JOB_VARIABLES,
)  # fmt: skip
#: those of them that say how a launch runs: records name them
STATED = ("PLUMB_WITNESS_LIB", *DEVICES, *schedulers.STEP_SETTINGS)
#: Variables that change figures: of the dynamic linker, memory, threads, mathematical libraries, Python and MPI.
#: Records say which of these were inherited and not handed on.
CHANGING = (
    "LD_", "GLIBC_TUNABLES", "MALLOC_", "OMP_", "GOMP_", "KMP_", "OPENBLAS_", "GOTO_", "MKL_", "BLIS_",
    "PYTHONPATH", "PYTHONHOME", "PYTHONMALLOC", "MPI4PY_", *mpi.VARIABLES,
)  # fmt: skip


@dataclass(frozen=True)
class Inherited:
    """What a launch inherits (``kept``), what of it records name (``stated``), and what would change figures."""

    kept: dict[str, str]
    stated: dict[str, str]
    changing: dict[str, str]

    def removed(self, given: Mapping[str, str]) -> list[str]:
        """Names in ``changing`` whose value, or a part of it, a launch with the variables ``given`` lacks.

        The parts are those of a search path, between colons.
        """
        lists = {name: set(value.split(":")) for name, value in self.changing.items()}
        return sorted(name for name, wanted in lists.items() if not wanted <= set(given.get(name, "").split(":")))


def inherit(environment: Mapping[str, str]) -> Inherited:
    """What a launch gets of ``environment``."""
    kept = {name: value for name, value in environment.items() if _among(name, KEPT)}
    return Inherited(
        kept,
        {name: value for name, value in kept.items() if _among(name, STATED)},
        {name: value for name, value in environment.items() if name not in kept and _among(name, CHANGING)},
    )


def _among(name: str, names: tuple[str, ...]) -> bool:
    return any(name.startswith(wanted) if wanted.endswith("_") else name == wanted for wanted in names)


def at_home(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """``environment`` with ``folder`` for HOME unless it has one: no settings file of the user's home is read."""
    return {"HOME": str(folder), **environment}
