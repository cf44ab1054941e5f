"""Kernels built from sources with a fault put in, to see that their checks can fail."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kernel_stack import KernelStack

from plumbline.base import paths
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
    group, listed = _group(copy, name)
    source = group / file
    text = source.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{file} has {text.count(old)} times: {old}"
    source.write_text(text.replace(old, new), encoding="utf-8")
    output = folder / name
    command = [str(kernels.wrapper(stack.manifest)), "-std=c17", "-O0", "-D_GNU_SOURCE", "-fopenmp", "-o", str(output)]
    (own,) = re.findall(rf"plumb_kernel\({name}\s+([^)]*)\)", listed)
    command += [str(group / item) for item in own.split()]
    for part in ("common", "runtime"):
        shared = re.findall(r"\w+\.c\b", (copy / part / "CMakeLists.txt").read_text(encoding="utf-8"))
        command += [f"-I{copy / part}", *(str(copy / part / item) for item in shared)]
    command += [*options, "-lm"]
    if f"({name} PRIVATE machine)" in listed:
        command += [f"-I{copy / 'bind'}", *(str(copy / "bind" / item) for item in MACHINE), "-lhwloc"]
    environment = {**os.environ, **manifest.environment(stack.manifest, os.environ)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return output


def _group(copy: Path, name: str) -> tuple[Path, str]:
    """The folder that lists the kernel, and its list."""
    lists = {file.parent: file.read_text(encoding="utf-8") for file in (copy / "kernels").glob("*/CMakeLists.txt")}
    (found,) = ((folder, text) for folder, text in lists.items() if f"plumb_kernel({name} " in text)
    return found
