"""Differences of two ends: factors that can be set here, and those that cannot be set."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from plumbline.extras.search.why.model import ATTRIBUTES, MAPPINGS, Factor, Fixed
from plumbline.host import change
from plumbline.records.model import Record
from plumbline.records.variant import Variant
from plumbline.show import diff
from plumbline.stacks import libraries
from plumbline.stacks.manifest import Manifest, Source

#: files that are linked with by their names; plugins of MPI libraries are loaded by their paths
_LIBRARY = re.compile(r"lib.+\.so(\.\d+)+")
#: variables of records that are the suite's own
OWN = "PLUMB_"
#: keys of differences that follow from a factor or are said by one, and those that say where and when
FOLLOWING = ("stack", "benchmark", "variant", "placement", "plan", "environment", "settings", "loaded", "transports")


def of_variants(first: Variant, second: Variant) -> list[Factor]:
    """The factors of two variants, apart from what they run (stack and code)."""
    factors = []
    for name in ATTRIBUTES:
        before, after = getattr(first, name), getattr(second, name)
        if before != after:
            factors.append(Factor(name, "", _shown(before), _shown(after)))
    for member, kind in MAPPINGS.items():
        before, after = getattr(first, member), getattr(second, member)
        factors += [
            Factor(kind, name, before.get(name), after.get(name))
            for name in {**before, **after}
            if before.get(name) != after.get(name)
        ]
    return factors


def _shown(value: Any) -> str | None:
    if isinstance(value, list):
        return " ".join(value)
    return None if value is None else str(value)


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
