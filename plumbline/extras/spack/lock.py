"""The lock of a Spack environment (``spack.lock``) as types: the members that are read here; Spack writes more."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import msgspec

from plumbline.base.errors import PlumbError

#: A need of every package that Spack compiles: it adds the flags of the target, and the paths of libraries.
WRAPPER = "compiler-wrapper"
#: virtual packages that are compilers
LANGUAGES = ("c", "cxx", "fortran")


class Root(msgspec.Struct, frozen=True):
    """A spec that the environment asks for, and the package that meets it."""

    hash: str
    spec: str


class Tool(msgspec.Struct, frozen=True):
    """The Spack that made the lock."""

    commit: str | None = None


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

    @property
    def is_compiled(self) -> bool:
        """Whether Spack builds it with a compiler."""
        return self.external is None and any(map(self.compiler, LANGUAGES))


class Lock(msgspec.Struct, frozen=True):
    """A lock; the keys of ``concrete_specs`` are hashes."""

    roots: tuple[Root, ...]
    concrete_specs: dict[str, Node]
    spack: Tool

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All packages."""
        return tuple(self.concrete_specs.values())

    def node(self, package: str) -> tuple[str, Node]:
        """Hash and element of ``package``; raises :class:`PlumbError` if it is not there."""
        for digest, element in self.concrete_specs.items():
            if element.name == package:
                return digest, element
        raise PlumbError(f"the lock lacks {package}", "spack.lock", "plumb stack lock writes a new one")

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
            if node.is_compiled and node.name != WRAPPER and all(part.name != WRAPPER for part in node.dependencies):
                yield node.name


def decode(text: str | bytes) -> Lock:
    """A lock from Spack's JSON; raises :class:`msgspec.DecodeError` for everything else."""
    return msgspec.json.decode(text, type=Lock)
