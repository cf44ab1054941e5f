"""The request of a search: two ends, the factors in which they differ, and any mixture of them as a variant."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, structs

from plumbline.gate.setup import Order
from plumbline.host import change
from plumbline.measure.session import Kind
from plumbline.records.model import Record
from plumbline.records.variant import Variant
from plumbline.show import diff
from plumbline.stacks import libraries
from plumbline.stacks.manifest import Manifest, Source
from plumbline.statistics.paired import PairedRule

#: attributes of a variant that are one factor each
ATTRIBUTES = ("placement", "memory", "threads", "ranks_per_node", "arguments")
#: members of a variant that have a factor for each name in them, and what such a factor is called
MAPPINGS = {"settings": "setting", "environment": "variable"}
#: the variable that loads libraries before those that a program names (ld.so(8))
PRELOAD = "LD_PRELOAD"
#: the parts of a variant that are built: each mixture of them has a variant of its own
BASES = ("stack", "code", "build")


class Factor(Struct, frozen=True):
    """A circumstance in which the ends differ, and that can be set here.

    ``kind`` is ``stack``, ``code``, ``build`` (the variables of an application's build), one of :data:`ATTRIBUTES`, a
    value of :data:`MAPPINGS`, ``library`` or ``package`` (of the stacks: the other one's files are preloaded) or
    ``host`` (a setting that only root can change); ``name`` is that of a setting, variable, library or package.
    ``before`` is its value in A, ``after`` in B, for people; None: it is not set. ``preloads`` are the files of a
    library or package in A and in B, preloaded to have its value on the other stack.
    """

    kind: str
    name: str
    before: str | None
    after: str | None
    preloads: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def label(self) -> str:
        """For people: ``setting btl_sm_eager_limit``."""
        names = {"ranks_per_node": "ranks per node", "host": "host setting", "build": "build variables"}
        kind = names.get(self.kind, self.kind)
        return f"{kind} {self.name}".rstrip()


class Fixed(Struct, frozen=True):
    """A circumstance in which the ends differ, and that is not set alone.

    ``why``: root could, it is one of the packages of the stack, or it cannot be set at all.
    """

    key: str
    before: str
    after: str
    why: Literal["no", "root only", "in the stack"]


class Ends(Struct, frozen=True):
    """Both ends, and all between them.

    ``labels`` are A and B for people, ``ids`` their records where they are some. ``bases`` has the variant of each
    mixture of stack, code and build, by how those of :data:`BASES` that are factors are set (``""``, ``"1"``, ``"01"``
    …, one digit for each in their order); ``first`` and ``second`` are A and B as they were.
    """

    labels: tuple[str, str]
    first: Variant
    second: Variant
    factors: list[Factor]
    bases: dict[str, Variant]
    fixed: list[Fixed] = []
    ids: tuple[str, ...] = ()

    def variant(self, configuration: int) -> Variant:
        """A with the factors of ``configuration`` as they are in B."""
        levels = {factor: bool(configuration >> place & 1) for place, factor in enumerate(self.factors)}
        base = self.bases["".join(str(int(levels[factor])) for factor in self.factors if factor.kind in BASES)]
        changed: dict[str, Any] = {name: getattr(self.first, name) for name in ATTRIBUTES}
        for name in MAPPINGS:
            both = (getattr(self.first, name), getattr(self.second, name))
            changed[name] = {key: value for key, value in both[0].items() if both[1].get(key) == value}
        for factor, is_after in levels.items():
            end = self.second if is_after else self.first
            if factor.kind in ATTRIBUTES:
                changed[factor.kind] = getattr(end, factor.kind)
            for member, kind in MAPPINGS.items():
                if factor.kind == kind and (value := factor.after if is_after else factor.before) is not None:
                    changed[member][factor.name] = value
        is_second = any(is_after for factor, is_after in levels.items() if factor.kind == "stack")
        preloaded = [  # libraries that come from the other end than the stack does
            file for factor, is_after in levels.items() if is_after != is_second for file in factor.preloads[is_after]
        ]
        if preloaded:
            known = filter(None, [changed["environment"].get(PRELOAD)])
            changed["environment"][PRELOAD] = ":".join([*preloaded, *known])
        return structs.replace(base, **changed, name=f"{self.first.name} {self.mixture(configuration)}".rstrip())

    def mixture(self, configuration: int) -> str:
        """A configuration for people: ``A``, ``B``, ``A with threads``, ``B without threads``."""
        members = [factor.label for place, factor in enumerate(self.factors) if configuration >> place & 1]
        others = [factor.label for place, factor in enumerate(self.factors) if not configuration >> place & 1]
        if not members or not others:
            return "B" if members or not self.factors else "A"
        return f"A with {', '.join(members)}" if len(members) <= len(others) else f"B without {', '.join(others)}"

    def host(self, configuration: int) -> dict[str, str]:
        """The settings of the host that a launch of ``configuration`` needs."""
        return {
            factor.name: value
            for place, factor in enumerate(self.factors)
            if factor.kind == "host"
            and (value := factor.after if configuration >> place & 1 else factor.before) is not None
        }


class WhyRequest(Struct):
    """A search: its ends, ``figure`` (None: that with the largest difference), margins, seed, where it is measured.

    ``circumstances`` that are None are those of the job that measures. ``order`` is that of the ends' gate.
    """

    session: str
    ends: Ends
    tolerance: float
    must_detect: float
    seed: int
    circumstances: dict[str, Any]
    figure: str | None = None
    order: Order = "turns"

    @property
    def rule(self) -> PairedRule:
        """The margins of every effect."""
        return PairedRule(self.tolerance, self.must_detect, gain=True)


WHY = Kind("search", "why", "why.json", WhyRequest)


#: files that are linked with by their names; plugins of MPI libraries are loaded by their paths
_LIBRARY = re.compile(r"lib.+\.so(\.\d+)+")
#: variables of records that are the suite's own
OWN = "PLUMB_"
#: keys of differences that follow from a factor or are said by one, and those that say where and when
FOLLOWING = ("stack", "benchmark", "variant", "placement", "plan", "environment", "settings", "loaded", "transports")


def of_variants(first: Variant, second: Variant) -> list[Factor]:
    """The factors of two variants, apart from what they run (stack and code)."""
    factors = [
        Factor(name, "", _shown(before), _shown(after))
        for name in ATTRIBUTES
        if (before := getattr(first, name)) != (after := getattr(second, name))
    ]
    for member, kind in MAPPINGS.items():
        before, after = getattr(first, member), getattr(second, member)
        factors += [
            Factor(kind, name, before.get(name), after.get(name))
            for name in {**before, **after}
            if before.get(name) != after.get(name)
        ]
    return factors


def _shown(value: Any) -> str | None:
    return " ".join(value) if isinstance(value, list) else None if value is None else str(value)


def of_libraries(first: Manifest, second: Manifest) -> list[Factor]:
    """The libraries that two stacks of one family and binary interface both have, and that differ.

    Those of a package of Spack are one factor, in the order of the manifest: behind those that they need, so that
    neighbours, which a search for a group keeps together, are built on each other. The MPI library itself, and what its
    package has, is not among them: a launch on another one than the stack's is never verified.
    """
    if (first.mpi.family, first.mpi.abi) != (second.mpi.family, second.mpi.abi) or not (first.loads and second.loads):
        return []
    both = [
        {Path(file).name: (file, digest) for file, digest in loads.files.items() if file != loads.library}
        for loads in (first.loads, second.loads)
    ]
    mpi = libraries.package_of(first, first.loads.library or "")
    by_name: dict[str, Factor] = {}
    for name in both[0]:
        if not (_LIBRARY.fullmatch(name) and name in both[1] and both[0][name][1] != both[1][name][1]):
            continue
        files = both[0][name][0], both[1][name][0]
        before, after = (libraries.package_of(stack, file) for stack, file in zip((first, second), files, strict=True))
        if before is None or after is None or before.name != after.name:
            by_name[name] = Factor("library", name, *files, ((files[0],), (files[1],)))
        elif mpi is None or before.name != mpi.name:
            known = factor.preloads if (factor := by_name.get(before.name)) else ((), ())
            preloads = ((*known[0], files[0]), (*known[1], files[1]))
            by_name[before.name] = Factor("package", before.name, _package(before), _package(after), preloads)
    order = {source.name: place for place, source in enumerate(first.sources)}
    return sorted(by_name.values(), key=lambda factor: order.get(factor.name, len(order)))


def packages(first: Manifest, second: Manifest, varied: Collection[Factor]) -> list[Fixed]:
    """The packages in which two stacks differ, and that are set together, with the stack: not those ``varied`` alone.

    Of stacks of one family that name no packages, such as those of modules, it is the libraries that are not factors:
    the MPI library, and what has another name or is in one of them only.
    """
    before, after = ({source.name: source for source in stack.sources} for stack in (first, second))
    alone = {factor.name for factor in varied}
    differing = [
        Fixed(f"package {name}", _package(before.get(name)), _package(after.get(name)), "in the stack")
        for name in {**before, **after}
        if before.get(name) != after.get(name) and name not in alone
    ]
    if before or after or first.mpi.family != second.mpi.family or not (first.loads and second.loads):
        return differing
    old, new = (
        {Path(file).name: (file, digest) for file, digest in loads.files.items()}
        for loads in (first.loads, second.loads)
    )
    absent = ("absent", "")
    return [
        Fixed(f"library {name}", old.get(name, absent)[0], new.get(name, absent)[0], "in the stack")
        for name in {**old, **new}
        if _LIBRARY.fullmatch(name) and name not in alone and old.get(name, absent)[1] != new.get(name, absent)[1]
    ]


def _package(source: Source | None) -> str:
    return "absent" if source is None else f"{source.version} {source.hash.rpartition(':')[2][:7]}"


def of_host(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Factor]:
    """Settings in which the hosts of two records differ, and that this process may change."""
    return [
        Factor("host", name, str(first[name]), str(second[name]))
        for name in change.TABLE
        if change.can_set(name) and None not in (first.get(name), second.get(name)) and first[name] != second[name]
    ]


def fixed(first: Record, second: Record) -> list[Fixed]:
    """The differences of two records that follow from no factor.

    Of the files that the ranks loaded that is the system's own, such as libc after an update.
    """
    differences = []
    for key, before, after in diff.differences(first, second):
        part, _, name = key.partition(".")
        if part == "loaded" and "absent" not in (before, after) and libraries.is_of_system(Path(name).parent):
            differences.append(Fixed(f"library {Path(name).name}", before, after, "no"))
        elif part not in FOLLOWING:
            differences.append(
                Fixed(key, before, after, "root only" if part == "host" and name in change.TABLE else "no")
            )
    days = first.time[:10], second.time[:10]
    return [*differences, *([Fixed("date", *days, "no")] if days[0] != days[1] else [])]


def key_of(variant: Variant) -> str:
    """The key that both ends of a search must share: the figures measured, and where."""
    figures = [(figure.name, figure.metric, figure.where) for figure in variant.figures]
    return json.dumps([variant.site, variant.partition, variant.test, variant.parser, variant.nodes, figures])
