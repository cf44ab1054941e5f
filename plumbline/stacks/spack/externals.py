"""An MPI that is already there, given to Spack as external, so that OSU and IMB in C are built on top of it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import yaml

from plumbline import files
from plumbline.errors import PlumbError
from plumbline.mpi import TABLE
from plumbline.stacks import manifest
from plumbline.stacks.spack import bootstrap, settings
from plumbline.stacks.spack.runner import Spack


def write(names: list[str], site: str) -> Path:
    """Write ``packages.yaml`` of ``site``: the default site's, with the MPIs of the named stacks as externals.

    An existing site keeps what it says about other packages. Returns the file. Raises :class:`PlumbError` for a name
    that cannot be a site's, and for a stack whose MPI cannot be an external.
    """
    file = settings.folder() / "sites" / site / "packages.yaml"
    if site == settings.DEFAULT_SITE or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", site):
        raise PlumbError(
            f"'{site}' cannot be the name of a site with externals", str(file.parent), "choose another, such as local"
        )
    base = file if file.exists() else settings.folder() / "sites" / settings.DEFAULT_SITE / "packages.yaml"
    packages = dict(yaml.safe_load(base.read_text(encoding="utf-8"))["packages"])
    for name in names:
        package, entry = describe(manifest.load(name))
        packages.pop(package, None)
        packages[f"{package}:"] = entry  # the colon replaces what spack-env/common says
    text = "# Written by `plumb stack externals`; the compiler and the tools are those of the site it was begun from.\n"
    files.replace(file, text + yaml.safe_dump({"packages": packages}, sort_keys=False))
    return file


def describe(document: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Spack's package and its entry in ``packages.yaml`` for the MPI of a stack manifest."""
    mpi = document["mpi"]
    package = settings.MPIS[mpi["family"]]
    prefix = Path(document["prefix"])
    if not any((prefix / "bin" / wrapper).exists() for wrapper in TABLE[mpi["family"]].compiler_wrappers):
        raise PlumbError(
            f"stack '{document['name']}' has no compiler wrapper", f"{prefix}/bin", "its MPI cannot be an external"
        )
    if package == settings.ONEAPI:  # which Spack finds in a full installation of oneAPI only, with its setup scripts
        prefix, spec = _oneapi(document, prefix), f"{package}@{mpi['version']}+generic-names~envmods"
    else:
        spec = _found(document, package, prefix)
    external: dict[str, Any] = {"spec": spec, "prefix": str(prefix)}
    if document["modules"]:
        external["modules"] = list(document["modules"])
    external["extra_attributes"] = {"plumb_stack": document["name"]}
    return package, {"buildable": False, "externals": [external]}


def _oneapi(document: dict[str, Any], prefix: Path) -> Path:
    """A prefix with a link to the MPI at ``mpi/MAJOR.MINOR``, where Spack looks for oneAPI's MPI."""
    shim = settings.home() / "oneapi" / document["name"]
    link = shim / "mpi" / ".".join(document["mpi"]["version"].split(".")[:2])
    link.parent.mkdir(parents=True, exist_ok=True)
    for old in link.parent.iterdir():
        old.unlink()
    link.symlink_to(prefix)
    return shim


def _found(document: dict[str, Any], package: str, prefix: Path) -> str:
    """The spec of an MPI library by ``spack external find``, which asks the library how it was built."""
    place = settings.home() / "environments" / "externals" / document["name"]
    files.replace(place / "spack.yaml", "spack:\n  specs: []\n")
    variables = {**os.environ, **manifest.environment(document, os.environ)}
    spack = Spack(bootstrap.prepare(), place, f"externals-{document['name']}", variables)
    spack.run("external", "find", "--path", str(prefix), package)
    described = yaml.safe_load((place / "spack.yaml").read_text(encoding="utf-8"))["spack"]
    found = ((described.get("packages") or {}).get(package) or {}).get("externals") or []
    version = document["mpi"]["version"]
    spec = next((str(item["spec"]) for item in found if Path(item["prefix"]).resolve() == prefix.resolve()), None)
    if spec is None or not spec.startswith(f"{package}@{version}"):
        what = f"Spack does not find {package} {version} in stack '{document['name']}'"
        raise PlumbError(what, str(prefix), f"its output is in {spack.log}")
    return spec
