"""The content of ``spack-env/``: versions, and the environments of a site, each a folder with its description and lock.

They are plain environments of Spack: ``spack -e FOLDER install`` works without this package.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Annotated, Any

import msgspec
import yaml

from plumbline.base import files, paths, schemas
from plumbline.base.errors import PlumbError, pick
from plumbline.extras.spack.lock import Lock, decode
from plumbline.mpi import Family

#: Spack's package of an MPI library -> its family
MPIS = {
    "openmpi": "openmpi",
    "mpich": "mpich",
    "cray-mpich": "mpich",
    "mvapich": "mvapich",
    "intel-oneapi-mpi": "intelmpi",
}
DESCRIPTION, LOCK = "spack.yaml", "spack.lock"


class Variables(msgspec.Struct, frozen=True):
    """The variables that an environment sets."""

    set: dict[str, str] = {}


class Environment(msgspec.Struct, frozen=True):
    """The members of ``spack:`` in an environment's description that are read here."""

    specs: tuple[str, ...]
    env_vars: Variables = Variables()

    @property
    def package(self) -> str | None:
        """Spack's package of the MPI library, the first root; None of an environment that is not a stack."""
        name = re.split(r"[@~+\s]", self.specs[0])[0]
        return name if name in MPIS else None

    def variables(self, family: Family) -> tuple[dict[str, str], dict[str, str]]:
        """The variables that are settings of the MPI library, by its own names, and the others."""
        begins = family.setting_prefix or family.variables
        settings = {name: text for name, text in self.env_vars.set.items() if name.startswith(begins)}
        others = {name: text for name, text in self.env_vars.set.items() if name not in settings}
        return {name.removeprefix(family.setting_prefix): text for name, text in settings.items()}, others


class Repository(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A git repository, and the commit that has a tag in it."""

    git: Annotated[str, msgspec.Meta(pattern="^https://")]
    tag: Annotated[str, schemas.whole("v[0-9.]+")]
    commit: Annotated[str, schemas.whole("[0-9a-f]{40}")]


class Versions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """spack-env/versions.yaml: what Spack is made of."""

    spack: Repository
    packages: Repository
    clingo: Annotated[str, schemas.whole(r"[0-9]+(\.[0-9]+)+")]


def folder() -> Path:
    """``spack-env/`` of the suite."""
    return paths.suite() / "spack-env"


def home() -> Path:
    """The private Spack with everything that it writes: ``PLUMB_SPACK_HOME`` or ``stacks/spack``."""
    return Path(os.environ.get("PLUMB_SPACK_HOME") or paths.stacks() / "spack")


def requirements() -> Path:
    """The lock of the solver's Python packages."""
    return folder() / "requirements.txt"


def versions() -> Versions:
    """``spack-env/versions.yaml``; raises :class:`PlumbError` unless it is valid."""
    label, file = "the list of Spack's versions", folder() / "versions.yaml"
    return schemas.load("spack-versions", file, Versions, label, "restore it from git")


def site() -> Path:
    """The folder of the chosen site: ``PLUMB_SPACK_SITE``, a name or a path, else ``environments/`` itself."""
    name = os.environ.get("PLUMB_SPACK_SITE", "")
    place = folder() / "environments"
    chosen = Path(name) if "/" in name else place / name
    if next(chosen.glob(f"*/{DESCRIPTION}"), None) is None:
        sites = sorted({file.parents[1].name for file in place.glob(f"*/*/{DESCRIPTION}")})
        message = f"no Spack site '{name}': no folder in it has a {DESCRIPTION}"
        raise PlumbError(message, str(chosen), f"PLUMB_SPACK_SITE is one of: {', '.join(sites)}")
    return chosen.resolve()


def command(line: str) -> str:
    """``line`` as it must be typed for the chosen site."""
    name = os.environ.get("PLUMB_SPACK_SITE")
    return f"PLUMB_SPACK_SITE={shlex.quote(name)} {line}" if name else line


def known() -> dict[str, Environment]:
    """The environments of the site, by name."""
    described = {
        file: schemas.read_yaml(file, "a Spack environment", "restore it from git").get("spack")
        for file in sorted(site().glob(f"*/{DESCRIPTION}"))
    }
    return {
        file.parent.name: schemas.convert(DESCRIPTION, members, Environment, str(file))
        for file, members in described.items()
    }


def named(name: str, where: str) -> Environment:
    """Environment ``name``; :class:`PlumbError` with the known ones if there is none."""
    return pick(known(), name, f"no Spack environment '{name}'", where)


def view(name: str) -> Path:
    """Where Spack links the programs of an environment."""
    return workplace(name) / ".spack-env" / "view"


def lock(name: str) -> Path:
    """The lock of environment ``name``."""
    return site() / name / LOCK


def read(name: str) -> Lock:
    """The lock of environment ``name``; raises :class:`PlumbError` unless it is complete and of the pinned Spack."""
    file = lock(name)
    cure = command(f"plumb stack lock spack:{name}")
    document, specs = load(file), named(name, "plumb stack").specs
    differing = sorted({_ordered(root.spec) for root in document.roots} ^ {_ordered(spec) for spec in specs})
    if differing:
        raise PlumbError(f"the lock does not match environment '{name}': {', '.join(differing)}", str(file), cure)
    if absent := document.absent():
        raise PlumbError(f"the lock lacks {absent}", str(file), cure)
    pinned = versions().spack.commit
    if (commit := str(document.spack.get("commit") or pinned)) != pinned:
        raise PlumbError(f"the lock was made by Spack {commit[:12]}, not {pinned[:12]}", str(file), cure)
    return document


def load(file: Path) -> Lock:
    """A lock as it is on disk; raises :class:`PlumbError` if it is not there or is not a lock."""
    name = file.parent.name
    cure = command(f"plumb stack lock spack:{name}")
    try:
        return decode(file.read_bytes())
    except FileNotFoundError:
        raise PlumbError(f"environment '{name}' has no lock", str(file), cure) from None
    except (OSError, ValueError) as error:
        raise PlumbError(f"cannot read the lock: {error}", str(file), cure) from None


def _ordered(spec: str) -> str:
    """``spec`` with variants and their values sorted, because Spack writes them in its own order.

    >>> _ordered("openmpi@5+fortran +cuda fabrics=ucx,ofi") == _ordered("openmpi@5+cuda+fortran fabrics=ofi,ucx")
    True
    """
    package, *variants = [part for part in re.split(r"\s+|(?=[+~])", spec) if part]
    parted = [variant.partition("=") for variant in variants]
    return " ".join([package, *sorted(key + sign + ",".join(sorted(value.split(","))) for key, sign, value in parted)])


def workplace(name: str) -> Path:
    """The folder that the private Spack works in, a copy of environment ``name``."""
    return home() / "environments" / site().name / name


def copy(name: str, *, locked: bool = True) -> Path:
    """Copy an environment with its lock to :func:`workplace`, which is returned; included folders by whole paths.

    Without ``locked`` it is another folder, and the store is an empty one, because Spack takes compilers in the store
    for candidates: a lock must not depend on what was installed before.
    """
    place = workplace(name) if locked else home() / "unlocked" / site().name / name
    source = site() / name
    document: dict[str, Any] = schemas.read_yaml(source / DESCRIPTION, "a Spack environment", "restore it from git")
    spack = document["spack"]
    spack["include"] = [
        str((source / entry).resolve()) if isinstance(entry, str) and "$" not in entry else entry
        for entry in spack.get("include", ())
    ]
    if locked:
        read(name)
        files.replace(place / LOCK, lock(name).read_text(encoding="utf-8"))
    else:
        shutil.rmtree(place, ignore_errors=True)
        spack["config"] = {**(spack.get("config") or {}), "install_tree": {"root": str(place / "no-store")}}
        spack["upstreams:"] = {}  # the second colon replaces what the site says
    files.replace(place / DESCRIPTION, yaml.safe_dump(document, sort_keys=False))
    return place
