"""Whether this host can run what a lock is built for."""

from __future__ import annotations

from typing import Any

from archspec import cpu
from archspec.cpu import detect

from plumbline.errors import PlumbError


def check(node: dict[str, Any], where: str) -> None:
    """Raise :class:`PlumbError` if this host's processor cannot run the target of a lock's ``node``.

    Only generic targets are compared, such as the levels of the x86-64 psABI; a processor's own (``zen4``) is left to
    whoever chose it. Source: archspec, which Spack uses too.
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
