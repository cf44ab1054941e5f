"""Stacks whose programs misbehave on purpose, launched by the real launchers."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import small_caches
import stack_manifest

from plumbline.base import paths
from plumbline.records.variant import Variant
from plumbline.stacks import manifest as manifests

#: elements of an array of the program of STREAM_OUTPUT
ELEMENTS = 1_000_000
#: has the arrays of STREAM and prints a valid table, so that only what else the program does decides
STREAM_OUTPUT = """
import sys
arrays = b'1' * (3 * 8 * 1000000)
sys.stdout.write('''-------------------------------------------------------------
STREAM version $Revision: 5.10 $
-------------------------------------------------------------
This system uses 8 bytes per array element.
-------------------------------------------------------------
Array size = 1000000 (elements), Offset = 0 (elements)
Memory per array = 7.6 MiB (= 0.0 GiB).
Total memory required = 22.9 MiB (= 0.0 GiB).
Each kernel will be executed 2 times.
 The *best* time for each kernel (excluding the first iteration)
 will be used to compute the reported bandwidth.
-------------------------------------------------------------
Number of Threads requested = 1
Number of Threads counted = 1
-------------------------------------------------------------
Your clock granularity/precision appears to be 1 microseconds.
Each test below will take on the order of 20000 microseconds.
   (= 20000 clock ticks)
Increase the size of the arrays if this shows that
you are not getting at least 20 clock ticks per test.
-------------------------------------------------------------
WARNING -- The above is only a rough guideline.
For best results, please be sure you know the
precision of your system timer.
-------------------------------------------------------------
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:           20000.0     0.000810     0.000800     0.000820
Scale:          20000.0     0.000810     0.000800     0.000820
Add:            20000.0     0.001210     0.001200     0.001220
Triad:          20000.0     0.001210     0.001200     0.001220
-------------------------------------------------------------
Solution Validates: avg error less than 1.000000e-13 on all three arrays
-------------------------------------------------------------
''')
sys.stdout.flush()
"""


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty results folder."""
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


class Bench:
    """Makes stacks from Python programs, and variants of them, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def stack(self, code: str, base: str = "mpich", name: str = "odd") -> dict[str, Any]:
        """Stack ``name``: MPI of the installed stack ``base``, with a program ``stream`` that runs ``code``."""
        document = json.loads((self.folder / "installed" / base / manifests.FILE).read_text())
        script = self.folder / f"{name}.py"
        script.write_text(code)
        document["name"] = name
        document["benchmarks"] = {
            "stream": {
                "suite": "stream",
                "version": "5.10",
                "command": [os.path.realpath(sys.executable), str(script)],
                "file": str(script),
                "sha256": manifests.sha256(script),
                "built": "by a test",
                "facts": {"array_elements": ELEMENTS},
            }
        }
        (self.folder / "stacks" / name).mkdir(parents=True, exist_ok=True)
        stack_manifest.save(document)
        return document

    def variant(self, **changes: Any) -> Variant:
        """A variant of the odd stack: one rank, one thread, pinned."""
        from samples import asked

        return asked(**{"stack": "odd", "threads": 1, "launches": 1, "name": "odd", **changes})


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: Path) -> Bench:
    """See :class:`Bench`; installed stacks are read from the checkout, odd ones live in the test's folder.

    The bench is this host with small caches, beside which STREAM's arrays are small.
    """
    small_caches.pretend(tmp_path, 4096, monkeypatch)
    (tmp_path / "installed").symlink_to(paths.stacks())
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path / "stacks"))
    site = tmp_path / "sites" / "local"
    shutil.copytree(paths.sites() / "local", site)
    monkeypatch.setenv("PLUMB_SITES", str(tmp_path / "sites"))
    return Bench(tmp_path)
