"""The differences between two locks: the packages that differ, each with its differing attributes.

A package that is only rebuilt, because something that it needs differs, has another hash but no difference of its own.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import msgspec

from plumbline.extras.spack.lock import LANGUAGES, Dependency, Lock, Node


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
        attributes = dict.fromkeys([*self.before, *self.after])
        return [
            (self.name, attribute, self.before.get(attribute, "-"), self.after.get(attribute, "-"))
            for attribute in attributes
        ]


def between(before: Lock, after: Lock) -> list[Difference]:
    """The packages that differ, by name; several of one name are compared in the order of their versions."""
    differences = []
    for name in sorted({node.name for lock in (before, after) for node in lock.nodes}):
        sides = [_named(lock, name) for lock in (before, after)]
        shared = sides[0].keys() & sides[1].keys()
        alone = ([node for digest, node in side.items() if digest not in shared] for side in sides)
        pairs = [*((sides[0][digest], sides[1][digest]) for digest in sorted(shared)), *zip_longest(*alone)]
        differences += [
            difference for first, second in pairs if (difference := _compare(name, first, second, before, after))
        ]
    return differences


def _named(lock: Lock, name: str) -> dict[str, Node]:
    """The packages of that name, by hash, in the order of their versions."""
    nodes = {digest: node for digest, node in lock.concrete_specs.items() if node.name == name}
    return dict(sorted(nodes.items(), key=lambda item: (item[1].version, item[0])))


def _compare(name: str, first: Node | None, second: Node | None, before: Lock, after: Lock) -> Difference | None:
    if first is None or second is None:
        there = [{"version": node.version} if node else {} for node in (first, second)]
        return Difference(name, *there)
    facts = _facts(first, before), _facts(second, after)
    needs = [{part.name for part in node.dependencies if not _is_compiler(part)} for node in (first, second)]
    for side, names, others in zip(facts, needs, reversed(needs), strict=True):
        if names - others:
            side["needs"] = ", ".join(sorted(names - others))
    keys = dict.fromkeys([*facts[0], *facts[1]])
    differing = [key for key in keys if facts[0].get(key) != facts[1].get(key)]
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
    facts = {"version": node.version, "repository": node.namespace}
    facts |= {key: _text(value) for key, value in sorted(node.parameters.items())}
    facts |= {"target": node.target, "system": node.arch.platform_os, "recipe": node.package_hash[:7]}
    compilers = (lock.concrete_specs.get(node.compiler(language) or "") for language in LANGUAGES)
    facts["compiler"] = ", ".join(dict.fromkeys(compiler.name for compiler in compilers if compiler))
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
