"""How the comparisons start their programs: bound by plumb-bind, in the environment of an installed stack."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pairs

from plumbline import mpi
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.stacks import manifest
from plumbline.stacks.manifest import Manifest


def kernel(stack: Manifest, name: str, folder: str | None = None) -> Path:
    """The program of kernel ``name`` of a stack, or of another build's ``folder``."""
    program = (Path(folder) if folder else paths.stacks() / stack.name / "kernels" / "bin") / name
    if not program.is_file():
        raise PlumbError(f"there is no kernel {name}", str(program), f"plumb stack install {stack.name}")
    return program


def bound(
    stack: Manifest,
    placement: Sequence[str],
    command: Sequence[str | Path],
    *,
    ranks: int = 1,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Standard output of ``command`` on ``ranks`` ranks of this node; ``placement`` are options of plumb-bind."""
    layout = mpi.Layout(nodes=1, ranks_per_node=ranks)
    start = stack.launcher_on(None, os.environ).command(layout, bound=True, environment=os.environ)
    words = [*start.arguments, str(paths.binder()), *placement, "--", *map(str, command)]
    return pairs.launch(words, {**manifest.environment(stack, os.environ), **start.environment, **(environment or {})})
