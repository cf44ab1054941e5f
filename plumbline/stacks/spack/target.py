"""Whether this host can run what a lock is built for, and has the compilers that the lock names."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import Any

from archspec import cpu
from archspec.cpu import detect

from plumbline.errors import PlumbError


def check(node: dict[str, Any], where: str) -> None:
    """Raise :class:`PlumbError` if this host's processor cannot run the target of a lock's ``node``.

    Only generic targets are compared, such as the levels of the x86-64 psABI; that of a processor model (``zen4``) is
    not checked. Source: archspec, which Spack uses too.
    """
    target = node["arch"]["target"]
    name = target if isinstance(target, str) else target["name"]
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

    With ``absent`` a compiler that is not there is an error too. Spack does not check what ``packages.yaml`` says of an
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
                raise PlumbError(what, where, "correct packages.yaml of the site, then make the lock anew")


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
