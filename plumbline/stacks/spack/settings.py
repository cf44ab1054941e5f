"""Where the pieces of ``spack-env/`` and of the private Spack lie, and the versions that are pinned."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from plumbline import paths, schemas
from plumbline.errors import PlumbError

DEFAULT_SITE = "debian12-x86_64_v3"
#: Environment -> MPI package of Spack and the family that manifests call it.
MPIS = {
    "openmpi": ("openmpi", "openmpi"),
    "mpich": ("mpich", "mpich"),
    "mvapich": ("mvapich", "mvapich"),
    "intelmpi": ("intel-oneapi-mpi", "intelmpi"),
}
ENVIRONMENTS = (*MPIS, "tools")


def folder() -> Path:
    """``spack-env/`` of the checkout."""
    return paths.root() / "spack-env"


def home() -> Path:
    """The private Spack with everything that it writes: ``PLUMB_SPACK_HOME`` or ``stacks/spack``."""
    return Path(os.environ.get("PLUMB_SPACK_HOME") or paths.stacks() / "spack")


def requirements() -> Path:
    """The lock of the solver's Python packages."""
    return folder() / "requirements.txt"


def site() -> Path:
    """The chosen site's folder: ``PLUMB_SPACK_SITE`` (a name, or the path of a folder) or the default site."""
    name = os.environ.get("PLUMB_SPACK_SITE") or DEFAULT_SITE
    chosen = Path(name) if "/" in name else folder() / "sites" / name
    if not (chosen / "packages.yaml").is_file():
        known = ", ".join(sorted(entry.parent.name for entry in (folder() / "sites").glob("*/packages.yaml")))
        raise PlumbError(
            f"no Spack site '{name}'", str(chosen / "packages.yaml"), f"PLUMB_SPACK_SITE is one of: {known}"
        )
    return chosen.resolve()


def versions() -> dict[str, Any]:
    """``spack-env/versions.yaml``, valid by its schema."""
    file = folder() / "versions.yaml"
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise PlumbError(f"cannot read the versions of Spack: {error}", str(file), "restore it from git") from None
    schemas.check("spack-versions", document, str(file))
    return dict(document)
