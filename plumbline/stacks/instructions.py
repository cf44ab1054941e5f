"""The instructions that programs are compiled for: those of this host, unless nodes lack some, or a person says others.

A program that is compiled on a login host for its processor ends with an illegal instruction on an older node.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.base.units import some
from plumbline.host.collector import SIMD, Reader

#: the variable that names the processor, in gcc's words: ``x86-64-v3``, ``haswell``, ``neoverse-v1``
VARIABLE = "PLUMB_CPU"
#: levels of https://gitlab.com/x86-psABIs/x86-64-ABI (and Arm's least one), best first, by the flags in facts of nodes
LEVELS = {
    "x86_64": (
        ("x86-64-v4", {"avx512f", "avx512dq", "avx512vl", "avx2", "fma"}),
        ("x86-64-v3", {"avx2", "fma"}),
        ("x86-64-v2", {"sse4_2"}),
        ("x86-64", {"sse2"}),
    ),
    "aarch64": (("generic", {"asimd"}),),
}
#: processors in place of the levels that gcc before version 11 does not know
OLDER = {"x86-64-v4": "skylake-avx512", "x86-64-v3": "haswell", "x86-64-v2": "nehalem"}
#: flags of /proc/cpuinfo by the macros of compilers that make use of them: lower case, without underscores
MACROS = {
    **{flag.replace("_", ""): flag for flag in SIMD | {"bmi2", "popcnt", "movbe", "f16c", "sse4a"}},
    **{"lzcnt": "abm", "bmi": "bmi1"},
    **{f"armfeature{name}": name for name in ("atomics", "sve", "sve2")},
    **{"armfeaturedotprod": "asimddp", "armfeatureqrdmx": "asimdrdm", "armfeaturematmulint8": "i8mm"},
    **{"armfeaturefp16vectorarithmetic": "asimdhp", "armfeaturebf16vectorarithmetic": "bf16"},
}


def target(gcc: str = "") -> tuple[str, ...]:
    """Compiler options for :data:`VARIABLE`, or for what all nodes have whose facts are in ``build/nodes``.

    None for the processor of this host: that is so where no node lacks what this host has. ``gcc`` is its version.
    """
    if not (named := os.environ.get(VARIABLE)):
        files = sorted((paths.build() / "nodes").glob("*/*.json"))
        here = frozenset(Reader().flags() & SIMD)
        common = _common(here, tuple((str(file), file.stat().st_mtime_ns) for file in files))
        named = "native" if common == here else _level(common) or "native"
    if gcc.startswith(("8.", "9.", "10.")):
        named = OLDER.get(named, named)
    return () if named == "native" else (native().replace("native", named),)


def native() -> str:
    """The compiler's option for the processor of this host."""
    return "-march=native" if platform.machine() == "x86_64" else "-mcpu=native"


@functools.cache
def _common(here: frozenset[str], files: tuple[tuple[str, int], ...]) -> frozenset[str]:
    """Which of the flags ``here`` each node of this architecture has."""
    kind = here & {"sse2", "asimd"}
    for file, _ in files:
        try:
            flags = frozenset(json.loads(Path(file).read_text(encoding="utf-8"))["cpu"]["simd"])
        except (OSError, ValueError, KeyError, TypeError):  # plumb nodes compare names it
            continue
        here = here & flags if flags >= kind else here
    return here


def _level(flags: AbstractSet[str]) -> str | None:
    """The best level that a processor with these ``flags`` has."""
    return next((name for name, wanted in LEVELS.get(platform.machine(), ()) if wanted <= flags), None)


def needed(macros: str, chosen: Sequence[str]) -> str:
    """The flags of /proc/cpuinfo that programs need, from a compiler's ``-dM`` and its ``chosen`` processor."""
    names = (name.lower().replace("_", "") for name in re.findall(r"^#define (\w+) 1$", macros, re.MULTILINE))
    flags = {MACROS[name] for name in MACROS.keys() & names}
    return " ".join(sorted(flags if chosen else flags & Reader().flags()))


def refuse(facts: Mapping[str, Any], program: str, stack: str) -> None:
    """Raise :class:`PlumbError` if this host's processor lacks instructions that ``program`` was compiled for."""
    flags = Reader().flags()
    lacking = [flag for flag in str(facts.get("instructions", "")).split() if flag not in flags]
    if flags and lacking:
        # the line of a failed case is cut, and the cure is at its end
        names = some(sorted(lacking, key=lambda flag: (flag not in SIMD, len(flag))), 2)
        message = f"{program} of stack {stack} was compiled for another processor: this node lacks {names}"
        raise PlumbError(message, platform.node(), f"{VARIABLE}={_level(flags)} plumb stack install {stack}")
