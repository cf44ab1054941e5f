"""Whether this host can run what a lock is built for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from plumbline.errors import PlumbError

CPUINFO = Path("/proc/cpuinfo")
#: Levels of the x86-64 psABI (https://gitlab.com/x86-psABIs/x86-64-ABI), as the kernel names their features; each adds.
_LEVELS = {
    "x86_64_v2": ("cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"),
    "x86_64_v3": ("abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"),
    "x86_64_v4": ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"),
}


def check(node: dict[str, Any], where: str, cpuinfo: Path = CPUINFO) -> None:
    """Raise :class:`PlumbError` if the target of a lock's ``node`` is a level that this host's processor has not.

    Targets that are not levels (``zen4``, ``neoverse_v2``) are not judged.
    """
    target = node["arch"]["target"]
    name = target if isinstance(target, str) else target["name"]
    if name not in _LEVELS:
        return
    found = re.search(r"^flags\s*:(.*)$", cpuinfo.read_text(encoding="utf-8"), re.MULTILINE)
    have = set(found[1].split()) if found else set()
    for level, features in _LEVELS.items():
        missing = [feature for feature in features if feature not in have]
        if missing:
            raise PlumbError(
                f"the lock is for {name}, this processor has no {', '.join(missing)}",
                where,
                "choose or make a site with a lower target (PLUMB_SPACK_SITE)",
            )
        if level == name:
            return
