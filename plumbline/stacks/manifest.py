"""Stack manifests: reading, writing, checking, and the environment that they ask for."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline import mpi, schemas
from plumbline.base import files, paths
from plumbline.base.errors import PlumbError, suggest
from plumbline.base.files import sha256

FILE = "manifest.json"
#: benchmark id -> IMB's program
IMB_PROGRAMS = {
    "imb-mpi1": "IMB-MPI1",
    "imb-nbc": "IMB-NBC",
    "imb-rma": "IMB-RMA",
    "imb-mt": "IMB-MT",
    "imb-p2p": "IMB-P2P",
}
#: those for the memory of GPUs, which only Intel MPI's own wheel has
IMB_GPU_PROGRAMS = {"imb-mpi1-gpu": "IMB-MPI1-GPU"}
#: of IMB: the number of messages is what follows, and for large ones no more than a volume in MB. IMB's own policy
#: also gives fewer to a size that takes longer than 10 s: the limit is set so that this does not apply
_IMB_ITERATIONS = ("-iter_policy", "dynamic", "-time", "1000", "-iter")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def imb_arguments(operation: str, largest: int, count: str) -> list[str]:
    """Arguments of an IMB program: all ranks take part, sizes are 0, 1, 2, 4, … up to ``largest`` bytes.

    ``count``: messages of a size, and their volume in MB, such as ``2000,80``.
    """
    sizes = f"0:{largest.bit_length() - 1}"
    return [operation, "-npmin", "65536", *_IMB_ITERATIONS, count, "-msglog", sizes]


def path(name: str) -> Path:
    """Where the manifest of stack ``name`` lies."""
    return paths.stacks() / name / FILE


def names() -> list[str]:
    """The stacks that have a manifest, sorted."""
    found = (entry.parent.name for entry in paths.stacks().glob(f"*/{FILE}"))
    return sorted(name for name in found if not name.startswith("."))  # a stack that is being made, or replaced


def load(name: str) -> dict[str, Any]:
    """The manifest of stack ``name``; raises :class:`PlumbError` if there is none, or none that obeys the schema."""
    file = path(name)
    try:
        document = schemas.parse_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        installed = ", ".join(names()) or "none"
        cure = suggest(name, names(), f"plumb stack install {name}")
        raise PlumbError(f"stack '{name}' is not installed", str(file), f"{cure} (installed: {installed})") from None
    except (OSError, ValueError) as error:
        # no provider makes a tuned stack again
        cure = f"plumb stack remove {name}" if "+" in name else f"plumb stack install --force {name}"
        raise PlumbError(f"cannot read the manifest of stack '{name}': {error}", str(file), cure) from None
    schemas.check("manifest", document, str(file))
    if document["name"] != name:
        raise PlumbError(f"the manifest calls itself '{document['name']}'", str(file), "reinstall the stack")
    return dict(document)


def load_all() -> list[dict[str, Any]]:
    """The manifests of all installed stacks, sorted by name."""
    return [load(name) for name in names()]


def save(document: dict[str, Any], folder: Path | None = None) -> Path:
    """Write a manifest in one step, to ``folder`` or to the stack's own; returns the file.

    In its own folder the stack counts as installed from then on. Raises :class:`PlumbError` unless the manifest obeys
    its schema.
    """
    file = folder / FILE if folder else path(document["name"])
    schemas.check("manifest", document, str(file))
    files.replace(file, json.dumps(document, indent=2) + "\n")
    return file


def digest(document: dict[str, Any]) -> str:
    """SHA-256 of a stack's manifest, which differs between two states of the stack."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def benchmark(
    suite: str,
    version: str,
    file: Path,
    built: str,
    command: list[str] | None = None,
    facts: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """An element of ``benchmarks``: ``file`` carries the program and is started alone unless ``command`` says how."""
    found = {"suite": suite, "version": version, "command": command or [str(file)], "file": str(file)}
    return {**found, "sha256": sha256(file), "built": built, **({"facts": facts} if facts else {})}


def problems(document: dict[str, Any], leave_out: str | None = None) -> list[str]:
    """What is wrong with an installed stack, one line each; empty if everything is there and unchanged.

    Checked are the launcher, every program and what the programs load; programs of the suite ``leave_out`` are not.
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
        elif files.sha256_once(file) != benchmark["sha256"]:
            found.append(f"stack {name}: {ident} is not the program that was recorded (SHA-256 differs): {file}")
    return found + _changes(document)


def _changes(document: dict[str, Any]) -> list[str]:
    """Which of the files that the programs load are not those that were recorded."""
    name, loads = document["name"], document.get("loads")
    if loads is None:
        return [f"stack {name}: it is not recorded what its programs load (made by an earlier version)"]
    found = []
    for entry, recorded in loads["files"].items():
        try:
            if files.sha256_once(Path(entry)) != recorded:
                found.append(f"stack {name}: what its programs load was changed (SHA-256 differs): {entry}")
        except FileNotFoundError:
            found.append(f"stack {name}: a file that its programs load is missing: {entry}")
        except OSError as error:
            found.append(f"stack {name}: a file that its programs load cannot be read: {error}")
    added = sorted(str(file) for file in parts(document, loads["library"]) if str(file) not in loads["files"])
    return found + [f"stack {name}: its programs would load what was not there before: {file}" for file in added]


def recorded(document: dict[str, Any], benchmark: dict[str, Any]) -> dict[Path, str | None]:
    """The files that a launch of ``benchmark`` runs and loads, with their SHA-256; None where none is recorded."""
    started = dict.fromkeys((document["launcher"]["command"], benchmark["command"][0]))
    known = {benchmark["file"]: benchmark["sha256"], **document.get("loads", {"files": {}})["files"]}
    return {Path(file): digest for file, digest in {**started, **known}.items()}


def parts(document: dict[str, Any], library: str | None) -> set[Path]:
    """What the MPI ``library`` of a stack loads and reads without being asked, as it is now; links are resolved."""
    family = mpi.TABLE[document["mpi"]["family"]]
    found = [file for pattern in family.settings for file in Path(document["prefix"]).glob(pattern)]
    if library is not None:
        found += [file for pattern in family.parts for file in Path(library).parent.glob(pattern)]
    return {file.resolve() for file in found if file.is_file()}


def stale(name: str, mark: str, changed: str, leave_out: str | None = None) -> str | None:
    """Why stack ``name`` must be made (again); None when it is complete.

    ``mark`` is compared with the file ``lock`` beside the manifest, ``changed`` is the reason where they differ.
    Programs of the suite ``leave_out`` are not checked.
    """
    if not path(name).exists():
        return "not installed"
    try:
        document = load(name)
    except PlumbError as error:
        return error.what
    if not files.holds(path(name).with_name("lock"), mark):
        return changed
    found = problems(document, leave_out)
    return found[0] if found else None


def check(document: dict[str, Any]) -> None:
    """Raise :class:`PlumbError` unless all programs of the stack, and what they load, have their recorded SHA-256."""
    found = problems(document)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        name = document["name"]
        made_of = document.get("tuned", {}).get("of", name)
        cure = f"plumb stack install --force {made_of}" if document["provider"] == "wheel" else "make the stack again"
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
    """The variables of the stack, expanded, and of its settings; the caller lays them over ``base_env``."""
    found = {name: expand(value, base_env) for name, value in document["environment"].items()}
    for name, value in document.get("settings", {}).items():
        found[mpi.TABLE[document["mpi"]["family"]].setting_variable(name)] = value
    return found
