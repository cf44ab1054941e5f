"""Manifests of stacks from dictionaries, in which tests write and change them."""

from pathlib import Path
from typing import Any

import msgspec

from plumbline.stacks import manifest
from plumbline.stacks.manifest import Manifest

#: the least that a manifest has; there is no such program
LEAST = {
    "schema": 1,
    "name": "made",
    "provider": "wheel",
    "mpi": {"family": "mpich", "version": "5.0", "abi": "mpich"},
    "compiler": {"name": "gcc", "version": "12"},
    "launcher": {"family": "hydra", "command": "/bin/mpiexec"},
    "prefix": "/opt/made",
    "environment": {},
    "modules": [],
    "benchmarks": {
        "pi": {
            "suite": "kernels",
            "version": "1",
            "command": ["/bin/pi"],
            "file": "/bin/pi",
            "sha256": "0" * 64,
            "built": "by hand",
        }
    },
    "sources": [],
}


def typed(document: dict[str, Any]) -> Manifest:
    """The manifest that ``document`` is."""
    return msgspec.convert(document, Manifest)


def made(name: str = "made", family: str = "mpich", **changes: Any) -> Manifest:
    """A manifest that says little more than the ``family`` of the stack's MPI library."""
    return typed(LEAST | {"name": name, "mpi": {"family": family, "version": "5.0", "abi": "mpich"}} | changes)


def save(document: dict[str, Any]) -> Path:
    """Write the manifest of an installed stack; returns the file."""
    return manifest.save(typed(document))
