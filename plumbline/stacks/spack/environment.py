"""Environments and their locks: which files describe one, whether its lock is complete, and Spack's work folder."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import yaml

from plumbline import files, schemas
from plumbline.errors import PlumbError
from plumbline.stacks.spack import catalogue, settings
from plumbline.stacks.spack.runner import Spack


def description(name: str) -> str:
    """``spack.yaml`` of environment ``name``: the site's own, or the one that the template makes."""
    own = settings.site() / f"{name}.yaml"
    return own.read_text(encoding="utf-8") if own.exists() else catalogue.render(name)


def lock(name: str) -> Path:
    """The site's lock of environment ``name``."""
    return settings.site() / f"{name}.lock"


def roots(name: str) -> list[str]:
    """The specs that environment ``name`` asks for."""
    return list(yaml.safe_load(description(name))["spack"]["specs"])


def read(name: str) -> dict[str, Any]:
    """The lock of environment ``name``; raises :class:`PlumbError` unless it is complete and of the pinned Spack."""
    file = lock(name)
    cure = settings.command(f"plumb stack lock spack:{name}")
    try:
        document = dict(schemas.parse_json(file.read_text(encoding="utf-8")))
        pairs = [(root["spec"], root["hash"]) for root in document["roots"]]
        specs, spack = document["concrete_specs"], document["spack"]
    except FileNotFoundError:
        raise PlumbError(f"environment '{name}' has no lock at site {settings.site().name}", str(file), cure) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PlumbError(f"cannot read the lock: {error!r}", str(file), cure) from None
    differing = sorted({_ordered(spec) for spec, _ in pairs} ^ {_ordered(spec) for spec in roots(name)})
    if differing:
        raise PlumbError(f"the lock does not match environment '{name}': {', '.join(differing)}", str(file), cure)
    absent = _absent(pairs, specs)
    if absent:
        raise PlumbError(f"the lock lacks {absent}", str(file), cure)
    pinned = settings.versions()["spack"]["commit"]
    if spack.get("commit", pinned) != pinned:
        raise PlumbError(f"the lock was made by Spack {spack['commit'][:12]}, not {pinned[:12]}", str(file), cure)
    return document


def _ordered(spec: str) -> str:
    """``spec`` with variants and their values sorted, because Spack writes them in an order of its own.

    >>> _ordered("openmpi@5+fortran +cuda fabrics=ucx,ofi") == _ordered("openmpi@5+cuda+fortran fabrics=ofi,ucx")
    True
    """
    package, *variants = [part for part in re.split(r"\s+|(?=[+~])", spec) if part]
    parted = [variant.partition("=") for variant in variants]
    return " ".join([package, *sorted(key + sign + ",".join(sorted(value.split(","))) for key, sign, value in parted)])


def _absent(pairs: list[tuple[str, str]], specs: dict[str, Any]) -> str | None:
    """The first package that something in the lock needs and the lock does not hold."""
    for spec, digest in pairs:
        if digest not in specs:
            return f"{spec} (/{digest[:7]})"
    for node in specs.values():
        for needed in node.get("dependencies", ()):
            if needed["hash"] not in specs:
                return f"{needed['name']} (/{needed['hash'][:7]}), which {node['name']} needs"
    return None


def workplace(name: str, *, locked: bool = True) -> Path:
    """The folder that Spack works in: copies of the description and, with ``locked``, of the lock."""
    place = settings.home() / "environments" / settings.site().name / name
    if not locked:
        shutil.rmtree(place, ignore_errors=True)
    files.replace(place / "spack.yaml", description(name))
    if locked:
        read(name)
        files.replace(place / "spack.lock", lock(name).read_text(encoding="utf-8"))
    return place


def node(document: dict[str, Any], package: str) -> tuple[str, dict[str, Any]]:
    """Hash and element of ``package`` in a lock; raises :class:`PlumbError` if the lock lacks it."""
    for digest, element in document["concrete_specs"].items():
        if element["name"] == package:
            return digest, element
    raise PlumbError(f"the lock lacks {package}", "spack.lock", "plumb stack lock writes a new one")


def check_content(spack: Spack, name: str) -> None:
    """Raise :class:`PlumbError` if packages of the lock are not what their hashes stand for: it was edited.

    Spack computes the hashes again (``spack-env/rehash.py``); by itself it takes them as they stand in a lock.
    """
    file = lock(name)
    said = spack.run("python", str(settings.folder() / "rehash.py"), str(file)).splitlines()
    specs = read(name)["concrete_specs"]
    changed = sorted(specs[line.split()[1]]["name"] for line in said if line.startswith("changed "))
    if changed or f"compared {len(specs)}" not in said:
        raise PlumbError(
            f"the lock was edited: {', '.join(changed) or 'its packages'} cannot have the hash that stands there",
            str(file),
            f"restore it, or make it anew: {settings.command(f'plumb stack lock spack:{name}')}",
        )


def differences(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """What differs between two locks, a line for each package: its name and the members with both values."""
    sides = [{node["name"]: node for node in document["concrete_specs"].values()} for document in (first, second)]
    found = []
    for name in sorted(sides[0].keys() | sides[1].keys()):
        one, other = (side.get(name) for side in sides)
        if one is None or other is None:
            found.append(f"{name}: only in the {'second' if one is None else 'first'}")
        elif one != other:
            members = [_change(key, one.get(key), other.get(key)) for key in sorted(one.keys() | other.keys())]
            found.append(f"{name}: {'; '.join(filter(None, members))}")
    return found


def _change(key: str, one: Any, other: Any) -> str:
    """Values that differ, of a member or of its members; of dependencies and hashes only that they do."""
    if one == other or key == "hash":
        return ""
    if isinstance(one, dict) and isinstance(other, dict):
        inner = [_change(name, one.get(name), other.get(name)) for name in sorted(one.keys() | other.keys())]
        return ", ".join(filter(None, inner))
    return f"{key} {one} and {other}" if key not in ("dependencies", "package_hash") else f"other {key}"
