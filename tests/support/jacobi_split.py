"""The decomposition of the Jacobi kernels (``jacobi_split.c``) as a library, and what tests of both kernels share."""

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

from plumbline.base import paths

Triple = tuple[int, int, int]
LOW, HIGH = 0, 1


def hybrid(threads: int) -> dict[str, str]:
    """Environment of ranks with more threads than there may be cores: those that wait sleep."""
    return {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}


def outcome(document: dict[str, Any]) -> str:
    """The note with residual and checksum."""
    (note,) = [note for note in document["notes"] if "checksum" in note]
    return note


class _Range(ctypes.Structure):
    _fields_ = [("begin", ctypes.c_long), ("end", ctypes.c_long)]


class Split:
    """The functions of ``jacobi_split.h`` with tuples for arrays, dimensions in the order x, y, z."""

    def __init__(self, folder: Path) -> None:
        source = paths.root() / "custom-kernels"
        library = folder / "jacobi_split.so"
        compiler = shutil.which("cc") or "gcc"
        subprocess.run(
            [compiler, "-std=c17", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library,
             f"-I{source / 'runtime'}", source / "kernels/grid/jacobi_split.c", source / "runtime" / "share.c"],
            check=True,
        )  # fmt: skip
        self._c = ctypes.CDLL(str(library))
        self._c.split_range.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_int]
        self._c.split_range.restype = _Range
        self._c.split_levels.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int]
        self._c.split_levels.restype = _Range
        self._c.split_ranks.argtypes = [ctypes.POINTER(ctypes.c_long), ctypes.c_int, ctypes.c_long, ctypes.c_void_p]
        self._c.split_ranks.restype = ctypes.c_bool

    def part(self, points: int, parts: int, part: int) -> range:
        """Points of one part."""
        found = self._c.split_range(points, parts, part)
        return range(found.begin, found.end)

    def levels(self, levels: int, threads: int, stage: int) -> range:
        """Levels of one stage of a pipeline."""
        found = self._c.split_levels(levels, threads, stage)
        return range(found.begin, found.end)

    def ranks(self, points: Triple, ranks: int, least: int) -> Triple | None:
        """Parts of each dimension; None where there are none with ``least`` points."""
        parts = (ctypes.c_int * 3)()
        if not self._c.split_ranks((ctypes.c_long * 3)(*points), ranks, least, parts):
            return None
        return parts[0], parts[1], parts[2]

    def place(self, parts: Triple, rank: int) -> Triple:
        """Where a rank stands among the parts."""
        place = (ctypes.c_int * 3)()
        self._c.split_place((ctypes.c_int * 3)(*parts), rank, place)
        return place[0], place[1], place[2]

    def neighbour(self, parts: Triple, place: Triple, dimension: int, side: int, periodic: bool) -> int:
        """The rank beside a place; -1 beyond a fixed boundary."""
        triple = ctypes.c_int * 3
        return int(self._c.split_neighbour(triple(*parts), triple(*place), dimension, side, ctypes.c_bool(periodic)))
