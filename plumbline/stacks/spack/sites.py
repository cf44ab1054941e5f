"""The files of a Spack site that Plumbline writes, locks and externals; whether a lock is whole and fits this host."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml
from archspec import cpu
from archspec.cpu import detect

from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.stacks import locked, manifest
from plumbline.stacks.manifest import Manifest
from plumbline.stacks.spack import bootstrap, environments
from plumbline.stacks.spack.runner import Spack


def check_target(node: dict[str, Any], where: str) -> None:
    """Raise :class:`PlumbError` if this host's processor cannot run the target of a lock's ``node``.

    Only generic targets are compared, such as the levels of the x86-64 psABI; that of a processor model (``zen4``) is
    not checked. Source: archspec, which Spack uses too.
    """
    name = environments.target(node)
    wanted = cpu.TARGETS.get(name)
    if wanted is None or wanted.vendor != "generic" or wanted <= cpu.host():
        return
    missing = sorted(wanted.features - detect.detected_info().features) or [f"instructions of {wanted.family}"]
    raise PlumbError(
        f"the lock is for {name}, this processor has no {', '.join(missing)}",
        where,
        "choose or make a site with a lower target (PLUMB_SPACK_SITE)",
    )


def check_system(node: dict[str, Any], where: str) -> None:
    """Raise :class:`PlumbError` if this host's system is not that of a lock's ``node``.

    Spack's names are those of ``/etc/os-release`` with the whole version or its first number: ``debian12``,
    ``ubuntu24.04``, ``almalinux9``.
    """
    release = platform.freedesktop_os_release()
    name, version = release.get("ID", "unknown"), release.get("VERSION_ID", "")
    wanted = node["arch"]["platform_os"]
    if wanted not in (f"{name}{version}", f"{name}{version.split('.')[0]}"):
        cure = "choose or make a site for this system (PLUMB_SPACK_SITE)"
        raise PlumbError(f"the lock is for {wanted}, this machine has {name} {version}", where, cure)


def check_compilers(document: dict[str, Any], where: str, *, absent: bool = True) -> None:
    """Raise :class:`PlumbError` if a compiler that the lock takes from this host has another version.

    With ``absent`` a compiler that is not there is an error too. Spack does not check ``packages.yaml`` about an
    external compiler. Only compilers of languages that something in the lock is built with are checked.
    """
    used = {
        (dependency["hash"], language)
        for node in document["concrete_specs"].values()
        for dependency in node.get("dependencies", ())
        for language in dependency["parameters"]["virtuals"]
    }
    for digest, node in document["concrete_specs"].items():
        attributes = (node.get("external") or {}).get("extra_attributes") or {}
        for language, program in (attributes.get("compilers") or {}).items():
            if (digest, language) not in used:
                continue
            found = _version(Path(program))
            if found != node["version"] and (found or absent):
                has = f"is {found}" if found else "is not there"
                what = f"the lock is for {node['name']} {node['version']}, {program} {has}"
                raise PlumbError(what, where, "correct packages.yaml of the site, then make the lock again")


def _version(program: Path) -> str | None:
    """The version that a compiler prints, None if it cannot be run; gcc, clang and icx have these options."""
    for option in ("-dumpfullversion", "-dumpversion"):
        try:
            done = subprocess.run([program, option], capture_output=True, text=True, check=False, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            return None
        if done.returncode == 0 and done.stdout.strip():
            return done.stdout.strip()
    return None


def check_content(spack: Spack, name: str) -> None:
    """Raise :class:`PlumbError` if packages of the lock are not what their hashes stand for: it was edited.

    Spack computes the hashes again (``spack-env/rehash.py``); without that it uses the hashes in a lock as they are.
    """
    file = environments.lock(name)
    said = spack.run("python", str(environments.folder() / "rehash.py"), str(file)).splitlines()
    specs = environments.read(name)["concrete_specs"]
    changed = sorted(specs[line.split()[1]]["name"] for line in said if line.startswith("changed "))
    if changed or f"compared {len(specs)}" not in said:
        raise PlumbError(
            f"the lock was edited: {', '.join(changed) or 'its packages'} cannot have the hash in it",
            str(file),
            f"restore it, or make it again: {environments.command(f'plumb stack lock spack:{name}')}",
        )


def lock(name: str, *, check: bool = False) -> list[str]:
    """Concretize environment ``name`` and write the site's lock; with ``check`` only compare.

    Returns the differences, a line for each package; empty if the lock is what Spack makes of the environment.
    """
    environments.named(name, "plumb stack lock")
    label = f"spack-{name}"
    with files.writing(f"the lock of '{name}'", paths.stacks()), locked(label):
        base = bootstrap.prepare()
        place = environments.workplace(name, locked=False)
        Spack(base, place, label).run("concretize", "--force", "--fresh")
        fresh = json.loads((place / "spack.lock").read_text(encoding="utf-8"))
        file = environments.lock(name)
        differing = _differences(file, fresh)
        if differing and not check:
            # a lock may be made on a machine that lacks the compilers
            check_compilers(fresh, str(environments.site() / "packages.yaml"), absent=False)
            files.replace(file, json.dumps(fresh, indent=1, sort_keys=True) + "\n")
        shutil.rmtree(place)
    return differing


def _differences(file: Path, fresh: dict[str, Any]) -> list[str]:
    """What differs between the lock ``file`` and a ``fresh`` one: for each package the members with both values."""
    try:
        locks = (json.loads(file.read_text(encoding="utf-8")), fresh)
        sides = [{node["name"]: node for node in document["concrete_specs"].values()} for document in locks]
        found = []
        for name in sorted(sides[0].keys() | sides[1].keys()):
            one, other = (side.get(name) for side in sides)
            if one is None or other is None:
                found.append(f"{name}: only in the {'second' if one is None else 'first'}")
            elif one != other:
                members = [_change(key, one.get(key), other.get(key)) for key in sorted(one.keys() | other.keys())]
                found.append(f"{name}: {'; '.join(filter(None, members))}")
    except FileNotFoundError:
        return ["there is no lock"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return ["the lock cannot be read"]
    roots = [sorted((root["spec"], root["hash"]) for root in document["roots"]) for document in locks]
    return found or (["other roots"] if roots[0] != roots[1] else [])


def _change(key: str, one: Any, other: Any) -> str:
    """Values that differ, of a member or of its members; of dependencies and hashes only that they do."""
    if one == other or key == "hash":
        return ""
    if isinstance(one, dict) and isinstance(other, dict):
        inner = [_change(name, one.get(name), other.get(name)) for name in sorted(one.keys() | other.keys())]
        return ", ".join(filter(None, inner))
    return f"{key} {one} and {other}" if key not in ("dependencies", "package_hash") else f"other {key}"


def write_externals(names: list[str], site: str) -> Path:
    """Write ``packages.yaml`` of ``site``: the default site's, with the MPIs of the named stacks as externals.

    An existing site keeps what it says about other packages. Returns the file. Raises :class:`PlumbError` for a name
    that cannot be a site's, and for a stack whose MPI cannot be an external.
    """
    file = environments.folder() / "sites" / site / "packages.yaml"
    if site == environments.DEFAULT_SITE or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", site):
        raise PlumbError(
            f"'{site}' cannot be the name of a site with externals", str(file.parent), "choose another, such as local"
        )
    base = file if file.exists() else environments.folder() / "sites" / environments.DEFAULT_SITE / "packages.yaml"
    packages = dict(yaml.safe_load(base.read_text(encoding="utf-8"))["packages"])
    for name in names:
        package, entry = _external(manifest.load(name))
        packages.pop(package, None)
        packages[f"{package}:"] = entry  # the colon replaces what spack-env/common says
    text = "# Written by `plumb stack externals`; the compiler and the tools are those of the site it was begun from.\n"
    files.replace(file, text + yaml.safe_dump({"packages": packages}, sort_keys=False))
    return file


def _external(stack: Manifest) -> tuple[str, dict[str, Any]]:
    """Spack's package and its entry in ``packages.yaml`` for the MPI of a stack."""
    name, version = stack.name, stack.mpi.version
    package = environments.MPIS[stack.mpi.family]
    prefix = Path(stack.prefix)
    if not any((prefix / "bin" / wrapper).exists() for wrapper in stack.family.compiler_wrappers):
        raise PlumbError(f"stack '{name}' has no compiler wrapper", f"{prefix}/bin", "its MPI cannot be an external")
    if package == environments.ONEAPI:  # Spack finds it in a full installation of oneAPI only
        link = environments.home() / "oneapi" / name / "mpi" / ".".join(version.split(".")[:2])
        link.parent.mkdir(parents=True, exist_ok=True)
        for old in link.parent.iterdir():
            old.unlink()
        link.symlink_to(prefix)
        prefix, spec = link.parents[1], f"{package}@{version}+generic-names~envmods"
    else:
        spec = _found(stack, package, prefix)
    external: dict[str, Any] = {"spec": spec, "prefix": str(prefix)}
    if stack.modules:
        external["modules"] = stack.modules
    external["extra_attributes"] = {"plumb_stack": name}
    return package, {"buildable": False, "externals": [external]}


def _found(stack: Manifest, package: str, prefix: Path) -> str:
    """The spec of an MPI library by ``spack external find``, which asks the library how it was built."""
    place = environments.home() / "environments" / "externals" / stack.name
    files.replace(place / "spack.yaml", "spack:\n  specs: []\n")
    variables = {**os.environ, **manifest.environment(stack, os.environ)}
    spack = Spack(bootstrap.prepare(), place, f"externals-{stack.name}", variables)
    spack.run("external", "find", "--path", str(prefix), package)
    described = yaml.safe_load((place / "spack.yaml").read_text(encoding="utf-8"))["spack"]
    found = ((described.get("packages") or {}).get(package) or {}).get("externals") or []
    version = stack.mpi.version
    spec = next((str(item["spec"]) for item in found if Path(item["prefix"]).resolve() == prefix.resolve()), None)
    if spec is None or not spec.startswith(f"{package}@{version}"):
        what = f"Spack does not find {package} {version} in stack '{stack.name}'"
        raise PlumbError(what, str(prefix), f"its output is in {spack.log}")
    return spec
