"""A partition with ``launcher: srun``: which PMI each MPI library speaks with Slurm, and what it needs for that.

https://slurm.schedmd.com/mpi_guide.html
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline.errors import PlumbError

#: the ``--mpi`` of every MPI family; ``srun_mpi`` of a partition says otherwise
MPI_TYPES = {"openmpi": "pmix", "mpich": "pmi2", "mvapich": "pmi2", "intelmpi": "pmi2"}
#: where distributions and sites put Slurm's libraries; beside srun's own prefix
LIBRARY_FOLDERS = (
    "usr/lib64",
    "usr/lib/{machine}-linux-gnu",
    "usr/lib64/slurm",
    "usr/lib/{machine}-linux-gnu/slurm",
    "usr/lib/{machine}-linux-gnu/slurm-wlm",
    "usr/lib",
    "usr/local/lib64",
    "usr/local/lib",
    "opt/slurm/lib64",
    "opt/slurm/lib",
    "opt/slurm/current/lib",
)
#: the library by which a program speaks that PMI
PMI_LIBRARIES = {"pmi2": ("libpmi2.so", "libpmi2.so.0")}
#: seconds that ``srun --mpi=list`` may take
PATIENCE_S = 30.0


def launcher(
    manifest: dict[str, Any], partition: dict[str, Any], environment: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The launcher element for :func:`launchers.prefix`, and the variables that this MPI library needs under srun.

    ``environment``: what the launch has already. Raises :class:`PlumbError` outside of a job, where srun does not offer
    the PMI, and for Intel MPI without a library that speaks it.
    """
    where = f"partition {partition['name']}"
    family = manifest["mpi"]["family"]
    kind = partition.get("srun_mpi", {}).get(family, MPI_TYPES[family])
    if "SLURM_JOB_ID" not in environment:
        raise PlumbError("ranks are started by srun, and this is not inside a job of Slurm", where, "submit it")
    offered = _offered()
    if kind not in offered:
        cure = f"srun --mpi=list offers {', '.join(offered) or 'nothing'}; choose with srun_mpi: {{{family}: …}}"
        raise PlumbError(f"{manifest['name']} needs srun --mpi={kind}, which is not offered here", where, cure)
    needs: dict[str, str] = {}
    if family == "openmpi" and kind.startswith("pmix"):
        # Slurm's PMIx names munge, for which the library's own PMIx may have no plugin: "psec munge not found"
        needs["PMIX_MCA_psec"] = "native"
    if family == "intelmpi" and kind in PMI_LIBRARIES and "I_MPI_PMI_LIBRARY" not in environment:
        needs["I_MPI_PMI_LIBRARY"] = str(_library(kind, where))
    return {"family": "srun", "command": "srun", "mpi": kind}, needs


@functools.cache
def _offered() -> tuple[str, ...]:
    """The names in the answer of ``srun --mpi=list``.

    Lines are ``MPI plugin types are...``, then a name each, and ``specific pmix plugin versions available: pmix_v4``;
    before Slurm 21.08 ``srun: MPI types are...`` and ``srun: pmi2``.
    """
    try:
        answer = subprocess.run(["srun", "--mpi=list"], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    except OSError as error:
        cure = "set launcher: mpirun in site.yaml, or put srun into PATH"
        raise PlumbError(f"srun cannot be started: {error.strerror}", "launcher: srun", cure) from error
    except subprocess.TimeoutExpired as error:
        raise PlumbError(f"srun --mpi=list hangs for {PATIENCE_S:g} s", "launcher: srun", "mend Slurm") from error
    found: list[str] = []
    for line in (answer.stdout + "\n" + answer.stderr).splitlines():
        text = line.removeprefix("srun:").strip()
        if re.fullmatch(r"[a-z][a-z0-9_]*", text):
            found.append(text)
        elif "versions available:" in text:
            found += re.findall(r"[a-z][a-z0-9_]*", text.rpartition(":")[2])
    return tuple(dict.fromkeys(found))


def _library(kind: str, where: str, root: Path = Path("/")) -> Path:
    folders = [root / folder.format(machine=os.uname().machine) for folder in LIBRARY_FOLDERS]
    srun = shutil.which("srun")
    if srun is not None:
        prefix = Path(srun).resolve().parent.parent
        folders = [prefix / "lib64", prefix / "lib", prefix / "lib" / "slurm", *folders]
    for folder in folders:
        for name in PMI_LIBRARIES[kind]:
            if (folder / name).is_file():
                return folder / name
    wanted = PMI_LIBRARIES[kind][0]
    cure = f"install it (Debian: libpmi2-0, Red Hat: slurm-libpmi), or set I_MPI_PMI_LIBRARY in {where}'s environment"
    raise PlumbError(f"Intel MPI under srun needs Slurm's {wanted}, which is in no usual place", where, cure)
