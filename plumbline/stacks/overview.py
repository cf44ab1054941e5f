"""The list of the stacks, and the content of one of them."""

from __future__ import annotations

from typing import Any

from plumbline import stacks
from plumbline.base.errors import PlumbError
from plumbline.stacks import kernels, manifest, wheel
from plumbline.stacks.manifest import Manifest

COLUMNS = ("name", "provider", "mpi", "version", "benchmarks", "state")


def rows() -> list[dict[str, Any]]:
    """A row with :data:`COLUMNS` for each stack that is installed, then for each that could be."""
    installed = manifest.names()
    table = [_installed(name) for name in installed]
    for kind in stacks.PROVIDERS:
        for name in stacks.provider(kind).names():
            label = stacks.label(kind, name)
            spec = name if kind == stacks.DEFAULT_PROVIDER else f"{kind}:{name}"
            if label not in installed:
                table.append(_row(label, kind, "-", "-", "-", f"not installed: plumb stack install {spec}"))
    return table


def _row(*cells: Any) -> dict[str, Any]:
    return dict(zip(COLUMNS, cells, strict=True))


def _installed(name: str) -> dict[str, Any]:
    try:
        stack = manifest.load(name)
    except PlumbError as error:
        return _row(name, "-", "-", "-", "-", f"damaged: {error.message}")
    state = "ok"
    if problems := manifest.problems(stack):
        state = f"damaged: {problems[0]}"
    elif older := kernels.outdated(stack):
        state = f"kernels older than their sources: {older.cure}"
    elif stack.provider == stacks.DEFAULT_PROVIDER and (changed := wheel.renewed(stack)):
        state = f"ok; {changed}: plumb stack install {name} makes it again"
    return _row(name, stack.provider, stack.mpi.family, stack.mpi.version, len(stack.benchmarks), state)


def text(stack: Manifest) -> str:
    """A manifest for people."""
    mpi = stack.mpi
    lines = [
        f"{stack.name}: {mpi.family} {mpi.version} ({mpi.abi} ABI), provider {stack.provider}",
        f"  prefix       {stack.prefix}",
        f"  launcher     {stack.launcher.command} ({stack.launcher.family})",
        f"  compiler     {stack.compiler.name} {stack.compiler.version}",
        *(f"  environment  {name}={value}" for name, value in stack.environment.items()),
        *(f"  setting      {name}={value}" for name, value in stack.settings.items()),
    ]
    if image := stack.container:
        how = f"{image.engine}, MPI library: {image.mode}"
        lines.append(f"  image        {image.image} (sha256:{image.sha256}), {how}")
    if stack.tuned:
        where = stack.tuned.fingerprint
        lines.append(f"  tuned        {where.ranks} ranks, {where.placement}, {where.cpu}, kernel {where.kernel}")
    lines += [f"  module       {name}" for name in stack.modules]
    for source in stack.sources:
        lines.append(f"  source       {source.name} {source.version} {source.hash}")
        lines += [f"               from {source.archive}"] if source.archive else []
    width = max(map(len, stack.benchmarks), default=0)
    for ident, entry in stack.benchmarks.items():
        lines.append(f"  {ident.ljust(width)}  {entry.suite} {entry.version}: {entry.built}")
    return "\n".join(lines)
