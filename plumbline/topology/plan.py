"""Plans: a placement resolved on one node."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from plumbline import schemas
from plumbline.base.errors import PlumbError
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

    ``threads``: of each rank; default: as many as fill the rank's object. ``ranks``: on the node; default: as many as
    fit. ``memory``: the policy; default: the placement's. ``topology``: an hwloc XML file or synthetic description;
    default: this host. ``machine``: its name in errors. ``allowed``: CPUs that may be used, as a list like ``0-3,8`` or
    as numbers. Raises :class:`PlumbError` with the binder's own line for what cannot be satisfied.
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
