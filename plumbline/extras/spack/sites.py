"""Locks: how they are made, and whether one is whole and fits this host."""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from archspec import cpu
from archspec.cpu import detect

from plumbline.base import files, paths, units
from plumbline.base.errors import PlumbError
from plumbline.extras.spack import bootstrap, environments
from plumbline.extras.spack.lock import LANGUAGES, WRAPPER, Difference, Lock, Node, between, decode
from plumbline.extras.spack.runner import Spack
from plumbline.stacks import locked, stream

#: Spack's package of a compiler -> archspec's name
_COMPILERS = {"llvm": "clang", "intel-oneapi-compilers": "oneapi"}


def check_target(node: Node, where: str) -> None:
    """Raise :class:`PlumbError` if this host's processor cannot run the target of a lock's ``node``.

    Only generic targets are compared, such as the levels of the x86-64 psABI; that of a processor model (``zen4``) is
    not checked. Source: archspec, which Spack uses too.
    """
    wanted = cpu.TARGETS.get(node.target)
    if wanted is None or wanted.vendor != "generic" or wanted <= cpu.host():
        return
    missing = sorted(wanted.features - detect.detected_info().features) or [f"instructions of {wanted.family}"]
    raise PlumbError(
        f"the lock is for {node.target}, this processor has no {', '.join(missing)}",
        where,
        "choose or make a site with a lower target (PLUMB_SPACK_SITE)",
    )


def target_options(node: Node, compiler: str, version: str) -> list[str]:
    """A compiler's options for the target of a lock's ``node``: those that Spack's wrapper adds."""
    compiler = _COMPILERS.get(compiler, compiler)
    return str(cpu.TARGETS[node.target].optimization_flags(compiler, version)).split()


def check_system(node: Node, where: str) -> None:
    """Raise :class:`PlumbError` if this host's system is not that of a lock's ``node``.

    Spack's names are those of ``/etc/os-release`` with the whole version or its first number: ``debian12``,
    ``ubuntu24.04``, ``almalinux9``.
    """
    release = platform.freedesktop_os_release()
    name, version = release.get("ID", "unknown"), release.get("VERSION_ID", "")
    wanted = node.arch.platform_os
    if wanted not in (f"{name}{version}", f"{name}{version.split('.')[0]}"):
        cure = "choose or make a site for this system (PLUMB_SPACK_SITE)"
        raise PlumbError(f"the lock is for {wanted}, this machine has {name} {version}", where, cure)


def check_compilers(document: Lock, where: str, *, absent: bool = True) -> None:
    """Raise :class:`PlumbError` if a compiler that the lock takes from this host has another version.

    With ``absent`` a compiler that is not there is an error too. Spack does not check ``packages.yaml`` about an
    external compiler. Only compilers of languages that something in the lock is built with are checked.
    """
    used = {(node.compiler(language), language) for node in document.nodes for language in LANGUAGES}
    for digest, node in document.concrete_specs.items():
        for language, program in node.external.attributes.compilers.items() if node.external else ():
            if (digest, language) not in used:
                continue
            installed = stream.version_of(program)
            if installed != node.version and (installed or absent):
                has = f"is {installed}" if installed else "is not there"
                raise PlumbError(
                    f"the lock is for {node.name} {node.version}, {program} {has}",
                    where,
                    "correct packages.yaml of the site, then make the lock again",
                )


def check_content(spack: Spack, name: str) -> tuple[dict[str, str], dict[str, str]]:
    """Raise :class:`PlumbError` if packages of the lock are not what their hashes stand for.

    The lock was edited, or one of our recipes was changed. Spack computes the hashes again (``spack-env/rehash.py``);
    without that it uses the hashes in a lock as they are. Returns, by hash, SHA-256 and URL of the sources of packages
    whose recipe is of another repository than Spack's, and the prefix of externals that are not there.
    """
    file = environments.lock(name)
    lines = spack.run("python", str(environments.folder() / "rehash.py"), str(file)).splitlines()
    nodes = environments.read(name).concrete_specs
    facts: dict[str, dict[str, str]] = {"changed": {}, "recipe": {}, "archive": {}, "absent": {}}
    for kind, digest, *rest in (line.split() for line in lines if line.partition(" ")[0] in facts):
        facts[kind][digest] = " ".join(rest)
    changed, recipes = (
        ", ".join(sorted(nodes[digest].name for digest in facts[kind])) for kind in ("changed", "recipe")
    )
    cure = f"restore it, or make the lock again: {environments.command(f'plumb stack lock spack:{name}')}"
    if changed or f"compared {len(nodes)}" not in lines:
        message = f"the lock was edited: {changed or 'its packages'} cannot have the hash in it"
        raise PlumbError(message, str(file), cure)
    if recipes:
        raise PlumbError(f"the recipe of {recipes} is not that of the lock", str(file), cure)
    return facts["archive"], facts["absent"]


def check_externals_there(document: Lock, wanted: Collection[str], absent: Mapping[str, str]) -> None:
    """Raise :class:`PlumbError` if something that the packages ``wanted`` (hashes) are built with is not there.

    Spack trusts ``packages.yaml`` about an external: if it is missing, a build fails later, with an obscure error.
    """
    users: dict[str, str] = {}
    for digest in wanted:
        node = document.concrete_specs[digest]
        for part in node.dependencies:
            if part.hash in absent and set(part.parameters.deptypes) & {"build", "link"}:
                users.setdefault(part.hash, node.name)
    if users:
        lacking = [f"{document.concrete_specs[external].name} (for {user})" for external, user in sorted(users.items())]
        prefixes = ", ".join(sorted({absent[external] for external in users}))
        message = f"the lock takes from this machine what is not in {prefixes}: {', '.join(lacking)}"
        raise PlumbError(message, str(environments.site() / "packages.yaml"), "install it, such as by apt-get install")


def lock(name: str, *, check: bool = False) -> list[Difference]:
    """Concretize environment ``name`` and write the site's lock; with ``check`` only compare.

    Returns the differences; empty if the lock is what Spack makes of the environment. Raises :class:`PlumbError` for a
    result that cannot be built.
    """
    environments.named(name, "plumb stack lock")
    label = f"spack-{name}"
    with files.writing(f"the lock of '{name}'", paths.stacks()), locked(label):
        base = bootstrap.prepare()
        place = environments.copy(name, locked=False)
        # Spack keeps what it found out of a compiler, also that it does not run
        shutil.rmtree(bootstrap.cache() / "compilers", ignore_errors=True)
        Spack(base, place, label).run("concretize", "--force", "--fresh")
        text = (place / environments.LOCK).read_text(encoding="utf-8")
        fresh = decode(text)
        if without := sorted(fresh.without_wrapper()):  # the wrapper adds the target's flags: Spack cannot build it
            raise PlumbError(
                f"{units.counted(len(without), 'package')} would be compiled without {WRAPPER}, {without[0]} first",
                str(environments.site() / name / environments.DESCRIPTION),
                "its compiler does not run here: make the lock where it does",
            )
        file = environments.lock(name)
        differing = _differences(file, fresh)
        if differing and not check:
            # the C compiler ran, others need not be on the machine that makes the lock
            check_compilers(fresh, str(environments.site() / "packages.yaml"), absent=False)
            files.replace(file, json.dumps(json.loads(text), indent=1, sort_keys=True) + "\n")
        shutil.rmtree(place)
    return differing


def _differences(file: Path, fresh: Lock) -> list[Difference]:
    """The differences between the lock ``file`` and a ``fresh`` one."""
    if not file.exists():
        return [Difference("the lock", {"state": "missing"}, {"state": "new"})]
    try:
        old = decode(file.read_bytes())
    except ValueError:
        return [Difference("the lock", {"state": "cannot be read"}, {"state": "new"})]
    roots = [{root.spec for root in document.roots} for document in (old, fresh)]
    alone = [", ".join(sorted(first - second)) or "-" for first, second in (roots, reversed(roots))]
    changed = [Difference("roots", {"specs": alone[0]}, {"specs": alone[1]})] if roots[0] != roots[1] else []
    return [*between(old, fresh), *changed]
