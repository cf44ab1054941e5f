"""Kernels built from sources with a fault put in, to see that their checks can fail."""

import atexit
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
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
    compiler = kernels.wrapper(stack.manifest)
    (own,) = re.findall(rf"plumb_kernel\({name}\s+([^)]*)\)", listed)
    sources = [group / item for item in own.split()]
    include = []
    for part in ("common", "runtime"):
        shared = re.findall(r"\w+\.c\b", (copy / part / "CMakeLists.txt").read_text(encoding="utf-8"))
        include.append(f"-I{copy / part}")
        sources += [copy / part / item for item in shared]
    libraries = ["-lm"]
    if f"({name} PRIVATE machine)" in listed:
        include.append(f"-I{copy / 'bind'}")
        sources += [copy / "bind" / item for item in MACHINE]
        libraries.append("-lhwloc")
    environment = {**os.environ, **manifest.environment(stack.manifest, os.environ)}

    def call(*words: object) -> None:
        command = [*map(str, (compiler, "-std=c17", "-O0", "-D_GNU_SOURCE", "-fopenmp", *words))]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    objects = []
    for place in sources:
        sound = place != source and (source.suffix == ".c" or place.parent != group)
        key = hashlib.sha256(repr((stack.name, options, place.relative_to(copy))).encode()).hexdigest()
        made = _objects() / f"{key}.o" if sound else folder / f"{place.name}.o"
        if not made.exists():
            call(*include, *options, "-c", "-o", made, place)
        objects.append(made)
    call("-o", output, *objects, *options, *libraries)
    return output


@functools.cache
def _objects() -> Path:
    """What sources without a fault were compiled to in this process."""
    folder = Path(tempfile.mkdtemp(prefix="plumb-objects-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _group(copy: Path, name: str) -> tuple[Path, str]:
    """The folder that lists the kernel, and its list."""
    lists = {file.parent: file.read_text(encoding="utf-8") for file in (copy / "kernels").glob("*/CMakeLists.txt")}
    (found,) = ((folder, text) for folder, text in lists.items() if f"plumb_kernel({name} " in text)
    return found
