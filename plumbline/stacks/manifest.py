"""Stack manifests: reading, writing, checking, and the environment that they ask for."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline import paths, schemas
from plumbline.errors import PlumbError
from plumbline.files import sha256

FILE = "manifest.json"
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def path(name: str) -> Path:
    """Where the manifest of stack ``name`` lies."""
    return paths.stacks() / name / FILE


def names() -> list[str]:
    """The stacks that have a manifest, sorted."""
    return sorted(entry.parent.name for entry in paths.stacks().glob(f"*/{FILE}"))


def load(name: str) -> dict[str, Any]:
    """The manifest of stack ``name``, valid by its schema."""
    file = path(name)
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        installed = ", ".join(names()) or "none"
        raise PlumbError(
            f"stack '{name}' is not installed", str(file), f"plumb stack install {name} (installed: {installed})"
        ) from None
    except (OSError, ValueError) as error:
        raise PlumbError(
            f"cannot read the manifest of stack '{name}': {error}", str(file), f"plumb stack install --force {name}"
        ) from None
    schemas.check("manifest", document, str(file))
    if document["name"] != name:
        raise PlumbError(f"the manifest calls itself '{document['name']}'", str(file), "reinstall the stack")
    return dict(document)


def load_all() -> list[dict[str, Any]]:
    """The manifests of all installed stacks, sorted by name."""
    return [load(name) for name in names()]


def save(document: dict[str, Any]) -> Path:
    """Write a manifest in one step; the stack counts as installed from then on."""
    file = path(document["name"])
    schemas.check("manifest", document, str(file))
    temporary = file.with_suffix(".tmp")
    with temporary.open("w", encoding="utf-8") as stream:
        json.dump(document, stream, indent=2, sort_keys=False)
        stream.write("\n")
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(file)
    return file


def problems(document: dict[str, Any], leave_out: str | None = None) -> list[str]:
    """What is wrong with an installed stack, one line each; empty when every program is there and unchanged.

    Programs of the suite ``leave_out`` are not looked at.
    """
    name = document["name"]
    found = []
    launcher = document["launcher"]["command"]
    if not os.access(launcher, os.X_OK):
        found.append(f"stack {name}: launcher is missing: {launcher}")
    for ident, benchmark in document["benchmarks"].items():
        if benchmark["suite"] == leave_out:
            continue
        program, file = benchmark["command"][0], Path(benchmark["file"])
        if not os.access(program, os.X_OK):
            found.append(f"stack {name}: program of {ident} is missing: {program}")
        elif not file.is_file():
            found.append(f"stack {name}: file of {ident} is missing: {file}")
        elif sha256(file) != benchmark["sha256"]:
            found.append(f"stack {name}: {ident} is not the program that was recorded (SHA-256 differs): {file}")
    return found


def check(document: dict[str, Any]) -> None:
    """Raise :class:`PlumbError` unless every program of the stack exists and has its recorded SHA-256."""
    found = problems(document)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        name = document["name"]
        cure = f"plumb stack install --force {name}" if document["provider"] == "wheel" else "make the stack again"
        raise PlumbError(found[0] + more, str(path(name)), cure)


def expand(value: str, base: Mapping[str, str]) -> str:
    """Replace ``${NAME}`` by the value in ``base``.

    In a list separated by colons an element that is only an unset reference is dropped, because an empty element
    of a search path means the working directory.
    """
    pieces = []
    for piece in value.split(":"):
        text = _REFERENCE.sub(lambda match: base.get(match.group(1), ""), piece)
        if text or not piece:
            pieces.append(text)
    return ":".join(pieces)


def environment(document: dict[str, Any], base_env: Mapping[str, str]) -> dict[str, str]:
    """The variables that the stack sets, expanded; the caller lays them over ``base_env``."""
    return {name: expand(value, base_env) for name, value in document["environment"].items()}
