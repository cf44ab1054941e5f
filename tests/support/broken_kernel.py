"""Kernels built from sources with a fault put in, to see that their checks can fail."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kernel_stack import KernelStack

from plumbline import paths
from plumbline.stacks import kernels, manifest

#: those of custom-kernels/bind/machine.cmake, for kernels that name distances
MACHINE = ("cputable.c", "distance.c", "machine.c", "numbers.c")


def build(
    folder: Path, stack: KernelStack, name: str, *, file: str, old: str, new: str, options: Sequence[str] = ()
) -> Path:
    """Kernel ``name`` with ``old`` in its source ``file`` replaced by ``new``: the program.

    ``old`` must be there exactly once, so that a fault cannot fail to be put in. Without cmake and optimisation:
    only what the program says is looked at.
    """
    copy = folder / "custom-kernels"
    shutil.copytree(paths.root() / "custom-kernels", copy)
    source = copy / "kernels" / file
    text = source.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{file} has {text.count(old)} times: {old}"
    source.write_text(text.replace(old, new), encoding="utf-8")
    output = folder / name
    command = [str(kernels.wrapper(stack.document)), "-std=c17", "-O0", "-D_GNU_SOURCE", "-fopenmp", "-o", str(output)]
    command += [f"-I{copy / 'common'}", f"-I{copy / 'runtime'}", *map(str, _sources(copy, name)), *options, "-lm"]
    if any("../bind/" in path.read_text(encoding="utf-8") for path in (copy / "kernels").glob(f"{name}*.h")):
        command += [str(copy / "bind" / item) for item in MACHINE] + ["-lhwloc"]
    environment = {**os.environ, **manifest.environment(stack.document, os.environ)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return output


def _sources(copy: Path, name: str) -> list[Path]:
    """The kernel's sources, as its group lists them, and those that every kernel shares."""
    groups = "\n".join(path.read_text(encoding="utf-8") for path in sorted((copy / "kernels").glob("*.cmake")))
    (listed,) = re.findall(rf"plumb_kernel\({name}\s+([^)]*)\)", groups)
    return [copy / "kernels" / item for item in listed.split()] + [
        file for part in ("common", "runtime") for file in sorted((copy / part).glob("*.c"))
    ]
