"""The BLAS that ``dgemm`` is linked with: of those that the registry has for this machine, the fastest one here.

Each is taken from its pinned wheel and multiplies matrices on all cores, in turns. The fastest stays in
``stacks/blas``; one that comes first in :data:`CANDIDATES` and is at most 2 % slower is preferred.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.stacks import fetch, locked
from plumbline.stacks.stream import Compiler

#: the file that is written last, with what was tried
MARK = "blas.json"
#: the program that multiplies
SOURCE = "custom-kernels/kernels/node/blas_rate.c"
PROGRAM = "rate"
#: how often each BLAS is started
ROUNDS = 3
#: a BLAS with this part of the best rate is as good
AS_GOOD = 0.98


@dataclass(frozen=True)
class Candidate:
    """A BLAS in the wheel of lock ``lock``: the members that are needed, each by its ending, and the files to link.

    Its names begin with ``prefix``.
    """

    name: str
    lock: str
    prefix: str
    link: tuple[str, ...]
    members: Mapping[str, str]
    machines: tuple[str, ...] = ("x86_64", "aarch64")


#: with the libraries that MKL's dispatcher loads, for every processor
_MKL = [f"libmkl_{part}.so.3" for part in ("intel_lp64", "sequential", "core", "def", "avx2", "avx512", "avx10")]
CANDIDATES = (
    Candidate(
        "openblas",
        "blas",
        "scipy_",
        ("libscipy_openblas.so",),
        {"/lib/libscipy_openblas.so": "lib/libscipy_openblas.so", "/licenses/LICENSE.txt": "LICENSE.txt"},
    ),
    Candidate(
        "mkl",
        "mkl",
        "",
        tuple(_MKL[:3]),
        {
            **{f"/data/lib/{file}": f"lib/{file}" for file in _MKL},
            ".dist-info/LICENSE.txt": "LICENSE.txt",
            "/licensing/third-party-programs.txt": "third-party-programs.txt",
        },
        ("x86_64",),
    ),
)


def _here() -> list[Candidate]:
    """Those that this machine can have."""
    return [candidate for candidate in CANDIDATES if platform.machine() in candidate.machines]


def lock_files() -> list[Path]:
    """The locks of those that this machine can have."""
    return [fetch.LOCKS / f"{candidate.lock}.txt" for candidate in _here()]


def prefix() -> Path:
    """The folder with the BLAS in ``lib``, made if it is not there; the choice is made again on another processor."""
    folder = paths.stacks() / "blas"
    files.recover(folder)
    with locked("blas"):
        if fetch.mark(folder / MARK).get("made_from") != _fingerprint():
            with files.staged(folder) as fresh:  # all stacks load the present one
                _choose(fresh)
    return folder


def facts() -> dict[str, Any]:
    """Which BLAS was chosen, and the GFlop/s of each that was tried, as the manifest has it."""
    known = fetch.mark(paths.stacks() / "blas" / MARK)
    return {name: known[name] for name in ("blas", "blas_GFlop_per_s", "blas_left_out") if name in known}


def options() -> list[str]:
    """The compiler's options that link a program with the chosen BLAS."""
    folder = prefix()
    return _options(next(candidate for candidate in CANDIDATES if candidate.name == facts()["blas"]), folder)


def _options(candidate: Candidate, folder: Path) -> list[str]:
    return [
        f"-DPLUMB_BLAS_SYMBOL_PREFIX={candidate.prefix}",
        "-Wl,--no-as-needed",
        *(str(folder / "lib" / name) for name in candidate.link),
        f"-Wl,-rpath,{folder / 'lib'}",
    ]


def _fingerprint() -> str:
    content = b"".join(file.read_bytes() for file in [*lock_files(), paths.suite() / SOURCE])
    return hashlib.sha256(Compiler.find().native().encode() + content).hexdigest()


def _choose(folder: Path) -> None:
    """Try all, keep the best. One that cannot be had or run is left out, but for the first, which has to be there."""
    rates: dict[str, float] = {}
    left_out: dict[str, str] = {}
    here = _here()
    _unpack(here[0], folder / here[0].name)
    for candidate in here[1:]:
        try:
            _unpack(candidate, folder / candidate.name)
        except PlumbError as error:
            left_out[candidate.name] = str(error)
    for candidate in ROUNDS * [candidate for candidate in here if candidate.name not in left_out]:
        try:
            rates[candidate.name] = max(rates.get(candidate.name, 0.0), _rate(candidate, folder / candidate.name))
        except PlumbError as error:
            left_out[candidate.name] = str(error)
    rates = {name: rate for name, rate in rates.items() if name not in left_out}
    chosen = next((name for name, rate in rates.items() if rate >= AS_GOOD * max(rates.values())), None)
    if chosen is None:
        raise PlumbError(f"no BLAS can multiply here: {'; '.join(left_out.values())}", str(folder), "see its log")
    (folder / chosen / PROGRAM).unlink(missing_ok=True)
    for part in (folder / chosen).iterdir():
        part.rename(folder / part.name)
    for candidate in here:
        shutil.rmtree(folder / candidate.name, ignore_errors=True)
    record = {"made_from": _fingerprint(), "blas": chosen, "blas_GFlop_per_s": rates}
    files.replace(folder / MARK, json.dumps(record | ({"blas_left_out": left_out} if left_out else {})) + "\n")
    print(f"blas: {', '.join(f'{name} {rate:.1f} GFlop/s' for name, rate in rates.items())}: {chosen}", flush=True)
    for name, reason in left_out.items():
        print(f"blas: {name} is left out: {reason}", flush=True)


def _unpack(candidate: Candidate, folder: Path) -> None:
    folder.mkdir(parents=True)
    (wheel,) = fetch.download(candidate.lock, folder / "wheel", "blas", binary=True).values()
    for ending, target in candidate.members.items():
        fetch.unpack(wheel, ending, folder / target)
    shutil.rmtree(folder / "wheel")


def _rate(candidate: Candidate, folder: Path) -> float:
    """GFlop/s of one start on all cores; the program is compiled for the first one."""
    program = folder / PROGRAM
    if not program.exists():
        sources = [str((paths.suite() / SOURCE).with_name(name)) for name in (Path(SOURCE).name, "blas.c")]
        links = [*_options(candidate, folder), "-lm"]
        command = [Compiler.find().path, "-O2", "-fopenmp", *sources, *links, "-o", str(program)]
        fetch.call(command, f"{candidate.name} cannot be linked", "blas")
    alone = {"OPENBLAS_NUM_THREADS": "1", "OMP_PLACES": "cores", "OMP_PROC_BIND": "spread"}
    return float(fetch.call([str(program)], f"{candidate.name} cannot multiply", "blas", {**os.environ, **alone}))
