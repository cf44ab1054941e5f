"""The lock of a Spack environment (``spack.lock``) as types, and the differences between two locks.

The types have the members that are read here; Spack writes more. A package that is only rebuilt, because something that
it needs differs, has another hash but no difference of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import Any

import msgspec

#: A need of every package that Spack compiles: it adds the flags of the target, and the paths of libraries.
WRAPPER = "compiler-wrapper"
#: virtual packages that are compilers
LANGUAGES = ("c", "cxx", "fortran")


class Root(msgspec.Struct, frozen=True):
    """A spec that the environment asks for, and the package that meets it."""

    hash: str
    spec: str


class Edge(msgspec.Struct, frozen=True):
    """For what a package is needed: types of dependency, and the virtual packages that it stands for."""

    virtuals: tuple[str, ...] = ()
    deptypes: tuple[str, ...] = ()


class Dependency(msgspec.Struct, frozen=True):
    """A package that another one needs."""

    name: str
    hash: str
    parameters: Edge


class Attributes(msgspec.Struct, frozen=True):
    """A site's facts of an external: programs of a compiler by language, or the stack that it was taken from."""

    compilers: dict[str, str] = {}
    plumb_stack: str | None = None


class External(msgspec.Struct, frozen=True):
    """A package that is there already, and is not built."""

    path: str | None = None
    extra_attributes: Attributes | None = None

    @property
    def attributes(self) -> Attributes:
        """The site's facts of it."""
        return self.extra_attributes or Attributes()


class Target(msgspec.Struct, frozen=True):
    """A processor that is not a generic one."""

    name: str


class Architecture(msgspec.Struct, frozen=True):
    """The system and the processor that a package is built for."""

    platform_os: str
    target: str | Target


class Node(msgspec.Struct, frozen=True):
    """A package of the lock; ``package_hash`` is that of its recipe."""

    name: str
    version: str
    arch: Architecture
    hash: str = ""
    namespace: str = "builtin"
    package_hash: str = ""
    parameters: dict[str, Any] = {}
    dependencies: tuple[Dependency, ...] = ()
    external: External | None = None

    @property
    def target(self) -> str:
        """The name of the processor that it is for."""
        wanted = self.arch.target
        return wanted if isinstance(wanted, str) else wanted.name

    def compiler(self, language: str) -> str | None:
        """The hash of its compiler of a language; None if it has nothing in that language."""
        return next((needed.hash for needed in self.dependencies if language in needed.parameters.virtuals), None)


class Lock(msgspec.Struct, frozen=True):
    """A lock; the keys of ``concrete_specs`` are hashes. ``spack``: the Spack that made it, such as its ``commit``."""

    roots: tuple[Root, ...]
    concrete_specs: dict[str, Node]
    spack: dict[str, Any]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All packages."""
        return tuple(self.concrete_specs.values())

    def absent(self) -> str | None:
        """A root or dependency that is not in the lock, with what needs it; None for a complete lock."""
        needed = chain(
            ((root.hash, f"{root.spec} (/{root.hash[:7]})") for root in self.roots),
            (
                (part.hash, f"{part.name} (/{part.hash[:7]}), which {node.name} needs")
                for node in self.nodes
                for part in node.dependencies
            ),
        )
        return next((package for digest, package in needed if digest not in self.concrete_specs), None)

    def without_wrapper(self) -> Iterator[str]:
        """Names of packages that are compiled, but not by Spack's wrapper: Spack can build none of them.

        Spack concretizes in this way where the compiler does not run.
        """
        for node in self.nodes:
            compiled = node.external is None and any(map(node.compiler, LANGUAGES))
            if compiled and WRAPPER not in (node.name, *(part.name for part in node.dependencies)):
                yield node.name


def decode(text: str | bytes) -> Lock:
    """A lock from Spack's JSON; raises :class:`msgspec.DecodeError` for everything else."""
    return msgspec.json.decode(text, type=Lock)


class Difference(msgspec.Struct, frozen=True):
    """A package with what differs: attribute -> value, on each side; empty where the package is not there."""

    name: str
    before: dict[str, str]
    after: dict[str, str]

    def __str__(self) -> str:
        if not self.before or not self.after:
            return f"{self.name}: only in the {'first' if self.before else 'second'}"
        return f"{self.name}: " + ", ".join(
            f"{attribute} {first} and {second}" for _, attribute, first, second in self.rows()
        )

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Package, attribute and the two values, of each attribute; ``-`` stands for what is not there."""
        return [
            (self.name, attribute, self.before.get(attribute, "-"), self.after.get(attribute, "-"))
            for attribute in dict.fromkeys([*self.before, *self.after])
        ]


def between(before: Lock, after: Lock) -> Iterator[Difference]:
    """The packages that differ, by name; several of one name are compared in the order of their versions."""
    for name in sorted({node.name for lock in (before, after) for node in lock.nodes}):
        sides = [_named(lock, name) for lock in (before, after)]
        shared = sides[0].keys() & sides[1].keys()
        alone = ([node for digest, node in side.items() if digest not in shared] for side in sides)
        pairs = [*((sides[0][digest], sides[1][digest]) for digest in sorted(shared)), *zip_longest(*alone)]
        yield from filter(None, (_compare(name, first, second, before, after) for first, second in pairs))


def _named(lock: Lock, name: str) -> dict[str, Node]:
    """The packages of that name, by hash, in the order of their versions."""
    nodes = {digest: node for digest, node in lock.concrete_specs.items() if node.name == name}
    return dict(sorted(nodes.items(), key=lambda item: (item[1].version, item[0])))


def _compare(name: str, first: Node | None, second: Node | None, before: Lock, after: Lock) -> Difference | None:
    if first is None or second is None:
        return Difference(name, *({"version": node.version} if node else {} for node in (first, second)))
    facts = _facts(first, before), _facts(second, after)
    needs = [{part.name for part in node.dependencies if not _is_compiler(part)} for node in (first, second)]
    for side, names, others in zip(facts, needs, reversed(needs), strict=True):
        if names - others:
            side["needs"] = ", ".join(sorted(names - others))
    differing = [key for key in dict.fromkeys([*facts[0], *facts[1]]) if facts[0].get(key) != facts[1].get(key)]
    if not differing and first.hash != second.hash and _needed(first) == _needed(second):
        return Difference(name, {"hash": first.hash[:7]}, {"hash": second.hash[:7]})  # by another Spack
    if not differing:
        return None
    return Difference(name, *({key: side.get(key, "-") for key in differing} for side in facts))


def _is_compiler(part: Dependency) -> bool:
    """Whether it is a compiler, or the libraries that come with gcc: ``compiler`` says it."""
    return part.name == "gcc-runtime" or not set(LANGUAGES).isdisjoint(part.parameters.virtuals)


def _needed(node: Node) -> set[str]:
    return {part.hash for part in node.dependencies}


def _facts(node: Node, lock: Lock) -> dict[str, str]:
    """The attributes of a package, without the packages that it needs."""
    compilers = (lock.concrete_specs.get(node.compiler(language) or "") for language in LANGUAGES)
    facts = {
        "version": node.version,
        "repository": node.namespace,
        **{key: _text(value) for key, value in sorted(node.parameters.items())},
        "target": node.target,
        "system": node.arch.platform_os,
        "recipe": node.package_hash[:7],
        "compiler": ", ".join(dict.fromkeys(compiler.name for compiler in compilers if compiler)),
    }
    if node.external:
        facts["prefix"] = node.external.path or "of its modules"
        facts |= {f"{key} compiler": program for key, program in sorted(node.external.attributes.compilers.items())}
        if node.external.attributes.plumb_stack:
            facts["stack"] = node.external.attributes.plumb_stack
    return facts


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
