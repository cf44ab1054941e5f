"""``plumb reproduce``: the variant of a record once more, on the same stack, and what could not be made equal."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plumbline import paths
from plumbline.errors import PlumbError
from plumbline.launch import driver
from plumbline.records import store
from plumbline.stacks import manifest as manifests
from plumbline.views import diff


def run(prefix: str, say: Callable[[str], None]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run the variant of the record whose id begins with ``prefix`` again; returns the old and the new record.

    Raises :class:`PlumbError` when the stack is gone or its program is another one now.
    """
    old = store.find(prefix)
    variant = old["variant"]
    stack = manifests.load(variant["stack"])
    now = stack["benchmarks"].get(variant["benchmark"])
    if now is None:
        raise PlumbError(
            f"stack {variant['stack']} no longer has {variant['benchmark']}", "its manifest", "install it again"
        )
    if now["sha256"] != old["benchmark"]["sha256"]:
        say(
            f"note: {variant['benchmark']} is another program now: "
            f"sha256 {now['sha256'][:12]}, then {old['benchmark']['sha256'][:12]}"
        )
    work = paths.build() / "reproduce"
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work) as folder:
        _, records = driver.run([variant], Path(folder), seed=int(old["environment"].get("PLUMB_SEED", "0")), say=say)
    return old, records[0]


def text(old: dict[str, Any], new: dict[str, Any]) -> str:
    """What could not be made equal, and both sets of figures."""
    return diff.text(old, new)
