"""The content of ``spack-env/``: versions, sites, and the named environments, each with its description and its lock.

Several environments may have one MPI library; each has its own lock and manifest.
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
from plumbline.base.errors import PlumbError
from plumbline.extras.spack.lock import Lock, decode

DEFAULT_SITE = "debian12-x86_64_v3"
ONEAPI = "intel-oneapi-mpi"
#: Spack's package of an MPI library -> its family
MPIS = {"openmpi": "openmpi", "mpich": "mpich", "cray-mpich": "mpich", "mvapich": "mvapich", ONEAPI: "intelmpi"}
FILE = "environments.yaml"
TEMPLATE = "template.yaml"
VIEWS = "views"


class Environment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The differences between environments: ``spack-env/environments.yaml`` describes the members."""

    mpi: str
    variants: str = ""
    packages: dict[str, Any] = {}
    roots: tuple[str, ...] = ()
    target: str = ""
    settings: dict[str, str] = {}

    @property
    def package(self) -> str:
        """Spack's package of the MPI library."""
        return self.mpi.partition("@")[0]


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
    file = folder() / "versions.yaml"
    document = schemas.read_yaml(file, "the list of Spack's versions", "restore it from git")
    return schemas.convert("spack-versions", document, Versions, str(file))


def site() -> Path:
    """The chosen site's folder: ``PLUMB_SPACK_SITE`` (a name, or the path of a folder) or the default site."""
    name = os.environ.get("PLUMB_SPACK_SITE") or DEFAULT_SITE
    chosen = Path(name) if "/" in name else folder() / "sites" / name
    if not (chosen / "packages.yaml").is_file():
        known = ", ".join(sorted(entry.parent.name for entry in (folder() / "sites").glob("*/packages.yaml")))
        message, cure = f"no Spack site '{name}'", f"PLUMB_SPACK_SITE is one of: {known}"
        raise PlumbError(message, str(chosen / "packages.yaml"), cure)
    return chosen.resolve()


def scopes() -> list[Path]:
    """The chosen site's folder and the folders that it includes, each before those that it includes itself."""
    places = [site()]
    for place in places:
        file = place / "include.yaml"
        document = schemas.read_yaml(file, "the list of included folders", "correct it") if file.is_file() else {}
        for entry in document.get("include") or ():
            path = entry["path"] if isinstance(entry, dict) else entry
            included = Path(path.replace("${PLUMB_SPACK_ENV}", str(folder())))
            if included.is_dir() and included not in places:
                places.append(included)
    return places


def command(line: str) -> str:
    """``line`` as it must be typed for the chosen site."""
    name = os.environ.get("PLUMB_SPACK_SITE")
    return f"PLUMB_SPACK_SITE={shlex.quote(name)} {line}" if name else line


def known() -> dict[str, Environment]:
    """The environments by name: those of ``spack-env/``, replaced by those that the site includes, then by its own."""
    environments: dict[str, Environment] = {}
    site_files = (scope / FILE for scope in reversed(scopes()))
    for file in (folder() / FILE, *filter(Path.exists, site_files)):
        document = schemas.read_yaml(file, "the list of Spack environments", "restore it from git")
        environments |= (described := schemas.convert(FILE, document, dict[str, Environment], str(file)))
        for name, environment in described.items():
            if environment.package not in MPIS:
                cure = f"mpi is one of: {', '.join(MPIS)}"
                raise PlumbError(f"environment '{name}' has no MPI library", str(file), cure)
    return environments


def named(name: str, where: str) -> Environment:
    """Environment ``name``; :class:`PlumbError` with the known ones if there is none."""
    if name not in (there := known()):
        raise PlumbError(f"no Spack environment '{name}'", where, f"one of: {', '.join(there)}")
    return there[name]


def view(name: str) -> Path:
    """Where Spack links the programs of an environment that is not a stack."""
    return home() / VIEWS / name


def render(name: str) -> str:
    """``spack.yaml`` of environment ``name``, with requirements, which Spack meets or reports as an error.

    A library that the site has as an external only is as it is: neither a version nor variants are required of it.
    """
    wanted = known()[name]
    external = bool(_only_externals(wanted.package))
    # the part that environments share: of the site, of a site that it includes, or of all sites
    template = next(filter(Path.exists, (scope / TEMPLATE for scope in scopes())), folder() / TEMPLATE)
    document = schemas.parse_yaml(template.read_text(encoding="utf-8"))
    spack = document["spack"]
    variants = "" if external else wanted.variants
    blank = " " if variants and variants[0] not in "+~" else ""
    roots = wanted.roots or (f"{wanted.package}{blank}{variants}", *spack["specs"])
    spack["specs"] = [f"{root} target={wanted.target}" if wanted.target else root for root in roots]
    if wanted.roots:
        spack["view"] = {"default": {"root": f"${{PLUMB_SPACK_HOME}}/{VIEWS}/{name}", "link": "roots"}}
    spack["packages"] = {"mpi": {"require": [wanted.package if external else wanted.mpi]}, **wanted.packages}
    return yaml.safe_dump(document, sort_keys=False)


def packages(scope: Path) -> dict[str, Any]:
    """The packages of ``packages.yaml`` of a scope, empty without any; raises :class:`PlumbError` for another form."""
    file = scope / "packages.yaml"
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    if all(line.partition("#")[0].strip() in ("", "---") for line in lines):
        return {}
    document = schemas.read_yaml(file, "the site's list of packages", "correct it")
    entries = document.get("packages", document.get("packages:")) or {}
    if not isinstance(entries, dict) or any(not isinstance(entry, dict | None) for entry in entries.values()):
        raise PlumbError(
            "`packages` is not a mapping of packages", str(file), "write them as Spack's documentation says"
        )
    return entries


def _only_externals(package: str) -> list[str]:
    """The specs of ``package`` at the site, if it is used as an external only, whatever its version; else none.

    A site's entry of a package comes before its entry of ``mpi``, and that before ``all``.
    """
    described = [{name.removesuffix(":"): entry or {} for name, entry in packages(scope).items()} for scope in scopes()]
    names = (package, *(["mpi"] if package in MPIS else []), "all")
    entries = [each[name] for name in names for each in described if name in each]
    if next((entry["buildable"] for entry in entries if "buildable" in entry), True):
        return []
    externals = (each[package]["externals"] for each in described if each.get(package, {}).get("externals"))
    return [str(item["spec"]) for item in next(externals, [])]


def check_externals(name: str) -> None:
    """Raise :class:`PlumbError` if environment ``name`` requires a version that the site has not and may not build.

    Spack says of this, after a minute, only that no external satisfies the request. Ranges of versions are left to it.
    """
    for package, entry in (schemas.parse_yaml(description(name))["spack"].get("packages") or {}).items():
        required = entry.get("require") or ()
        for spec in [required] if isinstance(required, str) else filter(lambda item: isinstance(item, str), required):
            match = re.match(r"([\w-]+)@=?([\w.-]+)(?![\w.:,-])", spec)
            there = _only_externals(match[1]) if match else []
            if match and there and not any(re.match(rf"{match[1]}@=?{match[2]}(?![\w-])", item) for item in there):
                site_file = site() / f"{name}.yaml"
                raise PlumbError(
                    f"environment '{name}' requires {match[0]} of {package}, and the site has only {', '.join(there)}",
                    str(site_file if site_file.exists() else site() / "packages.yaml"),
                    f"require {match[1]} without a version, or leave out `buildable: false`",
                )


def description(name: str) -> str:
    """``spack.yaml`` of environment ``name``: the site's own, or the one that the template makes."""
    site_file = site() / f"{name}.yaml"
    return site_file.read_text(encoding="utf-8") if site_file.exists() else render(name)


def lock(name: str) -> Path:
    """The site's lock of environment ``name``."""
    return site() / f"{name}.lock"


def roots(name: str) -> list[str]:
    """The specs that environment ``name`` asks for."""
    return list(schemas.parse_yaml(description(name))["spack"]["specs"])


def read(name: str) -> Lock:
    """The lock of environment ``name``; raises :class:`PlumbError` unless it is complete and of the pinned Spack."""
    file = lock(name)
    cure = command(f"plumb stack lock spack:{name}")
    document = load(file)
    differing = sorted({_ordered(root.spec) for root in document.roots} ^ {_ordered(spec) for spec in roots(name)})
    if differing:
        raise PlumbError(f"the lock does not match environment '{name}': {', '.join(differing)}", str(file), cure)
    if absent := document.absent():
        raise PlumbError(f"the lock lacks {absent}", str(file), cure)
    pinned = versions().spack.commit
    if (commit := document.spack.commit or pinned) != pinned:
        raise PlumbError(f"the lock was made by Spack {commit[:12]}, not {pinned[:12]}", str(file), cure)
    return document


def load(file: Path) -> Lock:
    """A lock as it is on disk; raises :class:`PlumbError` if it is not there or is not a lock."""
    cure = command(f"plumb stack lock spack:{file.stem}")
    try:
        return decode(file.read_bytes())
    except FileNotFoundError:
        message = f"environment '{file.stem}' has no lock at site {file.parent.name}"
        raise PlumbError(message, str(file), cure) from None
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


def workplace(name: str, *, locked: bool = True) -> Path:
    """The folder that Spack works in: copies of the description and, with ``locked``, of the lock.

    Without ``locked`` the store is an empty one, because Spack takes compilers in the store for candidates: a lock must
    not depend on what was installed before.
    """
    place = home() / "environments" / site().name / name
    text = description(name)
    if not locked:
        shutil.rmtree(place, ignore_errors=True)
        document = schemas.parse_yaml(text)
        spack = document["spack"]
        spack["config"] = {**(spack.get("config") or {}), "install_tree": {"root": str(place / "no-store")}}
        spack["upstreams:"] = {}  # the second colon replaces what the site says
        text = yaml.safe_dump(document, sort_keys=False)
    files.replace(place / "spack.yaml", text)
    if locked:
        read(name)
        files.replace(place / "spack.lock", lock(name).read_text(encoding="utf-8"))
    return place
