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
from pathlib import Path
from typing import Any

from plumbline.base import paths
from plumbline.base.errors import PlumbError
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
#: options of gcc of whose instructions it makes use by itself, where they are not called as in /proc/cpuinfo
NAMES = {
    **{"sse4.2": "sse4_2", "lzcnt": "abm", "bmi": "bmi1", "avxvnni": "avx_vnni", "avx512bf16": "avx512_bf16"},
    **{"avx512vnni": "avx512_vnni", "avx512bitalg": "avx512_bitalg", "avx512vbmi2": "avx512_vbmi2"},
    **{"avx512vpopcntdq": "avx512_vpopcntdq", "avx512fp16": "avx512_fp16"},
    **{name: name for name in ("avx", "avx2", "fma", "bmi2", "popcnt", "movbe", "f16c", "fma4", "xop", "sse4a")},
    **{name: name for name in ("avx512f", "avx512dq", "avx512bw", "avx512cd", "avx512vl", "avx512ifma", "avx512vbmi")},
}


def target() -> tuple[str, ...]:
    """Compiler options for :data:`VARIABLE`, or for what all nodes have whose facts are in ``build/nodes``.

    None for the processor of this host: that is so where no node lacks what this host has.
    """
    machine = platform.machine()
    option = "-march" if machine == "x86_64" else "-mcpu"
    if named := os.environ.get(VARIABLE):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+-]*", named):
            raise PlumbError(f"{named!r} names no processor", VARIABLE, "write x86-64-v3, or another of gcc's -march")
        return () if named == "native" else (f"{option}={named}",)
    files = sorted((paths.build() / "nodes").glob("*/*.json"))
    here = frozenset(Reader().flags() & SIMD)
    common = _common(here, tuple((str(file), file.stat().st_mtime_ns) for file in files))
    if common == here:
        return ()
    level = next((name for name, flags in LEVELS.get(machine, ()) if flags <= common), None)
    return () if level is None else (f"{option}={level}",)


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


def needed(options: str, chosen: Sequence[str]) -> str:
    """The flags of /proc/cpuinfo that programs need, from gcc's ``-Q --help=target`` and its ``chosen`` processor."""
    flags = {NAMES[name] for name in NAMES.keys() & re.findall(r"^ *-m(\S+)\s+\[enabled\]$", options, re.MULTILINE)}
    return " ".join(sorted(flags if chosen else flags & Reader().flags()))


def refuse(facts: Mapping[str, Any], program: str, stack: str) -> None:
    """Raise :class:`PlumbError` if this host's processor lacks instructions that ``program`` was compiled for."""
    flags = Reader().flags()
    lacking = [flag for flag in str(facts.get("instructions", "")).split() if flag not in flags]
    if flags and lacking:
        message = f"{program} of stack {stack} was compiled for another processor: this node lacks {', '.join(lacking)}"
        cure = f"{VARIABLE}=LEVEL plumb stack install --force {stack}, with what all nodes have, such as x86-64-v3"
        raise PlumbError(message, platform.node(), cure)
