"""What stacks there are, and what is in one of them."""

from __future__ import annotations

from typing import Any

from plumbline import stacks
from plumbline.base.errors import PlumbError
from plumbline.stacks import kernels, manifest

COLUMNS = ("name", "provider", "mpi", "version", "benchmarks", "state")


def rows() -> list[dict[str, Any]]:
    """A row with :data:`COLUMNS` for each stack that is installed, then for each that could be."""
    installed = manifest.names()
    found = [_installed(name) for name in installed]
    for kind in stacks.PROVIDERS:
        for name in stacks.provider(kind).names():
            label = stacks.label(kind, name)
            spec = name if kind == stacks.DEFAULT_PROVIDER else f"{kind}:{name}"
            if label not in installed:
                found.append(_row(label, kind, "-", "-", "-", f"not installed: plumb stack install {spec}"))
    return found


def _row(*cells: Any) -> dict[str, Any]:
    return dict(zip(COLUMNS, cells, strict=True))


def _installed(name: str) -> dict[str, Any]:
    try:
        document = manifest.load(name)
    except PlumbError as error:
        return _row(name, "-", "-", "-", "-", f"damaged: {error.what}")
    problems = manifest.problems(document)
    state = f"damaged: {problems[0]}" if problems else "ok"
    if not problems and (older := kernels.outdated(document)):
        state = f"kernels older than their sources: {older.cure}"
    mpi = document["mpi"]
    return _row(name, document["provider"], mpi["family"], mpi["version"], len(document["benchmarks"]), state)


def text(document: dict[str, Any]) -> str:
    """A manifest for people."""
    mpi, compiler = document["mpi"], document["compiler"]
    lines = [
        f"{document['name']}: {mpi['family']} {mpi['version']} ({mpi['abi']} ABI), provider {document['provider']}",
        f"  prefix       {document['prefix']}",
        f"  launcher     {document['launcher']['command']} ({document['launcher']['family']})",
        f"  compiler     {compiler['name']} {compiler['version']}",
        *(f"  environment  {name}={value}" for name, value in document["environment"].items()),
        *(f"  setting      {name}={value}" for name, value in document.get("settings", {}).items()),
    ]
    if "tuned" in document:
        where = document["tuned"]["fingerprint"]
        lines.append(
            f"  tuned        {where['ranks']} ranks, {where['placement']}, {where['cpu']}, kernel {where['kernel']}"
        )
    lines += [f"  module       {name}" for name in document["modules"]]
    lines += [f"  source       {source['name']} {source['version']} {source['hash']}" for source in document["sources"]]
    width = max(len(ident) for ident in document["benchmarks"])
    for ident, entry in document["benchmarks"].items():
        lines.append(f"  {ident.ljust(width)}  {entry['suite']} {entry['version']}: {entry['built']}")
    return "\n".join(lines)
