"""Plans: a placement resolved on one node."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from plumbline import schemas
from plumbline.errors import PlumbError
from plumbline.topology import binder


def resolve(
    placement: str,
    *,
    threads: int | None = None,
    memory: str | None = None,
    ranks: int | None = None,
    topology: str | Path | None = None,
    machine: str | None = None,
    allowed: str | Iterable[int] | None = None,
) -> dict[str, Any]:
    """The plan (``plumbline/schemas/plan.json``) of ``placement``.

    ``threads``: a rank; left out, what fills the rank's object. ``ranks``: on the node; left out, as many as fit.
    ``topology``: an hwloc XML file or synthetic description; left out, this host. ``machine``: what errors call it.
    ``allowed``: CPUs that may be used, as a list like ``0-3,8`` or as numbers. What cannot be satisfied raises
    :class:`PlumbError` with the binder's own line.
    """
    arguments = ["--print", "--placement", placement]
    if allowed is not None and not isinstance(allowed, str):
        allowed = ",".join(str(cpu) for cpu in allowed)
    for option, value in (
        ("--threads", threads),
        ("--memory", memory),
        ("--ranks", ranks),
        ("--topology", topology),
        ("--machine", machine),
        ("--allowed", allowed),
    ):
        if value is not None:
            arguments += [option, str(value)]
    plan: dict[str, Any] = json.loads(binder.ask(arguments))
    try:
        schemas.check("plan", plan, "output of plumb-bind --print")
    except PlumbError as error:
        raise binder.outdated(error.what) from None
    return plan
