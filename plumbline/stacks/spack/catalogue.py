"""The named Spack environments, of which several may have one MPI library; each has its own lock and manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from plumbline import schemas
from plumbline.errors import PlumbError
from plumbline.stacks.spack import settings

FILE = "environments.yaml"
VIEWS = "views"


class Environment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What differs between environments: ``spack-env/environments.yaml`` describes the members."""

    mpi: str
    variants: str = ""
    packages: dict[str, Any] = {}
    roots: tuple[str, ...] = ()
    target: str = ""

    @property
    def package(self) -> str:
        """Spack's package of the MPI library."""
        return self.mpi.partition("@")[0]

    @property
    def family(self) -> str:
        """The MPI family of that package."""
        return next(family for family, package in settings.MPIS.items() if package == self.package)


def environments() -> dict[str, Environment]:
    """The environments by name: those of ``spack-env/``, replaced by those that the site includes, then by its own."""
    found = _read(settings.folder() / FILE)
    for scope in reversed(settings.scopes()):
        if (scope / FILE).exists():
            found.update(_read(scope / FILE))
    return found


def stacks() -> tuple[str, ...]:
    """The environments that become stacks."""
    return tuple(name for name, environment in environments().items() if not environment.roots)


def named(name: str, where: str) -> Environment:
    """Environment ``name``; :class:`PlumbError` with the known ones if there is none."""
    known = environments()
    if name not in known:
        raise PlumbError(f"no Spack environment '{name}'", where, f"one of: {', '.join(known)}")
    return known[name]


def _read(file: Path) -> dict[str, Environment]:
    document = schemas.read_yaml(file, "the list of Spack environments", "restore it from git")
    try:
        found = msgspec.convert(document, dict[str, Environment])
    except msgspec.ValidationError as error:
        raise PlumbError(f"cannot read the list of Spack environments: {error}", str(file), "correct it") from None
    for name, environment in found.items():
        if environment.package not in settings.MPIS.values():
            known = ", ".join(settings.MPIS.values())
            raise PlumbError(f"environment '{name}' has no MPI library", str(file), f"mpi is one of: {known}")
    return found


def view(name: str) -> Path:
    """Where Spack links the programs of an environment that is no stack."""
    return settings.home() / VIEWS / name


def specs(name: str) -> list[str]:
    """The specs that environment ``name`` asks for."""
    wanted = environments()[name]
    shared = _template()["spack"]["specs"]
    roots = wanted.roots or (f"{wanted.package}{_spaced(wanted.variants)}", *shared)
    return [f"{root} target={wanted.target}" if wanted.target else root for root in roots]


def _spaced(variants: str) -> str:
    return variants if not variants or variants[0] in "+~" else f" {variants}"


def render(name: str) -> str:
    """``spack.yaml`` of environment ``name``, with requirements, which Spack meets or reports as an error."""
    wanted = environments()[name]
    document = _template()
    required = wanted.package if _given(wanted.package) else wanted.mpi
    document["spack"]["specs"] = specs(name)
    if wanted.roots:
        document["spack"]["view"] = {"default": {"root": f"${{PLUMB_SPACK_HOME}}/{VIEWS}/{name}", "link": "roots"}}
    document["spack"]["packages"] = {"mpi": {"require": [required]}, **wanted.packages}
    return yaml.safe_dump(document, sort_keys=False)


def _template() -> dict[str, Any]:
    text = (settings.folder() / "template.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))


def _given(package: str) -> bool:
    """Whether the site has the package as an external only, which is then used whatever its version."""
    for scope in settings.scopes():
        text = (scope / "packages.yaml").read_text(encoding="utf-8")
        packages = yaml.safe_load(text)["packages"]
        entry = packages.get(f"{package}:") or packages.get(package)
        if entry and "buildable" in entry:
            return entry["buildable"] is False
    return False
