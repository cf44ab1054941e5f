"""STREAM: how large its arrays must be on a machine, and how it is compiled, for stacks of every provider.

Source of the rules: J. D. McCalpin, STREAM benchmark reference information and run rules,
https://www.cs.virginia.edu/stream/ref.html.
"""

from __future__ import annotations

import math
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.host.collector import CPUS, Reader
from plumbline.stacks import fetch, instructions, manifest
from plumbline.stacks.manifest import Benchmark, Manifest, Source

#: The lock with the archive that has STREAM's source, its package, and the source in it.
LOCK = fetch.LOCKS / "sources.txt"
PACKAGE = "reframe-hpc"
SOURCE = "examples/tutorial/stream/src/stream.c"

#: STREAM's run rule: each array at least this many times the sum of the last-level caches.
CACHE_FACTOR = 4
ELEMENT_BYTES = 8
MINIMUM_ELEMENTS = 10_000_000
ROUNDING = 1_000_000
#: Executions of each kernel, where the three arrays take this many bytes or more. STREAM needs at least 2 and takes the
#: best one after the first; on large arrays a single execution is long enough, and 20 would take minutes.
NTIMES = {2**32: 3, 2**30: 5, 0: 20}
VERSION = "5.10"
#: Static arrays above this total do not fit the small code model.
SMALL_MODEL_BYTES = 2**31 - 2**27


def last_level_cache_bytes(root: Path = Path("/")) -> int | None:
    """Sum of the last-level data caches of the whole machine in bytes; None when the kernel does not say."""
    read = Reader(root)
    instances: dict[tuple[int, str], int] = {}
    for index in read.names(CPUS, "cpu[0-9]*/cache/index*"):
        level, shared = read.number(f"{index}/level"), read.text(f"{index}/shared_cpu_list")
        size = re.fullmatch(r"(\d+)([KMG]?)", read.text(f"{index}/size") or "")
        if level and shared and size and read.text(f"{index}/type") in ("Data", "Unified"):
            instances[level, shared] = int(size[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[size[2]]
    highest = max((level for level, _ in instances), default=None)
    return sum(size for (level, _), size in instances.items() if level == highest) or None


def array_elements(llc_bytes: int | None) -> int:
    """Elements of each array: the run rule, rounded up to a million, at least :data:`MINIMUM_ELEMENTS`."""
    return max(math.ceil(CACHE_FACTOR * (llc_bytes or 0) / ELEMENT_BYTES / ROUNDING) * ROUNDING, MINIMUM_ELEMENTS)


def repetitions(elements: int) -> int:
    """How often STREAM executes each kernel on arrays of ``elements``."""
    return next(times for size, times in NTIMES.items() if 3 * elements * ELEMENT_BYTES >= size)


@dataclass(frozen=True)
class Compiler:
    """The C compiler that programs are built with.

    ``target`` are its options for a processor, if that is not this machine's; ``links`` those for its own libraries.
    """

    path: str
    version: str
    name: str = "gcc"
    target: tuple[str, ...] = ()
    links: tuple[str, ...] = ()

    @classmethod
    def find(cls) -> Compiler:
        """The system's gcc; raises :class:`PlumbError` if there is none, or it does not know the processor."""
        if (gcc := shutil.which("gcc")) is None:
            raise PlumbError("no C compiler", "gcc", "install it, e.g. apt-get install gcc or dnf install gcc")
        version = _ask([gcc, "-dumpfullversion"])
        compiler = cls(gcc, version, target=instructions.target(version))
        if compiler.target and not compiler.macros():
            message = f"{compiler.aim()!r} names no processor that gcc {version} knows"
            raise PlumbError(message, instructions.VARIABLE, "write x86-64-v3, or another of gcc's -march")
        return compiler

    def macros(self) -> str:
        """The macros that it defines for its processor; empty where it does not know the processor."""
        return _ask([self.path, *(self.target or (instructions.native(),)), "-dM", "-E", "-xc", os.devnull])

    def needed(self) -> str:
        """The instructions that programs need, as flags of /proc/cpuinfo; empty where the compiler does not say."""
        return instructions.needed(self.macros(), self.target)

    def aim(self) -> str:
        """The processor that programs are compiled for: the options, or :meth:`native`."""
        return " ".join(self.target) or self.native()

    def native(self) -> str:
        """The processor that ``-march=native`` means here: ``znver4``, ``neoverse-v2``, …"""
        options = _ask([self.path, "-march=native", "-Q", "--help=target"])
        named = re.search(r"^[ \t]*-march=[ \t]+(\S+)", options, re.MULTILINE)
        return named[1] if named else "native"


def flags(elements: int, machine: str | None = None, target: Sequence[str] = ()) -> list[str]:
    """Compiler options for arrays of ``elements``, and for the processor that ``target`` names in place of this one."""
    machine = machine or platform.machine()
    options = ["-O3", *(target or [instructions.native()]), "-fopenmp"]
    if 3 * elements * ELEMENT_BYTES > SMALL_MODEL_BYTES:
        options += ["-fno-pie", "-no-pie", "-mcmodel=medium" if machine == "x86_64" else "-mcmodel=large"]
    return [*options, f"-DSTREAM_ARRAY_SIZE={elements}", f"-DNTIMES={repetitions(elements)}"]


def build(source: Path, program: Path, compiler: Compiler, llc_bytes: int | None) -> dict[str, Any]:
    """Compile STREAM and return the facts that a test must know; raises :class:`PlumbError` if it does not compile."""
    elements = array_elements(llc_bytes)
    options = [*flags(elements, target=compiler.target), *compiler.links]
    command = [compiler.path, *options, "-o", str(program), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise PlumbError(f"STREAM does not compile: {reason}", " ".join(command), "is the compiler complete?")
    return {
        "array_elements": elements,
        "llc_bytes": llc_bytes,
        "ntimes": repetitions(elements),
        "flags": options,
        "march": compiler.aim(),
        "instructions": compiler.needed(),
    }


def add(stack: str, compiler: Compiler, options: Sequence[str] = ()) -> tuple[Source, Benchmark]:
    """Fetch STREAM's source, with ``options`` for pip, and compile it for ``stack``.

    Returns the source and the entry for the manifest.
    """
    with tempfile.TemporaryDirectory(prefix=f"plumb-{stack}-") as folder:
        archive = fetch.download(LOCK.stem, Path(folder), stack, binary=False, options=options)[PACKAGE]
        origin = manifest.source(PACKAGE, archive)
        return origin, install(archive, paths.stacks() / stack, compiler, origin)


def install(archive: Path, prefix: Path, compiler: Compiler, origin: Source) -> Benchmark:
    """Compile STREAM for this machine's caches below ``prefix``, from ``archive``, which is ``origin``.

    Returns its entry for the manifest.
    """
    source, program = prefix / "share" / "stream" / "stream.c", prefix / "bin" / "stream"
    fetch.extract(archive, SOURCE, source)
    program.parent.mkdir(parents=True, exist_ok=True)
    facts = build(source, program, compiler, last_level_cache_bytes())
    facts["source_sha256"] = manifest.sha256(source)
    made_by = f"{compiler.name} {compiler.version} {' '.join(facts['flags'])}"
    return manifest.benchmark("stream", VERSION, program, f"{made_by}, source, from {origin.text}", facts=facts)


def outgrown(stack: Manifest) -> str | None:
    """Why STREAM of an installed stack is not valid on this machine: its arrays are too small; else None."""
    small = stack.benchmarks["stream"].facts["array_elements"] < array_elements(last_level_cache_bytes())
    return "STREAM's arrays are too small for this machine's caches" if small else None


def unfit(stack: Manifest) -> str | None:
    """Why STREAM of a stack ends with an illegal instruction on some node, as far as facts say; else None."""
    compiler = Compiler.find()
    needed = str(stack.benchmarks["stream"].facts.get("instructions", "?")).split()
    if not compiler.target or set(needed) <= set(compiler.needed().split()):
        return None
    return f"STREAM was compiled for instructions that not all nodes have: {compiler.aim()} from now on"


def version_of(program: str) -> str | None:
    """The version that a compiler prints, None if it cannot be run; gcc, clang and icx have these options."""
    for option in ("-dumpfullversion", "-dumpversion"):
        try:
            done = subprocess.run([program, option], capture_output=True, text=True, check=False, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            return None
        if done.returncode == 0 and done.stdout.strip():
            return done.stdout.strip()
    return None


def _ask(command: list[str]) -> str:
    """Standard output of a command; empty when it fails."""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
