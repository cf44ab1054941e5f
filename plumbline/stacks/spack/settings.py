"""Where the pieces of ``spack-env/`` and of the private Spack lie, and the versions that are pinned."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

from plumbline import git, paths, schemas
from plumbline.errors import PlumbError

DEFAULT_SITE = "debian12-x86_64_v3"
ONEAPI = "intel-oneapi-mpi"
#: MPI family -> Spack's package
MPIS = {"openmpi": "openmpi", "mpich": "mpich", "mvapich": "mvapich", "intelmpi": ONEAPI}


def folder() -> Path:
    """``spack-env/`` of the checkout."""
    return git.part("spack-env")


def home() -> Path:
    """The private Spack with everything that it writes: ``PLUMB_SPACK_HOME`` or ``stacks/spack``."""
    return Path(os.environ.get("PLUMB_SPACK_HOME") or paths.stacks() / "spack")


def requirements() -> Path:
    """The lock of the solver's Python packages."""
    return folder() / "requirements.txt"


def wheel_options() -> list[str]:
    """Options that make pip take the solver's packages from the folder ``PLUMB_SPACK_WHEELS``, if that is set."""
    given = os.environ.get("PLUMB_SPACK_WHEELS")
    return ["--no-index", "--find-links", given] if given else []


def site() -> Path:
    """The chosen site's folder: ``PLUMB_SPACK_SITE`` (a name, or the path of a folder) or the default site.

    Raises :class:`PlumbError` if there is no such site.
    """
    name = os.environ.get("PLUMB_SPACK_SITE") or DEFAULT_SITE
    chosen = Path(name) if "/" in name else folder() / "sites" / name
    if not (chosen / "packages.yaml").is_file():
        known = ", ".join(sorted(entry.parent.name for entry in (folder() / "sites").glob("*/packages.yaml")))
        raise PlumbError(
            f"no Spack site '{name}'", str(chosen / "packages.yaml"), f"PLUMB_SPACK_SITE is one of: {known}"
        )
    return chosen.resolve()


def scopes() -> list[Path]:
    """The chosen site's folder and the folders that it includes, each before those that it includes itself."""
    found = [site()]
    for place in found:
        file = place / "include.yaml"
        document = schemas.read_yaml(file, "the list of included folders", "correct it") if file.is_file() else {}
        for entry in document.get("include") or ():
            path = entry["path"] if isinstance(entry, dict) else entry
            included = Path(path.replace("${PLUMB_SPACK_ENV}", str(folder())))
            if included.is_dir() and included not in found:
                found.append(included)
    return found


def command(line: str) -> str:
    """``line`` as it must be typed for the chosen site."""
    name = os.environ.get("PLUMB_SPACK_SITE")
    return f"PLUMB_SPACK_SITE={shlex.quote(name)} {line}" if name else line


def versions() -> dict[str, Any]:
    """``spack-env/versions.yaml``, valid by its schema."""
    file = folder() / "versions.yaml"
    document = schemas.read_yaml(file, "the list of Spack's versions", "restore it from git")
    schemas.check("spack-versions", document, str(file))
    return document
